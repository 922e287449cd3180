"""docs/tf1.md lists what is there."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_lists_are_up_to_date():
    spec = importlib.util.spec_from_file_location("tf1_doc", ROOT / "tools" / "tf1_doc.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.DOCUMENT.read_text()
    assert tool.written(text) == text, "python tools/tf1_doc.py --write"
