"""What nodes do to memory: write, call, look, or nothing."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.numpy.backend import NumpyBackend
from graphgrad.ir.facts import Memory
from graphgrad.ir.op import Op
from graphgrad.ir.program import Program
from graphgrad.lower.alias import AliasAnalysis, Effect, is_strange, is_view
from graphgrad.ops.base import apply, build
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
    return [(node.type, kind) for node, kind, *_ in aliases.actions]


def test_what_passes_a_value_on_is_no_action():
    with gg.Graph():
        x, v = gg.placeholder((3,)), gg.variable(np.zeros(3))
        a = gg.exp(x)
        y = gg.stop_gradient(gg.identity(a))
        z = assign(v, y)
        aliases = analysed([x, v], [y, z])
        number = aliases.number
    assert kinds(aliases) == [("Exp", Effect.WRITE)]
    assert number[y] == number[z] == number[a]


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
        number = aliases.number
    found = [k for name, k in kinds(aliases) if name == y.node.type]
    if kind is None:
        assert found[-1] in (Effect.WRITE, Effect.CALL)
        assert number[y] not in aliases.root
    else:
        assert found == [kind]
        assert aliases.root[number[y]] == number[a]
        assert aliases.layout(number[y]).shape == y.shape


@pytest.mark.parametrize("shape", [(2, 3), (2, 0)])
def test_pieces_of_which_some_are_empty_are_views(shape):
    with gg.Graph():
        x = gg.placeholder(shape)
        a = gg.exp(x)
        pieces = gg.split(a, [0, 0, min(1, shape[1])], axis=1)
        aliases = analysed([x], pieces)
        number = aliases.number
    assert kinds(aliases) == [("Exp", Effect.WRITE), ("Split", Effect.FIXED)]
    assert all(aliases.root[number[piece]] == number[a] for piece in pieces)


def test_views_of_arguments_are_looked_at_in_every_run():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        aliases = analysed([x], [x.T])
    assert kinds(aliases) == [("Transpose", Effect.LOOK)]
    assert aliases.layout(aliases.number[x]) is None


def test_views_of_constants_are_constants():
    with gg.Graph():
        x = gg.placeholder((3, 2))
        c = gg.constant(np.arange(6.0).reshape(2, 3))
        y = c.T
        aliases = analysed([x], [x * y])
        number = aliases.number
    assert kinds(aliases) == [("Multiply", Effect.WRITE)]
    assert np.shares_memory(aliases.constants[number[y]], aliases.constants[number[c]])


def test_code_that_is_not_of_the_library_may_keep_what_it_reads():
    with gg.Graph():
        x = gg.placeholder((3,))
        a, b, c = gg.exp(x), gg.sin(x), gg.tanh(x)
        y = apply(Mine(), a)
        z = gg.py_function(np.negative, [b[1:]], [((2,), "float64")])
        aliases = analysed([x], [y, z, gg.sum(c)])
        number = aliases.number
    assert aliases.kept == {number[a], number[b]}
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
    assert aliases.kept == {aliases.number[a]}


def test_what_sums_is_no_view_of_what_it_sums():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        summed = gg.sum_to(x, like=gg.placeholder((3,)))
        none = gg.sum_to(gg.placeholder((2, 0)), like=gg.placeholder((1, 0)))
        as_it_is = gg.sum_to(gg.placeholder((1, 0, 2)), like=gg.placeholder((0, 2)))
    assert not is_view(summed.node)
    assert not is_view(none.node)
    assert is_view(as_it_is.node)


def test_nodes_of_unknown_lengths_are_called():
    with gg.Graph():
        x = gg.placeholder((None, 3))
        aliases = analysed([x], [gg.exp(x), x.T])
    assert sorted(k.value for _, k in kinds(aliases)) == ["call", "look"]


def library_op(kernel, outputs=1, is_alias=False):
    """An op of the library, as far as one can tell, of two inputs."""

    class Passing(Op):
        __module__ = "graphgrad.ops.passing"
        memory = Memory(view=True, alias=is_alias)

        def infer(self, x, y):
            return (x,) * outputs

        def kernel(self, xp, x, y):
            return kernel(x, y)

    return Passing()


@pytest.mark.parametrize(
    ("kernel", "outputs", "places"),
    [
        (lambda x, y: y, 1, [1]),
        (lambda x, y: (y, x), 2, [1, 0]),
        (lambda x, y: (x, x), 2, [0, 0]),
        (lambda x, y: (x, np.zeros(3)), 2, None),  # passes on only one
        (lambda x, y: x + 1, 1, None),
    ],
)
def test_a_kernel_that_returns_its_inputs_passes_them_on(kernel, outputs, places):
    with gg.Graph():
        x, y = gg.placeholder((3,)), gg.placeholder((3,))
        made = build(library_op(kernel, outputs), (x, y)).outputs
        aliases = analysed([x, y], made)
        number = aliases.number
    if places is None:
        assert kinds(aliases) == [("Passing", Effect.CALL)]
        assert len({number[t] for t in (x, y, *made)}) == 2 + len(made)
    else:
        assert kinds(aliases) == []
        assert [number[t] for t in made] == places


def test_a_kernel_of_which_one_output_is_its_input_makes_views():
    with gg.Graph():
        x = gg.placeholder((3,))
        both = library_op(lambda x, y: (x, x[::-1]), 2, is_alias=True)
        same, turned = build(both, (x, x)).outputs
        aliases = analysed([x], [same, turned])
        number = aliases.number
    assert kinds(aliases) == [("Passing", Effect.LOOK)]
    assert len({number[x], number[same], number[turned]}) == 3


def test_only_a_run_settles_the_layout_of_what_is_called():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        y = gg.sort(gg.exp(x))
        z = gg.transpose(y)
        aliases = analysed([x], [z])
        number = aliases.number
    assert kinds(aliases)[1:] == [("Sort", Effect.CALL), ("Transpose", Effect.LOOK)]
    assert aliases.layout(number[y]) is aliases.layout(number[z]) is None


def test_what_ensures_a_shape_is_its_input():
    with gg.Graph():
        x = gg.placeholder((3,))
        a = gg.exp(x)
        y = apply(gg.op_types()["EnsureLike"]("as it was"), a, x)
        aliases = analysed([x], [gg.sin(y)])
        number = aliases.number
    assert kinds(aliases) == [("Exp", Effect.WRITE), ("Sin", Effect.WRITE)]
    assert number[y] == number[a]


def test_an_op_that_is_not_of_the_library_is_called_whatever_it_says_of_itself():
    class Foreign(Mine):
        memory = Memory(view=True, alias=True)

        def kernel(self, xp, x):
            return x

    with gg.Graph():
        x = gg.placeholder((3,))
        a = gg.exp(x)
        aliases = analysed([x], [apply(Foreign(), x), apply(Foreign(), a)])
        number = aliases.number
    assert sorted(name for name, kind in kinds(aliases) if kind is Effect.CALL) == ["Foreign"] * 2
    assert aliases.kept == {number[a], number[x]}
    assert not aliases.root


def test_what_has_one_value_everywhere_is_a_constant():
    with gg.Graph():
        x = gg.placeholder((3,))
        two = gg.full((3,), 2.0)
        aliases = analysed([x], [x * two])
    assert kinds(aliases) == [("Multiply", Effect.WRITE)]
    np.testing.assert_array_equal(aliases.constants[aliases.number[two]], [2.0, 2.0, 2.0])


@pytest.mark.parametrize(
    "base", [lambda x: x, gg.exp, lambda x: gg.constant(np.arange(4.0))], ids=["look", "fixed", "c"]
)
def test_a_piece_that_is_given_is_no_view(base):
    with gg.Graph():
        x = gg.placeholder((4,))
        given, other = gg.split(base(x), 2)
        aliases = analysed([x, given], [given * 2.0, other * 2.0, gg.flip(given, 0)])
        number = aliases.number
    assert number[given] not in aliases.root
    assert number[given] not in aliases.constants
    assert aliases.layout(number[given]) is None
    assert (number[other] in aliases.root) == (number[other] not in aliases.constants)


def test_an_input_that_a_node_passes_on_and_that_is_given_is_itself():
    with gg.Graph():
        x, y = gg.placeholder((3,)), gg.placeholder((3,))
        given, other = build(library_op(lambda x, y: (x, y), 2), (x, y)).outputs
        aliases = analysed([x, y, given], [given, other])
    assert aliases.number == {x: 0, y: 1, given: 2, other: 1}


def test_the_likely_layout_of_a_view_is_that_of_row_major_arguments():
    with gg.Graph():
        x, like = gg.placeholder((4, 3)), gg.placeholder((12,))
        first, rest = gg.split(x, [1], axis=1)
        turned = gg.transpose(x)[1:]
        flat = gg.reshape_like(x, like)
        aliases = analysed([x, like], [first, turned, flat])
        number = aliases.number
    assert aliases.likely(number[x]).strides == (24, 8)
    assert (aliases.likely(number[first]).shape, aliases.likely(number[first]).strides) == (
        (4, 1),
        (24, 8),
    )
    assert (aliases.likely(number[turned]).shape, aliases.likely(number[turned]).strides) == (
        (2, 4),
        (8, 24),
    )
    assert aliases.likely(number[rest]).shape == (4, 2)
    assert aliases.likely(number[flat]).strides == (8,)
    written = gg.exp(x)
    aliases = analysed([x], [gg.transpose(written)])
    number = aliases.number
    (view,) = aliases.program.outputs
    assert aliases.likely(number[written]).strides == (24, 8)
    assert (aliases.likely(number[view]).shape, aliases.likely(number[view]).strides) == (
        (3, 4),
        (8, 24),
    )
