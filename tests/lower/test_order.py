"""An order of nodes with less in memory at once: the same nodes, what they need before them."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.program import Program
from graphgrad.ir.verify import verify_program
from graphgrad.lower import order
from graphgrad.lower.order import ordered

from .fusing import same_values


@pytest.fixture(autouse=True)
def every_size_matters(monkeypatch):
    monkeypatch.setattr(order, "ENOUGH", 0)


def types(program):
    return [node.type for node in program.nodes]


def test_what_frees_as_much_as_it_takes_runs_at_once():
    with gg.Graph():
        x = gg.placeholder((100,))
        waves = [gg.sin(x * float(k)) for k in range(5)]
        y = gg.sum(gg.stack([gg.sum(w) for w in waves]))
    before = Program([x], [y])
    after = ordered(before)
    assert types(before)[:6] == ["Constant", "Multiply", "Sin"] * 2
    assert [t for t in types(after) if t in ("Sin", "ReduceSum")][:-1] == ["Sin", "ReduceSum"] * 5
    verify_program(after)
    assert sorted(map(id, after.nodes)) == sorted(map(id, before.nodes))


def test_where_nothing_is_gained_the_program_is_the_very_same():
    with gg.Graph():
        x = gg.placeholder((100,))
        program = Program([x], [gg.sin(gg.exp(x)) + x])
    assert ordered(program) is program


def test_small_programs_are_left_alone(monkeypatch):
    monkeypatch.setattr(order, "ENOUGH", 1 << 20)
    with gg.Graph():
        x = gg.placeholder((100,))
        waves = [gg.sin(x * float(k)) for k in range(5)]
        program = Program([x], [gg.sum(w) for w in waves])
    assert ordered(program) is program


def test_a_view_holds_what_it_shows():
    with gg.Graph():
        x = gg.placeholder((100,))
        a = gg.exp(x)
        shown = gg.reshape(a, (10, 10))
        b = gg.sum(a)  # frees nothing: a is still looked at
        c = gg.sin(x)
        program = Program([x], [b, gg.sum(c), gg.sum(shown)])
    after = ordered(program)
    verify_program(after)
    assert types(after).index("Reshape") < types(after).index("Sin")


def test_what_is_put_out_is_freed_by_no_reader():
    with gg.Graph():
        x = gg.placeholder((100,))
        a = gg.exp(x)
        b = gg.sum(a)
        c = gg.sin(x)
        d = gg.sum(c)
    flow = order._Flow(Program([x], [a, b, d]))
    assert order._Early(flow).gain == [-800, -8, -800, 800 - 8]


def test_what_is_passed_on_is_the_value_that_it_was():
    with gg.Graph():
        x = gg.placeholder((100,))
        a = gg.exp(x)
        shown = gg.reshape(gg.identity(a), (10, 10))
        flow = order._Flow(Program([x], [gg.sum(shown), gg.sum(a)]))
    assert flow.sizes == [800, 8, 8]
    assert flow.makes == [[0], [], [], [1], [2]]


def test_the_last_reader_of_what_another_has_read_runs_at_once():
    with gg.Graph():
        x = gg.placeholder((100,))
        a, b, c = gg.exp(x), gg.sin(x), gg.cos(x)
        product, total = a * b, gg.sum(b)
    program = Program([x], [product, total, c], [t.node for t in (a, b, c, product, total)])
    assert order._Early(order._Flow(program)).run() == [0, 1, 3, 4, 2]


def test_what_nobody_reads_is_gone_after_its_node():
    with gg.Graph():
        x = gg.placeholder((100,))
        largest, _ = gg.topk(x, 100)
        flow = order._Flow(Program([x], [gg.sum(largest)]))
    assert order.peak(flow, [0, 1]) == 2 * 800


def test_controls_are_kept():
    with gg.Graph() as g:
        x = gg.placeholder((100,))
        first = gg.exp(x)
        second = gg.sum(gg.sin(x))
        node = second.node
        node.controls = (first.node,)
        program = Program([x], [second, gg.sum(first)])
    after = ordered(program)
    assert after.nodes.index(first.node) < after.nodes.index(node)
    assert g


@pytest.mark.parametrize("seed", range(10))
def test_random_programs_keep_their_values_and_need_no_more(seed):
    rng = np.random.default_rng(seed)
    with gg.Graph():
        xs = [gg.placeholder((8, 8)) for _ in range(3)]
        made = list(xs)
        for _ in range(60):
            a, b = (made[rng.integers(len(made))] for _ in range(2))
            fns = [lambda a, b: a + b, lambda a, b: gg.tanh(a), lambda a, b: a * gg.sum(b)]
            made.append(fns[rng.integers(3)](a, b))
        program = Program(xs, [made[-1], gg.sum(made[-2]), made[10]])
    after = ordered(program)
    verify_program(after)
    flow = order._Flow(program)
    assert order.peak(order._Flow(after), range(len(after.nodes))) <= order.peak(
        flow, range(len(program.nodes))
    )
    same_values(program, after)


def test_a_long_chain_is_ordered_in_time():
    with gg.Graph():
        x = gg.placeholder(())
        y = x
        for _ in range(10_000):
            y = gg.sin(y)
    program = Program([x], [y])
    assert ordered(program) is program
