"""Laws over the registry: gradients are differences, to second order, and of the right type."""

from graphgrad.laws import gradients

from ..each import by_law, each
from .cases import CASES

SMOOTH = [case for case in CASES if gradients.is_smooth(*case[1:])]
LAWS = {
    "differences": gradients.differences,
    "second differences": gradients.second_differences,
    "unknown lengths": gradients.with_unknown_lengths,
}


@each(by_law(LAWS, SMOOTH))
def test_vjp_matches_central_differences_and_that_with_unknown_lengths(law, op, arrays):
    law(op, arrays)
