"""Models that somebody made to do harm: each is refused with a FileError, and nothing grows."""

import os
from contextlib import suppress

import numpy as np
import pytest

import graphgrad as gg

from .making import graph_of, mlp, model_of, node, onnx, stored


def refused(model, match):
    with pytest.raises(gg.FileError, match=match):
        gg.onnx.load(model)


def relu(**changes):
    return model_of([node("Relu", ["x"], ["y"])], {"x": [2]}, ["y"], **changes)


def test_what_is_no_model(tmp_path):
    path = tmp_path / "m.onnx"
    for raw in (b"", b"PK\x03\x04", b"\xff" * 100, os.urandom(1000), b"\x08\x0a" * 10):
        path.write_bytes(raw)
        refused(path, "not an ONNX model")
    with pytest.raises(OSError, match="No such file"):
        gg.onnx.load(tmp_path / "none.onnx")


def test_cut_files_are_refused(tmp_path, rng):
    raw = mlp(rng)[0].SerializeToString()
    path = tmp_path / "m.onnx"
    loaded = 0
    for end in range(0, len(raw), 7):
        path.write_bytes(raw[:end])
        with suppress(gg.FileError):
            gg.onnx.load(path)
            loaded += 1
    assert loaded < 3  # what is left out at the end may be metadata


def external(location, offset=0, length=8):
    tensor = stored("w", np.zeros(2, "float32"))
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    said = {"location": location, "offset": offset, "length": length}
    for key, value in said.items():
        tensor.external_data.add(key=key, value=str(value))
    model = model_of([node("Add", ["x", "w"], ["y"])], {"x": [2]}, ["y"])
    model.graph.initializer.append(tensor)
    return model


