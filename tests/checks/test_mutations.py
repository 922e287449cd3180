"""check_gradient catches wrong rules, and only those."""

import runpy
import sys
from pathlib import Path

import pytest

from graphgrad.checks.gradient import check_gradient

TOOL = Path(__file__).resolve().parents[2] / "tools" / "mutate_rules.py"


@pytest.fixture(scope="module")
def tool():
    before = dict(sys.modules)
    try:
        # dataclasses look their module up by name
        sys.modules["mutate_rules"] = sys.modules[__name__]
        return runpy.run_path(str(TOOL), run_name="mutate_rules")
    finally:
        sys.modules.clear()
        sys.modules.update(before)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.ci) for k in (1, 2))])
def test_S38_right_rules_raise_no_alarm(tool, seed):
    for case in tool["CASES"]:
        report = check_gradient(tool["right"](case), case.function, *case.arrays(), seed=seed)
        assert report.ok, f"{case.name}: {report}"
        assert not report.notes


@pytest.mark.slow
def test_S38_mutated_rules_are_caught(tool):
    table, missed = tool["survivors"]()
    hits, count = (sum(row[i] for row in table.values()) for i in (0, 1))
    print(f"{hits} of {count} mutated rules caught: {table}")
    assert count >= 200
    assert len(table) >= 8
    assert hits >= 0.99 * count, [str(m) for m in missed]
