"""Random numbers made of uniform and normal ones: what is drawn is moved, scaled and bent."""

from __future__ import annotations

import math

from ...base.domains import NON_NEGATIVE, NUMBER, POSITIVE
from ...base.kinds import limits_of
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
)
from ..demands import number
from ..elementwise.arithmetic import negative
from ..elementwise.bounds import clip, maximum, minimum
from ..elementwise.exponential import exp, log, log1p, sqrt
from ..elementwise.logic import bitwise_right_shift, greater, less, where
from ..elementwise.trigonometry import tan
from ..special.normal import ndtr
from ..special.quantile import NormalPoint
from .draws import Draw, RandomBits, RandomNormal, RandomUniform, lengths_of
from .keys import key_of

__all__ = [
    "cauchy",
    "double_sided_maxwell",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "maxwell",
    "normal",
    "pareto",
    "rayleigh",
    "triangular",
    "truncated_normal",
    "uniform",
    "weibull",
]


def drawn(op: type[Draw], shape: Any, dtype: Any, seed: Any, *attrs: Any, near: Any = ()) -> Tensor:
    """The op with its key, and with the tensor whose shape it takes where that is not known."""
    dtype = as_dtype(dtype)
    if isinstance(shape, Tensor) and not shape.type.static:
        return apply(op(None, dtype, *attrs), key_of(seed, shape, *near), shape)
    return apply(op(lengths_of(shape), dtype, *attrs), key_of(seed, shape, *near))


def floating(dtype: Any) -> DType:
    """The dtype, which has to be a floating one."""
    float_dtype: DType = as_dtype(dtype)
    if not is_floating(float_dtype):
        raise DTypeError(f"random numbers of this kind are floating, not {float_dtype}")
    return float_dtype


def above_zero(u: Tensor) -> Tensor:
    """Uniform numbers of which none is 0: half of the least one stands for that."""
    least = 0.5 ** (limits_of(u.dtype).nmant + 2)
    return maximum(u, as_tensor(least, u.dtype))


def moved(y: Tensor, loc: TensorLike, scale: TensorLike) -> Tensor:
    """loc + scale * y, without what does nothing."""
    if isinstance(scale, Tensor) or not _is(scale, 1.0):
        y = y * as_tensor(scale, y.dtype)
    if isinstance(loc, Tensor) or not _is(loc, 0.0):
        y = as_tensor(loc, y.dtype) + y
    return y


def _is(value: Any, number: float) -> bool:
    return isinstance(value, int | float) and value == number


def _uniform(name: str, shape: Any, seed: Any, dtype: Any, *near: Any) -> Tensor:
    """Uniform numbers of a function's own, none of them 0."""
    return above_zero(drawn(RandomUniform, shape, floating(dtype), seed, name, near=near))


def signs(name: str, shape: Any, seed: Any, dtype: Any) -> Tensor:
    """-1 and 1, equally likely."""
    top = bitwise_right_shift(drawn(RandomBits, shape, "uint32", seed, name), 31)
    return cast(cast(top, "int32") * 2 - 1, dtype)


