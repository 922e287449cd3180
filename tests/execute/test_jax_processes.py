"""Two processes of one program, and the examples that divide a network, as whole programs."""

import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import graphgrad as gg
from graphgrad.base import processes
from graphgrad.base.errors import DeviceError, ExecutionError, FileError, GraphError
from graphgrad.ir import digest

SCALE = Path(__file__).parents[2] / "examples" / "scale"
PROGRAMS = sorted(path.stem for path in SCALE.glob("*.py") if path.stem != "network")


class Acting:
    """Process 1 of two; the other one says what it is told to."""

    index, count = 1, 2

    def __init__(self):
        self.other = []

    def gather(self, said):
        return [self.other.pop(0) if self.other else said, said]


@pytest.fixture
def among():
    before = processes.current()
    processes.join(found := Acting())
    yield found
    processes.join(before)


def test_a_process_is_alone_until_it_joins_others():
    assert (gg.distributed.process_index(), gg.distributed.process_count()) == (0, 1)
    with gg.Graph() as graph:
        x = gg.placeholder((2,), name="x")
        f = gg.compile(x, gg.exp(x))
    gg.distributed.check_same(graph)
    with pytest.raises(GraphError, match=r"check_same\(\) takes a graph"):
        gg.distributed.check_same(x)
    with pytest.raises(DeviceError, match="compiled with mesh="):
        gg.distributed.from_local(f, [1.0, 2.0])


def graph_of(change):
    """A graph with a branch, a constant and a rule, one of which is another one."""
    with gg.Graph() as graph:
        x = gg.placeholder((2,), name="x")
        with gg.override_gradient("Identity" if change == "rule" else lambda site, dy: dy):
            y = gg.floor(x) + ([1.0, 3.0] if change == "constant" else [1.0, 2.0])
        other = gg.exp if change == "branch" else gg.tanh
        gg.cond(gg.sum(y) > 0, lambda: y, lambda: other(y))
        gg.sum(y, axis=0, keepdims=change == "attribute")
        inside = gg.op_types()["CumSum"](0, change == "op in an op")
        gg.extend.apply(gg.op_types()["PerExample"](inside, (True,)), gg.reshape(y, (1, 2)))
        gg.identity(y, name="last" if change == "name" else "end")
    return list(digest.lines(graph.nodes))


def test_the_same_code_builds_the_same_lines_on_jax_processes():
    assert graph_of(None) == graph_of(None)


CHANGES = ["rule", "constant", "branch", "attribute", "op in an op", "name"]


@pytest.mark.parametrize("change", CHANGES)
def test_what_differs_between_processes_is_found(change):
    assert graph_of(change) != graph_of(None)


@pytest.mark.parametrize(
    ("there", "at", "told"),
    [
        (["a", "x", "y"], 1, ["x", "b"]),
        (["a"], 1, ["nothing", "b"]),
        (["a", "b", "c", "d"], 3, "d"),
    ],
)
def test_the_first_line_that_differs_is_told_with_what_each_process_has(among, there, at, told):
    rows = list(map(digest._digest, there))
    among.other = [b"another digest of it all", b"".join(rows), told[0].encode()]
    with pytest.raises(GraphError, match=f"different graphs.*in line {at}:") as error:
        digest.check_same(["a", "b", "c"], "graphs")
    here = told[1] if len(told) > 1 else "nothing"
    assert f"process 0: {told[0]}\n  process 1: {here}\n" in str(error.value)
    digest.check_same(["a", "b", "c"], "graphs")  # where the others say the same


def test_processes_but_the_first_write_nothing_and_know_if_it_failed(among, tmp_path):
    with gg.Graph() as graph:
        gg.variable(1.0, name="v")
    among.other = [b""]
    gg.save(tmp_path / "g.gg", graph)
    assert list(tmp_path.iterdir()) == []
    among.other = [b"OSError('disk full')"]
    with pytest.raises(ExecutionError, match=r"process 0 could not write the file: .*disk full"):
        gg.save(tmp_path / "g.gg", graph)
    among.other = [b"[3]"]
    with pytest.raises(FileError, match="different checkpoints"):
        gg.Checkpoints(tmp_path).resume(graph)


def test_a_process_that_waits_long_for_the_others_says_so(monkeypatch, capsys):
    pytest.importorskip("jax")
    from graphgrad.execute.jax import processes as jax_processes

    with jax_processes.waiting_for_others():
        pass
    monkeypatch.setattr(jax_processes, "PATIENCE", 0.01)
    with jax_processes.waiting_for_others():
        time.sleep(0.1)
    said = capsys.readouterr().err
    assert said.count("process 0 of 1 has waited for 0.01 s") == 1
    assert "All processes have to call gg.save" in said


def ended(folder, *commands, while_all_succeed=True):
    """Programs side by side, until all are done; what each printed, and its exit status."""
    paths = [folder / f"said by {i}" for i in range(len(commands))]
    running = []
    for path, command in zip(paths, commands, strict=True):
        with path.open("w") as out:
            command = [sys.executable, *map(str, command)]
            running.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT))
    end = time.monotonic() + 300
    try:
        while None in (statuses := {p.poll() for p in running}):
            if while_all_succeed and not statuses <= {None, 0}:
                break
            assert time.monotonic() < end, "nobody comes to an end"
            time.sleep(0.1)
    finally:
        for process in running:
            process.kill()
            process.wait()
    return [(path.read_text(), p.returncode) for path, p in zip(paths, running, strict=True)]


def run(folder, *commands):
    """What each printed of programs side by side, all of which have to succeed."""
    ends = ended(folder, *commands)
    said = [text for text, _ in ends]
    assert all(status == 0 for _, status in ends), "\n".join(said)
    return said


def two_processes(folder, *args):
    """The commands of two processes that find each other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    script = Path(__file__).with_name("two_processes.py")
    return [[script, address, index, folder, *args] for index in range(2)]


@pytest.mark.ci
def test_two_processes_keep_their_promises_on_jax(tmp_path):
    pytest.importorskip("jax")
    said = run(tmp_path, *two_processes(tmp_path))
    assert all("done" in one for one in said)


@pytest.mark.ci
@pytest.mark.parametrize("failing", [0, 1])
def test_a_process_that_raises_ends_the_others_with_its_message_on_jax(failing, tmp_path):
    pytest.importorskip("jax")
    start = time.monotonic()
    ends = ended(tmp_path, *two_processes(tmp_path, failing), while_all_succeed=False)
    assert [status for _, status in ends] == [1, 1]
    assert time.monotonic() - start < 90, "they waited for JAX's barrier, which takes minutes"
    assert "this process ends" not in ends[failing][0]
    other = ends[1 - failing][0]
    assert f"this process ends, because process {failing} of 2 raised" in other
    assert "ValueError: bad data" in other


@pytest.mark.ci
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_divided_network_learns_as_on_one_device_with_jax(name, tmp_path):
    pytest.importorskip("jax")
    pytest.importorskip("sklearn")
    (said,) = run(tmp_path, [SCALE / f"{name}.py"])
    found = re.findall(r"from one device (\S+), without the straight-through rule (\S+)", said)
    assert len(found) == (2 if name == "two_processes" else 1)
    for distance, without in found:
        assert float(distance) <= 1e-12 < 1e-3 < float(without)


@pytest.mark.parametrize("path", sorted(SCALE.glob("*.py")), ids=lambda p: p.stem)
def test_a_scale_example_reads_well(path):
    text = path.read_text()
    assert text.startswith('"""'), "says its idea first"
    assert "assert" in text, "claims nothing"
    assert len(text.splitlines()) <= 80
