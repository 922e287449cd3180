"""Many small matrix products as few large ones: when, with which values, and when not."""

import functools
from collections import Counter

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.optimise.passes.products import join_products
from graphgrad.optimise.pipeline import normal_form, optimise
from graphgrad.optimise.rewrite import settle

from .helpers import compare, program, run, types, verified

T, B, D, H = 5, 4, 3, 2


def joined(p):
    """The program in normal form, that with its products joined and tidied up, and what was."""
    before = settle(p, *normal_form(Counter()))
    fired = Counter()
    after = verified(join_products(before, fired, normal_form(Counter())))
    return before, after, fired


def counts(p, *names):
    found = Counter(types(p))
    return tuple(found[n] for n in names)


def added(terms):
    return functools.reduce(gg.add, terms)


def agree(before, after):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=t.shape) for t in before.inputs]
    compare(run(before, arrays), run(after, arrays), rtol=1e-10)


# --- products that share an operand --------------------------------------------------------------


def rows_of_one(x, w):
    return [gg.tanh(x[t] @ w) for t in range(T)]


def test_rows_of_one_tensor_times_one_matrix_are_one_product_and_no_copy():
    before, after, fired = joined(program(rows_of_one, x=(T, B, D), w=(D, H)))
    assert fired == {"summed_products": 0, "shared_products": 1}
    assert counts(before, "MatMul", "Slice") == (T, T)
    assert counts(after, "MatMul", "Concat", "Reshape") == (1, 0, 1)
    agree(before, after)


def test_independent_operands_are_joined():
    def build(*args):
        *xs, w = args
        return [gg.exp(x) @ w for x in xs]

    inputs = {f"x{i}": (B + i, D) for i in range(T)}
    before, after, _ = joined(program(build, **inputs, w=(D, H)))
    assert counts(after, "MatMul", "Concat") == (1, 1)
    agree(before, after)


@pytest.mark.parametrize("flags", [(a, b) for a in (False, True) for b in (False, True)])
@pytest.mark.parametrize("side", [0, 1])
def test_on_either_side_transposed_or_not(side, flags):
    def build(*args):
        *xs, w = args
        pairs = [(x, w) if side == 0 else (w, x) for x in xs]
        return [
            (gg.transpose(a) if flags[0] else a) @ (gg.transpose(b) if flags[1] else b)
            for a, b in pairs
        ]

    left = (D, B) if flags[0] else (B, D)
    right = (H, D) if flags[1] else (D, H)
    x, w = (left, right) if side == 0 else (right, left)
    p = program(build, **{f"x{i}": x for i in range(T)}, w=w)
    before, after, fired = joined(p)
    assert fired["shared_products"] == 1
    assert counts(before, "MatMul") == (T,)
    assert counts(after, "MatMul") == (1,)
    agree(before, after)


def recurrent(x, h, w, u):
    for t in range(T):
        h = gg.tanh(x[t] @ w + h @ u)
    return h


RECURRENT = {"x": (T, B, D), "h": (B, H), "w": (D, H), "u": (H, H)}


def test_what_needs_the_step_before_stays_in_its_step():
    before, after, _ = joined(program(recurrent, **RECURRENT))
    assert counts(before, "MatMul") == (2 * T,)
    assert counts(after, "MatMul") == (1 + T,)
    agree(before, after)


def two_layers(x, h, k, w, u, v, s):
    hs = []
    for t in range(T):
        h = gg.tanh(x[t] @ w + h @ u)
        hs.append(h)
    for h in hs:
        k = gg.tanh(h @ v + k @ s)
    return k


LAYERS = {"x": (T, B, D), "h": (B, H), "k": (B, H), "w": (D, H)} | dict.fromkeys("uvs", (H, H))


def test_every_layer_of_a_stack_has_its_inputs_at_once():
    before, after, fired = joined(program(two_layers, **LAYERS))
    assert fired["shared_products"] == 2
    assert counts(after, "MatMul") == (2 + 2 * T,)
    agree(before, after)


