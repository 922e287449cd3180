"""Programs of XLA in files: what graphgrad computes, where graphgrad is not."""

import json
import re
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

from .. import opens
from ..each import together
from ..typed import beside_others
from .test_jax_functions import X, expected_orders, model, open_function, training

jax = pytest.importorskip("jax")
pytest.importorskip("flatbuffers")
jax_host = pytest.importorskip("graphgrad.execute.jax.host")
jnp = jax.numpy

RECIPE = Path(__file__).parents[2] / "docs" / "jax.md"


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "step.zip"


def test_training_from_a_file_is_the_training_of_the_function(path):
    """Batches of any length, draws that go by the count of runs, Adam's moments."""
    rng = np.random.default_rng(0)
    with gg.Graph(seed=3):
        x, y = gg.placeholder(("N", 4), name="x"), gg.placeholder(("N",), name="y")
        w = gg.variable(rng.normal(size=4), name="dense/w")
        with gg.override_gradient(lambda site, dy: 3.0 * dy):
            h = gg.sign(w)
        noise = gg.sum(gg.random.uniform((2,)))
        loss = gg.mean((x @ (h + w) - y) ** 2) + noise
        updates = gg.optimizers.Adam(1e-2).updates([w], gg.gradients(loss, [w]))
        step = gg.compile([x, y], {"loss": loss, "none": None}, updates=updates, backend="numpy")
    step.export_stablehlo(path, platforms=["cpu", "cuda"])
    file = gg.interop.load_stablehlo(path)
    assert file.about["platforms"] == ["cpu", "cuda"]
    assert file.about["inputs"] == {"x": "float64[N, 4]", "y": "float64[N]"}
    call, state = jax.jit(file.call, donate_argnums=1), file.state
    for n in (3, 5):
        batch = rng.normal(size=(n, 4)), rng.normal(size=n)
        outputs, state = call(batch, state)
        expected = step(*batch)
        assert outputs["none"] is None
        np.testing.assert_allclose(outputs["loss"], expected["loss"], rtol=1e-13)
    for name, value in step.state_tree().items():
        np.testing.assert_allclose(state[name], value, rtol=1e-12)
    with pytest.raises(TypeError, match=r"takes 2 arrays \(x, y\), got 1"):
        call([batch[0]], state)


