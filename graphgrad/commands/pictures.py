"""`dot`: the picture of a graph as text, for Graphviz."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..inspect.dot import to_dot
from .target import add_target, load

DOT = "write the graph as DOT"


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
