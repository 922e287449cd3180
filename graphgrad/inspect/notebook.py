"""How graphs, tensors, regions, compiled functions and explanations show themselves in notebooks.

Nothing here ever raises, runs what a name says, or hands a notebook more than it can hold: what is
too large, or cannot be laid out in time, is shown as text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Container
from typing import Any

from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor
from ..ir.program import Program
from .diff import Difference
from .escape import for_html, shortened, visible
from .subject import subject_of
from .summary import Summary, summary
from .svg import can_render, render
from .text import graph_text

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


def to_html(shown: Any) -> str:
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


Kinds = Container[str] | None


def _wanted(texts: dict[str, str], include: Kinds, exclude: Kinds) -> dict[str, str]:
    return {
        kind: text
        for kind, text in texts.items()
        if (include is None or kind in include) and (exclude is None or kind not in exclude)
    }


def show_as_graph(cls: type) -> None:
    """Give a class whose objects subject_of knows the methods that notebooks look for."""

    def html(self: Any) -> str:
        return to_html(self)

    def svg(self: Any) -> str | None:
        rendered = picture(self)
        return None if rendered is None else rendered.decode("utf-8", "replace")

    def bundle(self: Any, include: Kinds = None, exclude: Kinds = None) -> dict[str, str]:
        drawn = picture(self)  # once for all of them
        rendered = {"text/plain": _short(self), "text/html": _html(self, drawn)}
        if drawn is not None:
            rendered["image/svg+xml"] = drawn.decode("utf-8", "replace")
        return _wanted(rendered, include, exclude)

    _put(cls, _repr_html_=html, _repr_svg_=svg, _repr_mimebundle_=bundle)


def show_as_text(cls: type) -> None:
    """The same for a class whose objects are best shown as they are printed."""

    def text(self: Any) -> str:
        try:
            rows = shortened(str(self), TEXT_LIMIT).split("\n")
        except Exception:
            rows = [_short(self)]
        return "\n".join(map(visible, rows))

    def html(self: Any) -> str:
        return f'<pre style="{_PRE}">{for_html(text(self), TEXT_LIMIT)}</pre>'

    def bundle(self: Any, include: Kinds = None, exclude: Kinds = None) -> dict[str, str]:
        texts = {"text/plain": text(self), "text/html": html(self)}
        return _wanted(texts, include, exclude)

    _put(cls, _repr_html_=html, _repr_mimebundle_=bundle)


def _put(cls: Any, **methods: Callable[..., Any]) -> None:
    for name, method in methods.items():
        setattr(cls, name, method)


for _cls in (Graph, Tensor, Node, Region, Program, Difference):
    show_as_graph(_cls)
show_as_text(Summary)
