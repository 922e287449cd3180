"""Random nests of loops, choices, batches and rules give what a tape of their runs gives."""

import pytest

from .nests import check, question


@pytest.mark.parametrize("seed", [12, 50, 59, 209, 285])
def test_S27_random_nests_are_what_a_tape_makes_of_their_runs(seed):
    assert check(question(seed)) == "agreed"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20_000, 22_000, 50))
def test_S27_thousands_of_random_nests(first):
    for seed in range(first, first + 50):
        check(question(seed))
