"""Random numbers from explicit seeds.

A seed is an int or a scalar integer tensor (which a step can vary). The same call with the same
seed draws the same numbers; other seeds, other numbers. Different functions (uniform, normal, ...)
draw independently of each other from one seed. Backends draw different numbers, distributed alike:
each op says by `draw` what a backend is to override. The NumPy kernels use Philox, a counter-based
generator [Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"].
"""

from __future__ import annotations

import zlib

from ..ir.errors import ShapeError
from ..ir.types import Dim, as_shape
from .base import (
    NO_GRAD,
    Any,
    DType,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_dtype,
    as_tensor,
    np,
    tensor_type,
    whole,
)
from .logic import less

__all__ = ["bernoulli", "integers", "normal", "permutation", "uniform"]


def generator(op_type: str, seed: Any) -> np.random.Generator:
    """NumPy's generator for a seed; each op type has a stream of its own."""
    key = int(seed) % 2**64 + (zlib.crc32(op_type.encode()) << 64)
    return np.random.Generator(np.random.Philox(key=key))


class Draw(Op, abstract=True):
    """Family: numbers of a known shape (attribute), or of the shape of a second input."""

    shape: tuple[int, ...] | None
    dtype: DType
    differentiable = False
    draw = ""
    flop_free = True

    def infer(self, seed: TensorType, like: TensorType | None = None) -> Types:
        if seed.dtype.kind not in "iu" or seed.shape != ():
            raise DTypeError(f"a seed is a scalar integer, got {seed!r}")
        shape = self.shape if like is None else like.shape
        assert shape is not None
        return (tensor_type(shape, self.dtype),)

    def kernel(self, xp: Any, seed: Any, like: Any = None) -> Any:
        shape = self.shape if like is None else like.shape
        assert shape is not None
        return xp.asarray(self.numbers(generator(self.type, seed), shape), dtype=self.dtype)

    def numbers(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        """The numbers, by NumPy."""
        raise NotImplementedError

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (NO_GRAD,) * len(node.inputs)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for dtype in ("float64", "float32"):
            yield cls((2, 3), as_dtype(dtype)), [np.array(7)]
            yield cls((), as_dtype(dtype)), [np.array(-7)]
            yield cls((0, 2), as_dtype(dtype)), [np.array(2**63 - 1)]
        yield cls(None, as_dtype("float64")), [np.array(7), rng.normal(size=(2, 3))]


class RandomUniform(Draw):
    """Numbers in [0, 1), all equally likely. No gradient."""

    draw = "uniform"
    onnx = Onnx("RandomUniform")

    def numbers(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        if self.dtype.itemsize < 4:  # of fewer bits, so that rounding never makes a 1
            return rng.integers(0, 2**11, shape) * 2.0**-11
        return rng.random(shape, self.dtype)


class RandomNormal(Draw):
    """Numbers of mean 0 and variance 1, normally distributed. No gradient."""

    draw = "normal"
    onnx = Onnx("RandomNormal")

    def numbers(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        single = self.dtype.itemsize < 8
        return rng.standard_normal(shape, np.float32 if single else np.float64)


class RandomIntegers(Draw):
    """Integers in [low, high), all equally likely. No gradient."""

    low: int
    high: int
    draw = "integers"

    def numbers(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return rng.integers(self.low, self.high, shape, dtype=self.dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((2, 3), as_dtype("int64"), 0, 5), [np.array(7)]
        yield cls((), as_dtype("int32"), -5, 5), [np.array(7)]
        yield cls(None, as_dtype("uint8"), 0, 256), [np.array(7), rng.normal(size=(2,))]


class RandomPermutation(Draw):
    """The integers from 0 up to shape[0], each once, in an order drawn at random. No gradient."""

    draw = "permutation"

    def infer(self, seed: TensorType, like: TensorType | None = None) -> Types:
        (t,) = super().infer(seed, like)
        if not t.shape:
            raise ShapeError(f"permutation of the first axis of {like!r}: it has none")
        return (tensor_type(t.shape[:1], t.dtype),)

    def numbers(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return rng.permutation(shape[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((5,), as_dtype("int64")), [np.array(7)]
        yield cls((0,), as_dtype("int64")), [np.array(7)]
        yield cls(None, as_dtype("int64")), [np.array(7), rng.normal(size=(4,))]


def _drawn(op: type[Draw], shape: Any, dtype: Any, seed: TensorLike, *attrs: Any) -> Tensor:
    """The op with its seed, and with the tensor whose shape it takes where that is not known."""
    dtype = as_dtype(dtype)
    seed = _seed(seed)
    if isinstance(shape, Tensor) and not shape.type.static:
        return apply(op(None, dtype, *attrs), seed, shape)
    lengths = _known(shape.shape if isinstance(shape, Tensor) else as_shape(shape))
    return apply(op(lengths, dtype, *attrs), seed)


def _seed(seed: TensorLike) -> Tensor:
    if seed is None:
        raise DTypeError("random numbers need an explicit seed: an int or a scalar integer tensor")
    seed = as_tensor(seed)
    if seed.dtype.kind not in "iu" or seed.shape != ():
        raise DTypeError(f"a seed is an int or a scalar integer tensor, got {seed.type!r}")
    return seed


def _known(shape: tuple[Dim, ...]) -> tuple[int, ...]:
    lengths = tuple([d for d in shape if isinstance(d, int)])
    if len(lengths) != len(shape):
        raise ShapeError(
            f"random numbers of shape {shape}: give known lengths, or a tensor of the shape wanted"
        )
    return lengths


def _floating(dtype: Any) -> DType:
    found: DType = as_dtype(dtype)
    if found.kind != "f":
        raise DTypeError(f"random numbers of this kind are floating, not {found}")
    return found


def uniform(
    shape: Any,
    low: TensorLike = 0.0,
    high: TensorLike = 1.0,
    *,
    seed: TensorLike,
    dtype: Any = "float64",
) -> Tensor:
    """Numbers in [low, high), all equally likely.

    Parameters:
        shape: ints, or a tensor of the shape wanted.
        low, high: numbers, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for lengths that are not known; DTypeError for another dtype, or a seed that
    is no integer.

    Gradient: with u = (y - low) / (high - low): dlow = dy * (1 - u), dhigh = dy * u, summed to
    theirs.

    Source: [Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"] for NumPy's kernels.

    >>> u = gg.evaluate(gg.random.uniform((1000,), 2.0, 3.0, seed=1))
    >>> bool(2.0 <= u.min() < 2.1), bool(2.9 < u.max() < 3.0)
    (True, True)
    """
    u = _drawn(RandomUniform, shape, _floating(dtype), seed)
    if isinstance(low, Tensor) or isinstance(high, Tensor) or (low, high) != (0.0, 1.0):
        low, high = as_tensor(low, u.dtype), as_tensor(high, u.dtype)
        return low + u * (high - low)
    return u


def normal(
    shape: Any,
    mean: TensorLike = 0.0,
    std: TensorLike = 1.0,
    *,
    seed: TensorLike,
    dtype: Any = "float64",
) -> Tensor:
    """Normally distributed numbers.

    Parameters:
        shape: ints, or a tensor of the shape wanted.
        mean, std: numbers, or tensors that broadcast with the shape.
        seed: an int or a scalar integer tensor; the same one gives the same numbers.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for lengths that are not known; DTypeError for another dtype, or a seed that
    is no integer.

    Gradient: with z = (y - mean) / std: dmean = dy, dstd = dy * z, summed to theirs
    [Kingma and Welling 2014, "Auto-encoding variational Bayes"].

    Source: [Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"] for NumPy's kernels.

    >>> z = gg.evaluate(gg.random.normal((10_000,), 5.0, seed=1))
    >>> bool(abs(z.mean() - 5.0) < 0.1), bool(abs(z.std() - 1.0) < 0.1)
    (True, True)
    """
    if isinstance(std, float | int) and not std >= 0:
        raise ValueError(f"a standard deviation is at least 0, got {std}")
    z = _drawn(RandomNormal, shape, _floating(dtype), seed)
    if isinstance(mean, Tensor) or isinstance(std, Tensor) or (mean, std) != (0.0, 1.0):
        return as_tensor(mean, z.dtype) + z * as_tensor(std, z.dtype)
    return z


def bernoulli(shape: Any, p: TensorLike = 0.5, *, seed: TensorLike) -> Tensor:
    """Bools, each True with probability p.

    Parameters:
        shape: ints, or a tensor of the shape wanted.
        p: floating, broadcasts to the shape.
        seed: an int or a scalar integer tensor; the same one gives the same bools.

    Returns: a bool tensor of this shape.

    Raises: ShapeError for lengths that are not known, or a p that does not broadcast; DTypeError
    for a seed that is no integer.

    Gradient: none, the result is bool.

    >>> gg.evaluate(gg.random.bernoulli((3,), [0.0, 1.0, 1.0], seed=1))
    array([False,  True,  True])
    """
    if isinstance(p, float | int) and not 0 <= p <= 1:
        raise ValueError(f"a probability is at least 0 and at most 1, got {p}")
    dtype = "float32" if isinstance(p, float | int) and p >= 2**-12 else "float64"
    u = _drawn(RandomUniform, shape, dtype, seed)
    return less(u, as_tensor(p, u.dtype))


def integers(low: int, high: int, shape: Any, *, seed: TensorLike, dtype: Any = "int64") -> Tensor:
    """Integers in [low, high), all equally likely.

    Parameters:
        low, high: ints that the dtype can hold, low < high; high is not drawn.
        shape: ints, or a tensor of the shape wanted.
        seed: an int or a scalar integer tensor; the same one gives the same numbers.
        dtype: an integer one.

    Returns: a tensor of this shape and dtype.

    Raises: DTypeError where there are no such integers, or for a seed that is no integer;
    ShapeError for lengths that are not known.

    Gradient: none, the result is integer.

    >>> sorted(set(gg.evaluate(gg.random.integers(0, 3, (100,), seed=1)).tolist()))
    [0, 1, 2]
    """
    dtype, low, high = as_dtype(dtype), whole("low", low), whole("high", high)
    bounds = np.iinfo(dtype) if dtype.kind in "iu" else None
    if bounds is None or not bounds.min <= low < high <= bounds.max + 1:
        raise DTypeError(f"no integers in [{low}, {high}) as {dtype}")
    return _drawn(RandomIntegers, shape, dtype, seed, low, high)


def permutation(n: int | Tensor, *, seed: TensorLike) -> Tensor:
    """The integers 0 ... n-1, each once, in an order drawn at random.

    Parameters:
        n: an int, or a tensor: the length of its first axis.
        seed: an int or a scalar integer tensor; the same one gives the same order.

    Returns: a tensor (n,), int64.

    Raises: ShapeError if n is negative, or a tensor without axes; DTypeError for a seed that is no
    integer.

    Gradient: none, the result is integer.

    >>> sorted(gg.evaluate(gg.random.permutation(4, seed=1)).tolist())
    [0, 1, 2, 3]
    """
    if isinstance(n, Tensor) and n.shape and isinstance(n.shape[0], int):
        n = n.shape[0]
    return _drawn(RandomPermutation, n if isinstance(n, Tensor) else (n,), "int64", seed)
