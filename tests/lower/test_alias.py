"""What nodes do to memory: write, call, look, or nothing."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.numpy_backend import NumpyBackend
from graphgrad.ir.op import Op
from graphgrad.ir.program import Program
from graphgrad.lower.alias import AliasAnalysis, Effect, is_strange, is_view
from graphgrad.ops.base import apply
from graphgrad.ops.sources import assign


class Mine(Op):
    """An op that is not of the library."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        return x + 1


def analysed(inputs, outputs):
    return AliasAnalysis(Program(inputs, outputs), NumpyBackend().bind())


def kinds(aliases):
    return [(a.node.type, a.kind) for a in aliases.actions]


def test_what_passes_a_value_on_is_no_action():
    with gg.Graph():
        x, v = gg.placeholder((3,)), gg.variable(np.zeros(3))
        a = gg.exp(x)
        y = gg.stop_gradient(gg.identity(a))
        z = assign(v, y)
        aliases = analysed([x, v], [y, z])
    assert kinds(aliases) == [("Exp", Effect.WRITE)]
    assert aliases.same[y] is a
    assert aliases.same[z] is a


@pytest.mark.parametrize(
    ("look", "kind"),
    [
        (lambda a: a.T, Effect.FIXED),
        (lambda a: gg.reshape(a, (6,)), Effect.FIXED),
        (lambda a: a[1:], Effect.FIXED),
        (lambda a: gg.broadcast_to(a, (4, 2, 3)), Effect.FIXED),
        (lambda a: gg.reshape(a.T, (6,)), None),  # it has to copy
    ],
)
def test_views_of_what_is_written_are_settled_before_a_run(look, kind):
    with gg.Graph():
        x = gg.placeholder((2, 3))
        a = gg.exp(x)
        y = look(a)
        aliases = analysed([x], [y])
    found = [k for name, k in kinds(aliases) if name == y.node.type]
    if kind is None:
        assert found[-1] in (Effect.WRITE, Effect.CALL)
        assert y not in aliases.root
    else:
        assert found == [kind]
        assert aliases.root[y] is a
        assert aliases.layout(y).shape == y.shape


@pytest.mark.parametrize("shape", [(2, 3), (2, 0)])
def test_pieces_of_which_some_are_empty_are_views(shape):
    with gg.Graph():
        x = gg.placeholder(shape)
        a = gg.exp(x)
        pieces = gg.split(a, [0, 0, min(1, shape[1])], axis=1)
        aliases = analysed([x], pieces)
    assert kinds(aliases) == [("Exp", Effect.WRITE), ("Split", Effect.FIXED)]
    assert all(aliases.root[piece] is a for piece in pieces)


def test_views_of_arguments_are_looked_at_in_every_run():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        aliases = analysed([x], [x.T])
    assert kinds(aliases) == [("Transpose", Effect.LOOK)]
    assert aliases.layout(x) is None


def test_views_of_constants_are_constants():
    with gg.Graph():
        x = gg.placeholder((3, 2))
        c = gg.constant(np.arange(6.0).reshape(2, 3))
        y = c.T
        aliases = analysed([x], [x * y])
    assert kinds(aliases) == [("Multiply", Effect.WRITE)]
    assert np.shares_memory(aliases.constants[y], aliases.constants[c])


def test_code_that_is_not_of_the_library_may_keep_what_it_reads():
    with gg.Graph():
        x = gg.placeholder((3,))
        a, b, c = gg.exp(x), gg.sin(x), gg.tanh(x)
        y = apply(Mine(), a)
        z = gg.py_function(np.negative, [b[1:]], [((2,), "float64")])
        aliases = analysed([x], [y, z, gg.sum(c)])
    assert aliases.kept == {a, b}
    assert is_strange(y.node.op)
    assert is_strange(z.node.op)
    assert not is_strange(c.node.op)


@pytest.mark.filterwarnings("ignore::graphgrad.PerformanceWarning")
def test_an_op_that_is_run_for_every_example_is_as_strange_as_it_is_alone():
    with gg.Graph():
        x = gg.placeholder((4, 3))
        a, b = gg.exp(x), gg.sin(x)
        y = gg.vmap(lambda row: apply(Mine(), row))(a)
        aliases = analysed([x], [y, gg.sum(b)])
    assert y.node.type == "PerExample"
    assert is_strange(y.node.op)
    assert aliases.kept == {a}


def test_what_sums_is_no_view_of_what_it_sums():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        summed = gg.sum_to(x, like=gg.placeholder((3,)))
    assert not is_view(summed.node)


def test_nodes_of_unknown_lengths_are_called():
    with gg.Graph():
        x = gg.placeholder((None, 3))
        aliases = analysed([x], [gg.exp(x), x.T])
    assert sorted(k.value for _, k in kinds(aliases)) == ["call", "look"]
