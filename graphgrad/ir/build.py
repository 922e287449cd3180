"""The birth of a node: the hot path, one flat function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ..base.collector import having
from ..base.errors import GraphError, RegionError, ScopeError
from ..base.length import Length, under
from ..base.position import RULE_CALLERS, _library, caller, is_library, show
from ..base.words import visible_lines
from .context import CONTEXT, Context, NoGraph, Within, stamps_on
from .graph import Graph, current, facts_of
from .node import NUMBERS, Node, RuleCall, Tensor, check_given_name
from .op import Op, Types
from .residual import settle
from .types import TensorType, tensor_type

KNOWN = 1024  # types of inputs for which an op remembers those of its outputs

R = TypeVar("R")

_getframe = sys._getframe
_new = Node.__new__


def apply(op: Op, *inputs: Tensor) -> Tensor:
    """Build a node of an op, and return its first output; `build(op, inputs).outputs` has all."""
    return build(op, inputs).outputs[0]


def build(op: Op, inputs: tuple[Tensor, ...], name: str | None = None) -> Node:
    """Build a node in the current graph: types inferred, region, stamp, origin and line noted.

    Raises what `op.infer` raises, with the inputs and their lines as a note, TypeError for input
    that is not an op or a tensor, and GraphError where the inputs belong to another graph.
    """
    try:
        context = CONTEXT.get()
    except LookupError:
        context = current()
    graph = context.graph
    try:
        for t in inputs:
            if t.node.graph is not graph:
                context, inputs = _adopt(context, inputs)
                graph = context.graph
                break
        known = op._types
    except AttributeError:
        check_op_of_tensors(op, inputs)
        raise
    if context.origin is not None and graph.regions:
        inputs = settle(context, inputs)

    arity = len(inputs)
    if arity == 1:
        key: Any = inputs[0].type
    elif arity == 2:
        key = (inputs[0].type, inputs[1].type)
    else:
        key = tuple([t.type for t in inputs])
    types = known.get(key)
    if types is None:
        types = _infer(op, inputs, key)

    if graph.assumptions:
        types = decided(types, facts_of(graph))
    region = context.region
    if region is not None and region.open is not True:
        check_open(region)
    if context.ended is not None:
        raise outlived(context.ended)
    node = _new(Node)
    node.graph = graph
    node.op = op
    node.inputs = inputs
    node.controls = ()
    node.region = None if op.source else region
    node.origin = context.origin
    node.stamp = None
    node.scope = context.scope
    node._name = None
    origin = node.origin
    if origin is None or type(origin) is RuleCall:
        frame = _getframe(1)
        while frame is not None:
            code = frame.f_code
            file = code.co_filename
            if not (_library[file] if file in _library else is_library(file)):
                node.position = (code, frame.f_lasti)
                break
            if origin is not None and code in RULE_CALLERS:  # a rule of the library: no user's line
                node.position = None
                break
            frame = frame.f_back  # type: ignore[assignment]
        else:
            node.position = None
    else:
        node.position = None
    if context.stamps is not None:
        stamp_by_maps(node, context, types)
    nodes = graph.nodes
    node.index = len(nodes)
    if name is not None:
        check_given_name(name)
    if len(types) == 1:
        node.outputs = (Tensor(node, 0, types[0]),)
    else:
        node.outputs = tuple([Tensor(node, i, type) for i, type in enumerate(types)])
    nodes.append(node)
    if nodes[node.index] is not node:  # another thread was quicker
        node.index = nodes.index(node, node.index)
    if name is not None:  # only what is in the graph has a name
        node._name = graph.claim_name(context.scope, name, node)
    return node


def decided(types: Types, facts: Sequence[Length]) -> Types:
    """Types whose lengths are decided by facts where they can be."""
    if all(t.static for t in types):
        return types
    return tuple([tensor_type(tuple([under(d, facts) for d in t.shape]), t.dtype) for t in types])


def check_open(scope: Any) -> None:
    """ScopeError where a region or map was left, or its generator stands still."""
    if not scope.open:
        raise outlived(scope)
    if scope.open is not True:
        scope.open.check()


def without_graph(instead: str, f: Callable[..., R], *args: Any) -> R:
    """f(*args), where a node that is built is a GraphError, which says what to write instead.

    Graphs that are made meanwhile are built in as ever.
    """
    context = current()
    if isinstance(context.ended, NoGraph):
        return f(*args)
    context = context.copy()
    context.ended = NoGraph(instead, next(NUMBERS))
    return having(CONTEXT, context, f, *args)


def outlived(scope: Any) -> GraphError | ScopeError:
    """The error for a node that would be built in a block which was left, or without a graph."""
    if isinstance(scope, NoGraph):
        return GraphError(
            f"a node is built at {show(caller())} where no graph is current: programs are closed, "
            f"and this node would go to the user's graph.\n{scope.instead}"
        )
    return ScopeError(
        f"a node is built at {show(caller())} in {scope!r}, whose block has already ended: a task "
        "or context that was started in the block continues after it. Await it inside the block."
    )


def adopted(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Tensors as the current graph knows them: captured where it is a body of theirs."""
    context = current()
    for t in tensors:
        if t.node.graph is not context.graph:
            return _adopt(context, tensors)[1]
    return tensors


