"""Overrides mean the same after any chain of transforms, or an error says why not."""

import pytest

from .chains import case, check

LOST = ()  # seeds that are known to be wrong


@pytest.mark.parametrize("seed", [s for s in range(300) if s not in LOST])
def test_a_chain_of_transforms_means_the_loop_over_plain_arrays(seed):
    outcome = check(case(seed))
    assert outcome.what != "wrong", outcome.why


def test_most_chains_are_honoured():
    found = [check(case(seed)).what for seed in range(300, 400)]
    assert found.count("honoured") > 75


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_thousands_of_chains_of_transforms(block):
    wrong = {s: check(case(s)) for s in range(1000 + 500 * block, 1500 + 500 * block)}
    wrong = {s: o.why for s, o in wrong.items() if o.what == "wrong" and s not in LOST}
    assert wrong == {}
