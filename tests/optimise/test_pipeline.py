"""The passes in their order: what they say, what stands behind them, and what they cost."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import extend
from graphgrad.lower.decompose import decompose
from graphgrad.ops.control.bodies import interpret
from graphgrad.optimise.passes.bodies import optimise_bodies
from graphgrad.optimise.pipeline import OTHERS, optimise, run_passes
from graphgrad.optimise.room import Policy
from graphgrad.optimise.rules.catalogue import FASTER, RULES

from .helpers import fold_constants, program, types


def test_the_pipeline_says_what_it_did():
    seen = []
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        y = gg.identity(x) * (gg.constant(0.5) + 0.5) + gg.exp(x) + gg.exp(x)
    after, log = optimise(gg.Program([x], [y]), verify=True, watch=lambda n, p: seen.append(n))
    assert types(after) == ["Exp", "Add", "Add"]
    assert [c.name for c in log] == seen
    assert [c.name for c in log if c.changed] == ["simplify"]
    (change,) = [c for c in log if c.changed]
    assert change.fired == {"identities": 1, "times_one": 1, "folded": 1, "merged": 2}
    assert (change.before, change.after) == (9, 3)


def test_a_program_that_is_done_stays_the_same_object():
    p = program(lambda x, y: gg.exp(x) + y, x=(2, 3), y=(3,))
    after, log = optimise(p)
    assert after is p
    assert not any(c.changed for c in log)
    again, _ = optimise(optimise(program(lambda x: (x * 1.0 + 1.0) / 4.0, x=(3,)))[0])
    assert optimise(again)[0] is again


def test_an_error_in_a_pass_keeps_its_type_and_names_the_pass():
    def broken(program):
        raise KeyError("x")

    with gg.Graph():
        p = gg.Program([], [gg.constant(1.0)])
    with pytest.raises(KeyError) as error:
        run_passes(p, [("fold", fold_constants), ("mine", broken)])
    assert error.value.__notes__ == ["in pass 'mine', after: fold"]


def test_the_verifier_stands_behind_every_pass():
    def wrong(program):
        return gg.Program(program.inputs, [other])

    with gg.Graph():
        p, other = gg.Program([], [gg.constant(1.0)]), gg.constant(np.ones(3))
        with pytest.raises(ValueError, match="types of the outputs"):
            run_passes(p, [("wrong", wrong)], verify=True)


def test_passes_are_iterative():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        y = x
        for _ in range(5_000):
            y = gg.identity(gg.exp(y) * 1.0)
    after, _ = optimise(gg.Program([x], [y]))
    assert len(after.nodes) == 5_000


def test_long_gradients_are_optimised_without_recursion():
    with gg.Graph():
        x, w = gg.placeholder((1, 2), name="x"), gg.placeholder((2, 2), name="w")
        y = x
        for _ in range(2_000):
            y = gg.tanh(y @ w)
        p = gg.Program([x, w], [*gg.gradients(gg.sum(y), [x, w])])
    after, _ = optimise(p)
    assert types(after).count("AddN") == 0  # the gradient of w is one product
    assert len(after.nodes) < len(p.nodes)


def steps(x, w):
    return [x[t] @ w for t in range(4)]


def unread(w, e):
    return gg.cond(gg.sum(w) > 0.0, lambda: gg.where(gg.constant(True), w, e), lambda: -w)


def recurrent(x, w):
    return gg.sum(gg.scan(lambda h, row: (gg.tanh(h @ w + row @ w), None), x[0], x)[0])


SHOWN = {
    "identities": lambda x, w: gg.exp(gg.identity(x)),
    "folded": lambda x, w: x * (gg.constant(2.0) + 1.0),
    "merged": lambda x, w: [gg.exp(x), gg.exp(x)],
    "cond_of_constant": lambda x, w: gg.cond(gg.constant(True), lambda: x, lambda: -x),
    "unread_by_cond": lambda x, w: unread(w, gg.exp(w)),
    "relu_grad_of_output": lambda x, w: gg.gradients(gg.sum(gg.nn.relu(x) ** 2), x),
    "stored_runs": lambda x, w: gg.gradients(recurrent(x, w), w),
    "segments": lambda x, w: gg.gradients(recurrent(gg.concat([x] * 4), w), w),
    "left_loops": recurrent,
    "summed_runs": lambda x, w: gg.gradients(recurrent(x, w), w),
    "summed_products": lambda x, w: gg.gradients(gg.sum(gg.stack(steps(x, w)) ** 2), w),
    "shared_products": steps,
}


def test_everything_that_is_counted_is_listed_and_shown():
    assert list(SHOWN) == list(OTHERS)
    listed = {r.name for r in (*RULES, *FASTER)} | set(OTHERS)
    for name, build in SHOWN.items():
        policy = Policy(segments=name == "segments")
        _, log = optimise(program(build, x=(4, 3, 2), w=(2, 2)), verify=True, policy=policy)
        fired = {k for change in log for k in change.fired}
        assert fired <= listed
        assert name in fired


MEANING = {
    "log(1 + exp(x)) overflows as written": (lambda x: gg.log(1.0 + gg.exp(x)), 1000.0, np.inf),
    "log(sum(exp(x))) overflows as written": (lambda x: gg.log(gg.sum(gg.exp(x))), 1000.0, np.inf),
    "log(softmax(x)) underflows as written": (
        lambda x: gg.log(gg.nn.softmax(gg.stack([x, x + 1000.0])))[0],
        0.0,
        -np.inf,
    ),
    "x * 0 is NaN at infinity": (lambda x: x * 0.0, np.inf, np.nan),
    "x - x is NaN at infinity": (lambda x: x - x, np.inf, np.nan),
    "sqrt(x * x) overflows as written": (lambda x: gg.sqrt(x * x), 1e300, np.inf),
}


@pytest.mark.parametrize(("build", "at", "value"), MEANING.values(), ids=MEANING)
def test_what_is_infinite_or_nan_stays_so_without_fast_math(build, at, value):
    with gg.Graph():
        x = gg.placeholder((), name="x")
        plain = gg.compile(x, build(x), backend="numpy")
        fast, _ = optimise(gg.Program([x], [build(x)]), fast_math=True)
    np.testing.assert_equal(float(plain(at)), value)
    (found,) = gg.execute.numpy.backend.NumpyBackend().compile(fast)(np.array(at))
    assert np.isfinite(found)


def test_an_overridden_gradient_is_not_disturbed():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: dy * 10.0):
            y = gg.log(1.0 + gg.exp(x)) * 1.0
        z = gg.log(1.0 + gg.exp(x))
        p = gg.Program([x], [*gg.gradients(gg.sum(y + z), [x])])
    f = gg.compile(x, p.outputs[0])
    at = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(f(at), 10.0 + 1 / (1 + np.exp(-at)))


def constants(x):
    return gg.constant(1.0, x.dtype)


@pytest.mark.parametrize("builds", [constants, gg.exp, lambda x: x + 1.0, lambda x: 1.0 - x])
def test_a_rule_that_builds_a_node_of_the_graph_is_an_error_that_names_what_to_write(builds):
    kinds = gg.op_types()

    @extend.rule(kinds["Exp"], of=kinds["Log1p"], level=extend.FAST)
    def exp_of_log1p(node, inner):
        """exp(log(1 + x)) -> 1 + x"""
        return extend.instead(node, kinds["Add"](), inner.inputs[0], builds(inner.inputs[0]))

    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        before = gg.Program((x,), (gg.exp(gg.log1p(x)),))
        count = len(g)
        with pytest.raises(
            gg.GraphError, match=r"test_pipeline.py:\d+ where no graph.*(?s:.*)number_of"
        ):
            extend.rewrite(exp_of_log1p)(before)
        with pytest.raises(gg.GraphError, match="number_of"):
            run_passes(before, [("mine", lambda p: gg.Program(p.inputs, [builds(p.inputs[0])]))])
        assert len(g) == count
        gg.sin(x)  # the graph is current again


def in_its_graph(x):
    with x.graph:
        return gg.constant(1.0)


ENTERING = {  # functions that enter the graph of their tensors where nobody did
    "gradients": lambda x: gg.gradients(x, x),
    "jvp": lambda x: gg.jvp(x, x, x),
    "scan": lambda x: gg.scan(lambda c, row: (c, row), 0.0, x),
    "vmap": lambda x: gg.vmap(lambda row: row * row)(x),
    "custom_gradient": lambda x: gg.custom_gradient(lambda t: (t * t, lambda dy: dy))(x),
    "dropout": lambda x: gg.nn.dropout(x, 0.5),
    "with": in_its_graph,
}


@pytest.mark.parametrize("at", ["rebuild", "rule", "pass", "body"])
def test_what_enters_the_graph_of_its_tensors_is_an_error_in_a_pass_too(at):
    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        y = gg.cond(gg.all(x > 0), lambda: gg.exp(x), lambda: x) if at == "body" else gg.exp(x)
    program = gg.Program((x,), (y,))
    graphs = [g, *(b.outputs[0].graph for n in program.nodes for b in n.op.bodies)]
    for name, enters in ENTERING.items():

        @extend.rule(gg.op_types()["Exp"])
        def mine(node, enters=enters):
            """exp(x) -> exp(x)"""
            enters(node.inputs[0])

        step = {
            "rebuild": lambda p: p.rebuild(mine.apply),
            "rule": extend.rewrite(mine),
            "pass": lambda p, enters=enters: enters(p.inputs[0]),
            "body": lambda p: optimise_bodies(p, extend.rewrite(mine)),
        }[at]
        counts = [len(graph) for graph in graphs]
        with pytest.raises(gg.GraphError, match="number_of"):
            step(program) if at == "rebuild" else run_passes(program, [(name, step)])
        assert counts == [len(graph) for graph in graphs]


def test_a_rule_builds_in_graphs_of_its_own():
    """To work a number out; gg.function and gg.compile do so too."""
    kinds, square = gg.op_types(), gg.function(lambda t: t * t)

    @extend.rule(kinds["Exp"])
    def nine(node):
        """exp(x) -> 9 like x"""
        own = gg.Graph()
        with own:
            t = gg.placeholder(())
        with own:
            dy = gg.gradients(t * t, t)
        value = gg.compile(t, dy)(1.5) * square(np.sqrt(3.0))
        return extend.filled(node, value, node.inputs[0])

    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        before = gg.Program((x,), (gg.exp(x),))
    after = extend.rewrite(nine)(before)
    assert len(g) == 2
    np.testing.assert_allclose(interpret(after, np, [np.ones(3)])[0], [9.0, 9.0, 9.0])


@pytest.mark.parametrize("write", [extend.instead, extend.beside])
def test_a_number_where_a_rule_writes_a_tensor_is_an_error_that_names_what_makes_one(write):
    node = gg.exp(gg.placeholder((3,))).node
    with pytest.raises(TypeError, match=r"Add\(\) is applied to tensors, got 1.0(?s:.*)number_of"):
        write(node, gg.op_types()["Add"](), node.inputs[0], 1.0)
    with pytest.raises(TypeError, match="an op with its attributes"):
        write(node, gg.op_types()["Add"], node.inputs[0], node.inputs[0])


def test_what_a_rule_writes_instead_is_public():
    kinds = gg.op_types()

    @extend.rule(kinds["Exp"])
    def other(node):
        """exp(x) -> 2 + 2 like x + [0, 1, 2], which shows each of them"""
        (x,) = node.inputs
        two, like = extend.number_of(node, 2.0, x.dtype), extend.filled(node, 2.0, x)
        terms = extend.beside(node, kinds["Add"](), two, like)
        return extend.instead(node, kinds["Add"](), terms, extend.array_of(node, np.arange(3.0)))

    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        after = extend.rewrite(other)(gg.Program((x,), (gg.exp(x),)))
    assert len(g) == 2
    np.testing.assert_array_equal(interpret(after, np, [np.ones(3)])[0], [4.0, 5.0, 6.0])


def test_a_decomposition_that_builds_a_node_of_the_graph_is_an_error():
    class Apart(extend.Unary):
        """2x"""

        def kernel(self, xp, x):
            return 2 * x

        def decompose(self, make):
            return make(gg.op_types()["Multiply"](), make.inputs[0], gg.constant(2.0))

    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        program = gg.Program((x,), (extend.apply(Apart(), x),))
        with pytest.raises(gg.GraphError, match=r"make.number"):
            decompose(program)
    assert len(g) == 2


def test_a_loop_over_rows_of_two_inputs_may_lose_the_one_that_nobody_reads():
    """Its length is that of the other, by another name; that they are equal is still checked."""
    with gg.Graph():
        x, y = gg.placeholder((None,), name="x"), gg.placeholder((None,), name="y")
        rows = gg.scan(lambda c, pair: (c, (pair[0] * 2.0, pair[1])), gg.zeros(()), (x, y))[1][1]
        f = gg.compile([x, y], rows, verify=True, backend="numpy")
    assert rows.shape == ("x.0",)
    np.testing.assert_array_equal(f([1.0, 2.0], [3.0, 4.0]), [3.0, 4.0])
    with pytest.raises(gg.ShapeError):
        f([1.0], [3.0, 4.0])
