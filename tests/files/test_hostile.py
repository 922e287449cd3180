"""Whatever is wrong with a file is one kind of error, found before anything is allocated for it."""

import contextlib
import io
import json
import os
import socket
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.files import container
from graphgrad.files.checkpoints import read_checkpoint
from graphgrad.files.container import NewMember
from graphgrad.files.text import parse

from .containers import members, packed


def program():
    """A graph with most of what a file may hold."""
    with gg.Graph("hostile") as graph:
        x = gg.placeholder(("N", 3), name="x")
        w = gg.variable(np.arange(120.0).reshape(3, 40), name="w")
        with gg.override_gradient(lambda site, dy: dy * gg.sum(w), strength=0.5):
            y = gg.tanh(x)
        z = gg.cond(gg.sum(y) > 0, lambda: y @ w, lambda: -y @ w)
        last, _ = gg.scan(lambda c, row: (c + row, gg.sum(c)), gg.zeros((40,)), z)
        loss = gg.sum(last)
        (dx,) = gg.gradients([loss], [x])
    return graph, {"step": ([x], [loss, dx])}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "whole.gg"
    graph, functions = program()
    gg.save(path, graph, functions=functions)
    return path.read_bytes()


def changed(raw, change):
    """The file with another text, which `change` makes of its document."""
    parts = members(raw)
    document = json.loads(parts["graph.json"])
    found = change(document)
    text = found if isinstance(found, bytes) else json.dumps(document).encode()
    return packed({**parts, "graph.json": text})


def put(*path, value):
    """Have something stand at a place of the document."""

    def change(document):
        at = document
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


def text(old, new):
    """Have the text say another thing."""

    def change(document):
        said = json.dumps(document, separators=(",", ":"))
        assert old in said
        return said.replace(old, new).encode()

    return change


def in_bodies(kind, change):
    """Have a body of control flow take or give other things."""

    def changed(document):
        own = [o for o in document["graphs"][0]["own"] if o.get("op", [""])[0] == kind]
        for at, inputs, outputs in own[0]["bodies"]:
            change(at, inputs, outputs)

    return changed


