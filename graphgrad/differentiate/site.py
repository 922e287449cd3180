"""Sites: what a rule is called for, and the gradient it would have without the rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..base.errors import GradientError
from ..ir.context import CONTEXT, Within
from ..ir.graph import Graph, GraphScope
from ..ir.node import Node, Region, Tensor
from ..ir.op import Op
from ..ir.types import compatible
from ..ops.base import NO_GRAD, ZeroTensor, like
from ..ops.base import is_zero as known_zero
from ..ops.identities.own import OwnStep
from ..ops.random.keys import call_key
from ..ops.shape.reshaping import broadcast_like
from ..regions.boundary import Boundary, settled_boundary
from .builtin import builtin, given
from .levels import Off
from .plan import SweepPlan
from .question import Question

Gradient = tuple[Tensor, Tensor | None]
"""A tensor that a site reads, with its gradient; None where nothing flows."""


def is_zero(dy: Any) -> bool:
    """Whether dy is a structural zero: known to be zero without looking at a value.

    For rules. A rule in a branch of cond() that was told so is not called in parts.

    Parameters: dy: what a rule was given as the gradient of an output.

    Returns: a Python bool.

    >>> gg.is_zero(gg.constant(0.0))
    False
    """
    if isinstance(dy, ZeroTensor):
        dy.asked = True
    return known_zero(dy)


class Answers(Protocol):
    """What a site asks: the sweep that came to it."""

    question: Question
    plan: SweepPlan
    unsaid: set[Tensor]

    def ask(self, site: Site, dys: list[Tensor | None]) -> list[Gradient]:
        """What the site's rule gives for these cotangents of its outputs."""

    def inside(self, site: RegionSite, dys: Sequence[Tensor | None], off: Off) -> list[Any]:
        """The gradients of a region's inputs by its inside; off: marks that do not count there."""


