"""S27: every override through every transform is honoured, or refused with a reason."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

from ..each import each
from . import matrix, overrides
from .matrix import COLUMNS, OVERRIDES
from .transforms import BESIDE, SEEDS, X, by_marks, first, known, spelled, world

ROOT = Path(__file__).resolve().parent.parent.parent
PLACES = [
    (i + j, row, column) for i, row in enumerate(OVERRIDES) for j, column in enumerate(COLUMNS)
]


def by_default(place, row, column):
    """Every tenth cell, and those that a column names: of each row and of each column a tenth."""
    if column.needs == "jax":
        return True
    return place % 10 == 0 if column.sample is None else row.name in column.sample


DEFAULT = [
    (f"{row.name}, {column.title}", row, column)
    for place, row, column in PLACES
    if by_default(place, row, column)
]
CELLS = [cell for cell in DEFAULT if cell[-1].needs != "jax"]
ON_JAX = [cell for cell in DEFAULT if cell[-1].needs == "jax"]
OTHERS = [
    (f"{column.title}, {row.name}", row, column)
    for place, row, column in PLACES
    if not by_default(place, row, column)
]


@pytest.mark.filterwarnings("ignore:PyFunction has no batching rule:graphgrad.PerformanceWarning")
@each(CELLS, lambda name: name.partition(",")[0])
def test_S27_an_override_survives(row, column):
    if column.needs:
        pytest.importorskip(column.needs)
    wrong = matrix.complaint(row, column, matrix.outcome(row, column))
    assert not wrong, wrong


@pytest.mark.filterwarnings("ignore:PyFunction has no batching rule:graphgrad.PerformanceWarning")
@each(ON_JAX, lambda name: name.partition(",")[0])
def test_S27_an_override_survives_on_jax(row, column):
    test_S27_an_override_survives.__wrapped__(row, column)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:PyFunction has no batching rule:graphgrad.PerformanceWarning")
@each(OTHERS[::2], lambda name: name.partition(",")[0], sample=2)
def test_S27_an_override_survives_what_is_sampled_by_default(row, column):
    wrong = matrix.complaint(row, column, matrix.outcome(row, column))
    assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PyFunction has no batching rule:graphgrad.PerformanceWarning")
@each(OTHERS[1::2], lambda name: name.partition(",")[0])
def test_S27_an_override_survives_the_other_half(row, column):
    test_S27_an_override_survives_what_is_sampled_by_default.__wrapped__(row, column)


def test_S27_the_matrix_is_large_and_nearly_all_of_it_is_honoured():
    rows = matrix.letters(matrix.declared)
    cells = "".join(rows)
    assert len(OVERRIDES) >= 20
    assert len(COLUMNS) >= 16
    assert cells.count("H") / len(cells) >= 0.95
    assert set(cells) <= {"H", "E"}
    known_cells = {(row.name, column.title) for row in OVERRIDES for column in COLUMNS}
    assert set(matrix.REFUSED) <= known_cells


def unmarked(row):
    """The gradient without the override."""
    with gg.Graph():
        w = world(row, lambda row, h, k: _plain(row, h, k))
        return gg.evaluate(
            gg.gradients(w.loss, [w.x], overrides="none", unconnected="zero"), {w.x: X}
        )


def _plain(row, h, k):
    made = row.inside(h, row.prepared(k))
    made.ys = row.outside(made.raws)
    return made


# BlackBox is an op whose own gradient is the rule: there is nothing to take off.
@pytest.mark.parametrize(
    "row", [r for r in OVERRIDES if r.name != "BlackBox"], ids=lambda r: r.name
)
def test_every_override_changes_the_gradient(row):
    (plain,) = unmarked(row)
    assert not np.allclose(plain, known(row, first)[1], atol=1e-3)


class ByHand:
    """In place of a spelling: arrays, no graph at all."""

    missing = ()

    def place(self, inputs, inside, meaning):
        return [np.asarray(t) for t in inside]


WITH_NUMPY_ALONE = [
    row
    for row in OVERRIDES
    if row.name not in {"Variables", "Random", "Integer", "IntegerOutput", "BlackBox"}
]


@pytest.mark.parametrize("row", WITH_NUMPY_ALONE, ids=lambda row: row.name)
def test_the_reference_is_what_numpy_alone_computes(row):
    h, k = 0.5 * X * X + X, np.cos(X)
    spelling = ByHand()
    if row.name == "Nested":
        made = overrides.Made([h], np.sin(h), [np.exp(np.sin(h))], ys=[np.exp(np.sin(h))], k=k)
        made.back = lambda d: [d * made.raws[0]]
    elif row.name == "Weights":
        made = overrides.Made([h], h @ overrides.WEIGHTS, [np.tanh(h @ overrides.WEIGHTS)])
    else:
        made = row.inside(h, row.prepared(k))
    made.ys = made.raws
    dys = [2.0 * seed * y for seed, y in zip(SEEDS, made.ys)]
    dins = row.meaning(made, spelling, *dys)
    slopes = {"OpType": np.cos(h), "Builtin": 3.0 * np.cos(h)}
    dh = BESIDE + np.asarray(dins[0]) * slopes.get(row.name, 1.0)
    dk = dins[1] if len(dins) > 1 else 0.0
    expected = dh * (1.0 + X) - dk * np.sin(X)
    np.testing.assert_allclose(known(row, first)[1], expected, rtol=1e-12)


def test_the_reference_of_no_override_is_the_gradient():
    """The spelling of a rule that is the derivative gives what an unmarked graph gives."""

    class Exact(overrides.Override):
        def meaning(self, s, spelling, g):
            return [g * s.raws[0] * np.cos(s.ins[0])]

    row = Exact()
    with gg.Graph():
        w, plain = spelled(row), world(row, lambda row, h, k: _plain(row, h, k))
        found, y = [], w.loss
        expected, z = [], plain.loss
        for _ in range(3):
            (y,), (z,) = w.ask([y], [w.x]), gg.gradients(z, [plain.x])
            found.append(y)
            expected.append(z)
        feeds = {w.x: X, plain.x: X}
        for a, b in zip(gg.evaluate(found, feeds), gg.evaluate(expected, feeds)):
            np.testing.assert_allclose(a, b, rtol=1e-11)


class Lost(overrides.Linear):
    """A rule that is not where it is said to be: the matrix sees it."""

    def marked(self, h, k, last=overrides.straight):
        return _plain(self, h, k)


def test_a_lost_override_is_seen():
    column = next(c for c in COLUMNS if c.title == "gradients")
    assert matrix.outcome(Lost(), column).status == "S"
    assert [matrix.differs(*pair) != "" for pair in by_marks(Lost())] == [False, True]


def test_an_error_without_a_reason_is_no_reason():
    column = matrix.Column("broken", lambda row: 1 / 0)
    assert matrix.outcome(overrides.Linear(), column).status == "X"


def test_the_document_shows_the_matrix():
    tool = runpy.run_path(str(ROOT / "tools" / "survival.py"))
    assert tool["DOCUMENT"].read_text() == tool["document"](), (
        "run python tools/survival.py --write"
    )
