"""ONNX's own tests: tools/onnx_tests.py says how many are right."""

from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytest.importorskip("onnx")


def load_tool():
    path = Path(__file__).parents[2] / "tools" / "onnx_tests.py"
    spec = spec_from_file_location("onnx_tests", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CONVERTED = [("pytorch-operator", 35), ("pytorch-converted", 82)]


@pytest.mark.parametrize(
    ("kind", "right"),
    [("simple", 7), *(pytest.param(*row, marks=pytest.mark.ci) for row in CONVERTED)],
)
def test_models_of_the_wheel(kind, right):
    tool = load_tool()
    found = [tool.tried(case) for case in tool.cases_of(kind)]
    assert [row for row in found if row.kind in ("wrong", "failed")] == []
    assert Counter(row.kind for row in found)["right"] >= right


@pytest.mark.ci
def test_node_tests_are_right_or_refused_by_name():
    tool = load_tool()
    found = [tool.tried(case) for case in tool.cases_of("node")]
    assert [row for row in found if row.kind in ("wrong", "failed")] == []
    counts = Counter((row.tier, row.kind) for row in found)
    assert counts["A", "right"] >= 1070
    assert counts["B", "right"] >= 485
