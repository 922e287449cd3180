"""Draws computed directly from random words: bits, uniform and normal numbers, permutations."""

from __future__ import annotations

import math
from typing import ClassVar

from ...base.errors import ShapeError
from ...base.kinds import limits_of
from ...ir.types import Dim, as_shape
from ..base import (
    NO_GRAD,
    Any,
    Cast,
    DType,
    DTypeError,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorType,
    Types,
    as_dtype,
    kind_of,
    np,
    tensor_type,
)
from ..elementwise.arithmetic import Multiply, Subtract
from ..special.quantile import BLOCK, NormalQuantile, quantile, quantile_in_blocks
from .philox import HALF, fractions, halves, stream_of, wide_product, words, words_at

__all__ = ["Draw", "Rejecting", "lengths_of"]


class Draw(Op, abstract=True):
    """Family: numbers of a known shape (attribute), or of the shape of a second input.

    A key with axes, as of a batch, draws for each: they come before those of the shape.
    """

    shape: tuple[Any, ...] | None
    dtype: DType
    differentiable = False
    flop_free = True
    shape_only: ClassVar[tuple[int, ...]] = (1,)

    def infer(self, seed: TensorType, like: TensorType | None = None) -> Types:
        if kind_of(seed.dtype) not in "iu":
            raise DTypeError(f"a seed is a scalar integer, got {seed!r}")
        if like is None:
            assert self.shape is not None
            return (tensor_type((*seed.shape, *self.shape), self.dtype),)
        return (tensor_type(like.shape, self.dtype),)

    def kernel(self, xp: Any, seed: Any, like: Any = None) -> Any:
        rank = xp.ndim(seed)
        shape = self.shape if like is None else tuple(like.shape)[rank:]
        assert shape is not None
        made = xp.asarray(self.numbers(xp, seed, math.prod(shape)), dtype=self.dtype)
        return made.reshape((*made.shape[:rank], *shape))

    def numbers(self, xp: Any, seed: Any, count: Any) -> Any:
        """For each seed so many numbers, (*seed.shape, count), in any dtype that holds them."""
        raise NotImplementedError

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (NO_GRAD,) * len(node.inputs)

    def batch(self, batch: Any) -> Any:
        """One key for each example."""
        return batch.build(self, *batch.every())

    @property
    def stream(self) -> int:
        """Where its words are."""
        return stream_of(self.__dict__.get("name") or self.type)

    @property
    def _narrow(self) -> bool:
        return 8 * self.dtype.itemsize <= HALF

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for dtype in ("float64", "float32"):
            yield cls((2, 3), as_dtype(dtype)), [np.array(7)]
        yield cls((), as_dtype("float32")), [np.array(-7)]
        yield cls((0, 2), as_dtype("float64")), [np.array(2**63 - 1)]
        yield cls((3,), as_dtype("float64")), [np.array([7, 8])]
        yield cls(None, as_dtype("float64")), [np.array(7), rng.normal(size=(2, 3))]


