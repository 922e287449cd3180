"""SVG by Graphviz, in a child process: layout runs in C and cannot be interrupted otherwise."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

from ..ir.errors import GraphGradError
from .dot import to_dot

__all__ = ["RenderError", "to_svg"]

_BUNDLED = (
    "import sys, pygraphviz\n"
    "picture = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode('ascii'))\n"
    "sys.stdout.buffer.write(picture.draw(format='svg', prog='dot'))\n"
)


class RenderError(GraphGradError, RuntimeError):
    """Graphviz is missing, failed, or took too long."""


def to_svg(shown: Any, *, timeout: float = 60.0, **options: Any) -> str:
    """The picture of to_dot(shown, **options), laid out by Graphviz, as SVG text.

    Uses the extra `graphgrad[viz]`, or else a `dot` program on the PATH. RenderError where there
    is neither, where layout fails, or where it takes longer than timeout seconds.
    """
    text = to_dot(shown, **options)
    command = _command()
    try:
        done = subprocess.run(
            command, input=text.encode("ascii"), capture_output=True, timeout=timeout, check=True
        )
    except subprocess.TimeoutExpired:
        raise RenderError(
            f"Graphviz did not lay out the picture within {timeout:g} s.\nShow less (only the "
            "tensors of interest, saved_edges=False), or give it more time with timeout=."
        ) from None
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"").decode("utf-8", "replace").strip()[-500:]
        raise RenderError(f"Graphviz failed: {said or error}") from error
    return done.stdout.decode("utf-8")


def _command() -> list[str]:
    if find_spec("pygraphviz") is not None:
        return [sys.executable, "-P", "-c", _BUNDLED]
    program = shutil.which("dot")
    if program is None:
        raise RenderError(
            "to_svg needs Graphviz, and there is neither the package pygraphviz nor a program "
            "`dot`.\nInstall it with `pip install 'graphgrad[viz]'`, or use to_dot and lay the "
            "text out elsewhere."
        )
    return [program, "-Tsvg"]
