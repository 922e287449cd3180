"""Gamma numbers and what is made of them: their gradients are implicit."""

from __future__ import annotations

from ...base.domains import NON_NEGATIVE, NUMBER, POSITIVE
from ...base.errors import ShapeError
from ...ir.types import as_shape
from ..base import Any, Tensor, TensorLike, apply, as_dtype, as_tensor, cast
from ..demands import number
from ..elementwise.arithmetic import negative
from ..elementwise.exponential import exp, log
from ..reduce.reductions import logsumexp
from ..shape.reshaping import broadcast_like, broadcast_to
from ..special.logistic import expit
from .continuous import drawn, floating, moved, signs
from .draws import RandomNormal, lengths_of
from .keys import key_of
from .rejection import RandomLogGamma

__all__ = [
    "beta",
    "chisquare",
    "dirichlet",
    "f",
    "gamma",
    "generalized_normal",
    "loggamma",
    "student_t",
]


def filled(shape: Any, *parameters: TensorLike) -> list[Tensor]:
    """Parameters as float64 of the shape that is drawn."""
    tensors = [cast(as_tensor(p), "float64") for p in parameters]
    if isinstance(shape, Tensor) and not shape.type.static:
        return [broadcast_like(t, shape) for t in tensors]
    return [broadcast_to(t, lengths_of(shape)) for t in tensors]


def _log_gamma(name: str, shape: Any, concentration: Any, seed: Any) -> Tensor:
    """Logarithms of gamma numbers of scale 1, in float64."""
    key = key_of(seed, shape, concentration)
    (a,) = filled(shape, concentration)
    return apply(RandomLogGamma(None, as_dtype("float64"), name), key, a)


