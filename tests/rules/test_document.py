"""docs/rules.md says what the library says."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_rules_is_up_to_date():
    tool = runpy.run_path(str(ROOT / "tools" / "rules_doc.py"))
    assert tool["DOCUMENT"].read_text() == tool["document"](), (
        "run python tools/rules_doc.py --write"
    )
