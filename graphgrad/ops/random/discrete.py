"""Random bools, integers and permutations."""

from __future__ import annotations

from ...base.bounds import at_least
from ...base.domains import NON_NEGATIVE, POSITIVE_PROBABILITY, PROBABILITY
from ...base.errors import ShapeError
from ...base.flags import truth
from ...base.length import Length
from ...ir.types import as_shape, count_of
from ..base import (
    Any,
    DType,
    DTypeError,
    Tensor,
    TensorLike,
    apply,
    as_dtype,
    as_tensor,
    cast,
    is_floating,
    kind_of,
    np,
    promoted,
    whole,
)
from ..demands import Demand, demand, number
from ..documented import documented
from ..elementwise.arithmetic import negative
from ..elementwise.bounds import minimum
from ..elementwise.exponential import log, log1p
from ..elementwise.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    where,
)
from ..elementwise.rounding import floor
from ..reduce.cumulative import cumulative_sum
from ..reduce.reductions import argmax, count_nonzero
from ..reduce.sorting import topk
from ..shape.indexing import take
from ..shape.reshaping import expand_dims, normal_axis, reshape
from .continuous import above_zero, drawn, signs
from .draws import RandomBits, RandomIntegers, RandomPermutation, RandomUniform, lengths_of
from .gammas import filled
from .keys import key_of
from .rejection import RandomBinomial, RandomPoisson

__all__ = [
    "bernoulli",
    "binomial",
    "bits",
    "categorical",
    "choice",
    "geometric",
    "integers",
    "permutation",
    "poisson",
    "rademacher",
    "shuffle",
]


def whole_dtype(dtype: Any) -> DType:
    """The dtype, which has to be an integer one."""
    int_dtype: DType = as_dtype(dtype)
    if kind_of(int_dtype) not in "iu":
        raise DTypeError(f"random numbers of this kind are integers, not {int_dtype}")
    return int_dtype


@documented(RandomBits)
def bits(shape: Any, *, seed: TensorLike | None = None, dtype: Any = "uint64") -> Tensor:
    """Random bits: integers of 64 or 32 bits, all equally likely.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        seed: an int or a scalar integer tensor; the same one gives the same bits. None: new ones
            in every run.
        dtype: "uint64" or "uint32".

    Returns: a tensor of this shape and dtype.

    Raises: DTypeError for an unsupported dtype, or a seed that is not an integer; ShapeError for
    lengths that depend on values.

    Source: words of Philox, or halves of them, the low one first [Salmon et al. 2011, "Parallel
    random numbers: as easy as 1, 2, 3"].

    >>> gg.evaluate(gg.random.bits((2,), seed=1, dtype="uint32")).dtype.name
    'uint32'
    """
    int_dtype = as_dtype(dtype)
    if int_dtype.name not in ("uint32", "uint64"):
        raise DTypeError(f"random bits are uint32 or uint64, not {int_dtype}")
    return drawn(RandomBits, shape, int_dtype, seed, "")


def bernoulli(shape: Any, p: TensorLike = 0.5, *, seed: TensorLike | None = None) -> Tensor:
    """Bools, each True with probability p.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        p: from 0 to 1, broadcasts to the shape. NaN and less give False, more True.
        seed: an int or a scalar integer tensor; the same one gives the same bools. None: new ones
            in every run.

    Returns: a bool tensor of this shape.

    Raises: ShapeError for a length that is None, or a p that does not broadcast; DTypeError
    for a seed that is not an integer; ValueError for a number that is not a probability.

    Gradient: none, the result is bool.

    >>> gg.evaluate(gg.random.bernoulli((3,), [0.0, 1.0, 1.0], seed=1))
    array([False,  True,  True])
    """
    known = isinstance(p, float | int)
    number(PROBABILITY, "p", p)
    dtype = "float32" if known and p >= 2**-12 else "float64"  # type: ignore[operator]
    u = drawn(RandomUniform, shape, dtype, seed, "bernoulli", near=(p,))
    return less(u, as_tensor(p, u.dtype))


