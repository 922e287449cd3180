"""Sums of many small arrays, in one call of NumPy's."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.kernels import TupleKernel
from graphgrad.execute.numpy.sums import LEAST, ROWS, SMALL, gather_sums
from graphgrad.ir.program import Program
from graphgrad.ops.base import apply
from graphgrad.ops.elementwise.accumulate import AddN

DTYPES = ["float16", "float32", "float64", "complex64", "complex128", "int8", "uint64", "bool"]
SHAPES = [(), (1,), (2,), (4,), (1, 1), (2, 1), (3, 5), (0,), (2, 2, 2)]


def types(f):
    return [step.node.type for step in f.plans[0].steps]


def summed(xs):
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def drawn(rng, shape, dtype, count):
    """Numbers that differ by much, so that the order of a sum shows."""
    made = rng.normal(size=(count, *shape)) * 10.0 ** rng.integers(-3, 4, (count, *shape))
    with np.errstate(all="ignore"):
        return [*(made > 0 if dtype == "bool" else made.astype(dtype))]


def in_order(arrays):
    total = arrays[0]
    with np.errstate(all="ignore"):
        for a in arrays[1:]:
            total = np.add(total, a)
    return total


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [LEAST, 40])
def test_a_sum_is_what_it_was_to_the_last_bit(shape, dtype, count):
    with gg.Graph():
        xs = [gg.placeholder(shape, dtype) for _ in range(count)]
        f = gg.compile(xs, summed(xs), backend="numpy")
    assert ("AddN" in types(f)) == (shape != (0,))
    rng = np.random.default_rng(len(shape) + count)
    for _ in range(3):
        arrays = drawn(rng, shape, dtype, count)
        assert f(*arrays).tobytes() == in_order(arrays).tobytes()


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_sum_of_negative_zeros_is_one(shape, dtype):
    with gg.Graph():
        xs = [gg.placeholder(shape, dtype) for _ in range(LEAST)]
        f = gg.compile(xs, summed(xs), backend="numpy")
    zeros = [np.full(shape, -np.zeros((), dtype))] * LEAST
    assert np.signbit(f(*zeros).real).all()
    assert np.signbit(f(*zeros).imag).all() == (dtype == "complex64")


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
@pytest.mark.parametrize("start", [0, -0.0, 1.5])
def test_a_sum_may_begin_with_a_number(shape, start):
    with gg.Graph():
        xs = [gg.placeholder(shape, "float32") for _ in range(LEAST)]
        number = gg.constant(start, "float32")
        y = summed([number, *xs])
        f = gg.compile(xs, y, backend="numpy", optimize=False)
        g = gg.compile([number, *xs], y, backend="numpy", optimize=False)
    assert types(f) == ["AddN"]
    arrays = drawn(np.random.default_rng(5), shape, "float32", LEAST)
    zeros = [np.full(shape, -0.0, "float32")] * LEAST
    for given in (arrays, zeros):
        assert f(*given).tobytes() == in_order([np.float32(start), *given]).tobytes()
        assert g(2.5, *given).tobytes() == in_order([np.float32(2.5), *given]).tobytes()


@pytest.mark.parametrize("shape", [(3, 5), (3, 1)])
def test_terms_in_another_order_of_memory(shape):
    with gg.Graph():
        xs = [gg.placeholder(shape) for _ in range(LEAST)]
        f = gg.compile(xs, summed(xs), backend="numpy")
    arrays = drawn(np.random.default_rng(0), shape, "float64", LEAST)
    for at in (0, 1, LEAST - 1):
        for turned in (np.asfortranarray, lambda a: np.repeat(a, 2, 0)[::2]):
            given = [*arrays]
            given[at] = turned(arrays[at])
            assert f(*given).tobytes() == in_order(arrays).tobytes()
    wide = np.broadcast_to(2.0, shape)
    assert f(*arrays[1:], wide).tobytes() == in_order([*arrays[1:], wide]).tobytes()


def test_terms_that_come_more_than_once():
    with gg.Graph():
        x, y, z = (gg.placeholder((2,)) for _ in range(3))
        f = gg.compile([x, y, z], apply(AddN(), *[y, x, y, z] * 5), backend="numpy")
    a, b, c = drawn(np.random.default_rng(1), (2,), "float64", 3)
    assert f(a, b, c).tobytes() == in_order([b, a, b, c] * 5).tobytes()


def chains(f):
    return [len(step.node.inputs) for step in f.plans[0].steps if type(step.node.op) is AddN]


def test_which_sums_are_gathered():
    with gg.Graph():
        xs = [gg.placeholder((2,)) for _ in range(LEAST)]
        wide = gg.placeholder((3, 2))
        half = summed(xs[:6])
        cases = {
            "many": (summed(xs), [LEAST]),
            "few": (summed(xs[1:]), []),
            "begins with a number": (0.5 + xs[0] + summed(xs) * 2.0, [LEAST]),
            "another type": (summed([*xs[1:], xs[0] * 1j]), []),
            "another shape": (summed([*xs[1:], wide]), []),
            "read in between": ([half, summed([half, *xs[6:]])], []),
            "twice": ([summed(xs), summed([*xs[::-1], gg.sin(xs[0])])], [LEAST, LEAST + 1]),
            "of sums": (summed([summed(xs) * 2.0, *xs[1:]]), [LEAST, LEAST]),
            "from the right": (xs[0] + (xs[1] + (xs[2] + summed(xs))), [LEAST]),
        }
    rng = np.random.default_rng(2)
    arrays = [*drawn(rng, (2,), "float64", LEAST), rng.normal(size=(3, 2))]
    for name, (y, counts) in cases.items():
        f = gg.compile([*xs, wide], y, backend="numpy", optimize=False)
        assert sorted(chains(f)) == sorted(counts), name
        want = gg.evaluate(y, dict(zip([*xs, wide], arrays, strict=True)))
        for a, b in zip(*map(np.atleast_2d, (f(*arrays), want)), strict=True):
            assert a.tobytes() == b.tobytes(), name


def test_a_term_may_be_given_that_was_to_be_added_up():
    with gg.Graph():
        xs = [gg.placeholder((2,)) for _ in range(2 * LEAST)]
        half = summed(xs[:LEAST])
        y = summed([half, *xs[LEAST:]])
        f = gg.compile([half, *xs[LEAST:]], [y, half], backend="numpy")
        g = gg.compile([half, *xs], y, backend="numpy")
    arrays = drawn(np.random.default_rng(3), (2,), "float64", 2 * LEAST)
    want = in_order(arrays[LEAST - 1 :]).tobytes()
    assert f(*arrays[LEAST - 1 :])[0].tobytes() == want
    assert g(arrays[LEAST - 1], *arrays).tobytes() == want


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_gradients_and_steps_of_many(backend):
    with gg.Graph() as g:
        vs = [gg.variable(np.full(3, i / 10.0)) for i in range(30)]
        loss = summed([gg.sum(gg.sin(v) * vs[0]) for v in vs])
        updates = {v: v - 0.1 * d for v, d in zip(vs, gg.gradients(loss, vs), strict=True)}
        want = gg.evaluate([loss, *updates.values()])
        step = gg.compile([], loss, updates=updates, backend=backend)
    np.testing.assert_allclose(step(), want[0], rtol=1e-12)
    for v, a in zip(vs, want[1:], strict=True):
        np.testing.assert_allclose(g.state[v], a, rtol=1e-12)


def test_long_sums_are_cut_and_large_terms_are_left():
    size = SMALL // 8
    most = ROWS // SMALL
    with gg.Graph():
        x = gg.placeholder((size,))
        xs = [gg.placeholder((size,)) for _ in range(most + 20)]
        large = [gg.placeholder((size + 1,)) for _ in range(20)]
        f = gg.compile(xs, summed(xs), backend="numpy")
        g = gg.compile(large, apply(AddN(), *large), backend="numpy")
        h = gg.compile([x], apply(AddN(), *[x] * 20), backend="numpy")
    assert chains(f) == [most, 21]
    arrays = drawn(np.random.default_rng(4), (size,), "float64", most + 20)
    assert f(*arrays).tobytes() == in_order(arrays).tobytes()
    writers = [type(k.plans[0].steps[0].kernel) for k in (f, g, h)]
    assert [writer is TupleKernel for writer in writers] == [True, False, True]


def test_what_runs_before_another_stays_before_it():
    with gg.Graph():
        xs = [gg.placeholder((2,)) for _ in range(2 * LEAST)]
        y = gg.sin(summed(xs))
        waiting = summed(xs[::-1])
        waiting.node.controls = (y.node,)
        program = Program(xs, [y, summed([waiting, *xs])])
    made = gather_sums(program)
    assert [n.type for n in made.nodes] == ["AddN", "Sin", "AddN", "Add", "AddN"]
    assert gather_sums(made) is made
    (after,) = (n for n in made.nodes if n.controls)
    assert (after.type, after.controls[0].type) == ("Add", "Sin")
    assert set(after.controls) <= set(made.nodes)


def test_what_others_wait_for_stays():
    with gg.Graph():
        xs = [gg.placeholder((2,)) for _ in range(2 * LEAST)]
        y = summed(xs)
        z = gg.sin(xs[0])
        z.node.controls = (y.node.inputs[0].node,)
        program = Program(xs, [y, z])
    assert [n.type for n in gather_sums(program).nodes] == ["AddN", "Add", "Add", "Sin"]


def test_numbers_that_are_not_numpys_are_added_one_by_one():
    pytest.importorskip("ml_dtypes")
    with gg.Graph():
        xs = [gg.placeholder((2,), gg.bfloat16) for _ in range(LEAST)]
        f = gg.compile(xs, summed(xs), backend="numpy")
    assert "AddN" not in types(f)
    arrays = [np.full(2, i, gg.bfloat16) for i in range(LEAST)]
    assert f(*arrays).tolist() == [sum(range(LEAST))] * 2


@pytest.mark.parametrize("picked", [[0, 1, 2], [0, 0, 1, 2], [0, 1, 0, 2], [1, 0, 2, 1, 1]])
@pytest.mark.parametrize("check", [False, True])
def test_a_sum_of_many_longer_arrays_is_written_over_its_first_terms(picked, check):
    count, length = 2 * LEAST, SMALL
    arrays = drawn(np.random.default_rng(0), (length,), "float64", count)
    order = [*picked, *range(3, count)]
    with gg.Graph():
        xs = [gg.placeholder((length,)) for _ in range(count)]
        made = [gg.sin(x) for x in xs]
        y = gg.exp(apply(AddN(), *[made[i] for i in order]))
        f = gg.compile(xs, y, backend="numpy", check=check, optimize=False)
    (step,) = [step for step in f.plans[0].steps if step.node.type == "AddN"]
    assert not isinstance(step.kernel, TupleKernel)
    assert bool(step.over) == any(i not in order[2:] for i in order[:2])
    wanted = np.exp(in_order([np.sin(arrays[i]) for i in order]))
    np.testing.assert_array_equal(f(*arrays), wanted)
