"""Random programs for comparing backends: a seed is a program, and arrays to feed it.

A program is built step by step from earlier values; each step picks an op and operands that fit.
Shapes are made of a few lengths, so that values broadcast against each other, are reduced to each
other's shapes and share loops. There are lengths of 0 and 1, odd ones, long ones, and no axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import graphgrad as gg
from graphgrad.ops import nn

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "int32", "int64", "uint32")
MOST = 40_000  # elements of a value
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.5, 1e15, -1e-30]


@dataclass
class Case:
    """Inputs, outputs and updates of a program in a graph of its own; arrays for the inputs."""

    graph: gg.Graph
    inputs: list[gg.Tensor]
    outputs: list[gg.Tensor]
    updates: dict[gg.Tensor, gg.Tensor]
    arrays: list[np.ndarray]


class Builder:
    """The values of a program so far, and the choices of how it goes on."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.lengths = [self._length() for _ in range(int(rng.integers(2, 4)))]
        self.values: list[gg.Tensor] = []

    def _length(self) -> int:
        kind = self.rng.choice(["short", "short", "short", "one", "none", "long", "power"])
        if kind == "long":
            return int(self.rng.integers(300, 1600))
        if kind == "power":
            return int(2 ** self.rng.integers(1, 7))
        return {"one": 1, "none": int(self.rng.random() < 0.7)}.get(
            kind, int(self.rng.integers(2, 41))
        )

    def flip(self, chance: float = 0.5) -> bool:
        """True, with this chance."""
        return bool(self.rng.random() < chance)

    def of(self, choices: Any) -> Any:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def shape(self) -> tuple[int, ...]:
        """A shape of the program's lengths."""
        rank = int(self.rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]))
        while True:
            shape = tuple(1 if self.flip(0.1) else self.of(self.lengths) for _ in range(rank))
            if np.prod(shape, dtype=int) <= MOST:
                return shape
            rank -= 1

    def pick(self, fits: Callable[[gg.Tensor], bool] = lambda t: True, kinds: str = "f") -> Any:
        """A value of these kinds of dtypes that fits, most often a late one; None without any."""
        found = [t for t in self.values if t.dtype.kind in kinds and fits(t)]
        if not found:
            return None
        return self.of(found[-5:] if self.flip(0.6) else found)

    def axes(self, x: gg.Tensor) -> Any:
        """None, an axis, or several."""
        if x.ndim == 0 or self.flip(0.2):
            return None
        if x.ndim > 1 and self.flip(0.3):
            count = int(self.rng.integers(1, x.ndim + 1))
            return tuple(self.rng.permutation(x.ndim)[:count].tolist())
        return -1 if self.flip() else int(self.rng.integers(x.ndim))


Step = Callable[[Builder], Any]


# --- element by element ---------------------------------------------------------------------------


def unary(b: Builder) -> Any:
    x = b.pick()
    fs: list[Any] = [
        gg.negative, gg.abs, gg.sin, gg.cos, gg.tanh, gg.square, gg.floor, gg.ceil, gg.sign,
        gg.atan, gg.sinh, gg.asinh, gg.expm1, gg.trunc, gg.rint, gg.exp, gg.reciprocal,
        gg.special.erf, nn.relu, nn.sigmoid, nn.softplus, nn.silu, nn.gelu, nn.leaky_relu, nn.elu,
        lambda x: gg.log(gg.abs(x) + 1.0), lambda x: gg.sqrt(gg.abs(x)), lambda x: x**2,
        lambda x: x**3, lambda x: x**-1, lambda x: x**0.5, lambda x: gg.log1p(x * x),
        lambda x: gg.log(1.0 + gg.exp(x)), lambda x: gg.exp(x) - 1.0, gg.log, gg.sqrt,
    ]  # fmt: skip
    return b.of(fs)(x)


def with_a_number(b: Builder) -> Any:
    x = b.pick(kinds="fiu")
    numbers = [0, 1, 2, 3, 5] if x.dtype.kind == "u" else [0, 1, -1, 2, -3, 7]
    if x.dtype.kind == "f":
        numbers += [0.5, -0.0, 1e-3, float("inf")]
    c = b.of(numbers)
    fs: list[Any] = [
        lambda: x * c, lambda: x + c, lambda: x - c, lambda: c - x, lambda: gg.maximum(x, c),
        lambda: gg.minimum(c, x), lambda: gg.where(x > c, x, c), lambda: gg.clip(x, 0, 2),
    ]  # fmt: skip
    if x.dtype.kind == "f":
        fs += [lambda: x / c, lambda: c / x, lambda: gg.copysign(x, c)]
    return b.of(fs)()


