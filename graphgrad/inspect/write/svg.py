"""SVG, PNG and PDF by Graphviz, in a child process: layout runs in C and cannot be interrupted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...base.errors import GraphGradError
from ..scene.view import View, view_of
from ..scene.wording import shortened, visible
from .dot import dot_of

__all__ = ["RenderError", "to_pdf", "to_png", "to_svg", "write_picture"]

_BUNDLED = (
    "import sys, pygraphviz\n"
    "picture = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode('ascii'))\n"
    "sys.stdout.buffer.write(picture.draw(format=sys.argv[1], prog='dot'))\n"
)
FORMATS = ("svg", "png", "pdf")
_TROUBLE = ("Error: lost", "trouble in init_rank")
"""What Graphviz says where it left out an edge, or drew nodes outside their boxes."""


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
    made = _rendered(shown, format, timeout, options)
    return _words_above(made) if format == "svg" else made


def _rendered(shown: Any, format: str, timeout: float, options: dict[str, Any]) -> bytes:
    """What Graphviz makes of the whole, or else of all boxes collapsed."""
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
    """The picture of to_dot(shown, **options), laid out by Graphviz, as SVG text.

    Uses the extra `graphgrad[viz]`, or else a `dot` program on the PATH. Where layout takes longer
    than timeout seconds it is given up, and tried once more with all boxes collapsed; the title
    then says so.

    Parameters:
        shown: as for to_dot.
        timeout: seconds.
        **options: those of to_dot.

    Returns: the text.

    Raises: RenderError where Graphviz is not there, layout fails, or takes too long; what to_dot
    raises.

    >>> "<svg" in gg.to_svg(gg.constant(1.0))
    True
    """
    return render(shown, "svg", timeout=timeout, **options).decode("utf-8")


def to_png(shown: Any, *, timeout: float = 60.0, **options: Any) -> bytes:
    """The picture of to_dot(shown, **options), laid out as by to_svg, as a PNG file's bytes.

    Parameters:
        shown: as for to_dot.
        timeout: seconds.
        **options: those of to_dot.

    Returns: the bytes.

    Raises: the errors of to_svg.

    >>> gg.to_png(gg.constant(1.0))[1:4]
    b'PNG'
    """
    return render(shown, "png", timeout=timeout, **options)


def to_pdf(shown: Any, *, timeout: float = 60.0, **options: Any) -> bytes:
    """The picture of to_dot(shown, **options), laid out as by to_svg, as a PDF file's bytes.

    Parameters:
        shown: as for to_dot.
        timeout: seconds.
        **options: those of to_dot.

    Returns: the bytes.

    Raises: the errors of to_svg.

    >>> gg.to_pdf(gg.constant(1.0))[:4]
    b'%PDF'
    """
    return render(shown, "pdf", timeout=timeout, **options)


def write_picture(
    path: str | os.PathLike[str], shown: Any, *, timeout: float = 60.0, **options: Any
) -> None:
    """Write the picture of to_dot(shown, **options), laid out as by to_svg, to a file.

    Parameters:
        path: the file, which is replaced; its suffix says what is written: .svg, .png or .pdf.
        shown: as for to_dot.
        timeout: seconds.
        **options: those of to_dot.

    Returns: nothing.

    Raises: ValueError for an unsupported suffix; what to_svg raises; OSError where the file cannot
    be written.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gg.write_picture(os.path.join(folder, "graph.svg"), gg.constant(1.0))
    ...     os.listdir(folder)
    ['graph.svg']
    """
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise ValueError(f"the file's suffix is one of {FORMATS}, got {os.fspath(path)!r}")
    Path(path).write_bytes(render(shown, suffix, timeout=timeout, **options))


def _laid_out(view: View, command: list[str], timeout: float) -> bytes:
    """What Graphviz makes of a view: where it cannot, without the order, then with straight edges.

    Of attempts that all leave something to be desired the last one counts.
    """
    end, left = time.monotonic() + timeout, timeout
    best: bytes | None = None
    reason = ""
    for text in _attempts(view):
        try:
            made, said = _run(command, text, left)
        except _TookTooLong:
            if best is None:
                raise
            return best
        left = max(end - time.monotonic(), 1.0)
        if made and not any(trouble in said for trouble in _TROUBLE):
            return made
        best, reason = made or best, reason or _reason(said)
    if not best:
        raise RenderError(f"Graphviz failed: {reason or 'it made nothing'}")
    return best


def _attempts(view: View) -> Iterator[str]:
    """DOT texts that ask for less and less."""
    yield dot_of(view)
    loose = dot_of(view, ordered=False)
    yield loose
    yield loose.replace("graph [", "graph [splines=line, ", 1)


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
    if done.returncode:
        return None, said or f"it ended with status {done.returncode}"
    return done.stdout, said


def _reason(said: str) -> str:
    """The first line that speaks of an error, else the first line: tables of nodes follow it."""
    lines = said.splitlines()
    first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return visible(shortened(first, 300))


_RIM = b'<g class="words" paint-order="stroke" stroke-width="3" stroke-linejoin="round">\n'


def _words_above(made: bytes) -> bytes:
    """The picture with what is written on boxes and edges above all lines, each with a pale rim."""
    lines: list[bytes] = []
    words: list[bytes] = []
    inside, ground = b"", b"#ffffff"
    opacity = {b"clus": b"1", b"edge": b"0.7"}
    for line in made.splitlines(keepends=True):
        if line.startswith(b'<g id="') and not line.startswith(b'<g id="a_'):
            inside, ground = line[7:11], b"#ffffff"
        elif inside == b"clus" and line.startswith((b'<path fill="#', b'<polygon fill="#')):
            ground = line.split(b'"', 2)[1]
        if inside in opacity and line.startswith(b"<text "):
            rim = b'<text stroke="%s" stroke-opacity="%s" ' % (ground, opacity[inside])
            words.append(line.replace(b"<text ", rim, 1))
        else:
            lines.append(line)
    if not words:
        return made
    end = max(i for i, line in enumerate(lines) if line.startswith(b"</g>"))
    return b"".join([*lines[:end], _RIM, *words, b"</g>\n", *lines[end:]])


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
            "`dot`.\n"
            "Install it with `pip install 'graphgrad[viz]'`, or use to_dot and lay out the DOT "
            "text elsewhere."
        )
    return [program, f"-T{format}"]
