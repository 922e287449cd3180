"""The matrix: every override through every transform, what comes out, and what is expected to."""

from __future__ import annotations

import importlib.util
import re
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import graphgrad as gg

from .columns import COLUMNS, Column
from .overrides import OVERRIDES, Override

FORWARD = (
    "jvp",
    "jvp of a copy",
    "jvp of an import",
    "jvp of a pickle",
    "jvp of a file",
    "jvp of gradients",
    "jvp, one input of two",
    "vmap(jvp)",
    "jvp(vmap)",
)
NOT_LINEAR = r"needs the transpose of its gradient rule '.+has to be linear in the gradients"
"""Forward mode of a rule that is not linear in dy and has no forward mode of its own."""

REFUSED: dict[tuple[str, str], str] = {
    (row.name, title): NOT_LINEAR for row in OVERRIDES for title in FORWARD if not row.linear
}
"""(override, transform) -> what the error says, where an error is the right answer."""

del REFUSED["Values", "jvp of gradients"]  # constants: that gradient does not depend on dy
REFUSED |= {
    ("BlackBox", column.title): "selects nothing that is marked"
    for column in COLUMNS
    if column.title.endswith(", unmarked")
}
"""An op's own gradient is not a mark that could be taken off."""

REFUSED |= {
    ("CapturedMapping", column.title): "which is not among its inputs"
    for column in COLUMNS
    if column.title.endswith((", replaced", ", home edited", ", overrides="))
}
"""The other rule has no gradient for what is captured; at home it is asked at last."""

REFUSED |= {
    ("BlackBox", column.title): "a file carries no code. Give it a name with @gg.register_function"
    for column in COLUMNS
    if re.search(r"\bfile\b", column.title)
}
"""A Python function of no name."""

REFUSED["BlackBox", "vmap of cond: each its own"] = "PyFunction, which may have effects"
"""Where examples choose differently both branches are run, and that might be noticed."""


@dataclass
class Outcome:
    """What came of a cell.

    status  H honoured, E an error with a reason, S silently something else, X any other error,
            - not run, for want of a package
    """

    status: str
    said: str = ""


def words(error: BaseException) -> str:
    """What a user reads: the message and its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def is_reason(error: BaseException) -> bool:
    """Whether an error is one of graphgrad's that names a line of the user's program."""
    kinds = (gg.GraphGradError, TypeError)
    return isinstance(error, kinds) and bool(re.search(r"\w+\.py:\d+", words(error)))


def outcome(row: Override, column: Column) -> Outcome:
    """Run one cell."""
    if column.needs and importlib.util.find_spec(column.needs) is None:
        return Outcome("-", f"{column.needs} is not installed")
    try:
        found = column.run(row)
    except Exception as error:
        if is_reason(error):
            return Outcome("E", words(error))
        frame = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{Path(frame.filename).name}:{frame.lineno}"
        return Outcome("X", f"{type(error).__name__} at {at}: {words(error)}")
    assert found
    for place, (got, expected) in enumerate(found):
        shown = differs(got, expected)
        if shown:
            return Outcome("S", f"result {place}: {shown}")
    return Outcome("H")


def differs(got: Any, expected: Any) -> str:
    """What is wrong with a result; '' if nothing is."""
    a, b = np.asarray(got), np.asarray(expected, "float64")
    if a.dtype != b.dtype:
        return f"{a.dtype} instead of {b.dtype}"
    if a.shape != b.shape:
        return f"shape {a.shape} instead of {b.shape}"
    if not np.allclose(a, b, rtol=1e-9, atol=1e-11):
        return f"{a.tolist()} instead of {b.tolist()}"
    return ""


def declared(row: Override, column: Column) -> str:
    """What is expected of a cell."""
    return "E" if (row.name, column.title) in REFUSED else "H"


def complaint(row: Override, column: Column, seen: Outcome) -> str:
    """What is wrong with a cell; '' if it is as declared."""
    expected = declared(row, column)
    if seen.status == "-":
        return ""
    if seen.status != expected:
        return f"{seen.status} instead of {expected}: {seen.said}"
    reason = REFUSED.get((row.name, column.title), "")
    if not re.search(reason, seen.said, re.DOTALL):
        return f"the error does not say {reason!r}: {seen.said}"
    return ""


def letters(status: Callable[[Override, Column], str]) -> list[str]:
    """The status of every cell, one string a row."""
    return ["".join(status(row, column) for column in COLUMNS) for row in OVERRIDES]


def counts(rows: list[str]) -> str:
    """How many cells there are, and how many of each kind."""
    total = Counter("".join(rows))
    cells = total.total()
    shares = f"{total['H']} honoured ({total['H'] / cells:.1%}), {total['E']} loud errors"
    return (
        f"{len(OVERRIDES)} overrides x {len(COLUMNS)} transforms = {cells} cells: {shares}, "
        f"{total['S']} silent, {total['X']} other errors"
    )


def table(rows: list[str]) -> str:
    """The cells, with a number for each transform."""
    width = max(len(row.title) for row in OVERRIDES)
    numbers = [f"{i:3}" for i in range(1, len(COLUMNS) + 1)]
    lines = [" " * width + " " + "".join(n[at] for n in numbers) for at in range(3)]
    lines += [f"{row.title:{width}} {cells}" for row, cells in zip(OVERRIDES, rows)]
    return "\n".join(lines)


def legend() -> str:
    """The transforms by number."""
    return "\n".join(f"{i:3} {column.title}" for i, column in enumerate(COLUMNS, 1))
