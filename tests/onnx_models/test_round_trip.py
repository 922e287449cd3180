"""Models of others, loaded, exported again and run in onnxruntime."""

import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

from .. import opens

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


def test_open_lengths_are_open_again(tmp_path):
    with gg.Graph():
        x, v, rows = opens.placeholders()
        outputs = {str(i): y for i, y in enumerate([*opens.moved(x, v), *opens.looped(x, rows)])}
        f = gg.compile([x, v, rows], outputs, backend="numpy")
    gg.onnx.export(f, tmp_path / "m.onnx", dtype="float64")
    model = gg.onnx.load(tmp_path / "m.onnx")
    assert [t.shape for t in model.inputs.values()] == [("N", 3), ("2*N + 1",), (4,)]
    assert model.outputs["1"].shape == ("6*N + 3",)
    for n in opens.LENGTHS:
        found, expected = model(*opens.arrays(n)), f(*opens.arrays(n))
        for a, b in zip(found, expected.values(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
