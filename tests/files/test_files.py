"""What gg.save writes, gg.load reads: values, functions, rules, names, bytes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.extend import Op, apply
from graphgrad.files import arrays
from graphgrad.ir.verify import verify_graph

from ..fuzz.programs import random_case
from .containers import members, packed

HERE = Path(__file__).parent
ROOT = Path(gg.__file__).parent.parent


def through(path, graph, **options):
    gg.save(path, graph, **options)
    return gg.load(path)


# --- values -------------------------------------------------------------------------------------

ARRAYS = [
    *(np.arange(-3, 60).astype(t) for t in ("int8", "uint16", "int64", "float16", "float32")),
    np.array([True, False, True]),
    np.array([2**64 - 1, 0], "uint64"),
    np.array([np.nan, np.inf, -np.inf, -0.0]),
    np.array([0.0, -0.0]),
    np.array([1 + 2j, np.nan - 0.0j]),
    np.frombuffer(np.array([0x7FF8000000000123, 5], "uint64").tobytes(), "float64"),
    np.zeros((0, 3), "float32"),
    np.full((7, 8), -0.0),
    np.full((1000, 1000), np.nan),
    np.array(3.5, "float16"),
    np.linspace(0, 1, 200).astype("complex64").reshape(5, 40),
    np.random.default_rng(0).normal(size=(40, 50)).T,
    np.arange(10000.0)[::3],
]


@pytest.mark.parametrize("mapped", [True, False])
def test_arrays_come_back_bit_for_bit(mapped, tmp_path):
    with gg.Graph() as graph:
        tensors = [gg.variable(a) for a in ARRAYS]
        made = [gg.constant(a) for a in ARRAYS if a.size < 10**6]
    gg.save(tmp_path / "a.gg", graph, metadata=ARRAYS)
    file = gg.load(tmp_path / "a.gg", mmap=mapped)
    nodes = file.graph.nodes
    found = [n.op.attrs["initial"] for n in nodes[: len(tensors)]]
    found += [n.op.value for n in nodes[len(tensors) :]]
    expected = [*ARRAYS, *(t.node.op.value for t in made)]
    for array, there in zip([*expected, *ARRAYS], [*found, *file.metadata], strict=True):
        assert (array.dtype, array.shape) == (there.dtype, there.shape)
        assert array.tobytes() == there.tobytes()
        assert not there.flags.writeable
    assert os.path.getsize(tmp_path / "a.gg") < 100_000  # equal arrays once, those of one value not


@pytest.mark.parametrize("size", [0, 1, 7, 300])
def test_bfloat16_comes_back(size, tmp_path):
    dtype = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    array = np.linspace(-1, np.pi, size).astype(dtype)
    with gg.Graph() as graph:
        v = gg.variable(array)
    file = through(tmp_path / "a.gg", graph, functions={"v": ([], v)}, metadata=array)
    for there in (file.functions["v"](), file.metadata):
        assert there.dtype == dtype
        assert there.tobytes() == array.tobytes()


def test_large_arrays_are_mapped_and_nobody_copies_them(tmp_path):
    value = np.random.default_rng(0).normal(size=(100, 1000))
    with gg.Graph() as graph:
        v = gg.variable(np.zeros((100, 1000)), name="v")
        graph.state[v] = value
    file = through(tmp_path / "a.gg", graph, functions={"v": ([], v)})
    (there,) = file.graph.state.values().values()
    assert not there.flags.owndata
    assert there.ctypes.data % 64 == 0
    for backend in ("numpy", "auto"):
        np.testing.assert_array_equal(file.functions["v"].compile(backend=backend)(), value)
    file.graph.state[file.graph.tensor("v")] = value + 1.0
    np.testing.assert_array_equal(gg.load(tmp_path / "a.gg").functions["v"](), value)


def test_arrays_of_one_value_are_no_memory_and_run_on_every_backend(tmp_path):
    with gg.Graph() as graph:
        v = gg.variable(np.full((3000, 1000), 2.0), name="v")
        x = gg.placeholder((1000,), name="x")
        y = gg.sum(v @ x) + gg.sum(v * x)
    assert v.node.op.initial.nbytes > arrays.FILLED
    file = through(tmp_path / "a.gg", graph, functions={"y": ([x], y)})
    assert os.path.getsize(tmp_path / "a.gg") < 3000
    for backend in ("numpy", "auto"):
        f = file.functions["y"].compile(backend=backend)
        np.testing.assert_allclose(f(np.ones(1000)), 12e6, rtol=1e-12)


PLAIN = [
    None, True, 3, -(2**80), 0.1, -0.0, float("inf"), 1 - 2j, "text \u00e9\n",
    b"\x00\xff", (), (1, (2,)), [1, [2]],
    {"a": {1: (None,)}, 2.5: "b"}, np.float32(0.1), np.dtype("int16"), np.int64(3),
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_come_back_as_they_were(value, tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        with gg.override_gradient("Identity", given=value):
            gg.exp(x)
    file = through(tmp_path / "a.gg", graph, metadata=[value])
    for found in (file.metadata[0], file.graph.regions[0].attrs["given"]):
        assert repr(found) == repr(value)
        assert type(found) is type(value)


@pytest.mark.parametrize("value", [object(), {1, 2}, lambda: 1, np.array(["a"]), {"a": {3}}])
def test_other_values_are_refused_where_they_stand(value, tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
    with pytest.raises(gg.GraphGradError, match=r"metadata|dtype"):
        gg.save(tmp_path / "a.gg", graph, metadata=value)
    with graph, gg.override_gradient("Identity", given=value):
        gg.exp(x)
    with pytest.raises(gg.GraphGradError, match=r"region 0 .*test_files.py|dtype"):
        gg.save(tmp_path / "a.gg", graph)
    assert list(tmp_path.iterdir()) == []


# --- functions ----------------------------------------------------------------------------------


def test_functions_come_back_with_their_structure_and_updates(tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder(("N",), name="x")
        v = gg.variable(1.0, name="v")
        f = gg.compile([x], {"a": [x + v, None], "b": (gg.sum(x),)}, updates={v: v + gg.sum(x)})
        g = gg.compile(x, gg.assign(v, gg.max(x)))
    file = through(tmp_path / "a.gg", graph, functions={"f": f, "g": g, "h": (x, v * x, {})})
    array = np.array([1.0, 2.0])
    for _ in range(2):
        home, there = f(array), file.functions["f"](x=array)
        assert repr(home) == repr(there)
    assert repr(g(array)) == repr(file.functions["g"](array))
    assert repr(file.functions["h"](array)) == "array([2., 4.])"
    assert "writes 1 variables" in repr(file.functions["f"])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda x: gg.function(lambda y: y), "f.build"),
        (lambda x: 3, "give what gg.compile returned"),
        (lambda x: ([x], {"a": 3}), "which is not in"),
    ],
)
def test_what_is_no_function_of_the_graph_is_refused(make, says, tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
    with pytest.raises(gg.FileError, match=says):
        gg.save(tmp_path / "a.gg", graph, functions={"f": make(x)})


def test_a_state_of_its_own(tmp_path):
    with gg.Graph() as graph:
        v = gg.variable(1.0, name="v")
    state = gg.State()
    state[v] = 5.0
    gg.save(tmp_path / "a.gg", graph, functions={"v": ([], v)}, state=state)
    assert gg.load(tmp_path / "a.gg").functions["v"]() == 5.0
    assert gg.evaluate(v) == 1.0


# --- rules --------------------------------------------------------------------------------------


@pytest.fixture
def named():
    """A graph with a rule by name, and what gives that name another meaning."""
    names = []

    def register(name, fn):
        gg.register_gradient(name, replace=True)(fn)
        names.append(name)

    register("files/times", lambda site, dy: 3.0 * dy)
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        with gg.override_gradient("files/times"):
            y = gg.exp(x)
        gg.identity(y, name="y")
    yield graph, register
    for name in names:
        if gg.is_registered(name):
            gg.unregister_gradient(name)


def slope(file):
    graph = file.graph
    with graph:
        return float(
            gg.evaluate(gg.gradients(graph.tensor("y"), graph.tensor("x")), {"x": np.array(0.0)})
        )


def test_the_saved_rule_wins_unless_the_registry_is_asked(named, tmp_path):
    graph, register = named
    path = tmp_path / "a.gg"
    gg.save(path, graph)
    assert gg.load(path, rules="check").rules == {"files/times": "saved"}
    register("files/times", lambda site, dy: 5.0 * dy)
    assert slope(gg.load(path)) == 3.0
    assert slope(gg.load(path, rules="registry")) == 5.0
    assert gg.load(path, rules="registry").rules == {"files/times": "registry"}
    with pytest.raises(gg.FileError, match=r"(?s)'files/times' .* another .*3\.0.*5\.0"):
        gg.load(path, rules="check")
    gg.unregister_gradient("files/times")
    assert slope(gg.load(path, rules="registry")) == 3.0
    with pytest.raises(gg.FileError, match="nobody registered"):
        gg.load(path, rules="check")
    with pytest.raises(ValueError, match="Did you mean 'registry'"):
        gg.load(path, rules="registy")


def test_a_thousand_regions_of_one_rule_are_one_trace(tmp_path):
    with gg.Graph() as graph:
        y = gg.placeholder((), name="x")
        for _ in range(200):
            with gg.override_gradient(lambda site, dy: 2.0 * dy):
                y = gg.sin(y)
    assert through(tmp_path / "a.gg", graph).graph.regions[0].rule is not None
    assert os.path.getsize(tmp_path / "a.gg") < 40_000
    (x,) = gg.load(tmp_path / "a.gg").graph.find("x")
    assert x.graph.regions[0].rule is x.graph.regions[199].rule


def test_a_rule_that_opens_itself_serves_every_order(tmp_path):
    def again(site, dy):
        with gg.override_gradient(again):
            slope = gg.sin(site.inputs[0])
        return 2.0 * dy * slope

    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        with gg.override_gradient(again):
            y = gg.exp(x)
        gg.identity(y, name="y")
    there = through(tmp_path / "a.gg", graph).graph
    found = []
    for g in (graph, there):
        with g:
            t = g.tensor("y")
            for _ in range(3):
                t = gg.gradients(t, g.tensor("x"))
            found.append(float(gg.evaluate(t, {"x": np.array(1.5)})))
    assert found[0] == found[1]


# --- code by name -------------------------------------------------------------------------------


@gg.register_function("tests/saw")
def saw(x):
    return x - np.floor(x)


def test_a_python_function_travels_by_its_name(tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder((2,), name="x")
        y = gg.py_function(saw, [x], [((2,), "float64")])
    path, feed = tmp_path / "a.gg", np.array([1.25, -0.5])
    gg.save(path, graph, functions={"y": ([x], y)})
    np.testing.assert_array_equal(gg.load(path).functions["y"](feed), [0.25, 0.5])
    other = gg.load(path, functions={"tests/saw": lambda x: 2.0 * x})
    np.testing.assert_array_equal(other.functions["y"](feed), [2.5, -1.0])
    parts = members(path.read_bytes())
    path.write_bytes(packed({k: v.replace(b"tests/saw", b"tests/sew") for k, v in parts.items()}))
    file = gg.load(path)
    with pytest.raises(
        gg.GraphError, match=r"'tests/sew' \(at .*test_files.py:\d+\), which nobody"
    ):
        file.functions["y"].compile()
    with pytest.raises(gg.GraphError, match="already registered as 'tests/saw'"):
        gg.register_function("tests/saw")(lambda x: x)


class FileTwice(Op):
    """An op from outside."""

    times: int = 2

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        return self.times * x

    def vjp(self, node, dy):
        return (self.times * dy,)


def test_an_op_from_outside_is_known_by_its_package(tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        y = apply(FileTwice(3), x)
    path = tmp_path / "a.gg"
    file = through(path, graph, functions={"y": ([x], y)})
    assert file.functions["y"](2.0) == 6.0
    types = gg.ir.op.OP_TYPES
    types.pop("FileTwice")
    try:
        with pytest.raises(gg.FileError, match=r"no op type 'FileTwice' here. It is of tests"):
            gg.load(path)
    finally:
        types["FileTwice"] = FileTwice


def test_an_op_of_an_older_revision_is_translated(tmp_path, monkeypatch):
    with gg.Graph() as graph:
        apply(FileTwice(3), gg.placeholder((), name="x"))
    gg.save(tmp_path / "a.gg", graph)
    monkeypatch.setattr(FileTwice, "revision", 2)
    with pytest.raises(gg.FileError, match=r"FileTwice.from_revision\(1\)"):
        gg.load(tmp_path / "a.gg")
    doubled = classmethod(lambda cls, revision, attrs: cls(2 * attrs["times"]))
    monkeypatch.setattr(FileTwice, "from_revision", doubled)
    assert gg.load(tmp_path / "a.gg").graph.nodes[1].op.times == 6


# --- nothing is changed, and bytes are what was said --------------------------------------------


def test_saving_changes_nothing_of_the_graph(tmp_path):
    """Nor what leaves a region that nobody has asked about."""
    given = []

    def noisy(site, *dys):
        given.append(len(dys))
        return dys[0] * gg.random.normal(()) * site.outputs[0]

    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        with gg.override_gradient(noisy) as region:
            h = gg.sin(x)
            y = gg.exp(h)
    before = len(graph), graph.draws, region.settled
    gg.save(tmp_path / "a.gg", graph)
    assert (len(graph), graph.draws, region.settled) == before
    with graph:
        z = gg.identity(h) * y  # h leaves the region after it was saved
        given.clear()
        gg.gradients(z, x)
    assert given == [2]


def test_an_open_region_is_refused(tmp_path):
    with gg.Graph() as graph, gg.override_gradient("Identity"):
        gg.exp(gg.placeholder((), name="x"))
        with pytest.raises(gg.FileError, match="still open"):
            gg.save(tmp_path / "a.gg", graph)


BYTES = """
import sys
sys.path.insert(0, {root!r})
import numpy as np, graphgrad as gg
with gg.Graph() as graph:
    x = gg.placeholder(("N", 3), name="x")
    w = gg.variable(np.arange(90.0).reshape(3, 30), name="w")
    with gg.override_gradient("Identity"):
        y = gg.cond(gg.sum(x) > 0, lambda: gg.tanh(x), lambda: x)
    with gg.override_gradient(lambda site, dy: gg.sum(w) * dy):
        z = gg.exp(y)
    gg.gradients(gg.sum(z @ w), [x, w])