class RandomBits(Draw):
    """Words of Philox: of 64 bits, or the halves of them. Gradient: none, the result is integer.

    name  of the stream; "": that of the op type
    """

    name: str = ""

    def numbers(self, xp: Any, seed: Any, count: Any) -> Any:
        made = (halves if self._narrow else words)(xp, seed, self.stream, count)
        return made.astype(self.dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((2, 3), as_dtype("uint64"), "a"), [np.array(7)]
        yield cls((9,), as_dtype("int64"), ""), [np.array([7, 8], np.uint64)]
        yield cls((2, 7), as_dtype("uint32"), ""), [np.array([-7, 8])]
        yield cls((0,), as_dtype("uint32"), ""), [np.array(7)]
        yield cls(None, as_dtype("uint32"), ""), [np.array(7), rng.normal(size=(2, 3))]


class RandomUniform(Draw):
    """Numbers in [0, 1), all equally likely: the first 53 bits of a word, or the first 24 of half a
    word, for float16 11, for bfloat16 8.

    Gradient: none.

    name  of the stream; "": that of the op type
    """

    name: str = ""

    def numbers(self, xp: Any, seed: Any, count: Any) -> Any:
        if not self._narrow:
            if xp is np:
                return fractions(seed, self.stream, count)
            made = words(xp, seed, self.stream, count)
            return (made >> np.uint64(11)).astype(np.int64).astype(np.float64) * 2.0**-53
        if xp is np and self.dtype.itemsize == 4:
            return fractions(seed, self.stream, count, np.float32)
        bits = limits_of(self.dtype).nmant + 1  # so that rounding never makes a 1
        made = halves(xp, seed, self.stream, count) >> np.uint32(HALF - bits)
        return made.astype(np.int32).astype(np.float32) * np.float32(2.0**-bits)


class RandomNormal(Draw):
    """Numbers of mean 0 and variance 1, normally distributed: the quantile of (k + 1/2) / 2**n,
    where k is the first n = 53 bits of a word, or n = 32 those of half a word.

    Gradient: none.

    name  of the stream; "": that of the op type
    """

    name: str = ""

    def numbers(self, xp: Any, seed: Any, count: Any) -> Any:
        if xp is np:
            return quantile_in_blocks(self._centred(seed, count))
        if self._narrow:
            made = halves(xp, seed, self.stream, count).astype(np.float64)
        else:
            made = words(xp, seed, self.stream, count) >> np.uint64(11)
            made = made.astype(np.int64).astype(np.float64)
        q = made * 2.0**-self._bits - self._middle
        return quantile(xp, q, 0.5 - xp.abs(q))

    def _centred(self, seed: Any, count: int) -> Any:
        """What the quantile is taken of, by NumPy, in one array."""
        if self._narrow:
            q = halves(np, seed, self.stream, count).astype(np.float64)
            q *= 2.0**-self._bits
        else:
            q = fractions(seed, self.stream, count)
        q -= self._middle
        return q

    @property
    def _bits(self) -> int:
        return HALF if self._narrow else 53

    @property
    def _middle(self) -> float:
        """What is taken from k / 2**n: without rounding, for n = 53 too."""
        return 0.5 - math.ldexp(0.5, -self._bits)

    def decompose(self, make: Any) -> Any:
        seeds = make.inputs[0]
        shape = make.node.outputs[0].shape[seeds.ndim :]
        f64 = as_dtype("float64")
        if self._narrow:
            made = make(RandomBits(shape, as_dtype("uint32"), self._name), seeds)
            made = make(Multiply(), make(Cast(f64), made), make.number(2.0**-HALF, f64))
        else:
            made = make(RandomUniform(shape, f64, self._name), seeds)
        q = make(Subtract(), made, make.number(self._middle, f64))
        z = make(NormalQuantile(), q)
        return z if self.dtype == f64 else make(Cast(self.dtype), z)

    @property
    def _name(self) -> str:
        return self.name or self.type


class Rejecting(Draw, abstract=True):
    """Family: numbers that are tried until they are accepted, each place with words of its own.

    The inputs behind the key are parameters, element by element, of the shape of what is drawn.
    Trial t of a place takes the words of that place from streams that are for trial t alone, and
    decides in float64, so that backends agree.

    per_trial  how many words a trial takes
    likes      how many inputs behind the key give a shape alone
    """

    per_trial = 1
    likes = 0

    def trial(self, xp: Any, drawn: tuple[Any, ...], *parameters: Any) -> tuple[Any, Any]:
        """Numbers from words, element by element, and which of them are accepted."""
        raise NotImplementedError

    def streams(self, attempt: Any) -> list[Any]:
        """Those of a trial."""
        base, count = stream_of(f"{self.type} {self.__dict__.get('name', '')}"), self.per_trial
        return [base + ((attempt * count + k) << 32) for k in range(count)]

    def tried(self, xp: Any, attempt: Any, seed: Any, count: Any, *parameters: Any) -> Any:
        """A trial for all places: numbers, and which are accepted."""
        drawn = tuple([words(xp, seed, s, count) for s in self.streams(attempt)])
        return self.trial(xp, drawn, *parameters)

    def kernel(self, xp: Any, seed: Any, *others: Any, numbers: Any = None) -> Any:
        rank = xp.ndim(seed)
        shape = self.shape if self.shape is not None else tuple(others[0].shape)[rank:]
        count = math.prod(shape)
        parameters = [p.reshape((*seed.shape, count)) for p in others[self.likes :]]
        made = (numbers or self.numbers)(xp, seed, count, *parameters)
        made = xp.asarray(made, dtype=self.dtype)
        return made.reshape((*made.shape[:rank], *shape))

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        """Trials of all places until every one is accepted, each with the first that was."""

        def numbers(xp: Any, seed: Any, count: Any, *parameters: Any) -> Any:
            def again(state: Any) -> Any:
                attempt, made, accepted = state
                trials, good = self.tried(xp, attempt, seed, count, *parameters)
                return attempt + np.uint64(1), xp.where(accepted, made, trials), accepted | good

            start = (np.uint64(1), *self.tried(xp, 0, seed, count, *parameters))
            return xp.while_loop(lambda state: ~xp.all(state[2]), again, start)[1]

        return to.traced(lambda xp, *ts: self.kernel(xp, *ts, numbers=numbers), *xs)

    def numbers(self, xp: Any, seed: Any, count: Any, *parameters: Any) -> Any:
        """By NumPy: those that are not accepted are tried again. The JAX backend has its own."""
        made, accepted = self.tried(np, 0, seed, count, *parameters)
        left = np.flatnonzero(~accepted)
        return self.again(made.reshape(-1), left, seed, count, *parameters).reshape(made.shape)

    def again(self, made: Any, left: Any, seed: Any, count: Any, *parameters: Any) -> Any:
        """By NumPy, in place: the numbers with those at the places that are left tried anew."""
        seeds, flat = np.asarray(seed).reshape(-1), [p.reshape(-1) for p in parameters]
        attempt = 0
        while left.size:
            attempt += 1
            key, index = seeds[left // count], left % count
            drawn = tuple([words_at(np, key, s, index) for s in self.streams(attempt)])
            again, accepted = self.trial(np, drawn, *[p[left] for p in flat])
            made[left] = again
            left = left[~accepted]
        return made


class RandomIntegers(Rejecting):
    """Integers in [low, high), all equally likely: the high word of word * (high - low).

    Gradient: none, the result is integer.

    Where the low word is less than 2**64 % (high - low), another word is tried: so none is
    favoured [Lemire 2019, "Fast random integer generation in an interval"].
    """

    low: Any
    high: Any
    likes = 1

    def trial(self, xp: Any, drawn: tuple[Any, ...], *parameters: Any) -> tuple[Any, Any]:
        (word,) = drawn
        span = self.high - self.low
        if span == 2**64:
            offset, low = word, word
        else:
            offset, low = wide_product(word, span)
        start = np.uint64(self.low % 2**64)
        return (offset + start).astype(self._wide), low >= np.uint64(2**64 % span)

    def numbers(self, xp: Any, seed: Any, count: Any, *parameters: Any) -> Any:
        """By NumPy, in the memory of the words: written over them, block by block."""
        made = words(np, seed, self.streams(0)[0], count)
        flat, left = made.reshape(-1), []
        numbers = flat.view(self._wide)
        for start in range(0, flat.size, BLOCK):
            part = slice(start, start + BLOCK)
            numbers[part], accepted = self.trial(np, (flat[part],))
            if not accepted.all():
                left.append(np.flatnonzero(~accepted) + start)
        if left:
            self.again(numbers, np.concatenate(left), seed, count)
        return numbers.reshape(made.shape)

    @property
    def _wide(self) -> Any:
        return np.uint64 if kind_of(self.dtype) == "u" else np.int64

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((2, 3), as_dtype("int64"), 0, 5), [np.array(7)]
        yield cls((), as_dtype("int32"), -5, 5), [np.array(7)]
        yield cls((9,), as_dtype("int64"), -(2**63), 2**62 + 1), [np.array([7, 8])]
        yield cls((3,), as_dtype("uint64"), 0, 2**64), [np.array(7)]
        yield cls((2,), as_dtype("int64"), -(2**63), 2**63), [np.array([7, 8])]
        yield cls((2, 3), as_dtype("int16"), -3, 9), [np.array(7)]
        yield cls(None, as_dtype("uint8"), 0, 256), [np.array(7), rng.normal(size=(2,))]


class RandomPermutation(Draw):
    """The integers from 0 up to shape[0], each once: the order of as many words, smallest first.

    Gradient: none, the result is integer.
    """

    def kernel(self, xp: Any, seed: Any, like: Any = None) -> Any:
        count = like.shape[xp.ndim(seed)] if self.shape is None else self.shape[0]
        return xp.asarray(self.numbers(xp, seed, count), dtype=self.dtype)

    def infer(self, seed: TensorType, like: TensorType | None = None) -> Types:
        (t,) = super().infer(seed, like)
        rank = len(seed.shape)
        if len(t.shape) == rank:
            raise ShapeError(f"permutation of the first axis of {like!r}: it has none")
        return (tensor_type(t.shape[: rank + 1], t.dtype),)

    def numbers(self, xp: Any, seed: Any, count: Any) -> Any:
        made = words(xp, seed, self.stream, count)
        if xp is not np:
            return xp.argsort(made, axis=-1, stable=True)
        rows = made.reshape(np.size(seed), count)
        return np.array([_order(row) for row in rows], np.int64).reshape(made.shape)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((5,), as_dtype("int64")), [np.array(7)]
        yield cls((0,), as_dtype("int64")), [np.array([7, 8])]
        yield cls((3,), as_dtype("int64")), [np.array([7, 8])]
        yield cls(None, as_dtype("int64")), [np.array(7), rng.normal(size=(4,))]


def _order(row: Any) -> Any:
    """The stable order of words. Their places stand in their last bits while they are sorted; where
    the others do not tell two apart, once more with all of them."""
    bits = np.uint64(max(len(row) - 1, 0).bit_length())
    mask = np.uint64((1 << int(bits)) - 1)
    sortable = row & ~mask
    sortable |= np.arange(len(row), dtype=np.uint64)
    sortable.sort()
    if (sortable[1:] >> bits == sortable[:-1] >> bits).any():
        return np.argsort(row, kind="stable")
    sortable &= mask
    return sortable.view(np.int64)


def lengths_of(shape: Any) -> tuple[Any, ...]:
    """Lengths of what is drawn, which do not depend on values."""
    dims: tuple[Dim, ...] = shape.shape if isinstance(shape, Tensor) else as_shape(shape)
    if None in dims:
        raise ShapeError(
            f"random numbers of shape {dims}: give ints and lengths, or a tensor of the shape that "
            "is wanted"
        )
    return dims
