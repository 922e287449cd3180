"""What a run refuses: the table of "A run raises ..." and "when run, ..." in the docstrings.

A new function with such a sentence adds a row. `test_contracts.py` tries each on every backend.
"""

import importlib.util
from typing import Any, NamedTuple

import numpy as np

import graphgrad as gg
from graphgrad import linalg, nn, rules

__all__ = ["ALL", "CONTRACTS", "Contract"]

ALL = ("numpy", "llvm", "jax")
LinAlgError = np.linalg.LinAlgError


class Contract(NamedTuple):
    """A function of tensors, and one of its arguments that a run refuses.

    name      the function, in words
    build     the function
    right     arrays that it takes
    place     which of them is replaced
    wrong     by what
    error     what a run raises then
    words     a part of its text
    backends  those that can run it at all
    types     of the placeholders; None: those of the arrays
    inside    whether it can stand in loops and under vmap
    """

    name: str
    build: Any
    right: tuple
    place: int
    wrong: Any
    error: type
    words: str
    backends: tuple = ALL
    types: tuple | None = None
    inside: bool = True

    def given(self, wrong):
        """The arrays of a call."""
        arrays = [np.asarray(a) for a in self.right]
        if wrong:
            arrays[self.place] = np.asarray(self.wrong, arrays[self.place].dtype)
        return arrays


X, V = np.arange(12.0).reshape(4, 3) + 1, np.arange(4.0) + 1
ROWS, COLUMNS = np.array([3, -4, 0]), np.array([0, 2, -3])
OUT = "out of bounds"
A = np.array([[2.0, 1.0], [1.0, 3.0]])
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
NO_INTEGER = "Integers to negative integer powers"
LOGS = np.log(np.full((3, 2, 4), 0.25))
CTC = (LOGS, [[1, 2], [3, 0]], [3, 2], [2, 1])


def of_labels(logs, *numbers):
    return nn.ctc_loss(logs, *numbers)


def counted_down(x, n):
    """x doubled, n times."""
    _, y = gg.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, 2.0 * c[1]), (n, x), max_trips=4)
    return y


def walked(x, i):
    """Where a walk from x[i] on ends, as each test and each step looks at x."""
    return gg.while_loop(lambda k: x[k] > 0, lambda k: k + gg.cast(x[k], "int64"), i)


def called(x):
    """1 / x by Python, for numbers above 0 alone."""

    def inverse(x):
        if (x < 0).any():
            raise ZeroDivisionError("mine")
        return 1 / x

    y = [(x.shape, x.dtype)]
    return gg.py_function(inverse, [x], y, lambda node, dy: -dy * node.outputs[0])


def cut(x):
    """What is above 0, as many as there are of x."""
    y = [(x.shape, x.dtype)]
    return gg.py_function(lambda x: x[x > 0], [x], y, lambda node, dy: dy * node.outputs[0])


def called_by_torch(x):
    """The same in torch."""

    def inverse(x):
        if (x < 0).any():
            raise ZeroDivisionError("mine")
        return 1 / x

    return gg.interop.from_torch(inverse, x, out_types=[(x.shape, x.dtype)])


