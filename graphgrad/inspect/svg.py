"""SVG, PNG and PDF by Graphviz, in a child process: layout runs in C and cannot be interrupted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..ir.errors import GraphGradError
from .dot import dot_of
from .view import View, view_of

__all__ = ["RenderError", "to_pdf", "to_png", "to_svg", "write_picture"]

_BUNDLED = (
    "import sys, pygraphviz\n"
    "picture = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode('ascii'))\n"
    "sys.stdout.buffer.write(picture.draw(format=sys.argv[1], prog='dot'))\n"
)
FORMATS = ("svg", "png", "pdf")
_LOST = "Error: lost"  # an edge that Graphviz could not route, and left out


class RenderError(GraphGradError, RuntimeError):
    """Graphviz is missing, failed, or took too long."""


class _TookTooLong(RenderError):
    pass


def render(shown: Any, format: str = "svg", *, timeout: float = 60.0, **options: Any) -> bytes:
    """The picture of to_dot(shown, **options), laid out by Graphviz: "svg", "png" or "pdf".

    Uses the extra `graphgrad[viz]`, or else a `dot` program on the PATH. Where layout takes longer
    than timeout seconds it is given up, and tried once more with all boxes collapsed; the title
    then says so. RenderError where neither is installed, layout fails, or that takes too long too.
    """
    if format not in FORMATS:
        raise ValueError(f"format is one of {FORMATS}, got {format!r}")
    command = _command(format)
    view = view_of(shown, **options)
    try:
        return _laid_out(view, command, timeout)
    except _TookTooLong:
        smaller = view_of(shown, **{**options, "collapse": "all", "saved_edges": False})
        if not smaller.collapsed or smaller.collapsed == view.collapsed:
            raise
        smaller.title = f"{smaller.title} (collapsed: the whole took longer than {timeout:g} s)"
        return _laid_out(smaller, command, timeout)


def to_svg(shown: Any, *, timeout: float = 60.0, **options: Any) -> str:
    """The picture as SVG text; see render."""
    return render(shown, "svg", timeout=timeout, **options).decode("utf-8")


def to_png(shown: Any, *, timeout: float = 60.0, **options: Any) -> bytes:
    """The picture as a PNG file's bytes; see render."""
    return render(shown, "png", timeout=timeout, **options)


def to_pdf(shown: Any, *, timeout: float = 60.0, **options: Any) -> bytes:
    """The picture as a PDF file's bytes; see render."""
    return render(shown, "pdf", timeout=timeout, **options)


def write_picture(
    path: str | os.PathLike[str], shown: Any, *, timeout: float = 60.0, **options: Any
) -> None:
    """Write the picture to a file, as its suffix says: .svg, .png or .pdf; see render."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise ValueError(f"the file's suffix is one of {FORMATS}, got {os.fspath(path)!r}")
    Path(path).write_bytes(render(shown, suffix, timeout=timeout, **options))


def _laid_out(view: View, command: list[str], timeout: float) -> bytes:
    """What Graphviz makes of a view: with straight edges where it cannot find its way round."""
    text = dot_of(view)
    start = time.monotonic()
    made, said = _run(command, text, timeout)
    if _LOST in said or made is None:
        left = max(timeout - (time.monotonic() - start), 1.0)
        straight = text.replace("graph [", "graph [splines=line, ", 1)
        again, said_again = _run(command, straight, left)
        made = again if again is not None else made
        said = said_again
    if not made:
        raise RenderError(f"Graphviz failed: {said[-500:] or 'it made nothing'}")
    return made


def _run(command: list[str], text: str, timeout: float) -> tuple[bytes | None, str]:
    """What the command makes, None where it failed, and what it says."""
    try:
        done = subprocess.run(
            command, input=text.encode("ascii"), capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise _TookTooLong(
            f"Graphviz did not lay out the picture within {timeout:g} s.\nShow less (only the "
            "tensors of interest, saved_edges=False, collapse=), or give it more timeout=."
        ) from None
    except OSError as error:
        raise RenderError(f"Graphviz failed: {error}") from error
    said = done.stderr.decode("utf-8", "replace").strip()
    return (done.stdout if done.returncode == 0 else None), said


def can_render() -> bool:
    """Whether there is anything to render with."""
    return find_spec("pygraphviz") is not None or shutil.which("dot") is not None


def _command(format: str) -> list[str]:
    if find_spec("pygraphviz") is not None:
        return [sys.executable, "-P", "-c", _BUNDLED, format]
    program = shutil.which("dot")
    if program is None:
        raise RenderError(
            "a picture needs Graphviz, and there is neither the package pygraphviz nor a program "
            "`dot`.\nInstall it with `pip install 'graphgrad[viz]'`, or use to_dot and lay the "
            "text out elsewhere."
        )
    return [program, f"-T{format}"]
