"""Run by test_jax_shardings.py: programs on 8 devices that the CPU pretends to be."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import functools
import tempfile

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import graphgrad as gg

RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(64, 16)), RNG.normal(size=(64, 8))
MESH = jax.make_mesh((8,), ("all",))
LAYOUTS = {
    "data": lambda x, y, ws: {x: P("all"), y: P("all")},
    "parts": lambda x, y, ws: {t: P("all") for t in (x, y, *ws)},
    "tensor": lambda x, y, ws: {ws[0]: P(None, "all"), ws[1]: P("all", None)},
}


@gg.register_gradient("straight")
def straight(site, dy):
    return gg.where(gg.abs(site.inputs[0]) <= 1, dy, 0.0)


def trained(layout=None, backend="jax", overrides=None, **options):
    """The losses of 4 steps, and the state: signs of what the batch normalises, dropout, a penalty
    of second order through the rule."""
    rng = np.random.default_rng(0)
    with gg.Graph() as graph:
        x, y = gg.placeholder((None, 16), name="x"), gg.placeholder((None, 8), name="y")
        ws = [gg.variable(rng.normal(size=s) / 4, name=f"w{i}") for i, s in enumerate(SHAPES)]
        h = gg.nn.layer_norm((x @ ws[0]).T, axis=1).T  # of the whole batch, as batch_norm's
        with gg.override_gradient("straight"):
            h = gg.sign(h)
        loss = gg.mean(gg.square(gg.nn.dropout(h, 0.2) @ ws[1] - y))
        first = gg.gradients(loss, ws, overrides=overrides)
        loss = loss + 0.1 * gg.sum(gg.square(first[1]))
        grads = gg.gradients(loss, ws, overrides=overrides)
        updates = gg.optimizers.Adam(0.05).updates(ws, grads)
        if layout is not None:
            options |= {"mesh": MESH, "shardings": LAYOUTS[layout](x, y, ws)}
        step = gg.compile([x, y], loss, updates=updates, backend=backend, **options)
    return np.array([float(step(X, Y)) for _ in range(4)]), graph, step


SHAPES = [(16, 32), (32, 8)]


def check_layouts():
    losses, graph, _ = trained()
    np.testing.assert_allclose(losses, trained(backend="numpy")[0], rtol=1e-12)
    off, _, _ = trained("data", overrides="none")
    assert np.abs(off - losses).max() > 1e-3
    alone = graph.state.as_dict()
    for layout in LAYOUTS:
        found, divided, step = trained(layout, donate=layout == "tensor")
        np.testing.assert_allclose(found, losses, rtol=1e-12)
        for name, value in divided.state.as_dict().items():
            np.testing.assert_allclose(value, alone[name], rtol=0, atol=1e-12)
        assert "8 devices" in step.explain()
    laid = {v.name: value.sharding.spec for v, value in divided.state._values.items()}
    assert laid["w1"] == laid["w1/adam_m"] == P("all", None)
    check_files(divided, alone)


def check_files(graph, expected):
    """A divided state in files, and in another process's hands."""
    with tempfile.TemporaryDirectory() as folder:
        gg.Checkpoints(folder).save(1, graph)
        graph.state.reset()
        gg.Checkpoints(folder).resume(graph)
    for name, value in graph.state.as_dict().items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-12)


def check_random_numbers():
    """The same on 1 and 8 devices, the very bits of words; normal numbers to the last places."""
    with gg.Graph():
        x = gg.placeholder((64, 16), name="x")
        drawn = [gg.random.uniform((64, 16), seed=3), gg.random.normal((64, 16), seed=4)]
        drawn += [gg.random.integers(0, 9, (64, 16), seed=5), gg.random.permutation(64, seed=6)]
        outputs = [d + x if d.ndim == 2 and d.dtype == x.dtype else d for d in drawn]
    alone = gg.compile(x, outputs, backend="jax")(X)
    divided = gg.compile(x, outputs, backend="jax", mesh=MESH, shardings={x: P("all")})(X)
    for a, b in zip(alone, divided, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)


def check_lengths():
    with gg.Graph():
        x = gg.placeholder((None, 12), name="x")
        f = gg.compile(x, gg.sum(x), backend="jax", mesh=MESH, shardings={x: P("all")})
        said = "axis 0 has the length 12, which is not divisible by the 8 devices"
        with pytest.raises(gg.ShapeError, match=said):
            f(np.ones((12, 12)))
        assert f(np.ones((16, 12))) == 192
        with pytest.raises(gg.ShapeError, match="axis 1 has the length 12"):
            gg.compile(x, x, backend="jax", mesh=MESH, shardings={x: P(None, "all")})


