"""Compiled functions as Python files that need NumPy alone."""

import collections
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.extend import Op, apply

from .. import opens


@pytest.fixture(autouse=True)
def graph():
    with gg.Graph() as g:
        yield g


@gg.register_gradient("exported/clipped")
def clipped(site, dy):
    """The gradient, clipped."""
    return tuple(gg.clip(dx, -0.01, 0.01) for dx in site.default(dy))


@pytest.fixture
def written(tmp_path):
    """Writes a compiled function, and gives the function of the file and all its names."""

    def write(f, name="step"):
        gg.export_numpy(f, tmp_path / f"{name}.py")
        found = runpy.run_path(str(tmp_path / f"{name}.py"))
        return found[name], found

    return write


def same(found, wanted, tolerance=1e-12):
    """Structure, dtype, shape and values."""
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        found, wanted = list(found.values()), list(wanted.values())
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        assert isinstance(found, list) is isinstance(wanted, list)
        for a, b in zip(found, wanted, strict=True):
            same(a, b, tolerance)
        return
    if wanted is None:
        assert found is None
        return
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def model(batch="N"):
    """A step of training through an override."""
    rng = np.random.default_rng(0)
    x, y = gg.placeholder((batch, 3), name="x"), gg.placeholder((batch,), "int64", name="y")
    w = gg.variable(rng.normal(size=(3, 8)), name="layer/w")
    v = gg.variable(rng.normal(size=(8, 4)), name="v")
    with gg.override_gradient("exported/clipped"):
        h = gg.tanh(x @ w)
    logits = h @ v
    loss = gg.mean(gg.nn.cross_entropy(logits, y))
    adam = gg.optimizers.Adam(1e-2)
    updates = adam.updates([w, v], gg.gradients(loss, [w, v]))
    return gg.compile([x, y], {"loss": loss, "logits": logits}, updates=updates)


BATCH = np.random.default_rng(1).normal(size=(5, 3)), np.array([0, 3, 1, 1, 2])


def test_training_goes_on_in_the_file_as_at_home(written, graph):
    step = model()
    step(*BATCH)
    there, names = written(step)
    state = names["STATE"]
    same(state, {n: graph.state[n] for n in state})
    for _ in range(4):
        found, state = there(*BATCH, state)
        same(found, step(*BATCH), 1e-11)
    same(state, {n: graph.state[n] for n in state}, 1e-11)
    same(there(*(a[:2] for a in BATCH), state)[0], step(*(a[:2] for a in BATCH)), 1e-11)


def test_the_file_runs_where_there_is_no_graphgrad(tmp_path, graph):
    step = model()
    gg.export_numpy(step, tmp_path / "step.py")
    np.savez(tmp_path / "batch.npz", *BATCH)
    program = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("graphgrad", "scipy", "jax", "llvmlite", "networkx"):
            raise AssertionError(f"it imports {{name}}")
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, {str(tmp_path)!r})
import numpy as np, step
outputs, state = step.step(*np.load("batch.npz").values(), step.STATE)
assert "graphgrad" not in sys.modules
print(repr(float(outputs["loss"])), repr(float(state["layer/w"].sum())))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    loss = float(step(*BATCH)["loss"])
    found = [float(x) for x in done.stdout.split()]
    np.testing.assert_allclose(found, [loss, graph.state["layer/w"].sum()], rtol=1e-12)


def test_the_bytes_depend_on_nothing_but_program_and_values(tmp_path):
    files = []
    for folder in ("a", "b"):
        with gg.Graph():
            (tmp_path / folder).mkdir()
            gg.export_numpy(model(), tmp_path / folder / "step.py")
        files.append([p.read_bytes() for p in sorted((tmp_path / folder).iterdir())])
    assert files[0] == files[1]
    assert len(files[0]) == 2
    text = files[0][1].decode()
    assert "graphgrad" not in text.replace("graphgrad.export_numpy", "")
    assert str(tmp_path) not in text


