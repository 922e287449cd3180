"""What kernels refuse on the JAX backend: errors of the run that change no variable."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.extend import apply, op_types

jax = pytest.importorskip("jax")
jax_checks = pytest.importorskip("graphgrad.execute.jax.checks")
TABLE = np.arange(12.0).reshape(4, 3)


def run(build, *arrays, **options):
    with gg.Graph():
        xs = [gg.placeholder(np.shape(a), np.asarray(a).dtype) for a in arrays]
        return gg.compile(xs, build(*xs), backend="jax", **options)(*arrays)


def test_the_error_names_index_axis_node_and_line_as_numpy_does():
    for index in (7, -9):
        with pytest.raises(IndexError) as error:
            run(lambda x, i: gg.take(x, i, axis=1), TABLE, np.array([0, index]))
        text = "\n".join([str(error.value), *error.value.__notes__])
        assert f"index {index} is out of bounds for axis 1 with size 3\n" in text
        assert "while running Gather_2 = Gather(axis=1), built at test_jax_checks.py:" in text
        assert "Placeholder_0:0: float64[4, 3], built at test_jax_checks.py:" in text


def test_the_first_of_several_refusals_is_raised():
    def build(x, i):
        return [gg.linalg.inv(x[:2, :2] * 0.0), x[i]]

    with pytest.raises(np.linalg.LinAlgError):
        run(build, TABLE, np.array([9]))


def test_a_loop_raises_what_its_first_bad_run_refuses():
    def step(total, row):
        i, n = row
        return total + gg.constant([1, 2, 3])[i] + 3**n, total

    places, powers = np.array([0, 1, 9, 0]), np.array([0, -1, 0, 0])
    with pytest.raises(ValueError, match="negative integer powers"):
        run(lambda i, n: gg.scan(step, gg.constant(0), (i, n))[0], places, powers)
    with pytest.raises(IndexError, match="index 9"):
        run(lambda i, n: gg.scan(step, gg.constant(0), (i, n))[0], places, powers * 0)


def test_what_was_refused_before_a_loop_that_refuses_nothing_is_raised():
    with pytest.raises(IndexError, match="index 9 "):
        run(lambda x, i: gg.fori_loop(0, 2, lambda _, t: t + 1.0, x[i]), TABLE, np.array([9]))


def test_only_what_may_refuse_something_carries_what_was_refused():
    with gg.Graph():
        x, i = gg.placeholder((3,)), gg.placeholder((), "int64")
        programs = gg.Program([x, i], [x + 1.0]), gg.Program([x, i], [x[i]])
    found = []
    ask = jax_checks.watched(
        lambda: found.extend(map(jax_checks.asked, [[p] for p in programs])),
        None,
        jax_checks.Refusals(),
    )
    with jax.enable_x64(True):
        ask()
    assert [status is not None for status in found] == [False, True]


def test_unsigned_indices_count_from_the_start_alone():
    """Those of an op itself, which public functions give int64."""
    gather = op_types()["Gather"](0)
    for index in (4, 2**63, 2**64 - 1):
        with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 0"):
            run(lambda x, i: apply(gather, x, i), TABLE, np.array([0, index], "uint64"))


def test_indices_that_pick_nothing_are_not_checked_as_in_numpy():
    x = gg.placeholder((3, 0), "float64")
    i, j = gg.placeholder((1, 1), "int64"), gg.placeholder((0,), "int64")
    feeds = np.zeros((3, 0)), np.array([[5]]), np.zeros(0, int)
    assert feeds[0][feeds[1:]].shape == (1, 0)
    for backend in ("numpy", "jax"):
        run = gg.compile([x, i, j], [x[i, j], gg.at(x)[i, j].set(1.0)], backend=backend)
        assert [y.shape for y in run(*feeds)] == [(1, 0), (3, 0)]


def test_a_loop_that_refused_ends():
    """JAX gives the least integer for what is out of bounds: so this would run for ever."""

    def build(x):
        return gg.while_loop(lambda k: gg.less(x[k], 100), lambda k: k + 1, gg.constant(0))

    with pytest.raises(IndexError, match="index 3 "):
        run(build, np.arange(3))


@pytest.mark.parametrize("donate", [False, True])
def test_a_run_that_refuses_changes_no_variable(donate):
    with gg.Graph() as graph:
        i = gg.placeholder((1,), "int64")
        w, n = gg.variable(TABLE, name="w"), gg.variable(0, name="n")
        other = gg.variable(np.ones(2), name="other")
        noise = gg.random.normal((2,))
        updates = {w: gg.at(w)[i].add(1.0), n: n + 1, other: other + noise}
        step = gg.compile(i, gg.sum(w[i]), updates=updates, backend="jax", donate=donate)
    step(np.array([1]))
    before, runs = graph.state.as_dict(), graph.state.runs
    for _ in range(2):
        with pytest.raises(IndexError, match="index 4 "):
            step(np.array([4]))
        after = graph.state.as_dict()
        for name in ("w", "n", "other"):
            np.testing.assert_array_equal(after[name], before[name])
        assert graph.state.runs == runs
    assert step(np.array([1])) == before["w"][1].sum()
    assert graph.state["n"] == 2


def test_a_mesh_says_what_is_out_of_bounds():
    mesh = jax.make_mesh((1,), ("data",))
    with gg.Graph():
        x, i = gg.placeholder((4, 3)), gg.placeholder((2,), "int64")
        where = {x: jax.sharding.PartitionSpec("data")}
        f = gg.compile([x, i], x[i], backend="jax", mesh=mesh, shardings=where)
    np.testing.assert_array_equal(f(TABLE, np.array([3, 0])), TABLE[[3, 0]])
    with pytest.raises(IndexError, match="index 4 "):
        f(TABLE, np.array([3, 4]))


def test_new_lengths_are_checked_against_themselves():
    with gg.Graph():
        x, i = gg.placeholder(("N",)), gg.placeholder((1,), "int64")
        f = gg.compile([x, i], x[i], backend="jax")
    for n in (2, 5, 3):
        assert f(np.ones(n), np.array([n - 1])) == 1
        with pytest.raises(
            IndexError, match=f"index {n} is out of bounds for axis 0 with size {n}"
        ):
            f(np.ones(n), np.array([n]))


def test_bounds_jax_checks_nothing():
    found = run(lambda x, i: x[i], TABLE, np.array([0, 4]), bounds="jax")
    np.testing.assert_array_equal(found, [TABLE[0], [np.nan] * 3])
    assert np.isnan(run(gg.linalg.cholesky, -np.eye(2), bounds="jax")[0, 0])


def test_bounds_takes_two_words():
    with pytest.raises(ValueError, match='"check" or "jax", got True'):
        run(gg.exp, TABLE, bounds=True)


def test_nothing_is_checked_in_a_function_of_jax():
    with gg.Graph():
        x, i = gg.placeholder((4, 3)), gg.placeholder((1,), "int64")
        f = gg.compile([x, i], x[i]).as_jax()
    with jax.enable_x64(True):
        found, _ = jax.jit(f)([TABLE, np.array([4])], {})
    assert np.isnan(found).all()


def test_a_program_that_refuses_nothing_has_no_check():
    """Its outputs are its own, and its loops carry nothing more."""
    with gg.Graph():
        x = gg.placeholder((3, 2))
        total, _ = gg.scan(lambda c, row: (gg.tanh(c + row), c), gg.zeros(2), x)
        f = gg.compile(x, [total, x[0], gg.gradients(gg.sum(total), x)], backend="jax")
    assert not jax_checks.may_refuse([f.program])
    with jax.enable_x64(True):
        _, status = jax.eval_shape(f._executable.run._traced, (np.ones((3, 2)),), ())
    assert status is None


def test_a_function_of_jax_within_a_program_is_not_checked_and_the_rest_is():
    with gg.Graph():
        x, i = gg.placeholder((4,)), gg.placeholder((1,), "int64")
        inner = gg.interop.to_jax(gg.compile([x, i], x[i]))
    with gg.Graph():
        x, i, j = gg.placeholder((4,)), gg.placeholder((1,), "int64"), gg.placeholder((1,), "int64")
        y = gg.interop.from_jax(inner, x, i) + x[j]
        f = gg.compile([x, i, j], y, backend="jax")
    assert f(TABLE[:, 0], [1], [2]) == 9
    assert np.isnan(f(TABLE[:, 0], [4], [2]))
    with pytest.raises(IndexError, match="index 4 "):
        f(TABLE[:, 0], [1], [4])


def test_a_function_of_jax_that_is_first_traced_within_a_program_leaks_nothing_into_it():
    with gg.Graph():
        x, i = gg.placeholder((4,)), gg.placeholder((1,), "int64")
        inner = gg.interop.to_jax(gg.compile([x, i], x[i]))
    with jax.enable_x64(True):
        within = jax_checks.watched(inner, None, jax_checks.Refusals())
        found, status = jax.jit(within)(TABLE[:, 0], np.array([4]))
    assert status is None
    assert np.isnan(found)