def loggamma(
    shape: Any,
    concentration: TensorLike,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Logarithms of gamma numbers of scale 1: exact where those of small concentrations round to 0.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        concentration: a number above 0, or a tensor that broadcasts to the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is not above 0.

    Gradient: that of the concentration by implicit differentiation, once
    [Figurnov et al. 2018, "Implicit reparameterization gradients"].

    Source: [Marsaglia and Tsang 2000, "A simple method for generating gamma variables"].

    >>> y = gg.evaluate(gg.random.loggamma((10_000,), 1.0, seed=1))
    >>> bool(abs(np.mean(y) - -0.5772) < 0.1)
    True
    """
    number(POSITIVE, "concentration", concentration)
    return cast(_log_gamma("loggamma", shape, concentration, seed), floating(dtype))


def gamma(
    shape: Any,
    concentration: TensorLike,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers above 0 of density y**(concentration - 1) * exp(-y / scale), up to a factor.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        concentration: a number above 0, or a tensor that broadcasts to the shape.
        scale: a number, or a tensor that broadcasts with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is not above 0.

    Gradient: dscale = dy * y / scale; that of the concentration by implicit differentiation, once
    [Figurnov et al. 2018, "Implicit reparameterization gradients"].

    Source: [Marsaglia and Tsang 2000, "A simple method for generating gamma variables"].

    >>> y = gg.evaluate(gg.random.gamma((10_000,), 3.0, 2.0, seed=1))
    >>> bool(abs(np.mean(y) - 6.0) < 0.2)
    True
    """
    number(POSITIVE, "concentration", concentration)
    number(NON_NEGATIVE, "scale", scale)
    kind = floating(dtype)
    return moved(cast(exp(_log_gamma("gamma", shape, concentration, seed)), kind), 0.0, scale)


def generalized_normal(
    shape: Any,
    power: TensorLike,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers of density exp(-abs((y - loc) / scale)**power), up to a factor.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        power: a number above 0, or a tensor that broadcasts to the shape: of 1, Laplace's numbers;
            of 2, normal ones of variance scale**2 / 2.
        loc, scale: numbers, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is out of range.

    Gradient: dloc = dy, dscale = dy * (y - loc) / scale; that of the power by implicit
    differentiation, once [Figurnov et al. 2018, "Implicit reparameterization gradients"].

    Source: a gamma number of concentration 1 / power, to the power of that, with a sign.

    >>> y = gg.evaluate(gg.random.generalized_normal((10_000,), 3.0, 5.0, seed=1))
    >>> bool(abs(np.mean(y) - 5.0) < 0.1)
    True
    """
    number(POSITIVE, "power", power)
    number(NUMBER, "loc", loc)
    number(NON_NEGATIVE, "scale", scale)
    kind, key = floating(dtype), key_of(seed, shape, power, loc, scale)
    (share,) = filled(shape, 1.0 / cast(as_tensor(power), "float64"))
    size = cast(exp(share * _log_gamma("generalized_normal", share, share, key)), kind)
    return moved(size * signs("generalized_normal", shape, key, kind), loc, scale)


def beta(
    shape: Any,
    a: TensorLike,
    b: TensorLike,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers between 0 and 1 of density y**(a - 1) * (1 - y)**(b - 1), up to a factor.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        a, b: numbers above 0, or tensors that broadcast to the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is not above 0.

    Gradient: that of a and b by implicit differentiation, once
    [Figurnov et al. 2018, "Implicit reparameterization gradients"].

    Source: y = g / (g + h) of gamma numbers g of concentration a and h of b.

    >>> y = gg.evaluate(gg.random.beta((10_000,), 1.0, 3.0, seed=1))
    >>> bool(abs(np.mean(y) - 0.25) < 0.1)
    True
    """
    number(POSITIVE, "a", a)
    number(POSITIVE, "b", b)
    kind, key = floating(dtype), key_of(seed, shape, a, b)
    difference = _log_gamma("beta a", shape, a, key) - _log_gamma("beta b", shape, b, key)
    return cast(expit(difference), kind)


def chisquare(
    shape: Any,
    df: TensorLike,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Sums of the squares of df normal numbers.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        df: a number above 0, not only a whole one, or a tensor that broadcasts to the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is not above 0.

    Gradient: that of df by implicit differentiation, once
    [Figurnov et al. 2018, "Implicit reparameterization gradients"].

    Source: y = 2 * g of a gamma number g of concentration df / 2.

    >>> y = gg.evaluate(gg.random.chisquare((10_000,), 3.0, seed=1))
    >>> bool(abs(np.mean(y) - 3.0) < 0.1)
    True
    """
    number(POSITIVE, "df", df)
    half = 0.5 * cast(as_tensor(df), "float64")
    return cast(2.0 * exp(_log_gamma("chisquare", shape, half, seed)), floating(dtype))


def f(
    shape: Any,
    df1: TensorLike,
    df2: TensorLike,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Quotients of two chi-square numbers, each divided by its degrees of freedom.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        df1, df2: numbers above 0, or tensors that broadcast to the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is not above 0.

    Gradient: that of df1 and df2 by implicit differentiation, once
    [Figurnov et al. 2018, "Implicit reparameterization gradients"].

    Source: two gamma numbers, of concentrations df1 / 2 and df2 / 2.

    >>> y = gg.evaluate(gg.random.f((10_000,), 4.0, 20.0, seed=1))
    >>> bool(abs(np.mean(y) - 20 / 18) < 0.1)
    True
    """
    number(POSITIVE, "df1", df1)
    number(POSITIVE, "df2", df2)
    kind, key = floating(dtype), key_of(seed, shape, df1, df2)
    first, second = (0.5 * t for t in filled(shape, df1, df2))
    top = _log_gamma("f 1", first, first, key) - log(first)
    return cast(exp(top - _log_gamma("f 2", second, second, key) + log(second)), kind)


def student_t(
    shape: Any,
    df: TensorLike,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers of Student's distribution: a normal one by the root of a chi-square one by df.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        df: a number above 0, or a tensor that broadcasts to the shape.
        loc, scale: numbers, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is not above 0.

    Gradient: dloc = dy, dscale = dy * (y - loc) / scale; that of df by implicit differentiation,
    once [Figurnov et al. 2018, "Implicit reparameterization gradients"].

    Source: a normal number and a gamma number of concentration df / 2.

    >>> y = gg.evaluate(gg.random.student_t((10_000,), 5.0, seed=1))
    >>> bool(abs(np.mean(y) - 0.0) < 0.1)
    True
    """
    number(POSITIVE, "df", df)
    number(NUMBER, "loc", loc)
    number(NON_NEGATIVE, "scale", scale)
    kind, key = floating(dtype), key_of(seed, shape, df, loc, scale)
    (half,) = filled(shape, 0.5 * cast(as_tensor(df), "float64"))
    z = drawn(RandomNormal, half, "float64", key, "student_t")
    spread = 0.5 * (_log_gamma("student_t", half, half, key) - log(half))
    return moved(cast(z * exp(negative(spread)), kind), loc, scale)


def dirichlet(
    concentration: TensorLike,
    shape: Any = (),
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Probabilities, which add up to 1 over the last axis, of density prod(y**(concentration - 1)).

    Parameters:
        concentration: (..., K), above 0.
        shape: ints and lengths, how many of them: axes before those of the concentration.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of shape + concentration.shape and this dtype.

    Raises: ShapeError for a length that is None, or a concentration without axes; DTypeError
    for an unsupported dtype, or a seed that is not an integer.

    Gradient: that of the concentration by implicit differentiation, once
    [Figurnov et al. 2018, "Implicit reparameterization gradients"].

    Source: gamma numbers of these concentrations, divided by their sum.

    >>> p = gg.evaluate(gg.random.dirichlet([1.0, 2.0, 3.0], (4,), seed=1))
    >>> p.shape, bool(np.allclose(p.sum(-1), 1))
    ((4, 3), True)
    """
    a = as_tensor(concentration)
    if not a.ndim:
        raise ShapeError("dirichlet takes a concentration with a last axis, got a number")
    before = lengths_of(as_shape(shape))
    whole: Any = a if not before else (*before, *lengths_of(a))
    y = _log_gamma("dirichlet", whole, a, seed)
    return cast(exp(y - logsumexp(y, axis=-1, keepdims=True)), floating(dtype))
