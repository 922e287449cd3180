"""`gg.onnx.differentiate`: derivatives of a file beside its outputs, as torch computes them."""

import json

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.verify import verify_graph

from .making import BOOL, INT64, mlp, model_of, node, onnx, values

onnxruntime = pytest.importorskip("onnxruntime")

QUIET = onnxruntime.SessionOptions()
QUIET.log_severity_level = 3
KINDS = ("gradient", "vjp", "jvp", "hvp", "jacobian", "hessian", "laplacian")


def session_of(path):
    return onnxruntime.InferenceSession(str(path), QUIET)


def run(path, feeds):
    """{output: array} in onnxruntime."""
    session = session_of(path)
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def near(found, expected):
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * scale)


@pytest.fixture
def saved(tmp_path, rng):
    """tanh(x @ w) @ v and its places, with names, notes and lengths."""
    w, v = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    nodes = [
        node("MatMul", ["x", "w"], ["/body/h"], name="/body/MatMul"),
        node("Tanh", ["/body/h"], ["a"], name="/body/act/Tanh"),
        node("MatMul", ["a", "v"], ["y"], name="/head/MatMul"),
        node("ArgMax", ["y"], ["place"], axis=1, keepdims=0),
        node("Round", ["y"], ["rounded"]),
        node("Mul", ["rounded", "shift"], ["steps"]),
    ]
    weights = {"w": w.astype("float32"), "v": v.astype("float32")}
    inputs = [({"x": ["batch", 3], "shift": []},), ({"mask": ["batch"]}, BOOL)]
    model = model_of(nodes, inputs, {"y": ["batch", 2]}, weights)
    model.graph.output.extend([*values({"place": ["batch"]}, INT64), *values({"steps": None})])
    model.graph.input[0].doc_string = "three numbers"
    model.metadata_props.add(key="license", value="MIT")
    onnx.save(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx", w, v


def slope(x, w, v):
    return (1 - np.tanh(x @ w) ** 2) * v.sum(1) @ w.T


def test_inputs_and_outputs_stay_and_derivatives_come_behind(saved, tmp_path, rng):
    path, w, v = saved
    model = gg.onnx.differentiate(path, "y", "x", path=tmp_path / "d.onnx")
    proto = onnx.load(tmp_path / "d.onnx")
    onnx.checker.check_model(proto, full_check=True)
    assert list(model.inputs) == [i.name for i in proto.graph.input] == ["x", "shift", "mask"]
    names = ["y", "place", "steps", "gradient/x"]
    assert list(model.outputs) == [o.name for o in proto.graph.output] == names
    dims = [d.dim_param or d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    assert dims == ["batch", 3]
    assert proto.graph.input[0].doc_string == "three numbers"
    assert {t.name for t in proto.graph.initializer} >= {"w", "v"}
    x = rng.normal(size=(5, 3)).astype("float32")
    feeds = {"x": x, "shift": np.array(2, "float32"), "mask": np.ones(5, bool)}
    found = run(tmp_path / "d.onnx", feeds)
    near(found["gradient/x"], slope(x, w, v))
    near(found["y"], np.tanh(x @ w) @ v)
    np.testing.assert_array_equal(found["place"], found["y"].argmax(1))
    near(model(*feeds.values())[3], slope(x, w, v))


def test_metadata_say_what_was_asked_of_which_file(saved, tmp_path):
    path, *_ = saved
    out = tmp_path / "d.onnx"
    gg.onnx.differentiate(path, "y", "x", kind="jvp", overrides={"Tanh": gg.rules.ste()}, path=out)
    told = {p.key: p.value for p in onnx.load(out).metadata_props}
    assert told["license"] == "MIT"
    asked = json.loads(told["graphgrad.derivative"])
    assert (asked["of"], asked["wrt"], asked["kind"], asked["order"]) == ("y", ["x"], "jvp", 1)
    assert (asked["inputs"], asked["outputs"]) == (["direction/x"], ["jvp/y"])
    assert asked["source"]["name"] == "m.onnx"
    assert len(asked["source"]["sha256"]) == 64


def test_rules_are_chosen_by_op_type_and_counted(saved, tmp_path, rng):
    path, w, v = saved
    out, x = tmp_path / "d.onnx", rng.normal(size=(5, 3)).astype("float32")
    gg.onnx.differentiate(path, "y", "x", overrides={"Tanh": "guided"}, path=out, forward=False)
    feeds = {"x": x, "shift": np.array(2, "float32"), "mask": np.ones(5, bool)}
    given = {i.name for i in session_of(out).get_inputs()}
    found = run(out, {n: a for n, a in feeds.items() if n in given})
    assert list(found) == ["gradient/x"]
    near(found["gradient/x"], np.where((x @ w > 0) & (v.sum(1) > 0), v.sum(1), 0) @ w.T)
    (told,) = [p for p in onnx.load(out).metadata_props if p.key == "graphgrad.derivative"]
    (rule,) = json.loads(told.value)["rules"]
    assert (rule["rule"].rstrip("()"), rule["sites"]) == ("guided", 1)
    with pytest.raises(gg.GradientError, match=r"gg\.rules\.clip_norm takes arguments"):
        gg.onnx.differentiate(path, "y", "x", overrides={"Tanh": "clip_norm"})
    with pytest.raises(gg.GraphGradError, match="Did you mean 'Tanh'"):
        gg.onnx.differentiate(path, "y", "x", overrides={"Tanhh": "guided"})


def test_marks_on_a_loaded_model_count(saved, rng):
    path, w, v = saved
    model = gg.onnx.load(path)
    model.graph.mark(gg.select.op("Tanh"), gg.rules.ste())
    found = gg.onnx.differentiate(model, "y", "x")
    x = rng.normal(size=(2, 3)).astype("float32")
    (*_, dx) = found(x, np.float32(0), np.ones(2, bool))
    near(dx, np.broadcast_to(v.sum(1) @ w.T, (2, 3)))
    with pytest.raises(gg.GraphError, match=r"no tensor 'w'\..*trainable=True"):
        gg.onnx.differentiate(model, "y", "w")
    trained = gg.onnx.load(path, trainable=True)
    found = gg.onnx.differentiate(trained, "y", iter(["w", "v"]))
    assert found.outputs["gradient/w"].shape == (3, 4)


def test_by_tensors_inside_and_by_weights(saved, tmp_path, rng):
    path, w, v = saved
    out, x = tmp_path / "d.onnx", rng.normal(size=(5, 3)).astype("float32")
    gg.onnx.differentiate(path, "y", ["a", "/body/h", "w"], path=out)
    found = run(out, {"x": x, "shift": np.array(2, "float32"), "mask": np.ones(5, bool)})
    h = (1 - np.tanh(x @ w) ** 2) * v.sum(1)
    near(found["gradient/a"], np.broadcast_to(v.sum(1), (5, 4)))
    near(found["gradient/body/h"], h)
    near(found["gradient/w"], x.T @ h)
    gg.onnx.differentiate(path, "a", "x", path=out, forward=["a", "place"])
    assert list(found) == ["y", "place", "steps", "gradient/a", "gradient/body/h", "gradient/w"]
    found = run(out, {"x": x, "shift": np.array(2, "float32"), "mask": np.ones(5, bool)})
    assert list(found) == ["a", "place", "gradient/x"]
    near(found["gradient/x"], (1 - np.tanh(x @ w) ** 2) @ w.T)


def test_a_function_of_outputs_with_an_input_of_its_own(saved, tmp_path, rng):
    path, w, v = saved

    def loss(outputs):
        label = gg.placeholder(("batch",), "int64", name="label")
        return gg.sum(gg.nn.cross_entropy(outputs["y"], label))

    model = gg.onnx.differentiate(path, loss, "x", path=tmp_path / "d.onnx")
    assert list(model.inputs)[-1] == "label"
    assert list(model.outputs) == ["y", "place", "steps", "loss", "gradient/x"]
    x, label = rng.normal(size=(5, 3)).astype("float32"), np.arange(5) % 2
    feeds = {"x": x, "shift": np.array(2, "float32"), "mask": np.ones(5, bool), "label": label}
    found = run(tmp_path / "d.onnx", feeds)
    a = np.tanh(x @ w)
    p = np.exp(a @ v) / np.exp(a @ v).sum(1, keepdims=True)
    near(found["loss"], -np.log(p[np.arange(5), label]).sum())
    near(found["gradient/x"], ((p - np.eye(2)[label]) @ v.T * (1 - a * a)) @ w.T)


def test_names_are_never_taken_twice(rng):
    weights = {"gradient/x": np.ones(3, "float32"), "gradient_of_x": np.ones(3, "float32")}
    nodes = [node("Mul", ["x", "gradient/x"], ["h"]), node("Mul", ["h", "gradient_of_x"], ["y"])]
    proto = model_of(nodes, {"x": ["N", 3]}, ["y"], weights)
    assert list(gg.onnx.differentiate(proto).outputs) == ["y", "gradient/x__1"]
    assert list(gg.onnx.differentiate(proto, names="_").outputs) == ["y", "gradient_of_x__1"]
    found = gg.onnx.differentiate(proto, kind="jacobian", names="_")
    assert list(found.outputs)[1] == "jacobian_of_y_by_x"
    raw = gg.onnx.differentiate(proto.SerializeToString(), kind="jvp", names="_")
    assert (list(raw.inputs), list(raw.outputs)) == (["x", "direction_of_x"], ["y", "jvp_of_y"])


def test_higher_orders_go_along_one_direction(tmp_path, rng):
    proto = model_of([node("Sin", ["x"], ["y"])], {"x": ["N"]}, ["y"])
    gg.onnx.differentiate(proto, order=3, path=tmp_path / "d.onnx")
    x, v = rng.normal(size=(2, 4)).astype("float32")
    found = run(tmp_path / "d.onnx", {"x": x, "direction/x": v})
    near(found["gradient/x"], -np.cos(x) * v * v)


def test_a_cotangent_is_an_input_or_an_array(saved, tmp_path, rng):
    path, w, v = saved
    x, dy = rng.normal(size=(5, 3)).astype("float32"), rng.normal(size=(5, 2)).astype("float32")
    feeds = {"x": x, "shift": np.array(2, "float32"), "mask": np.ones(5, bool)}
    h = 1 - np.tanh(x @ w) ** 2
    gg.onnx.differentiate(path, "y", "x", cotangent=[0.0, 2.0], path=tmp_path / "d.onnx")
    near(run(tmp_path / "d.onnx", feeds)["gradient/x"], 2 * (h * v[:, 1]) @ w.T)
    gg.onnx.differentiate(path, "y", "x", cotangent="input", path=tmp_path / "d.onnx")
    found = run(tmp_path / "d.onnx", {**feeds, "cotangent/y": dy})
    near(found["gradient/x"], (h * (dy @ v.T)) @ w.T)


@pytest.mark.parametrize("kind", ["jacobian", "hessian", "laplacian"])
def test_per_example_is_the_diagonal_in_examples(kind, saved, rng):
    path, *_ = saved
    x = rng.normal(size=(4, 3)).astype("float32")
    feeds = (x, np.array(2, "float32"), np.ones(4, bool))
    (*_, rows) = gg.onnx.differentiate(path, "y", "x", kind=kind, per_example=True)(*feeds)
    if kind == "laplacian":
        (*_, whole) = gg.onnx.differentiate(path, "y", "x", kind="hessian", per_example=True)(
            *feeds
        )
        near(rows, np.trace(whole, axis1=1, axis2=2))
        return
    (*_, whole) = gg.onnx.differentiate(path, "y", "x", kind=kind)(*feeds)
    near(rows, np.stack([whole[i, :, i] for i in range(4)]))


def test_what_flows_nowhere_is_said_with_the_end_of_the_path(saved):
    path, *_ = saved
    with pytest.raises(gg.GradientError, match=r"'steps' to 'x'.*Round.*is 0"):
        gg.onnx.differentiate(path, "steps", "x")
    with pytest.raises(gg.GradientError, match="'y' to 'shift': it does not depend on it"):
        gg.onnx.differentiate(path, "y", "shift")
    with pytest.raises(gg.GradientError, match=r"'value' to 'x'.*ArgMax.* makes int64"):
        gg.onnx.differentiate(path, lambda o: gg.astype(o["place"], "float32"), "x")
    (*_, dx) = gg.onnx.differentiate(path, "steps", "x", unconnected="zero")(
        np.ones((2, 3), "float32"), np.float32(1), np.ones(2, bool)
    )
    assert not dx.any()


def test_curvature_of_what_is_linear_in_pieces_is_refused(rng):
    proto, _ = mlp(rng)
    for kind in ("hvp", "hessian", "laplacian"):
        with pytest.raises(gg.GradientError, match=r"does not change with 'x'.*piecewise"):
            gg.onnx.differentiate(proto, kind=kind)
    found = gg.onnx.differentiate(proto, kind="laplacian", unconnected="zero")
    assert found(rng.normal(size=(2, 3)).astype("float32"))[1] == 0


REFUSED = [
    ({"of": "z"}, gg.GraphError, "of: the model has no tensor 'z'. Floating outputs: y, steps"),
    ({"of": "placee"}, gg.GraphError, "Did you mean 'place'"),
    ({"of": "place"}, gg.DTypeError, "of: 'place' is int64.*Floating outputs: y, steps"),
    ({"of": None}, gg.GradientError, "must name an output.*y: float32.*place.*steps"),
    ({"of": 3}, gg.GradientError, "of is a name"),
    ({"of": lambda o: 1.0}, gg.GradientError, "of returned 1.0"),
    ({"wrt": "mask"}, gg.DTypeError, "wrt: 'mask' is bool.*Floating inputs: x, shift"),
    ({"wrt": "X"}, gg.GraphError, "wrt: the model has no tensor 'X'. Did you mean 'x'"),
    ({"wrt": ["x", "x"]}, gg.GradientError, "names 'x' twice"),
    ({"wrt": []}, gg.GradientError, "wrt is empty"),
    ({"kind": "hesian"}, gg.GradientError, "kind is one of.*Did you mean 'hessian'"),
    ({"order": 0}, gg.GradientError, "order is an int of at least 1"),
    ({"order": 2, "kind": "jvp"}, gg.GradientError, "order applies to gradients"),
    ({"per_example": True}, gg.GradientError, "per_example applies to jacobian"),
    ({"per_example": 1}, TypeError, "per_example is True or False"),
    ({"cotangent": "one"}, gg.GradientError, "Did you mean 'ones'"),
    ({"cotangent": "input", "kind": "jvp"}, gg.GradientError, "not to a jvp"),
    ({"cotangent": np.ones(3)}, gg.ShapeError, r"cotangent: of float32\[batch, 2\]"),
    ({"forward": ["Y"]}, gg.GraphError, "forward: the model has no tensor 'Y'. Did you mean 'y'"),
    ({"forward": "y"}, gg.GradientError, "forward is True, False, or a list"),
    ({"opset": 16}, gg.GradientError, "opset is from 17 to 21"),
    ({"opset": 20, "weights": "external"}, gg.GradientError, 'needs weights="copy"'),
    ({"weights": "none"}, gg.GradientError, "weights is one of"),
    ({"unconnected": "none"}, gg.GradientError, "unconnected is one of"),
    ({"names": "."}, gg.GradientError, "names is one of"),
    ({"dtype": "int8"}, gg.ExportError, "dtype is float32"),
    ({"shapes": {"z": (1,)}}, gg.FileError, "no input 'z'"),
    ({"overrides": {"Tanh": "stee"}}, gg.UnknownGradientError, "stee"),
    ({"kind": "jacobian", "per_example": True, "wrt": "w"}, gg.ShapeError, "first axes"),
]


@pytest.mark.parametrize(("options", "error", "says"), REFUSED)
def test_what_cannot_be_asked_is_refused_and_nothing_is_written(
    options, error, says, saved, tmp_path
):
    path, *_ = saved
    with pytest.raises(error, match=says):
        gg.onnx.differentiate(
            path, **{"of": "y", "wrt": "x", "path": tmp_path / "d.onnx", **options}
        )
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_draws_without_a_seed_are_refused(saved, tmp_path):
    path, *_ = saved
    with pytest.raises(gg.ExportError, match="draws random numbers"):
        gg.onnx.differentiate(
            path,
            lambda o: o["y"] * gg.random.normal((2,), dtype="float32"),
            "x",
            path=tmp_path / "d.onnx",
        )
    assert not (tmp_path / "d.onnx").exists()


@pytest.mark.parametrize("opset", [17, 18, 19, 20])
def test_earlier_versions_of_the_operators(opset, tmp_path, rng):
    """With a loop, borders, and operators of which the converter knows no earlier version."""
    nodes = [
        node("Slice", ["x", "from", "to", "axes"], ["part"]),
        node("MaxPool", ["part"], ["h"], kernel_shape=[2, 2], strides=[1, 1]),
        node("Tanh", ["h"], ["y"]),
    ]
    weights = {n: np.array([i]) for n, i in (("from", 1), ("to", -1), ("axes", 2))}
    proto = model_of(nodes, {"x": ["N", 1, "H", 5]}, ["y"], weights)
    proto.graph.input[0].doc_string = "an image"
    x = rng.normal(size=(2, 1, 6, 5)).astype("float32")
    path = tmp_path / "d.onnx"
    for kind in ("gradient", "jacobian"):
        made = gg.onnx.differentiate(proto, kind=kind, path=path, opset=opset)
        written = onnx.load(path)
        assert [(o.domain, o.version) for o in written.opset_import] == [("", opset)]
        assert written.graph.input[0].doc_string == "an image"
        assert "graphgrad.derivative" in {p.key for p in written.metadata_props}
        for found, expected in zip(run(path, {"x": x}).values(), made(x), strict=True):
            near(found, expected)


@pytest.mark.parametrize("stride", [1, 2])
def test_weights_may_stay_in_the_file_of_the_model(stride, tmp_path, rng):
    """Filters as they lie there, also those too large to turn while loading, matrices turned."""
    weights = {
        "f": rng.normal(0, 0.02, size=(64, 32, 6, 6)).astype("float32"),
        "w": rng.normal(size=(40, 64)).astype("float32"),
    }
    nodes = [
        node("Conv", ["x", "f"], ["h"], strides=[stride, stride]),
        node("GlobalAveragePool", ["h"], ["m"]),
        node("Flatten", ["m"], ["v"]),
        node("Gemm", ["v", "w"], ["t"], transB=1),
        node("Tanh", ["t"], ["y"]),
    ]
    proto = model_of(nodes, {"x": ["N", 32, "H", "W"]}, ["y"], weights)
    onnx.save(proto, tmp_path / "m.onnx")
    x = rng.normal(size=(2, 32, 9, 8)).astype("float32")
    found = {}
    for how in ("copy", "share"):
        gg.onnx.differentiate(tmp_path / "m.onnx", path=tmp_path / f"{how}.onnx", weights=how)
        found[how] = run(tmp_path / f"{how}.onnx", {"x": x})
    sizes = {how: (tmp_path / f"{how}.onnx").stat().st_size for how in found}
    assert sizes["copy"] - sizes["share"] > 0.9 * sum(a.nbytes for a in weights.values())
    assert sizes["copy"] < sum(a.nbytes for a in weights.values()) + 20_000
    for name, value in found["copy"].items():
        np.testing.assert_array_equal(found["share"][name], value)
    again = gg.onnx.load(tmp_path / "share.onnx")
    near(again(x)[1], found["copy"]["gradient/x"])
    big = onnx.load(tmp_path / "m.onnx")
    onnx.save(big, tmp_path / "e.onnx", save_as_external_data=True, location="e.data")
    gg.onnx.differentiate(tmp_path / "e.onnx", path=tmp_path / "s.onnx", weights="share")
    near(run(tmp_path / "s.onnx", {"x": x})["gradient/x"], found["copy"]["gradient/x"])
    for name in ("m.onnx", "e.data"):
        with (tmp_path / name).open("ab") as file:
            file.write(b"\0")
        reader = tmp_path / ("share.onnx" if name == "m.onnx" else "s.onnx")
        with pytest.raises(gg.FileError, match=f"{name}', which has changed since"):
            gg.onnx.load(reader)
        (tmp_path / name).unlink()
        with pytest.raises(gg.FileError, match=rf"its shared data is in '{name}', which does"):
            gg.onnx.load(reader)
    onnx.save(proto, tmp_path / "m.onnx")
    for source, path, why in (
        (proto, "s.onnx", "this one is loaded, or bytes"),
        (tmp_path / "m.onnx", None, "path is None"),
        (tmp_path / "m.onnx", "n/s", "must be in the folder of"),
    ):
        with pytest.raises(gg.GradientError, match=f'weights="share".*{why}'):
            gg.onnx.differentiate(source, path=path and tmp_path / path, weights="share")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "not JSON of files"),
        ("[1]", "not JSON of files"),
        ('{"../m.onnx": ""}', "not in the model's folder"),
        ('{"": ""}', "not in the model's folder"),
    ],
)
def test_metadata_of_shared_weights_are_not_trusted(saved, text, said):
    model = onnx.load(saved[0])
    model.metadata_props.add(key="graphgrad.weights", value=text)
    onnx.save(model, saved[0])
    with pytest.raises(gg.FileError, match=said):
        gg.onnx.load(saved[0])


