"""What gg.save writes, gg.load reads: values, functions, rules, names, bytes."""

import mmap
import os
import pickle
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.extend import Op, apply
from graphgrad.files import arrays, container, versions
from graphgrad.files.text import dump
from graphgrad.ir.verify import verify_graph
from graphgrad.regions.index import bodies_of

from ..fuzz.programs import random_case
from . import fake_quantise, version_2
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


@pytest.mark.parametrize("verify", [None, True, False])
@pytest.mark.parametrize("mapped", [True, False])
def test_arrays_come_back_bit_for_bit(mapped, verify, tmp_path):
    with gg.Graph() as graph:
        tensors = [gg.variable(a) for a in ARRAYS]
        made = [gg.constant(a) for a in ARRAYS if a.size < 10**6]
    gg.save(tmp_path / "a.gg", graph, metadata=ARRAYS)
    file = gg.load(tmp_path / "a.gg", mmap=mapped, verify=verify)
    nodes = file.graph.nodes
    found = [n.op.attrs["initial"] for n in nodes[: len(tensors)]]
    found += [n.op.value for n in nodes[len(tensors) :]]
    expected = [*ARRAYS, *(t.node.op.value for t in made)]
    for array, there in zip([*expected, *ARRAYS], [*found, *file.metadata], strict=True):
        assert (array.dtype, array.shape) == (there.dtype, there.shape)
        assert array.tobytes() == there.tobytes()
        assert not there.flags.writeable
    assert os.path.getsize(tmp_path / "a.gg") < 100_000  # equal arrays once, those of one value not


def test_a_damaged_array_is_read_only_where_it_is_not_verified(tmp_path, monkeypatch):
    array = np.arange(100.0)
    with gg.Graph() as graph:
        gg.placeholder((), name="x")
    gg.save(tmp_path / "a.gg", graph, metadata=array)
    raw = (tmp_path / "a.gg").read_bytes()
    (tmp_path / "a.gg").write_bytes(raw.replace(np.float64(99).tobytes(), np.float64(7).tobytes()))
    for verify in (None, True):
        with pytest.raises(gg.FileError, match=r"arrays/0.npy: is damaged"):
            gg.load(tmp_path / "a.gg", verify=verify)
    array[99] = 7.0
    np.testing.assert_array_equal(gg.load(tmp_path / "a.gg", verify=False).metadata, array)
    monkeypatch.setattr(arrays, "CHECKED", 800)  # it is larger, with its header
    np.testing.assert_array_equal(gg.load(tmp_path / "a.gg").metadata, array)


def test_what_is_not_to_be_mapped_is_not(tmp_path, monkeypatch):
    with gg.Graph() as graph:
        gg.placeholder((), name="x")
    gg.save(tmp_path / "a.gg", graph)

    def nowhere(*args, **options):
        raise OSError("this file system maps no files")

    monkeypatch.setattr(mmap, "mmap", nowhere)
    assert len(gg.load(tmp_path / "a.gg", mmap=False).graph) == 1


def test_an_array_is_of_one_value_only_if_all_of_it_is():
    """It is looked at in blocks, and what is taken for one value is stored as that."""
    array = np.ones(2 * arrays.BLOCK + 100)
    assert arrays.uniform(array) == 1.0
    edges = (63, 64, 65, 128, 129, arrays.BLOCK, arrays.BLOCK + 64, array.size - 1)
    for at in (0, 1, *edges):
        array[at] = 2.0
        assert arrays.uniform(array) is None, at
        array[at] = 1.0


def test_an_array_of_many_chunks_comes_back(tmp_path):
    array = np.arange(2.5 * container.CHUNK / 4, dtype="float32")
    with gg.Graph() as graph:
        gg.variable(array, name="v")
    gg.save(tmp_path / "a.gg", graph)
    assert os.path.getsize(tmp_path / "a.gg") < array.nbytes + 2000
    found = gg.load(tmp_path / "a.gg", verify=True).graph.state["v"]
    np.testing.assert_array_equal(found, array)


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


