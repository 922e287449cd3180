"""The page of `graphgrad.tf1`: TensorFlow's names, a table for each of its modules."""

import runpy
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "tf1_doc.py"
HEAD = """
Names of TensorFlow 1, with TensorFlow's meaning and parameters:
:doc:`what differs, and how to move on </tf1>`. What is not there says so at its first use.
"""


def page():
    """A table for each space of names."""
    tool = runpy.run_path(str(TOOL))
    lines = ["graphgrad.tf1", "=============", HEAD, ".. currentmodule:: graphgrad.tf1", ""]
    for title, names in tool["spaces"]().items():
        space = title.removeprefix("tf").lstrip(".")
        module = tool["module_of"](space)
        values = [name for name in names if not callable(getattr(module, name))]
        lines += [title, "-" * len(title), "", ".. autosummary::", ""]
        lines += [f"   {space}{'.' * bool(space)}{n}" for n in names if n not in values]
        if values:
            lines += ["", "Values: " + ", ".join(f"``{name}``" for name in values) + "."]
        lines += [""]
    return "\n".join(lines)
