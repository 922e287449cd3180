"""Calling a user's rule: what it gets, what it may return, and every error it can make."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..ir.build import adopted, apply
from ..ir.context import CONTEXT, bodies_around
from ..ir.depth import check_room
from ..ir.errors import GradientError, GraphGradError, counted
from ..ir.node import Node, Region, RuleCall, Tensor, enclosing
from ..ir.op import OP_TYPES, Op
from ..ir.residual import Residual, derived_from
from ..ir.types import check_unmasked, compatible
from ..ops.accumulate import EnsureLike
from ..ops.base import DEFAULT, NO_GRAD, ZeroTensor, constant, is_zero, scalar
from ..ops.control import BodyGraph
from ..ops.shaping import broadcast_like
from ..ops.sources import Identity, RuleInput, RuleOutput
from ..regions.rules import BuiltinRule, Rule, as_rule
from .builtin import builtin, filled
from .levels import shown
from .site import Gradient, NodeSite, RegionSite, Site


def call_rule(site: Site, reference: Any, dys: Sequence[Tensor | None]) -> list[Gradient]:
    """Call the rule of a site once: (input, gradient) in order of inputs, then what a mapping adds.

    A gradient is None where nothing flows. While the rule runs, the site counts as unmarked and
    what is built has this call as its origin.
    """
    check_room()
    rule = as_rule(reference, lambda: f"named by {site!r}")
    start = len(CONTEXT.get().graph.nodes)
    given = filled(site.outputs, dys)
    with running(rule, site):
        if not _once(site):
            found = _finished(rule, site, answer(rule, site, given), dys, given, start)
            site.told = told(given)
            return [(x, _passed_on(dx, given)) for x, dx in found]
        message = _not_again(rule, site)
        zeros = tuple(given)
        given = [_through(RuleInput(message), dy) for dy in given]
        found = _finished(rule, site, answer(rule, site, given), dys, given, start)
        site.told = told(zeros)
        return [(x, _through(RuleOutput(message), dx)) for x, dx in found]


def told(given: Sequence[Any]) -> frozenset[int]:
    """The places of what a rule asked about and was told to be zero."""
    return frozenset(i for i, d in enumerate(given) if isinstance(d, ZeroTensor) and d.asked)


def _once(site: Site) -> bool:
    """Whether what the site's rule builds is not to be differentiated."""
    return isinstance(site, RegionSite) and site.region.order == "error"


def _not_again(rule: Rule, site: Site) -> str:
    return (
        f"differentiating through the gradient rule {rule.name!r} of {site!r}, which says "
        "order='error': its gradient is not to be differentiated again"
    )


def _through(op: Op, t: Tensor | None) -> Tensor | None:
    return t if t is None or is_zero(t) else apply(op, t)


def _passed_on(dx: Tensor | None, dys: Sequence[Tensor | None]) -> Tensor | None:
    """dx; by way of a node of this call where it is a dy as it came, so that the graph shows it."""
    return _through(Identity(), dx) if any(dx is dy for dy in dys) else dx


@contextmanager
def running(rule: Rule, site: Site) -> Iterator[None]:
    """The site counts as unmarked, and what is built comes from this call of its rule.

    What the rule asks in turn is a question of its own: nothing is known to be wanted, and forward
    mode judges what it calls by what it gives alone.
    """
    context = CONTEXT.get()
    asking: Any = context.question
    origin, before = context.origin, (asking.running, asking.live, asking.called, asking.judge)
    judge = asking.judge if isinstance(rule, BuiltinRule) else None
    try:
        context.origin = RuleCall(site._target, rule.name, outer_reads(site._target, site.outputs))
        asking.running = (*before[0], site._target)
        asking.live, asking.called, asking.judge = None, None, judge
        yield
    finally:
        context.origin = origin
        asking.running, asking.live, asking.called, asking.judge = before


def answer(rule: Rule, site: Site, dys: list[Tensor | None]) -> list[tuple[Tensor, Any]]:
    """What the running rule returns: one entry per input, then those a mapping adds."""
    return _entries(rule, site, _call(rule, site, dys))


