"""What a rule returned, as gradients of its site's inputs, or the error that says what is wrong."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import GradientError, counted
from ..base.kinds import can_cast, is_inexact, kind_of
from ..ir.build import adopted, apply
from ..ir.context import CONTEXT, bodies_around
from ..ir.node import Region, Tensor
from ..ir.types import check_unmasked, compatible
from ..ops.base import DEFAULT, NO_GRAD, ZeroTensor, constant, is_zero, scalar
from ..ops.control import BodyGraph
from ..ops.elementwise.accumulate import EnsureLike
from ..ops.shape.reshaping import broadcast_like
from ..ops.sources import Identity
from ..regions.rules import Rule
from .connected import check_undeclared, connected
from .site import Gradient, RegionSite, Site


def entries_of(rule: Rule, site: Site, returned: Any) -> list[tuple[Tensor, Any]]:
    """What the rule returned, as one entry per input, then those a mapping adds."""
    if returned is None:
        raise GradientError(
            f"{who(rule, site)} returned None; is a `return` missing?\n"
            "Return NO_GRAD for an input that receives no gradient."
        )
    if isinstance(returned, Mapping):
        return _from_mapping(rule, site, returned)
    if isinstance(returned, Generator):
        raise GradientError(f"{who(rule, site)} is a generator; return the gradients instead")
    entries = list(returned) if isinstance(returned, list | tuple) else [returned]
    if len(entries) != len(site.inputs):
        raise GradientError(
            f"{who(rule, site)} returned {counted(len(entries), 'gradient')} for "
            f"{counted(len(site.inputs), 'input')}. "
            f"The inputs are{rows(site.inputs)}"
        )
    return list(zip(site.inputs, entries, strict=True))


def _from_mapping(rule: Rule, site: Site, mapping: Mapping[Any, Any]) -> list[tuple[Tensor, Any]]:
    """An entry for each input, then those for what the site reads undeclared."""
    undeclared = site.boundary.undeclared if isinstance(site, RegionSite) else ()
    read = {*site.inputs, *undeclared}
    given: dict[Tensor, Any] = {}
    for key, entry in mapping.items():
        x = _at_site(key, site) if isinstance(key, Tensor) else None
        if x is None or x not in read or x in given:
            shown = f"{key.name} ({key.where})" if isinstance(key, Tensor) else repr(key)
            why = " twice: inside and outside" if x in given else ", which it does not read"
            raise GradientError(f"{who(rule, site)} returned a gradient for {shown}{why}")
        given[x] = entry
    missing = [x for x in dict.fromkeys(site.inputs) if is_inexact(x.dtype) and x not in given]
    if missing:
        raise GradientError(
            f"{who(rule, site)} returned a mapping without an entry for{rows(missing)}\n"
            "A mapping names every floating input: say NO_GRAD where nothing flows, or DEFAULT."
        )
    entries: list[tuple[Tensor, Any]] = []
    for x in site.inputs:  # an argument given twice gets its gradient once
        entries.append((x, given.pop(x, NO_GRAD)))
    return entries + list(given.items())


def _at_site(t: Tensor, site: Site) -> Tensor | None:
    """What stands for t where the site is: t, or in a body what was captured of it."""
    bodies: list[Any] = []
    for graph in bodies_around(site._target.graph):
        if graph is t.graph:
            break
        bodies.append(graph)
    counterpart: Tensor | None = t
    while bodies and counterpart is not None:
        body = bodies.pop()
        counterpart = body.stands_for(counterpart) if isinstance(body, BodyGraph) else None
    return counterpart


def finished(
    rule: Rule,
    site: Site,
    entries: list[tuple[Tensor, Any]],
    dys: Sequence[Tensor | None],
    given: Sequence[Tensor | None],
    start: int,
) -> list[Gradient]:
    """The entries as gradients of their inputs' types; disconnected inputs get None."""
    defaulted = [x for x, entry in entries if entry is DEFAULT]
    default = site.default(*dys) if defaulted else ()
    check_undeclared(rule, site, entries, dys)
    gradients: list[Gradient] = []
    for i, (x, entry) in enumerate(entries):
        if entry is DEFAULT:
            if i >= len(default):
                raise GradientError(f"{who(rule, site)}: DEFAULT is for declared inputs only")
            entry = default[i]
        dx = _as_gradient(rule, site, x, entry, i)
        if dx is not None and not connected(site, x, dx, dys, given, start):
            dx = None
        gradients.append((x, dx))
    return gradients


