"""Values in loops: every run is seen, stacked or under its number."""

import numpy as np
import pytest

import graphgrad as gg

ROWS = np.array([1.0, 2.0, -1.0, 3.0])


def product(x, reverse=False):
    """s = sqrt(s x) for each x, and the sines of it."""

    def run(s, row):
        s = gg.identity(gg.sqrt(s * row), name="root")
        return s, gg.cond(row > 1.0, lambda: gg.identity(gg.sin(s), name="large"), lambda: s)

    return gg.scan(run, 1.0, x, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
def test_values_of_a_body_are_stacked_by_row(reverse):
    x = gg.constant(abs(ROWS))
    last, made = product(x, reverse)
    loop = last.node.name
    found = gg.debug.values(made)
    s, want = 1.0, np.empty(4)
    for at in reversed(range(4)) if reverse else range(4):
        s = want[at] = np.sqrt(s * abs(ROWS[at]))
    np.testing.assert_allclose(found[f"{loop}/body/root:0"], want)
    choice = next(n.name for n in last.node.op.bodies[0].nodes if n.type == "Cond")
    assert found[f"{loop}/body/{choice}:0"].shape == (4,)
    for at in (1, 3):
        found_at = found[f"{loop}/body[{at}]/{choice}/then/large:0"]
        np.testing.assert_allclose(found_at, np.sin(want[at]))
    assert not [name for name in found if "body[0]" in name]


def test_inner_loops_are_stacked_in_outer_ones_where_they_run_as_often():
    def outer(n):
        def run(i, row):
            end = gg.cast(row, "int64") if n is None else n
            return i, gg.fori_loop(0, end, lambda k, c: gg.identity(c * 2.0, name="twice"), row)

        return gg.scan(run, 0, gg.constant([1.0, 3.0]))[1]

    shapes = {name: a.shape for name, a in gg.debug.values(outer(3)).items() if "twice" in name}
    assert list(shapes.values()) == [(2, 3)]
    found = {
        name: a.tolist() for name, a in gg.debug.values(outer(None)).items() if "twice" in name
    }
    assert [name.split("/")[1] for name in found] == ["body[0]", "body[1]"]
    assert list(found.values()) == [[2], [6, 12, 24]]


def test_the_test_of_a_while_loop_runs_once_more():
    y = gg.while_loop(
        lambda c: gg.identity(c < 5.0, name="go"), lambda c: c * 2.0, gg.constant(1.0)
    )
    found = gg.debug.values(y)
    assert found[f"{y.node.name}/test/go:0"].tolist() == [True, True, True, False]


def test_the_guard_names_the_run_and_the_node_in_the_body():
    x = gg.placeholder((4,))
    last, _ = product(x)
    with pytest.raises(gg.debug.NotFiniteError, match=r"run 2 of the body of Scan") as caught:
        gg.debug.nan_guard(last, {x: ROWS})
    assert caught.value.node.type == "Sqrt"


def test_the_guard_ends_a_loop_that_would_not():
    y = gg.while_loop(
        lambda c: gg.logical_not(c > 1.0), lambda c: gg.log(c), gg.constant(-1.0), max_trips=9
    )
    with pytest.raises(gg.debug.NotFiniteError, match="run 0 of the body of While"):
        gg.debug.nan_guard(y)


def test_the_guard_gives_the_values_where_all_is_well():
    x = gg.constant(abs(ROWS))
    made = product(x)[1]
    dx = gg.gradients(gg.sum(made), x)
    for guarded, plain in zip(gg.debug.nan_guard([made, dx]), gg.evaluate([made, dx])):
        np.testing.assert_allclose(guarded, plain)


def test_blame_names_the_run_that_poisons_and_not_the_loop_around_it():
    x, w = gg.constant([1.0, 2.0, 0.0, 3.0]), gg.constant(1.0)
    y = gg.scan(lambda s, row: (gg.sqrt(s * w * row), None), 1.0, x)[0]
    (suspect,) = gg.debug.blame(gg.gradients(y, w)).suspects
    assert (suspect.kind, suspect.site.type) == ("poisoned", "Sqrt")
    assert "run 3 of the body" in suspect.message


def test_blame_lets_pass_what_is_dead_in_some_runs_only():
    x, w = gg.constant([1.0, -2.0, 3.0]), gg.constant(1.0)
    y = gg.sum(gg.map(lambda row: gg.nn.relu(w * row), x))
    assert not gg.debug.blame(gg.gradients(y, w))
    dead = gg.sum(gg.map(lambda row: gg.nn.relu(-w * row * row), x))
    assert [s.kind for s in gg.debug.blame(gg.gradients(dead, w)).suspects] == ["killed"]
