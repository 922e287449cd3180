"""What a training script is made of: minimize, functions with variables, batches, progress."""

import io

import numpy as np
import pytest

import graphgrad as gg

ROWS = np.random.default_rng(0).normal(size=(8, 2))


@pytest.fixture
def model():
    """A graph with a loss of two variables and a rule in it, which halves the gradient."""
    with gg.Graph() as graph:
        x = gg.placeholder(("N", 2), name="x")
        w, b = gg.variable([1.0, 2.0], name="w"), gg.variable(0.5, name="b")
        gg.variable(7.0, name="other")
        gg.variable(1, name="count")
        with gg.override_gradient(lambda site, *dys: [d / 2 for d in site.default(*dys)]):
            y = x @ w + b
        loss = gg.mean(y * y)
        yield graph, x, w, b, loss


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_minimize_is_updates_of_the_gradients(model, backend):
    graph, x, w, b, loss = model
    for overrides in (None, "none"):
        grads = gg.gradients(loss, [w, b], overrides=overrides)
        updates = gg.optimizers.Adam(0.1).updates([w, b], grads)
        state = gg.State(graph)
        step = gg.compile(x, loss, updates=updates, state=state, backend=backend)
        train = gg.optimizers.Adam(0.1).minimize(loss, overrides=overrides)
        session = gg.Session(graph, backend=backend)
        for count in (1, 2, 3):
            value, number = session.run([loss, train], {x: ROWS})
            np.testing.assert_allclose(value, step(ROWS), rtol=1e-6)
            assert number == count
        np.testing.assert_allclose(session.run(w), state[w], rtol=1e-6)
        np.testing.assert_allclose(session.run(b), state[b], rtol=1e-6)
        assert session.run(b) != 0.5


def test_minimize_trains_what_the_loss_is_made_of(model):
    graph, _, w, b, loss = model
    before = set(graph.variables)
    gg.optimizers.SGD(0.1).minimize(loss)
    written = {n.inputs[0] for n in graph.nodes if n.type == "Assign"}
    assert written & before == {w, b}
    gg.optimizers.SGD(0.1).minimize(loss, [b])
    assert {n.inputs[0] for n in graph.nodes[-3:] if n.type == "Assign"} & before == {b}


def test_what_minimize_refuses(model):
    _, x, w, b, _loss = model
    sgd = gg.optimizers.SGD(0.1)
    with pytest.raises(gg.ShapeError, match=r"one number.*test_training\.py:\d+.*gg\.mean"):
        sgd.minimize(x @ w)
    with pytest.raises(gg.GradientError, match="depends on no trainable"):
        sgd.minimize(gg.sum(x))
    with pytest.raises(gg.GradientError, match="nothing flows"):
        sgd.minimize(gg.sum(w), [w, b])


def test_minimize_as_an_output_of_a_compiled_function_and_of_a_file(model, tmp_path):
    graph, x, w, _, loss = model
    train = gg.optimizers.SGD(0.1, momentum=0.9).minimize(loss)
    gg.save(tmp_path / "a.gg", graph, functions={"train": ([x], [loss, train])})
    there = gg.load(tmp_path / "a.gg").functions["train"].compile()
    here = gg.compile(x, [loss, train])
    for _ in range(3):
        np.testing.assert_allclose(here(ROWS), there(ROWS))
    assert graph.state[w][0] != 1.0


def test_clip_by_norm_is_each_by_itself():
    grads = [gg.constant([3.0, 4.0]), None, gg.constant([0.3, 0.4])]
    long, none, short = gg.evaluate(gg.optimizers.clip_by_norm(grads, 1.0))
    np.testing.assert_allclose(long, [0.6, 0.8])
    np.testing.assert_allclose(short, [0.3, 0.4])
    assert none is None
    with pytest.raises(gg.GradientError, match="no gradient"):
        gg.optimizers.clip_by_norm([None], 1.0)


# --- gg.function with variables -------------------------------------------------------------------


def test_a_function_reads_and_writes_variables(model):
    graph, _, w, b, _ = model

    @gg.function(graph=graph)
    def train(rows):
        loss = gg.mean((rows @ w + b) ** 2)
        gg.optimizers.SGD(0.1).minimize(loss)
        return loss

    losses = [float(train(ROWS)) for _ in range(20)]
    assert losses[-1] < losses[0] / 2
    assert graph.state[w][0] != 1.0
    score = gg.function(lambda rows: gg.mean((rows @ w + b) ** 2), graph=graph)
    assert score(ROWS) < losses[-1]
    assert score(ROWS[:3]) == score(ROWS[:3])
    with pytest.raises(gg.StateError, match=r"(?s)each build would have its own.*drop_last"):
        train(ROWS[:3])


def test_what_a_function_assigns_is_written_once():
    count = gg.variable(0)

    def twice():
        gg.assign(count, count + 1)
        gg.assign(count, count + 2)
        return count

    with pytest.raises(gg.StateError, match=r"written twice in one run"):
        gg.function(twice, graph=count.graph)()
    add = gg.function(lambda: gg.assign(count, count + 1), graph=count.graph)
    assert [int(add()), int(add())] == [1, 2]
    with pytest.raises(TypeError, match="graph= as a Graph"):
        gg.function(twice, graph="g")


# --- batches, progress ----------------------------------------------------------------------------


def test_batches_are_all_rows_in_each_epoch():
    xs, ys = np.arange(10), 10 * np.arange(10)
    made = gg.training.batches({"x": xs, "y": ys}, 4, seed=0, epochs=2)
    first, second = list(made), list(made)
    assert len(made) == len(first) == 6
    assert all((batch["y"] == 10 * batch["x"]).all() for batch in first)
    epochs = [np.concatenate([b["x"] for b in first[k : k + 3]]) for k in (0, 3)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(10))] * 2
    assert epochs[0].tolist() != epochs[1].tolist()
    assert all((a["x"] == b["x"]).all() for a, b in zip(first, second, strict=True))
    assert [len(b) for b in gg.training.batches(xs, 4, drop_last=True)] == [4, 4]
    assert len(gg.training.batches(xs, 4, drop_last=True)) == 2


@pytest.mark.parametrize(
    ("arrays", "size", "error"),
    [
        ((np.ones(3), np.ones(4)), 2, gg.ShapeError),
        (np.ones(3), 0, ValueError),
        ((), 2, ValueError),
    ],
)
def test_batches_refuse(arrays, size, error):
    with pytest.raises(error):
        gg.training.batches(arrays, size)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_shows_and_passes_on():
    steps = (k for k in range(3))
    shown = io.StringIO()
    assert list(gg.training.progress(steps, "fit", file=shown)) == [0, 1, 2]
    assert shown.getvalue() == "fit: 3 steps\n"


def test_progress_is_a_bar_in_a_terminal():
    pytest.importorskip("rich")
    shown = Terminal()
    assert list(gg.training.progress(range(3), "fit", file=shown)) == [0, 1, 2]
    assert "100%" in shown.getvalue()
