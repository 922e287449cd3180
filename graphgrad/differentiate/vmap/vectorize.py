"""A function of numbers, or of arrays of some axes, as one of arrays with more axes in front."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import partial, wraps
from typing import Any, NamedTuple

from ...base.errors import ShapeError
from ...base.tree import flatten, tree_map
from ...ir.node import Tensor
from ...ops.base import as_tensor
from ...ops.shape.reshaping import expand_dims, squeeze
from .vmap import vmap

__all__ = ["vectorize"]

_AXES = re.compile(r"\(((?:\w+(?:,\w+)*)?)\)")

Axes = tuple[str, ...]


class _Signature(NamedTuple):
    """The names of the axes that the function itself has of each argument and result."""

    arguments: tuple[Axes, ...]
    results: tuple[Axes, ...]


def vectorize(
    fn: Callable[..., Any], *, excluded: Collection[int] = (), signature: str | None = None
) -> Callable[..., Any]:
    """fn of numbers, or of arrays of the axes in a signature, as a function that broadcasts.

    What arguments have of further axes, in front, broadcasts as in NumPy, and fn is that of one
    example, as under `vmap`: with its rules, and one batch for each axis.

    Parameters:
        fn: takes tensors of one example and returns tensors.
        excluded: places of arguments that are passed on unchanged, like keywords.
        signature: the axes that one example has, as "(m,n),(n)->(m)"; None: none.

    Returns: a function of the same arguments with any axes in front, whose results have them, too.

    Raises: ValueError for a signature of another form; ShapeError, when it is called, for arguments
        that do not fit the signature or do not broadcast, and for results that do not fit.

    Source: numpy.vectorize, jax.numpy.vectorize.

    >>> dot = gg.vectorize(lambda x, y: gg.sum(x * y), signature="(n),(n)->()")
    >>> gg.evaluate(dot([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0]))
    array([21., 43.])
    """
    form = None if signature is None else _parsed(signature)

    @wraps(fn)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        places = [i for i in range(len(args)) if i not in excluded]

        def of_one(*tensors: Tensor) -> Any:
            given = dict(zip(places, tensors, strict=True))
            outputs = fn(*[given.get(i, a) for i, a in enumerate(args)], **kwargs)
            if form is not None:
                _check(
                    "result", form.results, [as_tensor(t) for t in flatten(outputs)], exactly=True
                )
            return outputs

        tensors = [as_tensor(args[i]) for i in places]
        if form is not None:
            _check("argument", form.arguments, tensors)
        own = [0] * len(places) if form is None else list(map(len, form.arguments))
        return _over_loops(of_one, tensors, own)

    return vectorized


def _over_loops(fn: Callable[..., Any], tensors: list[Tensor], own: list[int]) -> Any:
    """fn, batched along the axes that lie in front of the tensors' own, the last of them first."""
    rank = max([t.ndim - k for t, k in zip(tensors, own, strict=True)], default=0)
    single = []  # axes along which no tensor has more than one example
    for axis in reversed(range(rank)):
        longer = [t.ndim > k for t, k in zip(tensors, own, strict=True)]
        ends = zip(tensors, own, longer, strict=True)
        batched = [more and t.shape[-k - 1] != 1 for t, k, more in ends]
        rows = zip(tensors, own, longer, batched, strict=True)
        tensors = [squeeze(t, -k - 1) if more and not b else t for t, k, more, b in rows]
        own = [k + b for k, b in zip(own, batched, strict=True)]
        if any(batched):
            fn = vmap(fn, [0 if b else None for b in batched])
        else:
            single.append(axis)
    outputs = fn(*tensors)
    for axis in reversed(single):
        outputs = tree_map(partial(expand_dims, axis=axis), outputs)
    return outputs


def _parsed(signature: str) -> _Signature:
    """Its parts; ValueError for another form."""
    text = re.sub(r"\s", "", signature)
    sides = text.split("->")
    if len(sides) != 2 or not all(
        re.fullmatch(rf"{_AXES.pattern}(,{_AXES.pattern})*", s) for s in sides
    ):
        raise ValueError(f"a signature looks like '(m,n),(n)->(m)', got {signature!r}")
    arguments, results = (
        tuple([tuple(filter(None, axes.split(","))) for axes in _AXES.findall(s)]) for s in sides
    )
    return _Signature(arguments, results)


def _check(
    what: str, wanted: Sequence[Axes], tensors: Sequence[Tensor], exactly: bool = False
) -> None:
    """ShapeError where tensors do not have the axes of a signature, or a name has two lengths."""
    if len(wanted) != len(tensors):
        raise ShapeError(f"the signature has {len(wanted)} {what}s, but there are {len(tensors)}")
    lengths: dict[str, Any] = {}
    for i, (axes, t) in enumerate(zip(wanted, tensors, strict=True)):
        if t.ndim != len(axes) if exactly else t.ndim < len(axes):
            said = ",".join(axes)
            raise ShapeError(f"{what} {i} has axes ({said}) in the signature, and is {t.type!r}")
        for name, length in zip(axes, t.shape[t.ndim - len(axes) :], strict=True):
            if isinstance(length, int) and lengths.setdefault(name, length) != length:
                raise ShapeError(
                    f"axis {name} of the signature is {lengths[name]} long, but has length "
                    f"{length} in {what} {i}: {t.type!r}"
                )