def test_a_file_is_differentiated_by_the_rules_as_often_as_was_asked(path):
    with gg.Graph():
        x, _, loss = model()
        gg.compile(x, loss).export_stablehlo(path, 2, shapes={"x": (3,)})
    fn, state, _ = gg.interop.load_stablehlo(path)
    grad = jax.grad(lambda x, s: fn({"x": x}, s)[0], (0, 1))
    total = lambda g: lambda x, s: sum(jnp.sum(v) for v in jax.tree.leaves(g(x, s)))  # noqa: E731
    again = jax.grad(total(grad), (0, 1))
    found = jax.tree.leaves([grad(X, state), again(X, state)])
    for got, wanted in zip(found, expected_orders(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(total(again))(X, state)


def test_lengths_that_are_not_named_are_said_when_it_is_exported(path):
    with gg.Graph():
        x, y = gg.placeholder((None, 2), name="x"), gg.placeholder((None, 2), name="y")
        f = gg.compile([x, y], gg.sum((x - y) ** 2))
    with pytest.raises(gg.ExportError, match=r"(?s)Subtract.* built at test_stablehlo.*shapes="):
        f.export_stablehlo(path)
    assert not path.exists()
    f.export_stablehlo(path, shapes={x: ("n", 2), "y": ("n", 2)})
    call = gg.interop.load_stablehlo(path).call
    for n in (1, 4):
        ones = np.ones((n, 2))
        assert call([3.0 * ones, ones])[0] == f(3.0 * ones, ones) == 8 * n
    with pytest.raises(ValueError, match="polymorphic shapes"):
        call([ones, ones[:1]])


@together(
    [
        ({"z": (1, 2)}, "no input is 'z'. There are: x, y"),
        ({"x": (1, 3)}, r"'x' .* cannot have shape \(1, 3\)"),
        ({"x": (1,)}, r"'x' .* cannot have shape \(1,\)"),
        ({"x": ("n", "m")}, "'x' .* cannot have shape"),
        (
            {"x": (3, 2), "y": (4,)},
            "length 'N' is 3 in the shape of 'x', and 4 in the shape of 'y'",
        ),
    ]
)
def test_shapes_that_cannot_be_are_errors(shapes, said, path):
    with gg.Graph():
        x, y = gg.placeholder(("N", 2), name="x"), gg.placeholder(("N",), name="y")
        f = gg.compile([x, y], gg.sum(x) + gg.sum(y))
    with pytest.raises(gg.ShapeError, match=said):
        f.export_stablehlo(path, shapes=shapes)


def test_one_name_with_a_number_says_all_lengths_of_that_name(path):
    with gg.Graph():
        x, y = gg.placeholder(("N", 2), name="x"), gg.placeholder(("N",), name="y")
        f = gg.compile([x, y], gg.mean(x, 1) + y)
    f.export_stablehlo(path, shapes={x: (3, 2)})
    about = gg.interop.load_stablehlo(path).about
    assert about["inputs"] == {"x": "float64[3, 2]", "y": "float64[3]"}


def test_outputs_of_one_node_are_inputs_by_their_own_names(path):
    first, second = gg.split(gg.placeholder((4,), name="x"), 2)
    f = gg.compile([first, second], first - second)
    f.export_stablehlo(path)
    call, _, about = gg.interop.load_stablehlo(path)
    (a, b) = about["inputs"]
    assert call({a: np.ones(2), b: np.zeros(2)})[0].tolist() == [1.0, 1.0]


def test_names_of_lengths_that_jax_cannot_say_get_others(path):
    x, y = gg.placeholder(("max", "batch size", "d0"), name="x"), gg.placeholder((None,), name="y")
    f = gg.compile([x, y], [gg.sum(x, 0), gg.sum(y)])
    f.export_stablehlo(path)
    (a, b), _ = gg.interop.load_stablehlo(path).call([np.ones((4, 2, 3)), np.ones(5)])
    np.testing.assert_array_equal(a, np.full((2, 3), 4.0))
    assert b == 5.0


def test_what_cannot_be_in_a_file_is_named(path):
    x = gg.placeholder((2,), name="x")
    y = gg.special.dawsn(x)
    z = gg.while_loop(lambda a: a < 3.0, lambda a: a + 1.0, gg.sum(x), max_trips=4)
    f = gg.compile(x, [y, gg.gradients(z, x)])
    with pytest.raises(gg.ExportError, match=r"(?s)cannot call the host.*, built at test_stable"):
        f.export_stablehlo(path)
    assert jax.config.jax_include_full_tracebacks_in_locations, "as it was, and is by default"
    assert jax_host.CALLED.get() is None
    point = namedtuple("point", "a b")
    with pytest.raises(gg.ExportError, match="point: a file cannot store a class"):
        gg.compile(x, {"both": point(x, y)}).export_stablehlo(path)
    with pytest.raises(ValueError, match="the number of times"):
        f.export_stablehlo(path, -1)
    assert not path.exists()


def test_a_file_has_the_same_bytes_for_the_same_function_and_no_folders(path, tmp_path):
    step, again = training(), training()
    step.export_stablehlo(path)
    again.export_stablehlo(tmp_path / "again.zip")
    assert path.read_bytes() == (tmp_path / "again.zip").read_bytes()
    assert str(Path(__file__).parent).encode() not in path.read_bytes()
    assert b"test_jax_functions.py:" in path.read_bytes()  # nodes have their lines


def test_single_precision_runs_without_64_bits(path):
    with gg.Graph():
        x, _, loss = model()
        f = gg.compile(x, loss)
    f.export_stablehlo(path, 1, dtype="float32")
    call, state, about = gg.interop.load_stablehlo(path)
    assert (about["64 bits"], state["w"].dtype) == (False, np.float32)
    with jax.enable_x64(False):
        found = jax.grad(lambda x: call([x], state)[0])(jnp.asarray(X, "float32"))
    np.testing.assert_allclose(found, expected_orders()[0], rtol=1e-5)


def test_64_bits_that_are_off_are_an_error(path):
    f = training()
    f.export_stablehlo(path)
    call, state, _ = gg.interop.load_stablehlo(path)
    with jax.enable_x64(False), pytest.raises(gg.DTypeError, match="jax_enable_x64"):
        call([X], state)


def test_bfloat16_is_kept(path):
    pytest.importorskip("ml_dtypes")
    w = gg.variable([1.0, 2.5], "bfloat16", name="w")
    f = gg.compile([], gg.sum(w))
    f.export_stablehlo(path)
    call, state, _ = gg.interop.load_stablehlo(path)
    assert state["w"].dtype == "bfloat16"
    assert call((), state)[0] == 3.5


@pytest.mark.parametrize("package", ["jax", "flatbuffers"])
def test_without_a_package_the_error_says_what_to_install(package, path, monkeypatch):
    f = gg.compile([], gg.constant(1.0))
    monkeypatch.delitem(sys.modules, "graphgrad.interop.jax_export", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    for act in (lambda: f.export_stablehlo(path), lambda: gg.interop.load_stablehlo(path)):
        with pytest.raises(ImportError, match=rf"{package}.*pip install 'graphgrad\[jax\]'"):
            act()


def test_what_is_no_such_file_is_an_error(path, tmp_path):
    v = gg.variable(np.ones(2), name="v")
    gg.compile([], gg.exp(v)).export_stablehlo(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    def refused(said, **changed):
        wrong = tmp_path / "wrong.zip"
        with zipfile.ZipFile(wrong, "w") as archive:
            for name, data in {**members, **changed}.items():
                archive.writestr(name, data)
        with pytest.raises(gg.FileError, match=rf"wrong\.zip: .*{said}"):
            gg.interop.load_stablehlo(wrong)

    about = json.loads(members["about.json"])
    refused("members", other=b"")
    refused("not a file of export_stablehlo", **{"about.json": b"{}"})
    refused("version 2", **{"about.json": json.dumps({**about, "version": 2})})
    refused("", **{"about.json": b"{"})
    refused("", **{"function.bin": b"\0" * 64})
    for state in ({"u": ["float64", 2]}, {"v": ["float64", 3]}, {"v": ["float32", 2]}):
        refused("[uv]", **{"about.json": json.dumps({**about, "state": state})})
    (tmp_path / "wrong.zip").write_bytes(path.read_bytes()[:-30])
    with pytest.raises(gg.FileError, match=r"wrong\.zip"):
        gg.interop.load_stablehlo(tmp_path / "wrong.zip")
    with pytest.raises(FileNotFoundError):
        gg.interop.load_stablehlo(tmp_path / "none.zip")


def test_what_passes_mypy_runs(path, tmp_path):
    assert beside_others.in_jax([np.ones((2, 3))])["w"].tolist() == [0.8, 0.8, 0.8]
    assert beside_others.in_a_file(path)["gradients"] == 1
    assert beside_others.kept(tmp_path).state["w"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.ci
def test_what_the_document_of_jax_shows_runs(tmp_path, monkeypatch):
    """Its blocks after one another, the last one without graphgrad; numbers as graphgrad's own."""
    monkeypatch.chdir(tmp_path)
    names = {}
    try:
        exec("\n".join(re.findall(r"```python\n(.*?)```", RECIPE.read_text(), re.DOTALL)), names)
    finally:
        jax.config.update("jax_enable_x64", False)
    assert np.abs(names["slope"]["w"]).max() > 0, "signs have a gradient by the rule alone"
    (norm, dnorm) = names["f"](np.array([3.1, 3.9]))
    np.testing.assert_allclose([norm, *dnorm], [5.0, 0.6, 0.8])
    own = names["step"].call({"x": np.ones((4, 3)), "y": np.ones(4)}, names["state"])
    assert own[0] == pytest.approx(names["value"])


SCRIPT = """
import sys
import numpy as np
{recipe}
losses = []
for x, y in zip(*np.load("batches.npz").values()):
    loss, state = step.call({{"pixels": x, "labels": y}}, state)
    losses.append(loss)
assert not [m for m in sys.modules if m.startswith("graphgrad")]
np.savez("found.npz", losses=losses, **{{n: state[n] for n in ("W1", "b2", "W3")}})
"""


@pytest.mark.ci
def test_the_demos_step_runs_without_graphgrad(tmp_path):
    """50 steps of the binary network with its straight-through rule, by the recipe of the docs."""
    pytest.importorskip("sklearn")
    from graphgrad.demo.model import binary_net
    from graphgrad.demo.training import initial_state

    rng = np.random.default_rng(0)
    with gg.Graph():
        net = binary_net(16)
        params = list(net.params.values())
        updates = gg.optimizers.Adam(1e-2).updates(params, gg.gradients(net.loss, params))
        state = initial_state(net, 0)
        step = gg.compile([net.pixels, net.labels], net.loss, updates=updates, state=state)
        step.export_stablehlo(tmp_path / "step.zip")
    pixels, labels = rng.normal(size=(50, 32, 64)), rng.integers(0, 10, size=(50, 32))
    np.savez(tmp_path / "batches.npz", pixels=pixels, labels=labels)
    recipe = RECIPE.read_text().partition("```python\n# without graphgrad\n")[2].partition("```")[0]
    script = SCRIPT.format(recipe=recipe)
    subprocess.run([sys.executable, "-I", "-c", script], cwd=tmp_path, check=True, timeout=300)
    found = np.load(tmp_path / "found.npz")
    losses = [step(x, y) for x, y in zip(pixels, labels, strict=True)]
    assert losses[-1] != losses[0]
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-12)
    for name in ("W1", "b2", "W3"):
        np.testing.assert_allclose(found[name], state[net.params[name]], atol=1e-12)


def test_another_platform_is_refused(tmp_path):
    x = gg.placeholder((2,))
    f = gg.compile(x, x * 2.0)
    with pytest.raises(ValueError, match=r"cpu, cuda, rocm, tpu, got 'tpu9'. Did you mean 'tpu'"):
        f.export_stablehlo(tmp_path / "f.zip", platforms=["tpu9"])
    with pytest.raises(TypeError, match=r"a list of names, got 'cpu'; write \['cpu'\]"):
        f.export_stablehlo(tmp_path / "f.zip", platforms="cpu")


def test_open_lengths_stay_open_in_a_file_with_its_gradient(path):
    f, slopes = open_function()
    f.export_stablehlo(path, gradients=1)
    file = gg.interop.load_stablehlo(path)
    assert file.about["inputs"]["v"] == "float64[2*N + 1]"
    for n in opens.LENGTHS:
        given = opens.arrays(n)
        np.testing.assert_allclose(file.call(given)[0], f(*given), rtol=1e-10)
        found = jax.grad(lambda given: file.call(given)[0])(given)
        for a, b in zip(found, slopes(*given), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    with pytest.raises(ValueError, match="polymorphic shapes"):
        file.call([given[0], given[1][1:], given[2]])


def test_a_function_is_exported_with_symbols_that_jax_made():
    f, _ = open_function()
    scope = jax.export.SymbolicScope()
    struct = lambda shape: jax.ShapeDtypeStruct(  # noqa: E731
        jax.export.symbolic_shape(shape, scope=scope), np.float64
    )
    fn = jax.jit(gg.interop.to_jax(f))
    made = jax.export.export(fn)(struct("b, 3"), struct("2*b+1"), struct("4"))
    given = opens.arrays(3)
    np.testing.assert_allclose(made.call(*given), f(*given), rtol=1e-10)
    with pytest.raises(gg.ShapeError, match=r"length '2\*N \+ 1' is c in v:0, and 2\*b \+ 1 where"):
        jax.export.export(fn)(struct("b, 3"), struct("c"), struct("4"))