class Site:
    """What a rule is called for: one node, or one region taken as a single step.

    inputs, outputs  graph tensors, so that what a rule builds can be differentiated again
    told     the outputs, by place, whose gradient the rule asked about and is zero
    partials  what `default` returned, of each call
    place    the graph and the region in which its rule runs
    name, type       of the node; for a region its rule's name and "Region"
    attrs            the op's attributes, or what was given to override_gradient
    nodes            the nodes inside

    >>> def shown(site, dy):
    ...     print(site.type, [x.name for x in site.inputs])
    ...     return site.default(dy)
    >>> x = gg.placeholder((), name="x")
    >>> with gg.override_gradient(shown):
    ...     y = gg.sin(x)
    >>> dx = gg.gradients(y, x)
    Region ['x:0']
    """

    def __init__(self, target: Node | Region, reference: Any, sweep: Answers) -> None:
        self._target = target
        self.reference = reference
        self._sweep = sweep
        self.told: frozenset[int] = frozenset()
        self.partials: list[tuple[Any, ...]] = []

    place: tuple[Graph, Region | None]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    view: Region | None
    _key: Tensor | None = None
    marked: Any

    @property
    def name(self) -> str:
        """The node's name, or that of the region's rule."""
        return self._target.name

    @property
    def where(self) -> str:
        """The user's line: where the node was built or the region opened."""
        return self._target.where

    @property
    def type(self) -> str:
        """The op type, or "Region"."""
        return self._target.type if isinstance(self._target, Node) else "Region"

    @property
    def attrs(self) -> dict[str, Any]:
        """The op's attributes, or what was given to override_gradient."""
        return self._target.attrs

    def get_attr(self, name: str) -> Any:
        """One attribute; KeyError with the known names."""
        if name not in self.attrs:
            raise KeyError(f"{self.name} has no attribute {name!r}, it has {list(self.attrs)}")
        return self.attrs[name]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes inside."""
        raise NotImplementedError

    def default(self, *dys: Any) -> tuple[Any, ...]:
        """The gradient this site would have without this one rule.

        Nothing of the forward part is copied or computed again.

        Parameters: *dys: one per output, each a tensor, a number, or None for nothing.

        Returns: a tuple of one partial per input: a tensor (a structural zero where nothing flows),
        NO_GRAD for integers and bools, and for a constant whose gradient nobody wants where a rule
        inside reads it without an answer for it.

        Raises: GradientError after the rule has returned, for another number of dys, and for one
        that differs from its output in shape or dtype.

        >>> x = gg.constant(2.0)
        >>> half = gg.override(lambda site, dy: [dx / 2 for dx in site.default(dy)])
        >>> gg.evaluate(gg.gradients(half(gg.square)(x), x))
        array(2.)
        """
        answering = CONTEXT.get().answering
        if self._target not in answering.running:
            raise GradientError(f"site.default of {self} is available only while its rule runs")
        if len(dys) != len(self.outputs):
            raise GradientError(
                f"site.default of {self} takes {len(self.outputs)} gradients, one per output, "
                f"got {len(dys)}"
            )
        if answering.opened is not None:
            answering.opened.add(self._target)
        given = [self._checked_dy(dy, y) for dy, y in zip(dys, self.outputs, strict=True)]
        if self.marked is not None and self.reference is not self.marked:
            dxs: Sequence[Tensor | None] = self._marked_default(given)
        else:
            dxs = self._own_default(given)
        partials = tuple(
            [
                NO_GRAD if not x.type.differentiable else ZeroTensor(x) if dx is None else dx
                for x, dx in zip(self.inputs, dxs, strict=True)
            ]
        )
        self.partials.append(partials)
        return partials

    def random_key(self) -> Tensor:
        """The key of this call of the rule, a seed for what it draws.

        It differs for each call that this one stands for: for each site, each order, each run of a
        loop, each example of a batch and each run of the program. What is computed again, by a
        checkpoint or for a derivative of higher order, has the same key. A draw without a seed
        has a key of its own that is made in the same way.

        Returns: a scalar int64 tensor, the same one whenever the call asks; `gg.random.split` and
        `gg.random.fold_in` make several of it.

        Raises: GradientError after the rule has returned.

        Gradient: none, keys are integers.

        >>> def noisy(site, dy):
        ...     return dy + gg.random.normal((), seed=site.random_key())
        >>> x = gg.constant([1.0, 2.0, 3.0])
        >>> rows = gg.map(gg.override(noisy)(gg.square), x)
        >>> len(set(gg.evaluate(gg.gradients(rows, x)).tolist()))
        3
        """
        if self._target not in CONTEXT.get().answering.running:
            raise GradientError(f"site.random_key of {self} is available only while its rule runs")
        if self._key is None:
            graph, region = self.place
            with GraphScope(graph):
                context = CONTEXT.get().copy()
                context.region = region
                with Within(context):
                    self._key = call_key()
        return self._key

    def _own_default(self, dys: list[Tensor | None]) -> Sequence[Tensor | None]:
        raise NotImplementedError

    def _marked_default(self, dys: list[Tensor | None]) -> list[Tensor | None]:
        """Under an override of the call: what the rule that is marked on the graph gives."""
        site = type(self)(self._target, self.marked, self._sweep)
        return [dx for _, dx in self._sweep.ask(site, dys)][: len(self.inputs)]

    def _checked_dy(self, dy: Any, y: Tensor) -> Tensor | None:
        if dy is None or dy is NO_GRAD or known_zero(dy) or not y.type.differentiable:
            return None
        if not isinstance(dy, Tensor):
            dy = broadcast_like(like(dy, y), y)
        if dy.dtype is not y.dtype or not compatible(dy.shape, y.shape):
            raise GradientError(
                f"site.default of {self} got {dy.type!r} as the gradient of {y.name}, which is "
                f"{y.type!r}"
            )
        checked: Tensor = dy
        return checked

    def __repr__(self) -> str:
        kind = "node" if isinstance(self._target, Node) else "region"
        return f"{kind} {self.name!r} ({self.where})"


class NodeSite(Site):
    """A single node, under an op-type override."""

    def __init__(self, target: Node, reference: Any, sweep: Answers) -> None:
        super().__init__(target, reference, sweep)
        self.node = target
        self.inputs, self.outputs = target.inputs, target.outputs
        self.view = sweep.question.tree.around(target)
        self.marked = target.stamp

    @property
    def op(self) -> Op:
        """The op."""
        return self.node.op

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The node."""
        return (self.node,)

    @property
    def consumers(self) -> list[Node]:
        """The nodes that read an output."""
        return self.node.consumers

    def _own_default(self, dys: list[Tensor | None]) -> Sequence[Tensor | None]:
        if all(dy is None for dy in dys):
            return [None] * len(self.inputs)
        return builtin(self.op, OwnStep(self.node), given(self.op, self.outputs, dys))


class RegionSite(Site):
    """A region, as one step."""

    def __init__(
        self, target: Region, reference: Any, sweep: Answers, boundary: Boundary | None = None
    ) -> None:
        super().__init__(target, reference, sweep)
        self.region = target
        self.boundary = settled_boundary(target) if boundary is None else boundary
        self.inputs, self.outputs = self.boundary.inputs, self.boundary.outputs
        self.view = target
        self.marked = target.rule

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes inside, inner regions' included."""
        return tuple(self.boundary.members)

    def reads_live(self, x: Tensor) -> bool:
        """Whether the running question wants a gradient of what is read here."""
        return self._sweep.plan.is_live(x, self.view)

    def is_spare(self, x: Tensor) -> bool:
        """Whether it is a constant whose gradient nobody wants but a default; then it has none."""
        if x not in self._sweep.question.spare:
            return False
        self._sweep.unsaid.add(x)
        return True

    def wants(self, x: Tensor) -> bool:
        """The same; a trace is for every question."""
        return not self._sweep.plan.live or self.reads_live(x)

    def _own_default(self, dys: list[Tensor | None]) -> Sequence[Tensor | None]:
        off = self._sweep.question.off | frozenset(CONTEXT.get().answering.running)
        dxs = self._sweep.inside(self, dys, off)
        seen: set[Tensor] = set()
        for i, x in enumerate(self.inputs):  # the same tensor twice: all of it to the first
            if x in seen:
                dxs[i] = None
            seen.add(x)
        return dxs