def read_here(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Tensors as a node that is born now would read them: of the current graph, and residual."""
    context, tensors = current(), adopted(tensors)
    marked = context.origin is not None and context.graph.regions
    return settle(context, tensors) if marked else tensors


def graph_elsewhere(leaves: Iterable[Any]) -> Graph | None:
    """The graph of the tensors among these, where nobody entered one and it is not the default."""
    context = current()
    if not context.implicit or context.region is not None:
        return None
    graphs = (leaf.graph for leaf in leaves if isinstance(leaf, Tensor))
    return next((graph for graph in graphs if graph is not context.graph), None)


def _infer(op: Op, inputs: tuple[Tensor, ...], key: Any) -> Types:
    try:
        types = op.infer(*(t.type for t in inputs))
        if not isinstance(types, tuple) or not all(isinstance(t, TensorType) for t in types):
            raise TypeError(f"{op.type}.infer returned {types!r}, it gives a tuple of TensorTypes")
    except Exception as error:
        error.add_note(called_with(op, inputs))
        error.__dict__["failed"] = op, inputs  # for pictures of what was built so far
        raise
    if len(op._types) >= KNOWN:
        op._types.clear()
    op._types[key] = types
    return types


def check_op_of_tensors(
    op: Any, inputs: Sequence[Any], instead: str = "; as_tensor converts it"
) -> None:
    """TypeError where a node would be built of a class, or on what is not a tensor."""
    if not isinstance(op, Op):
        raise TypeError(f"a node takes an op with its attributes, such as Tanh(), got {op!r}")
    for t in inputs:
        if not isinstance(t, Tensor):
            raise TypeError(f"{op!r} is applied to tensors, got {t!r}{instead}")


def called_with(op: Op, inputs: tuple[Tensor, ...]) -> str:
    """The note of a failed build: where, and what the inputs are."""
    rows = "".join(
        f"\n  {i}: {t.name}: {t.type!r}, built at {t.where}" for i, t in enumerate(inputs)
    )
    return visible_lines(
        f"in {op!r} at {show(caller())}" + (f", called with{rows}" if rows else "")
    )


def _adopt(context: Context, inputs: tuple[Tensor, ...]) -> tuple[Context, tuple[Tensor, ...]]:
    """Inputs of another graph: go to that graph if nobody entered one, else let the graph adopt."""
    if context.ended is not None:
        raise outlived(context.ended)
    graph = context.graph
    others = {t.node.graph for t in inputs} - {graph}
    try:
        if None in others:
            t = next(t for t in inputs if t.node.graph is None)
            raise GraphError(
                f"{t.name} ({t.type!r}, built at {t.where}) is part of a compiled program, which "
                "is in no graph.\nBuild on the tensors of the graph that was compiled."
            )
        if context.implicit and context.region is None and len(others) == 1:
            _check_not_of_an_open_block(inputs)
            context = context.copy()
            context.graph = others.pop()  # type: ignore[assignment]
            if context.maps:
                context.stamps = stamps_on(context.graph, context.maps, True)
            return context, tuple(_moved(t, context) for t in inputs)
        return context, tuple(t if t.node.graph is graph else graph.adopt(t) for t in inputs)
    except GraphError as error:
        error.add_note(f"at {show(caller())}")
        raise


def _check_not_of_an_open_block(inputs: tuple[Tensor, ...]) -> None:
    """ScopeError where who entered nothing reads what a block made that is open elsewhere."""
    for t in inputs:
        region = t.node.region
        if region is not None and region.open:
            raise ScopeError(
                f"a node is built at {show(caller())} that reads {t.name} (built at {t.where}) of "
                f"{region!r}, whose block is still open in another thread or context: it would lie "
                "outside.\nBuild it in the block's own thread, or run this in "
                "contextvars.copy_context() made in the block."
            )


def _moved(t: Tensor, context: Context) -> Tensor:
    """t, or for a constant that was just put into the default graph, the same one in this graph."""
    node = t.node
    if node.graph is context.graph:
        return t
    if node.inputs or node.op.source:
        return context.graph.adopt(t)
    with Within(context.copy()):
        return build(node.op, ()).outputs[t.index]


def stamp_by_maps(node: Node, context: Context, types: Types) -> None:
    """Have the open op-type maps that act on a node put their rule on it."""
    assert context.stamps is not None
    op_type = node.op.type
    maps = context.stamps.get(op_type)
    if maps is None:
        return
    rule = maps[-1].map[op_type]
    if not node.inputs and rule is not None:
        raise RegionError(
            f"gradient_override_map has an entry for {op_type!r}, but an op without inputs "
            f"has no gradient to override (built at {show(node.position)})"
        )
    acts = any(t.type.differentiable for t in node.inputs)
    note_match(maps, op_type, acts and any(t.differentiable for t in types))
    node.stamp = rule


def note_match(maps: Sequence[Any], op_type: str, acts: bool) -> None:
    """Tell op-type maps of a node of this type; ScopeError where the one that wins was left.

    acts  whether a rule on the node can ever be called
    """
    check_open(maps[-1])
    for each in maps:
        each.matched[op_type] = acts or each.matched.get(op_type, False)
