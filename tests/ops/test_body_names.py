"""What a loop carries, and its rows, are called as in the user's function."""

from collections import namedtuple
from functools import partial

import pytest

import graphgrad as gg

Body = namedtuple("Body", "position speed")


def names(t):
    """Of what the body of the loop that makes a tensor is given."""
    op = t.node.op
    given = len(op.programs[0].inputs) if op.type == "Scan" else op.carries
    found = [p.node for p in op.bodies[-1].inputs[:given]]
    return [n.name for n in found if n._name is not None]


@pytest.fixture
def rows():
    return gg.placeholder((5, 3), name="rows")


def zeros():
    return gg.zeros((3,))


def test_parameters(rows):
    def step(h, row):
        return gg.tanh(h + row), h

    assert names(gg.scan(step, zeros(), rows)[0]) == ["h", "row"]
    assert names(gg.map(lambda each: each * 2.0, rows)) == ["each"]
    assert names(gg.while_loop(lambda s: s < 3.0, lambda c: c + 1.0, 0.0)) == ["c"]


@pytest.mark.parametrize("last", [3, "N"])
def test_the_number_of_a_run(last):
    bound = gg.placeholder((), "int64") if last == "N" else last
    assert names(gg.fori_loop(0, bound, lambda i, total: total + i, 0)) == ["i", "total"]


def test_variables_keys_and_fields(rows):
    def apart(carry, row):
        doubled = row * 2.0
        h, c = carry
        return (h + doubled, c), None

    def whole(carry, row):
        return (carry[0] + row, carry[1]), None

    pair = (zeros(), gg.ones((3,)))
    assert names(gg.scan(apart, pair, rows)[0][0]) == ["h", "c", "row"]
    assert names(gg.scan(whole, pair, rows)[0][0]) == ["row"]
    keyed = gg.scan(
        lambda s, _: ({"h": s["h"], "a b": s["a b"]}, None), {"h": 1.0, "a b": 2.0}, rows
    )
    assert names(keyed[0]["h"]) == ["h", "_"]
    moved = gg.while_loop(
        lambda s: s.position < 3.0,
        lambda s: Body(s.position + s.speed, s.speed),
        Body(gg.constant(0.0), gg.constant(1.0)),
    )
    assert names(moved.position) == ["position", "speed"]


def test_methods_and_functions_without_code(rows):
    class Cell:
        def step(self, state, row):
            return state + row, None

    def scaled(by, state, row):
        return state * by + row, None

    assert names(gg.scan(Cell().step, zeros(), rows)[0]) == ["state", "row"]
    assert names(gg.scan(partial(scaled, 2.0), zeros(), rows)[0]) == []


def test_names_that_others_have_stay_theirs(rows):
    """That of an unnamed node, and one given twice."""

    def step(Add_0, carry):
        return Add_0 + carry, None

    assert names(gg.scan(step, zeros(), rows)[0]) == ["carry"]
    twice = gg.scan(lambda row, s: ({"s": row["s"] + s}, None), {"s": zeros()}, rows)[0]["s"]
    assert names(twice) == ["s", "s_1"]


def test_functions_of_graphgrad_give_no_names(rows):
    y = gg.vmap(lambda row: gg.scan(lambda h, _: (h * 2.0, None), row, length=2)[0])(rows)
    assert y.shape == (5, 3)
    assert names(gg.scan(lambda h, x: (h + x, None), zeros(), rows, reverse=True)[0]) == ["h", "x"]


def test_copies_files_and_gradients_keep_them(rows, tmp_path):
    h = gg.scan(lambda h, row: (gg.tanh(h + row), None), zeros(), rows)[0]
    gg.gradients(gg.sum(h), rows)
    gg.save(tmp_path / "a.gg", h.graph)
    for graph in (h.graph.copy(), gg.load(tmp_path / "a.gg").graph):
        loop = next(n for n in graph.nodes if n.type == "Scan")
        assert names(loop.outputs[0]) == ["h", "row"]


def test_a_carry_may_be_called_as_something_outside_that_the_body_reads():
    with gg.Graph():
        h = gg.placeholder((3,), name="h")
        xs = gg.placeholder((2, 3), name="x")
        scanned = gg.scan(lambda c, x: (c * h + x, None), h * 2.0, xs)[0]
        looped = gg.while_loop(lambda h: gg.sum(h) < 9.0, lambda h_: h_ + h, h)
        f = gg.compile([h, xs], [scanned, looped, gg.gradients(gg.sum(scanned), h)])
    a, b, da = f([1.0, 2.0, 3.0], [[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    assert a.tolist() == [3.0, 19.0, 59.0]  # (2 h h + 1) h + x
    assert b.tolist() == [2.0, 4.0, 6.0]
    assert da.tolist() == [7.0, 25.0, 55.0]  # 6 h h + 1


def test_a_carry_that_is_taken_apart_wrongly_is_pythons_error(rows):
    def step(carry, row):
        h, c = carry
        return (h, c, row), h

    with pytest.raises(ValueError, match="too many values to unpack"):
        gg.scan(step, (zeros(), zeros(), zeros()), rows)
