"""Laws over the registry: what an op says of its kernel is so."""

from graphgrad.laws.check_op import OF_KERNEL

from ..each import by_law, each
from .cases import CASES


@each(by_law(OF_KERNEL, CASES))
def test_what_an_op_says_of_its_kernel_is_so(law, op, arrays):
    law(op, arrays)
