"""Memory for time: what a part of the forward computation made is made again where it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from math import comb, isqrt
from typing import Any

from ..base.domains import FROM_ONE, INTEGER
from ..base.errors import GradientError, GraphError
from ..base.tree import flatten, unflatten
from ..differentiate.additive import note_built_again
from ..differentiate.choosing import resolved
from ..differentiate.forward.judge import judged_inside
from ..differentiate.gradients import gradients
from ..differentiate.levels import Step, built_from
from ..differentiate.question import Question
from ..differentiate.travel.transplant import Origin, Tensors, Transplant
from ..ir.build import read_here
from ..ir.context import AnyQuestion, Scope
from ..ir.graph import Graph, GraphScope, current
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.residual import Residual
from ..ops.base import NO_GRAD, Constant, apply, is_zero
from ..ops.control import around
from ..ops.identities.sequencing import After
from ..ops.random.keys import RandomKey
from ..ops.sources import Assign, identity
from ..regions.index import has_gradient
from ..regions.rules import own_rule
from ..regions.scopes import override_gradient
from ..regions.select import select
from .entries import entry

FAMILY = "recompute"
MOST = 40


@entry(FAMILY, "exact")
def checkpoint(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn, recomputed in the backward pass: only its inputs are stored.

    dxs = the gradient of the inside, which is built once more on what it reads
    [Griewank and Walther 2000, "Algorithm 799: revolve"; Chen et al. 2016, "Training deep nets with
    sublinear memory cost"].

    fn is called once. The marks of the inside count as they are at differentiation. Random numbers
    have explicit seeds, so they are the same ones again; a py_function runs again, an assign() does
    not.

    Parameters: fn: a function of any arguments, that returns a tensor or any nesting of them.

    Returns: fn as a function of the same arguments.

    Raises: TypeError if fn is not a function.

    >>> x = gg.constant(2.0)
    >>> y = gg.rules.checkpoint(lambda x: gg.exp(gg.log(x) * 3))(x)
    >>> round(float(gg.evaluate(gg.gradients(y, x))), 6)
    12.0
    """
    if not callable(fn):
        raise TypeError(
            f"checkpoint takes a function of tensors, got {fn!r}; write checkpoint(fn)(x)"
        )

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        with override_gradient(CHECKPOINT, allow_empty=True) as region:
            results = fn(*args, **kwargs)
            leaves = [identity(y) if isinstance(y, Tensor) else y for y in flatten(results)]
            region.declare(outputs=[y for y in leaves if isinstance(y, Tensor)])
        return unflatten(results, leaves)

    return call


def _recomputed(site: Any, *dys: Tensor | None) -> Any:
    """The rule of a checkpoint. It knows its site alone, and is linear where the inside is."""
    seeds = {y: dy for y, dy in zip(site.outputs, dys, strict=True) if dy is not None}
    real = {y: dy for y, dy in seeds.items() if not is_zero(dy)} or seeds
    again = _Again(site, list(real.values()))
    again.rebuild(site.nodes)
    wanted = [x.type.differentiable and site.wants(x) for x in site.inputs]
    at = [again.tensor(x) for x, here in zip(site.inputs, wanted, strict=True) if here]
    ys = [again.tensor(y) for y in real]
    with judged_inside(site), _Choosing(again):
        try:
            dxs = iter(gradients(ys, at, list(real.values()), stop_gradients=at))
        except RecursionError:
            raise _too_deep(site) from None
    return [next(dxs) if here else NO_GRAD for here in wanted]


def _too_deep(site: Any) -> Exception:
    """The error where Python's stack ends in checkpoints inside one another."""
    depth = [getattr(step, "rule", None) for step in current().answering.running].count(CHECKPOINT)
    if depth < 2:
        return RecursionError(f"Python's stack ends while {site!r} is recomputed")
    return GraphError(
        f"{site!r} is the innermost of {depth} checkpoints inside one another whose gradients are "
        "taken, and Python's stack ends there.\nPut checkpoints side by side, as checkpoint_chain "
        "does, or raise sys.setrecursionlimit()."
    )


CHECKPOINT = own_rule("gg.rules.checkpoint", _recomputed, contract="exact")


