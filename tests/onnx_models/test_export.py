"""What is exported, run in onnxruntime: networks with their overrides, names, state, refusals."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.tree import flatten
from graphgrad.extend import Op, apply

from .. import opens
from .networks import MODELS

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


@pytest.fixture(autouse=True)
def graph():
    with gg.Graph() as g:
        yield g


def session(path):
    """It, without a warning for each input that has a default."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, ["CPUExecutionProvider"])


def run(path, arrays, **state):
    """{output: array}."""
    found = session(path)
    names = [i.name for i in found.get_inputs()]
    outputs = [o.name for o in found.get_outputs()]
    feeds = {n: np.asarray(a) for n, a in (dict(zip(names, arrays)) | state).items()}
    return dict(zip(outputs, found.run(None, feeds), strict=True))


def exported(f, path, **options):
    """The model, checked."""
    gg.onnx.export(f, path, **options)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def built(name, on=True, **options):
    with gg.Graph():
        m = MODELS[name](on, **options)
        return m, gg.compile(m.inputs, m.outputs, updates=m.updates, backend="numpy")


def error_of(found, exact):
    """The greatest difference, as a share of the greatest number."""
    pairs = zip(found, exact, strict=True)
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


@pytest.mark.parametrize("name", MODELS)
def test_a_network_computes_what_it_does_here_with_its_rules(name, path):
    m, f = built(name)
    exported(f, path)
    ours = flatten(f(*m.arrays))
    theirs = list(run(path, m.arrays).values())[: len(ours)]
    wide, exact = built(name, dtype="float64")
    exact = flatten(exact(*wide.arrays))
    assert error_of(theirs, exact) <= 2 * error_of(ours, exact) + 1e-6
    m, without = built(name, on=False)
    assert error_of(flatten(without(*m.arrays)), exact) > 0.01, "the rule matters"


@pytest.mark.parametrize("name", ["classifier", "digits"])
def test_a_rule_trains_a_network_in_a_runtime_without_gradients(name, path):
    m, f = built(name)
    updates = json.loads(metadata(exported(f, path))["graphgrad.updates"])
    trained, state, losses = session(path), {}, []
    names = [i.name for i in trained.get_inputs()][: len(m.arrays)]
    for _ in range(50):
        found = trained.run(["loss", *updates.values()], dict(zip(names, m.arrays)) | state)
        state = dict(zip(updates, found[1:], strict=True))
        losses.append([found[0], f(*m.arrays)["loss"]])
    theirs, ours = np.transpose(losses)
    np.testing.assert_allclose(theirs, ours, atol=1e-5)
    assert ours[-1] < 0.6 * ours[0]


def metadata(proto):
    return {p.key: p.value for p in proto.metadata_props}


# --- names and state ---------------------------------------------------------------------------


def test_inputs_outputs_and_lengths_have_their_names(path):
    x = gg.placeholder(("batch", None, 2), "float32", name="in/x")
    named, other = gg.identity(x, name="h"), x * 2
    f = gg.compile(x, {"a": named, "b": [other, {"c": x}]})
    model = exported(f, path)
    (given,) = model.graph.input
    dims = given.type.tensor_type.shape.dim
    assert (given.name, dims[0].dim_param, dims[2].dim_value) == ("in/x", "batch", 2)
    assert (dims[1].HasField("dim_value"), dims[1].dim_param) == (False, "in/x.1")
    assert [o.name for o in model.graph.output] == ["a", "b/0", "b/1/c"]
    assert json.loads(metadata(model)["graphgrad.outputs"]) == {
        "a": "a",
        "b": ["b/0", {"c": "b/1/c"}],
    }


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        (lambda x, h: h, ["h"]),
        (lambda x, h: x + 1, ["output"]),
        (lambda x, h: [x, h, None, h], ["x_2", "h", "h_2"]),
    ],
)
def test_outputs_without_a_key_are_called_as_their_tensors(outputs, names, path):
    x = gg.placeholder((2,), "float32", name="x")
    h = gg.identity(x * 3, name="h")
    model = exported(gg.compile(x, outputs(x, h)), path)
    assert [o.name for o in model.graph.output] == names
    assert len(run(path, [np.float32([1, 2])])) == len(names)


