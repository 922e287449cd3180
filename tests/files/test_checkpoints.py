"""Training that is interrupted goes on as if it had not been."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
import graphgrad.files.checkpoints as file_of_checkpoints
from graphgrad import optimizers
from graphgrad.files.container import NewMember

from .containers import members, packed

ROOT = Path(gg.__file__).parent.parent
MAKE = {
    "SGD": lambda: optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda: optimizers.Adam(optimizers.exponential_decay(0.01, 5, 0.5)),
    "RMSProp": lambda: optimizers.RMSProp(0.01),
}


def training(make, backend="auto"):
    """A compiled step of a small net with dropout, a schedule, and a rule."""
    rng = np.random.default_rng(0)
    with gg.Graph() as graph:
        x, y = gg.placeholder((8, 4), name="x"), gg.placeholder((8,), name="y")
        w = gg.variable(rng.normal(size=(4, 5)), name="w")
        v = gg.variable(rng.normal(size=(5,)), name="v")
        a = x @ w
        with gg.override_gradient(lambda site, dy: 0.5 * dy):
            h = gg.tanh(a)
        loss = gg.mean((gg.nn.dropout(h, 0.3) @ v - y) ** 2)
        updates = make().updates([w, v], gg.gradients(loss, [w, v]))
        step = gg.compile([x, y], loss, updates=updates, backend=backend)
    return graph, step


def batches():
    rng = np.random.default_rng(1)
    while True:
        yield rng.normal(size=(8, 4)), rng.normal(size=8)


def trained(step, data, count):
    return [float(step(*next(data))) for _ in range(count)]


ELSEWHERE = [pytest.param(name, marks=pytest.mark.ci) for name in ("numpy", "llvm", "jax")]


@pytest.mark.parametrize("backend", ["auto", *ELSEWHERE])
@pytest.mark.parametrize("name", MAKE)
def test_ten_steps_and_ten_more_are_twenty(name, backend, tmp_path):
    """Bit for bit, also what dropout draws without a seed."""
    pytest.importorskip({"llvm": "llvmlite", "jax": "jax"}.get(backend, "numpy"))
    graph, step = training(MAKE[name], backend)
    straight = trained(step, batches(), 20)
    expected = values(graph)

    graph, step = training(MAKE[name], backend)
    data = batches()
    assert trained(step, data, 10) == straight[:10]
    gg.Checkpoints(tmp_path).save(10, graph, metadata={"at": 10})

    graph, step = training(MAKE[name], backend)
    found = gg.Checkpoints(tmp_path).resume(graph)
    assert (found.step, found.metadata) == (10, {"at": 10})
    assert trained(step, data, 10) == straight[10:]
    assert {k: a.tobytes() for k, a in values(graph).items()} == {
        k: a.tobytes() for k, a in expected.items()
    }


def test_a_graph_that_has_run_on_goes_back(tmp_path):
    """Its values, and what it draws next."""
    graph, step = training(MAKE["SGD"])
    data = list(zip(range(6), batches(), strict=False))
    trained(step, (batch for _, batch in data), 2)
    gg.Checkpoints(tmp_path).save(2, graph)
    first = trained(step, (batch for _, batch in data[2:]), 4)
    gg.Checkpoints(tmp_path).resume(graph)
    assert trained(step, (batch for _, batch in data[2:]), 4) == first


def values(graph):
    nodes = [n for n in graph.nodes if n.type == "Variable"]
    return dict(zip([n.name for n in nodes], graph.state.read(nodes), strict=True))


def test_a_saved_graph_goes_on_training(tmp_path):
    """The step, its variables and what it draws come out of one file, without any of this code."""
    graph, step = training(MAKE["Adam"])
    data = batches()
    trained(step, data, 3)
    gg.save(tmp_path / "a.gg", graph, functions={"step": step})
    again = gg.load(tmp_path / "a.gg").functions["step"]
    assert trained(again, batches(), 4) == trained(step, batches(), 4)


def counting():
    with gg.Graph() as graph:
        v = gg.variable(np.arange(200.0), name="v")
    return graph, v


@pytest.mark.parametrize("step", [True, 2.5, -1, 10**12, "3", None])
def test_a_step_is_a_number_from_0(step, tmp_path):
    graph, _ = counting()
    with pytest.raises(gg.FileError, match="a step is a number from 0"):
        gg.Checkpoints(tmp_path).save(step, graph)
    assert list(tmp_path.iterdir()) == []


def test_the_newest_are_kept(tmp_path):
    graph, _ = counting()
    checkpoints = gg.Checkpoints(tmp_path / "new", keep=2)
    assert checkpoints.resume(graph) is None
    for step in (1, 5, 30):
        checkpoints.save(step, graph)
    assert checkpoints.steps == [5, 30]
    assert sorted(os.listdir(tmp_path / "new")) == ["step-000000000005.gg", "step-000000000030.gg"]
    with pytest.raises(gg.FileError, match=r"later steps, \[30\], and this is step 6"):
        checkpoints.save(6, graph)
    every = gg.Checkpoints(tmp_path / "new", keep=None)
    every.save(31, graph)
    every.save(32, graph)
    assert every.steps == [5, 30, 31, 32]
    with pytest.raises(ValueError, match="keep is how many"):
        gg.Checkpoints(tmp_path, keep=0)


def test_a_damaged_one_is_put_aside(tmp_path):
    graph, v = counting()
    checkpoints = gg.Checkpoints(tmp_path)
    for step in (1, 2):
        graph.state[v] = np.arange(200.0) + step
        checkpoints.save(step, graph)
    raw = bytearray(checkpoints.path(2).read_bytes())
    raw[-300] ^= 4
    checkpoints.path(2).write_bytes(raw)
    with pytest.warns(UserWarning, match=r"arrays/0.npy: is damaged .*\n.*step-0+2.damaged now"):
        found = checkpoints.resume(graph)
    assert (found.step, graph.state[v][0]) == (1, 1.0)
    checkpoints.save(2, graph)
    assert checkpoints.steps == [1, 2]


def test_one_of_a_newer_version_stays_where_it_is(tmp_path):
    graph, _ = counting()
    checkpoints = gg.Checkpoints(tmp_path)
    checkpoints.save(1, graph)
    checkpoints.save(2, graph)
    parts = members(checkpoints.path(2).read_bytes())
    name = "checkpoint.json"
    parts[name] = parts[name].replace(b'"version":2', b'"version":9')
    checkpoints.path(2).write_bytes(packed(parts))
    with pytest.raises(
        gg.FileError, match=r"step-0+2.gg: .*format version 9, .* Read it with a newer"
    ):
        checkpoints.resume(graph)
    assert checkpoints.steps == [1, 2]


class Full(OSError):
    """The disk is full."""


@pytest.mark.parametrize("at", ["write", "fsync", "replace"])
def test_a_disk_that_is_full_leaves_what_was_there(at, tmp_path, monkeypatch):
    graph, v = counting()
    checkpoints = gg.Checkpoints(tmp_path, keep=1)
    checkpoints.save(1, graph)
    graph.state[v] = np.arange(200.0) + 1.0
    gg.save(tmp_path / "a.gg", graph)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(*args):
        raise Full("No space left on device")

    if at == "write":
        monkeypatch.setattr(NewMember, "chunks", full)
    else:
        monkeypatch.setattr(os, at, full)
    with pytest.raises(Full):
        checkpoints.save(2, graph)
    with pytest.raises(Full):
        gg.save(tmp_path / "a.gg", graph)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_another_graph_is_refused_whole(tmp_path):
    gg.Checkpoints(tmp_path).save(1, counting()[0])
    with gg.Graph() as other:
        gg.variable(np.zeros(3), name="v")
        w = gg.variable(1.0, name="w")
    with pytest.raises(
        gg.StateError, match=r"v is float64\[3\] here .* float64\[200\] in it\n.*w "
    ):
        gg.Checkpoints(tmp_path).resume(other)
    assert gg.evaluate(w) == 1.0


WRITER = """
import sys
sys.path.insert(0, {root!r})
import numpy as np, graphgrad as gg
with gg.Graph() as graph:
    v = gg.variable(np.arange(200000.0), name="v")
