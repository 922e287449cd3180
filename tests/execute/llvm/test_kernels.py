"""Kernels alone: nothing is touched outside of arrays, sums are exact, threads change nothing."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("llvmlite")

from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.execute.llvm.backend import LlvmBackend
from graphgrad.execute.llvm.emit import arrays, jit, module
from graphgrad.execute.llvm.loops import groups, kernel
from graphgrad.execute.llvm.loops.groups import kernels_of
from graphgrad.execute.llvm.loops.launch import plain_runner, runner
from graphgrad.ir.program import Program
from graphgrad.lower.fused import gathered
from graphgrad.lower.loop_ir import Fusion, Space, group_of_fused
from graphgrad.optimise.pipeline import optimise


class Group:
    """A function of tensors that becomes one kernel."""

    def __init__(self, fn, *types, flags=""):
        with gg.Graph():
            xs = [gg.placeholder(shape, dtype) for shape, dtype in types]
            made = fn(*xs)
            outputs = list(made) if isinstance(made, list | tuple) else [made]
        program, _ = optimise(Program(xs, outputs))
        backend = LlvmBackend(fast_math=bool(flags))
        fused = backend.fuse(program)
        (node,) = [n for n in fused.nodes if n.inputs]
        self.group = backend.group(node)
        given = {t: i for i, t in enumerate(fused.inputs)}
        made_at = {t: i for i, t in enumerate(node.outputs)}
        self.inputs = [given[t] for t in dict.fromkeys(node.inputs)]
        self.types = [t.type for t in node.outputs]
        self.order = [made_at[t] for t in fused.outputs]
        self.program = program
        self.kernel = kernels_of([self.group], backend.flags)[self.group]

    def run(self, *arrays, threads=1, make=runner):
        outs = [np.empty(t.shape, t.dtype) for t in self.types]
        make(self.kernel, threads)(*[arrays[i] for i in self.inputs], *outs)
        return [outs[i] for i in self.order]

    def numpy(self, *arrays):
        with np.errstate(all="ignore"):
            return one_call_per_node(self.program, Kernels(np))(*arrays)


def guarded(shape, dtype, fill):
    """An array with bytes before and after it, and a check that nobody wrote there."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    whole = np.full(size + 256, 0xA5, np.uint8)
    inside = whole[128 : 128 + size].view(dtype).reshape(shape)
    inside[...] = fill

    def untouched():
        return (whole[:128] == 0xA5).all() and (whole[128 + size :] == 0xA5).all()

    return inside, untouched


LENGTHS = [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 1000, 1025]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("n", LENGTHS)
def test_nothing_outside_is_written_and_nothing_outside_matters(n, dtype):
    def fn(x, y):
        return gg.where(x > y, x, y), x == y, gg.any(x > y), gg.sum(x == y)

    group = Group(fn, ((n,), dtype), ((n,), dtype))
    rng = np.random.default_rng(n)
    arrays, checks = [], []
    for _ in range(2):
        array, untouched = guarded((n,), dtype, rng.integers(0, 2, n).astype(dtype))
        arrays.append(array)
        checks.append(untouched)
    outs = []
    for t in group.types:
        array, untouched = guarded(t.shape, t.dtype, 1)
        outs.append(array)
        checks.append(untouched)
    runner(group.kernel, 1)(*[arrays[i] for i in group.inputs], *outs)
    assert all(untouched() for untouched in checks)
    for found, wanted in zip([outs[i] for i in group.order], group.numpy(*arrays), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(300_001,), (257, 1031), (9000, 7)])
def test_sums_are_as_exact_as_numpys(shape, dtype):
    group = Group(lambda x: [gg.sum(x), gg.mean(x)], (shape, dtype))
    rng = np.random.default_rng(0)
    x = rng.normal(1, 3, size=shape).astype(dtype)
    total, mean = (float(a) for a in group.run(x))
    exact = math.fsum(x.ravel().tolist())
    size = math.fsum(np.abs(x).ravel().tolist())
    eps = np.finfo(dtype).eps
    assert abs(total - exact) <= 2 * eps * size
    assert abs(mean - exact / x.size) <= 2 * eps * size / x.size
    assert abs(total - exact) <= max(2 * abs(float(x.sum()) - exact), eps * abs(exact))


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_over_one_axis_are_exact(axis):
    group = Group(lambda x: gg.sum(x, axis=axis), ((1000, 900), "float32"))
    x = np.random.default_rng(0).normal(1, 3, size=(1000, 900)).astype("float32")
    (found,) = group.run(x)
    exact = x.astype("float64").sum(axis)
    worst = np.max(np.abs(found - exact))
    assert worst <= np.max(np.abs(x.sum(axis) - exact)) + 1e-4


def test_a_sum_that_is_infinite_or_nan():
    group = Group(lambda x: gg.sum(x), ((50_000,), "float64"))
    x = np.ones(50_000)
    x[1234] = np.inf
    assert group.run(x)[0] == np.inf
    x[4321] = -np.inf
    assert np.isnan(group.run(x)[0])
    x[:] = 1e308
    assert group.run(x)[0] == np.inf


