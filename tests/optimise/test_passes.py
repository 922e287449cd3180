"""Identities, common subexpressions, folding, and the pipeline."""

import warnings

import numpy as np
import pytest

import graphgrad.ops.methods  # noqa: F401  (operators)
from graphgrad.execute.numpy_backend import NumpyBackend
from graphgrad.ir.graph import Graph
from graphgrad.ir.op import Op
from graphgrad.ir.program import Program
from graphgrad.ir.types import tensor_type
from graphgrad.ir.verify import verify_program
from graphgrad.ops.arithmetic import divide
from graphgrad.ops.base import Constant, Full, apply, as_dtype, build, constant
from graphgrad.ops.exponential import exp, log
from graphgrad.ops.shaping import broadcast_to, reshape
from graphgrad.ops.sources import identity, placeholder, stop_gradient, zero_gradient
from graphgrad.optimise.common import eliminate_common_subexpressions
from graphgrad.optimise.fold import fold_constants
from graphgrad.optimise.identities import remove_residuals_and_identities
from graphgrad.optimise.pipeline import optimise, run_passes


class NoiseForTest(Op):
    """A new number each time."""

    pure = False

    def infer(self):
        return (tensor_type((), "float64"),)

    def kernel(self, xp):
        return xp.asarray(0.5)


class FailsForTest(Op):
    """A kernel that raises."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        raise ValueError("no value")


class BodyForTest(Op):
    """An op with a body of its own."""

    body: object

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        raise AssertionError("was run")


def types(program):
    return [n.type for n in program.nodes]


def test_identities_go():
    with Graph():
        x = placeholder((2,), name="x")
        y = exp(zero_gradient(stop_gradient(identity(x))))
    after = remove_residuals_and_identities(Program([x], [y, identity(x)]))
    verify_program(after)
    assert types(after) == ["Exp"]
    assert after.outputs[1] is x


def test_nothing_to_do_is_the_same_object():
    with Graph():
        x = placeholder((2,), name="x")
        p = Program([x], [exp(x) * 3.0])
    for step in (remove_residuals_and_identities, eliminate_common_subexpressions, fold_constants):
        assert step(p) is p


def test_equal_nodes_merge():
    with Graph():
        x = placeholder((2,), name="x")
        y = exp(x * 2.0) + exp(x * 2.0)
    after = eliminate_common_subexpressions(Program([x], [y]))
    verify_program(after)
    assert types(after) == ["Constant", "Multiply", "Exp", "Add"]


def test_equal_nodes_merge_through_chains_of_equal_nodes():
    with Graph():
        x = placeholder((), name="x")
        a = b = x
        for _ in range(100):
            a, b = exp(a), exp(b)
    assert len(eliminate_common_subexpressions(Program([x], [a, b])).nodes) == 100


@pytest.mark.parametrize(
    ("a", "b", "merged"),
    [
        (1.0, 1.0, True),
        (np.nan, np.nan, True),
        (0.0, -0.0, False),
        (1.0, 1, False),
        (1.0, np.float32(1), False),
        (np.ones(2), np.ones(1), False),
        (np.ones((2, 1)), np.ones((1, 2)), False),
        (np.arange(100.0), np.arange(100.0), True),
        (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)), True),
    ],
)
def test_constants_merge_by_their_bytes(a, b, merged):
    with Graph():
        p = Program([], [constant(a), constant(b)])
    assert (len(eliminate_common_subexpressions(p).nodes) == 1) is merged


def test_impure_nodes_never_merge():
    with Graph():
        p = Program([], [apply(NoiseForTest()), apply(NoiseForTest())])
    assert eliminate_common_subexpressions(p) is p
    assert fold_constants(p) is p


def folded(y):
    after = fold_constants(Program([], [y]))
    verify_program(after)
    return after


def test_constants_fold():
    with Graph():
        y = exp(constant(1.0) + 2.0)
    (node,) = folded(y).nodes
    assert type(node.op) is Constant
    assert node.op.value == np.exp(3.0)


def test_folding_is_quiet():
    with Graph():
        y = log(divide(constant(-1.0), 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(folded(y).nodes[0].op.value)


def test_folding_sees_through_broadcasts_but_never_writes_them_out():
    with Graph():
        wide = broadcast_to(constant(2.0), (1000,))
        p = Program([], [wide])
        assert fold_constants(p) is p
        full = Program([], [apply(Full((1000,), 1.0, as_dtype("float64")))])
        assert fold_constants(full) is full
        small = reshape(broadcast_to(constant(2.0), (3,)) + 1.0, (3, 1))
    assert types(folded(small)) == ["Constant"]


def test_folding_stops_at_its_limits():
    with Graph():
        big = exp(constant(np.ones(200_000)))
        p = Program([], [big])
        assert fold_constants(p) is p
        many = Program([], [exp(constant(np.full(10, float(i)))) for i in range(4)])
    after = fold_constants(many, total_bytes=160)
    assert types(after).count("Exp") == 2


def test_a_kernel_that_fails_stays():
    with Graph():
        p = Program([], [apply(FailsForTest(), constant(1.0))])
    assert fold_constants(p) is p
    with pytest.raises(ValueError, match="no value"):
        NumpyBackend().compile(p)()


def test_an_op_with_a_body_is_not_run():
    with Graph():
        p = Program([], [apply(BodyForTest(lambda: None), constant(1.0))])
    assert fold_constants(p) is p


def test_the_pipeline_says_what_it_did():
    seen = []
    with Graph():
        x = placeholder((2,), name="x")
        y = identity(x) * (constant(0.5) + 0.5) + exp(x) + exp(x)
    after, log = optimise(Program([x], [y]), verify=True, watch=lambda n, p: seen.append(n))
    assert types(after) == ["Exp", "Add", "Add"]
    assert [c.name for c in log] == seen
    assert all(c.changed for c in log)
    assert log[2].fired == {"times_one": 1}


def test_an_error_in_a_pass_keeps_its_type_and_names_the_pass():
    def broken(program):
        raise KeyError("x")

    with Graph():
        p = Program([], [constant(1.0)])
    with pytest.raises(KeyError) as error:
        run_passes(p, [("fold", fold_constants), ("mine", broken)])
    assert error.value.__notes__ == ["in pass 'mine', after: fold"]


def test_the_verifier_stands_behind_every_pass():
    def wrong(program):
        return Program(program.inputs, [constant(np.ones(3))])

    with Graph():
        p = Program([], [constant(1.0)])
        with pytest.raises(ValueError, match="types of the outputs"):
            run_passes(p, [("wrong", wrong)], verify=True)


def test_passes_are_linear_and_iterative():
    with Graph():
        x = placeholder((), name="x")
        y = x
        for _ in range(20_000):
            y = identity(exp(y) * 1.0)
    after, _ = optimise(Program([x], [y]))
    assert len(after.nodes) == 20_000


def test_names_and_lines_survive():
    with Graph():
        x = placeholder((2,), name="x")
        node = build(exp(x).node.op, (x * 1.0,), "kept")
    after, _ = optimise(Program([x], node.outputs))
    (kept,) = after.nodes
    assert kept.name == "kept"
    assert "test_passes.py" in kept.where