def inside(depth, value=None):
    """A list in a list in a list."""
    for _ in range(depth):
        value = [value]
    return value


CYCLE: list = []
CYCLE.append(CYCLE)
OTHER = [
    *(object(), {1, 2}, lambda: 1, np.array(["a"]), {"a": {3}}, np.str_("a")),
    *(np.ma.masked_array([1.0, 2.0], [0, 1]), np.zeros(2, "f4,i4"), inside(101), CYCLE),
]


@pytest.mark.parametrize("value", OTHER, ids=lambda value: type(value).__name__)
def test_other_values_are_refused_where_they_stand(value, tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
    with pytest.raises(gg.GraphGradError, match=r"metadata cannot be saved"):
        gg.save(tmp_path / "a.gg", graph, metadata=value)
    with graph, gg.override_gradient("Identity", given=value):
        gg.exp(x)
    with pytest.raises(gg.GraphGradError, match=r"region 0 \(test_files.py:\d+\) has an attribute"):
        gg.save(tmp_path / "a.gg", graph)
    assert list(tmp_path.iterdir()) == []


def test_who_may_read_a_file_is_as_before_or_as_of_any_new_file(tmp_path):
    with gg.Graph() as graph:
        gg.placeholder((), name="x")
    (tmp_path / "any").write_text("")
    gg.save(tmp_path / "a.gg", graph)
    assert os.stat(tmp_path / "a.gg").st_mode == os.stat(tmp_path / "any").st_mode
    os.chmod(tmp_path / "a.gg", 0o600)
    gg.save(tmp_path / "a.gg", graph)
    assert os.stat(tmp_path / "a.gg").st_mode & 0o777 == 0o600


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">c16", "<f2"])
@pytest.mark.parametrize("size", [1, 20, 50])
def test_arrays_of_any_byte_order_are_the_numbers_that_they_are(dtype, size, tmp_path):
    array = np.linspace(-3, 90, size).astype(dtype)
    array[0] = np.nan if array.dtype.kind != "i" else 7
    given = [array, array[0], np.full((3, 40), array[-1], dtype)]
    with gg.Graph() as graph:
        v = gg.variable(np.zeros(size, array.dtype), name="v")
        graph.state[v] = array
        gg.constant(array)
    file = through(tmp_path / "a.gg", graph, metadata=given, functions={"v": ([], v)})
    for a, b in zip([*given, array], [*file.metadata, file.functions["v"]()], strict=True):
        np.testing.assert_array_equal(a, b)
    gg.Checkpoints(tmp_path).save(1, graph, metadata=given)
    np.testing.assert_array_equal(gg.Checkpoints(tmp_path).resume(graph).metadata[0], array)


