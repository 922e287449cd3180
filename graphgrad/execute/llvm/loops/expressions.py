"""What NumPy's ufuncs compute, as IR: with its NaN, its infinities and its wrapped integers.

Functions whose results depend on polynomials are within 4 units in the last place of NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ....base.kinds import FLOAT32, is_bfloat16
from ....ir.types import DType
from ....lower.items import Dialect
from ....ops.elementwise.exponential import TanhSlope
from ....ops.special.error import Erf, Erfc
from ..emit.types import BITS, Target, element_of
from ..emit.values import Formula, Number, Pair, Value, call_pair
from ..functions import circular, error, exponential, remainder
from ..functions.power import power

HELPERS: dict[str, Formula] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "log": exponential.log,
    "log2": exponential.log2,
    "log10": exponential.log10,
    "log1p": exponential.log1p,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "tanh": exponential.tanh,
    "tanh_slope": exponential.tanh_slope,
    "arcsinh": exponential.asinh,
    "arccosh": exponential.acosh,
    "arctanh": exponential.atanh,
    "sin": circular.sin,
    "cos": circular.cos,
    "tan": circular.tan,
    "arcsin": circular.asin,
    "arccos": circular.acos,
    "arctan": circular.atan,
    "erf": error.erf,
    "erfc": error.erfc,
}
"""Functions of one float that are written once in a module, and called."""


PAIRS: dict[str, tuple[Pair, int]] = {
    "tanh": (exponential.tanh_and_slope, 0),
    "tanh_slope": (exponential.tanh_and_slope, 1),
    "sin": (circular.sin_and_cos, 0),
    "cos": (circular.sin_and_cos, 1),
}
"""What computes one of them and another of the same number for little more, and which it is."""


DIALECT = Dialect({Erf: "erf", Erfc: "erfc", TanhSlope: "tanh_slope"}, casts=True, scalar=True)


class Operands(NamedTuple):
    """What a ufunc is applied to.

    values   one or two (three for `choose`) of one type
    kind     NumPy's letter of what they hold: b, i, u or f
    numbers  for each, the number that it is known to be in every lane, or None
    flags    fast-math flags
    inline   whether helpers are to be inlined
    paired   whether the other of a pair is computed too
    """

    values: Sequence[Value]
    kind: str
    numbers: Sequence[Number | None]
    flags: str
    inline: bool
    paired: bool = False

    def compare(self, how: str) -> Value:
        """lt, le, gt, ge, eq or ne, as NumPy has it."""
        x, y = self.values
        if self.kind == "f":
            return x.compare("une" if how == "ne" else f"o{how}", y)
        if how in ("eq", "ne"):
            return x.compare(how, y)
        return x.compare(("s" if self.kind == "i" else "u") + how, y)

    def arithmetic(self, op: str) -> Value:
        """add, sub or mul."""
        x, y = self.values
        return x.arithmetic(op, y, self.flags)


Expression = Callable[[Operands], Value]


def supported(name: str, dtypes: Sequence[DType], made: DType, target: Target) -> bool:
    """Whether `express` can write a ufunc of operands of these dtypes."""
    of = dtypes[-1] if dtypes else made
    if any(element_of(d) is None for d in (*dtypes, made)):
        return False
    if name == "cast":
        return True
    if name in HELPERS:
        return of.kind == "f" and target.fma
    if name == "power":
        return of.itemsize == 4 and of.kind == "f" and target.fma
    kinds, _ = _TABLE.get(name, ("", None))
    return of.kind in kinds


def express(name: str, operands: Operands) -> Value:
    """The value of a ufunc, or of `choose`."""
    if operands.paired:
        formula, place = PAIRS[name]
        return call_pair(formula, operands.values[0], operands.inline)[place]
    helper = HELPERS.get(name)
    if helper is not None:
        return operands.values[0].call(helper, inline=operands.inline)
    return _TABLE[name][1](operands)


def cast(x: Value, before: DType, after: DType) -> Value:
    """x as another dtype, as NumPy casts: floats are cut to integers, what is not 0 is True."""
    if is_bfloat16(before):
        high = x.convert("zext", "i32") << 16
        return cast(high.as_float(), FLOAT32, after)
    if is_bfloat16(after):
        return _upper_half(cast(x, before, FLOAT32))
    element = element_of(after)
    assert element is not None
    if after.kind == "b":
        if before.kind == "b":
            return x
        return x.compare("une" if before.kind == "f" else "ne", 0)
    if before.kind == "b":
        zero = Value(x.body, element, x.lanes, "0").number(0)
        return x.where(zero.number(1), zero)
    if element == x.element:
        return x
    wider = BITS[element] > BITS[x.element]
    if before.kind == "f" and after.kind == "f":
        return x.convert("fpext" if wider else "fptrunc", element)
    if before.kind == "f":
        made = x.convert("fptoui" if after.kind == "u" else "fptosi", element)
        return made.let(f"freeze {made.type} {made.name}")
    if after.kind == "f":
        return x.convert("uitofp" if before.kind == "u" else "sitofp", element)
    extend = "zext" if before.kind == "u" else "sext"
    return x.convert(extend if wider else "trunc", element)


def _upper_half(x: Value) -> Value:
    """The bits of the bfloat16 next to a float, the even one of two; of NaN, a NaN."""
    bits = x.bits()
    even = bits.binary("lshr", 16) & 1
    rounded = (bits + 0x7FFF + even).binary("lshr", 16)
    kept = bits.binary("lshr", 16) | 0x40
    return x.is_nan().where(kept, rounded).convert("trunc", "i16")


# --- arithmetic --------------------------------------------------------------------------------


def _add(o: Operands) -> Value:
    return o.values[0] | o.values[1] if o.kind == "b" else o.arithmetic("add")


def _multiply(o: Operands) -> Value:
    return o.values[0] & o.values[1] if o.kind == "b" else o.arithmetic("mul")


def _divide(o: Operands) -> Value:
    return o.values[0].binary(f"fdiv {o.flags}".rstrip(), o.values[1])


def _square(o: Operands) -> Value:
    (x,) = o.values
    return x.arithmetic("mul", x, o.flags)


def _absolute(o: Operands) -> Value:
    (x,) = o.values
    if o.kind in "ub":
        return x
    return x.abs() if o.kind == "f" else (x < 0).where(-x, x)


def _sign(o: Operands) -> Value:
    (x,) = o.values
    zero = x.number(0)
    if o.kind == "u":
        return x.equals(0).where(zero, x.number(1))
    rest = zero if o.kind == "i" else x.equals(0).where(zero, x)
    return (x > 0).where(x.number(1), (x < 0).where(x.number(-1), rest))


def _extremum(o: Operands, how: str) -> Value:
    """The greater (gt) or less (lt) of two, NaN where one is; of equal ones the second, as NumPy.

    The zeros have signs: max(-0.0, 0.0) is 0.0, max(0.0, -0.0) is -0.0.
    """
    x, y = o.values
    if o.kind == "b":
        return x | y if how == "gt" else x & y
    if o.kind != "f":
        return o.compare(how).where(x, y)
    for number, order in ((o.numbers[1], "u"), (o.numbers[0], "o")):  # the other may be NaN
        if number is not None and not math.isnan(number):
            return x.compare(order + how, y).where(x, y)
    return x.extremum(how, y)


def _floor_divide(o: Operands) -> Value:
    x, y = o.values
    if o.kind == "f":
        return _floor_divide_floats(x, y)
    zero = y.equals(0)
    if o.kind == "u":
        return zero.where(x.number(0), x.binary("udiv", zero.where(y.number(1), y)))
    d, rest = _divisor(x, y)
    quotient = x.binary("sdiv", d)
    down = ~rest.equals(0) & ((rest ^ d) < 0)
    return zero.where(x.number(0), down.where(quotient - 1, quotient))


def _divisor(x: Value, y: Value) -> tuple[Value, Value]:
    """(y or, where x / y is not an integer, 1; x less a multiple of that, with the sign of x)."""
    least = -(1 << (BITS[x.element] - 1))
    wrong = y.equals(0) | (x.equals(least) & y.equals(-1))
    d = wrong.where(y.number(1), y)
    return d, x.binary("srem", d)


def _floor_divide_floats(x: Value, y: Value) -> Value:
    rest = remainder.rest(x, y)
    quotient = (x - rest) / y
    down = rest.compare("une", 0) & ((y < 0) ^ (rest < 0))
    quotient = down.where(quotient - 1.0, quotient)
    whole = quotient.intrinsic("floor")
    whole = (quotient - whole > 0.5).where(whole + 1.0, whole)
    plain = x / y
    whole = quotient.equals(0.0).where(plain.number(0.0).with_sign_of(plain), whole)
    return y.equals(0.0).where(plain, whole)


def _remainder(o: Operands) -> Value:
    x, y = o.values
    if o.kind == "f":
        rest = remainder.rest(x, y)
        other = (y < 0) ^ (rest < 0)
        moved = other.where(rest + y, rest)
        return rest.equals(0.0).where(rest.number(0.0).with_sign_of(y), moved)
    zero = y.equals(0)
    if o.kind == "u":
        return zero.where(x.number(0), x.binary("urem", zero.where(y.number(1), y)))
    d, rest = _divisor(x, y)
    other = ~rest.equals(0) & ((rest ^ d) < 0)
    return zero.where(x.number(0), other.where(rest + d, rest))


def _fmod(o: Operands) -> Value:
    x, y = o.values
    if o.kind == "f":
        return remainder.rest(x, y)
    zero = y.equals(0)
    if o.kind == "u":
        return zero.where(x.number(0), x.binary("urem", zero.where(y.number(1), y)))
    return zero.where(x.number(0), _divisor(x, y)[1])


def _hypot(o: Operands) -> Value:
    """The larger times sqrt(1 + ratio**2); infinite where one is, even beside NaN."""
    x, y = (v.abs() for v in o.values)
    greater, less = (x > y).where(x, y), (x > y).where(y, x)
    ratio = greater.equals(0.0).where(less, less / greater)
    made = greater * ratio.fma(ratio, 1.0).sqrt()
    infinite = x.equals(math.inf) | y.equals(math.inf)
    return infinite.where(made.number(math.inf), (x.is_nan() | y.is_nan()).where(x + y, made))


def _logaddexp(o: Operands) -> Value:
    x, y = o.values
    gap = x - y
    more = (-gap.abs()).call(exponential.exp, inline=o.inline)
    more = more.call(exponential.log1p, inline=o.inline)
    made = (gap > 0.0).where(x, y) + more
    return x.equals(y).where(x + math.log(2.0), gap.is_nan().where(gap, made))


def _power(o: Operands) -> Value:
    return o.values[0].call(power, o.values[1], inline=False)


# --- logic, bits -------------------------------------------------------------------------------


def _shift(o: Operands, op: str) -> Value:
    """Shifted by as many places as there are bits, or more, nothing is left but the sign."""
    x, y = o.values
    bits = BITS[x.element]
    inside = y.compare("ult", bits)
    if op == "shl" or o.kind == "u":
        return inside.where(x.binary("shl" if op == "shl" else "lshr", y), 0)
    return x >> inside.where(y, bits - 1)


def _choose(o: Operands) -> Value:
    condition, x, y = o.values
    return condition.where(x, y)


# --- tables ------------------------------------------------------------------------------------


def _first(write: Callable[[Value], Value]) -> Expression:
    return lambda o: write(o.values[0])


def _both(write: Callable[[Value, Value], Value]) -> Expression:
    return lambda o: write(o.values[0], o.values[1])


def _compared(how: str) -> Expression:
    return lambda o: o.compare(how)


_TABLE: dict[str, tuple[str, Expression]] = {
    "add": ("biuf", _add),
    "subtract": ("iuf", lambda o: o.arithmetic("sub")),
    "multiply": ("biuf", _multiply),
    "divide": ("f", _divide),
    "negative": ("iuf", _first(lambda x: -x)),
    "square": ("iuf", _square),
    "reciprocal": ("f", _first(lambda x: 1.0 / x)),
    "sqrt": ("f", _first(Value.sqrt)),
    "absolute": ("biuf", _absolute),
    "sign": ("iuf", _sign),
    "rint": ("f", _first(Value.rint)),
    "floor": ("f", _first(lambda x: x.intrinsic("floor"))),
    "ceil": ("f", _first(lambda x: x.intrinsic("ceil"))),
    "trunc": ("f", _first(lambda x: x.intrinsic("trunc"))),
    "maximum": ("biuf", lambda o: _extremum(o, "gt")),
    "minimum": ("biuf", lambda o: _extremum(o, "lt")),
    "floor_divide": ("iuf", _floor_divide),
    "remainder": ("iuf", _remainder),
    "fmod": ("iuf", _fmod),
    "copysign": ("f", _both(Value.with_sign_of)),
    "hypot": ("f", _hypot),
    "logaddexp": ("f", _logaddexp),
    "power": ("f", _power),
    "equal": ("biuf", _compared("eq")),
    "not_equal": ("biuf", _compared("ne")),
    "less": ("biuf", _compared("lt")),
    "less_equal": ("biuf", _compared("le")),
    "greater": ("biuf", _compared("gt")),
    "greater_equal": ("biuf", _compared("ge")),
    "logical_and": ("b", _both(Value.__and__)),
    "logical_or": ("b", _both(Value.__or__)),
    "logical_xor": ("b", _both(Value.__xor__)),
    "logical_not": ("b", _first(Value.__invert__)),
    "bitwise_and": ("biu", _both(Value.__and__)),
    "bitwise_or": ("biu", _both(Value.__or__)),
    "bitwise_xor": ("biu", _both(Value.__xor__)),
    "invert": ("biu", _first(Value.__invert__)),
    "left_shift": ("iu", lambda o: _shift(o, "shl")),
    "right_shift": ("iu", lambda o: _shift(o, "shr")),
    "isnan": ("f", _first(Value.is_nan)),
    "isinf": ("f", _first(lambda x: x.abs().equals(math.inf))),
    "isfinite": ("f", _first(lambda x: x.abs() < math.inf)),
    "signbit": ("f", _first(lambda x: x.bits() < 0)),
    "choose": ("biuf", _choose),
}