def test_weights_lie_beside_and_nodes_keep_their_story_only_where_asked(tmp_path, rng):
    wide = model_of(
        [node("MatMul", ["x", "w"], ["h"]), node("Tanh", ["h"], ["y"])],
        {"x": ["N", 20]},
        ["y"],
        {"w": rng.normal(size=(20, 20)).astype("float32")},
    )
    gg.onnx.differentiate(wide, path=tmp_path / "a.onnx", weights="external", provenance=False)
    assert (tmp_path / "a.onnx.data").stat().st_size >= 1600
    proto = onnx.load(tmp_path / "a.onnx")
    assert not any(n.metadata_props for n in proto.graph.node)
    assert any(p.key == "graphgrad.derivative" for p in proto.metadata_props)
    near(run(tmp_path / "a.onnx", {"x": np.zeros((1, 20), "float32")})["y"], np.zeros((1, 20)))


def test_integers_are_differentiated_by_what_a_table_says_of_them(tmp_path, rng):
    table, w = rng.normal(size=(5, 3)).astype("float32"), rng.normal(size=(3, 2)).astype("float32")
    nodes = [
        node("Gather", ["table", "ids"], ["words"], name="/embed/Gather"),
        node("Tanh", ["words"], ["t"]),
        node("MatMul", ["t", "w"], ["y"]),
    ]
    proto = model_of(nodes, [({"ids": ["N"]}, INT64)], ["y"], {"table": table, "w": w})
    with pytest.raises(
        gg.DTypeError, match=r"ids: int64\[N\]. Tensors computed .* words: float32\[N"
    ):
        gg.onnx.differentiate(proto)
    gg.onnx.differentiate(proto, wrt="words", path=tmp_path / "d.onnx")
    ids = np.array([3, 0, 3])
    found = run(tmp_path / "d.onnx", {"ids": ids})["gradient/words"]
    near(found, w.sum(1) * (1 - np.tanh(table[ids]) ** 2))


