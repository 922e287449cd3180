"""Nothing recurses over the graph: long chains at a recursion limit far below their length."""

import gc
import pickle
import sys

import pytest

import graphgrad as gg


@pytest.fixture
def shallow():
    """A recursion limit that leaves room for little more than pytest itself."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(before)


def everything(length):
    """Build, differentiate, compile, run, copy, pickle and delete a chain."""
    with gg.Graph() as g:
        x = h = gg.placeholder((), name="x")
        for _ in range(length // 2):
            h = gg.sin(h) + 1.0
        dx = gg.gradients(h, x)
    before = [float(v) for v in gg.compile([x], [h, dx])(0.5)]
    new = pickle.loads(pickle.dumps(g.copy()))
    ys = [new.nodes[t.node.index].outputs[0] for t in (h, dx)]
    after = gg.compile([new.tensor("x:0")], ys, optimize=False)(0.5)
    assert [float(v) for v in after] == pytest.approx(before)
    del g, x, h, dx, new, ys
    gc.collect()


def test_a_chain_of_2_000_nodes(shallow):
    everything(2_000)


@pytest.mark.ci
def test_a_chain_of_6_000_nodes(shallow):
    everything(6_000)


@pytest.mark.slow
def test_a_chain_of_a_million_nodes():
    everything(1_000_000)
