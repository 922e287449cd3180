"""`python -m graphgrad bench`: how fast graphgrad is on this machine, in half a minute."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import sys
from argparse import Namespace
from collections.abc import Sequence

import numpy as np

import graphgrad as gg

from ..base.errors import MissingBackendError
from ..execute.loading import backends, load_backend
from ..execute.run.threads import available_threads
from .measure import Table, built, called
from .workloads import TINY, Sizes


def run(options: Namespace) -> int:
    """Exit code: 0, or 1 if backends disagree. An error where one that is asked for is missing."""
    names = options.backend or _installed()
    for name in names:
        load_backend(name)
    sizes = TINY if options.tiny else Sizes()
    print(
        f"graphgrad {gg.__version__}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, {available_threads()} threads"
    )
    print(_described(sizes))
    show(built(sizes))
    calls, wrong = called(sizes, names)
    show(calls)
    for what, name, other in wrong:
        print(f"graphgrad bench: {what}: {name} differs from {other}", file=sys.stderr)
    return 1 if wrong else 0


def _installed() -> list[str]:
    """The backends that can be used, NumPy first."""
    names = []
    for name in sorted(backends(), key=lambda name: (name != "numpy", name)):
        try:
            load_backend(name)
        except MissingBackendError as error:
            print(f"left out: {error}")
        else:
            names.append(name)
    return names


def _described(sizes: Sizes) -> str:
    return (
        f"a chain of {sizes.nodes} nodes, one of {sizes.regions} regions; {sizes.elements} "
        f"elements; networks of width {sizes.width}, batch {sizes.batch}, and of {sizes.layers} "
        f"layers of width {max(1, sizes.width // 8)}"
    )


def show(table: Table) -> None:
    """A table: ruled in a terminal where rich is installed, else plain."""
    print()
    if sys.stdout.isatty() and importlib.util.find_spec("rich"):
        importlib.import_module("graphgrad.bench.rich_table").show(table, cells(table))
    else:
        print(plain(table))


def cells(table: Table) -> list[list[str]]:
    """The rows as text."""
    return [[row.what, *(f"{x:.3g}" for x in row.numbers)] for row in table.rows]


def plain(table: Table) -> str:
    """Aligned columns under a head."""
    rows: Sequence[Sequence[str]] = [[table.title, *table.columns], *cells(table)]
    first, *others = ([len(cell) for cell in column] for column in zip(*rows, strict=True))
    widths = [max(first), *(max(column) + 2 for column in others)]
    return "\n".join(
        row[0].ljust(widths[0])
        + "".join(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))
        for row in rows
    )
