"""Random programs on open lengths give what they give on fixed ones."""

import collections

import pytest

from .lengths import BACKENDS, DRAWS, WAYS, check, question


def outcomes(seeds, backend="numpy", only=None):
    found = collections.Counter()
    for seed in seeds:
        try:
            counts = check(question(seed), backend, only)
        except Exception as error:
            way = f"python -m tests.fuzz.lengths --seed {seed} --count 1 --backend {backend}"
            error.add_note(f"{way} --shrink")
            raise
        found.update({how.partition(":")[0]: n for how, n in counts.items()})
    return found


def test_random_programs_on_open_lengths_are_those_on_fixed_ones():
    """And most of them are answered."""
    found = outcomes(range(20), only=2)
    assert found["agreed"] >= 28, found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 100, 40))
def test_more_random_programs_on_open_lengths(first):
    found = outcomes(range(first, first + 40), only=2)
    assert found["agreed"] >= 56, found


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", range(1000, 1200, 50))
def test_random_programs_at_nine_sizes(backend, first):
    outcomes(range(first, first + 50), backend)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(5_000, 10_000, 100))
def test_thousands_of_random_programs_on_open_lengths(first):
    outcomes(range(first, first + 100))


@pytest.mark.ci
def test_programs_travel_in_every_way_and_hold_every_op():
    questions = [question(seed) for seed in range(80)]
    assert {q.way for q in questions} == set(WAYS)
    drawn = " ".join(line for q in questions for _, line in q.lines)
    assert all(word in drawn for word in ("scan", "vmap", "override_gradient", "assume", "pad"))
    assert len({name for name, _ in DRAWS}) >= 20