def _big(x, b):
    y = gg.tanh(x * b) + gg.exp(-gg.abs(x))
    return [y, gg.sum(y), gg.sum(y, axis=0), gg.mean(y, axis=1), gg.max(y)]


@pytest.mark.parametrize(("size", "blocks"), [(1 << 17, 0), (1 << 18, 4), (1 << 30, 256)])
def test_what_moves_much_memory_is_run_in_blocks(size, blocks):
    assert Group(gg.negative, ((size,), "float64")).kernel.shared.blocks == blocks


def test_threads_change_nothing():
    group = Group(_big, ((3000, 700), "float32"), ((700,), "float32"))
    assert group.kernel.shared.blocks > 1
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype("float32") for s in ((3000, 700), (700,))]
    one = group.run(*arrays)
    for threads in (2, 3, 8):
        for a, b in zip(one, group.run(*arrays, threads=threads), strict=True):
            np.testing.assert_array_equal(a, b)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: group.run(*arrays, threads=2), range(8)):
            for a, b in zip(one, found, strict=True):
                np.testing.assert_array_equal(a, b)


def _rows_and_sums(x, b):
    y = gg.exp(x) * b
    rows = gg.sum(y, axis=1)
    return [y, rows * 2.0, gg.sum(rows), y / gg.expand_dims(rows, 1)]


IN_PLACE = [
    (lambda x, b: [gg.exp(x) + b, x * b], [(40, 70), (70,)], ()),
    (_rows_and_sums, [(40, 70), (70,)], (1,)),
    (lambda x, b: _rows_and_sums(x, gg.expand_dims(b, 1)), [(4, 30, 70), (4, 70)], (1,)),
    (_rows_and_sums, [(300, 3), (3,)], (1,)),
    (lambda s, x: [s * 2.0, gg.sum(gg.sin(x)) * s], [(), (100,)], ()),
    (lambda s, x: [s * 2.0, gg.sum(_costly(x * s))], [(), (400_000,)], ()),
    (lambda r, x: [r + (t := gg.sum(gg.sin(x), axis=1)), t * r], [(50,), (50, 30)], ()),
]


def _costly(x):
    for _ in range(20):
        x = gg.sin(x)
    return x


def _as_one(program, space):
    """All of a program as one fused node, and its group."""
    (node,) = gathered(program, [Fusion(program.nodes, space)]).nodes
    return node, group_of_fused(node.op)


@pytest.mark.parametrize(("fn", "shapes", "row"), IN_PLACE)
def test_outputs_that_lie_where_inputs_were(fn, shapes, row):
    """For every pair that may share a buffer, values are those of buffers apart."""
    with gg.Graph():
        xs = [gg.placeholder(s) for s in shapes]
        program = Program(xs, fn(*xs))
    node, group = _as_one(program, Space(max(shapes, key=math.prod), row))
    made = kernels_of([group])[group]
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(0.5, 1.5, size=t.shape) for t in group.inputs]
    apart = [np.empty(t.shape) for t in node.outputs]
    runner(made, 1)(*inputs, *apart)
    for k, place in made.shared.overwrites:
        given = [a.copy() for a in inputs]
        outputs = [np.empty(t.shape) for t in node.outputs]
        outputs[k] = given[place]
        runner(made, 1)(*given, *outputs)
        for found, wanted in zip(outputs, apart, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_of_outputs_and_inputs_that_all_lie_alike_there_are_not_all_pairs():
    def pairs(n):
        with gg.Graph():
            xs = [gg.placeholder((3,)) for _ in range(n)]
            program = Program(xs, [gg.sin(x) for x in xs])
        _, group = _as_one(program, Space((3,)))
        return len(kernels_of([group])[group].shared.overwrites)

    assert pairs(4) == 16
    assert pairs(40) == 2 * pairs(20)


@pytest.mark.parametrize("shape", [(), (7,)])
def test_functions_are_written_out_in_short_kernels_alone(shape):
    def calls(n):
        def fn(x):
            for _ in range(n):
                x = gg.sin(x)
            return x

        made = module.Module(jit.host())
        kernel.write_kernel(Group(fn, (shape, "float64")).group, made, "k")
        (text,) = [t for t in made.text.split("define") if "@k.rows(" in t.partition("\n")[0]]
        return text.count(") noinline\n")

    assert calls(kernel.INLINED) == 0
    assert calls(kernel.INLINED + 1) >= kernel.INLINED + 1


def test_numbers_that_a_kernel_makes_of_one_number_with_many_functions():
    def fn(x):
        made = []
        for _ in range(kernel.INLINED + 3):
            x = gg.sin(x) + gg.exp(-x * x)
            made.append(x)
        return made

    group = Group(fn, ((), "float64"))
    for found, wanted in zip(group.run(np.float64(0.3)), group.numpy(np.float64(0.3))):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_calls_by_ctypes_compute_the_same():
    for fn, shape in ((_big, (3000, 700)), (_big, (40, 70))):
        group = Group(fn, (shape, "float32"), (shape[1:], "float32"))
        rng = np.random.default_rng(0)
        arrays = [rng.normal(size=s).astype("float32") for s in (shape, shape[1:])]
        symbols = [*group.kernel.shared.built_in, *group.kernel.shared.plain]
        kernel = recompiled(group, symbols)
        plain = group.run(*arrays)
        group.kernel = kernel
        for threads in (1, 3):
            for a, b in zip(plain, group.run(*arrays, threads=threads, make=plain_runner)):
                np.testing.assert_array_equal(a, b)


def recompiled(group, symbols):
    """The kernel of a group with these functions to be had."""
    made = module.Module(jit.host())
    shared = kernel.write_kernel(group.group, made, group.kernel.shared.name)
    text = "\n".join([*arrays.DECLARATIONS, *kernel.DECLARATIONS, made.text])
    code = jit.object_code(text, jit.host())
    loaded = jit.Loaded(code, symbols, {kernel.NDARRAY: id(np.ndarray)})
    return groups.Kernel(shared, loaded)


@pytest.mark.parametrize("shape", [(4, 5), (40, 300), (1, 1)])
def test_inputs_of_any_layout(shape):
    group = Group(lambda x, y: gg.tanh(x) * y + 1.0, (shape, "float64"), (shape, "float64"))
    n, m = shape
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape), rng.normal(size=shape)
    (wanted,) = group.run(x, y)
    wide = np.zeros((2 * n, 3 * m))
    wide[::2, ::3] = x
    back = np.ascontiguousarray(x[::-1, ::-1])
    odd = np.zeros(8 * n * m + 1, np.uint8)[1:].view(np.float64).reshape(shape)
    odd[...] = x
    for layout in (np.asfortranarray(x), wide[::2, ::3], back[::-1, ::-1], odd):
        np.testing.assert_array_equal(group.run(layout, y)[0], wanted)


