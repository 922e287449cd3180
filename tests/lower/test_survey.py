"""What nodes do to memory: write, call, look, or nothing."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.numpy_backend import NumpyBackend
from graphgrad.ir.op import Op
from graphgrad.ir.program import Program
from graphgrad.lower.survey import Kind, Survey, is_strange, is_view
from graphgrad.ops.base import apply
from graphgrad.ops.sources import assign


class Mine(Op):
    """An op that is not of the library."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        return x + 1


def surveyed(inputs, outputs):
    return Survey(Program(inputs, outputs), NumpyBackend().bind())


def kinds(survey):
    return [(a.node.type, a.kind) for a in survey.actions]


def test_what_passes_a_value_on_is_no_action():
    with gg.Graph():
        x, v = gg.placeholder((3,)), gg.variable(np.zeros(3))
        a = gg.exp(x)
        y = gg.stop_gradient(gg.identity(a))
        z = assign(v, y)
        survey = surveyed([x, v], [y, z])
    assert kinds(survey) == [("Exp", Kind.WRITE)]
    assert survey.same[y] is a
    assert survey.same[z] is a


@pytest.mark.parametrize(
    ("look", "kind"),
    [
        (lambda a: a.T, Kind.FIXED),
        (lambda a: gg.reshape(a, (6,)), Kind.FIXED),
        (lambda a: a[1:], Kind.FIXED),
        (lambda a: gg.broadcast_to(a, (4, 2, 3)), Kind.FIXED),
        (lambda a: gg.reshape(a.T, (6,)), None),  # it has to copy
    ],
)
def test_views_of_what_is_written_are_settled_before_a_run(look, kind):
    with gg.Graph():
        x = gg.placeholder((2, 3))
        a = gg.exp(x)
        y = look(a)
        survey = surveyed([x], [y])
    found = [k for name, k in kinds(survey) if name == y.node.type]
    if kind is None:
        assert found[-1] in (Kind.WRITE, Kind.CALL)
        assert y not in survey.root
    else:
        assert found == [kind]
        assert survey.root[y] is a
        assert survey.layout(y).shape == y.shape


def test_views_of_arguments_are_looked_at_in_every_run():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        survey = surveyed([x], [x.T])
    assert kinds(survey) == [("Transpose", Kind.LOOK)]
    assert survey.layout(x) is None


def test_views_of_constants_are_constants():
    with gg.Graph():
        x = gg.placeholder((3, 2))
        c = gg.constant(np.arange(6.0).reshape(2, 3))
        y = c.T
        survey = surveyed([x], [x * y])
    assert kinds(survey) == [("Multiply", Kind.WRITE)]
    assert np.shares_memory(survey.constants[y], survey.constants[c])


def test_code_that_is_not_of_the_library_may_keep_what_it_reads():
    with gg.Graph():
        x = gg.placeholder((3,))
        a, b, c = gg.exp(x), gg.sin(x), gg.tanh(x)
        y = apply(Mine(), a)
        z = gg.py_function(np.negative, [b[1:]], [((2,), "float64")])
        survey = surveyed([x], [y, z, gg.sum(c)])
    assert survey.kept == {a, b}
    assert is_strange(y.node.op)
    assert is_strange(z.node.op)
    assert not is_strange(c.node.op)


def test_what_sums_is_no_view_of_what_it_sums():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        summed = gg.sum_to(x, like=gg.placeholder((3,)))
    assert not is_view(summed.node)


def test_nodes_of_unknown_lengths_are_called():
    with gg.Graph():
        x = gg.placeholder((None, 3))
        survey = surveyed([x], [gg.exp(x), x.T])
    assert sorted(k.value for _, k in kinds(survey)) == ["call", "look"]
