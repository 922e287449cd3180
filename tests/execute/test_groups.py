"""Groups block by block: the values of node by node, whatever the blocks and the threads."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.execute.numpy import groups as blocked
from graphgrad.execute.numpy.body import writing
from graphgrad.execute.numpy.groups import fuse_large, fusible, reducible, written
from graphgrad.ir.build import build
from graphgrad.ir.program import Program
from graphgrad.lower.loop_ir import Fused
from graphgrad.optimise.pipeline import optimise

from ..each import each, every, initial
from ..laws.cases import CASES, placed
from ..lower.fusing import fuse

SMALL = 256  # bytes of a block in these tests


def forget():
    blocked._written.cache_clear()
    blocked._of_single_nodes.clear()


@pytest.fixture(params=["whole", "blocks", "blocks and threads"])
def threads(request, monkeypatch):
    """Threads to run on; with small blocks, so that small arrays have many of them."""
    if request.param == "whole":
        yield 1
        return
    forget()
    monkeypatch.setattr(blocked, "BLOCK", SMALL)
    monkeypatch.setattr(blocked, "WORTH_SHARING", 0)
    yield 4 if "threads" in request.param else 1
    forget()


def run_in_groups(inputs, outputs, *arrays, threads=1, least=1):
    """(values in groups, values node by node, fused program)."""
    plain, _ = optimise(Program(inputs, outputs))
    fused = fuse(plain, fusible, reducible, least)
    with np.errstate(all="ignore"):
        return run(fused, arrays, threads), one_call_per_node(plain, Kernels(np))(*arrays), fused


def run(program, arrays, threads):
    values = dict(zip(program.inputs, arrays, strict=True))
    for node in program.nodes:
        reads = [values[t] for t in node.inputs]
        wrote = written(node) if all(t.type.static for t in node.outputs) else None
        if wrote is None:
            made = node.op.kernel(np, *reads)
            made = made if len(node.outputs) > 1 else (made,)
        else:
            before = [np.array(a) for a in reads]
            made = [np.full(t.shape, 7, t.dtype) for t in node.outputs]
            wrote.on(threads)(*reads, *made)
            for a, b in zip(reads, before, strict=True):
                np.testing.assert_array_equal(a, b)
        values.update(zip(node.outputs, made, strict=True))
    return [values[t] for t in program.outputs]


def groups(program):
    return [[n.type for n in f.op.program.nodes] for f in program.nodes if type(f.op) is Fused]


def same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (np.shape(b), b.dtype)
        assert np.asarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def close(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (np.shape(b), b.dtype)
        tolerance = 1e-5 if a.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# --- values ----------------------------------------------------------------------------------


@each(CASES, initial)
def test_every_elementwise_op_as_a_group(op, arrays):
    xs, node = placed(op, arrays)
    if not fusible(node):
        pytest.skip("not element by element, or a view")
    found, wanted, _ = run_in_groups(xs, node.outputs, *arrays)
    same(found, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_what_elementwise_ops_do_at_the_edges(dtype, threads):
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, 3e38, -2.5]
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(edges * 3, edges * 3))
    unary = [
        "exp",
        "log",
        "sqrt",
        "abs",
        "negative",
        "sign",
        "tanh",
        "log1p",
        "reciprocal",
        "square",
    ]
    binary = ["add", "subtract", "multiply", "divide"]
    if dtype != "complex64":
        unary += ["floor", "isnan", "isinf"]
        binary += ["maximum", "minimum", "power", "hypot", "less", "equal", "copysign"]
    with gg.Graph():
        a, b = gg.placeholder(x.shape, dtype), gg.placeholder(y.shape, dtype)
        outputs = [getattr(gg, f)(a) for f in unary] + [getattr(gg, f)(a, b) for f in binary]
        outputs.append(gg.where(gg.not_equal(a, b), a, b))
        if dtype != "complex64":
            nn = [gg.nn.sigmoid, gg.nn.softplus, gg.nn.silu, gg.nn.relu, gg.nn.elu]
            outputs += [f(a) for f in nn]
            outputs += gg.gradients(gg.sum(gg.nn.relu(a) + gg.maximum(a, b) * gg.abs(b)), [a, b])
    found, wanted, fused = run_in_groups([a, b], outputs, x, y, threads=threads)
    assert groups(fused)
    same(found, wanted)


SHAPES = [
    [(40, 30), (40, 30)],
    [(40, 30), (30,)],
    [(40, 30), (40, 1)],
    [(40, 30), (1, 30)],
    [(40, 30), ()],
    [(40, 30), (1,)],
    [(40, 1), (1, 30)],
    [(500, 3), (3,)],
    [(500, 3), (1, 1)],
    [(7, 1000), (7, 1)],
    [(7, 1000), (1000,)],
    [(3, 1, 500), (4, 1)],
    [(6, 5, 40), (5, 1)],
    [(6, 5, 40), (6, 1, 1)],
    [(6, 5, 40), (1, 1, 40)],
    [(2, 3, 4, 50), (3, 1, 50)],
    [(1000,), (1000,)],
    [(1, 1, 900), (900,)],
    [(900, 1, 1), (900, 1, 1)],
    [(), ()],
    [(0, 4), (4,)],
    [(5, 0), (5, 1)],
    [(1, 1), ()],
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", every(2, SHAPES), ids=str)
def test_every_pattern_of_broadcasting(shapes, dtype, threads):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype(dtype) for s in shapes]
    with gg.Graph():
        x, y = (gg.placeholder(s, dtype) for s in shapes)
        z = gg.tanh(x) * y + gg.exp(y) * 0.5
        w = gg.where(gg.greater(z, y), gg.maximum(z, y), gg.maximum(0.25, x) - y)
        outputs = [z, w, gg.maximum(z, 0.0), gg.power(gg.abs(z), y)]
    found, wanted, fused = run_in_groups([x, y], outputs, *arrays, threads=threads)
    assert groups(fused)
    same(found, wanted)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    "shape", [(40, 30), (900, 3), (3, 900), (2, 9, 60), (60, 9, 2), (1000,), (4, 1, 300)]
)
def test_reductions_of_every_kind(shape, keepdims, threads):
    a = np.random.default_rng(0).normal(size=shape)
    axes = [None, *range(len(shape)), *([(0, 1), (0, len(shape) - 1)] if len(shape) > 1 else [])]
    with gg.Graph():
        x = gg.placeholder(shape)
        y = gg.exp(x) - 1.5
        outputs = [
            reduce(y, axis, keepdims=keepdims)
            for axis in axes
            for reduce in (gg.sum, gg.mean, gg.max, gg.min)
        ]
        outputs.append(gg.sum_to(y, like=gg.placeholder(shape[-1:])))
    found, wanted, fused = run_in_groups([x], outputs, a, threads=threads)
    assert any("ReduceMean" in g and "ReduceMax" in g for g in groups(fused))
    close(found, wanted)


def test_sums_to_shapes(threads):
    a = np.random.default_rng(0).normal(size=(6, 5, 40))
    with gg.Graph():
        x = gg.placeholder(a.shape)
        small = [(40,), (5, 1), (5, 40), (1, 1), (), (6, 1, 1), (1, 5, 1), (6, 5, 40)]
        outputs = [gg.sum_to(gg.exp(x), like=gg.placeholder(s)) for s in small]
    found, wanted, fused = run_in_groups([x], outputs, a, threads=threads)
    assert groups(fused)
    close(found, wanted)


def test_sums_of_integers_are_exact(threads):
    a = np.random.default_rng(0).integers(-100, 100, size=(50, 40))
    with gg.Graph():
        x = gg.placeholder(a.shape, "int64")
        outputs = [gg.sum(x * 3, axis) for axis in (None, 0, 1)] + [gg.max(x * 3, 0)]
    found, wanted, _ = run_in_groups([x], outputs, a, threads=threads)
    same(found, wanted)


def test_extrema_keep_nan(threads):
    a = np.zeros((40, 30))
    a[17, 3] = np.nan
    with gg.Graph():
        x = gg.placeholder(a.shape)
        outputs = [gg.max(x + 1.0, axis) for axis in (None, 0, 1)]
    found, wanted, _ = run_in_groups([x], outputs, a, threads=threads)
    same(found, wanted)


def test_a_long_sum_is_as_exact_as_numpys(monkeypatch):
    a = np.random.default_rng(0).uniform(size=2_000_000).astype("float32")
    with gg.Graph():
        x = gg.placeholder(a.shape, "float32")
        y = gg.placeholder((500_000, 4), "float32")
        total, columns = gg.sum(x * x), gg.sum(y * y, axis=0)
    exact = np.square(a.astype(float))
    b = a.reshape(y.shape)
    (found,), (numpys,), _ = run_in_groups([x], [total], a)
    assert abs(found - exact.sum()) <= 2 * abs(numpys - exact.sum()) + 0.25
    (found,), (numpys,), _ = run_in_groups([y], [columns], b)
    error, worse = (abs(v - exact.reshape(y.shape).sum(0)).max() for v in (found, numpys))
    assert error <= worse


def test_threads_do_not_change_a_bit(monkeypatch):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(300, 700)).astype("float32")
    with gg.Graph():
        x = gg.placeholder(a.shape, "float32")
        y = gg.exp(x) * x
        outputs = [y, gg.sum(y), gg.sum(y, 0), gg.mean(y, 1), gg.max(y, 0)]
    monkeypatch.setattr(blocked, "WORTH_SHARING", 0)
    forget()
    wanted, *_ = run_in_groups([x], outputs, a, threads=1)
    for threads in (2, 3, 8):
        for _ in range(5):
            found, *_ = run_in_groups([x], outputs, a, threads=threads)
            same(found, wanted)
    forget()


@pytest.mark.parametrize("seed", every(2, range(40)))
def test_random_groups(seed, threads):
    rng = np.random.default_rng(seed)
    shape = [(40, 30), (300, 4), (5, 200), (6, 7, 30), (1000,)][seed % 5]
    smaller = [shape, shape[1:], (1,) * len(shape), (*shape[:-1], 1), ()]
    dtype = ["float32", "float64"][seed % 2]
    with gg.Graph():
        xs = [gg.placeholder(s, dtype) for s in smaller]
        made = list(xs)
        for _ in range(30):
            a, b, c = (made[rng.integers(len(made))] for _ in range(3))
            made.append(
                [
                    lambda a, b, c: a + b,
                    lambda a, b, c: a * b - c,
                    lambda a, b, c: gg.tanh(a) * b,
                    lambda a, b, c: gg.where(gg.less(a, b), c, b),
                    lambda a, b, c: gg.maximum(a, 0.5) * b,
                    lambda a, b, c: gg.nn.sigmoid(a) + c,
                    lambda a, b, c: gg.clip(a, -1.0, 1.0) / (1.0 + gg.abs(b)),
                    lambda a, b, c: gg.cast(gg.cast(gg.floor(gg.tanh(a) * 9), "int32"), dtype),
                ][rng.integers(8)](a, b, c)
            )
        full = [t for t in made[len(xs) :] if t.shape == shape]
        outputs = [full[i] for i in rng.integers(len(full), size=4)] if full else made[-2:]
    arrays = [rng.normal(size=s).astype(dtype) for s in smaller]
    found, wanted, _ = run_in_groups(xs, outputs, *arrays, threads=threads)
    same(found, wanted)


def test_one_array_as_two_inputs_and_as_two_outputs(threads):
    a = np.arange(400.0)
    with gg.Graph():
        x, y = gg.placeholder((400,)), gg.placeholder((400,))
        z = gg.exp(x - y)
        outputs = [z * x, z, z]
    found, wanted, _ = run_in_groups([x, y], outputs, a, a, threads=threads)
    same(found, wanted)


@pytest.mark.parametrize(
    "change",
    [
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        lambda a: a[::-1, ::-1],
        lambda a: np.broadcast_to(a[:1], a.shape),
        lambda a: np.broadcast_to(a[:1, :1], a.shape),
    ],
)
def test_layouts_of_inputs(change, threads):
    a = change(np.random.default_rng(0).normal(size=(40, 30)))
    with gg.Graph():
        x = gg.placeholder(a.shape)
        y = gg.tanh(x) * 2.0 + x
        outputs = [y, gg.where(y > 0.0, y, x)]
    found, wanted, _ = run_in_groups([x], outputs, a, threads=threads)
    same(found, wanted)


def test_a_broadcast_that_is_an_output(threads):
    with gg.Graph():
        x = gg.placeholder((3,))
        outputs = [gg.broadcast_to(x, (200, 3)), gg.broadcast_to(x * 2.0, (200, 3)) + 1.0]
        p = Program([x], outputs)
    fused = fuse(p, lambda n: fusible(n) or n.type == "BroadcastTo", reducible, 1)
    a = np.arange(3.0)
    same(run(fused, [a], threads), one_call_per_node(p, Kernels(np))(a))


# --- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_outputs_written_over_inputs(seed, threads):
    rng = np.random.default_rng(seed)
    with gg.Graph():
        xs = [gg.placeholder((200,)) for _ in range(3)]
        made = list(xs)
        for _ in range(8):
            a, b = (made[rng.integers(len(made))] for _ in range(2))
            choices = [gg.exp(a * 0.1), a + b, gg.where(a > b, a, b), a * 2.0, gg.maximum(a, b)]
            made.append(choices[rng.integers(len(choices))])
        outputs = list(dict.fromkeys([made[-1], made[-3]]))
    fused = fuse(Program(xs, outputs), fusible, reducible, 2)
    for node in [n for n in fused.nodes if type(n.op) is Fused]:
        wrote = written(node)
        reads = [getattr(t.node.op, "value", rng.normal(size=t.shape)) for t in node.inputs]
        wanted = node.op.kernel(np, *reads)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for k, a in wrote.overwrites:
            copies = [np.array(r) for r in reads]
            outs = [np.empty(200) for _ in node.outputs]
            outs[k] = copies[a]
            wrote.on(threads)(*copies, *outs)
            same(outs, wanted)


def test_a_chain_may_be_written_over_what_it_reads(threads):
    with gg.Graph():
        x = gg.placeholder((400,))
        fused = fuse(Program([x], [gg.exp(x) * 2.0 + 1.0]), fusible, reducible)
    (node,) = [n for n in fused.nodes if type(n.op) is Fused]
    assert (0, node.inputs.index(x)) in written(node).overwrites


def test_an_input_read_after_the_output_is_written_is_not_written_over(threads):
    with gg.Graph():
        x = gg.placeholder((400,))
        y = gg.exp(x)
        fused = fuse(Program([x], [y, y + x]), fusible, reducible)
    (node,) = [n for n in fused.nodes if type(n.op) is Fused]
    assert not any(k == 0 for k, _ in written(node).overwrites)


def test_equal_groups_are_written_by_one_function():
    with gg.Graph():
        xs = [gg.placeholder((10,)) for _ in range(4)]
        outputs = [gg.tanh(x * 2.0) + x for x in xs]
        fused = fuse(Program(xs, outputs), fusible, reducible)
    nodes = [n for n in fused.nodes if type(n.op) is Fused]
    assert len(nodes) == 4
    assert len({id(written(n)) for n in nodes}) == 1


def test_scratch_is_small_and_used_again():
    n = 1_000_000
    with gg.Graph():
        x = gg.placeholder((n,))
        y = x
        for _ in range(50):
            y = gg.tanh(y) + 0.1
        fused = fuse(Program([x], [y]), fusible, reducible)
    (node,) = [f for f in fused.nodes if type(f.op) is Fused]
    assert len(written(node).on(1).func.__self__.body.scratch) <= 2


def test_many_values_at_a_time_make_smaller_blocks():
    n = 200_000
    with gg.Graph():
        x = gg.placeholder((n,))
        parts = [gg.tanh(x + float(i)) for i in range(60)]
        y = parts[0]
        for part in reversed(parts):
            y = y * part
        plain = Program([x], [y])
    fused = fuse(plain, fusible, reducible)
    (node,) = [f for f in fused.nodes if type(f.op) is Fused]
    assert written(node).on(1).func.__self__.scratch_bytes <= 2 * blocked.SCRATCH
    a = np.linspace(0, 1, n)
    same(run(fused, [a], 2), one_call_per_node(plain, Kernels(np))(a))


# --- what is in a group ----------------------------------------------------------------------


def test_what_cannot_be_told_where_to_write_has_no_writer():
    with gg.Graph():
        x = gg.placeholder((3, 3))
        for t in (x @ x, gg.reshape(x, (9,)), gg.linalg.inv(x), gg.cumulative_sum(x, axis=0)):
            assert written(t.node) is None
        z = gg.placeholder((3,), "complex128")
        assert written(gg.real(z).node) is None


def test_large_loops_are_groups_and_small_ones_are_not():
    with gg.Graph():
        big, small = gg.placeholder((100_000,)), gg.placeholder((10_000,))
        outputs = [gg.sum(gg.exp(big) * 2.0), gg.sum(gg.exp(small) * 2.0), gg.exp(big)]
        plain, _ = optimise(Program([big, small], outputs))
    fused = fuse_large(plain)
    assert groups(fused) == [["Exp", "Constant", "Multiply", "ReduceSum"]]


@pytest.mark.parametrize("shape", [(300, 400), (30_000, 4), (4, 30_000)])
def test_numbers_and_broadcasts_are_taken_into_groups(shape):
    with gg.Graph():
        x, b = gg.placeholder(shape), gg.placeholder(shape[-1:])
        wide = gg.broadcast_to(b, shape)
        full = gg.full(shape, 0.25)
        y = gg.maximum(gg.broadcast_to(gg.exp(b), shape) * x + 1.0, full) * wide
        outputs = [y, gg.sum(y), wide, gg.where(gg.greater(x, full), x, 0.0), gg.sum(wide, 0)]
        plain = Program([x, b], outputs)
    fused = fuse_large(plain)
    assert {"BroadcastTo", "Full", "Constant"} <= {name for g in groups(fused) for name in g}
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape), rng.normal(size=shape[-1:])]
    for threads in (1, 3):
        found = run(fused, arrays, threads)
        wanted = one_call_per_node(plain, Kernels(np))(*arrays)
        for i in (0, 2, 3):
            same(found[i : i + 1], wanted[i : i + 1])
        close(found, wanted)


def test_small_reductions_of_large_blocks_only():
    with gg.Graph():
        wide = gg.placeholder((64, 400_000))
        assert reducible(gg.sum(wide).node)
        assert reducible(gg.sum(wide, 1).node)
        assert not reducible(gg.sum(wide, 0).node)  # what is left of a block is the block
        assert not reducible(gg.sum(wide, ()).node)
        unknown = gg.placeholder((None, 3))
        assert not reducible(gg.sum(unknown).node)


def test_long_groups_are_divided(monkeypatch):
    monkeypatch.setattr(blocked, "MOST", 15)  # operands
    with gg.Graph():
        x = gg.placeholder((100_000,))
        y = x
        for i in range(50):
            y = gg.sin(y) if i % 2 else y + x
        plain = Program([x], [y])
    fused = fuse_large(plain)
    assert [len(g) for g in groups(fused)] == [9, 10, 10, 10, 10]  # and one node that stays itself
    a = np.linspace(0, 1, 100_000)
    same(run(fused, [a], 1), one_call_per_node(plain, Kernels(np))(a))


def test_no_warnings(threads):
    with gg.Graph():
        x = gg.placeholder((400,))
        outputs = [
            gg.log(x),
            gg.maximum(x, 0.0) / 0.0,
            gg.minimum(x, 1.0),
            gg.cast(x / 0.0, "int8"),
        ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_in_groups([x], outputs, np.linspace(-1, 1, 400), threads=threads)


def test_an_error_in_a_block_reaches_the_caller(threads):
    with gg.Graph():
        x = gg.placeholder((400,), "int64")
        y = gg.power(x, x) + 1
    with pytest.raises(ValueError, match="negative integer powers"):
        run_in_groups([x], [y], np.full(400, -1), threads=threads)


def test_ops_of_users():
    class TwiceInBlocks(gg.Op):
        """2 x."""

        elementwise = True

        def infer(self, x):
            return (x,)

        def kernel(self, xp, x):
            return x + x

    class DecidesByValues(TwiceInBlocks):
        """Not element by element, whatever it says."""

        def kernel(self, xp, x):
            return x + x if x.sum() > 0 else x

    with gg.Graph():
        x = gg.placeholder((3,))
        assert fusible(build(TwiceInBlocks(), (x,)))
        assert not fusible(build(DecidesByValues(), (x,)))


def test_ufuncs_that_write_without_a_warning():
    x, out = np.arange(3.0), np.empty(3)
    for ufunc in (np.maximum, np.power):
        writing(ufunc)(x, x, out)
        np.testing.assert_array_equal(out, ufunc(x, x))
        np.testing.assert_array_equal(writing(ufunc)(x, x), out)
