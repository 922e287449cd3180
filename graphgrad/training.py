"""What a training loop is made of beside the graph: batches of arrays, and a bar that moves.

for x, y in gg.training.progress(gg.training.batches((xs, ys), 32, seed=0, epochs=5)):
    session.run([loss, train], {...})
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import numpy as np

from .base.domains import FROM_ONE, FROM_ZERO
from .base.errors import ShapeError
from .base.first_tries import unknown_names
from .base.flags import truth
from .base.lazy import lazy_module
from .base.tree import flatten, tree_map
from .ir.types import Array

__all__ = ["Batches", "batches", "progress"]

T = TypeVar("T")
QUARTERS = 4
"""How many lines `progress` prints where nobody watches."""


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)


def batches(
    arrays: Any,
    size: int,
    *,
    seed: int | None = None,
    epochs: int = 1,
    drop_last: bool = False,
) -> Batches:
    """Parts of arrays along their first axis, one batch after the other.

    Parameters:
        arrays: arrays of one length, in any nesting of lists, tuples and dicts.
        size: rows of a batch, an int >= 1; the last one of an epoch has what is left.
        seed: of the order of the rows, another one in each epoch, an int >= 0; None: the order they
            have.
        epochs: how often all rows are gone through, an int >= 1.
        drop_last: whether a last batch of fewer rows is left out.

    Returns: a Batches object, to be iterated over as often as one likes: the same batches again.

    Raises: ShapeError for arrays of other lengths than the first; ValueError for a size or number
    of epochs below 1, or no array.

    >>> [b.tolist() for b in gg.training.batches(np.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    truth("drop_last", drop_last)
    return Batches(arrays, size, seed, epochs, drop_last)


class Batches:
    """What `batches` returns: its length is the number of batches.

    >>> len(gg.training.batches((np.ones((10, 3)), np.ones(10)), 4, epochs=2))
    6
    """

    def __init__(
        self, arrays: Any, size: int, seed: int | None, epochs: int, drop_last: bool
    ) -> None:
        FROM_ONE("size", size)
        FROM_ONE("epochs", epochs)
        FROM_ZERO.if_given("seed", seed)
        self._arrays = tree_map(np.asarray, arrays)
        self._rows = _rows_of(flatten(self._arrays))
        self._size = size
        self._seed = seed
        self._epochs = epochs
        self._drop_last = drop_last

    def __len__(self) -> int:
        whole, rest = divmod(self._rows, self._size)
        return self._epochs * (whole + (rest > 0 and not self._drop_last))

    def __iter__(self) -> Iterator[Any]:
        order = np.arange(self._rows)
        draws = None if self._seed is None else np.random.default_rng(self._seed)
        end = self._rows - self._rows % self._size if self._drop_last else self._rows
        for _ in range(self._epochs):
            if draws is not None:
                draws.shuffle(order)
            for start in range(0, end, self._size):
                yield self._taken(order[start : start + self._size])

    def _taken(self, rows: Array) -> Any:
        """These rows of each array."""
        return tree_map(lambda array: array[rows], self._arrays)


def _rows_of(arrays: list[Any]) -> int:
    """The one length that arrays have."""
    if not arrays:
        raise ValueError("batches() was given no array")
    shapes = [array.shape for array in arrays]
    if any(not shape or shape[0] != shapes[0][0] for shape in shapes):
        raise ShapeError(f"batches() takes arrays with one first length, got shapes {shapes}")
    rows: int = shapes[0][0]
    return rows


def progress(
    steps: Iterable[T],
    title: str = "training",
    *,
    total: int | None = None,
    file: TextIO | None = None,
) -> Iterator[T]:
    """The same steps, shown as they are taken.

    In a terminal that is a bar where rich is installed; else a line for each quarter.

    Parameters:
        steps: anything to iterate over.
        title: what stands before the bar.
        total: how many steps there are, an int >= 0; None: len(steps), if it has one.
        file: where to show it; None: standard error.

    Returns: an iterator over steps.

    >>> import sys
    >>> for step in gg.training.progress(range(8), "fitting", file=sys.stdout):
    ...     pass
    fitting: 2 of 8
    fitting: 4 of 8
    fitting: 6 of 8
    fitting: 8 of 8
    """
    FROM_ZERO.if_given("total", total)
    shown = sys.stderr if file is None else file
    if total is None and isinstance(steps, Sized):
        total = len(steps)
    rich = lazy_module("rich.progress") if shown.isatty() else None
    if rich is None:
        return _lines(steps, title, total, shown)
    console = lazy_module("rich.console").Console(file=shown)
    bar: Iterator[T] = iter(rich.track(steps, title, total=total, console=console))
    return bar


def _lines(steps: Iterable[T], title: str, total: int | None, file: TextIO) -> Iterator[T]:
    """A line when another quarter is done; without a total, one at the end."""
    done = 0
    for done, step in enumerate(steps, 1):
        yield step
        if total and QUARTERS * done // total > QUARTERS * (done - 1) // total:
            print(f"{title}: {done} of {total}", file=file, flush=True)
    if not total:
        print(f"{title}: {done} steps", file=file, flush=True)
