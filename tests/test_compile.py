"""compile: arguments, structures, variables, updates, errors."""

import re
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import graphgrad.ops.protocols.methods  # noqa: F401  (operators)
from graphgrad.base.errors import DTypeError, GraphError, ShapeError, StateError, SymbolicError
from graphgrad.compiled import compile, evaluate
from graphgrad.execute.numpy.backend import NumpyBackend
from graphgrad.ir.graph import Graph
from graphgrad.ir.op import Op
from graphgrad.ir.state import State
from graphgrad.ops.base import apply
from graphgrad.ops.elementwise.arithmetic import add, negative
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.sources import assign, identity, placeholder, variable


@pytest.fixture
def g():
    with Graph() as graph:
        yield graph


def test_structures_come_back_as_they_were(g):
    x = placeholder((), name="x")
    y, z = x + 1.0, x * 2.0
    outputs = {"b": [y, None], "a": (z, {"deep": y}), "none": None}
    values = compile([x], outputs)(3.0)
    assert values == {"b": [4.0, None], "a": (6.0, {"deep": 4.0}), "none": None}
    assert list(values) == ["b", "a", "none"]
    assert type(compile([x], (y,))(1.0)) is tuple
    assert compile([x], y)(1.0) == 2.0
    assert compile([x], [])(1.0) == []
    assert compile([x], None)(1.0) is None


def test_arguments_by_order_and_by_name(g):
    x, y = placeholder((), name="x"), placeholder((), name="y")
    f = compile([x, y], x - y)
    assert f(5.0, 3.0) == f(5.0, y=3.0) == f(y=3.0, x=5.0) == f(**{"x:0": 5.0, "y:0": 3.0}) == 2.0
    for args, kwargs, message in [
        ((1.0,), {}, "missing 'y'"),
        ((1.0, 2.0, 3.0), {}, "takes 2 arrays"),
        ((1.0, 2.0), {"z": 1.0}, "no input is called 'z'"),
        ((1.0, 2.0), {"y": 1.0}, "two arrays for input 'y'"),
    ]:
        with pytest.raises(TypeError, match=message):
            f(*args, **kwargs)


def test_any_tensor_can_be_an_input(g):
    x = placeholder((), name="x")
    y = exp(x)
    z = y + 1.0
    assert compile(y, z)(4.0) == 5.0
    assert compile([y], [y, z])(4.0) == [4.0, 5.0]
    v = variable(1.0)
    assert compile(v, v + 1.0)(10.0) == 11.0


def test_a_function_and_inputs_alone_are_answered_by_what_to_call():
    with pytest.raises(
        TypeError, match=r"got the function same: use gg.function\(fn\), which traces"
    ):
        compile(same)
    x = placeholder(())
    with pytest.raises(TypeError, match="inputs and outputs, got only inputs"):
        compile(x)


def same(x):
    return x


def test_inputs_that_are_no_inputs(g):
    x = placeholder((), name="x")
    with pytest.raises(GraphError, match="given twice"):
        compile([x, x], x)
    with pytest.raises(DTypeError, match="inputs are tensors"):
        compile([1.0], x)
    with pytest.raises(DTypeError, match="outputs are tensors"):
        compile([x], [x, 2.0])


def test_a_placeholder_that_is_not_given_is_named_with_its_line(g):
    x, _, k = placeholder((), name="x"), placeholder((), name="y"), placeholder((3,), name="k")
    with pytest.raises(GraphError) as error:
        compile([x], x + k)
    assert re.search(r"k:0: float64\[3\], built at .*test_compile.py:\d+", str(error.value))
    assert "y:0" not in str(error.value)


def test_tensors_of_two_graphs(g):
    x = placeholder((), name="x")
    with Graph():
        other = placeholder((), name="other")
    with pytest.raises(GraphError, match="other:0"):
        compile([x, other], x)


def test_arrays_are_converted_where_nothing_is_lost(g):
    x = placeholder((2,), "float32", name="x")
    f = compile(x, x * 1.0)
    for given in (
        [1, 2],
        (1.0, 2.0),
        np.array([1, 2]),
        np.array([1.0, 2.0]),
        np.arange(1, 3, dtype=">f4"),
    ):
        value = f(given)
        assert value.dtype == np.float32
        np.testing.assert_array_equal(value, [1, 2])
    n = placeholder((), "uint8", name="n")
    assert compile(n, n)(7).dtype == np.uint8


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("int64", 1.5, "cannot take float64"),
        ("float64", 1j, "cannot take complex128"),
        ("int8", 300, "cannot hold"),
        ("uint8", -1, "cannot hold"),
        ("bool", 2, "cannot take int64"),
        ("float64", "text", "takes numbers"),
        ("float64", None, "takes numbers"),
    ],
)
def test_arrays_of_the_wrong_kind(g, dtype, value, message):
    x = placeholder((), dtype, name="x")
    with pytest.raises(DTypeError, match=message) as error:
        compile(x, identity(x))(value)
    assert "'x'" in str(error.value)
    assert "test_compile.py" in str(error.value)