def test_the_file_beside_is_the_one_that_was_written_with_it(written, tmp_path):
    np.savez(tmp_path / "step.npz", mine=1.0)  # of somebody else, and stays
    mine = (tmp_path / "step.npz").read_bytes()
    x = gg.placeholder((), name="x")
    written(gg.compile(x, x * np.arange(20.0)))
    before = (tmp_path / "step.arrays.npz").read_bytes()
    f, _ = written(gg.compile(x, x * np.arange(20.0, 40.0)))
    same(f(2.0), np.arange(40.0, 80.0, 2.0))
    (tmp_path / "step.arrays.npz").write_bytes(before)
    with pytest.raises(ImportError, match=r"step.arrays.npz is not the file .* with .*step.py"):
        runpy.run_path(str(tmp_path / "step.py"))
    (tmp_path / "step.arrays.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"step\.arrays\.npz"):
        runpy.run_path(str(tmp_path / "step.py"))
    assert (tmp_path / "step.npz").read_bytes() == mine


@pytest.mark.parametrize("name", ["C", "C_2", "ARRAYS", "_file", "c"])
def test_a_variable_that_is_only_written_is_apart_from_constants(written, name):
    x = gg.placeholder((20,), name="x")
    v = gg.variable(np.arange(20.0), name=name)
    c = gg.constant(-np.arange(20.0), name="c" if name != "c" else "d")
    f = gg.compile(x, x + c, updates={v: x})
    there, names = written(f)
    same(names["STATE"][v.node.name], np.arange(20.0))
    outputs, state = there(np.ones(20), names["STATE"])
    same(outputs, 1.0 - np.arange(20.0))
    same(state[v.node.name], np.ones(20))


def test_the_file_is_read_by_people(written, tmp_path):
    x = gg.placeholder(("N", 3), name="data/x")
    scale = gg.variable(2.0, name="scale")
    y = gg.identity(gg.nn.sigmoid(x) * scale - 1.0, name="y")
    written(gg.compile(x, [y, gg.gradients(gg.sum(y), x)], backend="numpy"), "slope")
    text = (tmp_path / "slope.py").read_text()
    assert text.startswith('"""slope, written by graphgrad.export_numpy. It needs NumPy alone.\n')
    assert "\nInputs:\n    data/x: float64[N, 3]\n\nVariables:\n    scale: float64[]\n" in text
    assert "def slope(data_x, state=STATE):" in text
    assert "# test_numpy_file.py:" in text
    assert "gradient of" in text
    assert "    multiply = sigmoid * scale\n" in text
    assert "STATE = {\n    'scale': np.array(2.0, np.float64),\n}" in text
    assert not re.search(r"\bxp\b", text)
    assert max(map(len, text.split("\n"))) <= 100


def test_strings_in_long_lines_are_one_piece(written, tmp_path):
    """Names of variables with quotes, commas and brackets, where a line is too long for one."""
    x = gg.placeholder((), name="x")
    names = [f'{i} it\'s ("so"), [\\] {{and}} on, {"and on, " * 9}' for i in range(3)]
    vs = [gg.variable(float(i), name=name) for i, name in enumerate(names)]
    f = gg.compile(x, {name: x + v for name, v in zip(names, vs, strict=True)}, updates={vs[0]: x})
    there, found = written(f)
    assert list(found["STATE"]) == names
    outputs, state = there(1.0, found["STATE"])
    same(outputs, {name: np.array(1.0 + i) for i, name in enumerate(names)})
    assert state[names[0]] == 1.0
    assert [p.name for p in tmp_path.iterdir()] == ["step.py"]  # no arrays, no file beside


def test_what_reads_variables_takes_their_values_or_others(written):
    w = gg.variable([1.0, 2.0], name="w")
    x = gg.placeholder((2,), name="x")
    f = gg.compile(x, x * w)
    f_there, names = written(f)
    same(f_there([3.0, 4.0]), f([3.0, 4.0]))
    same(f_there([3.0, 4.0], {"w": [5.0, 6.0]}), np.array([15.0, 24.0]))
    same(f_there(x=[3.0, 4.0], state=names["STATE"]), f([3.0, 4.0]))


Pair = collections.namedtuple("Pair", "left right")


def test_outputs_keep_their_structure(written):
    x = gg.placeholder((2,), name="x")
    y = {"b": [x + 1.0, None], "a": (x * 2.0,), 3: Pair(x, gg.sum(x))}
    f = gg.compile(x, y)
    there, _ = written(f)
    found = there([1.0, 2.0])
    same(found, f([1.0, 2.0]))
    assert found[3].right == 3.0
    same(written(gg.compile(x, x))[0]([1.0, 2.0]), np.array([1.0, 2.0]))
    same(written(gg.compile(x, {}))[0]([1.0, 2.0]), {})
    with pytest.raises(gg.ExportError, match="have the key <class 'int'>"):
        written(gg.compile(x, {int: x}))


def test_no_output_shares_memory_with_anything(written):
    x = gg.placeholder((2, 2), name="x")
    w = gg.variable(np.ones((2, 2)), name="w")
    c = gg.constant(np.arange(4.0).reshape(2, 2))
    y = x + 1.0
    outputs = [x, x.T, gg.broadcast_to(x[0], (2, 2)), w, c, y, y, y[0], gg.stop_gradient(y)]
    there, _ = written(gg.compile(x, outputs, updates={w: w + x}))
    given = np.ones((2, 2))
    state = {"w": np.ones((2, 2))}
    first, new = there(given, state)
    for array in first:
        array += 100.0
    new["w"] += 100.0
    again, _ = there(given, state)
    assert given.tolist() == state["w"].tolist() == [[1, 1], [1, 1]]
    same(again, [a - 100.0 for a in first])
    for i, a in enumerate(again):
        assert not any(np.shares_memory(a, b) for b in [*again[:i], given, state["w"]])


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (np.ones((2, 4)), ValueError, r"x takes shape \('N', 3\)"),
        (np.ones(3), ValueError, "x takes shape"),
        (np.ones((2, 3), complex), TypeError, "x takes float32, got complex128"),
        (None, TypeError, "x takes float32, got object"),
    ],
)
def test_what_does_not_fit_is_an_error(written, value, error, said):
    x, n = gg.placeholder(("N", 3), "float32", name="x"), gg.placeholder(("N",), "uint8", name="n")
    there, _ = written(gg.compile([x, n], gg.sum(x) + gg.cast(gg.sum(n), "float32")))
    with pytest.raises(error, match=said):
        there(value, np.ones(2, "uint8"))
    with pytest.raises(ValueError, match="length 'N' is 2 in x, and 3 in n"):
        there(np.ones((2, 3)), np.ones(3, "uint8"))
    with pytest.raises(TypeError, match="n takes uint8, got int64"):
        there(np.ones((2, 3)), [1, 300])
    assert there(np.ones((0, 3)), np.ones(0, "uint8")) == 0