def own_jvp(rule: Rule, site: Site, dxs: Sequence[Tensor | None]) -> list[Any]:
    """What the running rule's own jvp returns: one entry per output."""
    assert rule.jvp is not None
    try:
        found = rule.jvp(site, *dxs)
    except TypeError as error:
        if _takes(rule.jvp, site, dxs):
            raise
        raise GradientError(
            f"the jvp of {_who(rule, site)} gets the site and {counted(len(dxs), 'tangent')}, one "
            f"per input, but it is {rule.name}{inspect.signature(rule.jvp)}. The inputs "
            f"are{_rows(site.inputs)}"
        ) from error
    entries = list(found) if isinstance(found, list | tuple) else [found]
    if found is None or len(entries) != len(site.outputs):
        got = "None; is a `return` missing?" if found is None else counted(len(entries), "tangent")
        raise GradientError(
            f"the jvp of {_who(rule, site)} gives one tangent for each output, got {got}. "
            f"The outputs are{_rows(site.outputs)}"
        )
    if any(entry is DEFAULT for entry in entries):
        raise GradientError(f"the jvp of {_who(rule, site)}: DEFAULT is for gradients only")
    return entries


def outer_reads(target: Node | Region, outputs: Sequence[Tensor]) -> frozenset[Tensor]:
    """The outputs that a rule of a site reads as outer ones; its other reads are residuals."""
    if isinstance(target, Node) or target.order == "through":
        return frozenset()
    return frozenset(outputs)


def _call(rule: Rule, site: Site, dys: list[Tensor | None]) -> Any:
    if isinstance(rule, BuiltinRule):
        return [NO_GRAD if dx is None else dx for dx in _own_of_op(rule, site, dys)]
    try:
        return rule.fn(site, *dys)
    except Exception as error:
        if isinstance(error, TypeError) and not _takes(rule.fn, site, dys):
            raise _arity(rule, site) from error
        error.add_note(f"in {_who(rule, site)}")
        raise


def _takes(fn: Any, site: Site, dys: Sequence[Any]) -> bool:
    try:
        inspect.signature(fn).bind(site, *dys)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _arity(rule: Rule, site: Site) -> GradientError:
    return GradientError(
        f"{_who(rule, site)} gets the site and {counted(len(site.outputs), 'gradient')}, one per "
        f"output, but it is {rule.name}{inspect.signature(rule.fn)}. The outputs "
        f"are{_rows(site.outputs)}"
    )


def _rows(tensors: Sequence[Tensor]) -> str:
    return "".join(f"\n  {t.name}: {t.type!r}, built at {t.where}" for t in tensors)


def _who(rule: Rule, site: Site) -> str:
    return f"the gradient rule {rule.name!r} (defined at {rule.where}) of {site!r}"


def _own_of_op(rule: BuiltinRule, site: Site, dys: Sequence[Any]) -> list[Tensor | None]:
    """What the own gradient of an op type gives, for a node of it or for another site."""
    op = _op_of(rule, site)
    try:
        return builtin(op, site, dys)
    except (TypeError, ValueError) as error:
        if isinstance(error, GraphGradError) or (isinstance(site, NodeSite) and site.op is op):
            raise
        raise GradientError(
            f"the gradient of op type {rule.op_type!r} does not fit {site!r}, which has "
            f"{counted(len(site.inputs), 'input')} and {counted(len(site.outputs), 'output')}: "
            f"{error}. The inputs are{_rows(site.inputs)}\nThe outputs are{_rows(site.outputs)}"
        ) from error


def _op_of(rule: BuiltinRule, site: Site) -> Op:
    """The op whose own rule is used for the site."""
    cls = OP_TYPES[rule.op_type]
    if isinstance(site, NodeSite) and type(site.op) is cls:
        return site.op
    try:
        return cls(**{n: site.attrs[n] for n in cls.fields if n in site.attrs})
    except TypeError as error:
        raise GradientError(
            f"the gradient of op type {rule.op_type!r} needs the attributes {list(cls.fields)}, "
            f"which {site!r} does not have"
        ) from error


# --- what it returned -------------------------------------------------------------------------


