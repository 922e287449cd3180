"""Values by name, in files that other programs read."""

import zipfile

import numpy as np
import pytest

import graphgrad as gg

FORMATS = ["npz", "safetensors"]


@pytest.fixture(params=FORMATS)
def path(request, tmp_path):
    if request.param == "safetensors":
        pytest.importorskip("safetensors")
    return tmp_path / f"w.{request.param}"


@pytest.fixture
def graph():
    with gg.Graph() as g:
        gg.variable(np.arange(6.0).reshape(2, 3), name="layer/w")
        gg.variable(np.zeros((0, 3), "float32"), name="none")
        gg.variable(True, name="flag.npy")
        gg.variable(np.array([1 + 2j, -0.0], "complex64"), name="file")
        gg.variable(np.array([np.nan, -np.inf, 6e-5], "float16"), name="flag")
    return g


def same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def test_what_is_exported_is_imported_bit_for_bit(path, graph):
    graph.state["layer/w"] = np.arange(6.0).reshape(3, 2).T  # not contiguous
    gg.export_weights(path, graph.state)
    same(gg.import_weights(path), graph.state.as_dict())
    fresh = gg.State(graph)
    fresh.load(gg.import_weights(str(path)))
    same(fresh.as_dict(), graph.state.as_dict())
    first = path.read_bytes()
    gg.export_weights(path, graph.state)
    assert path.read_bytes() == first
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_other_programs_read_and_write_the_same_files(path):
    arrays = {"w": np.arange(3.0), "b": np.ones((2, 2), "float32")}
    if path.suffix == ".npz":
        np.savez(path, **arrays)
        same(gg.import_weights(path), arrays)
        gg.export_weights(path, arrays)
        with np.load(path) as found:
            same(dict(found), arrays)
        return
    safetensors = pytest.importorskip("safetensors.numpy")
    safetensors.save_file(arrays, path)
    same(gg.import_weights(path), arrays)
    gg.export_weights(path, arrays)
    same(safetensors.load_file(path), arrays)


def test_a_write_that_fails_leaves_what_was_there(path, monkeypatch):
    gg.export_weights(path, {"w": [1.0]})
    before = path.read_bytes()
    for wrong in ({"w": [1.0], "v": ["text"]}, {"w": [1.0], 3: [1.0]}, {"w": object()}):
        with pytest.raises((gg.DTypeError, TypeError)):
            gg.export_weights(path, wrong)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        gg.export_weights(path, {"w": [2.0]})
    assert path.read_bytes() == before
    assert len([*path.parent.iterdir()]) == 1


def test_safetensors_has_no_complex128(tmp_path):
    pytest.importorskip("safetensors")
    with pytest.raises(gg.DTypeError, match=r"w: safetensors has no complex128; write an .npz"):
        gg.export_weights(tmp_path / "w.safetensors", {"w": 1j})


@pytest.mark.parametrize("broken", [b"", b"PK\x03\x04", b"\xff" * 40, b"{}"])
def test_a_broken_file_is_an_error_that_names_it(path, broken):
    path.write_bytes(broken)
    with pytest.raises(gg.GraphFormatError, match=rf"w{path.suffix} cannot be read"):
        gg.import_weights(path)


def test_a_file_that_holds_objects_or_a_name_twice_is_refused(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, w=np.array([print], dtype=object))
    with pytest.raises(gg.GraphFormatError, match="cannot be read: Object arrays"):
        gg.import_weights(path)
    with zipfile.ZipFile(path, "w") as archive:
        for member in ("w", "w.npy"):
            with archive.open(member, "w") as data:
                np.lib.format.write_array(data, np.ones(2))
    with pytest.raises(gg.GraphFormatError, match="two arrays named 'w'"):
        gg.import_weights(path)


def test_what_cannot_be_named_or_found_is_an_error(tmp_path, graph):
    for use in (lambda p: gg.export_weights(p, graph.state), gg.import_weights):
        with pytest.raises(ValueError, match=r"end in .safetensors or .npz"):
            use(tmp_path / "w.pkl")
    with pytest.raises(gg.StateError, match=r"gg.State\(graph\)"):
        gg.export_weights(tmp_path / "w.npz", gg.State())
    with pytest.raises(FileNotFoundError):
        gg.import_weights(tmp_path / "none.npz")


def test_without_safetensors_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("graphgrad.files.weights._safetensors", None)
    for use in (lambda p: gg.export_weights(p, {"w": 1.0}), gg.import_weights):
        with pytest.raises(gg.GraphGradError, match=r"pip install 'graphgrad\[safetensors\]'"):
            use(tmp_path / "w.safetensors")


def test_bfloat16_is_in_safetensors_alone(tmp_path):
    pytest.importorskip("ml_dtypes")
    pytest.importorskip("safetensors")
    with gg.Graph() as g:
        gg.variable([1.5, -2.0], gg.bfloat16, name="w")
    gg.export_weights(tmp_path / "w.safetensors", g.state)
    same(gg.import_weights(tmp_path / "w.safetensors"), g.state.as_dict())
    with pytest.raises(gg.DTypeError, match=r"w: .npz has no bfloat16; write .safetensors"):
        gg.export_weights(tmp_path / "w.npz", g.state)


def test_swapped_arguments_and_graphs_are_errors_that_say_so(tmp_path, graph):
    with pytest.raises(
        TypeError, match=r"export_weights\(path, state\).* the path of the file first"
    ):
        gg.export_weights(graph.state, tmp_path / "a.npz")
    with pytest.raises(TypeError, match=r"Pass graph.state"):
        gg.export_weights(tmp_path / "a.npz", graph)
