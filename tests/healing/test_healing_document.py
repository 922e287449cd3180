"""docs/healing.md is what the tool writes."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_document_is_that_of_the_table():
    pytest.importorskip("ml_dtypes")
    tool = runpy.run_path(str(ROOT / "tools" / "healing_doc.py"))
    written = (ROOT / "docs" / "healing.md").read_text()
    assert tool["document"]() == written, "run python tools/healing_doc.py --write"