class _Again(Transplant):
    """Builds the inside of a region once more, from its inputs once some gradients are there.

    home  the region
    call  the call of its rule: why that is done
    """

    def __init__(self, site: Any, seeds: Sequence[Tensor]) -> None:
        self.home: Region = site.region
        self.call = current().origin
        self._calls: dict[RuleCall, RuleCall] = {}
        kept = [x for x in site.inputs if not isinstance(x.node.op, Constant)]
        super().__init__(self.home.graph, {x: apply(After(), x, *seeds) for x in kept})

    def outside(self, t: Tensor) -> Tensor:
        """What is outside of the inside, as the graph reads it."""
        with GraphScope(self.graph):  # a rule that was carried along may ask in a body
            return read_here((t,))[0]

    def _is_capture(self, node: Node) -> bool:
        """Whether it is outside, as what a rule of a body holds on to may be."""
        return not self.home.contains(node.region)

    def owns(self, region: Region) -> bool:
        """Whether a region is one of the inside; others stay what they are."""
        return region is not self.home and self.home.contains(region)

    def outside_region(self, region: Region) -> Any:
        """The region itself; for the one that is recomputed, where that is done."""
        if region is self.home:
            return self.around
        if region.graph not in around(self.source):
            raise GraphError(f"{region!r} is not in {self.source!r}, which is recomputed in part")
        return region

    def captured(self, t: Tensor) -> Tensor:
        """What a trace captured, which may be read from inside `home` or what is around it."""
        at = t.node.op.region if isinstance(t.node.op, Residual) else None
        if at is None or self.owns(at):
            return super().captured(t)
        return read_here((self.tensor(t.node.inputs[0]),))[0]

    def rebuild(self, nodes: Sequence[Node]) -> None:
        """Build the nodes anew; in the bodies of control flow, too, they are derived."""
        self.run(nodes)
        for copy in self._copies().values():
            for node in copy.nodes:
                node.origin = node.origin or self.call
        for step, new in self.twins().items():
            note_built_again(new, step)

    def place(self, node: Node, inputs: Tensors) -> Tensors:
        """The node built anew: what was derived stays so; an update is not made a second time."""
        if isinstance(node.op, Assign):
            return (identity(inputs[1]),)
        if isinstance(node.op, RandomKey) and node.op.number < 0:  # drawn where it is built anew
            return (self.outside(node.outputs[0]),)
        new = self.anew(node, inputs)
        if node.origin is not None:
            new.origin = self.origin(node.origin)
        return new.outputs

    def origin(self, origin: Origin) -> Any:
        """What stands for why a node was built: what is outside stays what it is."""
        if origin is None:
            return None
        if isinstance(origin, Node):
            return self._node(origin) or origin
        call = self._calls.get(origin)
        if call is None:
            site = origin.site
            there = self._open_region(site) if isinstance(site, Region) else self.origin(site)
            outer = frozenset(self.tensors.get(t, t) for t in origin.outer)
            call = self._calls[origin] = RuleCall(there, origin.rule, outer)
        return call

    def _copies(self) -> dict[Graph, Graph]:
        """The bodies of control flow inside, at every depth, with what they were copied to."""
        copies = {body: copied.graph for body, copied in self.bodies.items()}
        pairs = list(copies.items())
        for pair in pairs:
            for steps in zip(*(graph.nodes for graph in pair), strict=False):
                for programs in zip(*(n.op.bodies for n in steps), strict=True):
                    body, copy = (program.outputs[0].graph for program in programs)
                    if body not in copies:
                        copies[body] = copy
                        pairs.append((body, copy))
        return copies

    def twins(self) -> dict[Step, Step]:
        """What stands for each node and region of the inside."""
        twins: dict[Step, Step] = {
            t.node: new.node for t, new in self.tensors.items() if self.home.contains(t.node.region)
        }
        twins |= {r: new for r, new in self.regions.items() if r.group is None}
        for body, copy in self._copies().items():
            twins |= zip(body.nodes, copy.nodes, strict=False)
            twins |= zip(body.regions, copy.regions, strict=False)
        return twins


class _Choosing(Scope):
    """Groups that the running gradients() call names inside count for what is built anew, too.

    Its other choices do so anyhow. What was asked of the new steps was asked of what they were
    built from.
    """

    def __init__(self, again: _Again) -> None:
        self.again = again

    def __enter__(self) -> None:
        context = current().copy()
        named = self._named(context.question)
        if named:
            chosen = {**context.question.choice.overrides, **named}
            choice = resolved(chosen, context.graph, inherited=True)
            context.question = Question.under(choice)
        self._push(context)

    def __exit__(self, kind: object, *exc: object) -> None:
        answering = current().answering
        self._pop(kind)
        for steps in (answering.asked, answering.opened):
            if steps is not None:
                new = self.again.twins().values()
                steps.update([built_from(step) for step in new if step in steps])
        if answering.opened is not None:
            answering.opened.add(self.again.home)

    def _named(self, question: AnyQuestion) -> dict[Any, Any]:
        overrides: dict[Any, Any] = {}
        twins = self.again.twins()
        choice = question.choice
        for region in question.tree.regions:
            assert region.group is not None
            nodes = [t.node for t in region.group.tensors if has_gradient(t.node)]
            if nodes and all(n in twins for n in nodes) and region not in choice.off:
                overrides[select.nodes(*(twins[n] for n in nodes))] = choice.get(region)
        return overrides


