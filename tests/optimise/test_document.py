"""docs/optimisation.md says what the passes do."""

import runpy
from pathlib import Path

from graphgrad.optimise.rules.catalogue import FASTER, RULES

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_rewrites_is_up_to_date_and_whole():
    tool = runpy.run_path(str(ROOT / "tools" / "optimisation_doc.py"))
    assert tool["DOCUMENT"].read_text() == tool["document"](), (
        "run python tools/optimisation_doc.py --write"
    )
    listed = [r for rules in tool["SECTIONS"].values() for r in rules or ()]
    assert {r.name for r in listed} == {r.name for r in (*RULES, *FASTER)}
    assert len(listed) == len(RULES) + len(FASTER)
