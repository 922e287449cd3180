"""Laws over the registry: gradients are differences, to second order, and of the right type."""

import pytest

from graphgrad.laws import gradients

from ..each import each
from .cases import CASES

SMOOTH = [case for case in CASES if gradients.is_smooth(*case[1:])]


@pytest.mark.parametrize("order", [1, 2])
@each(SMOOTH)
def test_vjp_matches_central_differences(op, arrays, order):
    gradients.differences(op, arrays, order)


@each(SMOOTH)
def test_gradients_with_unknown_lengths_are_the_same(op, arrays):
    gradients.with_unknown_lengths(op, arrays)
