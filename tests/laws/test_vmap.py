"""Laws over the registry: vmap of an op is the op on every example, and so is its gradient."""

from contextlib import nullcontext

import pytest

from graphgrad.laws import batching
from graphgrad.laws.trying import NotTried

from ..each import each
from .cases import CASES

WITH_INPUTS = [case for case in CASES if case[2]]
LOOPED = {"Conv2DBackpropFilter", "Conv2DBackpropInput"}  # where a tensor gives lengths when run
pytestmark = pytest.mark.filterwarnings("ignore::graphgrad.PerformanceWarning")


@each(WITH_INPUTS)
def test_vmap_of_an_op_is_a_few_nodes_and_no_loop(op, arrays):
    known = op.type in LOOPED and len(arrays) == 3
    with pytest.raises(NotTried, match="vmap runs it") if known else nullcontext():
        batching.few_nodes(op, arrays)


@each(WITH_INPUTS)
def test_vmap_over_as_many_examples_as_there_are_when_run(op, arrays):
    """None at all too."""
    batching.any_number_of_examples(op, arrays)


@each(WITH_INPUTS)
def test_vmap_is_a_loop_over_examples(op, arrays):
    batching.is_a_loop(op, arrays)


@each(WITH_INPUTS)
def test_forward_and_reverse_mode_agree_under_vmap(op, arrays):
    batching.forward_is_reverse(op, arrays)
