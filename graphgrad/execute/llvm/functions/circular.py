"""Sines, cosines, tangents and their inverses.

x = k pi/2 + r with |r| <= pi/4. pi/2 is a sum of three numbers: k times the first is taken from x
without an error (both are multiples of the last bit of 1), the others put right what is left. Where
a number is too large for that, the C library's function of doubles is called.
"""

from __future__ import annotations

import math

from ..emit.module import Body
from ..emit.types import suffix
from ..emit.values import Value, polynomial
from .formats import format_of
from .lanes import rarely

_PI_2 = {
    "float": (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    "double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
_SIN = {  # (sin r / r - 1) / r**2 as a function of r**2
    "float": (-0.16666655242443085, 0.008332191035151482, -0.00019518595945555717),
    "double": (
        -0.16666666666666632, 0.008333333333322472, -0.00019841269829835558,
        2.7557313697257526e-06, -2.5050758471506964e-08, 1.5896795059277884e-10,
    ),
}  # fmt: skip
_COS = {  # (cos r - 1 + r**2 / 2) / r**4 as a function of r**2
    "float": (0.04166664555668831, -0.00138873013202101, 2.443067387503106e-05),
    "double": (
        0.0416666666666666, -0.0013888888888874457, 2.4801587289652787e-05,
        -2.7557314393818327e-07, 2.0875728100117914e-09, -1.1359864261977954e-11,
    ),
}  # fmt: skip
_FAR = {"float": 1e5, "double": 1e9}
_ATAN = {  # (atan t / t - 1) / t**2 as a function of t**2, for t <= tan(pi/8)
    "float": (
        -0.33333316445350647, 0.19998528063297272, -0.14244391024112701, 0.1059916764497757,
        -0.06090044975280762,
    ),
    "double": (
        -0.333333333333332, 0.1999999999995368, -0.1428571428020082, 0.11111110783578727,
        -0.0909089776051064, 0.07692060270798513, -0.06663104850787457, 0.05847896646874936,
        -0.05039345179357022, 0.03806578342055058, -0.01790876287608277,
    ),
}  # fmt: skip
_ASIN = {  # (arcsin t / t - 1) / t**2 as a function of t**2, for t <= 1/2
    "float": (
        0.16666752099990845, 0.074953094124794, 0.045469142496585846, 0.02418484352529049,
        0.04215816780924797,
    ),
    "double": (
        0.1666666666666676, 0.07499999999970863, 0.04464285717456521, 0.03038194270961347,
        0.02237221494376703, 0.017351612705129495, 0.01398081309621869, 0.01139896814889476,
        0.010779960235703868, 0.003707455730060872, 0.021705001995324425, -0.020995705031750266,
        0.032626568275037814,
    ),
}  # fmt: skip


def _reduced(x: Value) -> tuple[Value, Value]:
    """(r, k in the lowest bits of an integer)."""
    shifter = format_of(x).shifter
    shifted = x.fma(2 / math.pi, shifter)
    k = shifted - shifter
    for part in _PI_2[x.element]:
        x = k.fma(-part, x)
    return x, shifted.bits()


def _sine(r: Value, z: Value) -> Value:
    return polynomial(z, _SIN[r.element]).fma(z * r, r)


def _cosine(z: Value) -> Value:
    return polynomial(z, _COS[z.element]).fma(z * z, z.fma(-0.5, 1.0))


def _turned(r: Value, quarters: Value) -> Value:
    """sin(r + quarters pi/2)."""
    z = r * r
    odd = (quarters & 1).equals(1)
    y = odd.where(_cosine(z), _sine(r, z)).bits()
    minus = (quarters & 2) << (62 if r.element == "double" else 30)
    return (y ^ minus).as_float()


def _sin_near(x: Value) -> Value:
    return x.equals(0.0).where(x, _turned(*_reduced(x)))


def _cos_near(x: Value) -> Value:
    r, quarters = _reduced(x)
    return _turned(r, quarters + 1)


def _tan_near(x: Value) -> Value:
    """sin / cos, or -cos / sin after an odd number of quarter turns."""
    r, quarters = _reduced(x)
    z = r * r
    odd = (quarters & 1).equals(1)
    sine, cosine = _sine(r, z), _cosine(z)
    return x.equals(0.0).where(x, odd.where(-cosine, sine) / odd.where(sine, cosine))


def sin(x: Value) -> Value:
    """sin x."""
    return _or_far(x, _sin_near(x), "sin")


def cos(x: Value) -> Value:
    """cos x."""
    return _or_far(x, _cos_near(x), "cos")


def sin_and_cos(x: Value) -> tuple[Value, Value]:
    """Both, of one reduction."""
    s, c = _sin_near(x), _cos_near(x)
    return _or_far(x, s, "sin"), _or_far(x, c, "cos")


def tan(x: Value) -> Value:
    """tan x."""
    return _or_far(x, _tan_near(x), "tan")


def _or_far(x: Value, near: Value, name: str) -> Value:
    """near, but in lanes where |x| is large what the C library has.

    What a lane holds never depends on the others.
    """
    slow = _by_the_library(x, name)
    far = x.abs() > _FAR[x.element]
    return rarely(far, near, lambda: x.let(f"call {x.type} @{slow}({x.type} {x.name})"))


def _by_the_library(x: Value, name: str) -> str:
    """A function of vectors that calls the C library's function of doubles, lane by lane."""
    module = x.body.module
    module.declare(name, "double", "double")
    made = f"far.{name}.{suffix(x.element, x.lanes)}"

    def one(body: Body, value: str) -> str:
        if x.element == "double":
            return body(f"call double @{name}(double {value})")
        wide = body(f"fpext float {value} to double")
        wide = body(f"call double @{name}(double {wide})")
        return body(f"fptrunc double {wide} to float")

    def write(body: Body) -> str:
        if x.lanes == 1:
            result = one(body, "%x")
        else:
            result = "poison"
            for i in range(x.lanes):
                lane = one(body, body(f"extractelement {x.type} %x, i32 {i}"))
                result = body(f"insertelement {x.type} {result}, {x.element} {lane}, i32 {i}")
        lines = "\n".join(body.lines)
        return (
            f"define internal {x.type} @{made}({x.type} %x) noinline cold nounwind {{\n"
            f"{lines}\n  ret {x.type} {result}\n}}"
        )

    module.helper(made, write)
    return made


# --- inverses ----------------------------------------------------------------------------------


def _arc(t: Value) -> Value:
    """atan t for |t| <= tan(pi/8)."""
    z = t * t
    return polynomial(z, _ATAN[t.element]).fma(z * t, t)


def atan(x: Value) -> Value:
    """atan |x| = atan((a - b) / (1 + a b)) + atan b with b one of 0, 1, infinity."""
    return _angle(x.abs(), x.number(1.0)).with_sign_of(x)


def _angle(y: Value, x: Value) -> Value:
    """atan(y / x) of numbers that are not negative."""
    steep, high = y > x * (1 + math.sqrt(2)), y > x * (math.sqrt(2) - 1)
    up = steep.where(-x, high.where(y - x, y))
    down = steep.where(y, high.where(y + x, x))
    turn = steep.where(y.number(math.pi / 2), high.where(y.number(math.pi / 4), 0.0))
    return turn + _arc(up / down)


def asin(x: Value) -> Value:
    """arcsin a, and pi/2 - 2 arcsin sqrt((1 - a) / 2) where a = |x| > 1/2."""
    a = x.abs()
    near = a <= 0.5
    z = near.where(a * a, (1.0 - a) * 0.5)
    t = near.where(a, z.sqrt())
    arc = polynomial(z, _ASIN[x.element]).fma(z * t, t)
    return near.where(arc, math.pi / 2 - (arc + arc)).with_sign_of(x)


def acos(x: Value) -> Value:
    """pi/2 - arcsin x for |x| <= 1/2, else 2 arcsin sqrt((1 - |x|) / 2), or pi less that."""
    a = x.abs()
    near = a <= 0.5
    z = near.where(a * a, (1.0 - a) * 0.5)
    t = near.where(x, z.sqrt())
    arc = polynomial(z, _ASIN[x.element]).fma(z * t, t)
    twice = arc + arc
    far = (x < 0.0).where(math.pi - twice, twice)
    return near.where(math.pi / 2 - arc, far)
