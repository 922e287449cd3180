"""How graphs, tensors, regions, compiled functions and explanations show themselves in notebooks.

Nothing here ever raises, runs what a name says, or hands a notebook more than it can hold: what is
too large, or cannot be laid out in time, is shown as text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from ..ir.notebook import Kinds
from .scene.escape import for_html, shortened, visible
from .scene.subject import subject_of
from .summary import summary
from .write.svg import can_render, render
from .write.text import graph_text

__all__: list[str] = []

NODE_LIMIT = 20_000
PICTURE_LIMIT = 400
SIZE_LIMIT = 2_000_000
TEXT_LIMIT = 20_000
SECONDS = 10.0

_BOX = "max-width:100%;overflow:auto;border:1px solid #d0d7de;border-radius:6px;padding:8px"
_MONO = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px"
_PRE = (
    f"{_MONO};margin:4px 0;white-space:pre;overflow:auto;max-height:480px;line-height:1.3;"
    "text-align:left"
)
_IMAGE = "max-width:none;display:block"


def picture(shown: Any) -> bytes | None:
    """The SVG of what can be shown; None where it is too large, or cannot be had in time."""
    try:
        count = len(subject_of(shown).nodes)
        if not 0 < count <= NODE_LIMIT or not can_render():
            return None
        collapse = "auto" if count <= PICTURE_LIMIT else "all"
        svg = render(shown, timeout=SECONDS, collapse=collapse)
    except Exception:  # a look at the last value of a cell must never be an error
        return None
    return svg if len(svg) <= SIZE_LIMIT else None


def graph_html(shown: Any) -> str:
    """A piece of HTML: the picture, if there is one, and the listing behind it."""
    return _html(shown, picture(shown))


def _html(shown: Any, svg: bytes | None) -> str:
    title = for_html(_short(shown), 400)
    parts = [f'<div style="font-weight:600">{title}</div>']
    if svg is not None:
        data = b64encode(svg).decode("ascii")
        image = f'<img alt="{title}" style="{_IMAGE}" src="data:image/svg+xml;base64,{data}">'
        parts.append(
            f'<div tabindex="0" role="group" aria-label="picture, scrolls" '
            f'style="max-height:80vh;overflow:auto;resize:vertical">{image}</div>'
        )
    for name, make in (("listing", graph_text), ("summary", summary)):
        is_open = " open" if svg is None and name == "listing" else ""
        text = for_html(_text_of(shown, make), TEXT_LIMIT)
        parts.append(
            f'<details{is_open}><summary>{name}</summary><pre style="{_PRE}">{text}</pre></details>'
        )
    return f'<div class="graphgrad" style="{_BOX}">{"".join(parts)}</div>'


def _short(shown: Any) -> str:
    try:
        return visible(shortened(repr(shown), 400))
    except Exception:
        return object.__repr__(shown)


def _text_of(shown: Any, make: Callable[[Any], object]) -> str:
    """A text twin; a sentence instead where there is none."""
    try:
        count = len(subject_of(shown).nodes)
        if count > NODE_LIMIT:
            return f"{count:,} nodes are too many to show here"
        return str(make(shown))
    except Exception as error:
        return f"cannot be shown: {type(error).__name__}: {error}"


def graph_svg(shown: Any) -> str | None:
    """The picture as text, if there is one."""
    drawn = picture(shown)
    return None if drawn is None else drawn.decode("utf-8", "replace")


def graph_bundle(shown: Any, include: Kinds, exclude: Kinds) -> dict[str, str]:
    """What a notebook takes, by media type."""
    drawn = picture(shown)  # once for all of them
    bundle = {"text/plain": _short(shown), "text/html": _html(shown, drawn)}
    if drawn is not None:
        bundle["image/svg+xml"] = drawn.decode("utf-8", "replace")
    return _wanted(bundle, include, exclude)


def plain_text(shown: Any) -> str:
    """What is printed, in characters that can be shown."""
    try:
        rows = shortened(str(shown), TEXT_LIMIT).split("\n")
    except Exception:
        rows = [_short(shown)]
    return "\n".join(map(visible, rows))


def text_html(shown: Any) -> str:
    """The same as a piece of HTML."""
    return f'<pre style="{_PRE}">{for_html(plain_text(shown), TEXT_LIMIT)}</pre>'


def text_bundle(shown: Any, include: Kinds, exclude: Kinds) -> dict[str, str]:
    """What a notebook takes, by media type."""
    bundle = {"text/plain": plain_text(shown), "text/html": text_html(shown)}
    return _wanted(bundle, include, exclude)


def _wanted(bundle: dict[str, str], include: Kinds, exclude: Kinds) -> dict[str, str]:
    return {
        kind: text
        for kind, text in bundle.items()
        if (include is None or kind in include) and (exclude is None or kind not in exclude)
    }
