"""The rows of several tensors as rules for tensors that exist: as where they build identities."""

from functools import cache

import numpy as np
import pytest

import graphgrad as gg

from ..each import each

COLUMNS = [np.arange(12.0).reshape(4, 3) * s - 2.0 for s in (0.3, -0.2, 0.1, 0.5)]
GIVEN = {
    "clip_adaptive": {"limit": 0.3},
    "clip_global_norm": {"limit": 1.0},
    "clip_value_all": {"limit": 0.5},
    "jd_constant": {"weights": np.array([0.1, 0.2, 0.3, 0.4])},
    "jd_graddrop": {"uniform": np.full((4, 3), 0.4)},
    "jd_pcgrad": {"orders": np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 1, 0], [3, 2, 1, 0]])},
    "per_example_global_norm_clip": {"limit": 0.7},
    "per_example_layer_norm_clip": {"limit": 0.7},
}
ROWS = {
    name: entry.row
    for name, entry in gg.rules.library().items()
    if getattr(getattr(entry, "row", None), "alone", None) is not None
}


def orders(name, on_tensors):
    """First and second order of what the row does to four tensors, or one that is handed out."""
    row, make = ROWS[name], getattr(gg.rules, name)
    fan, given = "x" in row.signature.parameters, GIVEN.get(name, {})
    with gg.Graph() as graph:
        leaves = [gg.variable(np.sin(np.arange(12.0) + i).reshape(4, 3)) for i in range(4)]
        leaves = leaves[:1] if fan else leaves
        if not on_tensors:
            xs = make(*leaves, *([4] if fan else []), **given)
        else:
            xs = [gg.identity(leaves[0]) for _ in COLUMNS] if fan else leaves
            graph.mark(xs, make(**given), together=True)
        y = sum(gg.sum(gg.sin(x) * c) for x, c in zip(xs, COLUMNS, strict=True))
        first = gg.gradients(y, leaves)
        total = sum(gg.sum(d * d) for d in first)
        return gg.evaluate([*first, *gg.gradients(total, leaves, unconnected="zero")])


@pytest.mark.parametrize("name", ROWS)
def test_S46_a_row_on_tensors_is_as_where_it_builds(name):
    for a, b in zip(orders(name, True), orders(name, False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_S46_parameters_by_position_and_by_name():
    assert gg.rules.clip_global_norm(1.0).name == gg.rules.clip_global_norm(limit=1.0).name
    assert isinstance(gg.rules.jd_mean(), gg.Rule)
    with pytest.raises(TypeError, match=r"missing a required argument: 'limit'.*a site of tensors"):
        gg.rules.clip_global_norm()
    with pytest.raises(ValueError, match="limit"):
        gg.rules.clip_global_norm(-1.0)


def test_S46_tasks_are_of_one_shape():
    with gg.Graph() as graph:
        a, b = gg.variable(np.ones(2)), gg.variable(np.ones(3))
        y = gg.sum(a) + gg.sum(b)
        with pytest.raises(gg.GradientError, match=r"jd_mean\(\): .* one shape.*test_on_tensors"):
            graph.mark([a, b], gg.rules.jd_mean(), together=True)
        site = graph.mark([a, b], gg.rules.clip_value_all(limit=1.0), together=True)
        with pytest.raises(gg.GradientError, match="one shape"):
            gg.gradients(y, a, overrides={site[0]: gg.rules.jd_mean()})


def test_S46_rules_of_one_gradient_act_on_each():
    with gg.Graph() as graph:
        a, b = gg.variable(3.0), gg.variable(4.0)
        y = a * a + b
        graph.mark([a, b], gg.rules.clip_value(2.0), together=True)
        assert gg.evaluate(gg.gradients(y, [a, b])) == [2.0, 1.0]


TASKS = {
    "in general": np.random.default_rng(0).normal(size=(3, 4)),
    "more than elements": np.random.default_rng(1).normal(size=(3, 2)),
    "orthogonal, of one length": np.eye(4)[:3],
    "one is zero": np.array([[1.0, 2.0, 3.0, 4.0], [0.0] * 4, [-1.0, 1.0, 2.0, 1.0]]),
    "parallel": np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0], [-1.0, 1.0, 2.0, 1.0]]),
    "all the same": np.array([[1.0, 2.0, 3.0, 4.0]] * 3),
    "all zero": np.zeros((3, 4)),
}
DRAWN = {
    "jd_constant": lambda n: {"weights": np.array([0.1, 0.2, 0.3])},
    "jd_graddrop": lambda n: {"uniform": np.full(n, 0.4)},
    "jd_krum": lambda n: {"byzantine": 0},
    "jd_pcgrad": lambda n: {"orders": np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])},
}


def by_row(name):
    return name.partition(",")[0]


FANNED = sorted(n for n in ROWS if n.startswith("jd_"))


