"""Programs for inputs of which more is known."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.program import Program, derive
from graphgrad.ir.types import tensor_type
from graphgrad.ir.verify import verify_program
from graphgrad.lower.narrow import narrow
from graphgrad.lower.specialise import specialise


def test_everything_is_inferred_again():
    with gg.Graph():
        x, w = gg.placeholder(("N", 4)), gg.placeholder((4, None), name="w")
        y = gg.sum(gg.tanh(x @ w), 0)
    found = specialise(
        Program([x, w], [y, x]), [tensor_type((5, 4), x.dtype), tensor_type((4, 2), w.dtype)]
    )
    verify_program(found)
    assert [t.shape for t in found.outputs] == [(2,), (5, 4)]
    assert all(t.type.static for n in found.nodes for t in n.outputs)
    assert y.shape == ("w.1",)


def test_what_does_not_change_is_the_very_same():
    with gg.Graph():
        x, u = gg.placeholder((3,)), gg.placeholder((None,))
        a, b = gg.exp(x), gg.exp(u)
    program = Program([x, u], [a, b])
    found = specialise(program, [x.type, tensor_type((7,), u.dtype)])
    assert found.inputs[0] is x
    assert found.outputs[0] is a
    assert found.outputs[1].shape == (7,)


def test_an_input_that_a_node_of_the_program_also_makes():
    with gg.Graph():
        u = gg.placeholder((None, 2))
        a, b = gg.unstack(u, 1)
    found = specialise(
        Program([u, a], [a, b]), [tensor_type((3, 2), u.dtype), tensor_type((3,), u.dtype)]
    )
    assert found.outputs[0] is found.inputs[1]
    assert found.outputs[1].shape == (3,)


def test_types_that_do_not_fit_name_the_node():
    with gg.Graph():
        x, y = gg.placeholder((None,)), gg.placeholder((None,))
        program = Program([x, y], [x + y])
    with pytest.raises(gg.ShapeError) as error:
        specialise(program, [tensor_type((2,), x.dtype), tensor_type((3,), y.dtype)])
    assert "test_specialise.py" in error.value.__notes__[0]


def test_branches_are_specialised_and_optimised_for_the_lengths():
    with gg.Graph():
        x, flag = gg.placeholder(("n", 3)), gg.placeholder((), "bool")
        y = gg.cond(flag, lambda: gg.sum(x / gg.max(x, 0), 0), lambda: x[0])
        f = gg.compile([x, flag], y, backend="numpy")
    given = np.arange(6.0).reshape(2, 3) + 1
    np.testing.assert_allclose(f(given, True), (given / given.max(0)).sum(0))
    np.testing.assert_array_equal(f(given, False), given[0])
    (plan,) = f.plans
    assert f.peak_bytes is not None
    bodies = [body for _, body in plan.bodies]
    assert [b.name for b in bodies] == ["then", "else"]
    assert all(b.known and p.exact for b in bodies for p in b.plans)


def test_what_stands_in_two_bodies_stays_one():
    with gg.Graph():
        x, flag = gg.placeholder((None,)), gg.placeholder((), "bool")
        node = gg.cond(flag, lambda: gg.exp(x), lambda: gg.sin(x)).node
    op = node.op.replace_bodies([node.op.bodies[0]] * 2)
    twice = Program([x, flag], derive(node, op, node.inputs).outputs)
    (found,) = specialise(twice, [tensor_type((3,), x.dtype), flag.type]).nodes
    then, other = found.op.bodies
    assert then.nodes[0].outputs[0].shape == (3,)
    assert then.nodes[0] is other.nodes[0]


def test_both_bodies_of_a_loop_with_a_test_are_specialised():
    with gg.Graph():
        x = gg.placeholder((None,))
        y = gg.while_loop(lambda c: gg.sum(c) < 9.0, lambda c: c + gg.exp(c), x)
    program = specialise(Program([x], [y]), [tensor_type((3,), x.dtype)])
    (op,) = [n.op for n in program.nodes]
    assert all(t.type.static for body in op.bodies for n in body.nodes for t in n.outputs)
    assert [t.shape for t in program.outputs] == [(3,)]


def test_a_branch_that_lengths_do_not_fit_is_an_error_where_it_is_chosen():
    with gg.Graph():
        x, flag = gg.placeholder(("n",)), gg.placeholder((), "bool")
        y = gg.cond(flag, lambda: gg.sum(gg.reshape(x, (3, 2))), lambda: gg.sum(x))
        f = gg.compile([x, flag], y, backend="numpy")
    assert f(np.ones(6), True) == 6
    assert f(np.ones(5), False) == 5
    with pytest.raises(gg.ShapeError):
        f(np.ones(5), True)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_the_node_that_lengths_do_not_fit_is_what_pictures_ring(backend, optimize):
    with gg.Graph() as g:
        x = gg.placeholder(("N",), name="x")
        z = gg.reshape(gg.exp(x), (2, 3))
        f = gg.compile(x, gg.sum(z), backend=backend, optimize=optimize)
    with pytest.raises(gg.ShapeError) as error:
        f(np.ones(4))
    assert error.value.failed is z.node
    assert "FAILED" in gg.graph_text(g, failed=error.value)


def test_of_a_node_that_a_pass_made_the_one_in_the_graph_is_ringed():
    with gg.Graph():
        x, y = gg.placeholder((None,)), gg.placeholder((None,))
        program = Program([x, y], [gg.exp(x) + y])

    def turned(node):
        return derive(node, node.op, node.inputs[::-1]).outputs if len(node.inputs) > 1 else None

    moved = program.rebuild(turned)
    with pytest.raises(gg.ShapeError) as error:
        specialise(moved, [tensor_type((2,), x.dtype), tensor_type((3,), y.dtype)])
    assert error.value.failed is program.nodes[-1]


def test_a_node_that_stands_for_none_of_the_graph_of_its_inputs_is_ringed_itself():
    with gg.Graph():
        node = (gg.placeholder((None,)) + gg.placeholder((None,))).node
    with gg.Graph() as g:
        x, y = gg.placeholder((None,)), gg.placeholder((None,))
    assert node.index == len(g.nodes)
    derived = derive(node, node.op, (x, y))
    with pytest.raises(gg.ShapeError) as error:
        specialise(
            Program([x, y], derived.outputs),
            [tensor_type((2,), x.dtype), tensor_type((3,), y.dtype)],
        )
    assert error.value.failed is derived


def test_a_node_of_a_program_that_no_graph_has_is_ringed_itself():
    with gg.Graph():
        x, y = gg.placeholder((None,)), gg.placeholder((None,))
        program = narrow(Program([x, y], [x + y]))
    with pytest.raises(gg.ShapeError) as error:
        specialise(program, [tensor_type((n,), "float32") for n in (2, 3)])
    assert error.value.failed is program.nodes[-1]


@pytest.mark.parametrize("optimize", [False, True])
def test_gradients_of_a_branch_that_lengths_do_not_fit(optimize):
    with gg.Graph():
        x, flag = gg.placeholder((None,)), gg.placeholder((), "bool")
        y = gg.cond(flag, lambda: gg.sum(x), lambda: gg.sum(gg.reshape(x, (2, 2))[0]))
        dx = gg.gradients(y * y, x)
        f = gg.compile([flag, x], [y, dx], optimize=optimize)
    found = f(True, np.arange(3.0))
    assert found[0] == 3
    np.testing.assert_array_equal(found[1], [6, 6, 6])
    with pytest.raises((gg.ShapeError, ValueError)):
        f(False, np.arange(3.0))
    np.testing.assert_array_equal(f(False, np.arange(4.0))[1], [2, 2, 0, 0])