def test_a_tensor_is_no_array(g):
    x = placeholder((), name="x")
    with pytest.raises(SymbolicError):
        compile(x, identity(x))(x)


def test_shapes_are_checked(g):
    x, y = placeholder(("N", 3), name="x"), placeholder(("N", None), name="y")
    f = compile([x, y], [exp(x), exp(y)])
    f(np.ones((2, 3)), np.ones((2, 7)))
    with pytest.raises(ShapeError, match=r"'x' \(float64\[N, 3\].*shape \(2, 4\)"):
        f(np.ones((2, 4)), np.ones((2, 7)))
    with pytest.raises(ShapeError, match=r"length 'N' is 2 in 'x'.*and 5 in 'y'"):
        f(np.ones((2, 3)), np.ones((5, 7)))
    with pytest.raises(ShapeError, match="shape"):
        f(np.ones(3), np.ones((5, 7)))


def test_inputs_are_never_modified_and_results_never_alias(g):
    x = placeholder((50_000,), name="x")
    f = compile(x, [x, identity(x), exp(exp(x) * 2.0 - x)])
    a = np.zeros(50_000)
    values = f(a)
    for v in values:
        assert not np.shares_memory(v, a)
        v += 1
    assert (a == 0).all()


def test_subclasses_of_arrays_give_arrays(g):
    x = placeholder((2, 2), name="x")
    kind = type("Kind", (np.ndarray,), {})
    value = compile(x, x * x)(np.array([[1.0, 2.0], [3.0, 4.0]]).view(kind))
    assert type(value) is np.ndarray
    np.testing.assert_array_equal(value, [[1, 4], [9, 16]])


def test_reads_see_the_values_from_before(g):
    v, w = variable(1.0, name="v"), variable(2.0, name="w")
    f = compile([], [v, w], updates={v: w, w: v})
    assert f() == [1.0, 2.0]
    assert f() == [2.0, 1.0]
    assert (g.state[v], g.state[w]) == (1.0, 2.0)


@pytest.mark.parametrize("optimize", [True, False])
def test_assigns_among_what_is_needed_are_written(g, optimize):
    x, v = placeholder((), name="x"), variable(0.0, name="v")
    a = assign(v, v + x)
    unread = assign(v, v * 100.0)
    f = compile(x, exp(a) * 0.0 + v, optimize=optimize)
    assert f(2.0) == 0.0
    assert f(2.0) == 2.0
    assert g.state[v] == 4.0
    assert unread.name


def test_a_run_that_fails_writes_nothing(g):
    class FailsWhenNegative(Op):
        def infer(self, x):
            return (x,)

        def kernel(self, xp, x):
            if x < 0:
                raise ValueError("negative")
            return x + 0

    x, v, w = placeholder((), name="x"), variable(0.0), variable(0.0)
    f = compile(x, apply(FailsWhenNegative(), x), updates={v: x, w: v + 1.0})
    f(5.0)
    with pytest.raises(ValueError, match="negative"):
        f(-1.0)
    assert (g.state[v], g.state[w]) == (5.0, 1.0)


def test_an_update_that_changes_nothing_writes_nothing(g):
    x, v, w = placeholder((), name="x"), variable(1.0, name="v"), variable(2.0, name="w")
    f = compile(x, v + x, updates={v: v * 1.0, w: w + x})
    assert "writes w" in f.explain().splitlines()
    assert f(1.0) == 2.0
    assert list(g.state.values()) == [w.node]
    compile(v, v, updates={v: v})(5.0)
    assert g.state[v] == 5.0


def test_the_memory_of_old_values_is_used_again(g):
    v = variable(np.zeros(100_000), name="v")
    step = compile([], None, updates={v: v + 1.0}, backend="numpy")
    seen, held = [], None
    for i in range(8):
        step()
        (array,) = g.state.values().values()
        seen.append(array.ctypes.data)
        if i == 4:
            held = array  # as a run in another thread would
        del array
        assert (g.state[v] == i + 1).all()
    assert len(set(seen)) <= 4
    assert (held == 5).all()


