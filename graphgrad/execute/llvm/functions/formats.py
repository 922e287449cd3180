"""Floating-point formats, and numbers taken apart into mantissa and exponent."""

from __future__ import annotations

from typing import NamedTuple

from ..emit.types import BITS
from ..emit.values import Value, joined, lanes_of


class Format(NamedTuple):
    """mantissa: its bits. bias: of the exponent. tiny: the least normal number."""

    mantissa: int
    bias: int
    tiny: float

    @property
    def shifter(self) -> float:
        """Added to a number far below it, this leaves its nearest integer in the lowest bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def shifter_bits(self) -> int:
        """The bits of the shifter."""
        return ((self.bias + self.mantissa) << self.mantissa) + (1 << (self.mantissa - 1))

    @property
    def one(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.mantissa


FORMATS = {
    "float": Format(23, 127, 2.0**-126),
    "double": Format(52, 1023, 2.0**-1022),
}


def format_of(x: Value) -> Format:
    """The format of a float."""
    return FORMATS[x.element]


def integer_part(x: Value) -> tuple[Value, Value]:
    """(the shifted number, whose lowest bits are the nearest integer; that integer as a float)."""
    shifter = format_of(x).shifter
    shifted = x + shifter
    return shifted, shifted - shifter


def times_power(x: Value, n: Value, shifted: Value) -> Value:
    """x * 2**n, rounded once, for |n| at most twice the bias.

    n: an integer as a float, `shifted` as `integer_part` gives it.
    """
    if x.body.module.target.scalef and x.lanes * BITS[x.element] % 512 == 0:
        return _scalef(x, n)
    f = format_of(x)
    whole = shifted.bits() - f.shifter_bits
    half = whole >> 1
    low = ((half << f.mantissa) + f.one).as_float()
    high = (((whole - half) << f.mantissa) + f.one).as_float()
    return x * low * high


def _scalef(x: Value, n: Value) -> Value:
    """AVX-512 has an instruction for it, of 512 bits."""
    half = x.lanes // 2
    if half * BITS[x.element] >= 512:
        parts = [_scalef(lanes_of(x, i, half), lanes_of(n, i, half)) for i in (0, half)]
        return joined(*parts)
    kind = "ps" if x.element == "float" else "pd"
    name = f"llvm.x86.avx512.mask.scalef.{kind}.512"
    mask = f"i{x.lanes}"
    x.body.module.declare(name, x.type, x.type, x.type, x.type, mask, "i32")
    args = f"{x.type} {x.name}, {x.type} {n.name}, {x.type} {x.name}, {mask} -1, i32 4"
    return x.let(f"call {x.type} @{name}({args})")