def _as_gradient(rule: Rule, site: Site, x: Tensor, entry: Any, i: int) -> Tensor | None:
    """An entry as a tensor of x's shape and dtype, or None for nothing."""
    if entry is None or entry is NO_GRAD:
        return None
    if is_zero(entry):
        return ZeroTensor(x) if x.type.differentiable else None
    if not x.type.differentiable:
        raise _wrong(
            rule, site, x, i, f"{entry!r}, but integers and bools have no gradient: return NO_GRAD"
        )
    if isinstance(entry, Tensor):
        if entry.graph is x.graph:
            (entry,) = adopted((entry,))
        return seen_outside(_checked_tensor(rule, site, x, entry, i))
    return _from_value(rule, site, x, entry, i)


def seen_outside(dx: Tensor) -> Tensor:
    """dx as it is read from here, where it was built in a region that is not open."""
    context = CONTEXT.get()
    inside = context.question.tree.moved.get(dx.node, dx.node.region)
    if inside is None or inside.contains(context.region):
        return dx
    return apply(Identity(), dx)


def _from_value(rule: Rule, site: Site, x: Tensor, entry: Any, i: int) -> Tensor:
    """A number (broadcast) or an array (of x's shape) as a constant."""
    check_unmasked(entry, f"{who(rule, site)} is to return arrays: ")
    try:
        array = np.asarray(entry)
        fits = can_cast(array.dtype, x.dtype, "same_kind")
    except (TypeError, ValueError):
        raise _wrong(rule, site, x, i, repr(entry)) from None
    if kind_of(array.dtype) not in "biufc" or not fits:
        raise _wrong(rule, site, x, i, repr(entry))
    if array.ndim == 0:
        return broadcast_like(scalar(array.item(), x.dtype), x)
    if not compatible(array.shape, x.shape):
        raise _wrong(rule, site, x, i, f"an array of shape {array.shape}")
    return _ensured(rule, site, x, constant(array, x.dtype), i)


def _checked_tensor(rule: Rule, site: Site, x: Tensor, dx: Tensor, i: int) -> Tensor:
    if dx.graph is not CONTEXT.get().graph:
        raise _wrong(rule, site, x, i, f"{dx.name} of {dx.graph!r}; the site is in {x.graph!r}")
    if dx.type is x.type and None not in x.shape:
        return dx
    if dx.dtype is not x.dtype:
        parts = dx.type.complex and not x.type.complex
        remedy = "take gg.real(dx)" if parts else f"cast it with `.astype({x.dtype.name!r})`"
        raise _wrong(rule, site, x, i, f"{dx.type!r}; {remedy}")
    if not compatible(dx.shape, x.shape):
        raise _wrong(rule, site, x, i, f"{dx.type!r}; {_remedy(site, x, dx)}")
    return _ensured(rule, site, x, dx, i)


def _remedy(site: Site, x: Tensor, dx: Tensor) -> str:
    """How a gradient of another shape becomes one of x's."""
    if len(dx.shape) < len(x.shape):
        return "gg.broadcast_like(dx, x) repeats it"
    target = site._target
    batched = isinstance(target, Region) and (  # another rule stands in for one of a batch
        target.stamped is not None or getattr(target.rule, "batched", False)
    )
    if batched and compatible(dx.shape[1:], x.shape):
        return (
            "gg.sum(dx, 0) adds up what the examples give: a rule that is put on what vmap() made "
            f"is called once for all of them, and they share {x.name}"
        )
    return "gg.sum_to(dx, like=x) sums over broadcast axes"


def _ensured(rule: Rule, site: Site, x: Tensor, dx: Tensor, i: int) -> Tensor:
    """dx, with a check at run time where its shape is not known to be that of x."""
    if dx.shape == x.shape and None not in x.shape:
        return dx
    what = f"the gradient of input {i}, {x.name} (built at {x.where}), by {who(rule, site)}"
    return apply(EnsureLike(what), dx, x)


def _wrong(rule: Rule, site: Site, x: Tensor, i: int, got: str) -> GradientError:
    return GradientError(
        f"{who(rule, site)} must return, for input {i}, {x.name} (built at {x.where}), a gradient "
        f"of its type {x.type!r}; got {got}"
    )


def rows(tensors: Sequence[Tensor]) -> str:
    """A line for each tensor."""
    return "".join(f"\n  {t.name}: {t.type!r}, built at {t.where}" for t in tensors)


def who(rule: Rule, site: Site) -> str:
    """The rule and its site, in an error."""
    return f"the gradient rule {rule.name!r} (defined at {rule.where}) of {site!r}"