@documented(RandomIntegers)
def integers(
    low: int, high: int, shape: Any, *, seed: TensorLike | None = None, dtype: Any = "int64"
) -> Tensor:
    """Integers in [low, high), all equally likely.

    Parameters:
        low, high: ints that the dtype can hold, low < high; high is not drawn.
        shape: ints and lengths, or a tensor of the shape wanted.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: an integer one.

    Returns: a tensor of this shape and dtype.

    Raises: DTypeError where there are no such integers, or for a seed that is not an integer;
    ShapeError for lengths that depend on values.

    Source: [Lemire 2019, "Fast random integer generation in an interval"].

    >>> sorted(set(gg.evaluate(gg.random.integers(0, 3, (100,), seed=1)).tolist()))
    [0, 1, 2]
    """
    dtype, low, high = as_dtype(dtype), whole("low", low), whole("high", high)
    bounds = np.iinfo(dtype) if kind_of(dtype) in "iu" else None
    if bounds is None or not bounds.min <= low < high <= bounds.max + 1:
        raise DTypeError(f"no integers in [{low}, {high}) as {dtype}")
    return drawn(RandomIntegers, shape, dtype, seed, low, high)


@documented(RandomPermutation)
def permutation(n: int | Length | Tensor, *, seed: TensorLike | None = None) -> Tensor:
    """The integers 0 ... n-1, each once, in an order drawn at random.

    Parameters:
        n: an int or a length, or a tensor: the length of its first axis. `shuffle` permutes the
            tensor itself.
        seed: an int or a scalar integer tensor; the same one gives the same order. None: a new one
            in every run.

    Returns: a tensor (n,), int64.

    Raises: ShapeError if n is negative, or a tensor without axes; DTypeError for a seed that is
    not an integer.

    Source: the stable order of n words of Philox.

    >>> sorted(gg.evaluate(gg.random.permutation(4, seed=1)).tolist())
    [0, 1, 2, 3]
    """
    if isinstance(n, Tensor) and n.shape and n.shape[0] is not None:
        n = n.shape[0]
    return drawn(RandomPermutation, n if isinstance(n, Tensor) else (n,), "int64", seed)


@documented(RandomPoisson)
def poisson(
    shape: Any,
    mean: TensorLike,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "int64",
) -> Tensor:
    """Random integers with probability mean**y * exp(-mean) / y!.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        mean: at least 0, broadcasts to the shape. One that is NaN, below 0 or above 2**62 gives -1.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: an integer one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is out of range.

    Source: inversion, from 10 on transformed rejection [Hörmann 1993, "The transformed
    rejection method for generating Poisson random variables"].

    >>> y = gg.evaluate(gg.random.poisson((10_000,), 3.0, seed=1))
    >>> bool(abs(np.mean(y) - 3.0) < 0.1)
    True
    """
    number(NON_NEGATIVE, "mean", mean)
    key, kind = key_of(seed, shape, mean), whole_dtype(dtype)
    return apply(RandomPoisson(None, kind), key, *filled(shape, mean))


@documented(RandomBinomial)
def binomial(
    shape: Any,
    n: TensorLike,
    p: TensorLike,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "int64",
) -> Tensor:
    """How many of n independent bools are True, each with probability p.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        n, p: integers from 0 up to 2**53, and probabilities; they broadcast to the shape.
            Where they are none, the result is -1.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: an integer one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is out of range.

    Source: inversion, from n * p = 10 on transformed rejection [Hörmann 1993, "The generation of
    binomial random variates"].

    >>> y = gg.evaluate(gg.random.binomial((10_000,), 10, 0.3, seed=1))
    >>> bool(abs(np.mean(y) - 3.0) < 0.1)
    True
    """
    n = whole_number("n", n)
    number(PROBABILITY, "p", p)
    key, kind = key_of(seed, shape, n, p), whole_dtype(dtype)
    return apply(RandomBinomial(None, kind), key, *filled(shape, n, p))


def whole_number(what: str, n: TensorLike) -> TensorLike:
    """How many: a number that is at least 0 and whole; where an element of many is not, -1."""
    number(NON_NEGATIVE, what, n)
    if not NON_NEGATIVE.takes(n):
        n = as_tensor(n)
        return where(equal(floor(n), n), n, -1) if is_floating(n.dtype) else n
    if n % 1:  # type: ignore[operator]
        raise ValueError(f"{what} is an integer, at least 0, got {n!r}")
    return n


