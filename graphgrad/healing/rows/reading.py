"""Rows of the table as they are written: a line for the identity, and what is to be said of it.

    name = kind: written -> now
        what is wrong | SOURCE | naive f(x) | stable g(x) | ranges POSITIVE | rule its_name | last

The algebra is what is matched and made, unless `naive`, `stable` or a `form` says that apart;
arguments are the names in the formula in alphabetical order.
"""

from __future__ import annotations

import re

from ..formulas import arguments_of, function_of
from ..identity import KINDS, RealIdentity
from ..rules import differences, exponentials, lengths, logarithms, moments, quotients
from . import sources

_RULES = (differences, exponentials, lengths, logarithms, moments, quotients, sources)
_NAMES = {name: value for module in _RULES for name, value in vars(module).items()}
_KINDS = {kind.split()[0]: kind for kind in KINDS}
_ROW = re.compile(r"(\w+) = (\w+): (.+(?:\n {8}.+)?)\n((?: {4}.+\n)+)")


def rows(text: str) -> tuple[RealIdentity, ...]:
    """The identities that are written there."""
    made = tuple([_row(*match.groups()) for match in _ROW.finditer(text)])
    assert _ROW.sub("", text).strip() == "", _ROW.sub("", text)
    return made


def _row(name: str, kind: str, algebra: str, rest: str) -> RealIdentity:
    algebra = re.sub(r"\s+", " ", algebra)
    wrong, source, *options = re.split(r" \|(?: |$)", re.sub(r"\s+", " ", rest).strip())
    given = {key: value for key, _, value in (option.partition(" ") for option in options)}
    written, _, now = algebra.partition(" -> ")
    naive, stable, form = (given.pop(key, "") for key in ("naive", "stable", "form"))
    names = arguments_of(naive or written)
    made = eval(form, _NAMES) if form else function_of(stable or now, names)
    more = {key: eval(value or "True", _NAMES) for key, value in given.items()}
    naively = function_of(naive or written, names)
    return RealIdentity(
        name, _KINDS[kind], algebra, wrong, eval(source, _NAMES), naively, made, **more
    )
