"""lint: each kind of finding, and what it says nothing about."""

import re
import sys

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.checks.lint import lint

from ..differentiate.helpers import calls_of


def ste(site, dy):
    return dy


def asking(site, *dys):
    return site.default(*dys)


def line():
    """The line of the caller."""
    return sys._getframe(1).f_lineno


def found(graph, kind):
    return [f for f in lint(graph) if f.kind == kind]


def test_S40_a_clean_graph_has_no_finding(graph):
    x, w = gg.placeholder(("N", 3)), gg.variable(np.ones((3, 2)))
    with gg.override_gradient(asking):
        h = gg.tanh(x @ w)
    with gg.gradient_override_map({"Relu": ste}):
        y = gg.nn.relu(h)
    gg.gradients(gg.sum(y), [x, w])
    n = len(graph)
    assert lint(graph) == []
    assert len(graph) == n


def test_S40_dead_regions(graph):
    x, k = gg.placeholder((3,)), gg.placeholder((3,), "int64")
    with gg.override_gradient(ste, allow_empty=True):
        at = line() - 1
        k + 1
    with gg.override_gradient(ste, allow_empty=True):
        gg.argmax(x)
    with gg.override_gradient(ste):
        gg.argmax(x) * 2.0
    findings = found(graph, "dead mark")
    assert [f.message.partition(": ")[2] for f in findings] == [
        "it has no floating input",
        "it has no floating output",
    ]
    assert findings[0].line == f"test_lint.py:{at}"
    assert all(f.suggestion for f in findings)


def test_S40_dead_stamps(graph):
    k = gg.placeholder((3,), "int64")
    x = gg.placeholder((3,))
    with gg.gradient_override_map({"Add": "Identity"}):
        k + k
        x + x
    (finding,) = found(graph, "dead mark")
    assert "no floating inputs" in finding.message


def test_S40_a_rule_that_reads_none_of_its_dys(graph):
    x = gg.placeholder((3,))

    class Bound:
        def constant(self, site, *dys):
            return 1.0

        def reads(self, site, dy):
            return (lambda: dy)()

    def delegates(site, *dys):
        return site.default(*dys)

    bound = Bound()
    told = [bound.constant, lambda s, dy: [gg.ones_like(x)], gg.Rule(lambda s, dy: gg.NO_GRAD, "r")]
    stop = gg.Rule(lambda s, dy: gg.NO_GRAD, contract="stop")
    for rule in (*told, bound.reads, delegates, stop, "Identity", gg.rules.ste()):
        with gg.override_gradient(rule):
            gg.tanh(x)
    with gg.gradient_override_map({"Exp": told[1]}):
        at = line() - 1
        gg.exp(x)
        gg.exp(x)
    gg.custom_gradient(lambda a: (gg.sin(a), lambda dy: 1.0))(x)
    gg.custom_gradient(lambda a: (gg.sin(a), lambda dy: 2.0 * dy))(x)
    findings = found(graph, "unread gradient")
    assert len(findings) == 3 + 1 + 2
    assert all("never reads the gradients of the outputs" in f.message for f in findings)
    assert all('contract="stop"' in f.suggestion for f in findings)
    assert [f.line for f in findings][-2:] == [f"test_lint.py:{at + k}" for k in (2, 3)]


def test_S40_unmatched_entries(graph):
    x = gg.placeholder((3,))
    with gg.gradient_override_map({"Exp": ste, "Relu": ste}):
        at = line() - 1
        gg.exp(x)
    (finding,) = found(graph, "unmatched entry")
    assert "'Relu'" in finding.message
    assert finding.line == f"test_lint.py:{at}"


def test_S40_an_entry_that_one_of_many_calls_matched_is_matched(graph):
    @gg.gradient_override_map({"Exp": ste, "Sin": ste, "Relu": ste})
    def f(x, deep):
        return gg.exp(x) if deep else gg.sin(x)

    x = gg.placeholder((3,))
    f(x, True)
    f(x, False)
    assert len(found(graph, "unmatched entry")) == 1


def test_S40_inputs_without_a_path(graph):
    x, w = gg.placeholder((3,)), gg.placeholder((3,), name="w")
    with gg.override_gradient(asking) as region:
        y = gg.exp(x)
        gg.sum(w)
        region.declare(outputs=[y])
    (finding,) = found(graph, "no path")
    assert "w:0" in finding.message
    assert y.name in finding.message


def test_S40_shadowed_rules(graph):
    x = gg.placeholder((3,))
    with gg.override_gradient(ste), gg.gradient_override_map({"Sign": "Identity"}):
        s = gg.sign(x)
        with gg.override_gradient(ste):
            at = line() - 1
            gg.exp(s)
    findings = found(graph, "shadowed rule")
    assert len(findings) == 2
    assert findings[0].line == f"test_lint.py:{at}"
    assert all("site.default" in f.message for f in findings)