def loops():
    """Control flow by name."""
    x = gg.placeholder((3,), name="x")
    n = gg.placeholder((), "int64", name="n")
    s = gg.sum(x)
    yield "cond", gg.cond(s > 0, lambda: (gg.exp(x), s), lambda: (x * s, -s))
    yield (
        "nested",
        gg.cond(s > 0, lambda: gg.cond(s > 1, lambda: x * 2.0, lambda: x), lambda: x * 3.0),
    )
    yield "scan", gg.scan(lambda c, row: (c * row + s, (c, gg.sin(c))), s, x)
    yield "reverse", gg.scan(lambda c, row: (c - row, c * x), x, x, reverse=True)
    yield "counted", gg.scan(lambda c, _: (c * 0.5, None), x, None, length=4)[0]
    yield "empty", gg.scan(lambda c, row: (c + row, c), s, x[:0])
    yield "while", gg.while_loop(lambda c: gg.sum(c) < 20.0, lambda c: c * 1.5, x)
    yield "never", gg.while_loop(lambda c: gg.sum(c) < -9.0, lambda c: c * 1.5, x)
    yield "bounded", gg.while_loop(lambda c: c < 9.0, lambda c: c * 1.5, s, max_trips=30)
    yield "fori", gg.fori_loop(0, 4, lambda i, c: c * x + gg.cast(i, "float64"), x)
    yield "switch", gg.switch(n, [lambda i=i: x * float(i) for i in range(5)])
    yield "associative", gg.associative_scan(lambda a, b: a * b, x)
    yield "map", gg.map(lambda row: gg.cond(row > 0, lambda: row, lambda: row**2), x)