print("ready", flush=True)
for i in range(10**6):
    graph.state[v] = np.arange(200000.0) + i
    gg.save({path!r}, graph, metadata=i)
"""


@pytest.mark.ci
def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path):
    """Fifty times, at a random moment."""
    path, rng = tmp_path / "a.gg", np.random.default_rng(0)
    code = WRITER.format(root=str(ROOT), path=str(path))
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        writer.stdout.readline()
        for _ in range(10):
            time.sleep(float(rng.uniform(0.0, 0.02)))
            os.kill(writer.pid, signal.SIGSTOP)  # as if it had been killed here
            if path.exists():
                file = gg.load(path, verify=True)
                (v,) = file.graph.state.values().values()
                np.testing.assert_array_equal(v, np.arange(200000.0) + file.metadata)
            os.kill(writer.pid, signal.SIGCONT)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        if path.exists():
            gg.load(path, verify=True)


def test_a_folder_of_a_checkpoints_name_is_none(tmp_path):
    graph, _ = counting()
    checkpoints = gg.Checkpoints(tmp_path)
    (tmp_path / "step-000000000009.gg").mkdir()
    checkpoints.save(np.int64(3), graph)
    assert checkpoints.steps == [3]
    assert type(checkpoints.resume(graph).step) is int


def test_what_is_no_graph_is_refused_by_name(tmp_path):
    _, v = counting()
    checkpoints = gg.Checkpoints(tmp_path)
    with pytest.raises(TypeError, match=r"save\(step, graph\) takes a Graph, got .*v:0"):
        checkpoints.save(1, v)
    with pytest.raises(TypeError, match=r"Checkpoints.resume\(graph\) takes a Graph, got .*v:0"):
        checkpoints.resume(v)


@pytest.mark.parametrize(("saves", "expected"), [([4, 5, 6], 6), ([], None)])
def test_resume_beside_a_process_that_removes_what_was_listed(
    saves, expected, tmp_path, monkeypatch
):
    """The newest that is there, or an error: not None, which would begin anew."""
    graph, _ = counting()
    checkpoints = gg.Checkpoints(tmp_path, keep=2)
    for step in (1, 2, 3):
        checkpoints.save(step, graph)
    read = file_of_checkpoints.read_checkpoint

    def late(path):
        """The other process goes on between the listing and the reading."""
        monkeypatch.setattr(file_of_checkpoints, "read_checkpoint", read)
        for step in checkpoints.steps:
            if not saves:
                checkpoints.path(step).unlink()
        for step in saves:
            checkpoints.save(step, graph)
        return read(path)

    monkeypatch.setattr(file_of_checkpoints, "read_checkpoint", late)
    if expected is None:
        with pytest.raises(gg.FileError, match=r"were removed while they were read: steps \[3\]"):
            checkpoints.resume(graph)
    else:
        assert checkpoints.resume(graph).step == expected
