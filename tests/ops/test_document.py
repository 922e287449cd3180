"""docs/ops.md says what holds of the ops, and what gradients are where there is a choice."""

import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_gradients_at_ties_and_kinks_are_what_the_table_says():
    tool = runpy.run_path(str(ROOT / "tools" / "conventions.py"))
    known = {(e.expression, e.at): e.gradients[0] for e in tool["entries"]()}
    assert tool["own"]() == known, "python tools/conventions.py --write, if that was meant"


@pytest.mark.skipif(
    not all(map(find_spec, ("jax", "llvmlite", "scipy"))), reason="it is about all backends"
)
def test_the_tables_of_ops_are_up_to_date():
    tool = runpy.run_path(str(ROOT / "tools" / "ops_doc.py"))
    if "own vector functions" not in tool["LLVM"].describe():
        pytest.skip("it is about machines with FMA")
    assert tool["DOCUMENT"].read_text() == tool["document"](), "run python tools/ops_doc.py --write"