def test_S40_inside_a_checkpoint_nothing_is_shadowed(graph):
    x = gg.placeholder((3,))
    gg.rules.checkpoint(lambda x: gg.rules.checkpoint(gg.override(ste)(gg.exp))(gg.sin(x)))(x)
    assert found(graph, "shadowed rule") == []


@pytest.mark.parametrize("rule", [asking, lambda site, dy: gg.DEFAULT])
def test_S40_inside_a_rule_that_asks_nothing_is_shadowed(graph, rule):
    x = gg.placeholder((3,))
    with gg.override_gradient(rule), gg.gradient_override_map({"Sign": "Identity"}):
        gg.sign(x)
    assert found(graph, "shadowed rule") == []


def test_S40_late_names(graph):
    x = gg.placeholder((3,))
    with gg.override_gradient("Identty", late=True):
        gg.exp(x)
    with gg.gradient_override_map({"Sin": "nobody"}, late=True):
        gg.sin(x)
    first, second = found(graph, "late name")
    assert "Did you mean 'Identity'?" in first.suggestion
    assert "'nobody'" in second.message
    with gg.temporary_gradient("nobody", ste):
        assert len(found(graph, "late name")) == 1


def test_S40_undeclared_crossings(graph):
    x, w = gg.placeholder((3,), name="x"), gg.placeholder((3,), name="w")
    with gg.override_gradient(ste, inputs=[x]) as region:
        h = x * w * 2.0
        y = gg.exp(h)
        region.declare(outputs=[y])
    gg.sum(h)
    entering, leaving = found(graph, "undeclared")
    assert "reads w:0" in entering.message
    assert h.name in leaving.message
    assert "escape='default'" in leaving.suggestion


def test_S40_escape_default_leaves_by_intent(graph):
    x = gg.placeholder((3,))
    with gg.override_gradient(ste, escape="default") as region:
        h = x * 2.0
        region.declare(outputs=[gg.exp(h)])
    gg.sum(h)
    assert found(graph, "undeclared") == []


UNSAFE = {
    "log": lambda x: gg.where(x > 0, gg.log(x), 0.0),
    "sqrt": lambda x: gg.where(x > 0, gg.sqrt(x), 0.0),
    "divide": lambda x: gg.where(x == 0, 1.0, gg.sin(x) / x),
    "power": lambda x: gg.where(x > 0, x**0.5, 0.0),
    "reciprocal": lambda x: gg.where(x != 0, gg.reciprocal(x), 0.0),
    "deep": lambda x: gg.where(gg.abs(x) > 1e-6, gg.exp(2 * gg.log(3 * x)), 0.0),
    "of a sum": lambda x: gg.where(gg.sum(x * x) > 0, gg.sqrt(gg.sum(x * x)), 0.0),
}
SAFE = {
    "double where": lambda x: gg.where(x > 0, gg.log(gg.where(x > 0, x, 1.0)), 0.0),
    "maximum": lambda x: gg.where(x > 0, gg.log(gg.maximum(x, 1e-9)), 0.0),
    "whole power": lambda x: gg.where(x > 0, x**2.0, 0.0),
    "of something else": lambda x: gg.where(x > 0, gg.log(gg.constant(2.0)) * x, 0.0),
    "total": lambda x: gg.where(x > 0, gg.exp(x), gg.sin(x)),
    "divided by a number": lambda x: gg.where(x > 0, x / 2.0, 0.0),
}


@pytest.mark.parametrize("case", UNSAFE)
def test_S40_where_with_a_branch_that_can_be_nan(graph, case):
    UNSAFE[case](gg.placeholder((3,)))
    (finding,) = found(graph, "unsafe where")
    assert "test_lint.py" in finding.line
    assert "gg.where" in finding.suggestion


@pytest.mark.parametrize("case", SAFE)
def test_S40_where_that_is_safe(graph, case):
    SAFE[case](gg.placeholder((3,)))
    assert found(graph, "unsafe where") == []


STEPS = {
    "round": gg.round,
    "sign": gg.sign,
    "floor": gg.floor,
    "ceil": gg.ceil,
    "floor divide": lambda x: x // 2.0,
    "comparison": lambda x: gg.sum((x > 0).astype("float64")),
    "argmax": lambda x: gg.argmax(x).astype("float64"),
    "one hot": lambda x: gg.one_hot(gg.argmax(x), 3),
    "through integers": lambda x: (gg.argmax(x) * 2 + 1).astype("float64"),
    "cast to int and back": lambda x: x.astype("int64").astype("float64"),
}
NO_STEPS = {
    "a mask": lambda x: x * (x > 0).astype("float64"),
    "of a constant": lambda x: x * gg.round(gg.constant(1.5)),
    "stopped before": lambda x: gg.round(gg.stop_gradient(x)),
    "stopped after": lambda x: x + gg.stop_gradient(gg.round(x) - x),
    "a choice": lambda x: gg.where(x > 0, x, 0.0),
}