@cache
def along(name, n):
    """f(rows) gives a number that is made of what a row makes of three tasks, and its gradient."""
    with gg.Graph():
        x, c = gg.placeholder((n,)), gg.placeholder((3, n))
        parts = getattr(gg.rules, name)(x, 3, **DRAWN.get(name, lambda n: {})(n))
        dx = gg.gradients(sum(gg.sum(p * c[i]) for i, p in enumerate(parts)), x)
        y = gg.sum(dx * np.arange(1.0, 1.0 + n))
        f = gg.compile([x, c], [y, gg.gradients(y, c)], backend="numpy")
    return lambda rows: f(np.ones(n), rows)


@each([(f"{name}, {tasks}", name, tasks) for name in FANNED for tasks in TASKS], by_row)
def test_what_joins_tasks_grows_with_their_gradients(name, tasks):
    """Twice the gradients give twice of what it makes: along them, the second order is the first
    [Euler], also where ranks fall and lengths are 0."""
    rows = TASKS[tasks]
    with np.errstate(all="ignore"):
        first, second = along(name, rows.shape[1])(rows)
    if (name, tasks) == ("jd_graddrop", "all zero"):  # 0/0
        return
    np.testing.assert_allclose(np.sum(second * rows), first, rtol=1e-6, atol=1e-9)
    assert np.isfinite(second).all()


@pytest.mark.parametrize("tasks", ["in general", "more than elements"])
@pytest.mark.parametrize("name", ["jd_aligned_mtl", "jd_cagrad", "jd_config", "jd_imtlg"])
def test_the_second_order_of_what_solves_for_weights(name, tasks):
    rows = TASKS[tasks]
    f, step = along(name, rows.shape[1]), np.zeros_like(rows)
    step[1, 0] = 1e-6
    slope = (f(rows + step)[0] - f(rows - step)[0]) / 2e-6
    np.testing.assert_allclose(f(rows)[1][1, 0], slope, rtol=1e-6)


R = gg.rules
BY_NORM = {
    "clip_global_norm": lambda: R.clip_global_norm(0.5),
    "clip_global_norm of order 3": lambda: R.clip_global_norm(0.5, norm=3.0),
    "clip_adaptive": lambda: R.clip_adaptive(limit=0.1),
    "per_example_global_norm_clip": lambda: R.per_example_global_norm_clip(0.5),
    "per_example_layer_norm_clip": lambda: R.per_example_layer_norm_clip(0.5),
    "clip_block_rms": lambda: R.clip_block_rms(0.5),
    "clip_norm": lambda: R.clip_norm(0.5),
    "normalise": lambda: R.normalise(),
}


@pytest.mark.parametrize("name", BY_NORM)
def test_S46_what_clips_by_a_norm_has_a_derivative_where_the_gradient_is_zero(name):
    with gg.Graph() as graph:
        w = gg.variable(np.array([[0.3, -0.2], [0.1, 0.4]]))
        k = gg.variable(np.zeros((2, 2)))
        y = gg.sum(k * gg.sin(w))
        graph.mark([w], BY_NORM[name](), together=True)
        dw = gg.gradients(y, w)
        first, second = gg.evaluate([dw, gg.gradients(gg.sum(dw), k)])
    assert not first.any()
    slope = 1e6 if name == "normalise" else 1.0
    np.testing.assert_allclose(second, slope * np.cos([[0.3, -0.2], [0.1, 0.4]]))


@pytest.mark.parametrize("name", BY_NORM)
def test_S46_the_norm_of_complex_gradients_is_of_their_magnitudes(name):
    z = np.array([[3.0 + 4.0j, 1.0j], [0.5 - 2.0j, 0.1 + 0.1j]])
    found = []
    for turn in (1.0, np.exp(0.7j)):  # a norm does not change when all elements are turned
        with gg.Graph() as graph:
            v = gg.variable(z * turn)
            y = gg.sum(gg.real(v * gg.conj(v)))
            graph.mark([v], BY_NORM[name](), together=True)
            found.append(gg.evaluate(gg.gradients(y, v)) * turn)
    np.testing.assert_allclose(found[0], found[1])
    shrunk = found[0] / (2.0 * z.conj())
    np.testing.assert_allclose(shrunk, np.abs(shrunk), atol=1e-15)
    assert (np.abs(shrunk) <= 1.0).all()


@pytest.mark.parametrize("name", BY_NORM)
def test_S46_a_norm_of_half_precision_does_not_overflow(name):
    found = []
    for dtype in ("float16", "float64"):
        with gg.Graph() as graph:
            w = gg.variable(np.array([[200.0, 100.0], [300.0, 50.0]], dtype))
            graph.mark([w], BY_NORM[name](), together=True)
            found.append(gg.evaluate(gg.gradients(gg.sum(w * w), w)))
    np.testing.assert_allclose(*found, rtol=2e-3)


def test_S46_complex_gradients_have_no_order_to_clip_by():
    for rule in (R.clip_value(1.0), R.clip_range(-1.0, 1.0), R.clip_value_all(limit=1.0)):
        with gg.Graph() as graph:
            v = gg.variable(np.array([3.0 + 4.0j]))
            graph.mark([v], rule, together=True)
            with pytest.raises(gg.DTypeError, match="real numbers between"):
                gg.gradients(gg.sum(gg.real(v * v)), v)
