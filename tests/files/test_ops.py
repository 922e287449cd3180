"""Every op, and what its gradients are made of, is in a file what it was."""

import pytest

import graphgrad as gg
from graphgrad.ir.build import build

from ..each import each
from ..laws.cases import CASES


def placed_here(op, arrays, orders):
    """An op on placeholders of the current graph, with its gradients as far as it has any."""
    xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
    ys = [t for t in build(op, tuple(xs)).outputs if t.type.differentiable]
    xs = [x for x in xs if x.type.differentiable]
    for _ in range(orders):
        if not (xs and ys):
            return
        try:
            ys = [d for d in gg.gradients(ys, xs) if d is not None]
        except gg.GraphGradError:
            return


def comes_back(graph, folder):
    """Saved and loaded, it has the same ops, interned ones the very same; and the same bytes."""
    gg.save(folder / "a.gg", graph)
    new = gg.load(folder / "a.gg").graph
    assert [n.name for n in new.nodes] == [n.name for n in graph.nodes]
    for a, b in zip(graph.nodes, new.nodes, strict=True):
        assert a.op is b.op if type(a.op)._interned else type(a.op) is type(b.op)
        assert [t.type for t in a.outputs] == [t.type for t in b.outputs]
    gg.save(folder / "b.gg", new)
    assert (folder / "a.gg").read_bytes() == (folder / "b.gg").read_bytes()


CARRIED = [case for case in CASES if case[1].type != "PyFunction"]


@pytest.fixture(autouse=True, scope="module")
def _names():
    """Functions of JAX, where that is installed, are carried by name."""
    for fn in {op.fn for _, op, _ in CARRIED if op.type == "JaxFunction"}:
        gg.register_function("laws/of_jax", replace=True)(fn)


def test_all_ops_come_back(tmp_path):
    with gg.Graph() as graph:
        for _, op, arrays in CARRIED:
            placed_here(op, arrays, orders=0)
    comes_back(graph, tmp_path)
    assert len({n.op.type for n in graph.nodes}) > 250


@pytest.mark.ci
@each(CARRIED[::2], lambda name: name[:1])
def test_an_op_and_its_gradients_of_order_two_come_back(op, arrays, tmp_path):
    with gg.Graph() as graph:
        placed_here(op, arrays, orders=2)
    comes_back(graph, tmp_path)
