"""Arithmetic on names as text, read: `2*N + 1`, `N//2`, `max(N, 3)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["NoExpression", "is_plain", "quoted", "read", "unquoted"]

LARGEST_POWER = 8
VARIADIC = ("max", "min")
_TOKEN = re.compile(r"\s*(\d+|[^\W\d]\w*(?:[./:]\w+)*|'(?:[^'\\]|\\.)*'|//|[-+*^%(),])")
_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:[./:]\w+)*")


def is_plain(name: str) -> bool:
    """Whether a name stands for itself in arithmetic; others are quoted there."""
    return _PLAIN_NAME.fullmatch(name) is not None


def quoted(name: str) -> str:
    """A name as it stands in arithmetic."""
    return name if is_plain(name) else "'" + re.sub(r"(['\\])", r"\\\1", name) + "'"


def unquoted(text: str) -> str:
    """The name that stands so in arithmetic."""
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] == "'" else text


def read(
    text: str, named: Callable[[str], Any], functions: Mapping[str, Callable[..., Any]]
) -> Any:
    """What a text says, of what `named` makes of its names; NoExpression for what is none."""
    return _Parser(text, named, functions).all()


class NoExpression(Exception):
    """The text is none of an expression."""


class _Parser:
    """What reads an expression, of the loosest operation first."""

    def __init__(
        self,
        text: str,
        named: Callable[[str], Any],
        functions: Mapping[str, Callable[..., Any]],
    ) -> None:
        self._named, self._functions = named, functions
        self._tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise NoExpression
            self._tokens.append(match[1])
            at = match.end()
        self._at = 0

    def all(self) -> Any:
        """The whole of it."""
        value = self._sum()
        if self._at < len(self._tokens):
            raise NoExpression
        return value

    def _next(self, *expected: str) -> str | None:
        """The next token, taken if it is one of these."""
        if self._at < len(self._tokens) and self._tokens[self._at] in expected:
            self._at += 1
            return self._tokens[self._at - 1]
        return None

    def _sum(self) -> Any:
        value = self._product()
        while sign := self._next("+", "-"):
            other = self._product()
            value = value + other if sign == "+" else value - other
        return value

    def _product(self) -> Any:
        value = self._power()
        while sign := self._next("*", "//", "%"):
            other = self._power()
            if sign != "*" and isinstance(other, int) and other <= 0:
                raise NoExpression
            if sign == "*":
                value = value * other
            else:
                value = value // other if sign == "//" else value % other
        return value

    def _power(self) -> Any:
        value = self._factor()
        if self._next("^"):  # as JAX writes it
            exponent = self._factor()
            if not isinstance(exponent, int) or exponent > LARGEST_POWER:
                raise NoExpression
            value = value**exponent
        return value

    def _factor(self) -> Any:
        if self._next("-"):
            return -self._factor()
        if self._next("("):
            value = self._sum()
            if not self._next(")"):
                raise NoExpression
            return value
        if self._at == len(self._tokens):
            raise NoExpression
        token = self._tokens[self._at]
        self._at += 1
        if token.isdigit():
            return int(token)
        if token in self._functions and self._next("("):
            return self._call(token)
        if token[0] == "'":
            return self._named(unquoted(token))
        if not _PLAIN_NAME.fullmatch(token):
            raise NoExpression
        return self._named(token)

    def _call(self, function: str) -> Any:
        operands = [self._sum()]
        while self._next(","):
            operands.append(self._sum())
        if not self._next(")") or (function not in VARIADIC and len(operands) != 2):
            raise NoExpression
        return self._functions[function](*operands)
