"""Second names of functions: those under which NumPy's users look for them."""

from ..create.creation import asarray
from ..elementwise.logic import bitwise_invert, bitwise_left_shift, bitwise_right_shift
from ..elementwise.rounding import round
from ..reduce.reductions import max, min

__all__ = [
    "amax",
    "amin",
    "around",
    "array",
    "bitwise_not",
    "copy",
    "invert",
    "left_shift",
    "right_shift",
]

array = copy = asarray
invert = bitwise_not = bitwise_invert
left_shift, right_shift = bitwise_left_shift, bitwise_right_shift
around = round
amax, amin = max, min