@pytest.mark.parametrize("case", STEPS)
def test_S40_step_functions_on_a_floating_path(graph, case):
    STEPS[case](gg.sin(gg.placeholder((3,))))
    (finding,) = found(graph, "zero gradient")
    assert "override_gradient" in finding.suggestion


@pytest.mark.parametrize("case", NO_STEPS)
def test_S40_step_functions_that_are_meant(graph, case):
    NO_STEPS[case](gg.placeholder((3,)))
    assert found(graph, "zero gradient") == []


def test_S40_a_step_function_with_a_rule_is_no_finding(graph):
    x = gg.placeholder((3,))
    with gg.override_gradient(ste):
        gg.round(x)
    with gg.gradient_override_map({"Sign": "Identity"}):
        gg.sign(x)
    assert lint(graph) == []


def test_S40_bodies_of_control_flow_are_searched(graph):
    x, p = gg.placeholder((3,)), gg.placeholder((), "bool")
    gg.cond(p, lambda: gg.where(x > 0, gg.log(x), 0.0), lambda: gg.round(x))
    assert {f.kind for f in lint(graph)} == {"unsafe where", "zero gradient"}


def test_S40_a_finding_reads_well(graph):
    gg.round(gg.placeholder((3,)))
    at = line() - 1
    (finding,) = lint(graph)
    assert finding.line == f"test_lint.py:{at}"
    assert str(finding).startswith(f"[zero gradient] test_lint.py:{at}: Round")
    assert finding.suggestion in str(finding)


# --- loops ---------------------------------------------------------------------------------------


def drawn(seed):
    """Noise in every run of a loop, with a seed made of the number of the run and a carry."""

    def run(carry, i):
        return carry + 1, gg.random.normal((2,), seed=seed(carry, i))

    return gg.scan(run, 0, gg.arange(3))[1]


@pytest.mark.parametrize(
    ("seed", "count"),
    [
        (lambda carry, i: 3, 1),
        (lambda carry, i: gg.random.fold_in(3, i), 0),
        (lambda carry, i: carry, 0),
        (lambda carry, i: gg.cond(i > 1, lambda: i, lambda: carry), 0),
    ],
)
def test_a_draw_that_is_the_same_in_every_run_of_a_loop(seed, count):
    with gg.Graph() as g:
        noise = drawn(seed)
        found = [f for f in gg.lint(g) if f.kind == "repeated draw"]
        assert len(found) == count
        assert (len(np.unique(gg.evaluate(noise))) == 2) == bool(count)
        assert all("test_lint.py" in f.line and "fold_in" in f.suggestion for f in found)


def test_draws_in_choices_in_loops_and_in_loops_in_loops():
    def inner(_, i):
        return 0.0, gg.cond(
            i > 0, lambda: gg.random.normal((), seed=i), lambda: gg.random.normal((), seed=1)
        )

    with gg.Graph() as g:
        gg.map(lambda row: gg.scan(inner, 0.0, gg.arange(2))[1] * row, np.ones(3))
        assert len([f for f in gg.lint(g) if f.kind == "repeated draw"]) == 1


def test_tensors_stand_for_their_graph():
    with gg.Graph() as g:
        x = gg.placeholder((2,), name="x")
        y = gg.exp(gg.floor(x))
    assert [f.kind for f in gg.lint([y, {"x": x}])] == [f.kind for f in gg.lint(g)] != []
    with gg.Graph():
        z = gg.placeholder((), name="z")
    with pytest.raises(gg.GraphError, match="in different graphs: lint each graph"):
        gg.lint([y, z])
    for wrong in ("x", [], 3):
        with pytest.raises(TypeError, match="searches a graph, or that of tensors"):
            gg.lint(wrong)


def integer_matrices(x, n):
    """A chain of products with constants, whose every value is read as floats."""
    steps = gg.constant(np.eye(2, dtype="int64"))
    for _ in range(n):
        steps = steps @ gg.constant(np.eye(2, dtype="int64"))
        x = x @ gg.cast(steps, "float64")


def rounded_matrices(x, n):
    """The same of what was a float."""
    steps = gg.cast(gg.round(x), "int64")
    for _ in range(n):
        steps = steps @ gg.constant(np.eye(2, dtype="int64"))
        gg.cast(steps, "float64") * 2.0