def check_refusals():
    """A run that refuses an index writes nothing on any device, and leaves all where it lay."""
    table = RNG.normal(size=(16, 8))
    for donate in (False, True):
        with gg.Graph() as graph:
            i = gg.placeholder((8,), "int64", name="i")
            w, n = gg.variable(table, name="w"), gg.variable(0, name="n")
            m = gg.variable(np.zeros((16, 8)), name="m")
            grad = gg.gradients(gg.sum(w[i] ** 2), w)
            m_next = 0.9 * m + grad + gg.random.normal(w.shape)
            updates = {w: w - 0.1 * m_next, m: m_next, n: n + 1}
            where = {w: P("all"), m: P(None, "all"), i: P("all")}
            options = {"mesh": MESH, "shardings": where, "donate": donate}
            step = gg.compile(i, gg.sum(w), updates=updates, backend="jax", **options)
        right = np.arange(8)
        step(right)
        before, runs = graph.state.as_dict(), graph.state.runs
        places = {v.name: value.sharding for v, value in graph.state._values.items()}
        for device in (0, 3, 7):  # which of them holds the index
            wrong = right.copy()
            wrong[device] = 16
            with pytest.raises(IndexError, match="index 16 is out of bounds for axis 0"):
                step(wrong)
            assert graph.state.runs == runs
            after = graph.state.as_dict()
            for name, value in before.items():
                np.testing.assert_array_equal(after[name], value)
            assert places == {v.name: a.sharding for v, a in graph.state._values.items()}
        np.testing.assert_allclose(step(right), before["w"].sum(), rtol=1e-12)
        assert graph.state["n"] == 2


def doubled(site, dy):
    return 2.0 * dy * site.outputs[0]


def check_inside_jax():
    """`as_jax` on meshes of explicit and of automatic axes, and of a part under `shard_map`."""
    with gg.Graph():
        x, y = gg.placeholder(("N", 16), name="x"), gg.placeholder(("N",), name="y")
        w = gg.variable(RNG.normal(size=16) / 4, name="w")
        h = x @ w
        with gg.override_gradient(doubled):
            h = gg.tanh(h)
        loss = gg.mean(gg.square(h - y))
        dw, dx = gg.gradients(loss, [w, x])
        wanted = [dw, dx, gg.jacobian(dw, w), gg.gradients(loss, w, overrides="none")]
        first, at_x, second, plain = gg.compile([x, y], wanted)(X, Y[:, 0])
        updates = gg.optimizers.SGD(0.1).updates([w], [dw])
        step = gg.compile([x, y], [loss, h], updates=updates)
        fn, train = gg.compile([x, y], loss).as_jax(gradients=2), step.as_jax()
    assert np.abs(first - plain).max() > 1e-3
    close = functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-14)
    start = np.array(w.graph.state[w])
    of = jax.grad(lambda w, x, y: fn([x, y], {"w": w})[0], argnums=(0, 1))
    for kind in (AxisType.Explicit, AxisType.Auto):
        mesh = jax.make_mesh((8,), ("data",), axis_types=(kind,))
        xs, ys, ws = (
            jax.device_put(a, NamedSharding(mesh, spec))
            for a, spec in ((X, P("data")), (Y[:, 0], P("data")), (start, P()))
        )
        got, got_x = jax.jit(of)(ws, xs, ys)
        close(got, first)
        close(got_x, at_x)
        assert got_x.sharding.spec[0] == "data"
        close(jax.jit(jax.jacrev(lambda *a: of(*a)[0]))(ws, xs, ys), second)
        (_, made), state = jax.jit(train)([xs, ys], step.state_tree() | {"w": ws})
        close(state["w"], start - 0.1 * first)
        assert made.sharding.spec[0] == "data", "divided as the input whose length it has"
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def mapped(f):
        specs = {"in_specs": (P(), P("data"), P("data")), "out_specs": P()}
        return jax.jit(jax.shard_map(f, mesh=mesh, **specs))

    mean = mapped(lambda w, x, y: jax.lax.pmean(fn([x, y], {"w": w})[0], "data"))
    close(jax.grad(mean)(start, X, Y[:, 0]), first)
    close(jax.grad(mean, argnums=1)(start, X, Y[:, 0]), at_x)
    close(jax.jacrev(jax.grad(mean))(start, X, Y[:, 0]), second)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    check_layouts()
    check_random_numbers()
    check_lengths()
    check_inside_jax()
    check_refusals()
