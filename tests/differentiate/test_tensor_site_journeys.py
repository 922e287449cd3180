"""Sites of tensors through every journey: copies, imports, files, batches, bodies."""

import json
import pickle
import zipfile
from functools import partial

import numpy as np
import pytest

import graphgrad as gg

X = np.array([[0.3, -0.2, 0.9], [1.1, 0.4, -0.5], [0.1, 0.2, 0.3], [-1.0, 0.6, 0.2]])
W = np.array([0.5, -1.0, 0.8])


def clipped(site, *dys):
    norm = gg.sqrt(sum(gg.sum(d * d) for d in dys))
    pairs = zip(dys, site.inputs, strict=True)
    return [d * gg.minimum(1.0 / norm, 1.0) * (1.0 + x * x) for d, x in pairs]


def held(k):
    def clipped_and_scaled(site, *dys):
        return [k * d for d in clipped(site, *dys)]

    return clipped_and_scaled


def doubled(site, *dys):
    return [2.0 * d for d in dys]


def joined(tensors, rule):
    with gg.override_gradient(rule, inputs=tensors) as region:
        ys = [gg.identity(t) for t in tensors]
        region.declare(outputs=ys)
    return ys


# --- graphs that travel ---------------------------------------------------------------------------


def model(closure):
    graph = gg.Graph()
    with graph:
        x = gg.placeholder((3,), name="x")
        w, b = gg.variable(W, name="w"), gg.variable(0.5, name="b")
        k = gg.variable(2.0, name="k")
        gg.identity(gg.sum(gg.sin(w * x) + b * x) * k, name="y")
        graph.mark([w, b], held(k) if closure else clipped, together=True)
    return graph


def orders(graph):
    with graph:
        x, w, b = (graph.tensor(f"{n}:0") for n in "xwb")
        first = gg.gradients(graph.tensor("y:0"), [w, b])
        second = gg.gradients(gg.sum(first[0]) + first[1], [w, b])
        return gg.compile([x], [*first, *second])(X[0])


def imported(graph):
    with gg.Graph() as here:
        gg.import_graph(graph)
    return here


def imported_on_another(graph):
    with gg.Graph() as here:
        w = gg.variable(W, name="w")
        gg.sin(w)  # what else reads it here is not of the site
        gg.import_graph(graph, {graph.tensor("w:0"): w})
        assert gg.evaluate(gg.gradients(gg.sum(gg.sin(w)), w)) == pytest.approx(np.cos(W))
    return here


def stored(path, graph):
    gg.save(path, graph)
    return gg.load(path).graph


JOURNEYS = {
    "copy": gg.Graph.copy,
    "copy of a copy": lambda g: g.copy().copy(),
    "import": imported,
    "import on another tensor": imported_on_another,
    "pickle": lambda g: pickle.loads(pickle.dumps(g)),
    "cut out": lambda g: g.subgraph(g.tensor("x:0"), g.tensor("y:0")),
    "all": lambda g: pickle.loads(pickle.dumps(imported(g).copy())),
}


