"""Laws over the registry: gradients are differences, to second order, and of the right type."""

import pytest

from graphgrad.laws import gradients

from ..each import by_law, each
from .cases import CASES, first_and_more

SMOOTH = [case for case in CASES if gradients.is_smooth(*case[1:])]
LAWS = {
    "differences": gradients.differences,
    "second differences": gradients.second_differences,
    "unknown lengths": gradients.with_unknown_lengths,
}
FIRST, MORE = first_and_more(SMOOTH)


@each(by_law(LAWS, FIRST))
def test_vjp_matches_central_differences_and_that_with_unknown_lengths(law, op, arrays):
    law(op, arrays)


@pytest.mark.slow
@each(by_law(LAWS, MORE)[::4])
def test_so_it_does_for_more_samples(law, op, arrays):
    law(op, arrays)
