"""One HTML file that opens offline: the graph to look around in, laid out in the page itself."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...base.flags import truth
from ...ir.node import Node
from ...ir.program import Program
from ..page.extras import Numbers, by_rule, bypass_of, keyed, made_by_passes, with_bypassed
from ..page.model import model_of
from ..scene.overlay import Overlay
from ..scene.view import View, view_of
from ..scene.wording import visible

__all__ = ["to_html", "write_html"]

_SCRIPTS = (
    "model",
    "edges",
    "scene",
    "visible",
    "ordering",
    "layout",
    "labels",
    "routes",
    "picture",
    "minimap",
    "camera",
    "colours",
    "panel",
    "search",
    "pane",
    "panes",
    "stage",
    "folding",
    "choosing",
    "steps",
    "keys",
    "pointer",
    "saving",
    "page",
)
_DATA = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def to_html(
    shown: Any,
    *,
    title: str | None = None,
    diff: Any = None,
    overlays: Mapping[str, Numbers] | None = None,
    passes: Sequence[tuple[str, Program]] | None = None,
    panes: bool = False,
    failed: Any = None,
    made_by: Mapping[Node, str] | None = None,
    rules: Mapping[Node, str] | None = None,
) -> str:
    """A page that shows a graph, a program, or tensors (any nesting) with their ancestors.

    It is one file without network: pan, zoom, search, collapse boxes, and see everything about a
    node, among it which gradient nodes belong to which forward node. Names and source lines are
    shown with unprintable characters spelled out. The boundaries of the regions shown are settled
    by this.

    Parameters:
        shown: as for to_dot.
        title: default: the graph's name, if it was given one.
        diff: what to compare with, shown as to_html shows it: the page marks what was added,
            removed and changed since. Nodes are matched by identity, name and provenance.
        overlays: {name: Overlay, or {tensor, node or name of one: number}}, such as values, times,
            bytes or gradient norms: colours to choose from. What is not shown is left out.
        passes: [(name, program)], as `watch` of `compile` is called: a slider over them.
        panes: whether the page opens with two pictures side by side, which move, fold and choose
            in step: shown is {title: what to_dot shows} of two or more, such as two orders or two
            overrides, in the order in which they stand side by side; or with diff or passes, what
            was before stands beside what is after.
        failed: what failed, ringed: a node, a tensor, a name, an exception, or a list of these; of
            several pictures in the last.
        made_by: {node: name of the pass that made it}, such as the `made_by` of a PassRecord; with
            passes, what they say.
        rules: {node: the rewrite rule that made it}, such as the `rules` of a PassRecord.

    Returns: the page's text.

    Raises: TypeError for what cannot be shown or is not a number; GraphError for tensors of
    different graphs; ValueError for diff and passes together, panes of fewer than two pictures, or
    an overlay of which no node is shown.

    >>> gg.to_html(gg.constant(1.0)).startswith("<!DOCTYPE html>")
    True
    """
    panes = truth("panes", panes)
    pictures, main = _pictures(shown, diff, passes, panes)
    views = [
        (name, view_of(what, title, failed=failed) if i == main else view_of(what))
        for i, (name, what) in enumerate(pictures)
    ]
    each = [v for _, v in views]
    view = each[main]
    title = view.title or _graph_name(view)
    bypassed, why_not = with_bypassed(pictures[main][1], view, failed)
    if bypassed:
        views.append(("default gradients", bypassed))
    keyed_by = {name: keyed(name, numbers, each) for name, numbers in (overlays or {}).items()}
    model = model_of(title, views, keyed_by, compare=panes or diff is not None)
    _note_units(model, overlays or {})
    frames = model["frames"]
    model["panes"] = panes
    model["bypass"] = bypass_of(frames.pop(), bypassed, main) if bypassed else None
    model["why_no_bypass"] = why_not
    programs = pictures[1:] if passes is not None else []
    model["made"] = made_by_passes(each, frames, programs, made_by or {})
    model["rewrote"] = by_rule(each, frames, rules or {})
    return _page(title, model)


def _pictures(
    shown: Any, diff: Any, passes: Sequence[tuple[str, Program]] | None, panes: bool
) -> tuple[list[tuple[str, Any]], int]:
    """What the slider goes over, with its titles, and which of them is the one asked for."""
    if diff is not None and passes is not None:
        raise ValueError("diff and passes both use the slider: pass one of them")
    for _, program in passes or ():
        if not isinstance(program, Program):
            raise TypeError(f"passes are pairs of a name and a program, got {program!r}")
    if diff is not None:
        return [("before", diff), ("after", shown)], 1
    if passes is None and panes:
        if not isinstance(shown, Mapping):
            raise TypeError(
                f"panes=True shows {{title: what to show}}, or takes diff or passes, got {shown!r}"
            )
        pictures = [(str(name), what) for name, what in shown.items()]
        main = len(pictures) - 1
    else:
        pictures = [("as built", shown), *((str(name), p) for name, p in passes or ())]
        main = 0
    if panes and len(pictures) < 2:
        raise ValueError(f"panes=True shows two pictures or more, got {len(pictures)}")
    return pictures, main


def _note_units(model: dict[str, Any], overlays: Mapping[str, Numbers]) -> None:
    """Say what overlays count, and which are added up where a box is collapsed."""
    for entry, numbers in zip(model["overlays"], overlays.values(), strict=True):
        if isinstance(numbers, Overlay) and numbers.combine == "sum":
            entry["combine"] = "sum"
        if isinstance(numbers, Overlay) and numbers.title != entry["name"]:
            entry["unit"] = visible(numbers.title)


def write_html(path: str | os.PathLike[str], shown: Any, **options: Any) -> None:
    """Write to_html(shown, **options) to a file.

    Parameters:
        path: the file, which is replaced.
        shown: as for to_dot.
        **options: those of to_html.

    Returns: nothing.

    Raises: the errors of to_html; OSError where the file cannot be written.

    >>> import os
    >>> gg.write_html(os.devnull, gg.constant(1.0))
    """
    Path(path).write_text(to_html(shown, **options), encoding="utf-8", newline="\n")


def _graph_name(view: View) -> str:
    """The name that was given to the graph of what is shown."""
    graph = view.nodes[0].graph if view.nodes else None
    return "" if graph is None or graph.name == "graph" else graph.name


def _page(title: str, model: dict[str, Any]) -> str:
    text = json.dumps(model, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    style, viz = styles("palette", "style"), _part("viz-global.js")
    engine, script = _part("engine.js"), _script()
    fields = {
        "title": escape(visible(title) or "graphgrad"),
        "policy": policy(style, engine, script, viz),
        "style": style,
        "data": text.translate(_DATA),
        "viz": viz,
        "engine": engine,
        "script": script,
    }
    pieces = _part("page.html").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [fields[name], rest]
    return "".join(filled)


def policy(style: str, *scripts: str) -> str:
    """No network, no script or style but these."""
    allowed = [
        f"script-src {' '.join(map(_hash, scripts))} 'wasm-unsafe-eval'",
        "worker-src blob:",
        "img-src blob:",
    ]
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src {_hash(style)}",
            *(allowed if scripts else ()),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def styles(*names: str) -> str:
    """The style sheets of that name, of which `palette` has the colours."""
    return "".join([_part(f"{name}.css") for name in names])


@cache
def _part(name: str) -> str:
    return (files("graphgrad.inspect.page") / name).read_bytes().decode("utf-8")


@cache
def _script() -> str:
    parts = "\n".join([_part(f"{name}.js") for name in _SCRIPTS])
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'