@pytest.mark.parametrize("closure", [False, True])
@pytest.mark.parametrize("journey", [*JOURNEYS, "file"])
def test_S27_S32_S46_it_travels(journey, closure, tmp_path):
    away = JOURNEYS.get(journey) or partial(stored, tmp_path / "model.gg")
    for a, b in zip(orders(away(model(closure))), orders(model(closure)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_S32_S46_a_file_says_that_it_needs_a_reader_who_knows_them(tmp_path):
    path = tmp_path / "model.gg"
    gg.save(path, model(False))
    with zipfile.ZipFile(path) as file:
        text = json.loads(file.read("graph.json"))
    assert text["needs"] == ["sites of tensors"]
    plain = model(False)
    plain.unmark(plain.regions[0])
    gg.save(path, plain)
    with zipfile.ZipFile(path) as file:
        assert json.loads(file.read("graph.json"))["needs"] == []


@pytest.mark.parametrize("pins", [None, [], [1]])
def test_S32_S46_a_file_with_another_boundary_is_refused(pins, tmp_path):
    path, forged = tmp_path / "model.gg", tmp_path / "forged.gg"
    gg.save(path, model(False))
    with zipfile.ZipFile(path) as file, zipfile.ZipFile(forged, "w") as other:
        text = json.loads(file.read("graph.json"))
        text["graphs"][0]["regions"][0]["pinned_outputs"] = pins
        other.writestr("graph.json", json.dumps(text, separators=(",", ":")))
        for name in file.namelist():
            if name != "graph.json":
                other.writestr(name, file.read(name))
    with pytest.raises(gg.FileError, match="site of tensors"):
        gg.load(forged)


def test_S46_what_is_cut_out_takes_all_tensors_of_a_site():
    with gg.Graph() as graph:
        a, b = gg.variable(3.0, name="a"), gg.variable(4.0, name="b")
        y = a * a
        graph.mark([a, b], clipped, together=True)
    part = graph.subgraph([], y)
    assert [v.name for v in part.variables] == ["a:0", "b:0"]
    assert len(part.regions) == 1


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
def test_S27_S46_backends(backend):
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    with model(False) as graph:
        x, w, b = (graph.tensor(f"{n}:0") for n in "xwb")
        dxs = gg.gradients(graph.tensor("y:0"), [w, b])
        found = gg.compile([x], dxs, backend=backend)(X[0])
    for a, b in zip(found, orders(model(False)), strict=False):
        np.testing.assert_allclose(a, b, rtol=1e-9)


# --- batches --------------------------------------------------------------------------------------


def example(rule, x, w):
    h = gg.sin(x)
    y = gg.sum(gg.sin(h * w) + w * w)
    y.graph.mark([h, w], rule, together=True)
    return y


def one_by_one(rule, ws):
    rows = []
    for x, w in zip(X, ws, strict=True):
        with gg.Graph():
            leaves = [gg.constant(x), gg.constant(w)]
            rows.append(gg.evaluate(gg.gradients(example(rule, *leaves), leaves)))
    return [np.stack(part) for part in zip(*rows, strict=True)]


@pytest.mark.parametrize("rule", [clipped, doubled])
@pytest.mark.parametrize("shared", [False, True])
def test_S27_S46_each_example_of_a_batch_has_its_own(rule, shared):
    ws = W if shared else np.outer([1.0, 2.0, 0.5, -1.0], W)
    dx, dw = one_by_one(rule, np.broadcast_to(W, X.shape) if shared else ws)
    with gg.Graph():
        x, w = gg.constant(X), gg.constant(ws)
        y = gg.vmap(partial(example, rule), in_axes=(0, None if shared else 0))(x, w)
        beside = gg.sum(w * w)  # reads w, but is not of the batch
        found = gg.evaluate([*gg.gradients(gg.sum(y), [x, w]), gg.gradients(beside, w)])
    np.testing.assert_allclose(found[0], dx, rtol=1e-12)
    np.testing.assert_allclose(found[1], dw.sum(0) if shared else dw, rtol=1e-12)
    np.testing.assert_allclose(found[2], 2.0 * ws)


def test_S27_S46_gradients_within_a_batch():
    def both(x, w):
        return gg.gradients(example(clipped, x, w), [x, w])

    with gg.Graph():
        found = gg.evaluate(gg.vmap(both, in_axes=(0, None))(gg.constant(X), gg.constant(W)))
    for a, b in zip(found, one_by_one(clipped, np.broadcast_to(W, X.shape)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_S27_S46_what_a_batch_shares_counts_once_for_all():
    found = []
    for batched in (False, True):
        with gg.Graph() as graph:
            x, w, b = gg.constant(X), gg.variable(W), gg.variable(1.0)
            rows = gg.vmap(lambda row, w=w, b=b: gg.sin(row * w) * b)
            y = rows(x) if batched else gg.sin(x * w) * b
            graph.mark(gg.select.variables(), clipped, together=True)
            found.append(gg.evaluate(gg.gradients(gg.sum(y), [w, b])))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


# --- control flow ---------------------------------------------------------------------------------


def recurrent(how):
    """Second-order gradients of a scan with a choice in it, of the site or what it stands for."""
    with gg.Graph() as graph:
        w, b = gg.variable(W), gg.variable(1.0)
        v, c = joined([w, b], clipped) if how == "region" else (w, b)

        def step(carry, x):
            h = gg.cond(gg.sum(carry) > 0, lambda: gg.tanh(carry * v + x * c), lambda: gg.sin(v))
            return h, h * c

        carry, rows = gg.scan(step, v * 0.1, gg.constant(X))
        if how == "site":
            graph.mark([w, b], clipped, together=True)
        first = gg.gradients(gg.sum(carry) + gg.sum(rows), [w, b])
        return gg.evaluate([*first, *gg.gradients(gg.sum(first[0]) + first[1], [w, b])])


def test_S27_S46_what_loops_and_choices_read():
    for a, b in zip(recurrent("site"), recurrent("region"), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def in_a_body(how):
    with gg.Graph():
        w, b = gg.variable(W), gg.variable(1.0)

        def step(carry, x):
            h, k = gg.tanh(carry * w + x), gg.sin(x * b + carry)
            if how == "region":
                h, k = joined([h, k], clipped)
            else:
                h.graph.mark([h, k], clipped, together=True)
            return h * k, h + k

        carry, rows = gg.scan(step, gg.zeros((3,), "float64"), gg.constant(X))
        return gg.evaluate(gg.gradients(gg.sum(carry) + gg.sum(rows), [w, b]))


def test_S27_S46_tensors_of_a_body_have_it_in_every_run():
    for a, b in zip(in_a_body("site"), in_a_body("region"), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_S46_tensors_of_a_body_and_of_the_graph_around_are_two_sites():
    with gg.Graph() as graph:
        w, seen = gg.variable(W), []

        def step(carry, x):
            seen.append(carry * w + x)
            return seen[0], seen[0]

        gg.scan(step, gg.zeros((3,), "float64"), gg.constant(X))
        with pytest.raises(gg.RegionError, match="in several graphs"):
            graph.mark([w, seen[0]], clipped, together=True)


# --- programs -------------------------------------------------------------------------------------


def test_S27_S46_a_function_that_marks():
    @gg.function
    def slopes(x):
        h, k = gg.sin(x), gg.cos(x)
        y = gg.sum(h * k)
        y.graph.mark([h, k], gg.rules.clip_global_norm(1.0), together=True)
        return gg.gradients(y, x)

    x = np.array([1.0, 2.0])
    dh, dk = np.cos(x), np.sin(x)
    norm = np.sqrt((dh**2).sum() + (dk**2).sum())
    np.testing.assert_allclose(slopes(x), (dh * np.cos(x) - dk * np.sin(x)) / norm)


def test_S46_heal_keeps_the_tensors_or_says_that_it_cannot():
    with gg.Graph() as graph:
        x = gg.variable(2.0)
        e = gg.exp(x)
        y = gg.log(1.0 + e)
        graph.mark(e, doubled, together=True)
        healed = gg.heal(y).ys
        assert healed is not y
        dx = gg.evaluate(gg.gradients(healed, x))
        assert dx == pytest.approx(2.0 / (1.0 + np.exp(-2.0)))
        behind = gg.sin(gg.log(1.0 + gg.exp(x)))
        out = gg.cos(behind)
        graph.mark(behind, doubled, together=True)
        with pytest.raises(gg.RegionError, match="would rebuild"):
            gg.heal(out)


def of_a_second_output(real):
    """First and second order of a site on the second output of a loop, in a batch and alone."""

    def slope(x):
        a, b = gg.scan(lambda c, u: (gg.sin(c + u), c * c * u), x, gg.constant(X[:, :2]))
        (c,) = joined([b], clipped) if real else (b,)
        y = gg.sum(a * c)
        if not real:
            y.graph.mark(b, clipped, together=True)
        dx = gg.gradients(y, x)
        return dx, gg.gradients(gg.sum(dx * dx), x)

    with gg.Graph():
        found = gg.vmap(slope)(gg.constant(X[:, :2]))
        return gg.evaluate([*found, *slope(gg.constant(X[0, :2]))])


def test_S27_S46_a_second_output_of_an_op():
    for a, b in zip(of_a_second_output(True), of_a_second_output(False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
