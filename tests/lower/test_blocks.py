"""Convolutions and the loops behind them, as one node: which, and that the values are the same."""

from __future__ import annotations

import numpy as np

import graphgrad as gg
from graphgrad.ir.verify import verify_program
from graphgrad.lower.blocks import ConvolvedLoop, with_loops


def _built():
    """Images x, and two convolutions of them."""
    x = gg.placeholder((1, 4, 5, 2))
    w = [gg.constant(np.ones((1, 1, 2, 2)) * i) for i in (1, 2)]
    return x, gg.nn.conv(x, w[0]), gg.nn.conv(x, w[1])


def _pairs(program, fits=lambda conv, loop: True):
    """The names of the nodes of each pair, where any is made."""
    made = with_loops(program, fits)
    verify_program(made)
    ops = [n.op for n in made.nodes if isinstance(n.op, ConvolvedLoop)]
    assert (made is program) == (not ops)
    return [[n.name for n in op.program.nodes] for op in ops]


def test_what_one_node_reads_goes_with_it():
    with gg.Graph():
        x, a, b = _built()
        y, z = gg.tanh(a), gg.exp(b)
        found = _pairs(gg.Program([x], [y, z]))
    assert sorted(found) == sorted([[a.node.name, y.node.name], [b.node.name, z.node.name]])


def test_what_is_read_or_fetched_besides_does_not():
    with gg.Graph():
        x, a, _ = _built()
        y = gg.tanh(a)
        assert _pairs(gg.Program([x], [y, a])) == []
        assert _pairs(gg.Program([x], [y, gg.exp(a)])) == []
        assert _pairs(gg.Program([x], [a * a])) == []


def test_the_last_of_two_that_fits():
    with gg.Graph():
        x, a, b = _built()
        program = gg.Program([x], [gg.subtract(a, b)])
        ((last, _),) = _pairs(program)
        ((first, _),) = _pairs(program, lambda conv, loop: conv is not b.node)
        assert _pairs(program, lambda conv, loop: False) == []
    assert (first, last) == (a.node.name, b.node.name)


def test_what_waits_for_another_node_stays():
    for late in range(2):
        with gg.Graph():
            x, early, b = _built()
            y = gg.tanh(b)
            (b, y)[late].node.controls = (early.node,)
            assert _pairs(gg.Program([x], [y, early])) == []