@entry(FAMILY, "exact")
def checkpoint_chain(
    fns: Sequence[Callable[[Any], Any]],
    x: Any,
    segments: int | None = None,
    snapshots: int | None = None,
) -> Any:
    """fns one after the other; only some of the values between them are stored.

    dx = the gradient of the chain, from values that are computed again
    [Griewank and Walther 2000, "Algorithm 799: revolve"; Chen et al. 2016, "Training deep nets with
    sublinear memory cost"].

    Parameters:
        fns: functions of one tensor, or nesting of them, that return what the next one takes.
        x: what the first one takes.
        segments: the ends of so many are kept, an int >= 1, and the inside of one at a time;
            sqrt(n) by default. Every function but those of the last segment runs once more.
        snapshots: so many values are kept at most, an int >= 1, x among them. Functions run
            `forward_steps(n, snapshots)` times beside once each, which is the least possible.

    Returns: what the last one returns.

    Raises: GradientError for segments and snapshots together, or too few snapshots.

    >>> x = gg.constant(2.0)
    >>> y = gg.rules.checkpoint_chain([gg.square] * 3, x, snapshots=2)
    >>> gg.evaluate([y, gg.gradients(y, x)])
    [array(256.), array(1024.)]
    """
    FROM_ONE.if_given("segments", segments)
    INTEGER.if_given("snapshots", snapshots)
    if segments is not None and snapshots is not None:
        raise GradientError("checkpoint_chain() takes segments or snapshots, not both")
    if snapshots is not None:
        return _revolve(fns, snapshots)(x)
    count = segments or max(1, isqrt(len(fns)))
    bounds = [len(fns) * i // count for i in range(count + 1)]
    for first, last in pairwise(bounds[:-1]):
        x = checkpoint(_one_after_the_other(fns[first:last]))(x)
    return _one_after_the_other(fns[bounds[-2] :])(x)


def _one_after_the_other(fns: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def segment(x: Any) -> Any:
        for fn in fns:
            x = fn(x)
        return x

    return segment


def _revolve(fns: Sequence[Callable[[Any], Any]], snapshots: int) -> Callable[[Any], Any]:
    """The chain, cut again and again: what stands before a cut is computed once more, from its
    start, with all of the snapshots; what stands after it has one fewer.
    """
    parts: list[Callable[[Any], Any]] = []
    while len(fns) > 1:
        cut = _cut(len(fns), snapshots)
        parts.append(checkpoint(_revolve(fns[:cut], snapshots)))
        fns, snapshots = fns[cut:], snapshots - 1
    return _one_after_the_other([*parts, *fns])


def forward_steps(length: int, snapshots: int) -> int:
    """How often functions of a chain run to be reversed with so many values kept, x among them,
    beside once for each to differentiate it: r * length - C(snapshots + r, r - 1), where r is the
    least with length <= C(snapshots + r, r).
    """
    r = _repetitions(length, snapshots)
    return r * length - (comb(snapshots + r, r - 1) if r else 0)


def _repetitions(length: int, snapshots: int) -> int:
    """The most often that a function of the chain has to run before it is differentiated.

    GradientError for MOST and more: each is a rule that is called within the one before.
    """
    if snapshots < 1:
        raise GradientError(f"a chain is reversed from at least 1 snapshot, got {snapshots}")
    if comb(snapshots + MOST - 1, MOST - 1) < length:
        raise GradientError(
            f"with {snapshots} snapshots a chain of {length} functions runs some of them {MOST} "
            "times and more; give more snapshots"
        )
    r = 0
    while comb(snapshots + r, r) < length:
        r += 1
    return r


def _cut(length: int, snapshots: int) -> int:
    """Where the first snapshot after x is best taken."""
    r = _repetitions(length, snapshots)
    after = comb(snapshots + r - 2, r - 1)  # what needs one repetition less, with one snapshot less
    return max(1, min(comb(snapshots + r - 1, r - 1), length - after))