@pytest.mark.parametrize(
    "which",
    [
        *("cond", "nested", "scan", "reverse", "counted", "empty", "while", "never", "bounded"),
        *("fori", "switch", "associative", "map"),
    ],
)
def test_control_flow_and_its_gradient(written, which):
    (y,) = [y for name, y in loops() if name == which]
    g = gg.default_graph()
    x, n = g.tensor("x"), g.tensor("n")
    leaves = [t for t in (y if isinstance(y, tuple) else (y,)) if t is not None]
    leaves = [t for each in leaves for t in (each if isinstance(each, tuple) else (each,))]
    total = sum(gg.sum(t * t) for t in leaves)
    f = gg.compile([x, n], [*leaves, gg.gradients(total, x)], backend="numpy")
    there, _ = written(f)
    for start in ([0.5, -1.0, 2.0], [-0.5, -1.0, 0.25]):
        if which in ("while", "bounded") and sum(start) <= 0:
            continue
        same(there(start, 3), f(np.array(start), np.array(3)))


def test_a_loop_that_does_not_end_says_where(written):
    y = gg.while_loop(lambda c: c > 0.0, lambda c: c + 1.0, gg.placeholder((), name="x"), 5)
    there, _ = written(gg.compile(gg.default_graph().tensor("x"), y))
    with pytest.raises(
        RuntimeError, match=r"at test_numpy_file.py:\d+ is still running after max_trips=5"
    ):
        there(1.0)


def test_random_numbers_are_those_of_the_same_run_at_home(written, graph):
    x = gg.placeholder((4,), name="x")
    seeded = gg.random.normal((3,), seed=7)
    dropped = gg.nn.dropout(x, 0.5)
    inside = gg.cond(gg.sum(x) > 0, lambda: gg.random.uniform((2,)), lambda: gg.zeros((2,)))
    drawn = [gg.random.integers(0, 100, (3,)), gg.random.poisson((3,), 4.0), inside]
    f = gg.compile(x, [seeded, dropped, *drawn, gg.gradients(gg.sum(dropped), x)])
    f(np.ones(4))
    there, names = written(f)
    state = names["STATE"]
    assert state == {"/runs": 1}
    for _ in range(3):
        found, state = there(np.ones(4), state)
        same(found, f(np.ones(4)))
    assert state == {"/runs": 4}


