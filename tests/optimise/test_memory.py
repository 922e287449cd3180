"""Loops within a limit of memory: known before a run, kept in it, with the same values."""

import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.loading import load_backend
from graphgrad.optimise.passes.segments import Segmentation, cut
from graphgrad.optimise.pipeline import optimise
from graphgrad.optimise.room import FREELY, Policy

from .helpers import text
from .test_loops import scans

RNG = np.random.default_rng(8)
BACKENDS = ["numpy", "llvm", "jax"]


def needs(backend):
    pytest.importorskip({"numpy": "numpy", "llvm": "llvmlite", "jax": "jax"}[backend])


def doubled(site, dy):
    return 2.0 * dy * site.outputs[0]


def tripled(site, *dys):
    return [3.0 * dx for dx in site.default(*dys)]


def states(runs, order=1, reverse=False, rows=False, around=False):
    """A loop of two carries with a rule in each run, and its gradients."""
    with gg.Graph():
        x, h, w = gg.placeholder((runs, 2, 8)), gg.placeholder((2, 8)), gg.placeholder((8, 8))

        def run(carry, row):
            h, k = carry
            z = row + h @ w
            with gg.override_gradient(doubled):
                z = gg.tanh(z)
            return (z, k + 1), gg.sum(z) * gg.cast(k, "float64") if rows else None

        with gg.override_gradient(tripled) if around else nullcontext():
            (last, _), made = gg.scan(run, (h, 0), x, reverse=reverse)
        y = gg.sum(last * last) + (gg.sum(gg.sin(made)) if rows else 0.0)
        outputs = [y] + ([made] if rows else [])
        for _ in range(order):
            dxs = gg.gradients(y, [x, h, w])
            outputs += dxs
            y = sum(gg.sum(dx * dx) for dx in dxs)
    return [x, h, w], outputs


def arrays_of(inputs):
    """Small enough that gradients through many runs do not grow without end."""
    return [0.2 * RNG.normal(size=t.shape) for t in inputs]


def least(inputs, outputs, **options):
    """The bytes that the error names."""
    with pytest.raises(gg.ExecutionError, match="a run needs at least") as error:
        gg.compile(inputs, outputs, memory=1, **options)
    return int(str(error.value).split("at least ")[1].split(" ")[0].replace(",", ""))


CASES = [
    (36, 1, {}),
    (37, 1, {"reverse": True, "rows": True}),
    (40, 2, {"around": True}),
    (19, 2, {"rows": True}),
]
QUICK = {("numpy", 0), ("numpy", 1), ("numpy", 2), ("llvm", 1), ("jax", 0)}


