"""What gradients of loops compute again is kept, and what need not be in a loop leaves it."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.control import Scan, While
from graphgrad.optimise.passes import leave_loops
from graphgrad.optimise.passes.loops import drop_unread
from graphgrad.optimise.pipeline import optimise

from ..each import every
from .helpers import compare, program, run, types

RNG = np.random.default_rng(3)
T, B, N = 6, 2, 4
SHAPES = {"x": (T, B, N), "h": (B, N), "w": (N, N), "u": (N, N), "k": ()}
ARRAYS = [0.5 * RNG.normal(size=shape) for shape in SHAPES.values()]


def rnn(x, h, w, u, k):
    def run(h, row):
        h = gg.tanh(row @ w + h @ u) * gg.exp(k)
        return h, h

    return gg.scan(run, h, x)


def gates(x, h, w, u, k):
    def run(carry, row):
        h, n = carry
        z = 1.0 / (1.0 + gg.exp(-(row @ w)))
        h = z * h + (1.0 - z) * gg.tanh(h @ u)
        return (h, n + 1.0), (h @ w, n * k)

    (h, _), (rows, ns) = gg.scan(run, (h, 0.0), x, reverse=True)
    return h, rows, ns


def total_only(x, h, w, u, k):
    """A carry that adds up products, and one that is read while it does."""

    def run(carry, row):
        a, b = carry
        b = b + gg.transpose(row) @ (row * k)
        return (a + gg.transpose(row) @ gg.sin(row), b), gg.sum(b)

    return gg.scan(run, (w, u), x)


def in_a_region(x, h, w, u, k):
    with gg.override_gradient(lambda site, *dys: [2.0 * d for d in site.default(*dys)]) as region:
        last, made = rnn(x, h, w, u, k)
        region.declare(outputs=[last, made])
    return last, made


def rule_inside(x, h, w, u, k):
    def run(s, row):
        z = s @ u
        with gg.override_gradient(lambda site, dy: 3.0 * dy * site.outputs[0]):
            y = gg.tanh(z)
        return y + row @ w, y

    return gg.scan(run, h, x)


def checkpointed(x, h, w, u, k):
    run = gg.rules.checkpoint(lambda h, row: gg.tanh(row @ w + h @ u))

    def step(h, row):
        h = run(h, row)
        return h, h

    return gg.scan(step, h, x)


def turned_rows(x, h, w, u, k):
    """x_t^T @ a, which is no product of rows: neither before the loop nor behind it."""
    return gg.scan(lambda s, row: (s + gg.transpose(row) @ h, gg.transpose(s[:2] * k) @ h), w, x)


def looked_up(x, h, w, u, k):
    """Rows of tables, one and several in a run, one of them twice, of which gradients are added."""

    def run(carry, row):
        i, s = carry
        at = gg.stack([i % N, (i * 2) % N])
        s = gg.tanh(s + w[at] * k) + u[i % 3] + gg.sum(u[at])
        return (i + 1, s * row), s

    (_, s), made = gg.scan(run, (0, h), x)
    return s, made


LOOPS = [looked_up, rnn, gates, total_only, in_a_region, rule_inside, checkpointed, turned_rows]


def graph_of(loop, order):
    """Inputs and outputs of a loop and its gradients up to an order."""
    with gg.Graph():
        inputs = [gg.placeholder(shape, name=name) for name, shape in SHAPES.items()]
        parts = loop(*inputs)
        outputs = [t for p in parts for t in (p if isinstance(p, tuple) else (p,))]
        y = sum(gg.sum(t * t) for t in outputs)
        for _ in range(order):
            dxs = [dx for dx in gg.gradients(y, inputs) if dx is not None]
            outputs += dxs
            y = sum(gg.sum(dx * dx) for dx in dxs)
        return inputs, outputs


def scans(p):
    return [node for node in p.nodes if isinstance(node.op, Scan)]


def inside(node):
    return [n.type for n in node.op.programs[0].nodes]


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("loop", every(2, LOOPS), ids=lambda f: f.__name__)
def test_values_and_gradients_stay(loop, order, backend):
    pytest.importorskip({"numpy": "numpy", "llvm": "llvmlite", "jax": "jax"}[backend])
    if backend == "jax" and order == 2:
        pytest.skip("slow to compile")
    inputs, outputs = graph_of(loop, order)
    wanted = gg.compile(inputs, outputs, backend="numpy", optimize=False)(*ARRAYS)
    found = gg.compile(inputs, outputs, backend=backend, verify=True)(*ARRAYS)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def optimised(loop, order=1):
    return settled(gg.Program(*graph_of(loop, order)))


def settled(p):
    """A program after the passes, and what fired how often."""
    after, log = optimise(p, verify=True)
    return after, {name: n for change in log for name, n in change.fired.items()}


def test_a_gradient_takes_what_the_loop_has_made():
    after, fired = optimised(rnn)
    forward, backward = scans(after)
    assert fired["stored_runs"] == 1
    assert inside(forward).count("Tanh") == 1
    assert "Tanh" not in inside(backward)


def test_products_of_rows_leave_the_loop():
    after, fired = optimised(rnn)
    forward, backward = scans(after)
    assert inside(forward).count("MatMul") == 1  # h @ u
    assert inside(backward).count("MatMul") == 1  # dz @ u^T
    assert "Exp" not in inside(forward)
    assert fired["summed_runs"] == 2
    assert len(backward.op.programs[0].outputs) - backward.op.carries <= 4


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_that_are_there_before_do_not_pass_through_the_loop(reverse):
    def build(x, w):
        return gg.scan(lambda n, row: (n + 1.0, (row, row @ w, -n)), 0.0, x, reverse=reverse)[1]

    p = program(build, x=(T, B, N), w=(N, N))
    after, fired = settled(p)
    assert fired["left_loops"] == 3  # a row, a product of it, and that as a row
    (loop,) = scans(after)
    assert (loop.op.slices, len(loop.outputs)) == (0, 2)
    assert after.outputs[0] is after.inputs[0]
    compare(run(after, ARRAYS[::2][:2]), run(p, ARRAYS[::2][:2]))


def test_a_loop_of_which_nothing_stays_is_gone_unless_something_waits_for_it():
    """What was to run before the loop runs before the rows of it."""
    x, w = gg.placeholder((T, B, N)), gg.placeholder((N, N))
    _, rows = gg.scan(lambda n, row: (n, row @ w), 0.0, x)
    p = gg.Program([x, w], [rows])
    assert "Scan" not in types(optimise(p)[0])
    rows.node.controls = (gg.sin(w).node,)
    p = gg.Program([x, w], [rows])
    assert {"Sin", "Scan"} <= set(types(optimise(p)[0]))


def test_a_loop_that_waits_for_something_keeps_what_its_gradient_computes_again():
    with gg.Graph():
        x, h = gg.placeholder((T, N, N)), gg.placeholder((N, N))
        first = gg.sin(x).node
        last, _ = gg.scan(lambda h, row: (gg.exp(row @ h), None), h, x)
        last.node.controls = (first,)
        after, _ = optimise(gg.Program([x, h], gg.gradients(gg.sum(last), [x])), verify=True)
    assert ["Exp" in inside(node) for node in scans(after)] == [True, False]
    assert types(after)[0] == "Sin"


def test_what_a_loop_returns_is_not_kept_twice():
    def run(h, row):
        h = gg.exp(row + h)
        return h * 2.0, h

    with gg.Graph():
        x, h = gg.placeholder((T, B, N)), gg.placeholder((B, N))
        last, made = gg.scan(run, h, x)
        y = gg.sum(last) + gg.sum(made * made)
        after, _ = optimise(gg.Program([x, h], [y, *gg.gradients(y, [x, h])]))
    body = scans(after)[0].op.programs[0]
    assert [t.node.type for t in body.outputs[1:]] == ["Exp"]


def test_what_is_the_same_is_found_behind_a_carry_that_is_not():
    """A counter of which the gradient knows nothing."""

    def run(carry, row):
        n, h = carry
        return (n + 1.0, gg.exp(row @ h)), None

    with gg.Graph():
        x, h = gg.placeholder((T, N, N)), gg.placeholder((N, N))
        n, last = gg.scan(run, (0.0, h), x)[0]
        after, _ = optimise(gg.Program([x, h], [n, *gg.gradients(gg.sum(last), [x, h])]))
    forward, backward = scans(after)
    assert "Exp" in inside(forward)
    assert "Exp" not in inside(backward)


def test_the_second_factors_of_products_are_turned_before_the_loop():
    """And the first ones are not, nor what a run makes."""

    def build(w, u, s):
        body = lambda i, s: gg.tanh(s @ gg.transpose(w)) + w @ gg.transpose(s) @ u  # noqa: E731
        return gg.fori_loop(0, T, body, s)

    p = program(build, w=(N, N), u=(N, N), s=(N, N))
    after, _ = optimise(p, verify=True)
    (loop,) = scans(after)
    turned = [n.op.transpose_b for n in loop.op.bodies[0].nodes if n.type == "MatMul"]
    assert sorted(turned) == [False, False, True]
    arrays = [ARRAYS[2], ARRAYS[3], 0.1 * ARRAYS[2]]
    compare(run(after, arrays), run(p, arrays), rtol=1e-10)


def rows_behind(width, room=leave_loops.MOST_BYTES):
    """Whether rows of products of (B, width) leave a loop that makes their first factors."""

    def build(s, w):
        return gg.scan(lambda s, _: (s * 2.0, gg.sin(s) @ w), s, length=T)[1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leave_loops, "MOST_BYTES", room)
        after, fired = settled(program(build, s=(B, width), w=(width, N)))
    assert ("MatMul" in inside(scans(after)[0])) is not (fired.get("left_loops") == 1)
    return "MatMul" not in inside(scans(after)[0])


def test_rows_are_products_behind_a_loop_up_to_twice_their_bytes_and_as_far_as_there_is_room():
    assert rows_behind(2 * N)
    assert not rows_behind(2 * N + 1)
    size = T * B * N * 8
    assert rows_behind(N, size)
    assert not rows_behind(N, size - 1)


def test_views_are_looked_at_again_rather_than_kept():
    def run(s, row):
        z = gg.tanh(s @ row)
        return z * z[:, ::-1], None

    with gg.Graph():
        x, h = gg.placeholder((T, N, N)), gg.placeholder((B, N))
        y = gg.sum(gg.scan(run, h, x)[0])
        after, _ = optimise(gg.Program([x, h], [y, *gg.gradients(y, [x, h])]))
    (body,) = scans(after)[0].op.programs
    assert [t.node.type for t in body.outputs[1:]] == ["MatMul", "Tanh"]


def test_what_nobody_reads_of_a_loop_with_a_test_goes_and_the_loop_with_it():
    """Not the number of runs, by which its gradient knows which of the rows are runs."""
    with gg.Graph():
        x = gg.placeholder((3,))

        def run(c):
            return c[0] + 1, gg.sin(c[1]) * x, c[2] * 2.0

        y = gg.while_loop(lambda c: c[0] < 3, run, (0, x, x), max_trips=5)[1]
        after, _ = optimise(gg.Program([x], [y, *gg.gradients(y, [x])]), verify=True)
    (loop,) = [node for node in after.nodes if isinstance(node.op, While)]
    assert loop.op.carries == 2


def test_what_nobody_reads_any_more_goes_when_it_is_looked_for_again():
    x = gg.placeholder((3,))
    run = lambda c: (c[0] + 1, gg.sin(c[1]) * x, c[2] * 2.0)  # noqa: E731
    made = gg.while_loop(lambda c: c[0] < 3, run, (0, x, x), max_trips=5)
    both = drop_unread(gg.Program([x], made[1:]))
    one = drop_unread(gg.Program([x], both.outputs[:1]))
    assert [p.outputs[0].node.op.carries for p in (both, one)] == [3, 2]


def test_what_is_added_at_places_is_added_behind_the_loop():
    after, fired = optimised(looked_up)
    assert fired["summed_runs"] == 2
    assert not any("ScatterAdd" in inside(node) for node in scans(after))
    assert [node.type for node in after.nodes].count("ScatterAdd") == 2


def test_a_sum_that_is_read_on_the_way_stays():
    after, fired = optimised(total_only, order=0)
    (loop,) = scans(after)
    assert fired["summed_runs"] == 1
    assert inside(loop).count("MatMul") == 1
    assert [t.node.type for t in loop.op.programs[0].outputs] == ["Add", "ReduceSum", "Sin"]


@pytest.mark.parametrize("what", ["the carry that a run takes", "what is kept of it"])
def test_a_sum_that_is_read_before_it_is_added_to_stays(what):
    """By a row, or by whoever reads what each run took."""
    x = gg.placeholder((T, B, N))

    def run(a, row):
        return a + gg.transpose(row) @ gg.sin(row), gg.sum(a) if what.startswith("the") else None

    last, rows = gg.scan(run, gg.ones((N, N)), x)
    kept = last.node.outputs[-1] if rows is None else rows
    program, log = optimise(gg.Program([x], [last, kept]))
    assert not any("summed_runs" in change.fired for change in log)
    found = gg.compile([x], [last, kept], backend="numpy")(ARRAYS[0])
    plain = gg.compile([x], [last, kept], backend="numpy", optimize=False)(ARRAYS[0])
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    (loop,) = scans(program)
    assert inside(loop).count("MatMul") == 1


STAYING = {
    "a product that is read twice": lambda a, row, k: (
        a + (p := gg.transpose(row) @ gg.sin(row)),
        p,
    ),
    "a product that is broadcast": lambda a, row, k: (
        a + gg.transpose(row) @ gg.sin(row),
        None,
    ),
    "a factor that waits in the loop": lambda a, row, k: (
        a + waiting(gg.exp(k), row) * (gg.transpose(row) @ gg.sin(row)),
        None,
    ),
    "a sum that waits in the loop": lambda a, row, k: (
        waiting(a + gg.transpose(row) @ gg.sin(row), row),
        None,
    ),
}


def waiting(t, before):
    """A node that runs after another one."""
    t.node.controls = (gg.cos(before).node,)
    return t


@pytest.mark.parametrize("what", STAYING)
def test_what_does_not_leave_a_loop(what):
    def build(x, w, k):
        first = gg.stack([w, w]) if what.endswith("broadcast") else w
        last, rows = gg.scan(lambda a, row: STAYING[what](a, row, k), first, x)
        return last if rows is None else (last, rows)

    p = program(build, x=(T, B, N), w=(N, N), k=())
    after, fired = settled(p)
    assert not {"left_loops", "summed_runs"} & fired.keys()
    arrays = [ARRAYS[0], ARRAYS[2], ARRAYS[4]]
    compare(run(after, arrays), run(p, arrays))


def test_what_is_computed_again_to_save_memory_is_not_kept():
    after, fired = optimised(checkpointed)
    assert not {"stored_runs", "left_loops", "summed_runs"}.intersection(fired)
    assert inside(scans(after)[-1]).count("MatMul") == 6


def test_runs_of_two_loops_over_other_rows_are_not_taken_for_each_other():
    def build(x, h, w, u, k):
        first = rnn(x, h, w, u, k)[1]
        second = rnn(x * 2.0, h, w, u, k)[1]
        return [gg.sum(first * second)]

    inputs = list(SHAPES.items())
    with gg.Graph():
        xs = [gg.placeholder(shape, name=name) for name, shape in inputs]
        (y,) = build(*xs)
        outputs = [y, *[dx for dx in gg.gradients(y, xs) if dx is not None]]
    wanted = gg.compile(xs, outputs, backend="numpy", optimize=False)(*ARRAYS)
    for a, b in zip(gg.compile(xs, outputs, backend="numpy")(*ARRAYS), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


def test_unknown_lengths_are_left_alone_until_they_are_known():
    with gg.Graph():
        x, w = gg.placeholder((None, B, N)), gg.placeholder((N, N))
        y = gg.scan(lambda s, row: (s + row @ w, None), gg.zeros((B, N)), x)[0]
        f = gg.compile([x, w], [y])
    for length, rows in ((None, B), (T, None)):
        p = program(
            lambda x, w: gg.scan(lambda s, row: (s + row @ w, None), gg.zeros_like(x[0]), x)[0],
            x=((length, rows, N), "float64"),
            w=(N, N),
        )
        (loop,) = scans(settled(p)[0])
        assert "MatMul" in inside(loop)

    def places(x, w):
        y, _ = gg.scan(lambda s, row: (s + gg.sum(gg.tanh(w[row])), None), 1.0, x)
        return gg.gradients(y, w)

    for count in (3, None):
        _, fired = settled(program(places, x=((T, count), "int64"), w=(N, N)))
        assert ("summed_runs" in fired) is (count == 3)
    for rows in (ARRAYS[0], ARRAYS[0][:1], ARRAYS[0][:0]):
        np.testing.assert_allclose(f(rows, ARRAYS[2])[0], (rows @ ARRAYS[2]).sum(0), atol=1e-12)
