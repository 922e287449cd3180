"""Graphs beside JAX and torch, in files and on devices, as a user types them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import graphgrad as gg


def step() -> gg.CompiledFunction:
    """A step of training, with a rule."""
    with gg.Graph():
        x: gg.Tensor = gg.placeholder(("N", 3), name="x")
        w: gg.Tensor = gg.variable(np.ones(3), name="w")
        with gg.override_gradient("Identity"):
            signs = gg.sign(w)
        loss = gg.sum(x @ signs)
        updates = gg.optimizers.SGD(0.1).updates([w], gg.gradients(loss, [w]))
        return gg.compile(x, loss, updates=updates)


def in_jax(batches: list[Any]) -> dict[str, Any]:
    """A pure function of (inputs, state); the state comes back."""
    f = step()
    fn: Callable[..., Any] = f.as_jax(gradients=1)
    state: dict[str, Any] = f.state_tree()
    for batch in batches:
        _, state = fn({"x": batch}, state)
    f.commit(state)
    return state


def in_a_file(path: Path) -> Mapping[str, Any]:
    """Written and read; a gg.function goes without state."""
    f = step()
    f.export_stablehlo(path, 1, platforms=["cpu"], shapes={"x": ("N", 3)}, dtype="float32")
    file: gg.interop.StableHlo = gg.interop.load_stablehlo(path)
    outputs, state = file.call([np.ones((2, 3), "float32")], file.state)
    assert outputs is not None
    assert state
    return file.about


def losses(fn: Callable[..., Any], x: gg.Tensor) -> tuple[gg.Tensor, Any]:
    """A function of JAX as a node, and one of graphgrad in JAX."""

    @gg.function
    def doubled(t: gg.Tensor) -> gg.Tensor:
        return t * 2.0

    node: gg.Tensor = gg.interop.from_jax(fn, x, name="theirs")
    ours: Callable[..., Any] = gg.interop.to_jax(doubled, gradients=2)
    return gg.sum(node), ours


def in_torch(module: Any, x: gg.Tensor) -> Any:
    """A module of torch as a node, and a compiled function as a module."""
    node: gg.Tensor = gg.interop.from_torch(module, x, parameters="constants")
    return gg.interop.to_torch(gg.compile(x, node), gradients=2)


def kept(folder: Path) -> gg.Graph:
    """A graph in a file, a checkpoint, weights by name, a file of NumPy code."""
    f = step()
    graph = f.inputs[0].graph
    assert graph is not None
    gg.save(folder / "model.gg", graph, functions={"step": f}, metadata={"epoch": 3})
    file = gg.load(folder / "model.gg", mmap=True, rules="saved")
    checkpoints = gg.Checkpoints(folder / "steps", keep=3)
    checkpoints.save(1, file.graph)
    found = checkpoints.resume(file.graph)
    assert found is None or found.step == 1
    weights: dict[str, Any] = file.graph.state.as_dict()
    gg.export_weights(folder / "w.npz", weights)
    file.graph.state.load(gg.import_weights(folder / "w.npz"), strict=True)
    gg.export_numpy(f, folder / "step.py")
    return file.graph


def among_processes(mesh: Any, x: gg.Tensor, y: gg.Tensor, spec: Any) -> tuple[Any, ...]:
    """On the devices of several processes."""
    gg.distributed.start("10.0.0.1:1234", num_processes=2, process_id=0)
    f = gg.compile(x, y, backend="jax", mesh=mesh, shardings={x: spec}, donate=True)
    if y.graph is not None:
        gg.distributed.check_same(y.graph)
    return gg.distributed.from_local(f, np.ones(3))