@pytest.mark.parametrize(
    ("backend", "runs", "order", "how"),
    [
        pytest.param(b, *case, id=f"{b}-{case}", marks=[pytest.mark.ci][(b, i) in QUICK :])
        for b in BACKENDS
        for i, case in enumerate(CASES)
    ],
)
def test_values_and_gradients_are_the_same_in_less_memory(backend, runs, order, how):
    needs(backend)
    inputs, outputs = states(runs, order, **how)
    arrays = arrays_of(inputs)
    wanted = gg.compile(inputs, outputs, backend="numpy", optimize=False)(*arrays)
    freely = gg.compile(inputs, outputs, backend="numpy").peak_bytes
    low = least(inputs, outputs, backend=backend)
    for limit in [low] if backend == "jax" else [low, (low + freely) // 2, freely]:
        f = gg.compile(inputs, outputs, backend=backend, memory=limit, verify=True)
        assert backend == "jax" or f.peak_bytes <= limit
        for a, b in zip(f(*arrays), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)


def peak_of(f, arrays):
    """Bytes that Python has at once in a run whose memory is taken anew."""
    f.release()
    tracemalloc.start()
    try:
        f(*arrays)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_run_takes_what_was_said_before_it(backend):
    needs(backend)
    inputs, outputs = states(1024)
    outputs = [outputs[0], *outputs[2:]]
    arrays = arrays_of(inputs)
    state = 2 * 8 * 8 + 8
    peaks = {}
    for limit in (None, 1100 * state, 200 * state):
        f = gg.compile(inputs, outputs, backend=backend, memory=limit)
        f(*arrays)
        peaks[limit] = min(peak_of(f, arrays) for _ in range(3))  # other threads only add to it
        assert limit is None or f.peak_bytes <= limit
        assert peaks[limit] < 1.1 * f.peak_bytes + 40_000  # Python's own
    assert peaks[200 * state] < peaks[1100 * state] < peaks[None]


def through(inputs, y):
    return inputs, [y, *gg.gradients(y, inputs)]


def of_large_carries():
    h, w = gg.placeholder((64, 64)), gg.placeholder((64, 64))
    return [h, w], [gg.fori_loop(0, 9, lambda i, s: gg.tanh(s @ w), h)]


def of_a_sequence():
    x, h, w = gg.placeholder((50, 16, 64)), gg.placeholder((16, 64)), gg.placeholder((64, 64))
    y = gg.scan(lambda h, row: (gg.tanh(row + h @ gg.transpose(w)), h), h, x)[1]
    return through([x, h, w], gg.sum(y * y))


def of_a_test():
    h, w = gg.placeholder((16, 64)), gg.placeholder((64, 64))

    def run(carry):
        return carry[0] + 1, gg.tanh(carry[1] @ w)

    y = gg.while_loop(lambda c: c[0] < 90, run, (0, h), max_trips=128)[1]
    return through([h, w], gg.sum(y))


def of_loops_in_a_loop():
    x, h, w = gg.placeholder((20, 8, 16)), gg.placeholder((8, 16)), gg.placeholder((16, 16))

    def run(s, row):
        last, made = gg.scan(lambda t, v: (gg.tanh(t @ w + v), t), s, x)
        return last, gg.sum(made)

    return through([x, h, w], gg.sum(gg.scan(run, h, x)[0]))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "program", [of_large_carries, of_a_sequence, of_a_test, of_loops_in_a_loop]
)
def test_what_a_loop_takes_is_in_peak_bytes(program, backend):
    """Carries beside those that a run makes, what is kept, copies, buffers of compiled loops."""
    needs(backend)
    with gg.Graph():
        inputs, outputs = program()
        f = gg.compile(inputs, outputs, backend=backend, num_threads=1)
    arrays = arrays_of(inputs)
    f(*arrays)
    took = min(peak_of(f, arrays) for _ in range(3))
    assert 0.97 * f.peak_bytes < took < 1.02 * f.peak_bytes + 32_000  # Python's own


