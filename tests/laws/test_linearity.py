"""Laws over the registry: an op is linear where it says so, and every gradient is linear in dy."""

from functools import partial

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.differentiate.linearity import NonLinear, check_linear
from graphgrad.ir.residual import residual_op
from graphgrad.laws import linearity
from graphgrad.ops.base import apply
from graphgrad.ops.identities.sequencing import After

from ..each import by_law, each
from .cases import CASES
from .test_gradients import FIRST, MORE

LINEAR = [case for case in CASES if linearity.linear_places(*case[1:])]

OF_GRADIENTS = {
    "by structure": linearity.by_structure,
    "by structure, unknown lengths": partial(linearity.by_structure, known=False),
    "forward is reverse": linearity.forward_is_reverse,
    "forward is reverse, unknown lengths": partial(linearity.forward_is_reverse, known=False),
}


def test_ops_that_are_linear_by_name_say_so():
    types = gg.op_types()
    for name in ("Add", "ReduceSum", "Concat", "Identity", "StopGradient", "Pad"):
        op, _ = next(iter(types[name].samples(np.random.default_rng(0))))
        assert op.linear == "joint", name
    assert types["MatMul"].linear == types["Multiply"].linear == types["Conv2D"].linear == "each"
    assert types["Divide"].linear == types["Gather"].linear == (0,)
    assert types["Where"].linear == (1, 2)
    for name in ("Exp", "Relu", "Maximum", "Softmax", "Round", "PyFunction", "Cond"):
        assert types[name].linear == (), name


def test_to_wait_for_it_is_not_to_depend_on_it():
    x, dy = gg.placeholder((3,)), gg.placeholder((3,))
    later = apply(After(), gg.exp(x), dy)
    check_linear([later * dy, apply(After(), dy, x)], [dy])
    with pytest.raises(NonLinear, match="does not depend on it"):
        check_linear([later], [dy])


def test_to_read_from_inside_a_region_is_linear():
    with gg.Graph():
        with gg.override_gradient(lambda site, dy: dy):
            x = gg.placeholder((3,))
            y = gg.sin(x * 2.0)
        read = residual_op(y.node.region)
        assert read.linear == "joint"
        inside = apply(read, y.node.inputs[0])
        check_linear([inside * 3.0], [y.node.inputs[0]])
        with pytest.raises(NonLinear, match="multiplies it with itself"):
            check_linear([inside * inside], [y.node.inputs[0]])


def test_padding_with_a_number_that_is_not_zero_is_not_linear():
    types = gg.op_types()
    assert types["Pad"](((1, 1),), 0.0).linear == "joint"
    assert types["Pad"](((1, 1),), 2.0).linear == ()


@each(by_law({"superposition": linearity.as_said, "adjoint": linearity.adjoint}, LINEAR))
def test_an_op_is_linear_where_it_says_so_and_its_gradient_is_its_adjoint(law, op, arrays):
    law(op, arrays)


@each(by_law(OF_GRADIENTS, [case for case in FIRST if case[0].endswith("-0")]))
def test_the_gradient_of_every_op_is_linear_and_forward_mode_is_its_transpose(law, op, arrays):
    law(op, arrays)


@pytest.mark.slow
@each(by_law(OF_GRADIENTS, [case for case in (*FIRST, *MORE) if not case[0].endswith("-0")])[::3])
def test_so_it_is_for_more_samples(law, op, arrays):
    law(op, arrays)
