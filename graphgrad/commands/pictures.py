"""`dot`, `html`, `diff`: the picture of a graph, as text, as a page, against another."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from ..compiled import compile
from ..inspect.diff import graph_diff
from ..inspect.passes import PassRecord
from ..inspect.write.dot import to_dot
from ..inspect.write.html import write_html
from ..inspect.write.svg import FORMATS, write_picture
from ..ir.program import needed
from .errors import TargetError
from .feeding import feed_arguments
from .overlays import OVERLAY, overlay_of
from .target import TargetGraph, add_target, load


def _whole_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--whole",
        action="store_true",
        help="the whole graph, not only what leads to the tensors that the function returned",
    )


def _picture_arguments(parser: ArgumentParser, overlays: str) -> None:
    _whole_argument(parser)
    parser.add_argument("--overlay", action=overlays, default=None, metavar="KIND", help=OVERLAY)
    feed_arguments(parser)


def dot_arguments(parser: ArgumentParser) -> None:
    """TARGET, where to, what to show."""
    add_target(parser)
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="FILE",
        help="where to (default: standard output); .svg, .png and .pdf are drawn by Graphviz, any "
        "other ending gets the text",
    )
    parser.add_argument(
        "--collapse",
        action="append",
        metavar="WHAT",
        help="boxes that are drawn as one node: auto, none, all, or the name of a scope, rule or "
        "region, which may be a pattern; may be given again",
    )
    parser.add_argument(
        "--bypassed",
        action="store_true",
        help="show the default gradients that rules replaced, struck through",
    )
    parser.add_argument(
        "--passes",
        action="store_true",
        help="show the optimized program, and the pass that made each node",
    )
    _picture_arguments(parser, "store")


def dot(options: Namespace) -> int:
    """Write the text, or draw it."""
    target = load(options.target)
    shown = _shown(target, options)
    chosen: dict[str, Any] = {"bypassed": options.bypassed, "collapse": _collapse(options.collapse)}
    if options.overlay is not None:
        chosen["overlay"] = overlay_of(options.overlay, target, options)
    if options.passes:
        record = PassRecord()
        shown = compile(_inputs(target), target.outputs, backend="numpy", watch=record)
        chosen["made_by"] = record.made_by
    if options.out is not None and options.out.suffix.lower().removeprefix(".") in FORMATS:
        write_picture(options.out, shown, **chosen)
        return 0
    text = to_dot(shown, **chosen)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    return 0


def html_arguments(parser: ArgumentParser) -> None:
    """TARGET, where to, what to show, what to compare with."""
    add_target(parser)
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", default=Path("graph.html"))
    slider = parser.add_mutually_exclusive_group()
    slider.add_argument("--before", metavar="TARGET", help="an earlier graph, to show the changes")
    slider.add_argument(
        "--passes", action="store_true", help="the effect of each optimization pass, with a slider"
    )
    parser.add_argument(
        "--panes",
        action="store_true",
        help="with --before or --passes: before and after, side by side",
    )
    _picture_arguments(parser, "append")


def html(options: Namespace) -> int:
    """Write the page."""
    if options.panes and not (options.before or options.passes):
        raise TargetError("--panes shows two pictures: give it --before TARGET or --passes")
    target = load(options.target)
    chosen: dict[str, Any] = {}
    if options.before:
        chosen["diff"] = _shown(load(options.before), options)
    if options.passes:
        record = PassRecord()
        compile(_inputs(target), target.outputs, backend="numpy", watch=record)
        chosen |= {"passes": record.programs, "rules": record.rules}
    kinds = options.overlay or []
    chosen["panes"] = options.panes
    chosen["overlays"] = {kind: overlay_of(kind, target, options) for kind in kinds}
    write_html(options.out, _shown(target, options), **chosen)
    print(f"page: {options.out}")
    return 0


def _shown(target: TargetGraph, options: Namespace) -> Any:
    """The tensors that the function returned with what they are computed from, or the graph."""
    return target.graph if options.whole or target.is_graph else target.outputs


def _collapse(asked: list[str] | None) -> Any:
    if asked is None:
        return "auto"
    return asked[0] if len(asked) == 1 and asked[0] in ("auto", "none", "all") else asked


def _inputs(target: TargetGraph) -> list[Any]:
    """The placeholders that the outputs need."""
    return [n.outputs[0] for n in needed((), target.outputs) if n.type == "Placeholder"]


def diff_arguments(parser: ArgumentParser) -> None:
    """Two targets, and what of them."""
    add_target(parser, "before")
    add_target(parser, "after")
    _whole_argument(parser)


def run_diff(options: Namespace) -> int:
    """Print the difference."""
    diff = graph_diff(_shown(load(options.before), options), _shown(load(options.after), options))
    print(diff)
    return 1 if diff else 0