def _entries(rule: Rule, site: Site, found: Any) -> list[tuple[Tensor, Any]]:
    """What the rule returned, as one entry per input, then those a mapping adds."""
    if found is None:
        raise GradientError(
            f"{_who(rule, site)} returned None; is a `return` missing?\n"
            "Return NO_GRAD for an input that receives no gradient."
        )
    if isinstance(found, Mapping):
        return _from_mapping(rule, site, found)
    if isinstance(found, Generator):
        raise GradientError(f"{_who(rule, site)} is a generator; return the gradients instead")
    entries = list(found) if isinstance(found, list | tuple) else [found]
    if len(entries) != len(site.inputs):
        raise GradientError(
            f"{_who(rule, site)} returned {counted(len(entries), 'gradient')} for "
            f"{counted(len(site.inputs), 'input')}. "
            f"The inputs are{_rows(site.inputs)}"
        )
    return list(zip(site.inputs, entries, strict=True))


def _from_mapping(rule: Rule, site: Site, found: Mapping[Any, Any]) -> list[tuple[Tensor, Any]]:
    """An entry for each input, then those for what the site reads undeclared."""
    undeclared = site.boundary.undeclared if isinstance(site, RegionSite) else ()
    read = {*site.inputs, *undeclared}
    given: dict[Tensor, Any] = {}
    for key, entry in found.items():
        x = _at_site(key, site) if isinstance(key, Tensor) else None
        if x is None or x not in read or x in given:
            shown = f"{key.name} ({key.where})" if isinstance(key, Tensor) else repr(key)
            why = " twice: inside and outside" if x in given else ", which it does not read"
            raise GradientError(f"{_who(rule, site)} returned a gradient for {shown}{why}")
        given[x] = entry
    missing = [x for x in dict.fromkeys(site.inputs) if x.dtype.kind in "fc" and x not in given]
    if missing:
        raise GradientError(
            f"{_who(rule, site)} returned a mapping without an entry for{_rows(missing)}\n"
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
    found: Tensor | None = t
    while bodies and found is not None:
        found = getattr(bodies.pop(), "captures", {}).get(found)
    return found


def _finished(
    rule: Rule,
    site: Site,
    entries: list[tuple[Tensor, Any]],
    dys: Sequence[Tensor | None],
    given: Sequence[Tensor | None],
    start: int,
) -> list[Gradient]:
    """The entries as gradients of their inputs' types; disconnected inputs get None."""
    default: tuple[Any, ...] = ()
    if any(dx is DEFAULT for _, dx in entries):
        default = site.default(*dys)
    used = [dy for dy, seen in zip(given, dys, strict=True) if seen is not None]
    _check_undeclared(rule, site, {x for x, _ in entries}, dys)
    found: list[Gradient] = []
    for i, (x, entry) in enumerate(entries):
        if entry is DEFAULT:
            if i >= len(default):
                raise GradientError(f"{_who(rule, site)}: DEFAULT is for declared inputs only")
            entry = default[i]
        dx = _as_gradient(rule, site, x, entry, i)
        if dx is not None and not _connected(site, x, dx, dys, used, start):
            dx = None
        found.append((x, dx))
    return found


def _as_gradient(rule: Rule, site: Site, x: Tensor, entry: Any, i: int) -> Tensor | None:
    """An entry as a tensor of x's shape and dtype, or None for nothing."""
    if entry is None or entry is NO_GRAD:
        return None
    if is_zero(entry):
        return ZeroTensor(x) if x.type.differentiable else None
    if not x.type.differentiable:
        raise _wrong(
            rule, site, x, i, f"{entry!r}, but only floating inputs have a gradient: return NO_GRAD"
        )
    if isinstance(entry, Tensor):
        if entry.graph is x.graph:
            (entry,) = adopted((entry,))
        return seen_outside(_checked_tensor(rule, site, x, entry, i))
    return _from_value(rule, site, x, entry, i)


def seen_outside(dx: Tensor) -> Tensor:
    """dx as it is read from here, where it was built in a region that is not open."""
    context = CONTEXT.get()
    inside = context.question.tree.around(dx.node)
    if inside is None or inside.contains(context.region):
        return dx
    return apply(Identity(), dx)


def _from_value(rule: Rule, site: Site, x: Tensor, entry: Any, i: int) -> Tensor:
    """A number (broadcast) or an array (of x's shape) as a constant."""
    check_unmasked(entry, f"{_who(rule, site)} is to return arrays: ")
    try:
        array = np.asarray(entry)
        fits = np.can_cast(array.dtype, x.dtype, "same_kind")
    except (TypeError, ValueError):
        raise _wrong(rule, site, x, i, repr(entry)) from None
    if array.dtype.kind not in "biuf" or not fits:
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
        raise _wrong(rule, site, x, i, f"{dx.type!r}; cast it with `.astype({x.dtype.name!r})`")
    if not compatible(dx.shape, x.shape):
        small = len(dx.shape) < len(x.shape)
        hint = (
            "gg.broadcast_like(dx, x) repeats it"
            if small
            else "gg.sum_to(dx, like=x) sums over broadcast axes"
        )
        raise _wrong(rule, site, x, i, f"{dx.type!r}; {hint}")
    return _ensured(rule, site, x, dx, i)


def _ensured(rule: Rule, site: Site, x: Tensor, dx: Tensor, i: int) -> Tensor:
    """dx, with a check at run time where its shape is not known to be that of x."""
    if dx.shape == x.shape and None not in x.shape:
        return dx
    what = f"the gradient of input {i}, {x.name} (built at {x.where}), by {_who(rule, site)}"
    return apply(EnsureLike(what), dx, x)


def _wrong(rule: Rule, site: Site, x: Tensor, i: int, got: str) -> GradientError:
    return GradientError(
        f"{_who(rule, site)} must return, for input {i}, {x.name} (built at {x.where}), a gradient "
        f"of its type {x.type!r}; got {got}"
    )


# --- what is connected ------------------------------------------------------------------------


def _connected(
    site: Site,
    x: Tensor,
    dx: Tensor,
    dys: Sequence[Tensor | None],
    used: Sequence[Tensor | None],
    start: int,
) -> bool:
    """Whether x leads to an output in use, or its entry depends on a gradient in use."""
    if not isinstance(site, RegionSite) or site.region.pinned_inputs is not None:
        return True
    bits = site.boundary.reach(x)
    if any(bits >> i & 1 for i, dy in enumerate(dys) if dy is not None):
        return True
    return _depends(dx, {dy for dy in used if dy is not None}, start)


def _depends(dx: Tensor, on: set[Tensor], start: int) -> bool:
    """Whether dx was computed from one of these, by nodes built from `start` on."""
    if dx in on:
        return True
    if isinstance(dx, ZeroTensor):
        return False
    seen = {dx.node}
    stack = [dx.node]
    while stack:
        for t in stack.pop().inputs:
            if t in on:
                return True
            if t.node not in seen and t.node.index >= start:
                seen.add(t.node)
                stack.append(t.node)
    return False


def _check_undeclared(
    rule: Rule, site: Site, answered: set[Tensor], dys: Sequence[Tensor | None]
) -> None:
    """GradientError where a gradient would have to flow through a tensor nobody declared."""
    if not isinstance(site, RegionSite):
        return
    for t in site.boundary.undeclared:
        bits = site.boundary.reach(t)
        if (
            t not in answered
            and site.reads_live(t)
            and any(bits >> i & 1 for i, dy in enumerate(dys) if dy is not None)
            and not _spoken_for(t, site.region)
        ):
            readers = [n for n in site.nodes if any(t is x for x in n.inputs)]
            raise GradientError(
                f"{site!r} reads {t.name} ({t.type!r}, built at {t.where}), which is not among "
                f"its inputs, in {shown(readers)}, and a gradient has to flow through it.\n"
                f"Make it an input, return a mapping {{input: gradient}} from {rule.name!r} that "
                "has an entry for it (for a variable: a grad_fn with a `variables` argument), or "
                "gg.stop_gradient it first."
            )


def _spoken_for(t: Tensor, region: Region) -> bool:
    """Whether t is hidden in the region whose rule opened this one: then its rule speaks for t."""
    while isinstance(t.graph, BodyGraph) and (home := t.graph.home_of(t)) is not None:
        t = home
    op = t.node.op
    return isinstance(op, Residual) and any(
        derived_from(around, region.origin, t.node.inputs[0]) for around in enclosing(op.region)
    )


def refuse_rule_derivative(origin: RuleCall, running: Collection[Node | Region]) -> None:
    """GradientError where a rule that says order="error", and is not running, is differentiated."""
    region = origin.site
    if isinstance(region, Region) and region.order == "error" and region not in running:
        raise GradientError(
            f"differentiating through the gradient rule {origin.rule!r} of region "
            f"{region.name!r} ({region.where}), which says order='error': its gradient is not to "
            "be differentiated again"
        )
