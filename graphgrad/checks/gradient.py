"""`check_gradient`: one rule, held to what it says it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ..base.errors import GradientError, ShapeError
from ..base.flags import truth
from ..base.kinds import is_inexact
from ..ir.graph import restored
from ..ir.node import Node, Region
from ..ir.types import Array
from ..regions.rules import Rule
from .first import check_first_order
from .laws import check_laws
from .report import Report
from .second import check_second_order
from .target import Checked, as_arrays, built
from .trial import Trial

__all__ = ["check_gradient"]


@restored
def check_gradient(
    target: Any,
    *args: Any,
    rule: Any = None,
    values: Any = None,
    seed: int = 0,
    order: int = 2,
    expect: Any = None,
    variants: bool = False,
) -> Report:
    """Check that a gradient rule has the properties that it declares.

    The check compares the rule with finite differences of its site (for surrogate_of(f) with those
    of f, for scaled(s) with s times them, for "stop" with zero, for "estimator" the mean over
    seeds). It also checks every pattern of missing and zero output gradients; linearity; that a
    second run and a second call give the same result; that forward values do not change; and that
    the derivative of what the rule built agrees with finite differences. A rule without a contract
    must be the true derivative. "attribution" and "policy" are not compared with a derivative. The
    nodes that this function builds count as derived. For complex numbers, both parts are checked:
    the report has them on a last axis of length 2, and gradients are conjugated, so that they are
    the derivatives of a real loss with respect to the real and the imaginary part.

    Parameters:
        target: a region; a node (with or without a stamp); or a function, which opens one region
            (custom_gradient, gg.override) or is put into one with rule=. check_gradient(rule,
            function, *arrays) says the same.
        *args: example arrays for a function, at least one of them floating or complex.
        rule: checked in place of the rule that is marked.
        values: for a region or node: an array for each input, in order, or {tensor or name: array};
            random ones are found otherwise.
        seed: the seed of all random numbers.
        order: 2 also checks the derivative of what the rule built; 1 does not.
        expect: the contract to check, instead of the one that the rule declares.
        variants: for a function: also check lengths of 1, one axis at a time, if it accepts them.

    Returns: a Report, which is true if nothing was found.

    Raises: GradientError for an invalid target, and for a function that marks no site or several;
    ValueError for an unknown order.

    >>> gg.check_gradient(lambda site, dy: 2 * dy, gg.square, np.array([1.0, 3.0])).findings[0].kind
    'truth'
    """
    truth("variants", variants)
    if order not in (1, 2):
        raise ValueError(f"check_gradient checks order 1 or 2, got {order!r}")
    if args and callable(args[0]):
        rule, target, args = target, args[0], args[1:]
    if isinstance(target, Region | Node):
        if args:
            raise GradientError("give the arrays of a region or node as values=[...]")
        return _checked(Checked(target, rule), values, order, seed, expect)
    arrays = _examples(target, args, values)
    check = partial(_checked, order=order, seed=seed, expect=expect)
    report = check(built(target, arrays, rule), arrays)
    for cut, smaller in _variants(target, arrays, rule) if variants else ():
        report.findings += check(smaller, cut).findings
        report.checked.append(f"shapes {', '.join(str(c.shape) for c in cut)}")
    return report


def _checked(target: Checked, values: Any, order: int, seed: int, expect: Any) -> Report:
    """All checks, in the order in which a failure explains the later ones."""
    trial = Trial(target, values, seed, expect)
    if trial.begin():
        check_laws(trial)
        check_first_order(trial)
        if order == 2 and trial.kind != "estimator":
            check_second_order(trial)
    return trial.report


def _examples(function: Any, args: tuple[Any, ...], values: Any) -> list[Array]:
    """The example arrays of a function; GradientError where there is nothing to check."""
    if not callable(function) or isinstance(function, Rule):
        raise GradientError(
            "check_gradient takes a region, a node, a function with example arrays, or "
            f"(rule, function, *arrays), got {function!r}"
        )
    arrays = as_arrays(args if args or values is None else values)
    if not any(is_inexact(a.dtype) for a in arrays):
        raise GradientError(
            "check_gradient takes example arrays, at least one of them floating or complex, got "
            f"{args!r}"
        )
    return arrays


def _variants(
    function: Any, arrays: Sequence[Array], rule: Any
) -> Iterator[tuple[list[Array], Checked]]:
    """One axis of one argument cut to length 1, wherever that can be built."""
    for i, a in enumerate(arrays):
        for axis in range(a.ndim):
            if a.shape[axis] >= 2:
                cut = [*arrays[:i], np.take(a, [0], axis), *arrays[i + 1 :]]
                with suppress(ShapeError):
                    yield cut, built(function, cut, rule)
