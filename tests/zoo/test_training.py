"""Rules on tensors in training: steps are those of plain loops of NumPy that change gradients."""

import importlib.util
import tempfile

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import tf1 as tf

R = gg.rules
RNG = np.random.default_rng(7)
X, T = RNG.normal(size=(5, 3)), 3.0 * RNG.normal(size=(5, 2))
START = [RNG.normal(size=(3, 2)), RNG.normal(size=2)]
BACKENDS = [
    pytest.param(name, marks=pytest.mark.skipif(not importlib.util.find_spec(of), reason="no such"))
    for name, of in (("numpy", "numpy"), ("llvm", "llvmlite"), ("jax", "jax"))
]


# --- by hand ------------------------------------------------------------------------------------


def slopes(w, b, x=X, t=T):
    """The gradient of the sum of squares of tanh(x w + b) - t."""
    y = np.tanh(x @ w + b)
    d = 2.0 * (y - t) * (1.0 - y * y)
    return [x.T @ d, d.sum(0)]


def shrunk(ds, ps):
    factor = min(1.0, 0.5 / np.sqrt(sum((d * d).sum() for d in ds)))
    return [d * factor for d in ds]


def clipped(ds, ps):
    return [np.clip(d, -0.3, 0.3) for d in ds]


def long_units(d):
    return np.sqrt((d * d).sum(tuple(range(d.ndim - 1)) if d.ndim > 1 else None, keepdims=True))


def adapted(ds, ps):
    most = [0.1 * np.maximum(long_units(p), 1e-3) for p in ps]
    return [d * np.minimum(1.0, m / long_units(d)) for d, m in zip(ds, most, strict=True)]


def unit(ds, ps):
    length = np.sqrt(sum((d * d).sum() for d in ds))
    return [d / length for d in ds]


def sgd(p, g, t, m):
    m["v"] = 0.9 * m.get("v", 0.0) + g
    return p - 0.1 * m["v"]


def adam(p, g, t, m, decay=0.0):
    m["m"] = 0.9 * m.get("m", 0.0) + 0.1 * g
    m["v"] = 0.999 * m.get("v", 0.0) + 0.001 * g * g
    mean, spread = m["m"] / (1 - 0.9**t), m["v"] / (1 - 0.999**t)
    return p - 0.1 * (mean / (np.sqrt(spread) + 1e-8) + decay * p)


def adamw(p, g, t, m):
    return adam(p, g, t, m, 0.05)


RULES = {
    "clip_global_norm": (lambda: R.clip_global_norm(0.5), shrunk),
    "clip_value_all": (lambda: R.clip_value_all(limit=0.3), clipped),
    "clip_value": (lambda: R.clip_value(0.3), clipped),
    "clip_adaptive": (lambda: R.clip_adaptive(limit=0.1), adapted),
    "normalise_global": (lambda: R.normalise_global(), unit),
}
OPTIMIZERS = {
    "momentum": (lambda: gg.optimizers.SGD(0.1, momentum=0.9), sgd),
    "adam": (lambda: gg.optimizers.Adam(0.1), adam),
    "adamw": (lambda: gg.optimizers.AdamW(0.1, weight_decay=0.05), adamw),
}


def by_hand(change, update, steps=4, gradients=slopes):
    """Parameters after some steps."""
    ps, memories = [p.copy() for p in START], [{}, {}]
    for t in range(1, steps + 1):
        ds = change(gradients(*ps), ps)
        ps = [update(p, d, t, m) for p, d, m in zip(ps, ds, memories, strict=True)]
    return ps


# --- by graphgrad -------------------------------------------------------------------------------


def squares(w, b, x=X, t=T):
    return gg.sum(gg.square(gg.tanh(x @ w + b) - t))


def trained(graph, variables, updates, backend="numpy", steps=4):
    """Parameters after some steps."""
    step = gg.compile([], None, updates=updates, backend=backend)
    for _ in range(steps):
        step()
    return [graph.state[v] for v in variables]


def parameters():
    return [gg.variable(p, name=n) for n, p in zip("wb", START, strict=True)]


def agree(found, wanted, tolerance=1e-10):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("rule", RULES)
def test_S46_a_step_of_an_optimizer_is_given_what_the_rule_makes(rule, optimizer, backend):
    (make_rule, change), (make, update) = RULES[rule], OPTIMIZERS[optimizer]
    with gg.Graph() as graph:
        ps = parameters()
        loss = squares(*ps)
        graph.mark(gg.select.variables(), make_rule(), together=True)
        found = trained(graph, ps, make().updates(ps, gg.gradients(loss, ps)), backend)
    agree(found, by_hand(change, update))