def test_results_that_are_held_stay_as_they_are(g):
    x = placeholder((100_000,), name="x")
    f = compile(x, [x * 2.0, (x + 1.0)[::-1]], backend="numpy")
    results = [f(np.full(100_000, float(i))) for i in range(6)]
    parts = [f(np.full(100_000, float(i)))[1][:5] for i in range(6)]
    again = f(results[3][0])
    for i, (double, more) in enumerate(results):
        assert (double == 2 * i).all()
        assert (more == i + 1).all()
        assert (parts[i] == i + 1).all()
    assert (again[0] == 12).all()


def test_memory_kept_for_the_next_run_can_be_given_back(g):
    x = placeholder((100_000,), name="x")
    f = compile(x, (x * 2.0).sum() + (x * 3.0), backend="numpy")
    a = np.ones(100_000)
    tracemalloc.start()
    before = f(a)
    kept, _ = tracemalloc.get_traced_memory()
    f.release()
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept - now > 0.9 * (f.peak_bytes - a.nbytes)
    np.testing.assert_array_equal(f(a), before)


def test_two_updates_of_one_variable(g):
    v = variable(0.0, name="v")
    a, b = assign(v, 1.0), assign(v, 2.0)
    with pytest.raises(StateError, match=r"v .*written twice"):
        compile([], [a, b])
    with pytest.raises(StateError, match="written twice"):
        compile([], a, updates={v: b})


def test_updates_that_do_not_fit(g):
    v, x = variable(np.zeros(3), name="v"), placeholder((), name="x")
    with pytest.raises(StateError, match="cannot be updated"):
        compile([], [], updates={v: np.zeros(4)})
    with pytest.raises(StateError, match="updates are for variables"):
        compile([x], [], updates={x: 1.0})
    n = variable(np.zeros(3, "int32"), name="n")
    words = r"n:0 is int32.*float64.*(?s:.*)write gg.cast\(value, 'int32'\)"
    with pytest.raises(StateError, match=words):
        compile([], [], updates={n: v + 1.0})


def test_updates_take_numbers_and_cast(g):
    v = variable(np.zeros(2, "float32"), name="v")
    compile([], None, updates={v: np.array([1, 2.5])})()
    assert g.state[v].dtype == np.float32
    np.testing.assert_array_equal(g.state[v], [1, 2.5])


def test_what_a_user_got_is_not_the_state(g):
    x, v = placeholder((3,), name="x"), variable(np.zeros(3), name="v")
    y = x * 2.0
    f = compile(x, [y, v, x], updates={v: y})
    a = np.ones(3)
    first = f(a)
    for value in (*first, a):
        value[...] = 99
    np.testing.assert_array_equal(g.state[v], 2)
    held = compile([], v)()
    held[...] = 5
    np.testing.assert_array_equal(g.state[v], 2)
    h = compile(x, None, updates={v: x})
    h(a)
    a[...] = 0
    np.testing.assert_array_equal(g.state[v], 99)


def test_a_state_of_ones_own(g):
    v = variable(1.0)
    mine = State()
    f = compile([], v, updates={v: v + 1.0}, state=mine)
    f()
    assert (mine[v], g.state[v]) == (2.0, 1.0)


def test_one_snapshot_under_many_threads(g):
    v, w = variable(0), variable(0)
    read = compile([], [v, w])
    write = compile([], None, updates={v: add(v, 1), w: add(w, 1)})
    stop = threading.Event()
    torn = []

    def reader():
        while not stop.is_set():
            a, b = read()
            if a != b:
                torn.append((a, b))

    threads = [threading.Thread(target=reader) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(300):
        write()
    stop.set()
    for t in threads:
        t.join()
    assert torn == []


@pytest.mark.parametrize("optimize", [True, False])
def test_optimised_and_not_are_equal_bit_for_bit(g, optimize):
    x = placeholder((11,), name="x")
    y = identity(x) * 1.0 + negative(-x) / 1.0 - 0.0
    grid = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1, -1])
    got = compile(x, y, optimize=optimize, verify=True)(grid)
    with np.errstate(all="ignore"):
        assert got.tobytes() == (grid + grid).tobytes()


def test_explain_says_what_happened(g):
    x, v = placeholder((1000,), name="x"), variable(np.zeros(1000), name="v")
    y = exp(identity(x) * 1.0)
    f = compile(x, [y[:10], exp(y * 2.0)], updates={v: x * 2.0}, backend="numpy", num_threads=2)
    text = f.explain()
    for part in (
        "backend numpy, 2 threads",
        "times_one 1x",
        "plan for (float64[1000]): ",
        "1 results written over what they are made from",
        "1 outputs copied",
        "arena 8,000 bytes; peak 24,080 bytes",
        "writes v",
    ):
        assert part in text
    assert f.peak_bytes == 24_080
    assert "not optimised" in compile(x, x, optimize=False).explain()
    u = placeholder((None,), name="u")
    assert "at least" in compile(u, exp(u), backend="numpy").explain()
    assert "x: float64[1000]" in repr(f)