MAIN = ("graphs", 0)
FORGED = {
    "another format": put("format", value="other"),
    "a newer version": put("version", value=99),
    "no version": put("version", value="1"),
    "an unknown need": put("needs", value=["quantum"]),
    "a list": lambda d: b"[1, 2]",
    "no JSON": lambda d: b"{",
    "NaN": lambda d: b'{"format": NaN}',
    "deep": lambda d: b"[" * 200_000,
    "long number": lambda d: b'{"version": ' + b"9" * 100_000 + b"}",
    "a name twice": lambda d: b'{"format": "graphgrad", "format": "graphgrad"}',
    "no graphs": put("graphs", value=[]),
    "graphs of a number": put("graphs", value=3),
    "an unknown op type": text('"Tanh"', '"Tahn"'),
    "a newer op": text('["Tanh",1', '["Tanh",2'),
    "an op with another attribute": text('"axes":[0]', '"axis":[0]'),
    "tampered with": text('"axes":[0,1]', '"axes":[1]'),
    "a type of objects": text('"float64",["N",3]', '"object",["N",3]'),
    "a type of no name": put("types", 0, 0, value=None),
    "a negative length": text('["N",3]', '["N",-3]'),
    "an input ahead": put(*MAIN, "inputs", 2, value=[5]),
    "an input before the first": put(*MAIN, "inputs", 2, value=[-1]),
    "an input of text": put(*MAIN, "inputs", 2, value=["0"]),
    "an output that is none": put(*MAIN, "inputs", 2, value=[[0, 7]]),
    "columns of two lengths": put(*MAIN, "types", value=[0]),
    "an op that is none": put(*MAIN, "ops", 0, value=10**9),
    "an op of text": put(*MAIN, "ops", 0, value="exec"),
    "a body of nobody": lambda d: d["graphs"][0]["bodies"].pop() and None,
    "a body in itself": put(*MAIN, "bodies", 0, "graph", value=0),
    "a region that is none": put(*MAIN, "region", value=[[2], [9]]),
    "a region in itself": put(*MAIN, "regions", 0, "parent", value=0),
    "a rule that is none": put(*MAIN, "regions", 0, "rule", value={"rule": 7}),
    "a rule around nothing": put(*MAIN, "regions", 0, "rule", value={"up": 0}),
    "a rule without its site": put(*MAIN, "regions", 0, "rule", value={"rule": 0}),
    "a rule called by a number": put("rules", 0, "name", value=7),
    "a rule that is linear or so": put("rules", 0, "linear", value="maybe"),
    "a trace that reads before the first": text('"output",0', '"output",-1'),
    "a call at neither": put(*MAIN, "calls", 0, 1, 0, value="edge"),
    "derived from itself": put(*MAIN, "origin", value=[[3], [3]]),
    "an array that is none": text('{"array":0}', '{"array":3}'),
    "an array beyond all": text(
        '"value":{"full":["float64",[],', '"value":{"full":["float64",[999999999999999999],'
    ),
    "a body that takes less": in_bodies("Cond", lambda at, inputs, outputs: inputs.pop()),
    "a body that takes more": in_bodies("Scan", lambda at, inputs, outputs: inputs.append(0)),
    "a body that takes another": in_bodies("Cond", lambda at, inputs, outputs: inputs.reverse()),
    "a choice without bodies": put(*MAIN, "own", 0, "bodies", value=[]),
    "a body that gives nothing": in_bodies("Scan", lambda at, inputs, outputs: outputs.clear()),
    "a body that gives another": in_bodies("Scan", lambda at, inputs, outputs: outputs.reverse()),
    "a number that is a huge array": text(
        '"carries":1', '"carries":{"full":["float64",[1099511627776],1.0]}'
    ),
    "code": text('"strength",0.5', '"strength",{"function":3}'),
    "a pickle": text('"strength",0.5', '"strength",{"pickle":"gASV"}'),
    "an entry that is none": put("functions", "step", "inputs", value=[[99999, 0]]),
    "metadata of another kind": put("metadata", value={"os.system": "true"}),
    "an array of more axes than there may be": put(
        "metadata", value={"full": ["float64", [1] * 65, 1.0]}
    ),
    "a scalar that is a plain number": put("metadata", value={"scalar": 3}),
    "a scalar of two numbers": put(
        "metadata", value={"scalar": {"values": ["float64", [2], [1.0, 2.0]]}}
    ),
}


def refused(raw, path):
    """The error of a file, within little memory."""
    path.write_bytes(raw)
    tracemalloc.start()
    try:
        with pytest.raises(gg.FileError) as error:
            gg.load(path, verify=True)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert str(error.value).startswith(str(path))
    return str(error.value)


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_text_is_refused(name, whole, tmp_path):
    said = refused(changed(whole, FORGED[name]), tmp_path / "a.gg")
    assert "graph.json: " in said
    assert "it is broken: " not in said or name in BROKEN


BROKEN = {"no graphs", "graphs of a number"}


def test_a_name_that_is_said_twice_is_named():
    with pytest.raises(gg.FileError, match="its text says 'kind' twice"):
        parse(b'{"format": "graphgrad", "kind": 1, "kind": 2}')


