"""The list of what this package offers, and how its rules are named."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, TypeVar

from ..base.position import caller
from ..ir.node import Tensor
from ..regions.contracts import Contract
from ..regions.rules import Rule, offer
from .zoo.glossary import ALSO

Fn = TypeVar("Fn", bound=Callable[..., Any])

_entries: dict[str, Entry] = {}


class Entry:
    """One member of the library.

    name      under which it is found in `gg.rules`
    make      the function: it returns a rule, or builds tensors whose gradient is a rule's
    family    what it is a kind of
    contract  what the rule declares itself to be
    linear    whether the rule is linear in the gradients that arrive
    builds    whether `make` builds tensors instead of returning a rule

    >>> gg.rules.library()["guided"].formula
    'dxs = where(logical_and(x > 0, dy > 0), dy, 0.0)'
    """

    def __init__(self, make: Callable[..., Any], family: str, contract: str, linear: bool) -> None:
        self.name = make.__name__
        self.make = make
        self.family = family
        self.contract = contract
        self.linear = linear
        self.builds = "Rule" not in str(make.__annotations__.get("return"))

    @property
    def summary(self) -> str:
        """What it does, in a sentence."""
        return _one_line(self._paragraphs()[0])

    @property
    def formula(self) -> str:
        """The gradient it gives."""
        return _one_line(self._paragraphs()[1].partition("\n[")[0])

    @property
    def source(self) -> str:
        """Where it was published."""
        match = re.search(r"^\[(.*?)\]\.$", cleandoc(self.make.__doc__ or ""), re.DOTALL | re.M)
        return _one_line(match[1]) if match else ""

    def _paragraphs(self) -> list[str]:
        return cleandoc(self.make.__doc__ or "").split("\n\n")

    def __repr__(self) -> str:
        return f"<{self.name} ({self.family}): {self.summary}>"


def entry(family: str, contract: str, *, linear: bool = True) -> Callable[[Fn], Fn]:
    """Decorator: list a function in the library."""

    def decorated(make: Fn) -> Fn:
        listed(Entry(make, family, contract, linear))
        return make

    return decorated


def listed(entry: Entry) -> None:
    """List an entry in the library."""
    _entries[entry.name] = entry
    offer(entry.make)


def library() -> dict[str, Entry]:
    """Everything in the library by name.

    Returns: a dict of Entry objects.

    >>> gg.rules.library()["ste"].contract
    'surrogate'
    """
    return dict(_entries)


def find(word: str) -> dict[str, Entry]:
    """What of the library has a word in its name, family, summary or source, or is called so.

    Parameters: word: a part of a word; small and capital letters are the same.

    Returns: a dict of Entry objects by name.

    Raises: TypeError if word is not a string.

    >>> sorted(gg.rules.find("jumprelu"))
    ['jump_relu', 'jump_step']
    """
    if not isinstance(word, str):
        raise TypeError(f"word is a string, got {word!r}")
    sought = word.lower()
    return {
        name: e
        for name, e in _entries.items()
        if sought in f"{name} {e.family} {e.summary} {e.source}".lower()
        or any(name in re.findall(r"\w+", ALSO[other]) for other in ALSO if sought in other)
    }


def rule(
    fn: Callable[..., Any],
    contract: Contract | None = None,
    /,
    *,
    listed: str | None = None,
    **parameters: Any,
) -> Rule:
    """A rule of the library, named like the call that made it, `ste(window=1)`, and standing there.

    listed    the name of the function that makes it; None: that of fn
    contract  None: the one listed there
    """
    record = _entries[listed or fn.__name__]
    shown = ", ".join(f"{k}={_shown(v)}" for k, v in parameters.items() if v is not None)
    declared = contract or Contract(record.contract)
    named = f"{record.name}({shown})"
    return Rule(fn, named, contract=declared, linear=record.linear, position=caller())


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return value.name
    if isinstance(value, float):
        return f"{value:g}"
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    text = repr(value)
    return text if len(text) <= 20 else type(value).__name__


def _one_line(text: str) -> str:
    return " ".join(text.split())
