"""Regions and their rules in a model: other runtimes compute its values, and loading it gives the
marks back."""

import numpy as np
import pytest

import graphgrad as gg

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

X = np.float32([[0.3, -1.2, 2.0], [1.5, 0.1, -0.4]])


def halved(site, dy):
    """By the own derivative, squashed where x is positive, and what lies inside."""
    (x,), (dx,) = site.inputs, site.default(dy)
    return gg.where(x > 0, gg.tanh(dx), site.attrs["slope"] * dy)


def network(rules=True):
    """A region that a closure answers for, and one around another."""
    x = gg.placeholder(("N", 3), "float32", name="x")
    w = gg.variable(np.linspace(-1, 1, 9, dtype="float32").reshape(3, 3), name="w")
    first = gg.override_gradient(halved if rules else "Identity", slope=2.0)
    with first if rules else gg.name_scope("first"):
        h = gg.sin(gg.tanh(x)) * gg.tanh(x)
    with gg.override_gradient(gg.rules.clip_norm(0.5)) if rules else gg.name_scope("clipped"):
        k = h @ w
        with gg.override_gradient(gg.rules.guided()) if rules else gg.name_scope("guided"):
            k = gg.nn.relu(k)
        y = k + 1
    return x, w, y


def derivatives(x, w, y):
    """Values and gradients of two orders, as a function."""
    with y.graph:
        first = gg.gradients(gg.sum(y * y), [x, w])
        second = gg.gradients(gg.sum(first[0] * first[0]), [x, w])
    return gg.compile(x, [y, *first, *second], backend="numpy")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def written(path):
    with gg.Graph():
        x, w, y = network()
        f = gg.compile(x, {"y": y}, backend="numpy")
    gg.onnx.export(f, path, marks=True)
    return x, w, y


def test_a_model_with_marks_is_a_model_to_others(path):
    x, w, y = written(path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [n.domain for n in model.graph.node if n.domain] == ["graphgrad.region"] * 2
    (found,) = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": X})
    np.testing.assert_allclose(found, derivatives(x, w, y)(X)[0], rtol=1e-6)


@pytest.mark.parametrize("times", [1, 2])
def test_loading_gives_the_marks_back_at_every_order(times, path):
    x, w, y = written(path)
    wanted = derivatives(x, w, y)(X)
    for i in range(times):
        model = gg.onnx.load(path, trainable=True)
        x, y, w = model.inputs["x"], model.outputs["y"], model.graph.variables[0]
        if i + 1 < times:
            gg.onnx.export(gg.compile(x, {"y": y}), path, marks=True)
    names = [r.name for r in model.graph.regions]
    assert names == ["halved", "clip_norm(limit=0.5)", "guided()"]
    assert [r.parent and r.parent.name for r in model.graph.regions] == [None, None, names[1]]
    assert model.graph.regions[0].attrs == {"slope": 2.0}
    for a, b in zip(derivatives(x, w, y)(X), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    with gg.Graph():
        plain = derivatives(*network(rules=False))(X)
    assert not np.allclose(plain[1], wanted[1], rtol=0.1)


@pytest.mark.parametrize("order", ["again", "through", "error"])
def test_what_a_rule_of_second_order_reads_is_as_it_was(order, path):
    def of_output(site, dy):
        return dy * site.outputs[0]

    with gg.Graph():
        x = gg.placeholder((3,), "float32", name="x")
        with gg.override_gradient(of_output, order=order):
            y = gg.exp(x) * 2
        f = gg.compile(x, {"y": y})
    gg.onnx.export(f, path, marks=True)
    model = gg.onnx.load(path)
    found = []
    for a, b in ((x, y), (model.inputs["x"], model.outputs["y"])):
        with b.graph:
            try:
                second = gg.gradients(gg.sum(gg.gradients(gg.sum(b), a) ** 2), a)
            except gg.GradientError:
                assert order == "error"
                continue
        found.append(gg.compile(a, second)(X[0]))
    assert len(found) == (0 if order == "error" else 2)
    if found:
        np.testing.assert_allclose(*found, rtol=1e-6)


def test_what_marks_cannot_say_is_refused(path):
    x = gg.placeholder((3,), "float32", name="x")
    beside = gg.placeholder((3,), "float32", name="beside")
    with gg.override_gradient(lambda site, dy: dy * beside):
        y = gg.exp(x)
    with gg.gradient_override_map({"Sin": "Identity"}):
        z = gg.sin(y)
    with gg.override_gradient(lambda site, dy: dy, tag=object()):
        z = gg.tanh(z)

    def loop(c):
        with gg.override_gradient(lambda site, dy: dy):
            return gg.cos(c)

    z = gg.fori_loop(0, 2, lambda i, c: loop(c), z)
    f = gg.compile([x, beside], {"z": z + beside})
    with pytest.raises(gg.ExportError) as error:
        gg.onnx.export(f, path, marks=True)
    for part in ("which is neither", "by its op type", "are not JSON", "in a loop or a branch"):
        assert part in str(error.value)
    t, _, out = network()
    with pytest.raises(gg.ExportError, match="part of a gradient"):
        gg.onnx.export(gg.compile(t, gg.gradients(gg.sum(out), t)), path, marks=True)
    v = gg.variable(1.0)
    trains = gg.compile(x, {"y": y}, updates={v: v + 1})
    with pytest.raises(gg.ExportError, match="without updates"):
        gg.onnx.export(trains, path, marks=True)
    assert not path.exists()