def test_batches_that_would_wait_for_each_other_are_not_both_made():
    def build(a, b, w, v):
        first = [gg.sin(a[i] @ w) for i in range(3)]
        crossed = [gg.sin(b[i] @ v) for i in range(4)]
        return [t @ v for t in first] + [t @ w for t in crossed]

    p = program(build, a=(3, B, H), b=(4, B, H), w=(H, H), v=(H, H))
    before, after, fired = joined(p)
    assert fired["shared_products"] == 1
    agree(before, after)


def test_the_order_is_one_in_which_everything_is_ready():
    def build(x, y, w):
        first = gg.exp(x @ w)  # read before the others are made
        others = [gg.sin(y) @ w, gg.cos(y) @ w, gg.tanh(y) @ w]
        return [gg.sum(first), *others]

    before, after, fired = joined(program(build, x=(B, D), y=(B, D), w=(D, H)))
    assert fired["shared_products"] == 1
    agree(before, after)


def test_large_products_stay():
    build = lambda x, w: [x[t] @ w for t in range(T)]  # noqa: E731
    few, many = (program(build, x=(T, rows, D), w=(D, H)) for rows in (128, 129))
    assert joined(few)[2]["shared_products"] == 1
    before, after, _ = joined(many)
    assert after is before


def test_two_products_stay():
    p = program(lambda x, w: [x[0] @ w, x[1] @ w], x=(2, B, D), w=(D, H))
    before, after, fired = joined(p)
    assert after is before
    assert not fired


def test_no_more_is_joined_than_there_is_room_for():
    def build(x, w):
        return [gg.exp(x[t]) @ w for t in range(40)]

    p = program(build, x=(40, 64, 1000), w=(1000, 3000))
    before = settle(p, *normal_form(Counter()))
    after = join_products(before)
    assert counts(after, "MatMul") == (2,)


def test_a_program_that_recomputes_keeps_its_steps_apart():
    @gg.rules.checkpoint
    def step(x, w):
        return gg.tanh(x @ w)

    def build(x, w):
        ys = [step(x[t], w) for t in range(T)]
        return gg.gradients(gg.sum(gg.concat(ys)), w)

    before, after, _ = joined(program(build, x=(T, B, D), w=(D, H)))
    assert after is before


# --- sums of products ----------------------------------------------------------------------------


def test_the_gradient_of_a_shared_matrix_is_one_product():
    def build(x, h, w, u):
        y = recurrent(x, h, w, u)
        return [y, *gg.gradients(gg.sum(y * y), [w, u])]

    before, after, fired = joined(program(build, **RECURRENT))
    assert fired == {"summed_products": 2, "shared_products": 1}
    assert counts(before, "AddN") == (2,)
    assert counts(after, "AddN") == (0,)
    # x @ w, T of h @ u, T - 1 of d @ u^T, and the two gradients
    assert counts(after, "MatMul") == (1 + T + T - 1 + 2,)
    assert counts(after, "Concat") == (2,)  # of the h, and of the d for both gradients
    agree(before, after)


def test_the_gradient_of_a_bias_is_summed_of_what_is_joined_anyway():
    def build(x, h, w, u, b):
        for t in range(T):
            h = gg.tanh(x[t] @ w + h @ u + b)
        return gg.gradients(gg.sum(h * h), [w, u, b])

    before, after, _ = joined(program(build, **RECURRENT, b=(H,)))
    assert counts(before, "ReduceSum") == (T,)
    assert counts(after, "ReduceSum", "AddN") == (1, 0)
    agree(before, after)


def test_a_chain_of_additions_is_a_sum():
    def build(x, y, c):
        total = c
        for t in range(T):
            total = total + gg.transpose(x[t]) @ y[t]
        return total

    p = program(build, x=(T, B, D), y=(T, B, H), c=(D, H))
    before, after, fired = joined(p)
    assert fired["summed_products"] == 1
    assert counts(after, "MatMul", "Add", "Concat", "Slice") == (1, 1, 0, 0)
    agree(before, after)


