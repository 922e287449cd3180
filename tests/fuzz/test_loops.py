"""Random nests of loops, choices and rules are the same programs with Python's own loops."""

import pytest

from .loops import check


@pytest.mark.parametrize(
    "seed", [0, 3, 1049, *(pytest.param(k, marks=pytest.mark.ci) for k in (1, 2, 14))]
)
def test_S27_random_loops_are_their_runs_one_after_the_other(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 12_000, 50))
def test_S27_thousands_of_random_loops(first):
    for seed in range(first, first + 50):
        check(seed)
