"""The algebra of an identity, as the table has it, read as a formula: `x**2 / (1 + exp(x))`."""

from __future__ import annotations

import re

from ..inspect.page.formula_math import Element, term_math
from ..inspect.page.formulas import Apply, Literal, Name, Term

__all__: list[str] = []

_TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?|[A-Za-z_]\w*|\*\*|\.\.\.|[-+*/@(),|])")
_PROSE = re.compile(r"; | for | near | where | in the | with |, ")
_SIGNS = {"+": "Add", "-": "Subtract", "*": "Multiply", "/": "Divide", "@": "MatMul"}
_NAMES = {"exp": "Exp", "sqrt": "Sqrt", "sum": "ReduceSum", "prod": "ReduceProd"}
_GREEK = {"pi": "\u03c0"}


def algebra_math(text: str) -> tuple[Element | None, str]:
    """What can be read of a text as a formula, and the words after it; None where nothing can.

    >>> algebra_math("-x; 0 at 0")
    (['mrow', ['mo', '\u2212'], ['mi', 'x']], '; 0 at 0')
    """
    outside = [m for m in _PROSE.finditer(text) if not _depth(text[: m.start()])]
    end = outside[0].start() if outside else len(text)
    formula, words = text[:end], text[end:]
    try:
        reading = _Reading(formula)
        term = reading.sum()
    except (_NotRead, ValueError):
        return None, text
    return (None, text) if reading.tokens else (term_math(term), words)


def _depth(text: str) -> int:
    return text.count("(") - text.count(")")


class _NotRead(Exception):
    pass


class _Reading:
    """Sums of products of powers; factors may stand beside each other without a sign."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)[::-1]
        self.fenced = False
        if "".join(self.tokens[::-1]) != re.sub(r"\s", "", text):
            raise _NotRead

    def next(self) -> str:
        return self.tokens[-1] if self.tokens else ""

    def take(self, *wanted: str) -> str:
        """The next token, if it is one of those wanted."""
        if self.next() not in wanted:
            raise _NotRead
        return str(self.tokens.pop())

    def sum(self) -> Term:
        if self.next() == "-":
            self.take("-")
            made: Term = Apply("Negative", (self.product(),))
        else:
            made = self.product()
        while self.next() in ("+", "-"):
            sign = self.take("+", "-")
            made = Apply(_SIGNS[sign], (made, self.product()))
        return made

    def product(self) -> Term:
        made = self.factors()
        while self.next() in ("*", "/", "@"):
            sign = self.take("*", "/", "@")
            made = Apply(_SIGNS[sign], (made, self.factors()))
        return made

    def factors(self) -> Term:
        made = self.power()
        while re.match(r"[\w(]" if self.fenced else r"[\w(|]", self.next()):
            made = Apply("Multiply", (made, self.power()))
        return made

    def power(self) -> Term:
        base = self.atom()
        if self.next() != "**":
            return base
        self.take("**")
        return Apply("Power", (base, self.atom()))

    def atom(self) -> Term:
        token = self.next()
        if token == "(":
            (inside,) = self.within("()")
            return inside
        if token == "|":
            return Apply("Abs", self.within("||"))
        if token == "-":
            self.take("-")
            return Apply("Negative", (self.atom(),))
        if token == "...":
            self.take("...")
            return Name("\u22ef")
        if not re.match(r"\w", token):
            raise _NotRead
        self.take(token)
        if token[0].isdigit():
            return Literal(token)
        if self.next() != "(" or (len(token) == 1 and token != "f"):
            return Name(_GREEK.get(token, token))
        return Apply(_NAMES.get(token, token), self.within("()"))

    def within(self, ends: str) -> tuple[Term, ...]:
        """What stands between two signs, with commas between."""
        outside, self.fenced = self.fenced, ends == "||"
        self.take(ends[0])
        inside = [self.sum()]
        while self.next() == ",":
            self.take(",")
            inside.append(self.sum())
        self.take(ends[1])
        self.fenced = outside
        return tuple(inside)
