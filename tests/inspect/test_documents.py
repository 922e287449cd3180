"""The pictures of README.md and docs/ are what the library draws."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.ci
def test_the_pictures_are_not_old():
    """In a process of its own: README's program registers a rule."""
    tool = [sys.executable, str(ROOT / "tools" / "pictures_doc.py")]
    done = subprocess.run(tool, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}: tools/pictures_doc.py --write"