def test_explain_names_what_runs_as_one(g):
    x = placeholder((500, 500), name="x")
    f = compile(x, (exp(x) * 2.0 + x).sum(), backend="numpy")
    (line,) = [row for row in f.explain().splitlines() if row.startswith("as one: ")]
    assert line.endswith(" -> float64[]")
    assert all(name in line for name in ("Exp", "Multiply", "Add", "ReduceSum"))


@pytest.mark.parametrize(("count", "more"), [(12, []), (13, ["and 1 more groups"])])
def test_explain_lists_twelve_groups_and_counts_the_others(g, count, more):
    a, *xs = [placeholder((500, 500 + n)) for n in range(count + 1)]
    f = compile([a, *xs], [a @ a, *[exp(x) * 2.0 for x in xs]], backend="numpy")
    rows = f.explain().splitlines()
    groups = [row for row in rows if row.startswith("as one: ")]
    assert len(groups) == 12
    assert all("Exp" in row and "Multiply" in row for row in groups)
    assert [row for row in rows if row.endswith("more groups")] == more


def test_options_of_the_backend(g):
    x = placeholder((), name="x")
    assert compile(x, exp(x), backend="numpy", num_threads=1, fast_math=True)(0.0) == 1.0
    with pytest.raises(ValueError, match="at least 1"):
        compile(x, exp(x), backend="numpy", num_threads=0)
    with pytest.raises(TypeError, match="'numpy' takes no speed"):
        compile(x, exp(x), backend="numpy", speed=11)
    with pytest.raises(TypeError, match="num_threads: a backend object already"):
        compile(x, exp(x), backend=NumpyBackend(), num_threads=1)


def test_evaluate(g):
    x = placeholder((), name="x")
    y = x * 3.0
    assert evaluate(y, {x: 2.0}) == 6.0
    assert evaluate([y, None], {"x": 2.0}) == [6.0, None]
    assert evaluate({"z": y + 1.0}, {"x:0": 2.0}) == {"z": 7.0}
    with pytest.raises(GraphError, match="Did you mean"):
        evaluate(y, {"xx": 2.0})
    with pytest.raises(GraphError, match="keyed by"):
        evaluate(y, {3: 2.0})
    assert evaluate(y, {y: 1.0}) == 1.0
    for feeds, said in (
        ({x: 1.0, "x:0": 2.0}, "fed twice: as itself and as 'x:0'"),
        ({"x": 1.0, "x:0": 1.0}, "fed twice: as 'x' and as 'x:0'"),
    ):
        with pytest.raises(GraphError, match=said) as error:
            evaluate(y, feeds)
        assert "test_compile.py" in str(error.value)


def test_the_default_graph_is_left_as_it_was(g):
    v = variable(np.zeros(2))
    count = len(g)
    compile([], v)()
    assert len(g) == count


def test_long_chains_compile_and_run(g):
    x = placeholder((), name="x")
    y = x
    for _ in range(5_000):
        y = add(y, x)
    assert compile(x, y)(1.0) == 5_001
    assert compile(x, y, optimize=False)(1.0) == 5_001


def test_importing_graphgrad_loads_only_what_it_needs():
    """Not the packages that few programs use, and none that takes as long as NumPy."""
    late = {"scipy", "networkx", "llvmlite", "jax", "importlib.metadata", "pydot"}
    assert not late & _loaded_by("import graphgrad")


def test_compiling_a_recurrent_net_loads_no_more():
    made = _loaded_by(
        "import graphgrad as gg\n"
        "x, h = gg.placeholder((9, 4, 4)), gg.zeros((4, 4))\n"
        "w, u = gg.placeholder((4, 4)), gg.placeholder((4, 4))\n"
        "for t in range(9): h = gg.tanh(x[t] @ w + h @ u)\n"
        "y = gg.sum(h)\n"
        "f = gg.compile([x, w, u], [y, *gg.gradients(y, [w, u])], backend='numpy')\n"
        "assert sum(n.type == 'MatMul' for n in f.program.nodes) < 30"
    )
    assert not {"scipy", "networkx", "llvmlite", "jax"} & made


def _loaded_by(program):
    """The modules that are loaded when a program has run."""
    program += "\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_rows_of_different_lengths_are_an_error_that_names_the_input(g):
    x = placeholder((2,), name="x")
    with pytest.raises(ShapeError, match=r"'x' .*takes an array, got a list"):
        compile(x, x * 2.0)([[1], [2, 3]])
