"""Rules of the library hold in copies, in forward mode and on every backend."""

import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules
from graphgrad.differentiate.forward.jvp import jvp

from ..differentiate.helpers import values

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(3, 4)), 0.2 * RNG.normal(size=(4, 4))
SITES = {
    "ste": lambda x, w: gg.override(rules.ste(1.0))(gg.sign)(x @ w),
    "reverse": lambda x, w: gg.override(rules.reverse(0.5))(gg.tanh)(x @ w),
    "clip_norm": lambda x, w: gg.override(rules.clip_norm(0.5, axis=0))(gg.tanh)(x @ w),
    "atan": lambda x, w: gg.override(rules.atan())(gg.sign)(x @ w),
    "guided": lambda x, w: gg.override(rules.guided())(gg.nn.relu)(x @ w),
    "lrp_gamma": lambda x, w: gg.override(rules.lrp_gamma())(gg.matmul)(x, w),
    "feedback": lambda x, w: gg.override(rules.feedback(seed=1))(gg.matmul)(x, w),
    "fake_float8": lambda x, w: rules.fake_float8(x @ w, 0.3),
    "lsq": lambda x, w: rules.lsq(x @ w, 0.3, bits=3),
    "lsq_plus": lambda x, w: rules.lsq_plus(x @ w, 0.3, 1.0, bits=3),
    "fixed_point": lambda x, w: rules.fixed_point(lambda z: gg.tanh(z @ w + x), np.zeros((3, 4))),
    "root": lambda x, w: rules.root(lambda z: z + z @ w - x, np.zeros((3, 4))),
    "linear_solve": lambda x, w: rules.linear_solve(lambda v: v + v @ w, x),
    "checkpoint": lambda x, w: rules.checkpoint(lambda x: gg.tanh(gg.exp(x) @ w))(x),
}
NOT_LINEAR = {"clip_norm", "guided"}
each = pytest.mark.parametrize("build", SITES.values(), ids=SITES)


def built(build):
    x, w = gg.placeholder((3, 4), name="x"), gg.placeholder((4, 4), name="w")
    return x, w, gg.identity(build(x, w), name="y")


def answers(x, w, y):
    return gg.gradients(gg.sum(gg.square(y)), [x, w], unconnected="zero")


@each
def test_S27_a_copy_has_the_same_gradients(build):
    x, w, y = built(build)
    copy = x.graph.copy()
    expected = values(answers(x, w, y), {x: X, w: W})
    x, w, y = [copy.tensor(name) for name in ("x:0", "w:0", "y:0")]
    with copy:
        found = values(answers(x, w, y), {x: X, w: W})
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in SITES if name not in NOT_LINEAR])
def test_S25_forward_mode_is_the_transpose(name):
    x, w, y = built(SITES[name])
    dx, dy = gg.constant(RNG.normal(size=(3, 4))), gg.constant(RNG.normal(size=(3, 4)))
    forward = gg.sum(jvp(y, x, dx) * dy)
    backward = gg.sum(gg.gradients(y, x, dy) * dx)
    forward, backward = values([forward, backward], {x: X, w: W})
    np.testing.assert_allclose(forward, backward, rtol=1e-9)


@pytest.mark.parametrize("name", sorted(NOT_LINEAR))
def test_S25_forward_mode_refuses_what_is_not_linear(name):
    x, _, y = built(SITES[name])
    with pytest.raises(gg.GradientError, match="linear"):
        jvp(y, x, gg.constant(X))


@each
def test_S27_backends_agree(build):
    pytest.importorskip("jax")
    x, w, y = built(build)
    ys = [y, *answers(x, w, y)]
    found, expected = [gg.compile([x, w], ys, backend=b)(X, W) for b in ("jax", "numpy")]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@each
def test_S27_optimisation_changes_nothing(build):
    x, w, y = built(build)
    ys = [y, *answers(x, w, y)]
    found, expected = [gg.compile([x, w], ys, optimize=o)(X, W) for o in (True, False)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_S27_a_stored_rule_in_a_body_holds_nodes_of_that_body():
    """Whose places are no places of the graph of which a part is taken."""

    def step(c, _):
        kept = []
        with gg.override_gradient(lambda site, dy: dy * kept[0]):
            for _ in range(20):
                c = gg.sin(c)
            kept.append(c)
            y = kept[0] * 2.0
        return y, None

    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        y = gg.identity(gg.scan(step, x, None, length=2)[0], name="y")
        expected = gg.evaluate(gg.gradients(y, x), {x: 0.4})
    stored = pickle.loads(pickle.dumps(graph))
    part = stored.subgraph([stored.tensor("x:0")], [stored.tensor("y:0")])
    with part:
        x, y = part.tensor("x:0"), part.tensor("y:0")
        np.testing.assert_allclose(gg.evaluate(gg.gradients(y, x), {x: 0.4}), expected)