def test_variables_are_inputs_where_they_are_written_and_initializers_else(path):
    x = gg.placeholder((), "float32", name="x")
    w, c = gg.variable(np.float32(2), name="w"), gg.variable(np.float32(10), name="c")
    f = gg.compile(x, {"y": w * x + c}, updates={w: w + x})
    w.graph.state[w] = np.float32(3)
    model = exported(f, path)
    assert [i.name for i in model.graph.input] == ["x", "w"]
    assert {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer} == {
        "w": 3,
        "c": 10,
    }
    assert json.loads(metadata(model)["graphgrad.variables"]) == {"w": "w", "c": "c"}
    assert run(path, [np.float32(1)]) == {"y": 13, "w/next": 4}
    assert run(path, [np.float32(1)], w=np.float32(4)) == {"y": 14, "w/next": 5}


def test_draws_without_a_seed_go_by_the_number_of_the_run(path):
    with gg.Graph(seed=3):
        y = gg.random.uniform((4,), dtype="float32")
        f = gg.compile([], {"y": y}, backend="numpy")
    exported(f, path)
    first = run(path, [])
    second = run(path, [], runs=first["runs/next"])
    for found in (first, second):
        np.testing.assert_array_equal(found["y"], f()["y"])
    assert (first["y"] != second["y"]).all()


def test_metadata_say_what_a_node_is_of_and_by_which_rule(path):
    x = gg.placeholder((2,), "float32", name="x")
    with gg.override_gradient(gg.rules.clip_value(1.0)):
        y = gg.sin(x)
    model = exported(gg.compile(x, gg.gradients(gg.sum(y), x)), path)
    told = [metadata(node) for node in model.graph.node]
    assert any("clip_value" in t.get("graphgrad.rule", "") for t in told)
    assert any(t.get("graphgrad.of", "").startswith("Sin") for t in told)
    assert all("test_export.py" in t["graphgrad.where"] for t in told if t)


# --- weights, dtypes, refusals -----------------------------------------------------------------


def test_weights_go_into_a_file_beside(path):
    x = gg.placeholder((64,), "float32", name="x")
    w = gg.variable(np.arange(4096, dtype="float32").reshape(64, 64), name="w")
    f = gg.compile(x, {"y": x @ w, "z": x + np.float32(1)})
    exported(f, path)
    inside = path.stat().st_size
    exported(f, path, external=True)
    assert path.stat().st_size < inside - 16000
    assert path.with_name("model.onnx.data").stat().st_size == 64 * 64 * 4
    feed = np.linspace(0, 1, 64, dtype="float32")
    np.testing.assert_allclose(run(path, [feed])["y"], f(feed)["y"], rtol=1e-6)


def test_float64_without_kernels_is_an_error_that_says_what_to_do(path):
    x = gg.placeholder((2,), name="x")
    f = gg.compile(x, {"y": gg.arctan(x) + gg.exp(x)})
    with pytest.raises(gg.ExportError, match=r"no float64 kernel for Atan; .*dtype=\"float32\""):
        gg.onnx.export(f, path)
    assert not path.exists()
    gg.onnx.export(f, path, dtype="float64")
    assert onnx.load(path).graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    exported(f, path, dtype="float32")
    np.testing.assert_allclose(run(path, [np.float32([0, 1])])["y"], f([0, 1])["y"], rtol=1e-6)
    with pytest.raises(gg.ExportError, match="float16"):
        gg.onnx.export(f, path, dtype="float16")


def test_all_that_is_refused_is_told_at_once(path):
    x = gg.placeholder((2,), "float32", name="x")
    mine = gg.py_function(lambda a: a, [x], [x.type])
    f = gg.compile(x, [mine, gg.real(gg.cast(x, "complex64") * 1j)], optimize=False)
    with pytest.raises(gg.ExportError) as error:
        gg.onnx.export(f, path)
    text = str(error.value)
    assert text.startswith("5 nodes cannot be written:")
    assert text.count("no operators for complex numbers") == 4
    assert "calls a Python function" in text
    assert not path.exists()
    with pytest.raises(TypeError, match=r"what gg.compile returns"):
        gg.onnx.export(lambda: None, path)


def test_bfloat16_is_computed_in_float32(path):
    pytest.importorskip("ml_dtypes")
    x = gg.placeholder((3, 4), "float32", name="x")
    w = gg.variable(gg.bfloat16.type(1) * np.linspace(-1, 1, 8).reshape(4, 2), "bfloat16")
    y = gg.tanh(gg.cast(x, "bfloat16") @ w)
    f = gg.compile(x, {"y": gg.cast(y, "float32")}, backend="numpy")
    exported(f, path)
    feed = np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(run(path, [feed])["y"], f(feed)["y"])