def test_external_data_stay_in_the_folder(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret").write_bytes(bytes(64))
    (home / "link").symlink_to(tmp_path / "secret")
    (home / "w").write_bytes(np.array([1, 2], "float32").tobytes())
    path = home / "m.onnx"
    outside = ["../secret", str(tmp_path / "secret"), "link", "", "a/../../secret", "\0", "."]
    for location in outside:
        path.write_bytes(external(location).SerializeToString())
        refused(path, "folder|not exist")
    for offset, length in ((-1, 8), (4, 8), (0, 1 << 60), (1 << 60, 8), ("x", 8), (0, 4)):
        path.write_bytes(external("w", offset, length).SerializeToString())
        refused(path, "bytes|no number|not a number")
    path.write_bytes(external("w").SerializeToString())
    np.testing.assert_array_equal(gg.onnx.load(path)([0, 0]), [1, 2])
    refused(external("w"), "load it from its folder")


def test_sizes_are_checked_before_anything_is_made():
    huge = model_of([node("Add", ["x", "w"], ["y"])], {"x": [2]}, ["y"])
    tensor = stored("w", np.zeros(2, "float32"))
    for dims in ([1 << 40], [1 << 31, 1 << 31, 1 << 31], [-2, -1], [1] * 100):
        del tensor.dims[:]
        tensor.dims.extend(dims)
        del huge.graph.initializer[:]
        huge.graph.initializer.append(tensor)
        refused(huge, "bytes|shape")
    listed = onnx.TensorProto(name="w", data_type=1, dims=[1 << 40], float_data=[1.0])
    del huge.graph.initializer[:]
    huge.graph.initializer.append(listed)
    refused(huge, "elements")


def test_constants_that_would_fill_memory_are_not_made():
    """2**40 ones are an op here, and folding stops at what is small."""
    nodes = [
        node("ConstantOfShape", ["n"], ["ones"]),
        node("Add", ["ones", "ones"], ["twos"]),
        node("ReduceSum", ["twos"], ["s"], keepdims=0),
        node("Add", ["x", "s"], ["y"]),
    ]
    model = gg.onnx.load(model_of(nodes, {"x": [2]}, ["y"], {"n": np.array([1 << 40])}))
    assert model.outputs["y"].shape == (2,)
    steps = {"a": np.array(0), "b": np.array(1 << 40), "c": np.array(1)}
    refused(model_of([node("Range", ["a", "b", "c"], ["y"])], {"x": [2]}, ["y"], steps), "at most")


def test_forms_make_few_numbers():
    """What an attribute or a shape of the file says, no form allocates without looking."""
    far = 1 << 40
    image = {"x": [1, 1, far]}
    sizes = {"s": np.array([1, 1, 8])}
    made = [
        node("Resize", ["x", "", "", "s"], ["y"], mode="linear"),
        node("AveragePool", ["x"], ["y"], kernel_shape=[2], dilations=[2]),
        node("GatherElements", ["x", "x"], ["y"], axis=2),
    ]
    for each in made[:2]:
        refused(model_of([each], image, ["y"], sizes), "at most 16777216 are computed")
    inputs = [({"x": [1, 2, far]}, 1), ({"i": [1, 1, far]}, 7)]
    made[2].input[1] = "i"
    refused(model_of(made[2:], inputs, ["y"]), "at most 16777216 are computed")
    weights = {"w": np.ones((1, 4, 2), "float32"), "r": np.ones((1, 4, 1), "float32")}
    lstm = node("LSTM", ["x", "w", "r"], ["y"], hidden_size=far)
    refused(model_of([lstm], {"x": [3, 2, 2]}, ["y"], weights), "at most 16777216 are computed")
    nearest = node("Resize", ["x", "", "", "s"], ["y"], mode="nearest")
    wide = model_of([nearest], {"x": [1, 1, 1 << 20]}, ["y"], {"s": np.array([1, 1, 1 << 21])})
    assert gg.onnx.load(wide).outputs["y"].shape == (1, 1, 1 << 21)


def test_functions_that_call_themselves_or_grow(rng):
    versions = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("own", 1)]

    def function(name, calls):
        inside = [node(c, ["x"], ["y"], domain="own") for c in calls[:1]]
        inside += [node(c, ["y"], [f"z{i}"], domain="own") for i, c in enumerate(calls[1:])]
        return onnx.helper.make_function("own", name, ["x"], ["y"], inside, versions)

    call = [node("F0", ["x"], ["y"], domain="own")]
    own = [("own", 1)]
    loop = [function("F0", ["F1"]), function("F1", ["F0"])]
    refused(model_of(call, {"x": [2]}, ["y"], functions=loop, domains=own), "calls itself")
    relu_ = onnx.helper.make_function(
        "own", "F40", ["x"], ["y"], [node("Relu", ["x"], ["y"])], versions
    )
    tree = [function(f"F{i}", [f"F{i + 1}"] * 2) for i in range(40)] + [relu_]
    refused(model_of(call, {"x": [2]}, ["y"], functions=tree, domains=own), "more than 1000000")


def test_names_that_lead_nowhere():
    refused(model_of([node("Relu", ["z"], ["y"])], {"x": [2]}, ["y"]), "no node before it writes")
    refused(relu(opset=21, weights={"y": np.ones(2)}), "written twice")
    refused(model_of([node("Relu", ["y"], ["y"])], {"x": [2]}, ["y"]), "no node before it writes")
    two = [node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])]
    refused(model_of(two, {"x": [2]}, ["y"]), "written twice")
    refused(model_of([node("Relu", ["x"], ["y"])], {"x": [2]}, ["q"]), "the output 'q'")


def test_deep_nests_are_those_of_protobuf():
    """100 messages in one another, and so some 30 bodies, are all that it reads."""
    body = leaf = graph_of([node("Relu", ["x"], ["t"])], {}, ["t"])
    for _ in range(25):
        body = graph_of([node("If", ["p"], ["t"], then_branch=body, else_branch=leaf)], {}, ["t"])
    model = model_of(list(body.node), {"x": [2]}, ["t"], {"p": np.array(True)})
    np.testing.assert_array_equal(gg.onnx.load(model)([-1, 1]), [0, 1])


def test_flipped_bits_are_refused_or_load(tmp_path, rng):
    """None ends in another error, and none runs for long."""
    raw = bytearray(mlp(rng)[0].SerializeToString())
    path = tmp_path / "m.onnx"
    for at in rng.integers(0, len(raw) * 8, size=60):
        changed = bytearray(raw)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        with suppress(gg.FileError):
            gg.onnx.load(path)