def test_a_number_that_is_no_array():
    group = Group(lambda x, s: x * s + s, ((3,), "float64"), ((), "float64"))
    (found,) = group.run(np.arange(3.0), np.float64(2.0))
    np.testing.assert_array_equal(found, [2, 4, 6])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 3), (16, 16), (37, 70), (130, 129), (1030, 20)])
def test_columns_are_read_as_rows(shape, dtype):
    def fn(x, y):
        return gg.exp(gg.transpose(x)) - y, gg.sum(gg.transpose(x) * y, axis=1)

    group = Group(fn, (shape, dtype), (shape[::-1], dtype))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype(dtype) for s in (shape, shape[::-1])]
    for a, b in zip(group.run(*arrays), group.numpy(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4 if dtype == "float32" else 1e-10, atol=1e-5)


def test_products_and_differences_are_rounded_each():
    """x * y - x * y is 0: nothing is contracted by default."""
    group = Group(lambda x, y, z: x * y - z, *[((100,), "float64")] * 3)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 100))
    assert (group.run(x, y, x * y)[0] == 0).all()


def test_fast_math_is_near():
    arrays = [np.random.default_rng(0).normal(size=1000) for _ in range(2)]
    types = [((1000,), "float64")] * 2
    exact, fast = (
        Group(lambda x, y: [gg.sum(x * y / (y * y + 1.0)), x / y], *types, flags=f).run(*arrays)
        for f in ("", "fast")
    )
    for a, b in zip(exact, fast, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_long_body():
    def fn(x):
        y = x
        for i in range(700):
            y = gg.sin(y) if i % 3 == 0 else y * x + 0.1 if i % 3 == 1 else gg.tanh(y)
        return y, *gg.gradients(gg.sum(y), [x])

    group = Group(fn, ((10,), "float64"))
    assert len(group.group.members) > 1000
    x = np.linspace(0.1, 0.9, 10)
    for a, b in zip(group.run(x), group.numpy(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-300)


def test_equal_groups_are_compiled_once():
    types = [((6,), "float32")]
    a, b = (Group(lambda x: gg.exp(x) * 2.0 + 1.0, *types) for _ in range(2))
    c = Group(lambda x: gg.exp(x) * 3.0 + 1.0, *types)
    assert a.group == b.group != c.group
    assert a.kernel is b.kernel


def test_a_function_outlives_the_kernels_that_are_kept(monkeypatch):
    monkeypatch.setattr("graphgrad.execute.llvm.loops.groups.KEPT", 1)
    first = Group(lambda x: gg.exp(x) * 5.0 + 1.0, ((6,), "float32"))
    run = runner(first.kernel, 1)
    del first
    Group(lambda x: gg.exp(x) * 6.0 + 1.0, ((6,), "float32"))
    out = np.empty(6, "float32")
    run(np.zeros(6, "float32"), out)
    np.testing.assert_array_equal(out, np.full(6, 6.0, "float32"))