def test_S46_minimize_and_a_session():
    with gg.Graph() as graph:
        ps = parameters()
        graph.mark(ps, R.clip_global_norm(0.5), together=True)
        train = gg.optimizers.Adam(0.1).minimize(squares(*ps))
        with gg.Session(graph) as session:
            for _ in range(4):
                session.run(train)
            agree(session.run(ps), by_hand(shrunk, adam))


def test_S27_S46_a_file_keeps_the_site():
    with gg.Graph() as graph, tempfile.TemporaryDirectory() as folder:
        ps = parameters()
        name = squares(*ps).name
        graph.mark(ps, R.clip_global_norm(0.5), together=True)
        gg.save(f"{folder}/net.gg", graph)
        graph = gg.load(f"{folder}/net.gg").graph
        with graph:
            ps = list(graph.variables)
            updates = gg.optimizers.Adam(0.1).updates(ps, gg.gradients(graph.tensor(name), ps))
            agree(trained(graph, ps, updates), by_hand(shrunk, adam))


def test_S46_of_what_is_frozen_the_gradient_counts_in_the_norm():
    with gg.Graph() as graph:
        w, b = parameters()
        graph.mark([w, b], R.clip_global_norm(0.5), together=True)
        db = gg.evaluate(gg.gradients(squares(w, b), b))
        agree([db], shrunk(slopes(*START), None)[1:])


def test_S46_gradients_that_are_added_up_are_clipped_call_by_call_or_as_a_sum():
    """Of one call the sum over both halves is clipped, of two calls each half."""
    halves = [(X[:2], T[:2]), (X[2:], T[2:])]

    def each(w, b):
        parts = [shrunk(slopes(w, b, x, t), None) for x, t in halves]
        return [np.sum(ds, 0) for ds in zip(*parts, strict=True)]

    for calls, wanted in (
        (1, by_hand(shrunk, adam)),
        (2, by_hand(lambda ds, ps: ds, adam, gradients=each)),
    ):
        with gg.Graph() as graph:
            ps = parameters()
            losses = [squares(*ps, x, t) for x, t in halves]
            graph.mark(ps, R.clip_global_norm(0.5), together=True)
            groups = [losses] if calls == 1 else [[loss] for loss in losses]
            found = [gg.gradients(group, ps) for group in groups]
            ds = [sum(parts[1:], parts[0]) for parts in zip(*found, strict=True)]
            agree(trained(graph, ps, gg.optimizers.Adam(0.1).updates(ps, ds)), wanted)


def test_S46_gradients_that_are_kept_in_variables():
    """Two runs add gradients up, a third takes a step: what is added was clipped."""
    with gg.Graph() as graph:
        ps = parameters()
        sums = [gg.variable(np.zeros_like(p)) for p in START]
        x, t = gg.placeholder((None, 3)), gg.placeholder((None, 2))
        loss = squares(*ps, x, t)
        graph.mark(ps, R.clip_global_norm(0.5), together=True)
        ds = gg.gradients(loss, ps)
        add = gg.compile([x, t], None, updates={s: s + d for s, d in zip(sums, ds, strict=True)})
        step = gg.compile([], None, updates=gg.optimizers.SGD(0.1).updates(ps, sums))
        for part in (slice(0, 2), slice(2, 5)):
            add(X[part], T[part])
        step()
        parts = [shrunk(slopes(*START, X[i], T[i]), None) for i in (slice(0, 2), slice(2, 5))]
        wanted = [p - 0.1 * (a + b) for p, a, b in zip(START, *parts, strict=True)]
        agree([graph.state[p] for p in ps], wanted)


@pytest.mark.parametrize("backend", BACKENDS)
def test_S46_what_a_checkpoint_computes_again_counts_too(backend):
    with gg.Graph() as graph:
        ps = parameters()
        loss = R.checkpoint(squares)(*ps)
        graph.mark(ps, R.clip_global_norm(0.5), together=True)
        found = trained(graph, ps, gg.optimizers.Adam(0.1).updates(ps, gg.gradients(loss, ps)))
    agree(found, by_hand(shrunk, adam))


