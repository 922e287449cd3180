"""`dot`, `html`, `diff`: the picture of a graph, as text, as a page, against another."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..inspect.diff import diff
from ..inspect.dot import to_dot
from ..inspect.html import write_html
from .target import add_target, load

DOT = "write the graph as DOT"
HTML = "write the graph as one offline page"
DIFF = "say what differs between two graphs; exit code 1 where something does"


def dot_arguments(parser: ArgumentParser) -> None:
    """TARGET, where to."""
    add_target(parser)
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="where to (default: standard output)"
    )


def dot(options: Namespace) -> int:
    """Write the text."""
    text = to_dot(load(options.target).graph)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    return 0


def html_arguments(parser: ArgumentParser) -> None:
    """TARGET, where to, what to compare with."""
    add_target(parser)
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", default=Path("graph.html"))
    parser.add_argument("--before", metavar="TARGET", help="an earlier graph, to show the changes")


def html(options: Namespace) -> int:
    """Write the page."""
    shown = load(options.target).graph
    earlier = load(options.before).graph if options.before else None
    write_html(options.out, shown, diff=earlier)
    print(f"page: {options.out}")
    return 0


def diff_arguments(parser: ArgumentParser) -> None:
    """Two targets."""
    add_target(parser, "before")
    add_target(parser, "after")


def run_diff(options: Namespace) -> int:
    """Print the difference."""
    found = diff(load(options.before).graph, load(options.after).graph)
    print(found)
    return 1 if found else 0
