"""The scopes that mark: `override_gradient` a region, `gradient_override_map` nodes by op type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from ..base.depth import check_room
from ..base.errors import GraphError, RegionError, did_you_mean
from ..base.flags import truth
from ..base.generators import opened_by
from ..base.position import Position, caller, show
from ..base.tree import flatten
from ..ir.build import check_open
from ..ir.context import Context, Scope, add_stamps, bodies_around, stamps_on
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, Tensor
from ..ir.op import OP_TYPES, Op
from ..ir.residual import settle
from .boundary import take_in_pins, why_idle
from .rules import check_reference

__all__ = [
    "gradient_override_map",
    "override",
    "override_gradient",
]

Fn = TypeVar("Fn", bound=Callable[..., Any])
ESCAPES = ("error", "default")
ORDERS = ("again", "through", "error")


class override_gradient(Scope):
    """`with override_gradient("name"):` the nodes built in the block become one region.

    The rule replaces the region's gradient. It is also a decorator: then each call of the function
    is a region. `as region` returns the region, and `region.declare(outputs=[y])` fixes its
    outputs.

    The block applies to the current thread and task. Another thread that enters the same graph
    builds outside of the region, unless it runs in a `contextvars.copy_context()` that was made in
    the block.

    Parameters:
        rule: a registered name, an op type, a callable fn(site, *dys), or a rule object.
        inputs: the region's inputs, in this order; None: the tensors that the block reads, in
            order.
        escape: what to do if a gradient has to flow through an undeclared tensor that crosses the
            boundary: "error", or "default" (outputs then get the derivative of the region without
            the rule).
        order: how second-order gradients treat site.outputs that the rule reads: "again" (apply the
            rule again), "through" (differentiate the region without the rule), "error" (raise an
            error).
        late: do not check the name now, only when a gradient needs it.
        allow_empty: do not raise an error for a block that marks nothing, or whose rule can never
            be called.
        **attrs: other keyword arguments, which the rule gets as site.attrs.

    Raises: UnknownGradientError at the `with`; GradientError for input that is not a rule;
    ValueError for an unknown escape or order; RegionError at the end of a block that marked
    nothing, or that has only integer and bool inputs or outputs.

    Gradient: that of the rule.

    >>> x = gg.constant([0.3, -2.0])
    >>> with gg.override_gradient(lambda site, dy: 10 * dy):
    ...     y = gg.tanh(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([10., 10.])
    """

    def __init__(
        self,
        rule: Any,
        inputs: Any = None,
        *,
        escape: str = "error",
        order: str = "again",
        late: bool = False,
        allow_empty: bool = False,
        **attrs: Any,
    ) -> None:
        _one_of("escape", escape, ESCAPES)
        _one_of("order", order, ORDERS)
        late, allow_empty = truth("late", late), truth("allow_empty", allow_empty)
        check_reference(rule, lambda: f"named by the region opened at {show(caller())}", late)
        self.rule = rule
        self.inputs = inputs
        self.options: dict[str, Any] = {
            "escape": escape,
            "order": order,
            "late": late,
            "allow_empty": allow_empty,
            "attrs": attrs,
        }
        self.region: Region | None = None

    def __enter__(self) -> Region:
        check_room()
        context = current().copy()
        graph = context.graph
        if context.region is not None and context.region.open is not True:
            check_open(context.region)
        region = Region(
            graph,
            self.rule,
            parent=context.region,
            origin=context.origin,
            position=caller(),
            **self.options,
        )
        region.open = opened_by(region) or True
        if self.inputs is not None:
            inputs = _tensors_of(graph, self.inputs, region, "inputs")
            region.pinned_inputs = settle(context, inputs)
        context.region = region
        self._start = len(graph.nodes)
        try:
            graph.regions.append(region)
            self._push(context)
        except BaseException:
            region.open = False
            if graph.regions[-1:] == [region]:
                graph.regions.pop()
            raise
        self.region = region
        return region

    def __exit__(self, kind: object, *exc: object) -> None:
        region = self.region
        try:
            try:
                self._pop(kind)
            finally:
                self._close(region)
        except BaseException:  # an interrupt of the line above, maybe
            self._close(region)
            raise
        assert region is not None
        if kind is None:
            check_region(region, self._start)

    def _close(self, region: Region | None) -> None:
        if region is not None and self._saved is None:
            region.open = False

    def __call__(self, fn: Fn) -> Fn:
        """As a decorator: every call of fn is a region of its own."""

        @wraps(fn)
        def marked(*args: Any, **kwargs: Any) -> Any:
            scope = override_gradient.__new__(override_gradient)
            scope.__dict__.update(self.__dict__, _saved=None)
            with scope:
                return fn(*args, **kwargs)

        return marked  # type: ignore[return-value]

    def _what(self) -> str:
        return f"the region {self.rule!r}"

    def __repr__(self) -> str:
        return repr(self.region)


def override(rule: Any, **options: Any) -> override_gradient:
    """Decorator form of override_gradient: every call of the function is a region.

    Parameters:
        rule: as for override_gradient.
        **options: those of override_gradient.

    Returns: a decorator.

    Raises: the errors of override_gradient; a region's errors when the function is called.

    Gradient: that of the rule.

    >>> step = gg.override("Identity")(lambda x: gg.where(x > 0, 1.0, 0.0))
    >>> x = gg.constant([1.0, -1.0])
    >>> gg.evaluate(gg.gradients(step(x), x))
    array([1., 1.])
    """
    return override_gradient(rule, **options)


def check_region(region: Region, start: int) -> None:
    """RegionError where a closed block marked nothing, or declared what is not so."""
    declared = region.pinned_inputs is not None or region.pinned_outputs is not None
    if not declared and _acts(region, start):
        return
    strict = not region.allow_empty
    if strict and next(_members(region, start), None) is None:
        raise RegionError(
            f"the block of region {region.name!r} ({region.where}) built no node, so it marks "
            "nothing.\nMove the computation into the block, or say allow_empty=True."
        )
    if region.pinned_inputs is not None:
        inputs = _tensors_of(region.graph, region.pinned_inputs, region, "inputs")
        region.pinned_inputs = settle(current(), inputs)
        take_in_pins(region)
        for t in region.pinned_inputs:
            if region.contains(t.node.region):
                raise RegionError(
                    f"{t.name} (built at {t.where}) is declared as an input of "
                    f"{region!r} but was built inside it"
                )
    if region.pinned_outputs is not None:
        _tensors_of(region.graph, region.pinned_outputs, region, "outputs")
        for t in region.pinned_outputs:
            if not region.contains(t.node.region):
                raise RegionError(
                    f"{t.name} (built at {t.where}) is declared as an output of "
                    f"{region!r} but was not built inside it"
                )
    if strict and not _acts(region, start):
        error = _idle(region, list(_members(region, start)))
        if error is not None:
            raise error


def _members(region: Region, start: int) -> Iterator[Node]:
    """The nodes inside, from `start` on, as far as they are asked for."""
    nodes = region.graph.nodes
    for i in range(start, len(nodes)):
        node = nodes[i]
        if node.region is region or region.contains(node.region):
            yield node


def _acts(region: Region, start: int) -> bool:
    """Whether a gradient may reach the rule: known as soon as one way in and one way out are."""
    inferred = region.pinned_outputs is None
    enters = region.pinned_inputs is not None and _any_flows(region.pinned_inputs)
    leaves = region.pinned_outputs is not None and _any_flows(region.pinned_outputs)
    for node in _members(region, start):
        for t in () if enters else node.inputs:
            enters = enters or (t.type.differentiable and not region.contains(t.node.region))
        if inferred and node.inputs:
            for t in node.outputs:
                leaves = leaves or t.type.differentiable
        if enters and leaves:
            return True
    return False


def _any_flows(tensors: Iterable[Tensor]) -> bool:
    return any(t.type.differentiable for t in tensors)


def _idle(region: Region, members: list[Node]) -> RegionError | None:
    """The error for a region whose rule no gradient can reach; None where one can."""
    reads = reads_outside(region, members)
    if region.pinned_inputs is None and not reads:
        return RegionError(
            f"region {region.name!r} ({region.where}) reads nothing from outside, so there is no "
            "input whose gradient could be overridden. Say allow_empty=True if that is meant."
        )
    outputs = region.pinned_outputs
    if outputs is None:
        outputs = tuple([t for n in members if n.inputs for t in n.outputs])
    why = why_idle(reads, outputs)
    if not why:
        return None
    return RegionError(
        f"region {region.name!r} ({region.where}) {why}\n"
        "Put the whole path from floats to floats into the block, or say allow_empty=True."
    )


def reads_outside(region: Region, members: list[Node]) -> list[Tensor]:
    """What the block reads, declared inputs of regions in it included."""
    inner = [r for r in region.graph.regions[region.index :] if region.contains(r)]
    reads = [*(n.inputs for n in members), *(r.pinned_inputs or () for r in inner)]
    return [t for ts in reads for t in dict.fromkeys(ts) if not region.contains(t.node.region)]


def _tensors_of(graph: Graph, tree: Any, region: Region, what: str) -> tuple[Tensor, ...]:
    """The tensors, as the graph of the region knows them; RegionError where it does not."""
    tensors = flatten(tree)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise RegionError(f"the {what} of {region!r} are tensors, got {t!r}")
        try:
            tensors[i] = t if t.graph is graph else graph.adopt(t)
        except GraphError:
            raise RegionError(
                f"{t.name} ({t.where}) of {t.graph!r} is among the {what} of {region!r}, "
                f"which is in {graph!r}"
            ) from None
    return tuple(tensors)


def _one_of(what: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise ValueError(
            f"{what} is one of {', '.join(map(repr, known))}, got {value!r}. "
            f"{did_you_mean(str(value), known)}".rstrip()
        )


class gradient_override_map(Scope):
    """`with gradient_override_map({"Relu": "GuidedRelu"}):` puts a rule on each node of that type.

    The rule is put on nodes when they are built, also in bodies of control flow. An inner map takes
    precedence over an outer one for the same type. All arguments are checked before anything
    changes. It is also a decorator: then the map is in force during every call of the function.

    Parameters:
        op_type_map: {op type: rule}, a rule as for override_gradient; None restores the op's own
            gradient.
        late: do not check names now, only when a gradient needs them.
        allow_empty: do not raise an error for a map that matches no node on which a rule could act.

    Raises: RegionError for an unknown op type or one without inputs, UnknownGradientError for an
    unknown name, TypeError for input that is not such a mapping; at the end of the block,
    RegionError if no entry matched a node, or if an entry matched only nodes that have only integer
    and bool inputs or outputs.

    Gradient: that of the rules, node by node.

    Source: tf.Graph.gradient_override_map.

    >>> x = gg.constant([1.0, -1.0])
    >>> with gg.gradient_override_map({"Sign": "Identity"}):
    ...     y = gg.sign(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([1., 1.])
    """

    def __init__(
        self, op_type_map: Mapping[str, Any], *, late: bool = False, allow_empty: bool = False
    ) -> None:
        self.position = caller()
        self.map = _checked_map(op_type_map, self.position, truth("late", late))
        self.allow_empty = truth("allow_empty", allow_empty)
        self.matched: dict[str, bool] = {}
        self.on: Graph | None = None
        self.graph: Graph | None = None
        self.open: Any = False

    def __enter__(self) -> gradient_override_map:
        context = current().copy()
        context.maps = (*context.maps, self)
        graph = context.graph if self.on is None else self.on
        if graph in bodies_around(context.graph):
            context.stamps = dict(context.stamps or {})
            add_stamps(context.stamps, self)
        opened = opened_by(self) or True
        self.graph, self.implicit = graph, context.implicit and self.on is None
        try:
            self.open = opened
            graph.maps.append(self)
            self._push(context)
        except BaseException:
            self._forget()
            raise
        return self

    def _forget(self) -> None:
        self.open = False
        if self.graph is not None and self in self.graph.maps:
            self.graph.maps.remove(self)

    def __exit__(self, kind: object, *exc: object) -> None:
        try:
            self._pop(kind)
        finally:
            if kind is not None:
                self._forget()
        if kind is None and not self.allow_empty:
            self._check()

    def _check(self) -> None:
        """RegionError where no entry matched, or one matched nothing that it can act on."""
        if not self.matched:
            opaque = opaque_among(self.graph.nodes if self.graph is not None else ())
            raise RegionError(
                f"gradient_override_map at {self.where}: no node of type "
                f"{' or '.join(map(repr, self.map))} was built in the block, so it changes "
                "nothing.\nBuild the ops inside the block, or say allow_empty=True."
                + (f"\n{opaque}" if opaque else "")
            )
        for op_type, acts in self.matched.items():
            if not acts and self.map[op_type] not in (None, op_type):
                raise RegionError(
                    f"gradient_override_map at {self.where}: every {op_type!r} built in the block "
                    "reads or produces only tensors without a gradient, such as integers and "
                    "bools, so the rule can never be called.\n"
                    "Put the whole path from floats to floats into a region "
                    "(gg.override_gradient), or say allow_empty=True."
                )

    def __call__(self, fn: Fn) -> Fn:
        """As a decorator: the map is in force during every call of fn."""

        @wraps(fn)
        def mapped(*args: Any, **kwargs: Any) -> Any:
            with self.copied(matched={}):
                return fn(*args, **kwargs)

        return mapped  # type: ignore[return-value]

    def copied(self, **changes: Any) -> gradient_override_map:
        """The same map, as another scope."""
        scope = gradient_override_map.__new__(gradient_override_map)
        scope.__dict__.update(self.__dict__, _saved=None, **changes)
        return scope

    @property
    def where(self) -> str:
        """Where the map was made."""
        return show(self.position)

    @property
    def unmatched(self) -> list[str]:
        """The entries that matched no node so far."""
        return [t for t in self.map if t not in self.matched]

    def _end(self, left: Context) -> None:
        self.open = False  # who goes on is stopped where it would act

    def _what(self) -> str:
        return f"gradient_override_map at {self.where}"

    def __repr__(self) -> str:
        return f"<{self._what()}>"


class OnBehalf(Scope):
    """Op-type maps of a caller, in force on the current graph, which is built on its behalf."""

    def __init__(self, maps: Iterable[gradient_override_map]) -> None:
        self.maps = maps

    def __enter__(self) -> None:
        context = current().copy()
        context.maps = tuple([each.copied(graph=context.graph) for each in self.maps])
        context.stamps = stamps_on(context.graph, context.maps)
        self._push(context)

    def __exit__(self, kind: object, *exc: object) -> None:
        self._pop(kind)


def maps_in_force() -> list[gradient_override_map]:
    """The op-type maps that act on what is built now, outermost first."""
    context = current()
    acting = {each for maps in (context.stamps or {}).values() for each in maps}
    return [each for each in context.maps if each in acting]


def _checked_map(op_type_map: Any, at: Position | None, late: bool) -> dict[str, Any]:
    def where() -> str:
        return f"gradient_override_map at {show(at)}"

    if not isinstance(op_type_map, Mapping) or not op_type_map:
        raise TypeError(
            f"gradient_override_map takes a mapping of op types to rules, got {op_type_map!r}"
        )
    for op_type, rule in op_type_map.items():
        if not isinstance(op_type, str):
            raise TypeError(f"an op type is a string such as 'Relu', got {op_type!r}")
        if op_type not in OP_TYPES:
            raise RegionError(
                f"{where()}: there is no op type {op_type!r}. "
                f"{did_you_mean(op_type, OP_TYPES)}".rstrip()
            )
        if not _takes_inputs(OP_TYPES[op_type]):
            raise RegionError(
                f"{where()}: {op_type!r} has no inputs, so there is no gradient to override"
            )
        if rule is not None:
            check_reference(rule, lambda: f"named by {where()}", late)
    return dict(op_type_map)


def opaque_among(nodes: Iterable[Node]) -> str:
    """What to say where a mark may be meant for the inside of a node that is opaque; else ''."""
    node = next((n for n in nodes if n.op.opened_by), None)
    if node is None:
        return ""
    return (
        f"{node.name} = {node.op!r} (built at {node.where}) is one node, and nothing inside it can "
        f"be marked: {node.op.opened_by} builds each of its operations as a node."
    )


def _takes_inputs(op_type: type[Op]) -> bool:
    return len(signature(op_type.infer).parameters) > 1


def _on_graph(graph: Graph, op_type_map: Mapping[str, Any], **options: Any) -> Any:
    """The legacy spelling `g.gradient_override_map({...})`: a map of the nodes of this graph."""
    scope = gradient_override_map(op_type_map, **options)
    scope.on = graph
    return scope


Graph.gradient_override_map = _on_graph  # type: ignore[method-assign, assignment]
