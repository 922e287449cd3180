"""Event files for TensorBoard's graph page."""

from __future__ import annotations

import re
import struct

import pytest

import graphgrad as gg
from graphgrad.inspect.scene.view import view_of
from graphgrad.inspect.write import tensorboard

from .seeing import HOSTILE, hostile, marked, network


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setattr(tensorboard, "find_spec", lambda name: None)
    with pytest.raises(tensorboard.TensorBoardError, match=r"graphgrad\[tensorboard\]"):
        gg.write_tensorboard(tmp_path, marked()[0])
    assert list(tmp_path.iterdir()) == []


def graph_of(path):
    """The graph in an event file, read record by record."""
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    graphs = pytest.importorskip("tensorboardX.proto.graph_pb2")
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(events.Event.FromString(data[12 : 12 + length]))
        data = data[12 + length + 4 :]
    assert found[0].file_version == "brain.Event:2"
    (event,) = [e for e in found if e.graph_def]
    return graphs.GraphDef.FromString(event.graph_def)


@pytest.fixture
def written(tmp_path):
    pytest.importorskip("tensorboardX")
    return lambda shown, **options: graph_of(gg.write_tensorboard(tmp_path, shown, **options))


def test_nodes_stand_in_scopes_regions_and_rules(written):
    tensors = network()
    graph = written(tensors)
    names = [n.name for n in graph.node]
    assert len(names) == len(set(names)) == len(view_of(tensors).nodes)
    assert "forward/layer0/w" in names
    assert any(n.startswith("forward/layer0/override_ste_0/Sign") for n in names)
    assert any(n.startswith("backward/layer0/spliced_ste_0/Where") for n in names)


def test_inputs_are_names_of_nodes(written):
    graph = written(marked()[0])
    names = {n.name for n in graph.node}
    read = [name for n in graph.node for name in n.input]
    assert read
    assert {name.lstrip("^").partition(":")[0] for name in read} <= names


def test_nodes_say_what_they_are(written):
    graph = written(marked()[0])
    (x,) = [n for n in graph.node if n.name == "forward/x"]
    assert x.op == "Placeholder"
    (shape,) = x.attr["_output_shapes"].list.shape
    assert [d.size for d in shape.dim] == [-1, 4]
    assert x.attr["dtype"].type == 1
    said = b" ".join(a.s for n in graph.node for a in n.attr.values())
    assert b"seeing.py:" in said
    assert b"built by <call of 'ste'" in said


def test_two_files_in_one_folder(tmp_path):
    pytest.importorskip("tensorboardX")
    paths = {gg.write_tensorboard(tmp_path, marked()[0]) for _ in range(2)}
    assert len(paths) == 2
    assert all("tfevents" in path.name for path in paths)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_become_plain_ones(written, name):
    graph = written(hostile(name))
    for node in graph.node:
        assert re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*", node.name)
        for attr in node.attr.values():
            assert attr.s.decode().isprintable()
