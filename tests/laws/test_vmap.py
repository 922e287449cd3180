"""Laws over the registry: vmap of an op is the op on every example, and so is its gradient."""

from contextlib import nullcontext

import pytest

from graphgrad.laws import batching
from graphgrad.laws.trying import NotTried

from ..each import by_law, each
from .cases import CASES, first_and_more

WITH_INPUTS = [case for case in CASES if case[2]]
FEW = 1  # sample of an element-wise op, which all are batched in one way
LOOPED = {"Conv2DBackpropFilter", "Conv2DBackpropInput"}  # where a tensor gives lengths when run
pytestmark = pytest.mark.filterwarnings("ignore::graphgrad.PerformanceWarning")


def few_nodes(op, arrays):
    """And no loop."""
    known = op.type in LOOPED and len(arrays) == 3
    with pytest.raises(NotTried, match="vmap runs it") if known else nullcontext():
        batching.few_nodes(op, arrays)


LAWS = {
    "few nodes": few_nodes,
    "any number of examples": batching.any_number_of_examples,
    "a loop over examples": batching.is_a_loop,
    "forward is reverse": batching.forward_is_reverse,
}


OF_ELEMENTS, MORE_OF_ELEMENTS = first_and_more([c for c in WITH_INPUTS if c[1].elementwise], FEW)
OTHERS, MORE_OTHERS = first_and_more([c for c in WITH_INPUTS if not c[1].elementwise])


@each(by_law(LAWS, [*OF_ELEMENTS, *OTHERS]), sample=2)
def test_vmap_of_an_op_is_the_loop_over_examples_in_a_few_nodes(law, op, arrays):
    law(op, arrays)


@pytest.mark.slow
@each(by_law(LAWS, [*MORE_OF_ELEMENTS, *MORE_OTHERS])[::3])
def test_so_it_is_of_more_samples(law, op, arrays):
    law(op, arrays)
