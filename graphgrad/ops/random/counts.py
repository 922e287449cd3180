"""How a number of choices falls to several things."""

from __future__ import annotations

from math import inf

from ...base.errors import ShapeError
from ...ir.types import as_shape
from ..arrays.borders import pad
from ..base import Any, Tensor, TensorLike, apply, as_dtype, as_tensor, cast
from ..elementwise.logic import where
from ..reduce.reductions import all as all_of
from ..reduce.reductions import sum
from ..shape.folding import merged
from ..shape.joining import stack
from ..shape.reshaping import expand_dims
from .discrete import whole_dtype, whole_number
from .draws import lengths_of
from .gammas import filled
from .keys import fold_in, key_of
from .philox import stream_of
from .rejection import RandomBinomial

__all__ = ["multinomial"]


def multinomial(
    n: TensorLike,
    p: TensorLike,
    shape: Any = (),
    *,
    seed: TensorLike | None = None,
    dtype: Any = "int64",
) -> Tensor:
    """How often each of K things happens in n independent choices of one of them.

    Parameters:
        n: integers from 0 up to 2**53, of the shape of p without its last axis, or that
            broadcast to it.
        p: (..., K), at least 0, with a finite sum above 0: how likely each is, in proportion.
        shape: ints and lengths, how many: axes before those of p.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: an integer one.

    Returns: a tensor of shape + p.shape and this dtype, of sum n over the last axis. Where n or p
        are none such, all of them are -1.

    Raises: ShapeError for a length that is None, or p without a known last one; DTypeError for
    an unsupported dtype, or a seed that is not an integer; ValueError for a number n that is not
    such.

    Gradient: none, the result is integer.

    Source: a tree of binomial numbers: how many of n fall to the left half of the K, and so on.

    >>> y = gg.evaluate(gg.random.multinomial(10, [0.2, 0.3, 0.5], (1000,), seed=1))
    >>> y.shape, bool((y.sum(-1) == 10).all()), bool(abs(y[:, 2].mean() - 5.0) < 0.2)
    ((1000, 3), True, True)
    """
    n = whole_number("n", n)
    kind, key = whole_dtype(dtype), key_of(seed, n, p)
    p = cast(as_tensor(p), "float64")
    if not p.ndim or not isinstance(p.shape[-1], int) or not p.shape[-1]:
        raise ShapeError(f"multinomial takes p with a known last axis, got {p.type!r}")
    count, before = p.shape[-1], lengths_of(as_shape(shape))
    n = expand_dims(cast(as_tensor(n), "float64"), -1)
    whole: Any = p[..., :1] if not before else (*before, *lengths_of(p)[:-1], 1)
    (tally,) = filled(whole, n)
    total = sum(p, -1, keepdims=True)
    likely = all_of(p >= 0.0, -1, keepdims=True) & (total > 0.0) & (total < inf)
    usable = likely & (n >= 0.0) & (n < 2.0**53)
    for level, shares in enumerate(_halvings(p)):
        (left,) = filled(tally, shares)
        stream = fold_in(key, stream_of(f"multinomial {level}"))
        taken = cast(apply(RandomBinomial(None, as_dtype("int64")), stream, tally, left), "float64")
        tally = merged(stack([taken, tally - taken], -1), tally.ndim - 1)
    return cast(where(usable, tally[..., :count], -1.0), kind)


def _halvings(p: Tensor) -> list[Tensor]:
    """Of 1, 2, 4, ... parts of the last axis: what share of each is in its left half."""
    count = p.shape[-1]
    assert isinstance(count, int)
    widths = [(0, 0)] * (p.ndim - 1) + [(0, (1 << (count - 1).bit_length()) - count)]
    p, shares = pad(p, widths), []
    while p.shape[-1] != 1:
        left, right = p[..., 0::2], p[..., 1::2]
        p = left + right
        some = p > 0.0
        shares.append(where(some, left / where(some, p, 1.0), 0.0))
    return shares[::-1]