CHOICES = {
    "unsafe": lambda x, mask: gg.where(x > 0, gg.log(x), x),
    "safe": lambda x, mask: gg.where(x > 0, gg.log(gg.where(x > 0, x, 1.0)), x),
    "a branch beside": lambda x, mask: gg.where(x > 0, gg.log(x), 0.0) + gg.where(x > 0, x, 1.0),
    "guarded": lambda x, mask: gg.where(x > 0, gg.sqrt(gg.maximum(x, 1.0)), x),
    "by what is no operand": lambda x, mask: gg.where(mask > 0, 1.0 / x, x),
    "far from what is partial": lambda x, mask: gg.where(x > 0, x, 0.1 * x),
}


def choices(name):
    def chain(x, n):
        mask, x = gg.placeholder((2, 2)), gg.sqrt(x)
        for _ in range(n):
            x = CHOICES[name](x, mask)

    return chain


@pytest.mark.parametrize("chain", [integer_matrices, rounded_matrices, *map(choices, CHOICES)])
def test_S40_twice_the_chain_takes_twice_the_calls(chain):
    def cost(n):
        with gg.Graph() as g:
            chain(gg.placeholder((2, 2)), n)
        return calls_of(lambda: gg.lint(g))

    cost(5)
    assert cost(100) < 2.2 * cost(50)


# --- grids --------------------------------------------------------------------------------------


def unfused(build):
    """What lint says of grids in a net of float32."""
    with gg.Graph() as g:
        x = gg.placeholder(("N", 4), "float32", name="x")
        w = gg.variable(np.ones((4, 4), "float32"), name="w")
        build(x, w)
        count = len(g.nodes)
        found = [f for f in gg.lint(g) if f.kind == "unfused grid"]
        assert len(g.nodes) == count
    return [f.message for f in found]


def low_of(value):
    return lambda x, w: gg.rules.fake_quantise(gg.nn.relu(x), gg.variable(np.float32(value)), 6.0)


def dense(data, weights):
    return lambda x, w: gg.reshape(data(x), (-1, 4)) @ gg.transpose(weights(w))


def by_bits(bits, step=0.1):
    return lambda t: gg.rules.lsq(t, np.float32(step), bits=bits)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda x, w: gg.rules.lsq(gg.nn.relu(x), 0.1), "has numbers below 0"),
        (low_of(-1.0), "has numbers below 0"),
        (lambda x, w: gg.rules.lsq_plus(gg.nn.relu(x), 0.1, -127.0), "has numbers below 0"),
        (dense(gg.identity, by_bits(8)), "its weights are on a grid, and .* is on none"),
        (dense(by_bits(8), gg.identity), "is on a grid, and its weights are on none"),
        (dense(by_bits(9), by_bits(8)), "take grids of up to 8 bits"),
        (dense(by_bits(8), by_bits(4)), "weights of 4 bits are small in a file"),
        (dense(by_bits(8, np.full(4, 0.1)), by_bits(8)), "has several steps"),
    ],
)
def test_grids_that_no_runtime_computes_with_integers(build, said):
    (found,) = unfused(build)
    assert re.search(said, found)


@pytest.mark.parametrize(
    "build",
    [
        low_of(0.0),
        lambda x, w: gg.rules.lsq(gg.nn.relu(x), 0.1, signed=False),
        lambda x, w: gg.rules.lsq_plus(gg.nn.relu(x), 0.1, -128.0),
        lambda x, w: gg.rules.fake_quantise(gg.nn.relu(x), gg.min(x), 6.0),  # known when run
        dense(by_bits(8), by_bits(8)),
        dense(gg.identity, by_bits(4)),
        dense(gg.identity, gg.identity),
    ],
)
def test_grids_that_runtimes_compute_with_integers(build):
    assert unfused(build) == []


def joined_grids(x, n):
    x = gg.rules.lsq(x, 0.1)
    for _ in range(n):
        x = gg.concat([x, x])[:2] @ x


def learned_zeros(x, n):
    zero = gg.variable(0.0)
    for _ in range(n):
        zero = gg.maximum(zero, zero)
        x = gg.rules.lsq_plus(gg.nn.relu(x), 0.1, zero)


@pytest.mark.parametrize("chain", [joined_grids, learned_zeros])
def test_S40_grids_are_found_in_linear_time(chain):
    test_S40_twice_the_chain_takes_twice_the_calls(chain)


def test_S40_a_naive_form_in_a_body_in_a_body_is_said_once():
    x = gg.placeholder(())
    naive = lambda: gg.log(1 + gg.exp(x))  # noqa: E731
    gg.cond(x > 0, lambda: gg.cond(x > 1, naive, lambda: x), lambda: x)
    found = gg.lint(x.graph)
    assert [f.kind for f in found].count("naive form") == 1
