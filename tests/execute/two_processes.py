"""Run by test_jax_processes.py, twice at once: what two processes of one program promise."""

import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import graphgrad as gg
from graphgrad.base.errors import DeviceError, ExecutionError, FileError, GraphError, ShapeError

ADDRESS, INDEX, FOLDER = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
FAILS = sys.argv[4] if len(sys.argv) > 4 else None


def built(odd=0.0):
    """A graph with a rule: x, w, the loss, and the new w."""
    x = gg.placeholder((None, 3), name="x")
    w = gg.variable(np.arange(12.0).reshape(3, 4), name="w")
    y = x @ w
    with gg.override_gradient("Identity"):
        y = gg.floor(y)
    loss = gg.mean(y * y) + odd
    return x, w, loss, w - 0.01 * gg.gradients(loss, w)


def check_same_graphs():
    with gg.Graph() as graph:
        built()
    gg.distributed.check_same(graph)
    with gg.Graph() as other:
        built(odd=float(INDEX))
    said = r"different graphs. The first difference is in line \d+:\n  process 0: .*\n  process 1: "
    with pytest.raises(GraphError, match=said):
        gg.distributed.check_same(other)
    with gg.Graph() as shorter:
        built()
        if INDEX:
            gg.constant(3.0)
    with pytest.raises(GraphError, match="process 0: nothing\n  process 1: Constant"):
        gg.distributed.check_same(shorter)


def check_programs(mesh):
    with gg.Graph():
        x, _, loss, _ = built(odd=float(INDEX))
        with pytest.raises(GraphError, match="different programs"):
            gg.compile(x, loss, backend="jax", mesh=mesh, shardings={})


def check_training(mesh):
    """The state of a step, whole in every process, from one file that process 0 wrote."""
    data = np.random.default_rng(0).normal(size=(8, 3))
    with gg.Graph() as graph:
        x, w, loss, new = built()
        how = {"mesh": mesh, "shardings": {x: P("all"), w: P(None, "all")}}
        step = gg.compile(x, loss, updates={w: new}, backend="jax", **how)
        alone = gg.compile(x, [loss, new], backend="numpy")
    expected, new = alone(data)
    own = data[4 * INDEX : 4 * INDEX + 4]
    np.testing.assert_allclose(step(*gg.distributed.from_local(step, own)), expected, rtol=1e-14)
    assert not graph.state.held([w.node])[0].is_fully_addressable
    for read in (graph.state[w], graph.state.as_dict()["w"], graph.state.copy()[w]):
        np.testing.assert_allclose(read, new, rtol=1e-14)
    checkpoints = gg.Checkpoints(FOLDER / "steps")
    checkpoints.save(7, graph)
    gg.save(FOLDER / "whole.gg", graph)
    graph.state.reset()
    assert checkpoints.resume(graph).step == 7
    np.testing.assert_allclose(graph.state[w], new, rtol=1e-14)
    np.testing.assert_allclose(gg.load(FOLDER / "whole.gg").graph.state["w"], new, rtol=1e-14)
    expected, _ = alone(data)
    np.testing.assert_allclose(step(data), expected, rtol=1e-14)  # the whole batch, in both
    with pytest.raises(TypeError, match="an array for each of 1 inputs, got 2"):
        gg.distributed.from_local(step, own, own)
    with pytest.raises(DeviceError, match="compiled with mesh="):
        gg.distributed.from_local(alone, own)


def check_unequal_shapes(mesh):
    """Both processes get the error, with what each of them gave, and go on."""
    with gg.Graph():
        x, _, loss, _ = built()
        f = gg.compile(x, loss, backend="jax", mesh=mesh, shardings={x: P("all")})
    rows = 4 - 2 * INDEX
    said = r"'x' .*built at .*unequal shapes:\n  process 0: \(4, 3\)\n  process 1: \(2, 3\)"
    with pytest.raises(ShapeError, match=said):
        gg.distributed.from_local(f, np.ones((rows, 3)))
    with pytest.raises(ShapeError, match=r"process 0: \(8, 3\)\n  process 1: \(4, 3\)"):
        f(np.ones((2 * rows, 3)))
    assert f(*gg.distributed.from_local(f, np.ones((2, 3)))) == f(np.ones((4, 3)))


def fail_between_steps(mesh):
    """One process raises, while the other waits for it in a step."""
    with gg.Graph():
        x, _, loss, _ = built()
        f = gg.compile(x, loss, backend="jax", mesh=mesh, shardings={x: P("all")})
    for step in range(3):
        if step == 2 and str(INDEX) == FAILS:
            raise ValueError("bad data")
        f(*gg.distributed.from_local(f, np.ones((2, 3))))


def check_files():
    """One process writes, both know; each sees what the other does not."""
    with gg.Graph() as graph:
        gg.variable(1.0, name="v")
    path = FOLDER / f"of {INDEX}.npz"
    gg.export_weights(path, graph.state)
    assert path.exists() == (INDEX == 0)
    error = OSError if INDEX == 0 else ExecutionError
    with pytest.raises(error, match="No such file"):
        gg.save(FOLDER / "nowhere" / "g.gg", graph)
    apart = gg.Checkpoints(FOLDER / f"folder of {INDEX}")
    apart.save(1, graph)
    with pytest.raises(FileError, match=r"process 0: steps \[1\]\n  process 1: steps \[\]"):
        apart.resume(graph)


if __name__ == "__main__":
    gg.distributed.start(ADDRESS, num_processes=2, process_id=INDEX)
    assert (gg.distributed.process_index(), gg.distributed.process_count()) == (INDEX, 2)
    everywhere = jax.make_mesh((4,), ("all",))
    if FAILS is not None:
        fail_between_steps(everywhere)
    check_same_graphs()
    check_programs(everywhere)
    check_training(everywhere)
    check_unequal_shapes(everywhere)
    check_files()
    print("done")