CONTRACTS = [
    # indices
    Contract("x[i]", lambda x, i: x[i], (X, ROWS), 1, [3, 4, 0], IndexError, OUT),
    Contract("x[i], less than -N", lambda x, i: x[i], (X, ROWS), 1, [3, -5, 0], IndexError, OUT),
    Contract("x[i], one index", lambda x, i: x[i], (X, 3), 1, 4, IndexError, OUT),
    Contract(
        "x[i], uint8", lambda x, i: x[i], (X, ROWS[:1].astype("uint8")), 1, [200], IndexError, OUT
    ),
    Contract(
        "x[i], uint64",
        lambda x, i: x[i],
        (X, ROWS[:1].astype("uint64")),
        1,
        [2**64 - 1],
        IndexError,
        OUT,
    ),
    Contract("x[:, j]", lambda x, j: x[:, j], (X, COLUMNS), 1, [0, 3, 0], IndexError, OUT),
    Contract("x[i, j]", lambda x, i, j: x[i, j], (X, ROWS, COLUMNS), 2, [0, 3, 0], IndexError, OUT),
    Contract("take", lambda x, i: gg.take(x, i, axis=0), (X, ROWS), 1, [4, 0, 0], IndexError, OUT),
    Contract("take, flat", gg.take, (X, ROWS), 1, [12, 0, 0], IndexError, OUT),
    Contract("take_along_axis", gg.take_along_axis, (V, ROWS), 1, [0, 4, 0], IndexError, OUT),
    Contract(
        "scatter_add",
        lambda x, i, u: gg.scatter_add(x, i, u),
        (V, ROWS, V[:3]),
        1,
        [0, 4, 0],
        IndexError,
        OUT,
    ),
    Contract(
        "add_at",
        lambda x, i, u: gg.add_at(x, i, u),
        (V, ROWS, V[:3]),
        1,
        [9, 0, 0],
        IndexError,
        OUT,
    ),
    Contract("at.set", lambda x, i: gg.at(x)[i].set(7.0), (V, ROWS), 1, [0, 1, 4], IndexError, OUT),
    Contract(
        "at.add", lambda x, i: gg.at(x)[i].add(x[:3]), (V, ROWS), 1, [0, 1, 4], IndexError, OUT
    ),
    Contract(
        "at.multiply",
        lambda x, i: gg.at(x)[i].multiply(2.0),
        (V, ROWS),
        1,
        [0, 1, -5],
        IndexError,
        OUT,
    ),
    Contract("at.max", lambda x, i: gg.at(x)[i].max(2.0), (V, ROWS), 1, [0, 1, 4], IndexError, OUT),
    Contract("at.min", lambda x, i: gg.at(x)[i].min(2.0), (V, ROWS), 1, [0, 1, 4], IndexError, OUT),
    Contract("at.get", lambda x, i: gg.at(x)[i].get(), (V, ROWS), 1, [0, 1, 4], IndexError, OUT),
    Contract(
        "embedding", lambda i, w: nn.embedding(i, w), (ROWS, X), 0, [0, 4, 0], IndexError, OUT
    ),
    Contract(
        "embedding_bag",
        lambda i, w: nn.embedding_bag(i, w),
        (ROWS[None], X),
        0,
        [[0, 4, 0]],
        IndexError,
        OUT,
    ),
    Contract(
        "max_unpool",
        lambda x, i: nn.max_unpool(x, i, 4),
        (V[:2].reshape(1, 2, 1), [[[1], [3]]]),
        1,
        [[[1], [4]]],
        IndexError,
        OUT,
    ),
    Contract("ctc_loss, class", of_labels, CTC, 1, [[1, 4], [3, 0]], IndexError, OUT),
    Contract("ctc_loss, length", of_labels, CTC, 2, [3, 4], IndexError, OUT),
    Contract(
        "multilabel_margin_loss",
        nn.multilabel_margin_loss,
        (V, [0, 2, -1, 0]),
        1,
        [0, 4, -1, 0],
        IndexError,
        OUT,
    ),
    Contract(
        "choose",
        lambda i, x: gg.choose(i, [x, -x]),
        ([0, 1, 1, 0], V),
        0,
        [0, 2, 0, 0],
        IndexError,
        OUT,
    ),
    Contract(
        "choose, negative",
        lambda i, x: gg.choose(i, [x, -x]),
        ([0, 1, 1, 0], V),
        0,
        [0, -1, 0, 0],
        IndexError,
        OUT,
    ),
    Contract(
        "unravel_index",
        lambda i: gg.unravel_index(i, (2, 3))[1],
        ([5, 0],),
        0,
        [6, 0],
        IndexError,
        OUT,
    ),
    Contract(
        "ravel_multi_index",
        lambda i, j: gg.ravel_multi_index((i, j), (4, 3)),
        ([3, 0], [2, 0]),
        1,
        [3, 0],
        IndexError,
        OUT,
    ),
    Contract(
        "bincount",
        lambda i: gg.bincount(i, length=3),
        ([5, 0],),
        0,
        [5, -1],
        IndexError,
        "integers >= 0",
    ),
    Contract(
        "median of nothing",
        gg.median,
        (V,),
        0,
        np.zeros(0),
        IndexError,
        OUT,
        ALL,
        ((None,),),
        False,
    ),
    Contract("x[2]", lambda x: x[2], (V,), 0, [1.0], IndexError, OUT, ALL, ((None,),), False),
    Contract(
        "x[i, 2]",
        lambda x, i: x[i, 2],
        (X, ROWS),
        0,
        [[1.0]],
        IndexError,
        OUT,
        ALL,
        ((None, None), (3,)),
        False,
    ),
    Contract(
        "at.set, 2",
        lambda x: gg.at(x)[2].set(x[0]),
        (V,),
        0,
        [1.0],
        IndexError,
        OUT,
        ALL,
        ((None,),),
        False,
    ),
    # values
    Contract("power", gg.power, ([2, 3], [2, 0]), 1, [2, -1], ValueError, NO_INTEGER),
    Contract(
        "power, int8",
        gg.power,
        (np.int8([2, 3]), np.int8([2, 0])),
        1,
        [2, -1],
        ValueError,
        NO_INTEGER,
    ),
    Contract("inv", linalg.inv, (A,), 0, SINGULAR, LinAlgError, "Singular"),
    Contract("inv of a stack", linalg.inv, ([A, A],), 0, [A, SINGULAR], LinAlgError, "Singular"),
    Contract(
        "matrix_power",
        lambda x: linalg.matrix_power(x, -2),
        (A,),
        0,
        SINGULAR,
        LinAlgError,
        "Singular",
    ),
    Contract("cond", lambda x: linalg.cond(x, 1), (A,), 0, SINGULAR, LinAlgError, "Singular"),
    Contract(
        "tensorinv", lambda x: linalg.tensorinv(x, 1), (A,), 0, SINGULAR, LinAlgError, "Singular"
    ),
    Contract("solve", linalg.solve, (A, V[:2]), 0, SINGULAR, LinAlgError, "Singular"),
    Contract("tensorsolve", linalg.tensorsolve, (A, V[:2]), 0, SINGULAR, LinAlgError, "Singular"),
    Contract(
        "solve_triangular",
        linalg.solve_triangular,
        (A, V[:2]),
        0,
        [[1.0, 2.0], [0.0, 0.0]],
        LinAlgError,
        "Singular",
    ),
    Contract(
        "lu_solve",
        lambda x, y: linalg.lu_solve(linalg.lu_factor(x), y),
        (A, V[:2]),
        0,
        SINGULAR,
        LinAlgError,
        "Singular",
    ),
    Contract(
        "cho_solve",
        lambda x, y: linalg.cho_solve((x, True), y),
        (A, V[:2]),
        0,
        0 * A,
        LinAlgError,
        "Singular",
    ),
    Contract("cholesky", linalg.cholesky, (A,), 0, -A, LinAlgError, "positive definite"),
    Contract(
        "roots", gg.roots, ([1.0, -3.0, 2.0],), 0, [0.0, -3.0, 2.0], LinAlgError, "infs or NaNs"
    ),
    Contract(
        "linear_solve",
        lambda x, y: rules.linear_solve(lambda z: x @ z, y),
        (A, V[:2]),
        0,
        SINGULAR,
        LinAlgError,
        "Singular",
        inside=False,
    ),
    Contract(
        "root",
        lambda x: rules.root(lambda z: x * z - 2.0, 1.0),
        (2.0,),
        0,
        0.0,
        LinAlgError,
        "Singular",
        inside=False,
    ),
    Contract(
        "fixed_point",
        lambda x: rules.fixed_point(lambda z: x * z + 1.0, 0.0),
        (0.5,),
        0,
        -1.0,
        gg.ExecutionError,
        "converge",
        inside=False,
    ),
    # loops
    Contract("while_loop", counted_down, (2.0, 4), 1, 5, gg.ExecutionError, "max_trips=4"),
    Contract(
        "while_loop, its test", walked, ([1.0, 1.0, 0.0], 0), 0, [1.0, 2.0, 0.0], IndexError, OUT
    ),
    # functions of Python
    Contract("py_function", called, (V,), 0, -V, ZeroDivisionError, "mine"),
    Contract("py_function, its type", cut, (V,), 0, -V, gg.ExecutionError, r"float64\[0\]"),
    # lengths
    Contract(
        "x[mask]",
        lambda x, m: x[m],
        (V, V > 2),
        1,
        [True],
        IndexError,
        "mask",
        ALL[:2],
        ((None,), (None,)),
        False,
    ),
    Contract(
        "compress",
        lambda m, x: gg.compress(m, x),
        (V > 2, V),
        0,
        [False] * 4 + [True],
        IndexError,
        OUT,
        ALL[:2],
        ((None,), (None,)),
        False,
    ),
    Contract(
        "repeat",
        gg.repeat,
        (V[:3], ROWS + 4),
        1,
        [1, -1, 0],
        ValueError,
        "negative",
        ALL[:2],
        inside=False,
    ),
]

if importlib.util.find_spec("torch") is not None:
    CONTRACTS += [
        Contract("from_torch", called_by_torch, (V,), 0, -V, ZeroDivisionError, "mine"),
    ]