def everything_of(graph):
    return (
        [(n.name, n.op, n.inputs, n.region) for n in graph.nodes],
        list(graph.regions),
        [r.settled for r in graph.regions],
        graph.draws,
        dict(graph._named),
    )


def fails(model, path, of):
    if of == "rule":
        raising = gg.register_gradient("raises")(lambda site, dy: 1 / 0)
        return lambda: gg.onnx.differentiate(model, "y", "x", overrides={"Tanh": raising})
    if of == "function":
        return lambda: gg.onnx.differentiate(model, lambda o: 1 / (o["y"] * 0 + 1).missing, "x")
    if of == "folder":
        return lambda: gg.onnx.differentiate(model, "y", "x", path=path / "no" / "d.onnx")
    if of == "form":
        return lambda: gg.onnx.differentiate(
            model, lambda o: gg.special.jv(1.0, o["y"]), "x", path=path / "d.onnx"
        )
    return lambda: gg.onnx.differentiate(model, "steps", "x")


@pytest.mark.parametrize("of", ["rule", "function", "folder", "form", "nothing flows"])
def test_a_loaded_model_is_as_before_on_every_error(saved, tmp_path, of):
    model, twin = gg.onnx.load(saved[0]), gg.onnx.load(saved[0])
    for each in (model, twin):
        each.graph.mark(gg.select.op("Tanh"), gg.rules.scale(2.0))
    before = everything_of(model.graph)
    with pytest.raises((gg.GraphGradError, ZeroDivisionError, AttributeError, OSError)):
        fails(model, tmp_path, of)()
    for now, then in zip(everything_of(model.graph), before, strict=True):
        assert now == then
    verify_graph(model.graph)
    assert not list(tmp_path.glob("d.onnx*"))
    found, expected = (gg.onnx.differentiate(m, "y", "x") for m in (model, twin))
    assert [n.name for n in model.graph.nodes] == [n.name for n in twin.graph.nodes]
    x = np.ones((2, 3), "float32")
    shift, mask = np.array(1, "float32"), np.ones(2, bool)
    for a, b in zip(found(x, shift, mask), expected(x, shift, mask), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_tensor_of_what_failed_is_of_no_use(saved):
    model, kept = gg.onnx.load(saved[0]), []

    def of(outputs):
        kept.append(outputs["y"] * 2)
        raise KeyError("no")

    with pytest.raises(KeyError):
        gg.onnx.differentiate(model, of, "x")
    with model.graph, pytest.raises(gg.GraphError, match="belongs to <graph 'g, undone'"):
        kept[0] + 1
