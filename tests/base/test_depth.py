"""What ends when Python's stack of calls does."""

import pytest

from graphgrad.base.depth import Bounded
from graphgrad.base.errors import GraphError


def test_calls_without_end_in_a_bounded_block_are_an_error_that_says_what_to_do():
    with (
        pytest.raises(GraphError, match=r"too deep for Python.*\n.*sys\.setrecursionlimit"),
        Bounded(),
    ):
        raise RecursionError


def test_other_errors_leave_it_as_they_are():
    with pytest.raises(KeyError, match="mine"), Bounded():
        raise KeyError("mine")