def zipped(parts, **options):
    """A zip file as zipfile writes it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, data in parts:
            archive.writestr(name, data)
    return file.getvalue()


CONTAINERS = {
    "empty": (lambda raw: b"", "does not end"),
    "no zip": (lambda raw: b"hello " * 100, "does not end"),
    "a pickle": (lambda raw: b"\x80\x04\x95" + bytes(100), "does not end"),
    "cut off": (lambda raw: raw[:-1], "does not end"),
    "half": (lambda raw: raw[: len(raw) // 2], "does not end"),
    "more behind": (lambda raw: raw + b"more", "does not end"),
    "another member": (lambda raw: packed({**members(raw), "code.py": b"1"}), "code.py"),
    "outside": (lambda raw: packed({**members(raw), "../../x": b"1"}), "x"),
    "another text": (lambda raw: packed({**members(raw), "checkpoint.json": b"{}"}), "another"),
    "two disks": (lambda raw: raw[:-16] + b"\x01\x00" + raw[-14:], "not one that graphgrad writes"),
    "too many arrays": (lambda raw: packed({**members(raw), "arrays/1.npy": b"1"}), "arrays/1"),
    "an array less": (
        lambda raw: packed({"graph.json": members(raw)["graph.json"]}),
        "arrays/0.npy: is missing",
    ),
    "no text": (lambda raw: packed({"arrays/0.npy": b"1"}), "it has no graph.json"),
    "compressed": (
        lambda raw: zipped(members(raw).items(), compression=zipfile.ZIP_DEFLATED),
        "compressed",
    ),
    "another array": (
        lambda raw: packed({**members(raw), "arrays/0.npy": npy(np.ones((3, 40)))}),
        "its digest differs",
    ),
    "a count that is wrong": (lambda raw: raw[:-14] + b"\xff\xfe" * 2 + raw[-10:], "directory"),
}


def npy(array):
    """An array as NumPy writes it."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_wrong_container_is_refused(name, whole, tmp_path):
    make, said = CONTAINERS[name]
    assert said in refused(make(whole), tmp_path / "a.gg")


