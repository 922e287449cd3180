"""The JAX backend: the same kernels, 64 bits for the call only."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules
from graphgrad.base.errors import ExecutionError
from graphgrad.compiled import compile
from graphgrad.execute.kernels import one_call_per_node
from graphgrad.execute.loading import load_backend
from graphgrad.ir.graph import Graph
from graphgrad.ir.op import OP_TYPES, Op
from graphgrad.ir.program import Program
from graphgrad.ops import random
from graphgrad.ops.base import apply, constant
from graphgrad.ops.control import cond
from graphgrad.ops.elementwise.arithmetic import add
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.identities.sequencing import After
from graphgrad.ops.python_function import py_function
from graphgrad.ops.reduce.reductions import sum as reduce_sum
from graphgrad.ops.shape.reshaping import broadcast_like, reshape
from graphgrad.ops.sources import assign, placeholder, variable

from .. import opens

jax = pytest.importorskip("jax")


def test_float64_stays_and_the_process_is_left_alone():
    with Graph():
        x = placeholder((3,), name="x")
        y = exp(x) * constant(2.0)
    (value,) = load_backend("jax").compile(Program([x], [y]))(np.ones(3))
    assert type(value) is np.ndarray
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, 2 * np.e, rtol=1e-15)
    assert jax.numpy.ones(3).dtype == np.float32


def test_results_are_ones_own():
    with Graph():
        x = placeholder((2, 3), name="x")
        outputs = [x, reshape(x, (6,)), constant(np.ones(3)), exp(x), exp(x)]
    a = np.zeros((2, 3))
    values = load_backend("jax").compile(Program([x], outputs))(a)
    for v in values:
        v[...] = 7
    assert (a == 0).all()
    again = load_backend("jax").compile(Program([x], outputs))(a)
    assert (again[3] == 1).all()


def test_other_lengths_trace_again():
    with Graph():
        x = placeholder(("N",), name="x")
        f = compile(x, [reduce_sum(x), broadcast_like(1.0, x)], backend="jax")
    assert f(np.ones(3))[0] == 3
    assert f(np.ones(5))[0] == 5
    assert f(np.ones(5))[1].shape == (5,)


def test_variables_and_updates():
    g = Graph()
    with g:
        v = variable(0, name="v")
        f = compile([], assign(v, add(v, 1)), backend="jax")
    assert [int(f()) for _ in range(3)] == [1, 2, 3]
    assert g.state[v] == 3


def test_lengths_that_do_not_fit_are_the_error_of_every_backend_and_say_where():
    with Graph():
        x, y = placeholder((None,), name="x"), placeholder((None,), name="y")
        f = compile([x, y], add(x, y), backend="jax")
    with pytest.raises(gg.ShapeError, match="lengths 2 and 3") as error:
        f(np.ones(2), np.ones(3))
    assert any("test_jax_backend.py" in note for note in error.value.__notes__)


def test_random_numbers_are_those_of_numpy():
    with Graph():
        seed, x = placeholder((), "int64", name="seed"), placeholder((None,), name="x")
        outputs = [random.normal((3,), seed=seed), random.uniform((2, 2), seed=5), exp(x)]
        f, g = (compile([seed, x], outputs, backend=b) for b in ("jax", "numpy"))
    for a, b in zip(f(3, np.ones(2)), g(3, np.ones(2)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)
        assert a.dtype == b.dtype


def test_python_functions_run_on_the_host():
    seen = []

    def double(a):
        seen.append(a.dtype)
        return a * 2

    with Graph():
        x = placeholder((2,), name="x")
        f = compile(x, py_function(double, [x], [((2,), "float64")]), backend="jax")
        g = compile(x, py_function(double, [x], [((None,), "float64")]), backend="jax")
    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
    assert seen == [np.float64] * 2
    with pytest.raises(ExecutionError, match="known lengths"):
        g(np.ones(2))


def test_cond_is_traced():
    with Graph():
        p, x = placeholder((), "bool", name="p"), placeholder((2,), name="x")
        f = compile([p, x], cond(p, lambda: (exp(x), x), lambda: (x, x * 2.0)), backend="jax")
    for pred, wanted in [(True, (1, 0)), (False, (0, 0))]:
        for value, number in zip(f(pred, np.zeros(2)), wanted, strict=True):
            np.testing.assert_array_equal(value, [number, number])


def test_special_functions_are_those_of_jax():
    with Graph():
        x = placeholder((2,), name="x")
        f = compile(x, [apply(OP_TYPES["Erf"](), x), apply(OP_TYPES["Erfc"](), x)], backend="jax")
    y, z = f(np.array([0.0, 0.5]))
    np.testing.assert_allclose(y, [0, 0.5204998778130465], rtol=1e-14)
    np.testing.assert_allclose(z, 1 - y, rtol=1e-14)


def traced(inputs, outputs, array):
    """The outputs as JAX traces them, and as XLA compiles them."""
    with jax.enable_x64(True):
        run = one_call_per_node(Program(inputs, outputs), load_backend("jax").kernels)
        shown = str(jax.make_jaxpr(run)(array))
        return shown, jax.jit(run).lower(array).compile().as_text()


def test_what_is_to_be_computed_again_is_behind_a_barrier():
    """In branches too."""
    with Graph():
        x = placeholder((3,), name="x")
        again = exp(apply(After(), x, exp(x)))
        chosen = cond(reduce_sum(x) > 0.0, lambda: exp(apply(After(), x, exp(x))), lambda: x)
    for y in (again, chosen):
        shown, _ = traced([x], [y], np.ones(3))
        assert shown.count("optimization_barrier") == 1
    np.testing.assert_allclose(compile(x, again, backend="jax")(np.ones(3)), np.e, rtol=1e-15)


def test_xla_does_not_undo_a_recomputation():
    """Without the barrier it would find the two alike, and keep what is to be forgotten."""

    def block(x):
        return gg.sin(gg.exp(gg.sin(x)))

    counts = []
    for f in (block, rules.checkpoint(block)):
        with Graph():
            x = placeholder((64,), name="x")
            y = f(x)
            dx = gg.gradients(y, x)
        _, optimised = traced([x], [y, dx], np.ones(64))
        counts.append(optimised.count(" exponential("))
    assert counts[1] > counts[0] > 0


class Counted(Op):
    """y = x + how often it ran: of another package, with effects."""

    calls: int
    pure = False
    ran = np.zeros(2, int)

    def infer(self, x):
        return (x, x)[: self.calls]

    def kernel(self, xp, x):
        assert xp is np
        assert not x.flags.writeable
        self.ran[self.calls - 1] += 1
        return (x + self.ran[self.calls - 1],) * self.calls if self.calls > 1 else x + self.ran[0]

    def vjp(self, node, *dys):
        return (sum(dys),)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("shape", [(2,), ("N",)])
def test_an_op_of_ones_own_that_has_effects_runs_in_every_call(outputs, shape):
    Counted.ran[:] = 0
    with Graph():
        x = placeholder(shape, name="x")
        y = apply(Counted(outputs), x)
        f = compile(x, [y * 2, gg.gradients(y, x)], backend="jax")
    for call in (1, 2, 3):
        value, dx = f(np.zeros(2))
        np.testing.assert_array_equal(value, [2.0 * call] * 2)
        np.testing.assert_array_equal(dx, [1, 1])


def test_it_runs_in_the_branch_that_is_taken():
    Counted.ran[:] = 0
    with Graph():
        x = placeholder((), name="x")
        y = cond(x > 0, lambda: apply(Counted(1), x), lambda: x)
        f = compile(x, y, backend="jax")
    assert [float(f(v)) for v in (1.0, -1.0, 1.0, 1.0)] == [2.0, -1.0, 3.0, 4.0]


def test_a_kernel_of_ones_own_may_be_given_for_it():
    from_jax = load_backend("jax").kernels
    try:
        from_jax.override(Counted)(lambda op: lambda x: x + 100)
        with Graph():
            x = placeholder((2,), name="x")
            f = compile(x, apply(Counted(1), x), backend="jax")
        np.testing.assert_array_equal(f(np.zeros(2)), [100, 100])
    finally:
        del from_jax._overrides[Counted]


def test_ops_with_open_lengths_run_and_differentiate_in_bodies_too():
    with gg.Graph():
        x, v, rows = opens.placeholders()
        outputs = [*opens.moved(x, v), *opens.looped(x, rows)]
        loss = opens.total(outputs)
        outputs += [loss, *gg.gradients(loss, [x, v, rows])]
        run, expected = (gg.compile([x, v, rows], outputs, backend=b) for b in ("jax", "numpy"))
    for n in opens.LENGTHS:
        given = opens.arrays(n)
        for a, b in zip(run(*given), expected(*given), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert "for (float64[5, 3], float64[11], float64[4])" in run.explain()  # optimised for these


@pytest.mark.parametrize("donate", [False, True])
def test_a_length_of_the_batch_stands_in_updates_of_variables(donate):
    mesh = jax.make_mesh((1,), ("rows",), devices=jax.devices()[:1])
    divided = load_backend("jax", mesh=mesh, shardings={}, donate=donate)
    found = []
    for backend in ("numpy", divided):
        with gg.Graph():
            x, w = gg.placeholder(("N", 3), name="x"), gg.variable(np.ones(3), name="w")
            N = x.shape[0]
            weights = gg.reshape(gg.arange(N) + 1, (N, 1)) * gg.ones((N, 3))
            loss = gg.sum(x * w * weights) / N
            updates = {w: w - 0.1 * gg.gradients(loss, w)}
            step = gg.compile(x, loss, updates=updates, backend=backend)
        found.append([step(np.arange(3.0 * n).reshape(n, 3)) for n in (2, 4, 2)])
    np.testing.assert_allclose(*found, rtol=1e-12)
