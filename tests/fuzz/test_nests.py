"""Random programs of loops, rules and chains of transforms give what a tape of their runs gives."""

import collections

import numpy as np
import pytest

from . import draws
from .nests import BACKENDS, check, features, question


def outcomes(seeds, backend):
    found = collections.Counter()
    for seed in seeds:
        try:
            found[check(question(seed, backend))] += 1
        except Exception as error:
            way = f"python -m tests.fuzz.nests --seed {seed} --count 1 --backend {backend} --shrink"
            error.add_note(way)
            raise
    return found


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(k, marks=pytest.mark.ci) for k in range(20, 80, 20))],
)
def test_S27_S41_S42_random_programs_are_what_a_tape_makes_of_their_runs(first):
    """And most of them are answered."""
    found = outcomes(range(first, first + 20), "numpy")
    assert found["agreed"] >= 12, found


@pytest.mark.ci
@pytest.mark.parametrize("backend", BACKENDS)
def test_S27_random_programs_on_other_backends(backend):
    outcomes(range(1000, 1020), backend)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20_000, 40_000, 100))
def test_S27_thousands_of_random_programs(first):
    outcomes(range(first, first + 100), "numpy")


def test_programs_hold_loops_in_loops_chains_rules_and_journeys():
    found = set().union(*(features(question(seed, "numpy")) for seed in range(60)))
    assert {"loops nested 2", "chain of 6", "op journey", "op custom", "draws", "order 3"} <= found


def test_the_law_of_draws_sees_what_is_shared_and_what_is_drawn_again():
    rng = np.random.default_rng(0)
    a, b, c = (float(x) for x in rng.normal(size=3))
    for notes, calls, earlier in [
        ([(1.0, a), (2.0, a)], [1.0, 2.0], []),  # one draw for two calls
        ([(1.0, a), (1.0, b)], [1.0], []),  # another one where it is computed again
        ([(1.0, a)], [1.0], [(1.0, a)]),  # the draw of the last run
    ]:
        draws.notes[:], draws.calls[:] = notes, calls
        with pytest.raises(AssertionError):
            draws.check_apart(earlier, exact=True)
    draws.notes[:], draws.calls[:] = [(1.0, a), (1.0, a), (2.0, b)], [1.0, 2.0]
    assert draws.check_apart([(1.0, c)], exact=True)
    draws.clear()
