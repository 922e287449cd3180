"""What measures the package sees lines, branches, circles of imports for types, and tables."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "house.py"

FILES = {
    "low.py": '''"""Doc."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .high import Sin


def least(a, b):
    """Two
    lines."""
    # a comment
    return a if a < b or b is None else b
''',
    "high.py": """from .low import least


class Op: ...
class Sin(Op): ...
class Cos(Op): ...
class Tan(Op): ...


TABLE = {Sin: 1, Cos: 2, "Tan": 3}
PAIR = Sin, Cos
""",
}


def test_a_small_package(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("house_tool", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    root = tmp_path / "package"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    monkeypatch.setattr("sys.argv", ["house.py", str(root)])
    tool.main()
    said = capsys.readouterr().out
    assert "files 2, lines of code 12, longest file high.py (7)" in said
    assert "functions 1, median 3, longest 3" in said
    assert "branches 2" in said
    assert "circles 1\n    high.py low.py" in said
    assert "outside ops/: 1\n    high.py:10 TABLE (3)" in said
