"""The pictures of README.md and docs/ are what the library draws."""

import runpy
from pathlib import Path

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "pictures_doc.py"


def test_the_pictures_are_not_old():
    assert runpy.run_path(str(TOOL))["old"]() == [], "run python tools/pictures_doc.py --write"
