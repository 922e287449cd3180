"""Overrides mean the same after any chain of transforms, or an error says why not."""

import functools

import pytest

from .chains import case, check

outcome = functools.cache(lambda seed: check(case(seed)))


@pytest.mark.parametrize(
    "start",
    [0, 20, *(pytest.param(s, marks=pytest.mark.ci) for s in range(40, 300, 20))],
)
def test_a_chain_of_transforms_means_the_loop_over_plain_arrays(start):
    """And most chains are honoured."""
    found = {seed: outcome(seed) for seed in range(start, start + 20)}
    assert {seed: o.why for seed, o in found.items() if o.what == "wrong"} == {}
    assert [o.what for o in found.values()].count("honoured") > 12


@pytest.mark.slow
@pytest.mark.parametrize("start", range(300, 1300, 100))
def test_more_chains_of_transforms(start):
    seeds = range(start, start + 100)
    assert {s: outcome(s).why for s in seeds if outcome(s).what == "wrong"} == {}
