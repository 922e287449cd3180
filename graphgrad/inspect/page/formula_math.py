"""A line of a formula as presentation MathML: nested lists of which the page makes elements.

`["mfrac", ["mi", "x"], ["mn", "2"]]` is an element with its children; a text is its own text. There
are no attributes. What the elements are: MathML Core, https://www.w3.org/TR/mathml-core/.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..scene.wording import visible
from .formula_text import ATOM, INFIX, function_name
from .formulas import Apply, Equation, Literal, Name, Term

__all__: list[str] = []

Element = list[Any]
"""The name of an element, then its children: elements, or one text."""

_SIGNS = {"==": "=", "!=": "\u2260", "<=": "\u2264", ">=": "\u2265", "-": "\u2212", "*": "\u22c5"}
_SIGNS |= {"@": "\u2009"}  # matrices stand beside each other
_LOOSE, _SUM, _PRODUCT, _TIGHT, _POWER = 0, 2, 3, 4, 5
"""How tightly bind what shows no end, sums and signs, products, fractions and matrices, powers."""
_REDUCED = {"ReduceSum": "\u2211", "ReduceProd": "\u220f"}
_FENCES = {"Abs": "||", "Ceil": "\u2308\u2309", "Floor": "\u230a\u230b"}


class _Math(NamedTuple):
    """Part of a formula, and how tightly what is outermost in it binds."""

    element: Element
    binds: int = ATOM

    def within(self, binds: int) -> Element:
        """It as an operand of what binds so tightly."""
        return self.element if self.binds >= binds else _fenced("()", self.element)


def equation_math(equation: Equation) -> Element:
    """`dx = 2 dy` is `["mrow", dx, ["mo", "="], ...]`."""
    return _row(_name(equation.name), _mo("="), _written(equation.value).element)


def term_math(term: Term) -> Element:
    """A term without a name for its value."""
    return _written(term).element


def _written(term: Term) -> _Math:
    """A term as mathematics. Formulas are small: they have no more than LIMIT nodes."""
    if isinstance(term, Name):
        return _Math(_name(term.text))
    if isinstance(term, Literal):
        return _number(term.text)
    operands = [_written(operand) for operand in term.operands]
    if term.type in _REDUCED and not term.out:
        return _reduced(term, operands[0])
    if term.attrs or term.out:
        return _function(term, operands)
    if len(operands) == 2 and term.type in INFIX:
        return _infix(term.type, *operands)
    if len(operands) == 3 and term.type == "Where":
        return _choice(*operands)
    if len(operands) == 1 and (unary := _of_one(term.type, operands[0])):
        return unary
    return _function(term, operands)


def _infix(type: str, left: _Math, right: _Math) -> _Math:
    sign, binds = INFIX[type]
    if sign == "/":
        return _Math(["mfrac", left.element, right.element], _TIGHT)
    if sign == "**":
        return _Math(["msup", left.within(ATOM), right.element], _POWER)
    if sign == "@":
        return _Math(_row(left.within(_TIGHT), _mo(_SIGNS[sign]), right.within(_TIGHT)), _TIGHT)
    first = binds + 1 if binds == 1 else binds
    written = _row(left.within(first), _mo(_SIGNS.get(sign, sign)), right.within(binds + 1))
    return _Math(written, binds)


def _of_one(type: str, x: _Math) -> _Math | None:
    """What mathematics has a form for; None for the others."""
    if type == "Negative":
        return _Math(_row(_mo(_SIGNS["-"]), x.within(_PRODUCT)), _SUM)
    if type == "Reciprocal":
        return _Math(["mfrac", ["mn", "1"], x.element], _TIGHT)
    if type == "Square":
        return _Math(["msup", x.within(ATOM), ["mn", "2"]], _POWER)
    if type == "Exp":
        return _Math(["msup", ["mi", "e"], x.element], _POWER)
    if type == "Sqrt":
        return _Math(["msqrt", x.element])
    if type in _FENCES:
        return _Math(_fenced(_FENCES[type], x.element))
    return None


def _choice(condition: _Math, then: _Math, otherwise: _Math) -> _Math:
    """A brace with a line for each case."""
    cases = (
        (then, _row(["mtext", "if\u00a0"], condition.element)),
        (otherwise, ["mtext", "otherwise"]),
    )
    rows = [["mtr", ["mtd", value.element], ["mtd", when]] for value, when in cases]
    return _Math(_row(_mo("{"), ["mtable", *rows]), _LOOSE)


def _reduced(term: Apply, x: _Math) -> _Math:
    """A great sign over what is said of the axes."""
    under = ["munder", _mo(_REDUCED[term.type]), ["mtext", visible(term.attrs)]]
    return _Math(_row(under, x.within(_PRODUCT)), _SUM)


def _function(term: Apply, operands: list[_Math]) -> _Math:
    """`name(operands, attributes)`, with the attributes as they are written in Python."""
    words = [operand.element for operand in operands]
    words += [["mtext", visible(term.attrs)]] if term.attrs else []
    inside = [part for word in words for part in (_mo(","), word)][1:]
    name = ["mi", visible(function_name(term.type))]
    called = _row(name, _mo("\u2061"), _fenced("()", *inside))
    return _Math(["msub", called, ["mtext", visible(term.out)]] if term.out else called)


def _name(text: str) -> Element:
    """A letter or a name; a number at its end as an index."""
    stem, _, index = text.rpartition("_")
    if stem and index.isdecimal():
        return ["msub", ["mi", visible(stem)], ["mn", index]]
    return ["mi", visible(text)]


_DECIMAL = re.compile(r"(-?)(\d+)(?:\.0|(\.\d+))?(?:e([+-]?)0*(\d+))?")


def _number(text: str) -> _Math:
    """2.0 as 2, and 1e-05 as ten to a power."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return _Math(["mtext", visible(text)])
    negative, whole, rest, sign, exponent = match.groups("")
    value: Element = ["mn", whole + rest]
    if exponent:
        power = _row(_mo(_SIGNS["-"]), ["mn", exponent]) if sign == "-" else ["mn", exponent]
        ten = ["msup", ["mn", "10"], power]
        value = ten if whole + rest == "1" else _row(value, _mo("\u22c5"), ten)
    if negative:
        return _Math(_row(_mo(_SIGNS["-"]), value), _SUM)
    return _Math(value, _PRODUCT if exponent else ATOM)


def _row(*parts: Element) -> Element:
    return ["mrow", *parts]


def _mo(sign: str) -> Element:
    return ["mo", sign]


def _fenced(ends: str, *inside: Element) -> Element:
    return _row(_mo(ends[0]), *inside, _mo(ends[1]))