def test_more_members_and_longer_names_than_there_may_be_are_refused(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(container, "MOST_MEMBERS", 1)
    assert "has 2 members; at most 1 are read" in refused(whole, tmp_path / "a.gg")
    monkeypatch.setattr(container, "MOST_MEMBERS", 2)
    monkeypatch.setattr(container, "LONGEST_NAME", len("arrays/0.npy") - 1)
    assert "directory" in refused(whole, tmp_path / "a.gg")


def test_two_members_of_one_name_are_refused(whole, tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        raw = zipped([*members(whole).items(), ("graph.json", b"{}")])
    assert "graph.json: there are two members" in refused(raw, tmp_path / "a.gg")


@pytest.mark.parametrize(
    "array",
    [
        np.array([{}, 1], object),
        np.zeros((40, 3)).T,
        np.arange(120.0).reshape(3, 40).astype(">f8"),
        np.zeros(3, "datetime64[s]"),
        np.arange(120).reshape(40, 3),
    ],
    ids=["objects", "Fortran", "big-endian", "dates", "another shape"],
)
def test_an_array_that_is_none_is_refused(array, whole, tmp_path):
    parts = members(whole)
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    parts["arrays/0.npy"] = file.getvalue()
    part = NewMember("arrays/0.npy", [parts["arrays/0.npy"]])
    document = json.loads(parts["graph.json"])
    document["arrays"] = [gg.files.arrays.digests(part)[1]]
    raw = packed({**parts, "graph.json": json.dumps(document).encode()})
    refused(raw, tmp_path / "a.gg")


def test_a_header_of_npy_that_lies_is_refused(whole, tmp_path):
    raw = members(whole)["arrays/0.npy"].replace(b"(3, 40)", b"(9, 40)")
    part = NewMember("arrays/0.npy", [raw])
    document = json.loads(members(whole)["graph.json"])
    document["arrays"] = [gg.files.arrays.digests(part)[1]]
    made = packed({"graph.json": json.dumps(document).encode(), "arrays/0.npy": raw})
    assert "which does not match its size" in refused(made, tmp_path / "a.gg")


def outcome(raw, path, folder):
    """What comes of a file: "" if it is refused, else what is saved of it."""
    path.write_bytes(raw)
    try:
        file = gg.load(path, verify=True, mmap=False)
    except gg.FileError:
        return b""
    gg.save(folder / "again.gg", file.graph, functions=file.functions)
    return (folder / "again.gg").read_bytes()


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.ci)])
def test_flipped_bits_and_cuts_are_refused_or_change_nothing(count, whole, tmp_path):
    rng = np.random.default_rng(count)
    refusals = 0
    for i in range(count):
        if i % 8 == 0:
            raw = whole[: int(rng.integers(len(whole)))]
        else:
            bits = bytearray(whole)
            at = int(rng.integers(8 * len(whole)))
            bits[at // 8] ^= 1 << at % 8
            raw = bytes(bits)
        found = outcome(raw, tmp_path / "a.gg", tmp_path)
        assert found in (b"", whole)
        refusals += not found
    assert refusals > count * 0.8


@pytest.fixture(params=[False, True], ids=["zip", "zip64"])
def raw(request, whole, tmp_path, monkeypatch):
    """A file, as it is, and as files beyond 4 GiB are."""
    if request.param:
        monkeypatch.setattr(container, "FROM_64", 1000)
        graph, functions = program()
        gg.save(tmp_path / "a.gg", graph, functions=functions)
        return (tmp_path / "a.gg").read_bytes()
    return whole


def test_the_file_is_one_that_zip_and_numpy_read(raw, tmp_path):
    (tmp_path / "again.gg").write_bytes(raw)
    assert len(gg.load(tmp_path / "again.gg", verify=True).graph) == 17
    archive = zipfile.ZipFile(io.BytesIO(raw))
    assert archive.testzip() is None
    assert archive.namelist()[0] == "graph.json"
    np.testing.assert_array_equal(
        np.load(io.BytesIO(archive.read("arrays/0.npy"))), np.arange(120.0).reshape(3, 40)
    )
    for info in archive.infolist():
        _, _, n, m = struct.unpack_from("<IIHH", raw, info.header_offset + 18)
        assert (info.header_offset + 30 + n + m) % 64 == 0


def test_headers_are_those_of_zipfile(raw):
    """Of the first day that a zip file knows, whatever the day, and of version 4.5 beyond 4 GiB."""
    for info in zipfile.ZipFile(io.BytesIO(raw)).infolist():
        large = info.file_size >= container.FROM_64
        same = zipfile.ZipInfo(info.filename, (1980, 1, 1, 0, 0, 0))
        same.CRC, same.file_size, same.compress_size = info.CRC, info.file_size, info.file_size
        assert raw[info.header_offset :][:28] == same.FileHeader(large)[:28]
        assert info.extract_version == (
            45 if large or info.header_offset >= container.FROM_64 else 20
        )


def test_the_end_beyond_4_gib_is_that_of_the_standard(monkeypatch):
    """APPNOTE 4.3.14 and 4.3.15; a number that fits may stand where it does in small files."""
    monkeypatch.setattr(container, "FROM_64", 1000)
    raw = packed({"a": bytes(2000)})
    *end, size, place = struct.unpack("<4sQHHIIQQQQ", raw[-98:-42])
    assert end == [b"PK\x06\x06", 44, 3 << 8 | 45, 45, 0, 0, 1, 1]
    assert struct.unpack("<4sIQI", raw[-42:-22]) == (b"PK\x06\x07", 0, place + size, 1)
    for large in ({0}, {1}, {2}, {0, 1, 2}):
        numbers = [(1, size, place), (0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)]
        count, *rest = (numbers[i in large][i] for i in range(3))
        again = raw[:-22] + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, *rest, 0)
        assert container.members_of(again) == container.members_of(raw), large


def of_another_kind(tmp_path):
    """Paths to what is there and is not a file."""
    os.mkfifo(tmp_path / "pipe")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(tmp_path / "socket"))
    (tmp_path / "folder").mkdir()
    kinds = {"pipe": "a pipe", "socket": "a socket", "folder": "a directory"}
    found = {tmp_path / name: kind for name, kind in kinds.items()}
    return found | {Path("/dev/zero"): "a device"}


READERS = {
    "load": gg.load,
    "load, not mapped": lambda path: gg.load(path, mmap=False),
    "a checkpoint": read_checkpoint,
    "weights.npz": gg.import_weights,
    "weights.safetensors": gg.import_weights,
    "onnx": gg.onnx.load,
    "stablehlo": gg.interop.load_stablehlo,
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_refused_before_it_is_opened(reader, tmp_path, monkeypatch):
    if reader in ("onnx", "stablehlo"):
        pytest.importorskip({"onnx": "onnx", "stablehlo": "jax"}[reader])
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    for path, kind in of_another_kind(Path()).items():
        link = Path(f"link-{path.name}{Path(reader).suffix}")
        link.symlink_to(path)
        with pytest.raises(gg.FileError, match=f"{link}.*it is {kind}, not a file"):
            READERS[reader](link)