def uniform(
    shape: Any,
    low: TensorLike = 0.0,
    high: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers in [low, high), all equally likely.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        low, high: numbers, low <= high, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for numbers in another order.

    Gradient: with u = (y - low) / (high - low): dlow = dy * (1 - u), dhigh = dy * u, summed to
    theirs.

    Source: the first 53 bits of words of Philox, for float32 the first 24 of half a word [Salmon et
    al. 2011, "Parallel random numbers: as easy as 1, 2, 3"].

    >>> u = gg.evaluate(gg.random.uniform((1000,), 2.0, 3.0, seed=1))
    >>> bool(2.0 <= u.min() < 2.1), bool(2.9 < u.max() < 3.0)
    (True, True)
    """
    number(NUMBER, "low", low)
    number(NUMBER, "high", high)
    numbers = NUMBER.takes(low) and NUMBER.takes(high)
    if numbers and not low <= high:  # type: ignore[operator]
        raise ValueError(f"low <= high: got low={low!r} and high={high!r}")
    u = drawn(RandomUniform, shape, floating(dtype), seed, near=(low, high))
    if numbers and (low, high) == (0.0, 1.0):
        return u
    low, high = as_tensor(low, u.dtype), as_tensor(high, u.dtype)
    return low + u * (high - low)


def normal(
    shape: Any,
    mean: TensorLike = 0.0,
    std: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Normally distributed numbers.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        mean, std: numbers, std >= 0, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number std below 0.

    Gradient: with z = (y - mean) / std: dmean = dy, dstd = dy * z, summed to theirs
    [Kingma and Welling 2014, "Auto-encoding variational Bayes"].

    Source: words of Philox [Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"]
    through the inverse of the distribution [Wichura 1988, "Algorithm AS 241"].

    >>> z = gg.evaluate(gg.random.normal((10_000,), 5.0, seed=1))
    >>> bool(abs(z.mean() - 5.0) < 0.1), bool(abs(z.std() - 1.0) < 0.1)
    (True, True)
    """
    number(NUMBER, "mean", mean)
    number(NON_NEGATIVE, "std", std)
    z = drawn(RandomNormal, shape, floating(dtype), seed, near=(mean, std))
    return moved(z, mean, std)


def exponential(
    shape: Any,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers above 0 of density exp(-y / scale) / scale.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        scale: a number >= 0, or a tensor that broadcasts with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number below 0 as a scale.

    Gradient: dscale = dy * y / scale, summed to its shape.

    Source: y = -scale * log(1 - u) of a uniform u.

    >>> y = gg.evaluate(gg.random.exponential((10_000,), 2.0, seed=1))
    >>> bool(abs(np.median(y) - 2 * np.log(2)) < 0.1)
    True
    """
    number(NON_NEGATIVE, "scale", scale)
    return moved(_exponential("exponential", shape, seed, dtype, scale), 0.0, scale)


def gumbel(
    shape: Any,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers of the distribution function exp(-exp(-(y - loc) / scale)): of largest values.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        loc, scale: numbers, scale >= 0, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number below 0 as a scale.

    Gradient: dloc = dy, dscale = dy * (y - loc) / scale, summed to theirs.

    Source: y = loc - scale * log(-log u) of a uniform u.

    >>> y = gg.evaluate(gg.random.gumbel((10_000,), 2.0, seed=1))
    >>> bool(abs(np.median(y) - 2 + np.log(np.log(2))) < 0.1)
    True
    """
    number(NUMBER, "loc", loc)
    number(NON_NEGATIVE, "scale", scale)
    u = _uniform("gumbel", shape, seed, dtype, loc, scale)
    return moved(negative(log(negative(log(u)))), loc, scale)


def laplace(
    shape: Any,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers of density exp(-|y - loc| / scale) / (2 * scale).

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        loc, scale: numbers, scale >= 0, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number below 0 as a scale.

    Gradient: dloc = dy, dscale = dy * (y - loc) / scale, summed to theirs.

    Source: the inverse of its distribution function at a uniform u.

    >>> y = gg.evaluate(gg.random.laplace((10_000,), 2.0, seed=1))
    >>> bool(abs(np.median(y) - 2) < 0.1)
    True
    """
    number(NUMBER, "loc", loc)
    number(NON_NEGATIVE, "scale", scale)
    u = _uniform("laplace", shape, seed, dtype, loc, scale)
    below = less(u, as_tensor(0.5, u.dtype))
    size = log(2.0 * minimum(u, 1.0 - u))
    return moved(where(below, size, negative(size)), loc, scale)


def logistic(
    shape: Any,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers of the distribution function 1 / (1 + exp(-(y - loc) / scale)).

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        loc, scale: numbers, scale >= 0, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number below 0 as a scale.

    Gradient: dloc = dy, dscale = dy * (y - loc) / scale, summed to theirs.

    Source: y = loc + scale * log(u / (1 - u)) of a uniform u.

    >>> y = gg.evaluate(gg.random.logistic((10_000,), 2.0, seed=1))
    >>> bool(abs(np.median(y) - 2) < 0.1)
    True
    """
    number(NUMBER, "loc", loc)
    number(NON_NEGATIVE, "scale", scale)
    u = _uniform("logistic", shape, seed, dtype, loc, scale)
    return moved(log(u) - log1p(negative(u)), loc, scale)


def cauchy(
    shape: Any,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers of density 1 / (pi * scale * (1 + ((y - loc) / scale)**2)), which have no mean.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        loc, scale: numbers, scale >= 0, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number below 0 as a scale.

    Gradient: dloc = dy, dscale = dy * (y - loc) / scale, summed to theirs.

    Source: y = loc + scale * tan(pi * (u - 1/2)) of a uniform u.

    >>> y = gg.evaluate(gg.random.cauchy((10_000,), 2.0, seed=1))
    >>> bool(abs(np.median(y) - 2) < 0.1)
    True
    """
    number(NUMBER, "loc", loc)
    number(NON_NEGATIVE, "scale", scale)
    u = _uniform("cauchy", shape, seed, dtype, loc, scale)
    return moved(tan(math.pi * (u - 0.5)), loc, scale)


def lognormal(
    shape: Any,
    mean: TensorLike = 0.0,
    sigma: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers whose logarithms are normal, of this mean and standard deviation.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        mean, sigma: numbers, sigma >= 0, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number below 0 as a scale.

    Gradient: dmean = dy * y, dsigma = dy * y * z of the normal z, summed to theirs.

    Source: y = exp(mean + sigma * z).

    >>> y = gg.evaluate(gg.random.lognormal((10_000,), 1.0, seed=1))
    >>> bool(abs(np.median(y) - np.e) < 0.1)
    True
    """
    number(NUMBER, "mean", mean)
    number(NON_NEGATIVE, "sigma", sigma)
    z = drawn(RandomNormal, shape, floating(dtype), seed, "lognormal", near=(mean, sigma))
    return exp(moved(z, mean, sigma))


def rayleigh(
    shape: Any,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Lengths of vectors of two normal numbers of this standard deviation.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        scale: a number >= 0, or a tensor that broadcasts with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number below 0 as a scale.

    Gradient: dscale = dy * y / scale, summed to its shape.

    Source: y = scale * sqrt(2 * e) of an exponential e.

    >>> y = gg.evaluate(gg.random.rayleigh((10_000,), 2.0, seed=1))
    >>> bool(abs(np.median(y) - 2 * np.sqrt(2 * np.log(2))) < 0.1)
    True
    """
    number(NON_NEGATIVE, "scale", scale)
    return moved(sqrt(2.0 * _exponential("rayleigh", shape, seed, dtype, scale)), 0.0, scale)


def weibull(
    shape: Any,
    concentration: TensorLike,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers above 0 of the distribution function 1 - exp(-(y / scale)**concentration).

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        concentration, scale: numbers above 0, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number that is not a concentration or scale.

    Gradient: that of y = scale * e**(1 / concentration), for an exponential e.

    Source: y = scale * e**(1 / concentration) of an exponential e.

    >>> y = gg.evaluate(gg.random.weibull((10_000,), 2.0, seed=1))
    >>> bool(abs(np.median(y) - np.sqrt(np.log(2))) < 0.1)
    True
    """
    number(POSITIVE, "concentration", concentration)
    number(NON_NEGATIVE, "scale", scale)
    e = _exponential("weibull", shape, seed, dtype, concentration, scale)
    return moved(exp(log(e) / as_tensor(concentration, e.dtype)), 0.0, scale)


def pareto(
    shape: Any,
    concentration: TensorLike,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers from scale on, of the distribution function 1 - (scale / y)**concentration.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        concentration, scale: numbers above 0, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number that is not a concentration or scale.

    Gradient: that of y = scale * exp(e / concentration), for an exponential e.

    Source: y = scale * exp(e / concentration) of an exponential e; NumPy's `pareto` is this less 1.

    >>> y = gg.evaluate(gg.random.pareto((10_000,), 3.0, seed=1))
    >>> bool(abs(np.median(y) - 2 ** (1 / 3)) < 0.1)
    True
    """
    number(POSITIVE, "concentration", concentration)
    number(NON_NEGATIVE, "scale", scale)
    e = _exponential("pareto", shape, seed, dtype, concentration, scale)
    return moved(exp(e / as_tensor(concentration, e.dtype)), 0.0, scale)


def maxwell(
    shape: Any,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Lengths of vectors of three normal numbers of this standard deviation: speeds in a gas.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        scale: a number >= 0, or a tensor that broadcasts with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number below 0 as a scale.

    Gradient: dscale = dy * y / scale, summed to its shape.

    Source: y = scale * sqrt(z1**2 + z2**2 + z3**2) of normal numbers.

    >>> y = gg.evaluate(gg.random.maxwell((10_000,), 2.0, seed=1))
    >>> bool(abs(np.median(y) - 3.0763) < 0.1)
    True
    """
    number(NON_NEGATIVE, "scale", scale)
    speeds = _speeds("maxwell", shape, key_of(seed, shape, scale), floating(dtype))
    return moved(speeds, 0.0, scale)


def double_sided_maxwell(
    shape: Any,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers of `maxwell` to both sides of loc: of density y**2 exp(-y**2 / 2), up to a factor.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        loc, scale: numbers, scale >= 0, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for a number below 0 as a scale.

    Gradient: dloc = dy, dscale = dy * (y - loc) / scale, summed to their shapes.

    Source: jax.random.double_sided_maxwell.

    >>> y = gg.evaluate(gg.random.double_sided_maxwell((10_000,), 5.0, 2.0, seed=1))
    >>> bool(abs(np.mean(y) - 5.0) < 0.1)
    True
    """
    number(NUMBER, "loc", loc)
    number(NON_NEGATIVE, "scale", scale)
    kind, key = floating(dtype), key_of(seed, shape, loc, scale)
    y = _speeds("double_sided_maxwell", shape, key, kind)
    return moved(y * signs("double_sided_maxwell", shape, key, kind), loc, scale)


def _speeds(name: str, shape: Any, key: Tensor, dtype: DType) -> Tensor:
    """Lengths of vectors of three normal numbers."""
    x, y, z = (drawn(RandomNormal, shape, dtype, key, f"{name} {i}") for i in range(3))
    return sqrt(x * x + y * y + z * z)


def triangular(
    shape: Any,
    left: TensorLike,
    mode: TensorLike,
    right: TensorLike,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers in [left, right], of a density that rises in a line up to the mode and falls in one.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        left, mode, right: numbers, or tensors that broadcast with the shape, left <= mode <= right.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for numbers in another order.

    Gradient: that of the inverse of its distribution function at a uniform number.

    Source: the inverse of its distribution function at a uniform u.

    >>> y = gg.evaluate(gg.random.triangular((1000,), 0.0, 1.0, 3.0, seed=1))
    >>> bool(y.min() >= 0.0), bool(y.max() <= 3.0)
    (True, True)
    """
    number(NUMBER, "left", left)
    number(NUMBER, "mode", mode)
    number(NUMBER, "right", right)
    given: Any = left, mode, right
    numbers = all(NUMBER.takes(b) for b in given)
    if numbers and not (given[0] <= given[1] <= given[2] and given[0] < given[2]):
        raise ValueError(f"left <= mode <= right, left < right: got {given}")
    u = _uniform("triangular", shape, seed, dtype, left, mode, right)
    left, mode, right = (as_tensor(b, u.dtype) for b in (left, mode, right))
    span = right - left
    rising = less(u * span, mode - left)
    ones = u / u
    below = sqrt(where(rising, u * span * (mode - left), ones))
    above = sqrt(where(rising, ones, (1.0 - u) * span * (right - mode)))
    return where(rising, left + below, right - above)


def truncated_normal(
    shape: Any,
    lower: TensorLike = -2.0,
    upper: TensorLike = 2.0,
    mean: TensorLike = 0.0,
    std: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """mean + std * z, for normal z of which those outside of [lower, upper] are left out.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        lower, upper: the ends of z, in standard deviations; may be infinite, lower < upper.
        mean, std: numbers, or tensors; all four broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer; ValueError for numbers in another order, or a number std below 0.

    Gradient: that of the inverse of the distribution function of z at a uniform number.

    Source: the inverse of the distribution function, in float64, from the end that is nearer to 0
    [Wichura 1988, "Algorithm AS 241"]: so tails up to 37 standard deviations are as precise.

    >>> z = gg.evaluate(gg.random.truncated_normal((1000,), 8.0, 9.0, seed=1))
    >>> bool(z.min() >= 8.0), bool(z.max() <= 9.0)
    (True, True)
    """
    number(NUMBER, "lower", lower)
    number(NUMBER, "upper", upper)
    number(NUMBER, "mean", mean)
    number(NON_NEGATIVE, "std", std)
    numbers = NUMBER.takes(lower) and NUMBER.takes(upper)
    if numbers and not lower < upper:  # type: ignore[operator]
        raise ValueError(f"lower is less than upper: got {lower!r} and {upper!r}")
    kind = floating(dtype)
    u = cast(_uniform("truncated_normal", shape, seed, kind, lower, upper, mean, std), "float64")
    lower, upper = as_tensor(lower, u.dtype), as_tensor(upper, u.dtype)
    turned = greater(lower, as_tensor(0.0, u.dtype))
    low, high = where(turned, negative(upper), lower), where(turned, negative(lower), upper)
    start = ndtr(low)
    z = apply(NormalPoint(), start + u * (ndtr(high) - start))
    z = clip(where(turned, negative(z), z), lower, upper)
    return moved(cast(z, kind), mean, std)


def _exponential(name: str, shape: Any, seed: Any, dtype: Any, *near: Any) -> Tensor:
    return negative(log1p(negative(_uniform(name, shape, seed, dtype, *near))))
