"""A rule of the library stands at the line that asked for it, whatever says where a rule is."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import graphgrad as gg

R = gg.rules
X = np.array([[0.3, -0.7, 1.2], [0.1, 2.0, -0.1]])
HERE = "test_where_rules_stand.py"


def line():
    """`file.py:3`: where this is called."""
    return f"{HERE}:{inspect.currentframe().f_back.f_lineno}"


MADE = {
    "a slope": lambda: (R.atan(), line()),
    "a smooth function": lambda: (R.surrogate(gg.tanh), line()),
    "a gate": lambda: (R.clip_value(1.0), line()),
    "a gate of a tensor": lambda: (R.scale(gg.constant(2.0)), line()),
    "pulled": lambda: (R.attn_softmax(), line()),
    "through": lambda: (R.sign_symmetry(), line()),
    "of a layer": lambda: (R.lrp_epsilon(), line()),
    "composite": lambda: (R.epsilon_plus(), line()),
    "of several tensors": lambda: (R.clip_global_norm(1.0), line()),
    "of aggregated tensors": lambda: (R.jd_mean(), line()),
}
BUILT = {
    "soft": lambda x: (R.sign_ste(x), line()),
    "learned": lambda x: (R.jump_relu(x, 0.5), line()),
    "pulled": lambda x: (R.sparsemax(x), line()),
    "of steps": lambda x: (R.lsq(x, 0.5), line()),
    "together": lambda x: (R.clip_global_norm(x, limit=1.0)[0], line()),
    "handed out": lambda x: (R.jd_mean(x, 2)[0], line()),
    "a loop": lambda x: (R.fixed_point(lambda z: gg.tanh(z) * 0.5, x), line()),
}


@pytest.mark.parametrize("name", MADE)
def test_a_rule_stands_where_it_was_made(name):
    rule, where = MADE[name]()
    assert rule.where == where


@pytest.mark.parametrize("name", BUILT)
def test_S39_what_builds_has_a_rule_that_stands_there(name):
    with gg.Graph():
        x = gg.variable(X)
        y, where = BUILT[name](x)
        (site, *_) = gg.explain(y, x)[x].sites
        assert site.defined == where
        if name != "a loop":
            dx = gg.gradients(y, x, unconnected="zero")
            assert f" ({where})" in gg.graph_text([y, dx]).split("spliced")[1]


def test_S39_so_does_one_of_a_map_a_mark_and_a_call():
    with gg.Graph() as graph:
        x = gg.variable(X)
        with gg.gradient_override_map({"Tanh": R.guided()}):
            mapped, of_map = gg.tanh(x), f"{HERE}:{inspect.currentframe().f_lineno - 1}"
        y = gg.sum(gg.sin(mapped))
        graph.mark([x], R.clip_global_norm(1.0), together=True)
        of_mark = f"{HERE}:{inspect.currentframe().f_lineno - 1}"
        rules, of_call = {"Sin": R.clip_value(1.0)}, line()
        sites = gg.explain(y, x, overrides=rules)[x].sites
        assert {site.defined for site in sites} == {of_map, of_mark, of_call}


def test_S27_it_travels():
    with gg.Graph() as graph:
        x = gg.variable(X)
        y, where = BUILT["of steps"](x)
    for move in (copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))):
        x, y = move((x, y))
        (region,) = y.graph.regions
        assert region.rule.where == where
    assert graph is not y.graph


def test_an_error_names_the_line():
    with gg.Graph():
        x = gg.variable(X)
        rule, where = R.clip_norm(1.0, axis=0), line()
        with gg.override_gradient(rule):
            y = gg.sum(x * x)
        with pytest.raises(gg.GradientError, match=f"'clip_norm.*{HERE}") as caught:
            gg.jvp(y, x, x)
        assert f"(defined at {where})" in str(caught.value)
