"""Functions with arguments for axes, called at random, beside NumPy's of the same name."""

import numpy as np
import pytest

import graphgrad as gg

REFUSED = (gg.GraphGradError, ValueError, TypeError, IndexError)


class Draws:
    """Random arguments: now and then of axes that are not there, or named twice."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def shape(self, least=0, most=4):
        lengths = self.rng.choice([1, 2, 3, 2, 3], self.rng.integers(least, most + 1))
        return tuple(lengths.tolist())

    def array(self, shape):
        return self.rng.normal(size=shape)

    def axis(self, rank):
        reach = rank + (self.rng.random() < 0.03)
        return int(self.rng.integers(-reach, max(reach, -reach + 1)))

    def axes(self, rank, count=None):
        if count is None:
            count = int(self.rng.integers(rank + 1))
        if self.rng.random() < 0.05:
            return [self.axis(rank) for _ in range(count)]
        picked = self.rng.permutation(rank)[:count].tolist()
        return [a - rank if self.rng.random() < 0.3 else a for a in picked]

    def one_of(self, *choices):
        return choices[self.rng.integers(len(choices))]


def tensorsolve(draw):
    """axes of a that, moved to its end, are the axes of the solution."""
    last = draw.shape(1, 2)
    size = int(np.prod(last))
    first = draw.one_of(last, (size,), (1, size), last[::-1])
    whole, rank = np.arange(len(first) + len(last)), len(first) + len(last)
    places = draw.rng.permutation(rank)[: len(last)].tolist()
    rest = [a for a in whole if a not in places]
    a = np.transpose(draw.array((*first, *last)), np.argsort([*rest, *places]))
    return (
        "linalg.tensorsolve",
        [a, draw.array(first)],
        {"axes": draw.one_of(places, tuple(places))},
    )


def tensorinv(draw):
    first = draw.shape(1, 3)
    size = int(np.prod(first))
    last = draw.one_of(first, (size,), (1, size), first[::-1])
    shape = draw.one_of((*first, *last), (*last, *first))
    ind = len(first) if draw.rng.random() < 0.8 else int(draw.rng.integers(len(shape) + 1))
    return "linalg.tensorinv", [draw.array(shape)], {"ind": ind}


def tensordot(draw):
    a = draw.array(draw.shape())
    count = int(draw.rng.integers(a.ndim + 1))
    left = draw.axes(a.ndim, count)
    lengths = [a.shape[i % max(a.ndim, 1)] for i in left if -a.ndim <= i < a.ndim]
    others = draw.shape(0, 2)
    order = draw.rng.permutation(len(lengths) + len(others))
    b = draw.array(np.array([*lengths, *others], int)[order])
    right = [int(np.flatnonzero(order == i)[0]) for i in range(len(lengths))]
    right = [i - b.ndim if draw.rng.random() < 0.3 else i for i in right]
    pair = (left[0], right[0]) if count == 1 == len(right) else (tuple(left), right)
    axes = draw.one_of((left, right), [left, right], pair, count, int(draw.rng.integers(3)))
    return "tensordot", [a, b], {"axes": axes}


def norm(draw):
    x = draw.array(draw.shape(1))
    axis = draw.one_of(None, draw.axis(x.ndim), tuple(draw.axes(x.ndim, min(2, x.ndim))))
    order = draw.one_of(None, 1, 2, -2, np.inf, -np.inf, "fro", "nuc", 3)
    return "linalg.norm", [x], {"axis": axis, "ord": order, "keepdims": draw.one_of(True, False)}


def vector_norm(draw):
    x = draw.array(draw.shape(1))
    axis = draw.one_of(None, draw.axis(x.ndim), tuple(draw.axes(x.ndim)))
    order = draw.one_of(1, 2, 3, np.inf, -np.inf)
    kwargs = {"axis": axis, "ord": order, "keepdims": draw.one_of(True, False)}
    return "linalg.vector_norm", [x], kwargs


def moveaxis(draw):
    x = draw.array(draw.shape())
    count = int(draw.rng.integers(x.ndim + 1))
    source, place = draw.axes(x.ndim, count), draw.axes(x.ndim, count)
    if count == 1 and draw.rng.random() < 0.5:
        source, place = source[0], place[0]
    return "moveaxis", [x, source, place], {}


def of_two_axes(draw):
    x = draw.array(draw.shape(2))
    name = draw.one_of("swapaxes", "rollaxis", "trace", "diagonal")
    first, second = draw.axes(x.ndim, 2)
    if name in ("trace", "diagonal"):
        offset = int(draw.rng.integers(-3, 4))
        return name, [x], {"offset": offset, "axis1": first, "axis2": second}
    return name, [x, first, second if name == "swapaxes" else int(draw.rng.integers(-4, 5))], {}


def of_axes(draw):
    x = draw.array(draw.shape(1))
    axes = tuple(draw.axes(x.ndim))
    return draw.one_of(
        ("flip", [x], {"axis": draw.one_of(None, axes, draw.axis(x.ndim))}),
        ("transpose", [x, tuple(draw.axes(x.ndim, x.ndim))], {}),
        ("rot90", [x, draw.one_of(-1, 0, 1, 2, 3, 5)], {"axes": draw.axes(x.ndim, min(2, x.ndim))}),
        ("roll", [x, draw.one_of(1, -2, 5)], {"axis": draw.one_of(None, axes, draw.axis(x.ndim))}),
        ("expand_dims", [x, tuple(draw.axes(x.ndim + len(axes), len(axes)))], {}),
        ("sum", [x], {"axis": axes, "keepdims": draw.one_of(True, False)}),
        ("diff", [x], {"axis": draw.axis(x.ndim), "n": draw.one_of(0, 1, 2)}),
        ("linalg.vecdot", [x, x], {"axis": draw.axis(x.ndim)}),
    )


def cross(draw):
    batch = draw.shape(0, 2)
    places = [int(draw.rng.integers(len(batch) + 1)) for _ in range(3)]
    a, b = (draw.array((*batch[:i], 3, *batch[i:])) for i in places[:2])
    named = dict(zip(("axisa", "axisb", "axisc"), places, strict=True))
    together = draw.rng.random() < 0.3
    kwargs = {"axis": places[0]} if together and places[0] == places[1] else named
    return "cross", [a, b], kwargs


CALLS = [
    tensorsolve,
    tensorinv,
    tensordot,
    norm,
    vector_norm,
    moveaxis,
    of_two_axes,
    of_axes,
    cross,
]


def said_of(arguments):
    return [a.shape if isinstance(a, np.ndarray) else a for a in arguments]


def named(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def called(module, name, arguments, kwargs):
    """The value, or the error, of a call."""
    try:
        with np.errstate(all="ignore"):
            return named(module, name)(*arguments, **kwargs)
    except (np.exceptions.AxisError, np.linalg.LinAlgError, *REFUSED) as error:
        return error


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.ci)])
def test_axes_mean_what_they_mean_in_numpy(first):
    wanted, inputs, feeds, outputs, wrong = [], [], [], [], []
    with gg.Graph():
        for seed in range(first, first + (100 if not first else 700)):
            draw = Draws(seed)
            for call in CALLS:
                name, arguments, kwargs = call(draw)
                said = f"{seed}: {name}({said_of(arguments)}, {kwargs})"
                want = called(np, name, arguments, kwargs)
                arrays = [a for a in arguments if isinstance(a, np.ndarray)]
                xs = [gg.placeholder(a.shape) for a in arrays]
                found = called(gg, name, [*xs, *arguments[len(xs) :]], kwargs)
                refused = isinstance(found, Exception)
                if refused != isinstance(want, Exception):
                    shapes = (repr(found), np.shape(want)) if refused else (found.shape, repr(want))
                    wrong.append(f"{said}: {shapes[0]}, NumPy {shapes[1]}")
                if not refused and not isinstance(want, Exception):
                    wanted.append((said, want))
                    outputs.append(found)
                    inputs += xs
                    feeds += arrays
        for got, (said, want) in zip(gg.compile(inputs, outputs)(*feeds), wanted, strict=True):
            if got.shape != np.shape(want) or not np.allclose(got, want, equal_nan=True):
                wrong.append(f"{said}: other numbers")
    assert not wrong, "\n".join(wrong)
