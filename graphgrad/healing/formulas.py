"""Functions of tensors that are written as formulas: `2 sinh(x / 2)**2`, `|x| + exp(-x y)`."""

from __future__ import annotations

import re
from ast import Name, parse, walk
from collections.abc import Callable, Sequence
from typing import Any

from ..ops.elementwise.exponential import logaddexp
from ..ops.elementwise.magnitudes import abs as absolute
from ..ops.elementwise.trigonometry import arccosh, arcsinh, arctanh, cosh
from ..ops.linalg.determinants import det
from ..ops.linalg.inverses import inv, solve
from ..ops.nn.softmaxes import log_softmax, softmax
from ..ops.reduce.reductions import mean, prod
from ..ops.reduce.reductions import sum as sum_of
from ..ops.special.betas import betaln
from ..ops.special.exponential_sums import logsumexp
from ..ops.special.gammas import digamma, gammaln
from . import forms

FUNCTIONS: dict[str, Any] = {
    **vars(forms),
    "abs": absolute,
    "arccosh": arccosh,
    "arcsinh": arcsinh,
    "arctanh": arctanh,
    "betaln": betaln,
    "cosh": cosh,
    "det": det,
    "digamma": digamma,
    "gammaln": gammaln,
    "inv": inv,
    "log_softmax": log_softmax,
    "logaddexp": logaddexp,
    "logsumexp": logsumexp,
    "mean": mean,
    "prod": prod,
    "softmax": softmax,
    "solve": solve,
    "sum": sum_of,
}
"""What a formula may call: stable forms, and the functions that these are made of."""


def as_python(formula: str) -> str:
    """A formula with `*` between factors, and `abs` for bars.

    >>> as_python("2 sinh(|x| / 2) exp(x)")
    '2*sinh(abs(x) / 2)*exp(x)'
    """
    return re.sub(r"(?<=[\w)])\s+(?=[\w(])", "*", re.sub(r"\|([^|]+)\|", r"abs(\1)", formula))


def arguments_of(formula: str) -> list[str]:
    """The names in a formula that are not called, in alphabetical order."""
    tree = parse(as_python(formula), mode="eval")
    return sorted({n.id for n in walk(tree) if isinstance(n, Name)} - FUNCTIONS.keys())


def function_of(formula: str, arguments: Sequence[str]) -> Callable[..., Any]:
    """The function of tensors that a formula is; the very one that it calls, if it is one call."""
    text, names = as_python(formula), ", ".join(arguments)
    one = re.fullmatch(rf"(\w+)\({names}\)", text)
    if one is not None:
        return FUNCTIONS[one[1]]  # type: ignore[no-any-return]
    return eval(f"lambda {names}: {text}", FUNCTIONS)  # type: ignore[no-any-return]
