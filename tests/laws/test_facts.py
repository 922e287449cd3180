"""Laws over the registry: what an op says of its kernel is so."""

from graphgrad.laws.check_op import OF_KERNEL

from ..each import each
from .cases import CASES

FACTS = [
    (f"{name} {fact}", law, op, arrays)
    for name, op, arrays in CASES
    for fact, law in OF_KERNEL.items()
]


@each(FACTS)
def test_what_an_op_says_of_its_kernel_is_so(law, op, arrays):
    law(op, arrays)
