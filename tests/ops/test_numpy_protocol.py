"""NumPy functions, Python operators and methods on tensors."""

import inspect
import operator

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops import older_numpy
from graphgrad.ops.protocols import numpy_protocol as protocol

A = np.array([[0.3, -1.2, 2.5], [0.0, 1.0, -0.5]])
SQUARE = np.array([[2.0, 0.5, 0.0], [0.5, 3.0, 1.0], [0.0, 1.0, 4.0]])

EXPRESSIONS = {
    "exp": lambda x: np.exp(x),
    "maximum": lambda x: np.maximum(x, 0),
    "sign": lambda x: np.sign(x),
    "matmul": lambda x: np.matmul(x, SQUARE),
    "matmul array first": lambda x: SQUARE @ x.T,
    "array times": lambda x: np.ones(3) * x,
    "scalar times": lambda x: np.float32(2) * x,
    "array equals": lambda x: np.asarray([0.3, 1, 2]) == x,
    "array power": lambda x: np.array(2.0) ** x,
    "scalar less": lambda x: np.int64(0) < x,
    "floor_divide": lambda x: np.floor_divide(x, 0.7),
    "remainder": lambda x: np.remainder(x, 0.7),
    "arctan2": lambda x: np.arctan2(x, 2.0),
    "logaddexp": lambda x: np.logaddexp(x, 1.0),
    "isnan": lambda x: np.isnan(x),
    "logical_and": lambda x: np.logical_and(x, x > 0),
    "invert": lambda x: np.invert(x > 0),
    "sum": lambda x: np.sum(x, axis=0),
    "sum by place": lambda x: np.sum(x, 0, None, None, True),
    "mean": lambda x: np.mean(x, axis=1, keepdims=True),
    "max": lambda x: np.max(x, axis=1),
    "any": lambda x: np.any(x > 2, axis=0),
    "argmax": lambda x: np.argmax(x, axis=1),
    "var": lambda x: np.var(x, axis=1, ddof=1),
    "std": lambda x: np.std(x),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "where": lambda x: np.where(x > 0, x, 0),
    "where array": lambda x: np.where(A > 0, x, -x),
    "concatenate": lambda x: np.concatenate([x, x]),
    "concatenate axis": lambda x: np.concatenate((x, np.ones((2, 1))), axis=1),
    "stack": lambda x: np.stack([x, x], axis=1),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "clip": lambda x: np.clip(x, 0, 1),
    "clip names": lambda x: np.clip(x, a_min=0, a_max=None),
    "clip new names": lambda x: np.clip(x, max=0.5),
    "norm": lambda x: np.linalg.norm(x),
    "norm axis": lambda x: np.linalg.norm(x, axis=1),
    "inv": lambda x: np.linalg.inv(x @ x.T),
    "full_like": lambda x: np.full_like(x, 2),
    "zeros_like": lambda x: np.zeros_like(x),
    "ones_like": lambda x: np.ones_like(x),
    "matrix_transpose": lambda x: np.matrix_transpose(x),
    "transpose": lambda x: np.transpose(x, (1, 0)),
    "reshape": lambda x: np.reshape(x, (3, 2)),
    "expand_dims": lambda x: np.expand_dims(x, 1),
    "squeeze": lambda x: np.squeeze(np.expand_dims(x, 1), axis=1),
    "broadcast_to": lambda x: np.broadcast_to(x, (4, 2, 3)),
    "pad": lambda x: np.pad(x, ((0, 1), (2, 0))),
    "flip": lambda x: np.flip(x, axis=1),
    "roll": lambda x: np.roll(x, 1, axis=1),
    "tile": lambda x: np.tile(x, (2, 1)),
    "repeat": lambda x: np.repeat(x, 2, axis=0),
    "take": lambda x: np.take(x, [2, 0], axis=1),
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([[0], [2]]), axis=1),
    "sort": lambda x: np.sort(x, axis=1),
    "argsort": lambda x: np.argsort(x, axis=1),
    "tensordot": lambda x: np.tensordot(x, SQUARE, axes=1),
    "outer": lambda x: np.outer(x[0], x[1]),
    "dot": lambda x: np.dot(x, SQUARE),
    "trace": lambda x: np.trace(x),
    "tril": lambda x: np.tril(x, -1),
    "triu": lambda x: np.triu(x, k=1),
    "round": lambda x: np.round(x, 1),
    "isclose": lambda x: np.isclose(x, 1.0),
    "nan_to_num": lambda x: np.nan_to_num(x),
    "astype": lambda x: np.astype(x, "float32"),
    "copy": lambda x: np.copy(x),
    "add.reduce": lambda x: np.add.reduce(x),
    "multiply.reduce": lambda x: np.multiply.reduce(x, axis=1, keepdims=True),
    "logical_and.reduce": lambda x: np.logical_and.reduce(x > 0, axis=None),
    "add.accumulate": lambda x: np.add.accumulate(x, axis=1),
    "subtract.outer": lambda x: np.subtract.outer(x[0], x),
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_numpy_expression_builds_nodes(expression):
    with gg.Graph():
        x = gg.placeholder(A.shape, name="x")
        y = expression(x)
    assert isinstance(y, gg.Tensor)
    expected = expression(A)
    found = gg.evaluate(y, {x: A})
    assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_several_results():
    with gg.Graph():
        x = gg.placeholder((2, 3), name="x")
        q, r = np.divmod(x, 0.7)
        left, right = np.split(x, 2)
    assert [q.node.type, r.node.type] == ["FloorDivide", "Remainder"]
    assert left.shape == right.shape == (1, 3)