# --- control flow ------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_a_choice_is_an_if(sign, path):
    x = gg.placeholder((3,), "float32", name="x")
    y = gg.cond(gg.sum(x) > 0, lambda: x * x, lambda: -3 * x)
    f = gg.compile(x, {"y": y, "dx": gg.gradients(gg.sum(y), x)})
    model = exported(f, path)
    assert "If" in {node.op_type for node in model.graph.node}
    feed = sign * np.float32([1, 2, 3])
    for name, value in run(path, [feed]).items():
        np.testing.assert_allclose(value, f(feed)[name], rtol=1e-6)


@pytest.mark.parametrize("rows", [0, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_of_any_number_of_rows_is_a_scan(rows, reverse, path):
    xs = gg.placeholder(("N", 2), "float32", name="xs")
    w = gg.variable(np.float32([[0.5, 1], [0.2, -1]]), name="w")
    last, made = gg.scan(
        lambda c, x: (gg.tanh(c @ w + x), c * x), gg.ones(2, "float32"), xs, reverse=reverse
    )
    loss = gg.sum(made * made) + gg.sum(last)
    f = gg.compile(xs, {"last": last, "made": made, "dw": gg.gradients(loss, w)})
    exported(f, path)
    feed = np.random.default_rng(0).normal(size=(rows, 2)).astype("float32")
    wanted = f(feed)
    for name, value in run(path, [feed]).items():
        assert value.shape == wanted[name].shape
        np.testing.assert_allclose(value, wanted[name], rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("trips", [None, 7])
def test_a_while_loop_is_a_loop_and_one_run_too_many_an_error(trips, path):
    x = gg.placeholder((), "float32", name="x")
    start = gg.constant(np.float32(1))
    y = gg.while_loop(lambda y: y < 100, lambda y: y * x, start, max_trips=trips)
    f = gg.compile(x, {"y": y, "dx": gg.gradients(y, x)})
    exported(f, path)
    for feed in np.float32([3, 200]):
        wanted = f(feed)
        for name, value in run(path, [feed]).items():
            assert float(value) == pytest.approx(float(wanted[name]))
    if trips:
        with pytest.raises(Exception, match="out of data bounds"):
            run(path, [np.float32(1.1)])


def tried(path, f, *arrays):
    """Each output in the runtime is the one here."""
    exported(f, path)
    for found, want in zip(run(path, arrays).values(), flatten(f(*arrays)), strict=True):
        assert (found.dtype, found.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(found, want, rtol=1e-10)


def test_lengths_may_depend_on_values(path):
    x = gg.placeholder((2, 3), name="x")
    a = gg.placeholder((3,), name="a")
    outputs = {
        "places": gg.nonzero(x),
        "picked": x[x > 1],
        "counts": gg.bincount(gg.cast(a, "int64")),
        "repeated": gg.repeat(x[0], gg.cast(a, "int64")),
    }
    f = gg.compile([x, a], outputs, backend="numpy")
    tried(path, f, np.array([[0.0, 1, 2], [3, 0, 0]]), np.array([1.0, 3, 2]))


@pytest.mark.ci
def test_draws_that_are_tried_again_are_the_same_draws(path):
    a = gg.placeholder((3,), name="a")
    gamma = gg.random.gamma((3,), a, seed=3)
    outputs = {
        "gamma": gamma,
        "slope": gg.gradients(gg.sum(gamma), a),
        "poisson": gg.random.poisson((3,), a, seed=3),
        "permuted": gg.random.permutation(6, seed=1),
    }
    tried(path, gg.compile(a, outputs, backend="numpy"), np.array([0.5, 3, 40]))


# --- ops of others -----------------------------------------------------------------------------


class Centred(Op):
    """y = x - mean of x along an axis: with no word of ONNX, and no gradient."""

    axis: int
    type = "CentredForOnnx"

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        mean = xp.mean(x, axis=self.axis, keepdims=True, dtype=x.dtype)
        return xp.where(x > mean, x - mean, 0.0)


class ByLength(Centred):
    """Another number for rows of two."""

    type = "ByLengthForOnnx"

    def kernel(self, xp, x):
        return x * 2 if x.shape[self.axis] == 2 else x


@pytest.mark.parametrize("lengths", [(2, 3), ("N", None)])
def test_an_op_that_says_nothing_is_written_as_its_kernel(lengths, path):
    x = gg.placeholder(lengths, "float32", name="x")
    f = gg.compile(x, {"y": apply(Centred(1), x)}, backend="numpy")
    exported(f, path)
    feed = np.float32([[1, 2, 6], [0, 0, 3]])
    np.testing.assert_allclose(run(path, [feed])["y"], f(feed)["y"], rtol=1e-6)


def test_a_kernel_that_goes_by_an_unknown_length_is_not_guessed(path):
    x = gg.placeholder((2, 2), "float32", name="x")
    exported(gg.compile(x, {"y": apply(ByLength(1), x)}, backend="numpy"), path)
    assert run(path, [np.ones((2, 2), "float32")])["y"].sum() == 8
    path.unlink()
    x = gg.placeholder((2, "N"), "float32")
    with pytest.raises(gg.ExportError, match="depends on unknown lengths"):
        gg.onnx.export(gg.compile(x, {"y": apply(ByLength(1), x)}, backend="numpy"), path)
    assert not path.exists()


@pytest.mark.filterwarnings("ignore")
def test_the_document_runs(tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / "onnx.md").read_text()
    monkeypatch.chdir(tmp_path)
    names = {}
    for title in ("Export a compiled function", "A model with its rules"):
        part = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
        blocks = re.findall(r"```python\n(.*?)```", part, re.DOTALL)
        assert blocks
        for block in blocks:
            exec(block, names)
    assert names["state"]["w"].shape == (2, 1)
    assert [r.name for r in names["again"].graph.regions] == ["guided()"]


def test_open_lengths_are_read_of_the_inputs_that_tell_them(path):
    x, v, rows = opens.placeholders()
    N = x.shape[0]
    outputs = [*opens.moved(x, v), *opens.looped(x, rows), gg.eye(N), x[(N - 1) // 2 :]]
    outputs += gg.gradients(opens.total(outputs), [x, v, rows])
    f = gg.compile([x, v, rows], outputs, backend="numpy")
    model = exported(f, path, dtype="float64")
    said = [
        [d.dim_param or d.dim_value for d in one.type.tensor_type.shape.dim]
        for one in (*model.graph.input, *model.graph.output[:3])
    ]
    assert said == [["N", 3], ["2*N + 1"], [4], ["N", 5], ["6*N + 3"], ["N//2 + 1", "N%2 + 1"]]
    session = ort.InferenceSession(path)
    for n in (*opens.LENGTHS, 8):
        given = opens.arrays(n)
        found = session.run(None, dict(zip(("x", "v", "rows"), given, strict=True)))
        for a, b in zip(found, f(*given), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("name", opens.EQUATED)
def test_lengths_that_count_as_equal_are_checked(name, path):
    x = gg.placeholder(("N", 3), name="x")
    f = gg.compile(x, opens.EQUATED[name](x), backend="numpy")
    exported(f, path, dtype="float64")
    session = ort.InferenceSession(path)
    (found,) = session.run(None, {"x": np.ones((4, 3))})
    np.testing.assert_allclose(found, f(np.ones((4, 3))), rtol=1e-12)
    for n in (1, 3):
        with pytest.raises(Exception, match=r"ONNXRuntimeError.* : FAIL "):
            session.run(None, {"x": np.ones((n, 3))})


@pytest.mark.parametrize("name", opens.BROADCAST)
def test_a_length_of_one_is_broadcast(name, path):
    x = gg.placeholder(("N", 3), name="x")
    f = gg.compile(x, opens.BROADCAST[name](x), backend="numpy")
    exported(f, path, dtype="float64")
    session = ort.InferenceSession(path)
    for n in (1, 2, 4):
        (found,) = session.run(None, {"x": np.ones((n, 3))})
        np.testing.assert_allclose(found, f(np.ones((n, 3))), rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_arithmetic_on_lengths_is_that_of_python(n, path):
    N, M = gg.Length("N"), gg.Length("M")
    v = gg.placeholder((2 * N + 3,), "float32", name="v")
    w = gg.placeholder((N * M + M,), "float32", name="w")
    lengths = [(N - 3) // 2, (N - 3) % 4, gg.Length.max(N, M), gg.Length.min(N - 2, 3 * M), N * M]
    values = gg.stack([0 * gg.sum(v[:1]) + gg.sum(w[:1]) + d for d in lengths])
    exported(gg.compile([v, w], values), path)
    given = {"v": np.zeros(2 * n + 3, "float32"), "w": np.zeros((n + 1) * 4, "float32")}
    (found,) = ort.InferenceSession(path).run(None, given)
    assert found.tolist() == [(n - 3) // 2, (n - 3) % 4, max(n, 4), min(n - 2, 12), 4 * n]


class TimesLength(Op):
    """x times a length."""

    n: object

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        return x * float(self.n)


def test_an_op_that_has_no_form_for_an_open_length_says_which(path):
    x = gg.placeholder(("batch",), "float32", name="x")
    y = apply(TimesLength(x.shape[0]), x)
    with pytest.raises(gg.ExportError, match="needs the length batch: TimesLength has no form"):
        gg.onnx.export(gg.compile(x, y), path)