def test_what_fits_is_stored_and_the_rest_computed_again():
    inputs, outputs = states(128)
    state = 128 * 2 * 8 * 8

    def inside(limit):
        found = scans(gg.compile(inputs, outputs, backend="numpy", memory=limit).program)
        return [n.type for n in found[-1].op.bodies[0].nodes]

    plain = gg.compile(inputs, outputs, backend="numpy").peak_bytes
    assert "Tanh" not in inside(plain)
    assert inside(plain - state // 2).count("Tanh") == 1
    assert inside(least(inputs, outputs, backend="numpy")).count("Scan") == 2


def test_what_saves_the_most_work_for_its_bytes_is_kept_first():
    """Of two loops, the one of larger products, as long as it fits; all where all does."""
    inputs, total = [], 0.0
    for n in (8, 16):
        x, h, w = gg.placeholder((64, 2, n)), gg.placeholder((2, n)), gg.placeholder((n, n))
        last, _ = gg.scan(lambda h, row, w=w: (gg.tanh(row + h @ w), None), h, x)
        total = total + gg.sum(last)
        inputs += [x, h, w]
    outputs = gg.gradients(total, inputs[2::3])

    def again(limit):
        """Which of the loops backward look at the runs again."""
        f = gg.compile(inputs, outputs, backend="numpy", memory=limit)
        assert f.peak_bytes <= (limit or f.peak_bytes)
        backward = scans(f.program)[2:]
        found = {n.outputs[0].shape[1]: n.op.bodies[0].nodes for n in backward}
        return {width for width, nodes in found.items() if nodes[0].type == "MatMul"}

    plain = gg.compile(inputs, outputs, backend="numpy").peak_bytes
    rows = 64 * 2 * 8 * 8
    assert again(plain) == set()
    assert again(plain - 2 * rows) == {8}
    assert again(plain - 3 * rows) == {16}
    assert again(plain - 4 * rows) == {8, 16}


def test_a_program_that_fits_is_what_it_is_without_a_limit():
    """The limit is one of what runs, in which loops keep nothing that nobody reads."""
    x, h, w = gg.placeholder((64, 2, 8)), gg.placeholder((2, 8)), gg.placeholder((8, 8))
    last, _ = gg.scan(lambda h, row: (gg.tanh(row + h @ w), None), h, x)
    (dh,) = gg.gradients(gg.sum(last), [h])
    plain = gg.compile([x, h, w], dh, backend="numpy")
    assert plain.peak_bytes < 1.1 * 64 * 2 * 8 * 8
    limited = gg.compile([x, h, w], dh, backend="numpy", memory=plain.peak_bytes)
    assert [text(f.program) for f in (limited, plain)] == [text(plain.program)] * 2


def test_segments_without_a_rest_where_that_is_near_the_root():
    assert cut(10_000) == Segmentation(100, 100, 0)
    assert cut(37) == Segmentation(6, 6, 1)
    for runs in range(16, 400):
        found = cut(runs)
        assert found.segments * found.length + found.rest == runs
        assert found.segments + found.length + found.rest < 5 * runs**0.5


def test_memory_of_programs_without_loops_is_a_limit():
    x = gg.placeholder((1000,))
    y = gg.outer(x, x)
    assert least([x], [y]) == 8_000_000
    assert gg.compile([x], [y], memory=8e6).peak_bytes == 8_000_000
    assert least([x], [y], optimize=False) == 8_000_000


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_unknown_lengths_are_held_to_the_limit_when_they_come(backend):
    needs(backend)
    x, w = gg.placeholder(("T", "B", 8)), gg.placeholder((8, 8))
    h = gg.zeros_like(x[0])
    last, _ = gg.scan(lambda h, row: (gg.tanh(row + h @ w), None), h, x)
    outputs = gg.gradients(gg.sum(last), [w])
    f = gg.compile([x, w], outputs, backend=backend, memory=10_000)
    plain = gg.compile([x, w], outputs, backend=backend, optimize=False)
    a = arrays_of([w])[0]
    for runs in (9, 100, 300):
        rows = RNG.normal(size=(runs, 2, 8))
        np.testing.assert_allclose(f(rows, a)[0], plain(rows, a)[0], rtol=1e-10)
        assert f.peak_bytes <= 10_000
    with pytest.raises(gg.ExecutionError, match="memory=10,000 bytes are not enough"):
        f(RNG.normal(size=(3000, 2, 8)), a)


def test_within_a_limit_no_memory_goes_to_speed_alone():
    needs("llvm")
    x, w = gg.placeholder((20, 2, 8)), gg.placeholder((8, 8))
    last, _ = gg.scan(lambda h, row: (gg.tanh(row + h @ w), None), gg.zeros((2, 8)), x)
    backend = load_backend("llvm")
    freely = gg.compile([x, w], last, backend=backend).peak_bytes
    assert gg.compile([x, w], last, backend=backend, memory=1e9).peak_bytes < freely
    assert gg.compile([x, w], last, backend=backend).peak_bytes == freely


def test_lengths_that_only_a_run_knows_have_no_limit():
    y = gg.while_loop(lambda c: c < 5.0, lambda c: gg.exp(c), gg.constant(1.0))
    x = gg.placeholder((None,))
    (dx,) = gg.gradients(y, [y.node.inputs[0]])
    with pytest.raises(gg.ExecutionError, match=r"While.*max_trips"):
        gg.compile([], [dx], memory=1e9)
    pytest.importorskip("jax")
    with pytest.raises(gg.ExecutionError, match="known lengths"):
        gg.compile([x], [gg.sum(x)], backend="jax", memory=1e9)


def test_there_is_no_room_for_rows_whose_number_is_unknown():
    """A gradient within a limit computes again what it reads of a loop of unknown length."""
    with gg.Graph():
        w, x = gg.placeholder((3, 3)), gg.placeholder((None, 3))
        last, _ = gg.scan(lambda h, row: (gg.tanh(h @ w + row @ w), None), gg.zeros(3), x)
        dw = gg.gradients(gg.sum(last), w)
    program = gg.Program([w, x], [dw])
    for policy, kept in [(FREELY, True), (Policy(10**9), False)]:
        _, log = optimise(program, policy=policy)
        assert any("stored_runs" in change.fired for change in log) == kept


@pytest.mark.parametrize("memory", [True, "1 GB", [1]])
def test_memory_is_a_number_of_bytes(memory):
    x = gg.placeholder(())
    with pytest.raises(TypeError, match="memory is a number of bytes"):
        gg.compile(x, x, memory=memory)
    with pytest.raises(ValueError, match="above 0"):
        gg.compile(x, x, memory=0)