def geometric(
    shape: Any,
    p: TensorLike,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "int64",
) -> Tensor:
    """How many independent bools, each True with probability p, up to the first that is True.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        p: above 0 and at most 1, broadcasts with the shape. One that is NaN, or outside, gives -1.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: an integer one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is out of range.

    Gradient: none, the result is integer.

    Source: the inverse of the distribution function at a uniform number; at most 2**62.

    >>> y = gg.evaluate(gg.random.geometric((10_000,), 0.25, seed=1))
    >>> bool(abs(np.mean(y) - 4.0) < 0.2)
    True
    """
    number(POSITIVE_PROBABILITY, "p", p)
    u = above_zero(drawn(RandomUniform, shape, "float64", seed, "geometric", near=(p,)))
    p = as_tensor(p, "float64")
    tries = floor(log(u) / log1p(negative(p))) + 1.0
    usable = logical_and(greater(p, 0.0), less_equal(p, 1.0))
    return cast(where(usable, minimum(tries, 2.0**62), -1.0), whole_dtype(dtype))


def rademacher(shape: Any, *, seed: TensorLike | None = None, dtype: Any = "int64") -> Tensor:
    """Signs: -1 and 1, equally likely.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        seed: an int or a scalar integer tensor; the same one gives the same signs. None: new ones
            in every run.
        dtype: a signed integer or a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer.

    Gradient: none, nothing that has one goes in.

    >>> sorted(set(gg.evaluate(gg.random.rademacher((100,), seed=1)).tolist()))
    [-1, 1]
    """
    kind = as_dtype(dtype)
    if kind_of(kind) not in "if":
        raise DTypeError(f"signs are signed integers or floating, not {kind}")
    return signs("rademacher", shape, seed, kind)


def categorical(logits: TensorLike, axis: int = -1, *, seed: TensorLike | None = None) -> Tensor:
    """An index along an axis, drawn with probabilities softmax(logits).

    Parameters:
        logits: floating, not normalised; -inf: never. For several draws of the same ones,
            broadcast them.
        axis: the axis of the choices.
        seed: an int or a scalar integer tensor; the same one gives the same indices. None: new ones
            in every run.

    Returns: a tensor of the shape of logits without that axis, int64.

    Raises: ShapeError where there is no such axis; DTypeError for complex logits, or a seed that
    is not an integer.

    Gradient: none, the result is integer.

    Source: the largest of logits + Gumbel numbers [Maddison et al. 2014, "A* sampling"].

    >>> logits = gg.broadcast_to([0.0, -np.inf, 0.0], (1000, 3))
    >>> sorted(set(gg.evaluate(gg.random.categorical(logits, seed=1)).tolist()))
    [0, 2]
    """
    (x,) = promoted(logits, floating=True)
    if not is_floating(x.dtype):
        raise DTypeError(f"categorical takes real logits, got {x.type!r}")
    return argmax(x + _gumbel("categorical", x, seed), axis=normal_axis(axis, x.ndim))


def _gumbel(name: str, x: Tensor, seed: Any) -> Tensor:
    u = above_zero(drawn(RandomUniform, x, x.dtype, seed, name))
    return negative(log(negative(log(u))))


def shuffle(x: TensorLike, axis: int = 0, *, seed: TensorLike | None = None) -> Tensor:
    """x with its slices along an axis in an order drawn at random.

    Parameters:
        x: any shape and dtype, with that axis.
        axis: the axis that is put into another order.
        seed: an int or a scalar integer tensor; the same one gives the same order. None: a new one
            in every run.

    Returns: a tensor of x's shape and dtype.

    Raises: ShapeError where there is no such axis, or its length depends on values and it is not
    the first; DTypeError for a seed that is not an integer.

    Gradient: dy, put back into the order of x.

    >>> sorted(gg.evaluate(gg.random.shuffle([3.0, 1.0, 2.0], seed=1)).tolist())
    [1.0, 2.0, 3.0]
    """
    x = as_tensor(x)
    axis = normal_axis(axis, x.ndim)
    n = x.shape[axis]
    if n is None and axis:
        raise ShapeError(
            f"shuffle along axis {axis} of {x.type!r}: that length depends on values; move the "
            "axis to the front"
        )
    return take(x, permutation(x if n is None else n, seed=seed), axis=axis)