def of_examples(w, b):
    parts = [shrunk(slopes(w, b, x[None], t[None]), None) for x, t in zip(X, T, strict=True)]
    return [np.sum(ds, 0) for ds in zip(*parts, strict=True)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_S27_S46_under_vmap_each_example_is_clipped(backend):
    """As differential privacy has it: the sum of gradients that were clipped one by one."""

    with gg.Graph() as graph:
        ps = parameters()
        graph.mark(ps, R.clip_global_norm(0.5), together=True)

        def one(x, t):
            return gg.gradients(squares(*ps, x[None], t[None]), ps)

        ds = [gg.sum(d, 0) for d in gg.vmap(one)(gg.constant(X), gg.constant(T))]
        found = trained(graph, ps, gg.optimizers.Adam(0.1).updates(ps, ds), backend)
    agree(found, by_hand(lambda ds, ps: ds, adam, gradients=of_examples))


def clipped_gradients(w, b):
    """Of a loss in a body of control flow or under vmap, where its tensors are marked."""
    w, b = gg.identity(w), gg.identity(b)
    loss = squares(w, b)
    w.graph.mark([w, b], R.clip_global_norm(0.5), together=True)
    return gg.gradients(loss, [w, b])


@pytest.mark.parametrize("backend", BACKENDS)
def test_S27_S46_parameters_of_a_batch_are_clipped_one_by_one(backend):
    """An ensemble: each member has its own norm."""
    batch = [np.stack([p, 2.0 * p, 0.1 * p]) for p in START]
    with gg.Graph():
        found = gg.vmap(clipped_gradients)(*map(gg.constant, batch))
        found = gg.compile([], list(found), backend=backend)()
    for i in range(3):
        agree([d[i] for d in found], shrunk(slopes(*[p[i] for p in batch]), None))


def step_down(ps):
    return [p - 0.1 * d for p, d in zip(ps, clipped_gradients(*ps), strict=True)]


def descended(p, g, t, m):
    return p - 0.1 * g


LOOPS = {
    "scan": lambda ps: gg.scan(lambda ps, _: (step_down(ps), 0.0), ps, length=4)[0],
    "fori": lambda ps: gg.fori_loop(0, 4, lambda _, ps: step_down(ps), ps),
    "while": lambda ps: gg.while_loop(
        lambda s: s[0] < 4, lambda s: [s[0] + 1, *step_down(s[1:])], [gg.constant(0), *ps]
    )[1:],
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("loop", LOOPS)
def test_S46_in_a_loop_over_steps(loop, backend):
    with gg.Graph():
        found = list(LOOPS[loop](parameters()))
        agree(gg.compile([], found, backend=backend)(), by_hand(shrunk, descended))


def test_S05_S23_S46_a_derivative_through_steps_is_that_of_clipped_steps():
    """Of the loss after four steps, by what they began with; the sites act once, in the steps."""
    with gg.Graph():
        ps = [gg.placeholder(p.shape) for p in START]
        last = squares(*LOOPS["scan"](ps))
        ds = gg.gradients(last, ps, overrides="none")
        f = gg.compile(ps, [last, *ds])
        _, *found = f(*START)
        for i, at in enumerate([(1, 0), (1,)]):
            moved = [[p.copy() for p in START] for _ in range(2)]
            for k, sign in enumerate((1e-5, -1e-5)):
                moved[k][i][at] += sign
            slope = (f(*moved[0])[0] - f(*moved[1])[0]) / 2e-5
            np.testing.assert_allclose(found[i][at], slope, rtol=1e-5)


def test_by_the_names_of_tensorflow():
    """There a function of gradients does what a site does here."""
    with tf.Graph().as_default():
        ps = [tf.Variable(p, name=n) for n, p in zip("wb", START, strict=True)]
        y = tf.tanh(tf.matmul(tf.constant(X), ps[0]) + ps[1])
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        ds = tf.gradients(tf.reduce_sum(tf.square(y - T)), ps)
        ds, _ = tf.clip_by_global_norm(ds, 0.5)
        train = optimizer.apply_gradients(zip(ds, ps, strict=True))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(4):
                session.run(train)
            agree(session.run(ps), by_hand(shrunk, descended), 1e-7)


def test_S46_a_task_that_all_share_needs_a_tensor_for_each():
    """One tensor has one gradient: what joins several refuses it where it is marked."""
    with gg.Graph() as graph:
        w, _ = parameters()
        for make in (R.jd_mean, R.jd_upgrad, R.jd_pcgrad, R.jd_imtlg):
            given = {"orders": np.eye(1)} if make is R.jd_pcgrad else {}
            with pytest.raises(gg.GradientError, match=r"jd_\w+\(\): .*x and times.*test_training"):
                graph.mark([w], make(**given), together=True)
        assert not graph.regions
        a, b, c = [gg.identity(w) for _ in range(3)]
        with pytest.raises(ValueError, match=r"at least byzantine \+ 3.*test_training.py"):
            graph.mark([a, b, c], R.jd_krum(), together=True)
        with pytest.raises(ValueError, match="first axis of all tensors is that of examples"):
            graph.mark(
                [a, gg.variable(np.ones(7))], R.per_example_global_norm_clip(1.0), together=True
            )