@pytest.mark.parametrize("flags", [(a, b) for a in (False, True) for b in (False, True)])
def test_sums_of_products_transposed_or_not(flags):
    def build(*xs):
        pairs = zip(xs[::2], xs[1::2], strict=True)
        return added(
            (gg.transpose(a) if flags[0] else a) @ (gg.transpose(b) if flags[1] else b)
            for a, b in pairs
        )

    inputs = {}
    for i in range(T):  # of different lengths to sum over
        inputs[f"a{i}"] = (i + 2, D) if flags[0] else (D, i + 2)
        inputs[f"b{i}"] = (H, i + 2) if flags[1] else (i + 2, H)
    before, after, fired = joined(program(build, **inputs))
    assert fired["summed_products"] == 1
    assert counts(after, "MatMul", "Concat") == (1, 2)
    agree(before, after)


def test_a_product_that_something_else_reads_stays():
    def build(x, y):
        terms = [gg.transpose(x[t]) @ y[t] for t in range(T)]
        return [added(terms), terms[0], gg.sin(terms[1])]

    before, after, _ = joined(program(build, x=(T, B, D), y=(T, B, H)))
    assert counts(after, "MatMul") == (1 + 2,)
    agree(before, after)


def test_a_sum_that_something_else_reads_ends_there():
    def build(x, y):
        terms = [gg.transpose(x[t]) @ y[t] for t in range(T)]
        half = terms[0] + terms[1] + terms[2]
        return [half, half + terms[3] + terms[4]]

    before, after, fired = joined(program(build, x=(T, B, D), y=(T, B, H)))
    assert fired["summed_products"] == 1
    assert counts(after, "MatMul") == (3,)
    agree(before, after)


def test_where_the_copies_cost_more_than_the_sums_nothing_is_joined():
    def build(x, y):
        return added(gg.transpose(gg.exp(x[t])) @ gg.exp(y[t]) for t in range(T))

    p = program(build, x=(T, 2000, 8), y=(T, 2000, 8))
    before, after, fired = joined(p)
    assert after is before
    assert not fired


def test_sums_without_products_stay():
    p = program(lambda x: added(gg.exp(x[t]) for t in range(T)), x=(T, B, D))
    before, after, _ = joined(p)
    assert after is before


# --- at work -------------------------------------------------------------------------------------


def lstm(x, wx, wh, b):
    h = gg.constant(np.zeros((B, H)))
    c = gg.constant(np.zeros((B, H)))
    for t in range(T):
        z = x[t] @ wx + h @ wh + b
        i, f, g, o = (z[:, k * H : (k + 1) * H] for k in range(4))
        c = gg.nn.sigmoid(f) * c + gg.nn.sigmoid(i) * gg.tanh(g)
        h = gg.nn.sigmoid(o) * gg.tanh(c)
    loss = gg.mean(h * h)
    return [loss, *gg.gradients(loss, [wx, wh, b])]


def test_an_unrolled_lstm():
    p = program(lstm, x=(T, B, D), wx=(D, 4 * H), wh=(H, 4 * H), b=(4 * H,))
    after, log = optimise(p, verify=True)
    fired = Counter()
    for change in log:
        fired.update(change.fired)
    assert fired["sum_of_unslices"] == T
    assert counts(after, "Unslice", "AddN", "SumToShape") == (0, 0, 0)
    assert counts(after, "MatMul") == (1 + (T - 1) + (T - 1) + 2 + 1,)
    agree(p, after)


def test_float32_stays_float32():
    inputs = {"x": (T, B, D), "wx": (D, 4 * H), "wh": (H, 4 * H), "b": (4 * H,)}
    p = program(lstm32, **{k: (s, "float32") for k, s in inputs.items()})
    after, _ = optimise(p, verify=True)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=t.shape).astype("float32") for t in p.inputs]
    compare(run(p, arrays), run(after, arrays), rtol=1e-4)


def lstm32(x, wx, wh, b):
    h = x[0] @ wx[:, :H]
    for t in range(T):
        h = gg.tanh((x[t] @ wx + h @ wh + b)[:, :H])
    return [h, *gg.gradients(gg.sum(h), [wx, wh, b])]