def test_what_is_known_needs_no_node():
    with gg.Graph() as g:
        x = gg.placeholder(("n", 3), "float32")
        assert (np.shape(x), np.ndim(x), np.size(x, 1), np.size(x)) == (("n", 3), 2, 3, None)
        assert np.result_type(x, 1.0) == np.float32
        assert not np.iscomplexobj(x)
        assert len(g.nodes) == 1


def test_gradients_flow_through_numpy_functions():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        dx = gg.gradients(np.sum(np.exp(x) * np.ones(3)), x)
    np.testing.assert_allclose(gg.evaluate(dx, {x: A}), np.exp(A))


def test_nodes_know_the_users_line():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        assert all("test_numpy_protocol.py" in y.where for y in (np.exp(x), np.sum(x), 2.0 * x))


# --- what cannot be built ------------------------------------------------------------------------

REFUSED = {
    "out=": lambda x: np.add(x, 1, out=np.ones((2, 3))),
    "where=": lambda x: np.add(x, 1, where=np.ones(3, bool)),
    "dtype=": lambda x: np.equal(x, 1, dtype=bool),
    "does not take out=": lambda x: np.sum(x, 0, None, np.ones(3)),
    "reduce.* out=": lambda x: np.add.reduce(x, out=np.ones(3)),
    r"gg\.at": lambda x: np.add.at(x, [0], 1),
    "give x and y": lambda x: gg.where(x),
    "never change": lambda x: np.copyto(np.ones((2, 3)), x),
    r"gg\.save": lambda x: np.save("nowhere", x),
    r"gg\.stack": lambda x: np.array([x, x]),
    r"evaluate\(t, feeds\)": lambda x: np.asarray(x),
    "x:0": lambda x: np.vectorize(lambda v: v)(x),
    "built at test_numpy_protocol.py": lambda x: np.arange(x),
    "symbolic": lambda x: np.random.default_rng(0).normal(x),
    r"cannot take a tensor": lambda x: operator.iadd(np.ones((2, 3)), x),
    "in place": lambda x: operator.setitem(x, 0, 1.0),
    r"sort\)": lambda x: x.sort(),
    r"item\(\)": lambda x: x.item(),
    r"float\(\)": lambda x: float(x),
}


@pytest.mark.parametrize(("words", "expression"), REFUSED.items(), ids=REFUSED)
def test_refused_with_a_hint(words, expression):
    with gg.Graph():
        x = gg.placeholder((2, 3), name="x")
        with pytest.raises(gg.SymbolicError, match=words):
            expression(x)


def test_foreign_array_types_are_asked_first():
    class Other:
        def __array_function__(self, func, types, args, kwargs):
            return "other"

    with gg.Graph():
        x = gg.placeholder((2, 3))
        assert np.concatenate([x, Other()]) == "other"


def test_a_ufunc_computes_in_the_dtype_that_is_asked_for():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        y = np.add(x, 1.1, dtype="float32")
        np.testing.assert_array_equal(gg.evaluate(y, {x: A}), np.add(A, 1.1, dtype="float32"))
        with pytest.raises(gg.DTypeError, match="does not allow it"):
            np.add(x, 1, dtype="int64")


