"""What a rule returned, as gradients of its site's inputs, or the error that says what is wrong."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import GradientError, counted
from ..base.kinds import can_cast, is_inexact, kind_of
from ..ir.build import adopted, apply
from ..ir.context import CONTEXT, bodies_around
from ..ir.graph import Graph
from ..ir.node import Region, Tensor
from ..ir.region_tree import sites_at
from ..ir.types import check_unmasked, compatible
from ..ops.base import DEFAULT, NO_GRAD, ZeroTensor, constant, is_zero, scalar
from ..ops.control import BodyGraph
from ..ops.elementwise.accumulate import EnsureLike
from ..ops.shape.reshaping import broadcast_like
from ..ops.sources import Identity
from ..regions.boundary import Boundary
from ..regions.rules import Rule
from .connected import depends, spoken_for
from .levels import shown
from .site import Gradient, RegionSite, Site


class RuleCallCheck:
    """Checks what a rule returned for its site, and makes gradients of the site's inputs of it.

    rule   what was called
    site   what it was called for
    dys    the gradients of the site's outputs; None where nothing flows
    start  where in the graph what the rule built begins
    """

    __slots__ = ("dys", "rule", "site", "start")

    def __init__(self, rule: Rule, site: Site, dys: Sequence[Tensor | None] = ()) -> None:
        self.rule = rule
        self.site = site
        self.dys = dys
        self.start = 0

    def who(self) -> str:
        """The rule and its site, in an error."""
        rule = self.rule
        return f"the gradient rule {rule.name!r} (defined at {rule.where}) of {self.site!r}"

    def entries(self, returned: Any) -> list[tuple[Tensor, Any]]:
        """What the rule returned, as one entry per input, then those a mapping adds."""
        if returned is None:
            raise GradientError(
                f"{self.who()} returned None; is a `return` missing?\n"
                "Return NO_GRAD for an input that receives no gradient."
            )
        if isinstance(returned, Mapping):
            return self._from_mapping(returned)
        if isinstance(returned, Generator):
            raise GradientError(f"{self.who()} is a generator; return the gradients instead")
        entries = list(returned) if isinstance(returned, list | tuple) else [returned]
        inputs = self.site.inputs
        if len(entries) != len(inputs):
            raise GradientError(
                f"{self.who()} returned {counted(len(entries), 'gradient')} for "
                f"{counted(len(inputs), 'input')}. The inputs are{rows(inputs)}"
            )
        return list(zip(inputs, entries, strict=True))

    def _from_mapping(self, mapping: Mapping[Any, Any]) -> list[tuple[Tensor, Any]]:
        """An entry for each input, then those for what the site reads undeclared."""
        site, inputs = self.site, self.site.inputs
        undeclared = site.boundary.undeclared if isinstance(site, RegionSite) else ()
        read = {*inputs, *undeclared}
        by_input: dict[Tensor, Any] = {}
        for key, entry in mapping.items():
            x = _counterpart(key, site._target.graph) if isinstance(key, Tensor) else None
            if x is None or x not in read or x in by_input:
                named = f"{key.name} ({key.where})" if isinstance(key, Tensor) else repr(key)
                why = " twice: inside and outside" if x in by_input else ", which it does not read"
                raise GradientError(f"{self.who()} returned a gradient for {named}{why}")
            by_input[x] = entry
        missing = [x for x in dict.fromkeys(inputs) if is_inexact(x.dtype) and x not in by_input]
        if missing:
            raise GradientError(
                f"{self.who()} returned a mapping without an entry for{rows(missing)}\n"
                "A mapping names every floating input: say NO_GRAD where nothing flows, or DEFAULT."
            )
        entries: list[tuple[Tensor, Any]] = []
        for x in inputs:  # an argument given twice gets its gradient once
            entries.append((x, by_input.pop(x, NO_GRAD)))
        return entries + list(by_input.items())

    def gradients(
        self, entries: list[tuple[Tensor, Any]], passed: Sequence[Tensor | None]
    ) -> list[Gradient]:
        """The entries as gradients of their inputs' types; disconnected inputs get None.

        passed  dys as the rule got them
        """
        defaulted = [x for x, entry in entries if entry is DEFAULT]
        default = self.site.default(*self.dys) if defaulted else ()
        self._check_undeclared(entries)
        gradients: list[Gradient] = []
        for i, (x, entry) in enumerate(entries):
            if entry is DEFAULT:
                if i >= len(default):
                    raise GradientError(f"{self.who()}: DEFAULT is for declared inputs only")
                entry = default[i]
            dx = self._as_gradient(x, entry, i)
            if dx is not None and not self._connected(x, dx, passed):
                dx = None
            gradients.append((x, dx))
        return gradients

    # --- which inputs it is for --------------------------------------------------------------

    def _connected(self, x: Tensor, dx: Tensor, passed: Sequence[Tensor | None]) -> bool:
        """Whether x leads to an output in use, or its entry depends on a gradient in use."""
        site = self.site
        if not isinstance(site, RegionSite) or site.region.pinned_inputs is not None:
            return True
        if self._leads(x, site.boundary):
            return True
        used = {d for d, dy in zip(passed, self.dys, strict=True) if dy is not None}
        return depends(dx, used, self.start)

    def _leads(self, x: Tensor, boundary: Boundary) -> bool:
        """Whether x leads to an output in use."""
        bits = boundary.reach(x)
        for dy in self.dys:
            if bits & 1 and dy is not None:
                return True
            bits >>= 1
        return False

    def _check_undeclared(self, entries: Iterable[tuple[Tensor, Any]]) -> None:
        """GradientError where a gradient would have to flow through a tensor nobody declared."""
        site = self.site
        if not isinstance(site, RegionSite) or not site.boundary.undeclared:
            return
        answered = {x for x, _ in entries}
        for t in site.boundary.undeclared:
            if (
                t not in answered
                and site.reads_live(t)
                and self._leads(t, site.boundary)
                and not spoken_for(t, site.region)
                and not site.is_spare(t)
            ):
                readers = [n for n in site.nodes if any(t is x for x in n.inputs)]
                raise GradientError(
                    f"{site!r} reads {t.name} ({t.type!r}, built at {t.where}), which is not among "
                    f"its inputs, in {shown(readers)}, and a gradient has to flow through it.\n"
                    "Make it an input, return a mapping {input: gradient} from "
                    f"{self.rule.name!r} that has an entry for it (for a variable: a grad_fn with "
                    "a `variables` argument), or gg.stop_gradient it first."
                )

    # --- as a gradient of the input's type -----------------------------------------------

    def _as_gradient(self, x: Tensor, entry: Any, i: int) -> Tensor | None:
        """An entry as a tensor of x's shape and dtype, or None for nothing."""
        if entry is None or entry is NO_GRAD:
            return None
        if is_zero(entry):
            return ZeroTensor(x) if x.type.differentiable else None
        if not x.type.differentiable:
            raise self._wrong(
                x, i, f"{entry!r}, but integers and bools have no gradient: return NO_GRAD"
            )
        if isinstance(entry, Tensor):
            if entry.graph is x.graph:
                (entry,) = adopted((entry,))
            return seen_outside(self._checked_tensor(x, entry, i))
        return self._from_value(x, entry, i)

    def _from_value(self, x: Tensor, entry: Any, i: int) -> Tensor:
        """A number (broadcast) or an array (of x's shape) as a constant."""
        check_unmasked(entry, f"{self.who()} must return arrays: ")
        try:
            array = np.asarray(entry)
            fits = can_cast(array.dtype, x.dtype, "same_kind")
        except (TypeError, ValueError):
            raise self._wrong(x, i, repr(entry)) from None
        if kind_of(array.dtype) not in "biufc" or not fits:
            raise self._wrong(x, i, repr(entry))
        if array.ndim == 0:
            return broadcast_like(scalar(array.item(), x.dtype), x)
        if not compatible(array.shape, x.shape):
            raise self._wrong(x, i, f"an array of shape {array.shape}")
        return self._ensured(x, constant(array, x.dtype), i)

    def _checked_tensor(self, x: Tensor, dx: Tensor, i: int) -> Tensor:
        if dx.graph is not CONTEXT.get().graph:
            raise self._wrong(x, i, f"{dx.name} of {dx.graph!r}; the site is in {x.graph!r}")
        if dx.type is x.type and None not in x.shape:
            return dx
        if dx.dtype is not x.dtype:
            parts = dx.type.complex and not x.type.complex
            remedy = "take gg.real(dx)" if parts else f"cast it with `.astype({x.dtype.name!r})`"
            raise self._wrong(x, i, f"{dx.type!r}; {remedy}")
        if not compatible(dx.shape, x.shape):
            raise self._wrong(x, i, f"{dx.type!r}; {self._remedy(x, dx)}")
        return self._ensured(x, dx, i)

    def _remedy(self, x: Tensor, dx: Tensor) -> str:
        """How a gradient of another shape becomes one of x's."""
        if len(dx.shape) < len(x.shape):
            return "gg.broadcast_like(dx, x) repeats it"
        target = self.site._target
        batched = isinstance(target, Region) and (  # another rule stands in for one of a batch
            target.stamped is not None or getattr(target.rule, "batched", False)
        )
        if batched and compatible(dx.shape[1:], x.shape):
            return (
                "gg.sum(dx, 0) sums over the examples: a rule on the result of vmap() is called "
                f"once for all of them, and they share {x.name}"
            )
        return "gg.sum_to(dx, like=x) sums over broadcast axes"

    def _ensured(self, x: Tensor, dx: Tensor, i: int) -> Tensor:
        """dx, with a check at run time where its shape is not known to be that of x."""
        if dx.shape == x.shape and None not in x.shape:
            return dx
        what = f"the gradient of input {i}, {x.name} (built at {x.where}), by {self.who()}"
        return apply(EnsureLike(what), dx, x)

    def _wrong(self, x: Tensor, i: int, got: str) -> GradientError:
        return GradientError(
            f"{self.who()} must return, for input {i}, {x.name} (built at {x.where}), a gradient "
            f"of its type {x.type!r}; got {got}"
        )


def _counterpart(t: Tensor, home: Graph | None) -> Tensor | None:
    """What stands for t in a graph: t, or in a body what was captured of it."""
    bodies: list[Any] = []
    for graph in bodies_around(home):
        if graph is t.graph:
            break
        bodies.append(graph)
    counterpart: Tensor | None = t
    while bodies and counterpart is not None:
        body = bodies.pop()
        counterpart = body.stands_for(counterpart) if isinstance(body, BodyGraph) else None
    return counterpart


def seen_outside(dx: Tensor) -> Tensor:
    """dx as it is read from here, where it was built in a region that is not open."""
    context = CONTEXT.get()
    inside = context.question.tree.moved.get(dx.node, dx.node.region)
    if (inside is None or inside.contains(context.region)) and not sites_at(dx):
        return dx
    return apply(Identity(), dx)


def rows(tensors: Sequence[Tensor]) -> str:
    """A line for each tensor."""
    return "".join(f"\n  {t.name}: {t.type!r}, built at {t.where}" for t in tensors)