def beside(b: Builder, x: gg.Tensor, kinds: str) -> Any:
    """Another value that broadcasts together with x."""

    def fits(t: gg.Tensor) -> bool:
        try:
            return bool(np.prod(np.broadcast_shapes(t.shape, x.shape), dtype=int) <= MOST)
        except ValueError:
            return False

    return b.pick(fits, kinds)


def binary(b: Builder) -> Any:
    x = b.pick()
    y = x if b.flip(0.15) else beside(b, x, "f")
    fs: list[Any] = [
        gg.add, gg.add, gg.subtract, gg.multiply, gg.multiply, gg.divide, gg.maximum, gg.minimum,
        gg.hypot, gg.logaddexp, gg.copysign, lambda x, y: gg.where(x < y, x, y), gg.fmin,
        lambda x, y: x / (1.0 + y * y), gg.atan2, gg.special.xlogy,
        lambda x, y: gg.abs(x) ** y, lambda x, y: gg.remainder(x, gg.abs(y) + 1.0),
    ]  # fmt: skip
    return b.of(fs)(x, y)


def of_integers(b: Builder) -> Any:
    x = b.pick(kinds="iu")
    if x is None:
        return None
    y = beside(b, x, "iu")
    if x.dtype != y.dtype:
        return gg.cast(x, y.dtype) + y
    fs = [
        gg.add, gg.subtract, gg.multiply, gg.floor_divide, gg.remainder, gg.maximum, gg.minimum,
        gg.bitwise_and, gg.bitwise_xor, gg.bitwise_or, gg.fmod,
        lambda x, y: gg.bitwise_right_shift(x, y & 7),
        lambda x, y: gg.bitwise_left_shift(x, y & 3), lambda x, y: gg.abs(x) - gg.sign(y),
    ]  # fmt: skip
    return b.of(fs)(x, y)


def compared(b: Builder) -> Any:
    x = b.pick(kinds="fiu")
    y = beside(b, x, x.dtype.kind)
    fs = [gg.less, gg.less_equal, gg.greater, gg.greater_equal, gg.equal, gg.not_equal]
    made = b.of(fs)(x, y)
    other = beside(b, made, "b")
    if other is not None and b.flip():
        join = [gg.logical_and, gg.logical_or, gg.logical_xor]
        return b.of(join)(made, gg.logical_not(other) if b.flip(0.3) else other)
    return made


def tested(b: Builder) -> Any:
    return b.of([gg.isnan, gg.isinf, gg.isfinite, gg.signbit])(b.pick())


def chosen(b: Builder) -> Any:
    condition = b.pick(kinds="b")
    if condition is None:
        return compared(b)
    x = beside(b, condition, "fiu")
    if x is None:
        return None
    y = beside(b, gg.where(condition, x, x), x.dtype.kind)
    return gg.where(condition, x, x if y is None else y)


def cast(b: Builder) -> Any:
    x = b.pick(kinds="fiub")
    to = b.of([*FLOATS, *FLOATS, *INTEGERS, "bool"])
    if (
        x.dtype.kind == "f" and np.dtype(to).kind in "iu"
    ):  # what a float beyond the limits is cast to,
        x = gg.clip(gg.where(gg.isnan(x), 0, x), 0, 100)  # nobody promises
    return gg.cast(x, to)


# --- shapes ---------------------------------------------------------------------------------------


def viewed(b: Builder) -> Any:
    x = b.pick(kinds="fiub")
    how = b.rng.integers(7)
    if how == 6:  # what may return its input
        fs: list[Any] = [
            gg.identity, lambda x: gg.reshape(x, x.shape), lambda x: gg.broadcast_to(x, x.shape),
            lambda x: gg.cast(x, x.dtype), lambda x: x[...], gg.real,
        ]  # fmt: skip
        return b.of(fs)(x)
    if how == 0:
        return gg.transpose(x, b.rng.permutation(x.ndim).tolist())
    if how == 1:
        return gg.expand_dims(x, int(b.rng.integers(x.ndim + 1)))
    if how == 2:
        return gg.squeeze(x)
    if how == 3:
        return gg.broadcast_to(x, (b.of(b.lengths), *x.shape))
    if how == 4:
        return gg.reshape(x, x.shape[::-1] if b.flip() else (-1,) if x.size else x.shape)
    if x.ndim < 2:
        return gg.flip(x)
    return gg.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def cut(b: Builder) -> Any:
    x = b.pick(lambda t: t.ndim > 0 and t.shape[0] > 0, "fiub")
    if x is None:
        return None
    n = x.shape[0]
    i = int(b.rng.integers(n))
    keys: list[Any] = [
        i, i - n, slice(i, n), slice(0, i + 1), slice(None, None, -1), (None, i), slice(i, None, 2),
        (..., slice(None, None, -2)), (..., slice(0, 1)), (..., None), slice(n, None),
        slice(i, i),
    ]  # fmt: skip
    return x[b.of(keys)]


