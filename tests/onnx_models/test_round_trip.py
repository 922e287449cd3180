"""Models of others, loaded, exported again and run in onnxruntime."""

import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.mark.ci
@pytest.mark.parametrize(("kind", "right"), [("simple", 7), ("pytorch-operator", 35)])
def test_what_was_loaded_can_be_exported_again(kind, right, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(TOOLS), *sys.path])
    spec = spec_from_file_location("onnx_round_trip", TOOLS / "onnx_round_trip.py")
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    found = [tool.tried(case, tmp_path / "m.onnx") for case in tool.cases_of(kind)]
    counts = Counter(outcome for outcome, _ in found)
    assert counts["right"] == right == counts.total() - counts["not loaded"]
