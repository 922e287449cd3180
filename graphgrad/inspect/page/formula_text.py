"""A formula as text that Python would read: `dx = where(abs(x) <= 1.0, dy, 0.0)`."""

from __future__ import annotations

import re
from typing import NamedTuple

from .formulas import Equation, Formula, Literal, Name, Term

__all__: list[str] = []

INFIX = {
    "Equal": ("==", 1),
    "NotEqual": ("!=", 1),
    "Less": ("<", 1),
    "LessEqual": ("<=", 1),
    "Greater": (">", 1),
    "GreaterEqual": (">=", 1),
    "Add": ("+", 2),
    "Subtract": ("-", 2),
    "Multiply": ("*", 3),
    "Divide": ("/", 3),
    "MatMul": ("@", 3),
    "Power": ("**", 5),
}
"""Op type -> its sign, and how tightly that binds, as in Python."""
NEGATIVE, ATOM = 4, 6


class _Text(NamedTuple):
    """Part of a formula, and how tightly what is outermost in it binds."""

    text: str
    binds: int = ATOM

    def within(self, binds: int) -> str:
        """It as an operand of what binds so tightly."""
        return self.text if self.binds >= binds else f"({self.text})"


def formula_text(formula: Formula) -> str:
    """A line for each value that has a name; the last says what the letters stand for."""
    lines = [equation_text(line) for line in formula.lines]
    return "\n".join(lines + ([f"({', '.join(formula.stands)})"] if formula.stands else []))


def equation_text(equation: Equation) -> str:
    """`dx = 2.0 * dy`."""
    return f"{equation.name} = {_written(equation.value).text}"


def _written(term: Term) -> _Text:
    """A term as text. Formulas are small: they have no more than LIMIT nodes."""
    if isinstance(term, Name):
        return _Text(term.text)
    if isinstance(term, Literal):
        return _Text(term.text, NEGATIVE if term.text.startswith("-") else ATOM)
    operands = [_written(operand) for operand in term.operands]
    if term.type == "Negative":
        return _Text(f"-{operands[0].within(NEGATIVE + 1)}", NEGATIVE)
    if term.type in INFIX and len(operands) == 2 and not term.attrs:
        sign, binds = INFIX[term.type]
        left, right = operands
        first = binds + 1 if sign == "**" or binds == 1 else binds
        return _Text(f"{left.within(first)} {sign} {right.within(binds + 1)}", binds)
    words = ", ".join([o.text for o in operands] + ([term.attrs] if term.attrs else []))
    return _Text(f"{function_name(term.type)}({words}){term.out}")


def function_name(type: str) -> str:
    """`sum` of ReduceSum, `sum_to_shape` of SumToShape."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type).lower().removeprefix("reduce_")