def pieces(b: Builder) -> Any:
    """Some pieces of an uneven split, among which there are empty ones."""
    x = b.pick(lambda t: t.ndim > 0, "fiub")
    if x is None:
        return None
    axis = int(b.rng.integers(x.ndim))
    n = x.shape[axis]
    ends = [0, n] if b.flip() else []
    places = sorted([*ends, *b.rng.integers(n + 1, size=b.rng.integers(1, 4)).tolist()])
    parts = gg.split(x, places, axis) if b.flip(0.7) else gg.array_split(x, len(places) + n, axis)
    for part in parts[:4]:
        if b.flip(0.3):
            keep(b, part)
    return gg.concat(parts[::-1], axis) if b.flip(0.3) else b.of(parts)


def joined(b: Builder) -> Any:
    x = b.pick(lambda t: t.ndim > 0, "fiu")
    if x is None:
        return None
    y = b.pick(lambda t: t.shape == x.shape and t.dtype == x.dtype, "fiu")
    axis = int(b.rng.integers(x.ndim))
    how = b.rng.integers(5)
    if how == 0:
        return gg.concat([x, y, x] if b.flip(0.3) else [x, y], axis)
    if how == 1:
        return gg.stack([x, y], axis)
    if how == 2 and x.shape[axis] > 1:
        return gg.concat(gg.split(x, [x.shape[axis] // 2], axis)[:: b.of([1, -1])], axis)
    return gg.pad(x, [(1, 0)] * x.ndim) if how == 3 else gg.roll(x, 1, axis)


def places_in(b: Builder, n: int, shape: Any = None) -> Any:
    """Indices of an axis of n, of this shape if one is given: known before, or computed."""
    if shape is None:
        found = b.pick(lambda t: t.ndim <= 2 and 0 < (t.size or 0) < 200, "iu")
        if found is not None and b.flip(0.6):
            return gg.remainder(gg.cast(found, "int64"), n)
        shape = b.of([(), (1,), (3,), (7,), (2, 17)])
    if b.flip(0.1):
        return gg.full(shape, int(b.rng.integers(-n, n)), dtype="int64")
    places = b.rng.integers(-n, n, size=shape)
    return gg.constant(places.astype(b.of(["int64", "int32", "int16"])))


def gathered(b: Builder) -> Any:
    x = b.pick(lambda t: t.ndim > 0 and 0 not in t.shape, "fiu")
    if x is None:
        return None
    axis = int(b.rng.integers(x.ndim))
    how = b.rng.integers(4)
    if how == 0:
        return gg.take_along_axis(x, places_in(b, x.shape[axis], x.shape), axis=axis)
    if how == 1 and x.ndim > 1:
        return x[key_of(b, x)]
    return gg.take(x, places_in(b, x.shape[axis]), axis)


def key_of(b: Builder, x: Any) -> Any:
    """Indices for some axes of x; slices, integers and new axes for others."""
    shape = b.of([(), (5,), (3, 1)])
    key: list[Any] = []
    for n in x.shape[: int(b.rng.integers(1, x.ndim + 1))]:
        how = b.rng.integers(5)
        if how < 3:
            key.append(places_in(b, n, shape))
        else:
            key.append(slice(None, None, b.of([1, 2, -1])) if how == 3 else int(b.rng.integers(n)))
        if b.flip(0.1):
            key.append(None)
    return tuple(key)


def scattered(b: Builder) -> Any:
    x = b.pick(lambda t: t.ndim > 0 and 0 not in t.shape)
    if x is None:
        return None
    if x.ndim > 1 and b.flip(0.4):
        key = key_of(b, x)
        return gg.add_at(x, key, gg.tanh(x[key]))
    axis = int(b.rng.integers(x.ndim))
    places = places_in(b, x.shape[axis])
    return gg.scatter_add(x, places, gg.take(x, places, axis) * 0.5, axis)


# --- reductions and rows --------------------------------------------------------------------------


def reduced(b: Builder) -> Any:
    x = b.pick()
    axis, keep = b.axes(x), b.flip(0.4)
    if 0 in x.shape:
        return b.of([gg.sum, gg.prod])(x, axis, keepdims=keep)
    fs: list[Any] = [gg.sum, gg.sum, gg.sum, gg.mean, gg.mean, gg.max, gg.min, gg.logsumexp, gg.var]
    if (x.size or 0) < 64:
        fs.append(gg.prod)
    return b.of(fs)(x, axis, keepdims=keep)


def reduced_exactly(b: Builder) -> Any:
    x = b.pick(kinds="iub")
    if x is None:
        return None
    axis, keep = b.axes(x), b.flip(0.4)
    fs: list[Any] = [gg.sum, gg.any, gg.all, gg.count_nonzero]
    if 0 not in x.shape and x.dtype.kind != "b":
        fs += [gg.max, gg.min]
    return b.of(fs)(x, axis, keepdims=keep)


def found_at(b: Builder) -> Any:
    x = b.pick(lambda t: 0 not in t.shape)
    if x is None:
        return None
    axis = int(b.rng.integers(x.ndim)) if x.ndim else None
    return b.of([gg.argmax, gg.argmin])(x, axis)


def row(b: Builder) -> Any:
    """What goes over rows several times."""
    x = b.pick(lambda t: t.ndim > 0 and 0 not in t.shape)
    if x is None:
        return None
    axis = -1 if b.flip(0.7) else int(b.rng.integers(x.ndim))

    def norm(x: gg.Tensor) -> gg.Tensor:
        centred = x - gg.mean(x, axis=axis, keepdims=True)
        return centred / gg.sqrt(gg.mean(centred * centred, axis=axis, keepdims=True) + 0.1)

    fs: list[Any] = [
        lambda x: nn.softmax(x, axis), lambda x: nn.log_softmax(x, axis), norm,
        lambda x: x - gg.max(x, axis=axis, keepdims=True), lambda x: gg.cumsum(x, axis),
        lambda x: x / (1.0 + gg.sum(gg.abs(x), axis=axis, keepdims=True)),
        lambda x: gg.sum(x, axis=axis, keepdims=True) * x + gg.sum(x),
    ]  # fmt: skip
    return b.of(fs)(x)


def loss(b: Builder) -> Any:
    x = b.pick(lambda t: t.ndim > 0 and 0 not in t.shape)
    if x is None:
        return None
    if b.flip():
        return nn.cross_entropy(x, nn.softmax(x * 0.5))
    labels = b.rng.integers(0, x.shape[-1], size=x.shape[:-1])
    if b.flip():
        return nn.cross_entropy(x, gg.constant(labels))
    return x * nn.one_hot(gg.constant(labels), x.shape[-1], x.dtype)


# --- products -------------------------------------------------------------------------------------


def product(b: Builder) -> Any:
    x = b.pick(lambda t: t.ndim > 0)
    if x is None:
        return None

    def fits(t: gg.Tensor) -> bool:
        if t.ndim == 0 or t.shape[-2 if t.ndim > 1 else -1] != x.shape[-1]:
            return False
        try:
            stack = np.broadcast_shapes(t.shape[:-2], x.shape[:-2])
        except ValueError:
            return False
        return bool(np.prod((*stack, *x.shape[-2:-1], *t.shape[-1:]), dtype=int) <= MOST)

    y = b.pick(fits)
    if y is not None:
        return x @ y
    if x.ndim < 2 or np.prod((*x.shape[:-1], x.shape[-2]), dtype=int) > MOST:
        return gg.sum(x * x)
    return x @ gg.matrix_transpose(x)


def windowed(b: Builder) -> Any:
    x = b.pick(lambda t: t.ndim == 4 and min(t.shape) > 0)
    if x is None or min(x.shape[1:3]) < 3:
        return None
    if b.flip():
        return b.of([nn.max_pool, nn.avg_pool])(x, int(b.rng.integers(2, 4)))
    channels = x.shape[-1]
    w = b.rng.normal(size=(b.of([1, 3]), b.of([1, 2, 3]), channels, int(b.rng.integers(1, 6))))
    options: dict[str, Any] = {"padding": b.of(["SAME", "VALID"]), "strides": b.of([1, 1, 2])}
    return nn.conv(x, gg.constant(w.astype(x.dtype)), **options)


# --- what has an inside ---------------------------------------------------------------------------


def branched(b: Builder) -> Any:
    x = b.pick()
    y = b.pick(lambda t: t.dtype == x.dtype)
    test = gg.sum(x) > gg.sum(y) if b.flip() else gg.any(y > 0.5)
    return gg.cond(test, lambda: gg.sin(x) + x * 2.0, lambda: x * gg.sum(y * 0.5))


def overridden(b: Builder) -> Any:
    """A few steps within a region."""

    def scaled(site: Any, *dys: Any) -> Any:
        return [dx if dx is gg.NO_GRAD else dx * 0.5 + gg.tanh(dx) for dx in site.default(*dys)]

    with gg.override_gradient(scaled, allow_empty=True):
        for _ in range(int(b.rng.integers(1, 5))):
            made = b.of([unary, binary, with_a_number, reduced, row, product])(b)
            keep(b, made)
    return made


STEPS: list[tuple[int, Step]] = [
    (6, unary), (5, with_a_number), (8, binary), (2, of_integers), (2, compared), (1, tested),
    (3, chosen), (2, cast), (5, viewed), (4, cut), (3, pieces), (2, joined), (3, gathered),
    (1, scattered), (6, reduced), (2, reduced_exactly), (1, found_at), (4, row), (1, loss),
    (3, product), (2, windowed), (1, branched), (1, overridden),
]  # fmt: skip
CHANCES = np.array([weight for weight, _ in STEPS], float) / sum(weight for weight, _ in STEPS)


def keep(b: Builder, made: Any) -> None:
    """Add what a step made to the values, unless it is too big."""
    if made is not None and made.ndim < 5 and (made.size or 0) <= MOST:
        b.values.append(made)


# --- programs -------------------------------------------------------------------------------------


def random_case(seed: int) -> Case:
    """The program of a seed, and arrays for its inputs."""
    rng = np.random.default_rng(seed)
    with gg.Graph() as graph:
        b = Builder(rng)
        xs = [gg.placeholder(b.shape(), _dtype(b), name=f"x{i}") for i in range(rng.integers(1, 5))]
        xs.append(gg.placeholder(b.shape(), b.of(FLOATS), name="x"))
        b.values += xs
        states = [gg.variable(array(b, b.shape(), b.of(FLOATS))) for _ in range(rng.integers(3))]
        b.values += states
        steps = int(rng.integers(3, 25))
        for _ in range(steps):
            keep(b, STEPS[int(rng.choice(len(STEPS), p=CHANCES))][1](b))
        made = b.values[len(xs) + len(states) :]
        outputs = [b.of(b.values) for _ in range(rng.integers(1, 4))] + made[-2:]
        outputs += _derivatives(b, xs + states, made)
        updates = {s: _fitted(b, s) for s in states if b.flip(0.7)}
        if b.flip(0.2):
            outputs.append(outputs[0])
    arrays = [array(b, x.shape, x.dtype) for x in xs]
    return Case(graph, xs, outputs, updates, arrays)


def _dtype(b: Builder) -> str:
    kind = b.rng.random()
    return str(b.of(FLOATS if kind < 0.75 else INTEGERS if kind < 0.93 else ["bool"]))


def _derivatives(b: Builder, xs: list[gg.Tensor], made: list[gg.Tensor]) -> list[gg.Tensor]:
    """First derivatives, and sometimes second ones."""
    ys = [y for y in made[-3:] if y.dtype.kind == "f"]
    wanted = [x for x in xs if x.dtype.kind == "f"]
    found: list[gg.Tensor] = []
    for _ in range(int(b.rng.choice([0, 1, 1, 1, 2]))):
        if not ys or not wanted:
            break
        ys = [y for y in gg.gradients([gg.sum(y) for y in ys], wanted) if y is not None]
        found += ys
    return found


def _fitted(b: Builder, state: gg.Tensor) -> gg.Tensor:
    """A new value for a variable."""
    same = b.pick(lambda t: t.shape == state.shape and t.dtype == state.dtype)
    return same if b.flip(0.2) else state * 0.9 - same * 0.1


def array(b: Builder, shape: Any, dtype: Any) -> np.ndarray:
    """Numbers of a dtype: ordinary ones, small whole ones, or some special ones among them."""
    dtype = np.dtype(dtype)
    rng = b.rng
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" else -5
        if b.flip(0.2):
            info = np.iinfo(dtype)
            return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return rng.integers(low, 6, shape).astype(dtype)
    how = rng.random()
    found = rng.normal(size=shape) if how < 0.7 else rng.integers(-3, 4, shape).astype(float)
    if how > 0.85:
        found = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), found)
    found = np.asarray(found).astype(dtype)
    if found.ndim and found.size and b.flip(0.1):
        return np.broadcast_to(found[:1] if b.flip() else found[..., :1], shape)
    return found
