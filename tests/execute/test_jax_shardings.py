"""What is said of a mesh and of what is divided on it; the numbers are those of one device.

Here the mesh is of the one device that the tests have. `eight_devices.py` runs on 8 that the CPU
pretends to be, in a process of its own, since JAX asks for their number when it starts.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import DeviceError, GraphError, ShapeError

jax = pytest.importorskip("jax")
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402


@pytest.fixture
def mesh():
    return jax.make_mesh((1, 1), ("data", "model"))


@pytest.fixture
def built():
    with gg.Graph() as graph:
        x = gg.placeholder((None, 3), name="x")
        w = gg.variable(np.ones((3, 2)), name="w")
        loss = gg.mean(gg.tanh(x @ w))
        with gg.name_scope("later"):
            adam = gg.optimizers.Adam(0.1)
            updates = adam.updates([w], gg.gradients(loss, [w]))
    return graph, x, w, loss, updates


def test_what_an_optimiser_remembers_lies_as_its_parameter_does(mesh, built):
    graph, x, w, loss, updates = built
    shardings = {x: P("data"), w: P(None, "model")}
    step = gg.compile(x, loss, updates=updates, backend="jax", mesh=mesh, shardings=shardings)
    for _ in range(2):
        step(np.ones((4, 3)))
        laid = {v.name: value.sharding.spec for v, value in graph.state._values.items()}
        assert laid == {
            "later/optimizer/step": P(),
            "later/w/adam_m": P(None, "model"),
            "later/w/adam_v": P(None, "model"),
            "w": P(None, "model"),
        }
    assert "mesh: data=1, model=1; 1 devices" in step.explain()
    assert "divided: x P('data',), w P(None, 'model'), later/w/adam_m P(None" in step.explain()
    assert "0 values of variables" not in step.explain()


def test_a_slot_lies_where_it_is_said_to(mesh, built):
    graph, x, w, _, updates = built
    shardings = {w: P(None, "model"), graph.variables["later/w/adam_m"]: P()}
    step = gg.compile(x, [], updates=updates, backend="jax", mesh=mesh, shardings=shardings)
    step(np.ones((4, 3)))
    laid = {v.name: value.sharding.spec for v, value in graph.state._values.items()}
    assert (laid["later/w/adam_m"], laid["later/w/adam_v"]) == (P(), P(None, "model"))


def test_one_layout_is_for_all_functions_of_a_graph(mesh, built):
    _, x, w, loss, updates = built
    how = {"backend": "jax", "mesh": mesh, "shardings": {x: P("data"), w: P(None, "model")}}
    step = gg.compile(x, loss, updates=updates, **how)
    before = step(np.ones((4, 3)))
    squares = gg.compile(x, gg.sum(x * x), **how)
    assert squares(np.ones((4, 3))) == 12
    alone = gg.compile(x, loss, backend="jax")
    assert alone(np.ones((4, 3))) < before
    there = gg.compile(x, loss, backend="numpy")(np.ones((4, 3)))
    np.testing.assert_allclose(there, alone(np.ones((4, 3))), rtol=1e-14)


def test_named_shardings_know_their_mesh(mesh, built):
    _, x, w, loss, _ = built
    shardings = {w: NamedSharding(mesh, P(None, "model")), x: P("data")}
    f = gg.compile(x, loss, backend="jax", shardings=shardings)
    np.testing.assert_allclose(f(np.ones((4, 3))), np.tanh(3), rtol=1e-14)


@pytest.mark.parametrize("explicit", [False, True])
def test_arrays_on_any_mesh_are_taken(built, explicit):
    """Axes whose divisions JAX would have be said for each op are automatic here."""
    _, x, w, loss, _ = built
    device = jax.devices()[:1]
    mesh = jax.make_mesh((1,), ("data",)) if explicit else Mesh(np.array(device), ("data",))
    f = gg.compile(x, loss, backend="jax", mesh=mesh, shardings={x: P("data"), w: P("data")})
    with jax.enable_x64(True):
        there = jax.device_put(np.ones((4, 3)), NamedSharding(mesh, P("data")))
    np.testing.assert_allclose(f(there), np.tanh(3), rtol=1e-14)
    assert "96 bytes" not in f.explain()


def wrong():
    """What is said, as a function of mesh, x, w and another graph's tensor; the error."""
    yield "mesh alone", lambda m, x, w, o: {"mesh": m}, DeviceError, "has no effect without shard"
    yield "no mesh", lambda m, x, w, o: {"shardings": {x: P("data")}}, DeviceError, "needs mesh="
    yield "no mesh type", lambda m, x, w, o: {"mesh": 8, "shardings": {}}, TypeError, "got 8"
    yield "a list", lambda m, x, w, o: {"mesh": m, "shardings": [x]}, TypeError, "got list"
    for name, spec, error, said in [
        ("a string", "data", TypeError, "PartitionSpec or NamedSharding, got 'data'"),
        ("no axis", P("modle"), DeviceError, "no axis 'modle'. Did you mean 'model'"),
        ("twice", P("data", "data"), DeviceError, "along 'data' twice"),
        ("too long", P("data", None, None), ShapeError, "divides 3 axes, and it has 2"),
    ]:

        def make(m, x, w, o, spec=spec):
            return {"mesh": m, "shardings": {w: spec}}

        yield name, make, error, said
    for name, at in [("a name", "w"), ("a number", 3)]:

        def named(m, x, w, o, at=at):
            return {"mesh": m, "shardings": {at: P()}}

        yield name, named, GraphError, f"shardings are of tensors, got {at!r}"

    yield (
        "another graph's",
        lambda m, x, w, o: {"mesh": m, "shardings": {o: P()}},
        GraphError,
        r"shardings name v:0 .* an input of this function",
    )


