"""What a written file does besides kernels: its own source goes into the file."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "equal_lengths",
    "given",
    "per_example",
    "same_length",
    "scan",
    "solved_length",
    "while_loop",
]


def given(name: str, value: Any, dtype: Any, shape: Any, lengths: Any) -> Any:
    """The value as an array of this dtype; an error where its dtype or shape does not fit.

    lengths: what named lengths were found to be, and where.
    """
    array = np.asarray(value)
    number = type(value) is int and np.dtype(dtype).kind == "u"
    if not number and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(f"{name} takes {np.dtype(dtype)}, got {array.dtype}")
    fits = array.ndim == len(shape)
    for known, length in zip(shape, array.shape) if fits else ():
        if isinstance(known, str):
            same_length(name, length, known, lengths.setdefault(known, (length, name))[0], lengths)
        else:
            fits = fits and known in (None, length)
    if not fits:
        raise ValueError(f"{name} takes shape {shape}, got {array.shape}")
    new = array.astype(dtype, copy=False)
    if new.dtype.kind in "iu" and not np.array_equal(new, array):
        raise TypeError(f"{name} cannot hold the values it was given")
    return new


def same_length(name: str, length: Any, said: str, value: Any, lengths: Any) -> None:
    """An error where an axis of an input is not as long as the lengths of others say."""
    if length != value and said in lengths:
        raise ValueError(
            f"length {said!r} is {value} in {lengths[said][1]}, and {length} in {name}"
        )
    if length != value:
        known = " and ".join(f"{n!r} is {lengths[n][0]} in {lengths[n][1]}" for n in lengths)
        raise ValueError(f"length {said!r} is {length} in {name}, and {value} where {known}")


def equal_lengths(said: str, a: Any, b: Any, taken: Any) -> None:
    """An error where lengths do not broadcast to the one that both count as."""
    if taken != (b if a == 1 else a) or (a != b and 1 not in (a, b)):
        raise ValueError(f"{said}: these are {a} and {b}")


def solved_length(name: str, length: Any, said: str, unknown: str, of: Any, lengths: Any) -> Any:
    """The one length for which of(it), which is linear, is as long as an axis of an input."""
    least = of(0)
    slope = of(1) - least
    value, rest = divmod(length - least, slope) if slope else (0, 1)
    if rest or value < 0:
        raise ValueError(
            f"length {said!r} is {length} in {name}: no length {unknown!r} satisfies this"
        )
    lengths[unknown] = value, name
    return value


def scan(body: Any, carries: Any, stacks: Any, constants: Any, loop: Any) -> Any:
    """body(*carries, *rows, *constants) -> (*carries, *made) for each row of the stacks.

    loop: (how many runs or None, whether from the last to the first, which carries to keep, the
    dtypes and shapes of a row that is kept or made). Returns the last carries, then what each run
    made and took, stacked.
    """
    length, backwards, kept, made, taken = loop
    counts = {len(stack) for stack in stacks} | ({length} - {None})
    if len(counts) != 1:
        raise RuntimeError(
            f"a loop needs the same number of rows in every array, got {sorted(counts)}"
        )
    count = counts.pop()
    carries = [np.array(c) for c in carries]
    places = range(count)[::-1] if backwards else range(count)
    rows = [[None] * count for _ in (*made, *taken)]
    for at in places:
        took = [carries[i] for i in kept]
        outputs = body(*carries, *[stack[at, ...] for stack in stacks], *constants)
        carries = outputs[: len(carries)]
        for row, value in zip(rows, (*outputs[len(carries) :], *took)):
            row[at] = value
    return (*carries, *[stacked(r, *kind) for r, kind in zip(rows, (*made, *taken))])


def while_loop(test: Any, body: Any, carries: Any, constants: Any, loop: Any) -> Any:
    """carries = body(*carries, *constants) as long as test(*carries, *constants).

    loop: (how many runs there may be or None, which carries to keep, their dtypes and shapes, where
    it was built). Returns the last carries, what each run took, stacked, and how many there were.
    """
    most, kept, taken, where = loop
    carries = [np.array(c) for c in carries]
    start, trips = carries, 0
    rows: Any = [[] for _ in kept]
    while test(*carries, *constants)[0]:
        if trips == most:
            raise RuntimeError(f"the loop at {where} is still running after max_trips={most} runs")
        for row, i in zip(rows, kept):
            row.append(carries[i])
        carries = body(*carries, *constants)
        trips += 1
    for row, i in zip(rows, kept):
        row.extend([row[-1] if row else start[i]] * ((most or trips) - trips))
    return (*carries, *[stacked(r, *kind) for r, kind in zip(rows, taken)], np.array(trips))


def per_example(body: Any, arrays: Any, batched: Any, rows: Any) -> Any:
    """body(*arrays) -> results for each example of the arrays that are batched, stacked.

    rows: the dtypes and shapes of the results for one example.
    """
    counts = {len(a) for a, one_each in zip(arrays, batched) if one_each}
    if len(counts) != 1:
        raise ValueError(f"the batched inputs have {sorted(counts)} examples")
    ys = []
    for i in range(counts.pop()):
        ys.append(body(*[a[i, ...] if one_each else a for a, one_each in zip(arrays, batched)]))
    return tuple([stacked([r[k] for r in ys], *kind) for k, kind in enumerate(rows)])


def stacked(rows: Any, dtype: Any, shape: Any) -> Any:
    """Rows in one array."""
    return np.stack(rows).astype(dtype) if rows else np.empty((0, *shape), dtype)
