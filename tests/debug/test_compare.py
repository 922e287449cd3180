"""compare: rounding is no difference, in any network; a wrong op or constant is one."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.debug import compare
from graphgrad.execute.kernels import Kernels, one_call_per_node

from .nets import ALL, cnn, mlp, sums, transformer

BACKENDS = [
    "numpy",
    *(name for name in ("llvm", "jax") if find_spec({"llvm": "llvmlite"}.get(name, name))),
]


class Wrong:
    """A backend that computes one op type wrongly."""

    name = "wrong"

    def __init__(self, op_type, spoil):
        self.kernels = Kernels(np)
        self.kernels.override(op_type)(lambda op: lambda *a: _mapped(spoil, op.kernel(np, *a)))

    def compile(self, program):
        return np.errstate(all="ignore")(one_call_per_node(program, self.kernels))


def _mapped(spoil, made):
    if isinstance(made, tuple):
        return tuple(_mapped(spoil, part) for part in made)
    made = np.array(made)
    return spoil(made).astype(made.dtype) if made.dtype.kind == "f" else made


def scaled(y):
    return y * (1 + 1e-4)


def one_entry(y):
    if y.size:
        y.flat[np.argmax(np.abs(y))] *= 1.01
    return y


def op_types(outputs):
    """The types of the ops that make floating numbers which are not all zero."""
    nodes = gg.compile(
        [n.outputs[0] for n in outputs[0].graph.nodes if n.type == "Placeholder"],
        outputs,
        optimize=False,
    ).program.nodes
    made = {type(n.op) for n in nodes if any(t.dtype.kind == "f" for t in n.outputs)}
    return sorted(made, key=lambda t: t.__name__)


class TestRoundingIsNoDifference:
    @pytest.mark.parametrize("net", ALL)
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_of_networks_in_float32(self, net, backend):
        outputs, feeds = ALL[net]()
        assert compare(outputs, feeds, backends=("numpy", backend)) is None

    def test_of_a_product_of_large_matrices(self):
        with gg.Graph():
            x = gg.placeholder((512, 512), "float32")
            y = x @ x
        array = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32)
        assert compare(y, {x: array}) is None

    def test_of_a_value_that_cancels(self):
        with gg.Graph():
            x = gg.placeholder((4096,), "float32")
            y = gg.sum(x) - gg.sum(gg.reshape(x, (64, 64)))
        array = np.random.default_rng(0).normal(size=4096).astype(np.float32)
        assert compare(y, {x: array}, backends=("numpy", "numpy"), optimize=(False, True)) is None


class TestAWrongOpIsFound:
    @pytest.mark.parametrize("make", [mlp, cnn, transformer])
    @pytest.mark.parametrize("spoil", [scaled, one_entry])
    def test_of_any_type_by_name(self, make, spoil):
        outputs, feeds = make()
        for op_type in op_types(outputs):
            wrong = Wrong(op_type, spoil)
            found = compare(outputs, feeds, backends=("numpy", wrong), optimize=(False, False))
            if op_type.__name__ == "Constant" and found is None:
                continue  # zeros, which no factor changes
            assert type(found.tensor.node.op) is op_type
            assert found.worst > found.allowed

    @pytest.mark.parametrize("kind", ["normal", "uniform"])
    def test_in_long_sums(self, kind):
        outputs, feeds = sums(100_000, kind)
        for t in outputs[2:4]:
            wrong = Wrong(type(t.node.op), lambda y: y * 1.01)
            found = compare(outputs, feeds, backends=("numpy", wrong), optimize=(False, False))
            assert type(found.tensor.node.op) is type(t.node.op)

    def test_a_wrong_constant(self):
        with gg.Graph():
            x = gg.placeholder((50,), "float32")
            y = gg.sum(gg.sin(x * 2.0 + 1.0))
        wrong = Wrong(type((y.graph.find("Constant*")[0]).op), lambda c: c * 1.0001)
        found = compare(
            y, {x: np.linspace(0, 1, 50)}, backends=("numpy", wrong), optimize=(False, False)
        )
        assert found.tensor.node.type == "Constant"

    def test_only_where_all_values_are_not_kept(self):
        class Hides:
            name = "hides"

            def compile(self, program):
                run = one_call_per_node(program, Kernels(np))
                spoiled = len(program.outputs) == 1
                return lambda *a: tuple(y * 1.001 if spoiled else y for y in run(*a))

        with gg.Graph():
            x = gg.placeholder((5,))
            y = gg.exp(gg.sin(x))
        found = compare(y, {x: np.ones(5)}, backends=("numpy", Hides()))
        assert found.alone
        assert found.tensor.node.type == "Sin"
        assert "only if it is fetched alone" in str(found)

    def test_large_integers_are_compared_exactly(self):
        with gg.Graph():
            x = gg.placeholder((2,), "int64")
            y = x + 1
        wrong = Wrong(type(y.node.op), lambda v: v)
        wrong.kernels.override(type(y.node.op))(lambda op: lambda a, b: a + b + 1)
        found = compare(y, {x: [2**60, 5]}, backends=("numpy", wrong), optimize=(False, False))
        assert found.tensor is y


class TestTolerance:
    def test_the_message_says_which(self):
        with gg.Graph():
            x = gg.placeholder((3,), name="x")
            y = gg.sin(x)
        wrong = ("numpy", Wrong(type(y.node.op), scaled))
        found = compare(y, {x: [1.0, 2.0, 3.0]}, backends=wrong)
        assert "the rounding error" in found.tolerance
        assert f"allowed there: {found.allowed:.3g}, {found.tolerance}" in str(found)
        found = compare(y, {x: [1.0, 2.0, 3.0]}, backends=wrong, tolerance=1e-6)
        assert "1e-06 (1 + |first|), as asked" in str(found)
        assert compare(y, {x: [1.0, 2.0, 3.0]}, backends=wrong, tolerance=1e-3) is None


class TestWhatIsCompared:
    def test_a_compiled_function_on_its_backend(self):
        with gg.Graph():
            x = gg.placeholder((3,), name="x")
            y = gg.sin(x)
        f = gg.compile(x, y, backend=Wrong(type(y.node.op), scaled))
        for feeds in ({x: np.ones(3)}, {"x": np.ones(3)}, (np.ones(3),)):
            assert compare(f, feeds).tensor is y
        assert compare(gg.compile(x, [y]), {x: np.ones(3)}) is None

    def test_a_function(self):
        f = gg.function(lambda a, b: {"c": a @ b["w"]})
        arguments = np.ones((3, 4), np.float32), {"w": np.ones((4, 5), np.float32)}
        assert compare(f, arguments) is None
        assert compare(f, list(arguments)) is None
        with pytest.raises(TypeError, match="arguments of a call, in a tuple"):
            compare(f, {"a": arguments[0]})

    def test_variables_that_are_fed(self):
        with gg.Graph():
            v = gg.variable(1.0)
            y = gg.sin(v)
        wrong = ("numpy", Wrong(type(y.node.op), scaled))
        assert compare(y, {v: 0.5}) is None
        assert compare(y, {v: 0.5}, backends=wrong).first == np.sin(0.5)
        assert compare(y, backends=wrong).first == np.sin(1.0)

    def test_numbers_drawn_at_random_are_not(self):
        with gg.Graph():
            y = gg.random.normal((1000,), seed=3) * 2.0
        for backend in BACKENDS:
            assert compare(y, backends=("numpy", backend)) is None

    def test_python_functions_run_no_more_than_twice(self):
        calls = []
        with gg.Graph():
            x = gg.placeholder((2,))
            y = gg.py_function(lambda a: calls.append(1) or a * 2.0, [gg.sin(x)], [x.type])
        assert compare(y + 1.0, {x: [1.0, 2.0]}, backends=("numpy", "numpy")) is None
        assert len(calls) <= 4  # all values kept, and the output alone


class TestSmall:
    def test_equal_executions(self):
        with gg.Graph():
            x = gg.placeholder((3,))
            y = gg.sum(gg.tanh(x) * 2.0)
            outputs = [y, *gg.gradients(y, [x])]
        assert compare(outputs, {x: [1.0, 2.0, 3.0]}) is None

    def test_names_the_first_node_that_differs(self):
        with gg.Graph():
            x = gg.placeholder((2,), name="x")
            h = gg.sin(gg.exp(x))
            y = gg.sum(h * 2.0)
        wrong = Wrong(type(h.node.op), lambda v: v + np.array([0.0, 1e-3]))
        found = compare(y, {x: [0.0, 1.0]}, backends=("numpy", wrong))
        assert found.tensor is h
        assert found.at == (1,)
        assert "Sin" in str(found)
        assert "test_compare.py" in str(found)

    def test_nan_and_inf_of_one_kind_are_equal(self):
        with gg.Graph():
            x = gg.placeholder((3,))
            y = gg.log(x)
        assert compare(y, {x: [-1.0, 0.0, 1.0]}) is None

    def test_takes_two_executions(self):
        with gg.Graph():
            x = gg.placeholder(())
            y = x + 1.0
        with pytest.raises(ValueError, match="two entries"):
            compare(y, {x: 1.0}, backends=("numpy",))
