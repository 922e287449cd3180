"""Scalars of summaries, in files of events that TensorBoard reads."""

import struct

import pytest

import graphgrad as gg
import graphgrad.tf1 as tf
from graphgrad.tf1 import summary


@pytest.fixture
def merged():
    with tf.Graph().as_default(), tf.Session() as session:
        tf.summary.scalar("loss", tf.constant(2.5))
        tf.summary.scalar("a b", tf.constant(3))
        tf.summary.histogram("weights", tf.constant([1.0, 2.0]))
        yield session.run(tf.summary.merge_all())


def events_of(path):
    """The events of a file, read record by record."""
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(events.Event.FromString(data[12 : 12 + length]))
        data = data[12 + length + 4 :]
    return found


def test_without_the_package_the_first_scalar_says_what_to_install(monkeypatch, tmp_path, merged):
    monkeypatch.setattr(summary, "find_spec", lambda name: None)
    writer = tf.summary.FileWriter(tmp_path)
    writer.add_graph(tf.get_default_graph())
    with pytest.raises(
        gg.TensorBoardError, match=r"FileWriter needs.*\n.*graphgrad\[tensorboard\]"
    ):
        writer.add_summary(merged)
    writer.close()
    assert list(tmp_path.iterdir()) == []


def test_scalars_are_written_with_their_tags_and_steps(tmp_path, merged):
    pytest.importorskip("tensorboardX")
    writer = tf.summary.FileWriter(tmp_path / "new")
    writer.add_summary(merged, 3)
    writer.flush()
    (path,) = (tmp_path / "new").iterdir()
    first, *rest = events_of(path)
    writer.close()
    assert first.file_version == "brain.Event:2"
    assert [e.step for e in rest] == [3, 3]
    values = [v for e in rest for v in e.summary.value]
    assert [(v.tag, v.simple_value) for v in values] == [("loss", 2.5), ("a_b", 3.0)]
    assert all(e.wall_time > 0 for e in [first, *rest])


def test_what_comes_after_the_end_goes_into_another_file(tmp_path, merged):
    pytest.importorskip("tensorboardX")
    writer = tf.summary.FileWriterCache.get(tmp_path)
    for _ in range(2):
        writer.add_summary(merged)
        writer.close()
    assert tf.summary.FileWriterCache.get(tmp_path) is writer
    assert [len(events_of(path)) for path in tmp_path.iterdir()] == [3, 3]