@pytest.mark.parametrize(
    ("make", "error", "said"), [pytest.param(*row, id=name) for name, *row in wrong()]
)
def test_what_is_wrong_is_said_when_it_is_compiled(mesh, built, make, error, said):
    _, x, w, loss, _ = built
    with gg.Graph():
        other = gg.variable(1.0, name="v")
    with pytest.raises(error, match=said):
        gg.compile(x, loss, backend="jax", **make(mesh, x, w, other))


def test_tensors_within_are_not_named(mesh, built):
    _, x, _, loss, _ = built
    within = loss.node.inputs[0]
    with pytest.raises(GraphError, match=r"an input of this function(.|\n)*name inputs and var"):
        gg.compile(x, loss, backend="jax", mesh=mesh, shardings={within: P()})


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_options_are_those_of_jax(mesh, built, backend):
    _, x, _, loss, _ = built
    with pytest.raises(TypeError, match=f"'{backend}' takes no mesh, shardings"):
        gg.compile(x, loss, backend=backend, mesh=mesh, shardings={x: P()})


def test_what_is_divided_is_not_joined(mesh):
    """Products of many steps as one would lay rows side by side that lie on several devices."""
    with gg.Graph():
        xs, w = gg.placeholder((4, 8, 3), name="xs"), gg.variable(np.ones((3, 3)), name="w")
        h = gg.zeros((8, 3))
        for i in range(4):
            h = gg.tanh(xs[i] @ w + h)
        _, rows = gg.scan(lambda h, x: (gg.tanh(x @ w + h), h), h, xs)
        loss = gg.sum(h) + gg.sum(rows)
        dw = gg.gradients(loss, w)
        alone = gg.compile(xs, dw, backend="jax")
        divided = gg.compile(xs, dw, backend="jax", mesh=mesh, shardings={})
    joining = {"leave loops", "join products"}
    assert joining <= {change.name for change in alone.log if change.changed}
    assert joining.isdisjoint(change.name for change in divided.log)


def test_what_the_document_shows_runs_on_jax(capsys):
    text = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    alone = text.partition("## Several processes")[0]
    exec("\n".join(re.findall(r"```python\n(.*?)```", alone, re.DOTALL)), {})
    assert "mesh: data=1; 1 devices\ndivided: x P('data',), y P('data',)" in capsys.readouterr().out


@pytest.mark.ci
def test_8_devices_compute_what_one_does_on_jax():
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("eight_devices.py")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
