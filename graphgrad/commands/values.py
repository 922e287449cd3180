"""`run`: the values of what a function built, for arrays given on the command line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import numpy as np

from ..base.words import visible
from ..compiled import compile
from ..debug.finite import NotFiniteError, nan_guard
from .feeding import feed_arguments, feeds_for
from .target import add_target, load


def arguments(parser: ArgumentParser) -> None:
    """TARGET, feeds and how to run."""
    add_target(parser)
    feed_arguments(parser)
    parser.add_argument("--backend", default="auto", help="the backend")
    parser.add_argument(
        "--guard",
        action="store_true",
        help="stop at the first NaN or inf, and name the step that made it",
    )


def run(options: Namespace) -> int:
    """Print each output, by name; exit code 1 where --guard finds something."""
    target = load(options.target)
    feeds = feeds_for(target, options)
    if options.guard:
        try:
            values = nan_guard(target.outputs, feeds)
        except NotFiniteError as error:
            print(error)
            return 1
    else:
        f = compile(list(feeds), target.outputs, backend=options.backend)
        values = f(*feeds.values())
    for t, value in zip(target.outputs, values, strict=True):
        shown = np.array2string(np.asarray(value), threshold=20, edgeitems=3, prefix="  ")
        print(visible(f"{t.name}: {t.type!r}") + f"\n  {shown}")
    return 0