def choice(
    a: int | Length | TensorLike,
    shape: Any = (),
    replace: bool = True,
    p: TensorLike | None = None,
    axis: int = 0,
    *,
    seed: TensorLike | None = None,
) -> Tensor:
    """Slices of a along an axis, drawn at random; of an int, integers below it.

    Parameters:
        a: an int or a length n for 0 ... n-1, or a tensor with that axis.
        shape: ints and lengths, how many are drawn.
        replace: whether one may be drawn again.
        p: (n,), at least 0, with a finite sum > 0: how likely each is, up to a factor; None: all
            equally. With p and replace, an array of n for each that is drawn is made on the way.
        axis: the axis of a that is drawn from.
        seed: an int or a scalar integer tensor; the same one draws the same. None: new ones in
            every run.

    Returns: a tensor of a's shape with `shape` in the place of the axis; for an int, of this shape,
    int64.

    Raises: ValueError for more than there are (of those that are likely at all), without replace,
    or none to draw from, or another p, which a run raises for a tensor, and where lengths are open;
    ShapeError for a length that is None, or a p of another shape; DTypeError for a seed
    that is not an integer.

    Gradient: da, added up where each slice comes from; p has none.

    Source: without replace and with p, the largest of log(p) + Gumbel numbers [Kool et al. 2019,
    "Stochastic beams and where to find them"].

    >>> gg.evaluate(gg.random.choice([1.0, 2.0, 3.0], (2,), p=[0.0, 1.0, 0.0], seed=1))
    array([2., 2.])
    """
    truth("replace", replace)
    values = None if isinstance(a, int | np.integer | Length) else as_tensor(a)
    lengths, n = lengths_of(as_shape(shape)), a
    if values is not None:
        axis = normal_axis(axis, values.ndim)
        n = lengths_of((values.shape[axis],))[0]
    count = count_of(lengths)
    what = f"choice of {count} among {n}{'' if replace else ' without replacement'}"
    if isinstance(n, Length) or isinstance(count, Length):
        picked = _enough(what, _picked(n, count, replace, p, seed), n, count)
    elif (count and n < 1) or (not replace and count > n):  # type: ignore[operator]
        raise ValueError(what)
    else:
        picked = _picked(n, count, replace, p, seed)
    picked = reshape(picked, lengths)
    return picked if values is None else take(values, picked, axis=axis)


def _enough(what: str, picked: Tensor, n: Any, count: Any) -> Tensor:
    """Indices, where a run has checked that there is one to draw, if any is drawn."""
    if at_least(n, 1) or count == 0:
        return picked
    some = logical_or(greater_equal(as_tensor(n), 1), equal(as_tensor(count), 0))
    return apply(Demand(f"{what}: there is one to draw from"), picked, some)


def _picked(n: Any, count: Any, replace: bool, p: Any, seed: Any) -> Tensor:
    """So many indices below n."""
    if p is None:
        if replace:
            return drawn(RandomIntegers, (count,), "int64", seed, 0, Length.max(n, 1))
        return permutation(n, seed=seed)[:count]
    chance = _chances(p, n, 1 if replace else count)
    if not replace:
        return topk(log(chance) + _gumbel("choice", chance, seed), count)[1]
    ends = cumulative_sum(chance)
    u = drawn(RandomUniform, (count,), "float64", seed, "choice", near=(chance,))
    return count_nonzero(greater_equal(expand_dims(u, 1), ends / ends[-1]), axis=1)


def _chances(p: TensorLike, n: Any, least: int) -> Tensor:
    """How likely each of n is, of which so many are likely at all."""
    p = demand("p is at least 0, with a finite sum > 0", p, _has_shares)
    if least > 1:
        some = f"p is above 0 for at least {least}, which are drawn without replacement"
        p = demand(some, p, lambda p: np.count_nonzero(p) >= least)
    chance = cast(as_tensor(p), "float64")
    if chance.shape != (n,):
        raise ShapeError(f"p has a probability for each of {n}, got {chance.type!r}")
    return chance


def _has_shares(p: Any) -> Any:
    total = np.sum(p)
    return (p >= 0) & (total > 0) & (total < np.inf)
