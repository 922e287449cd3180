"""Identities of the user's, shown by sampling before they are taken in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from ..differentiate.gradients import gradients
from ..ir.graph import Graph
from ..ops.reduce.reductions import sum as total_of
from ..ops.sources import placeholder
from .identity import PEEPHOLE, RealIdentity
from .many_digits import needed_package, values
from .plan import HealingPlan
from .table import IDENTITIES, OWN, forget_compiled

__all__ = ["identity"]

DIGITS, AGREE = 1000, 1e-100
LAST = -900
"""What is less than 10 to this is no difference: of 1 + exp(-1e5) as many digits see nothing."""
POINTS = (1e-300, 1e-20, 1e-8, 0.01, 0.3, 1.5, 7.0, 30.0, 400.0, 1e5, 1e160)


def identity(
    name: str,
    naive: Callable[..., Any],
    stable: Callable[..., Any],
    *,
    written: str,
    now: str,
    wrong: str,
    source: str = "",
    ranges: Sequence[tuple[float, float]] = (),
) -> None:
    """Let `gg.heal` rewrite a formula of yours, once its stable form is shown to be equal.

    Values and gradients of both are compared in 1000 digits at arguments of all exponents, and have
    to agree to 1e-100 wherever both have a value. So a stable form has to be one formula, of
    functions that graphgrad knows in many digits, without a series that ends early.

    Parameters:
        name: by which `healed.sites` calls it; another than those of the table.
        naive, stable: functions of as many scalar tensors.
        written, now, wrong, source: what it rewrites, what that becomes, what is wrong with it, and
            from where that is known, in words.
        ranges: for each argument the numbers between which both are defined; all, by default.

    Raises: ValueError for a name that is taken, where the two differ, with the arguments, and where
    the written formula matches no form of its own; TypeError for anything that is not a function;
    MissingBackendError without mpmath.

    >>> gg.extend.identity(
    ...     "cube", lambda x: gg.exp(3.0 * gg.log(x)), lambda x: x * x * x, ranges=[(0, 1e100)],
    ...     written="exp(3 log(x))", now="x**3", wrong="loses digits where log(x) is large",
    ... )
    >>> [site.name for site in gg.heal(gg.exp(3.0 * gg.log(gg.constant(2.0)))).sites]
    ['cube']
    """
    needed_package("identity()")
    if any(i.name == name for i in (*IDENTITIES, *OWN.values())):
        raise ValueError(f"an identity named {name!r} already exists: choose another name")
    for f in (naive, stable):
        if not callable(f):
            raise TypeError(f"identity {name!r} takes functions of tensors, got {f!r}")
    made = RealIdentity(name, PEEPHOLE, f"{written} -> {now}", wrong, source, naive, stable, ranges)
    if not made.arity == len(signature(stable).parameters) == len(made.ranges):
        raise ValueError(
            f"identity {name!r}: naive, stable and ranges= must take the same number of "
            f"arguments, got {signature(naive)}, {signature(stable)} and {list(ranges)}"
        )
    _check(made)
    OWN[name] = made
    forget_compiled()
    if not _is_met(made):
        del OWN[name]
        forget_compiled()
        raise ValueError(
            f"identity {name!r} would never apply: the naive form is not a formula of all its "
            "arguments, or a built-in identity already rewrites it"
        )


def _is_met(identity: RealIdentity) -> bool:
    """Whether it rewrites what it says is written."""
    with Graph() as graph:
        identity.naive(*[placeholder((), dtype="float64") for _ in range(identity.arity)])
    fired = HealingPlan(list(graph.nodes)).fired.values()
    return any(i is identity for found in fired for i in found)


def _check(identity: RealIdentity) -> None:
    with Graph():
        xs = [placeholder((), dtype="float64") for _ in range(identity.arity)]
        both = []
        for f in (identity.naive, identity.stable):
            y = total_of(f(*xs))
            both.append([y, *gradients(y, xs, unconnected="zero")])
    compared = 0
    for args in _samples(identity):
        runs = [list(values(xs, ys, args, DIGITS).values()) for ys in both]
        for want, got in zip(*runs, strict=True):
            a, b = want.item(), got.item()
            if not (math.isfinite(float(a)) and math.isfinite(float(b))):
                continue
            compared += 1
            if abs(a - b) > abs(a) * AGREE and abs(a - b) > type(a)(10) ** LAST:
                at = ", ".join(f"{float(x):g}" for x in args)
                raise ValueError(
                    f"identity {identity.name!r} does not hold: at ({at}) the naive form, or its "
                    f"gradient, is {a}, but the stable form gives {b}"
                )
    if not compared:
        raise ValueError(
            f"identity {identity.name!r} has no value anywhere in ranges={list(identity.ranges)}"
        )


def _samples(identity: RealIdentity) -> list[list[Any]]:
    rng = np.random.default_rng(0)
    signed = [s * p for p in POINTS for s in (1.0, -1.0)]
    known = [[p for p in signed if low < p < high] for low, high in identity.ranges]
    if len(known) == 1:
        return [[np.asarray(p)] for p in known[0]]
    return [[np.asarray(rng.choice(np.array(ps))) for ps in known] for _ in range(30)]