def test_harmless_arguments_are_taken():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        assert np.add(x, 1, out=None, where=True, casting="same_kind").node.type == "Add"
        assert np.sum(x, out=None, dtype=None).node.type == "ReduceSum"
        assert np.zeros_like(x, subok=True).shape == (2, 3)


# --- operators and methods -----------------------------------------------------------------------

BINARY = "add sub mul truediv floordiv mod pow eq ne lt le gt ge"


@pytest.mark.parametrize("name", BINARY.split())
def test_operators_both_ways(name):
    fn = getattr(operator, name)
    with gg.Graph():
        x = gg.placeholder((2, 3))
        ys = [fn(x, 2.5), fn(2.5, x), fn(x, x)]
    with np.errstate(all="ignore"):
        for y, expected in zip(ys, [fn(A, 2.5), fn(2.5, A), fn(A, A)], strict=True):
            np.testing.assert_allclose(gg.evaluate(y, {x: A}), expected, rtol=1e-14)


def test_in_place_operators_rebind():
    with gg.Graph():
        x = y = gg.placeholder((3,))
        y += 1
        y *= 2
    assert y is not x
    np.testing.assert_array_equal(gg.evaluate(y, {x: np.zeros(3)}), [2, 2, 2])


def test_methods_are_the_functions():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        pairs = [
            (x.sum(0), A.sum(0)),
            (x.mean(axis=1, keepdims=True), A.mean(axis=1, keepdims=True)),
            (x.max(), A.max()),
            (x.T, A.T),
            (x.mT, A.mT),
            (x.transpose(), A.T),
            (x.transpose(1, 0), A.T),
            (x.transpose((1, 0)), A.T),
            (x.reshape(3, 2), A.reshape(3, 2)),
            (x.reshape((3, -1)), A.reshape(3, 2)),
            (x.clip(0, 1), A.clip(0, 1)),
            (x.astype("int64"), A.astype("int64")),
            (x.ravel(), A.ravel()),
            (x.real, A),
            (x.argmax(axis=1), A.argmax(axis=1)),
            (round(x), A.round()),
            (abs(-x), abs(A)),
        ]
    for y, expected in pairs:
        np.testing.assert_allclose(gg.evaluate(y, {x: A}), expected)


def test_tensors_are_keys_by_identity():
    with gg.Graph():
        x, y = gg.placeholder((3,)), gg.placeholder((3,))
        assert {x: 1, y: 2}[x] == 1
        assert len({x, y, x}) == 2


# --- the namespace and the tables ---------------------------------------------------------------


def test_array_namespace():
    with gg.Graph():
        x = gg.placeholder((3,))
        assert x.__array_namespace__() is gg
        assert x.__array_namespace__(api_version="2024.12") is gg
        with pytest.raises(ValueError, match=r"1999\.1"):
            x.__array_namespace__(api_version="1999.1")


# Same name, other meaning or no tensor to take.
APART = {"save", "load", "select", "copy", "shape", "size", "ndim", "result_type", "can_cast"}


def test_every_function_that_numpy_also_has_is_in_the_tables():
    theirs = {
        name: fn
        for name, fn in vars(np).items()
        if isinstance(fn, np.ufunc) or hasattr(fn, "_implementation")
    }
    ours = {n for n, fn in vars(gg).items() if inspect.isfunction(fn)} - APART
    known = set(protocol.UFUNCS) | set(protocol.functions()) | set(protocol.ANSWERS)
    assert sorted(n for n in ours & set(theirs) if theirs[n] not in known) == []


def _told(fn):
    """The parameters of a function of NumPy, or None where it tells none."""
    try:
        return inspect.signature(fn).parameters.values()
    except ValueError:
        return None


@pytest.mark.skipif(_told(np.dot) is None, reason="NumPy tells them since 2.4")
def test_parameters_of_functions_in_c_are_those_that_newer_numpys_tell():
    def named(parameters):
        anonymous = inspect.Parameter.POSITIONAL_ONLY
        return [(p.kind, p.default, p.kind is anonymous or p.name) for p in parameters]

    for fn, written in older_numpy._IN_C.items():
        assert named(_told(fn)) == named(inspect.signature(written).parameters.values())
        assert older_numpy.numpy_signature(fn) == inspect.signature(fn)
