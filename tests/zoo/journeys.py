"""What a case may travel through; each journey gives (ys, grads), which have to stay."""

import copy
import pickle
import runpy
import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np

import graphgrad as gg

from .adapter import answered, graph_of, inputs_of


def _feeds(case):
    return list(case["inputs"].values())


def _compiled(t, ys, grads, case, backend="numpy"):
    return gg.compile(list(t.values()), [list(ys), grads], backend=backend)(*_feeds(case))


def plain(build, case, backend="numpy"):
    """As it is."""
    with gg.Graph():
        return _compiled(*graph_of(build, case), case, backend)


def of_examples(build, case):
    """vmap over the case, stacked twice."""

    def one(*tensors):
        t = dict(zip(case["inputs"], tensors, strict=True))
        ys, grads = answered(build(t, case["params"], case), t, case)
        return [*ys, *grads.values()]

    with gg.Graph():
        stacked = [gg.constant(np.stack([a, a])) for a in case["inputs"].values()]
        found = gg.evaluate(list(gg.vmap(one)(*stacked)))
    return by_name([a[1] for a in found], case)


def by_name(arrays, case):
    """Outputs, and gradients by name."""
    count = len(case["y"])
    return arrays[:count], dict(zip(case["grads"], arrays[count:], strict=True))


def _through(body):
    """The gradient of what control flow around the build gives."""

    def journey(build, case):
        with gg.Graph():
            t = inputs_of(case)
            return _compiled(t, *answered(body(build, t, case), t, case), case)

    return journey


def _built(build, t, case):
    made = build(t, case["params"], case)
    return list(made) if isinstance(made, list | tuple) else [made]


def _in_cond(build, t, case):
    zeros = _types(build, case)
    return gg.cond(
        unknown(), lambda: _built(build, t, case), lambda: [gg.constant(y) for y in zeros]
    )


def unknown():
    """A condition that nobody can know before it is run."""
    return gg.sum(gg.variable(np.ones(1))) > 0


def _types(build, case):
    """Arrays like the outputs."""
    with gg.Graph():
        _, ys, _ = graph_of(build, case)
        return [np.zeros(y.shape, y.dtype) for y in ys]


def _in_scan(build, t, case):
    def step(carry, row):
        return carry, _built(build, dict(zip(t, row, strict=True)), case)

    rows = [gg.expand_dims(x, 0) for x in t.values()]
    _, found = gg.scan(step, gg.constant(0.0), rows)
    return [y[0] for y in found]


in_cond, in_scan = _through(_in_cond), _through(_in_scan)


def copied(build, case):
    """In a copy of the graph."""
    return _elsewhere(build, case, lambda graph, found: copy.deepcopy((graph, found))[1])


def pickled(build, case):
    """With its graph."""
    return _elsewhere(build, case, lambda graph, found: pickle.loads(pickle.dumps(found)))


def _elsewhere(build, case, move):
    with gg.Graph() as graph:
        t = inputs_of(case)
        found = [list(t.values()), _built(build, t, case)]
    xs, ys = move(graph, found)
    with ys[0].graph:
        t = dict(zip(case["inputs"], xs, strict=True))
        return _compiled(t, *answered(ys, t, case), case)


def saved(build, case):
    """In a file, and differentiated after it was loaded."""

    def move(graph, found):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "case.gg"
            gg.save(path, graph)
            loaded = gg.load(path).graph
        names = [[t.name for t in tensors] for tensors in found]
        return [[loaded.tensor(name) for name in listed] for listed in names]

    return _elsewhere(build, case, move)


def imported(build, case):
    """Brought into another graph."""

    def move(graph, found):
        xs, ys = found
        with gg.Graph():
            here = [gg.placeholder(x.shape, x.dtype) for x in xs]
            there = gg.import_graph(graph, dict(zip(xs, here, strict=True)))
        return [here, [there[y] for y in ys]]

    return _elsewhere(build, case, move)


def written(build, case, write, run):
    """Values and gradients as a file of another kind, run there."""
    with gg.Graph(), tempfile.TemporaryDirectory() as folder:
        t, ys, grads = graph_of(build, case)
        f = gg.compile(list(t.values()), [*ys, *grads.values()], backend="numpy")
        path = str(Path(folder) / "case.py")
        write(f, path)
        return by_name(run(path, case), case)


def as_numpy(build, case):
    """A module of NumPy's functions."""

    def run(path, case):
        return list(runpy.run_path(path)["case"](*_feeds(case)))

    return written(build, case, gg.export_numpy, run)


def as_onnx(build, case):
    """An ONNX file, by ONNX Runtime."""

    def run(path, case):
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        return session.run(None, {n: case["inputs"][n.partition(":")[0]] for n in names})

    onnxruntime = import_module("onnxruntime")
    return written(build, case, gg.onnx.export, run)


def on_llvm(build, case):
    """Compiled by LLVM."""
    return plain(build, case, "llvm")


def on_jax(build, case):
    """Compiled by JAX."""
    return plain(build, case, "jax")


JOURNEYS = {
    "vmap": of_examples,
    "cond": in_cond,
    "scan": in_scan,
    "copy": copied,
    "import": imported,
    "NumPy": as_numpy,
    "pickle": pickled,
    "file": saved,
    "LLVM": on_llvm,
}