def test_what_lies_deep_comes_back(tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
    file = through(
        tmp_path / "a.gg", graph, metadata=inside(99), functions={"f": (x, inside(99, x))}
    )
    assert file.metadata == inside(99)
    assert file.functions["f"](1.0) == inside(99, 1.0)
    with pytest.raises(gg.FileError, match="more than 100 structures"):
        gg.save(tmp_path / "a.gg", graph, functions={"f": (x, inside(102, x))})


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
    assert repr(file) == f"<file of {file.graph!r}, functions: f, g, h>"
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


def test_wrong_arguments_of_save(tmp_path):
    with gg.Graph():
        x = gg.placeholder((), name="x")
    for given in ([x], {3: (x, x)}):
        with pytest.raises(gg.FileError, match=r"functions is \{name: function\}"):
            gg.save(tmp_path / "a.gg", x.graph, functions=given)
    with pytest.raises(gg.FileError, match="takes the values of a State"):
        gg.save(tmp_path / "a.gg", x.graph, state={"v": 1.0})


@pytest.mark.parametrize("full", [False, True])
def test_source_files_are_named_by_folder_or_by_the_whole_path(full, tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
    file = through(tmp_path / "a.gg", graph, full_paths=full)
    name, line = file.graph.nodes[0].position
    assert name == (__file__ if full else "files/test_files.py")
    assert x.where == f"test_files.py:{line}"


def test_scopes_that_alternate_come_back(tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        for name in ("a", "a", "", "a", "b", "b"):
            with gg.name_scope(name) if name else nullcontext():
                gg.exp(x)
    file = through(tmp_path / "a.gg", graph)
    assert [n.name for n in file.graph.nodes] == [n.name for n in graph.nodes]
    assert [n.scope for n in file.graph.nodes] == [n.scope for n in graph.nodes]


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


def test_S32_the_saved_rule_wins_unless_the_registry_is_asked(named, tmp_path):
    graph, register = named
    path = tmp_path / "a.gg"
    gg.save(path, graph)
    assert gg.load(path, rules="check").rules == {"files/times": "saved"}
    register("files/times", lambda site, dy: 5.0 * dy)
    assert slope(gg.load(path)) == 3.0
    assert slope(gg.load(path, rules="registry")) == 5.0
    assert gg.load(path, rules="registry").rules == {"files/times": "registry"}
    with pytest.raises(gg.FileError, match=r"(?s)'files/times' .* differs from .*3\.0.*5\.0"):
        gg.load(path, rules="check")
    register("files/times", lambda site, dy: 3.0 * dy)
    checked = gg.load(path, rules="check")
    register("files/times", lambda site, dy: 7.0 * dy)
    assert slope(checked) == 3.0, "what was compared is still the rule of the file"
    gg.unregister_gradient("files/times")
    assert slope(gg.load(path, rules="registry")) == 3.0
    with pytest.raises(gg.FileError, match="is not registered here"):
        gg.load(path, rules="check")
    with pytest.raises(ValueError, match="Did you mean 'registry'"):
        gg.load(path, rules="registy")


def test_S32_a_thousand_regions_of_one_rule_are_one_trace(tmp_path):
    with gg.Graph() as graph:
        y = gg.placeholder((), name="x")
        for _ in range(200):
            with gg.override_gradient(lambda site, dy: 2.0 * dy):
                y = gg.sin(y)
    assert through(tmp_path / "a.gg", graph).graph.regions[0].rule is not None
    assert os.path.getsize(tmp_path / "a.gg") < 40_000
    (x,) = gg.load(tmp_path / "a.gg").graph.find("x")
    assert x.graph.regions[0].rule is x.graph.regions[199].rule


def test_S32_a_rule_that_opens_itself_serves_every_order(tmp_path):
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


def holding(x):
    """A region whose rule opens one, whose rule opens one; each reads a tensor of the graph."""
    held = gg.sin(x)

    def rule(left):
        def fn(site, dy):
            (x,) = site.inputs
            with gg.override_gradient(rule(left - 1) if left else (lambda site, dy: dy * held)):
                slope = gg.exp(x)
            return dy * slope * held

        return fn

    with gg.override_gradient(rule(2)):
        return gg.exp(x)


def test_S32_a_rule_that_differentiates_marks_inside_knows_them_there(tmp_path):
    """It answers as at home, and is an error where the marks are others; saved again, too."""

    def outer(site, dy):
        return gg.gradients(site.outputs[0], site.inputs[0], grad_ys=3.0 * dy)

    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        with gg.override_gradient(outer):
            with gg.override_gradient(lambda site, dy: 5.0 * dy):
                y = gg.exp(x)
            y = 2.0 * y
        gg.identity(y, name="y")
    first = through(tmp_path / "a.gg", graph).graph
    second = through(tmp_path / "b.gg", first).graph
    assert (tmp_path / "a.gg").read_bytes() == (tmp_path / "b.gg").read_bytes()
    with gg.Graph() as third:
        with gg.override_gradient(lambda site, dy: dy):
            gg.sin(gg.placeholder((), name="before"))
        gg.import_graph(first)
    fourth = through(tmp_path / "c.gg", third).graph
    for there in (third, fourth):
        with there:
            y, x = there.tensor("y"), there.tensor("x")
            assert gg.evaluate(gg.gradients(y, x), {x: 0.0}) == 30.0
    for there in (first, second):
        with there:
            y, x = there.tensor("y"), there.tensor("x")
            assert gg.evaluate(gg.gradients(y, x), {x: 0.0}) == 30.0
            there.unmark(there.regions[1])
            with pytest.raises(gg.GradientError, match="a different rule here than when the graph"):
                gg.gradients(y, x)


def test_S32_a_stored_rule_knows_the_marks_in_bodies_that_its_branch_differentiates(tmp_path):
    """It is an error where they are others, at first and second order; saved again, too."""
    with gg.Graph() as graph:
        x, two = gg.placeholder((), name="x"), gg.constant(2.0)

        def rule(site, dy):
            return gg.cond(two > 0.0, lambda: two * site.default(dy)[0], lambda: dy)

        def sine(x):
            with gg.override_gradient(lambda site, dy: 3.0 * dy * site.outputs[0]):
                return gg.sin(x)

        def loop(x):
            return gg.scan(lambda c, _: (sine(c), c), x, length=1)[0]

        with gg.override_gradient(rule):
            y = gg.cond(x < 1.0, lambda: loop(x), lambda: x)
            y = y * 1.0
        gg.identity(y, name="y")
    first = through(tmp_path / "a.gg", graph).graph
    second = through(tmp_path / "b.gg", first).graph
    assert (tmp_path / "a.gg").read_bytes() == (tmp_path / "b.gg").read_bytes()
    for there in (first, second):
        y, x = there.tensor("y"), there.tensor("x")
        (sin,) = (n for body in bodies_of(there) for n in body.nodes if n.type == "Sin")
        with there:
            dx = gg.gradients(y, x)
            assert gg.evaluate(dx, {x: 0.3}) == pytest.approx(6.0 * np.sin(0.3))
            chosen = {sin.region: lambda site, dy: 5.0 * dy}
            again = gg.gradients(dx, x, overrides=chosen)
            assert gg.evaluate(again, {x: 0.3}) == pytest.approx(6.0 * 5.0)
            there.unmark(sin.region)
            with pytest.raises(gg.GradientError, match="a different rule here than when the graph"):
                gg.gradients(y, x)


def test_S32_what_a_rule_raises_for_a_zero_it_raises_there(tmp_path):
    def rule(site, da, db):
        if gg.is_zero(db):
            raise gg.GradientError("nothing arrives at b")
        return da + db

    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        with gg.override_gradient(rule):
            a, b = gg.sin(x), gg.cos(x)
        gg.identity(a, name="a")
        gg.identity(a + b, name="both")
    for g in (graph, through(tmp_path / "a.gg", graph).graph):
        with g:
            assert gg.evaluate(gg.gradients(g.tensor("both"), g.tensor("x")), {"x": 0.0}) == 2.0
            with pytest.raises(gg.GradientError, match="nothing arrives at b"):
                gg.gradients(g.tensor("a"), g.tensor("x"))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_S32_rules_of_rules_are_stored_to_the_order_that_is_said(order, tmp_path):
    """Beyond it is an error; what was differentiated to the end can be saved again."""
    with gg.Graph() as graph:
        gg.identity(holding(gg.placeholder((), name="x")), name="y")
    there = through(tmp_path / "a.gg", graph, order=order).graph
    found = []
    for g in (graph, there):
        with g:
            t, x = g.tensor("y"), g.tensor("x")
            ts = [t := gg.gradients(t, x) for _ in range(order)]
            found.append(gg.evaluate(ts, {x: 0.3}))
    assert found[0] == found[1]
    for g in (there, through(tmp_path / "b.gg", there).graph):
        with g, pytest.raises(gg.GradientError, match=f"was stored to order {order}"):
            gg.gradients(g.nodes[t.node.index].outputs[0], g.tensor("x"))
    assert os.path.getsize(tmp_path / "a.gg") < 40_000


def test_S32_what_a_rule_that_opens_itself_finds_beside_its_site_is_that_of_each(tmp_path):
    def rule(site, dy):
        before = site.inputs[0].node.inputs[0]
        with gg.override_gradient(lambda _, d: d * before):
            half = gg.sin(dy)
        t = gg.sin(dy)
        with gg.override_gradient(rule):
            other = gg.exp(t)
        return half + other

    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        z = x + 0.0
        h = gg.cos(z)
        with gg.override_gradient(rule):
            y = gg.exp(h)
        y = y * z * z
    file = through(tmp_path / "a.gg", graph, functions={"f": (x, [x, y])}, order=3)
    found = []
    for at, end in ((x, y), file.functions["f"].outputs):
        with at.graph:
            for _ in range(3):
                end = gg.gradients(end, at)
            found.append(gg.evaluate(end, {at: 1.2}))
    np.testing.assert_allclose(*found)


def test_an_order_that_is_none_is_refused(tmp_path):
    for order in (0, 2.0, True):
        with pytest.raises(ValueError, match="order is how often"):
            gg.save(tmp_path / "a.gg", gg.placeholder((), name="x").graph, order=order)


# --- code by name -------------------------------------------------------------------------------


@gg.register_function("tests/saw")
def saw(x):
    return x - np.floor(x)


def test_S32_a_python_function_travels_by_its_name(tmp_path):
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
        gg.GraphError, match=r"'tests/sew' \(at .*test_files.py:\d+\), which is not registered"
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
        with pytest.raises(gg.FileError, match=r"no op type 'FileTwice' here. It belongs to tests"):
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


def test_S32_saving_changes_nothing_of_the_graph(tmp_path):
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


def reading_inside(x):
    """A rule that reads what it holds of the inside."""
    held = []
    with gg.override_gradient(lambda site, dy: dy * held[0]):
        held.append(gg.sin(x))
        return gg.exp(held[0])


def around_a_loop(x):
    """A rule that asks for a default, which is a loop's."""
    with gg.override_gradient(lambda site, dy: 2.0 * site.default(dy)[0]):
        return gg.scan(lambda c, _: (c * gg.sin(c), None), x * x, None, length=3)[0]


@pytest.mark.parametrize("build", [reading_inside, around_a_loop])
@pytest.mark.parametrize("journey", ["stay", "copy", "load"])
def test_S32_saving_leaves_no_node_behind(build, journey, tmp_path):
    """So what is built later has the names that it would have had."""
    with gg.Graph() as graph:
        gg.identity(build(gg.placeholder((), name="x")), name="y")
    if journey == "copy":
        graph = graph.copy()
    elif journey == "load":
        graph = through(tmp_path / "a.gg", graph).graph
    before = len(graph)
    gg.save(tmp_path / "a.gg", graph)
    assert len(graph) == before
    slopes = []
    for g in (graph, gg.load(tmp_path / "a.gg").graph):
        with g:
            (again,) = gg.gradients(gg.gradients(g.tensor("y"), [g.tensor("x")]), [g.tensor("x")])
            slopes.append(float(gg.evaluate(again, {"x": 0.7})))
    assert slopes[0] == slopes[1]


def noisy(site, dy):
    """A gradient with noise."""
    return dy * gg.random.normal(())


def noisy_again(site, dy):
    """With noise that is drawn in what a rule of its own computes again."""
    (x,) = site.inputs
    return dy * gg.rules.checkpoint(lambda x: gg.sin(x) * gg.random.normal(()))(x)


@pytest.mark.parametrize("rule", [noisy, noisy_again])
def test_S32_a_stored_rule_draws_as_at_home(rule, tmp_path):
    """New numbers with each call, those of the home, and nobody else's."""
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        for name in ("y", "z"):
            with gg.override_gradient(rule):
                h = gg.sin(x)
            gg.identity(h, name=name)
    graphs = [through(tmp_path / "a.gg", graph).graph, pickle.loads(pickle.dumps(graph)), graph]
    gg.save(tmp_path / "b.gg", graphs[0])
    assert (tmp_path / "a.gg").read_bytes() == (tmp_path / "b.gg").read_bytes()
    found = []
    for g in graphs:
        with g:
            x, y, z = map(g.tensor, "xyz")
            slopes = [gg.gradients(t, x) for t in (y, y, z)]
            second = [gg.gradients(slopes[0], x, unconnected="zero")]
            found.append(gg.evaluate([*slopes, *second, gg.random.normal(())], {x: 0.7}))
    assert found[0] == found[1] == found[2]
    assert len(set(map(float, found[0]))) == 5
    if rule is noisy_again:
        np.testing.assert_allclose(found[0][3] / found[0][0], 1 / np.tan(0.7))


def test_S32_a_draw_of_a_rule_in_a_choice_that_is_taken_again_is_refused(tmp_path):
    def inner(site, dy):
        return gg.gradients(site.outputs[0], site.inputs[0], grad_ys=dy)

    def outer(site, dy):
        (x,) = site.inputs
        with gg.override_gradient(inner):
            h = gg.cond(x > 0, lambda: gg.sin(x) * gg.random.normal(()), lambda: x)
        return dy * h

    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        with gg.override_gradient(outer):
            gg.sin(x)
    with pytest.raises(gg.GradientError, match="recomputes a draw without a seed"):
        gg.save(tmp_path / "a.gg", graph)


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


def test_a_file_of_version_2_is_read_for_ever():
    """Written by the first graphgrad with lengths that are objects (version_2.py)."""
    file = gg.load(HERE / "version_2.gg", verify=True)
    step = file.functions["step"]
    found = gg.compile(step.inputs, step.outputs)(*version_2.FEEDS)
    for key, value in file.metadata["found"].items():
        np.testing.assert_allclose(found[key], value, rtol=1e-12)
    assert [t.type for t in step.inputs] == [
        gg.placeholder(("N", "x.1")).type,
        gg.placeholder(("2*N + 1",)).type,
    ]
    with pytest.raises(gg.ShapeError, match=r"gg.assume\(x.1 < 5\), stated at .*version_2.py:\d+"):
        gg.compile(step.inputs, step.outputs)(np.ones((1, 5)), np.ones(3))


def test_a_grid_that_an_earlier_version_saved_keeps_its_values():
    """fake_quantise rounded otherwise in 0.2 (fake_quantise.py): so does what was saved."""
    file = gg.load(HERE / "fake_quantise.gg", verify=True)
    found = file.functions["f"](fake_quantise.POINTS)
    for ours, theirs in zip(found, file.metadata["found"], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    _, x, outputs = fake_quantise.program()
    now = gg.compile(x, outputs)(fake_quantise.POINTS)
    numbers = np.clip(np.rint(fake_quantise.POINTS / 0.25) + 3, 0, 15) - 3
    np.testing.assert_array_equal(now[0], 0.25 * numbers)
    assert (np.asarray(now[0]) != found[0]).sum() == 15
    for ours, theirs in zip(now[1:], found[1:], strict=True):
        np.testing.assert_array_equal(ours, theirs)


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


def test_a_text_of_an_older_version_is_brought_up_to_date_step_by_step(monkeypatch):
    def step(version):
        return lambda document: {**document, "steps": [*document.get("steps", []), version]}

    monkeypatch.setattr(versions, "VERSION", 3)
    monkeypatch.setattr(versions, "MIGRATIONS", {version: step(version) for version in (1, 2)})
    for version, steps in {1: [1, 2], 2: [2], 3: []}.items():
        document = {"format": "graphgrad", "kind": "graph", "version": version}
        assert versions.up_to_date(document, "graph").get("steps", []) == steps


def test_the_text_has_a_line_for_each_piece(tmp_path):
    """Of a list of numbers or names, all stand on one."""
    document = {"files": ["a", "b"], "ops": [["Tanh", 1], ["Exp", 1]], "types": [], "n": [1, 2]}
    lines = ["{", '"files":["a","b"],', '"ops":[', '["Tanh",1],', '["Exp",1]', "],"]
    lines += ['"types":[],', '"n":[1,2]', "}", ""]
    assert dump(document).decode().split("\n") == lines


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