gg.save(sys.argv[1], graph, metadata={{"a": 1}})
"""


@pytest.mark.ci
def test_equal_graphs_are_equal_bytes_in_every_process_and_folder(tmp_path):
    found = []
    for seed in ("1", "2"):
        folder = tmp_path / seed / "code"
        folder.mkdir(parents=True)
        (folder / "build.py").write_text(BYTES.format(root=str(ROOT)))
        command = [sys.executable, "build.py", "a.gg"]
        subprocess.run(command, check=True, cwd=folder, env={**os.environ, "PYTHONHASHSEED": seed})
        found.append((folder / "a.gg").read_bytes())
    assert found[0] == found[1]
    assert b"code/build.py" in found[0]
    assert str(tmp_path).encode() not in found[0]


MORE = [pytest.param(seed, marks=pytest.mark.ci) for seed in range(4, 40)]


@pytest.mark.parametrize("seed", [*range(4), *MORE])
def test_random_programs_come_back(seed, tmp_path):
    """Any program computes there what it computes here, and is the same file again."""
    case = random_case(seed)
    functions = {"f": (case.inputs, case.outputs, case.updates)}
    gg.save(tmp_path / "a.gg", case.graph, functions=functions)
    file = gg.load(tmp_path / "a.gg")
    verify_graph(file.graph)
    gg.save(tmp_path / "b.gg", file.graph, functions=file.functions)
    assert (tmp_path / "a.gg").read_bytes() == (tmp_path / "b.gg").read_bytes()
    with np.errstate(all="ignore"):
        here = gg.compile(case.inputs, case.outputs, optimize=False)(*case.arrays)
        there = file.functions["f"].compile(optimize=False)(*case.arrays)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a, b)


# --- versions -----------------------------------------------------------------------------------


def test_a_file_of_version_1_is_read_for_ever():
    """Written by the first graphgrad with files (version_1.py); it is never written again."""
    file = gg.load(HERE / "version_1.gg", verify=True)
    assert file.version == 1
    assert file.metadata["made"] == "to be read for ever"
    entry = file.functions["step"]
    with file.graph:
        (again,) = gg.gradients(gg.sum(entry.outputs["dx"]), entry.inputs)
    step = gg.EntryPoint(entry.inputs, {**entry.outputs, "again": again}, entry.updates)
    for _ in range(2):
        found = step(np.array([[0.5, -1.0, 2.0]]))
    expected = file.metadata["second run"]
    assert found.keys() == expected.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-12)


def test_a_deep_chain_and_deep_bodies(tmp_path):
    with gg.Graph() as graph:
        x = y = gg.placeholder((), name="x")
        for _ in range(2000):
            y = gg.sin(y)

        def nested(depth, t):
            if not depth:
                return t
            return gg.cond(t > 0, lambda: nested(depth - 1, t), lambda: t * 2.0)

        y = nested(6, y)
    file = through(tmp_path / "a.gg", graph, functions={"y": ([x], y)})
    assert len(file.graph) == len(graph)
    there = gg.evaluate(file.functions["y"].outputs, {"x": 1.0})
    np.testing.assert_array_equal(there, gg.evaluate(y, {x: 1.0}))