def test_gradients_of_batches_complex_numbers_and_other_dtypes(written):
    x = gg.placeholder((4, 3), name="x")
    z = gg.placeholder((3,), "complex64", name="z")
    i = gg.placeholder((4,), "int8", name="i")
    per = gg.vmap(lambda row: gg.gradients(gg.sum(gg.cumsum(row) ** 3), row))(x)
    outs = [per, gg.gradients(gg.sum(gg.abs(gg.fft.fft(z)) ** 2), z), x[i > 1], i // gg.constant(3)]
    outs += [
        gg.gradients(gg.linalg.slogdet(x.T @ x)[1], x),
        gg.nn.max_pool(x.reshape((1, 4, 3, 1)), 2),
    ]
    f = gg.compile([x, z, i], outs, backend="numpy")
    there, _ = written(f)
    rng = np.random.default_rng(3)
    arrays = rng.normal(size=(4, 3)), (rng.normal(size=3) + 1j).astype("complex64")
    same(there(*arrays, np.arange(4)), f(*arrays, np.arange(4, dtype="int8")), 1e-6)


@pytest.mark.filterwarnings("ignore::graphgrad.base.errors.PerformanceWarning")
def test_what_is_run_for_one_example_after_the_other(written):
    x, n = gg.placeholder((2, 3), name="x"), gg.placeholder((None, 3), name="n")

    def f(row):
        return gg.cond(gg.sum(row) > 0, lambda: row * 2.0, lambda: -row), plus_one(row)

    def plus_one(row):
        return gg.extend.apply(Turned(), row)

    nested = gg.vmap(lambda row: gg.vmap(lambda v: plus_one(gg.stack([v, v])))(row))(x)
    outs = [gg.vmap(f)(x), nested, gg.vmap(plus_one)(n)]
    there, _ = written(gg.compile([x, n], outs))
    for rows in (2, 0):
        arrays = np.array([[1.0, 2.0, 3.0], [-4.0, 1.0, 2.0]]), np.ones((rows, 3))
        same(there(*arrays), gg.compile([x, n], outs)(*arrays))


class Turned(gg.Op):
    """y = x backwards, without a form for batches."""

    def infer(self, x):
        """The type of x."""
        return (x,)

    def kernel(self, xp, x):
        """The rows from the last to the first."""
        return xp.flip(x, axis=0)


class TwiceExported(gg.Op):
    """y = 2 x, of somebody's own."""

    def infer(self, x):
        """The type of x."""
        return (x,)

    def kernel(self, xp, x):
        """With a function of this file."""
        return _times(xp, x, FACTOR)

    def vjp(self, node, dy):
        """2 dy."""
        return (2.0 * dy,)


class CallsExported(gg.Op):
    """Calls functions of this file in all ways, with what is known and what is not."""

    by: float
    both: tuple

    def infer(self, x):
        """The type of x."""
        return (x,)

    def kernel(self, xp, x):
        """By position, by name, starred, with defaults."""
        a = _scaled(xp, x, factor=self.by, flip=True)
        b = _scaled(xp, x, *self.both)
        c = _scaled(xp, factor=x[0], x=x, offset=self.by)
        pairs = [x, 2.0 * x]
        d = _scaled(xp, *pairs)
        return xp.add(xp.add(a, b), xp.subtract(c, d))


class StarredExported(gg.Op):
    """Passes on all its inputs, however many these are, and reads some."""

    def infer(self, *types):
        """The type of the first."""
        return (types[0],)

    def kernel(self, xp, *xs):
        """Starred, by position, and from the end."""
        return xp.add(_scaled(xp, *xs), xs[0] - _times(xp, *xs[-2:]))


def _scaled(xp, x, factor, offset=1.0, flip=False):
    """x times factor, and the offset twice."""
    y = xp.multiply(x, factor)
    if flip:
        y = xp.flip(y, axis=0)
    for _ in range(2):
        y = y + offset
    return y


FACTOR = 2.0


def _times(xp, x, factor):
    return xp.multiply(x, factor)


def test_an_op_of_the_users_own_is_written_too(written):
    x = gg.placeholder((3,), name="x")
    f = gg.compile(x, gg.extend.apply(TwiceExported(), x))
    same(written(f)[0]([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))


def test_functions_are_called_in_the_file_with_what_they_are_called_at_home(written):
    x = gg.placeholder((3,), name="x")
    f = gg.compile(x, gg.extend.apply(CallsExported(3.0, (0.5, 7.0)), x), backend="numpy")
    given = np.array([1.0, -2.0, 4.0])
    x1, x2 = 3.0 * given[::-1] + 2.0, 0.5 * given + 14.0
    expected = x1 + x2 + (given * given[0] + 6.0) - (2.0 * given * given + 2.0)
    for found in (f(given), written(f)[0](given)):
        same(found, expected)


def test_a_kernel_may_pass_on_all_its_inputs(written):
    xs = [gg.placeholder((3,), name=f"x{i}") for i in range(3)]
    f = gg.compile(xs, gg.extend.apply(StarredExported(), *xs), backend="numpy")
    x, y, z = given = [np.array([1.0, -2.0, 4.0]) + i for i in range(3)]
    for found in (f(*given), written(f)[0](*given)):
        same(found, x * y + 2.0 * z + x - y * z)


def test_what_needs_more_than_numpy_is_refused_by_name_and_nothing_is_written(tmp_path):
    x = gg.placeholder((3,), name="x")
    mine = gg.py_function(lambda a: a, [x], [((3,), "float64")])
    path = tmp_path / "f.py"
    path.write_text("before")
    with pytest.raises(gg.ExportError) as error:
        gg.export_numpy(gg.compile(x, [gg.special.gammaln(x), mine, x + 1.0]), path)
    first, *rows, last = str(error.value).split("\n")
    assert first == "2 ops cannot be written for NumPy alone:"
    assert [r.split(" = ")[1].partition("(")[0] for r in rows] == ["PyFunction", "GammaLn"]
    assert "built at test_numpy_file.py:" in rows[0]
    assert rows[1].endswith("its kernel needs SciPy")
    assert rows[0].endswith("it calls a Python function")
    assert last.startswith("Compute these outside")
    assert [p.name for p in tmp_path.iterdir()] == ["f.py"]
    assert path.read_text() == "before"


@pytest.mark.parametrize(
    ("f", "path", "kind", "said"),
    [
        (lambda x: x, "f.py", TypeError, "what gg.compile returns"),
        (None, "f.txt", ValueError, "ends in .py"),
        (None, "my-step.py", ValueError, "ends in .py"),
        (None, "for.py", ValueError, "ends in .py"),
    ],
)
def test_wrong_arguments(tmp_path, f, path, kind, said):
    x = gg.placeholder((), name="x")
    with pytest.raises(kind, match=said):
        gg.export_numpy(f or gg.compile(x, x + 1.0), tmp_path / path)
    gg.export_numpy(gg.compile(x, x + 1.0), tmp_path / "my-step.py", name="step")


@pytest.mark.parametrize(
    "name", ["np", "state", "lengths", "run", "step", "for", "print", "_x", "é"]
)
def test_any_name_of_a_tensor_is_a_name_of_the_file(written, name):
    x = gg.placeholder((2,), name=name)
    v = gg.variable([1.0, 2.0], name=f"{name} \"'\n{{}}\\")
    f = gg.compile(x, gg.identity(x * v, name=f"{name}/2"), updates={v: v + x})
    there, names = written(f)
    same(there([1.0, 2.0], names["STATE"])[0], np.array([1.0, 4.0]))


def test_numbers_come_through_bit_for_bit(written):
    values = [0.1, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e308, 1 / 3]
    with np.errstate(all="ignore"):
        arrays = [np.array(v, d) for v in values for d in ("float64", "float32", "float16")]
        arrays += [np.array(values, d) for d in ("float64", "float32", "complex64")]
    arrays += [np.linspace(0, 1, 40), np.array([True, False]), np.array(2**64 - 1, "uint64")]
    arrays += [np.zeros((2, 0)), np.full((30, 2), -0.0), np.full(3, 1 + 2j), np.array(1 - 0j)]
    there, _ = written(gg.compile([], [gg.constant(a) for a in arrays]))
    for found, wanted in zip(there(), arrays, strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.tobytes() == wanted.tobytes()


def test_a_dtype_of_another_package_is_refused(tmp_path):
    pytest.importorskip("ml_dtypes")
    x = gg.placeholder((3,), gg.bfloat16, name="x")
    v = gg.variable([1.0, 2.0, 3.0], gg.bfloat16, name="v")
    with pytest.raises(gg.ExportError, match="bfloat16 is not a dtype of NumPy alone") as error:
        gg.export_numpy(gg.compile(x, gg.sum(x * v)), tmp_path / "f.py")
    for name in ("x", "v", "Multiply"):
        assert f"\n  {name}" in str(error.value)


def test_lengths_that_values_decide_trials_and_second_orders(written):
    x = gg.placeholder((4,), name="x")
    a = gg.placeholder((4,), name="a")
    drawn = gg.random.gamma((4,), a, seed=3)
    outs = [gg.nonzero(x), x[x > 0.0], gg.repeat(x, gg.cast(gg.abs(x), "int64"))]
    outs += [drawn, gg.argsort(x), gg.unique(x)]
    outs += [gg.gradients(gg.sum(gg.gradients(gg.sum(gg.sort(x) ** 4), x)), x)]
    f = gg.compile([x, a], outs, backend="numpy")
    there, _ = written(f)
    for given in ([1.0, -2.0, 3.0, 0.0], [0.0, 0.0, 1.0, 1.0]):
        same(there(given, np.full(4, 1.5)), f(given, np.full(4, 1.5)))


@pytest.mark.parametrize("backend", ["llvm", pytest.param("jax", marks=pytest.mark.ci)])
def test_what_any_backend_runs_is_written(written, backend):
    pytest.importorskip({"llvm": "llvmlite"}.get(backend, backend))
    x = gg.placeholder((None, 3), name="x")
    y = gg.nn.gelu(x @ gg.constant(np.ones((3, 2))))
    f = gg.compile(x, [y, gg.gradients(gg.sum(y * y), x)], backend=backend)
    same(written(f)[0](BATCH[0]), f(BATCH[0]), 1e-12)


def test_the_document_is_so(tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / "export.md").read_text()
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:2]:
        exec(example, names)
    step, g = names["step"], names["g"]
    found = runpy.run_path("step.py")
    outputs, state = found["step"](np.ones((4, 2)), found["STATE"])
    same(outputs, step(np.ones((4, 2))))
    same(state, {n: g.state[n] for n in state})
    assert g.variables.trainable.names == ["dense/w"]


def test_float16_is_added_up_in_float32_there_too(written):
    x = gg.placeholder((5000, 2), "float16", name="x")
    _, inside = gg.scan(lambda s, t: (s, gg.sum(t, 0)), 0.0, gg.reshape(x, (1, 5000, 2)))
    f = gg.compile(x, [gg.sum(x, 0), inside])
    ones = np.ones((5000, 2), "float16")
    there, _ = written(f)
    same(there(ones), f(ones), 0)
    assert np.array_equal(there(ones)[1], [[5000, 5000]])


def test_open_lengths_are_names_of_the_file(written, tmp_path):
    x, v, rows = opens.placeholders()
    outputs = [*opens.moved(x, v), *opens.looped(x, rows)]
    outputs += gg.gradients(opens.total(outputs), [x, v, rows])
    f = gg.compile([x, v, rows], outputs, backend="numpy")
    there, _ = written(f)
    for n in opens.LENGTHS:
        same(there(*opens.arrays(n)), f(*opens.arrays(n)))
    text = (tmp_path / "step.py").read_text()
    for line in (
        "N = lengths['N'][0]",
        "_same_length('v', v.shape[0], '2*N + 1', 2*N + 1, lengths)",
        "full = np.full((N, 2), 0.0, dtype=np.float64)",
        "x[:max(N - 1, 0), ...]",
        "def _scan_body(N, ",
    ):
        assert line in text
    a, b, c = opens.arrays(3)
    with pytest.raises(
        ValueError, match=r"length '2\*N \+ 1' is 6 in v, and 7 where 'N' is 3 in x"
    ):
        there(a, b[1:], c)


def test_lengths_are_solved_from_arithmetic_and_what_is_assumed_is_checked(written, tmp_path):
    N, M = gg.Length("n"), gg.Length("batch size")
    v, w = gg.placeholder((2 * N + 1,), name="v"), gg.placeholder((N * M + N,), name="w")
    gg.assume(N >= 2)
    f = gg.compile([v, w], [gg.zeros((N, M)), gg.sum(v) + gg.sum(w)], backend="numpy")
    there, _ = written(f)
    same(there(np.ones(5), np.ones(8)), f(np.ones(5), np.ones(8)))
    with pytest.raises(ValueError, match=r"'2\*n \+ 1' is 6 in v: no length 'n' satisfies this"):
        there(np.ones(6), np.ones(8))
    with pytest.raises(ValueError, match=r"is 7 in w: no length 'batch size' satisfies this"):
        there(np.ones(5), np.ones(7))
    with pytest.raises(
        ValueError, match=r"gg.assume\(n >= 2\), stated at .*, does not hold: .*'n': 1"
    ):
        there(np.ones(3), np.ones(8))


@pytest.mark.parametrize("name", opens.EQUATED)
def test_lengths_that_count_as_equal_are_checked(name, written):
    x = gg.placeholder(("N", 3), name="x")
    f = gg.compile(x, opens.EQUATED[name](x), backend="numpy")
    there, _ = written(f)
    same(there(np.ones((4, 3))), f(np.ones((4, 3))))
    for n in (1, 3):
        with pytest.raises(
            ValueError, match=rf"as equal .* and are not: these are {n} and {n + 1}"
        ):
            there(np.ones((n, 3)))


@pytest.mark.parametrize("name", opens.BROADCAST)
def test_a_length_of_one_is_broadcast(name, written):
    x = gg.placeholder(("N", 3), name="x")
    f = gg.compile(x, opens.BROADCAST[name](x), backend="numpy")
    there, _ = written(f)
    for n in (1, 2, 4):
        same(there(np.ones((n, 3))), f(np.ones((n, 3))))


def test_a_branch_that_is_not_taken_checks_no_lengths(written):
    x = gg.placeholder(("N", 3), name="x")
    f = gg.compile(x, opens.EQUATED["cond"](x), backend="numpy")
    there, _ = written(f)
    same(there(-np.ones((1, 3))), f(-np.ones((1, 3))))


def test_names_of_lengths_that_mean_something_in_a_kernel_are_others(written, tmp_path):
    x = gg.placeholder(("shape", "x", "d"), name="y")
    d = x.shape
    f = gg.compile(x, gg.reshape(x, (d[0] * d[1], d[2])), backend="numpy")
    there, _ = written(f)
    same(there(np.ones((2, 3, 4))), f(np.ones((2, 3, 4))))


def test_rows_of_a_loop_that_never_runs_have_their_lengths(written):
    x, rows = gg.placeholder(("N", 2), name="x"), gg.placeholder(("T",), name="rows")
    last, made = gg.scan(lambda c, r: (c + r, c * r), x, rows)
    f = gg.compile([x, rows], [last, made], backend="numpy")
    there, _ = written(f)
    for count in (0, 2):
        given = np.ones((3, 2)), np.ones(count)
        same(there(*given), f(*given))


class HalvedInFile(Op):
    """The first half of a vector, by what kernels know of lengths."""

    n: object

    def infer(self, x):
        return (gg.extend.tensor_type((self.n,), x.dtype),)

    def kernel(self, xp, x):
        count = gg.Length.max(self.n, 0) if isinstance(self.n, gg.Length) else max(self.n, 0)
        return x[: gg.Length.min(count, len(x))]


def test_kernels_that_ask_for_lengths_get_ints(written, tmp_path):
    x = gg.placeholder(("N",), name="x")
    f = gg.compile(x, apply(HalvedInFile(x.shape[0] // 2), x), backend="numpy")
    there, _ = written(f)
    same(there(np.arange(5.0)), f(np.arange(5.0)))
    assert "Length" not in (tmp_path / "step.py").read_text()
