"""Graphs as flat lists: how they are copied and pickled without recursion over the graph.

Nodes are written by index in creation order, which is topological, so one pass reads them back.
Positions become (file, line). What cannot leave its graph is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..base.depth import check_room
from ..base.errors import GraphError
from ..base.length import Length
from ..base.position import full, is_library
from ..base.solving import Assumption
from .graph import Graph
from .node import HealedForm, Members, Node, Region, RuleCall, Tensor, new_node
from .op import Op
from .program import Program
from .properties import read_properties, stored_properties
from .residual import Residual, residual_op
from .tensor_sites import note_sites

Flat = dict[str, Any]
Carry = Callable[[Any, "Node | Region"], Any] | None
"""Makes of a rule one that can leave the graph; None: closures over tensors are refused."""
Ref = tuple[int, int]
Path = tuple[int, ...]
"""A body within a graph: its place among the bodies there, its place in that one, and so on."""


def flatten_graph(graph: Graph, carry: Carry = None) -> Flat:
    """Everything of a graph in lists, tuples and dicts, with ops and rules as leaves.

    GraphError for a region or node whose rule is a closure over tensors of this graph, unless
    carry makes something of it.
    """
    within: dict[Any, Path] = {}
    flat = _flat_graph(graph, carry, within, ())
    flat["again_in_bodies"] = [
        (type(s) is Node, _place(at), s.index, _place(within[of.graph]), of.index)
        for each, at in within.items()
        for s, of in each.again.items()
        if of.graph is not each and of.graph in within
        if _both_in(each, s) and _both_in(of.graph, of)
    ]
    return flat


def _flat_graph(graph: Graph, carry: Carry, within: dict[Any, Path], path: Path) -> Flat:
    """What there is of one graph; within: it and the bodies in it, where they are."""
    check_room()
    within[graph] = path
    calls: dict[RuleCall, int] = {}
    bodies: dict[Any, int] = {}
    flat: Flat = {"name": graph.name, **_flat_nodes(graph.nodes, calls, bodies, carry)}
    flat["named"] = {name: n.index for name, n in graph._named.items()}
    flat["state"] = {v.index: a for v, a in graph.state.values().items() if v.graph is graph}
    flat["random"] = graph.seed, graph.draws, graph.state.runs
    flat["assumptions"] = tuple(map(tuple, graph.assumptions))
    flat["scattered"] = [region.index for region in graph.scattered]
    flat["regions"] = [_flat_region(r, calls, carry) for r in graph.regions]
    flat["twins"] = [(type(s) is Node, s.index, twins) for s, twins in graph.twins.items()]
    flat["again"] = [
        (type(s) is Node, s.index, of.index)
        for s, of in graph.again.items()
        if _both_in(graph, s, of)
    ]
    flat["healed"] = list(map(tuple, graph.healed))
    flat["properties"] = stored_properties(graph.properties)
    flat["calls"] = [_flat_call(c) for c in calls]
    flat["bodies"] = [_flat_body(b, carry, within, (*path, i)) for b, i in bodies.items()]
    return flat


def _flat_nodes(
    nodes: Sequence[Node], calls: dict[RuleCall, int], bodies: dict[Any, int], carry: Carry
) -> Flat:
    """What every node has, as lists; by index, what some have."""
    return {
        "ops": [_flat_op(n, bodies) for n in nodes],
        "inputs": [_refs(n.inputs) for n in nodes],
        "controls": {n.index: [c.index for c in n.controls] for n in nodes if n.controls},
        "types": [tuple(t.type for t in n.outputs) for n in nodes],
        "region": {n.index: n.region.index for n in nodes if n.region is not None},
        "origin": {n.index: _origin(n.origin, calls) for n in nodes if _at_home(n)},
        "stamp": {n.index: _portable(n.stamp, n, carry) for n in nodes if n.stamp is not None},
        "scope": {n.index: n.scope for n in nodes if n.scope},
        "position": _positions(nodes),
    }


def restore_graph(graph: Graph, flat: Flat) -> Graph:
    """Fill an empty graph with what flatten_graph wrote."""
    return _restored(graph, flat, {})


def _restored(graph: Graph, flat: Flat, within: dict[Any, Any]) -> Graph:
    """The graph, filled; within: the bodies of it and of those in it, in order."""
    check_room()
    graph.name = flat["name"]
    regions = [_bare_region(graph, i, r) for i, r in enumerate(flat["regions"])]
    within[graph] = bodies = [_restored_body(b, graph, within) for b in flat["bodies"]]
    calls = [RuleCall(None, rule, frozenset()) for rule, _, _ in flat["calls"]]  # type: ignore[arg-type]
    _restore_nodes(graph, flat, regions, bodies, calls)
    nodes = graph.nodes
    _restore_calls(calls, flat["calls"], nodes, regions)
    for region, data in zip(regions, flat["regions"], strict=True):
        _restore_region(region, data, nodes, regions, calls)
    for body, data in zip(bodies, flat["bodies"], strict=True):
        for (i, k), (j, m) in data["captures"]:
            body.capture(body.nodes[j].outputs[m], nodes[i].outputs[k])
    graph.regions.extend(regions)
    note_sites(graph)
    graph.scattered.extend(regions[i] for i in flat["scattered"])
    _restore_copies(graph, flat, within)
    graph._named.update({name: nodes[i] for name, i in flat["named"].items()})
    graph.seed, graph.draws, runs = flat.get("random", (0, 0, 0))  # older files have none
    graph.assumptions = [Assumption(*stated) for stated in flat.get("assumptions", ())]
    graph.properties = read_properties(flat.get("properties", ()))
    graph.state.commit({nodes[i]: a for i, a in flat["state"].items()}, runs)
    return graph


def _restore_nodes(
    graph: Graph, flat: Flat, regions: list[Region], bodies: list[Any], calls: list[RuleCall]
) -> None:
    """The nodes again, each on those before it."""
    nodes, named = graph.nodes, {i: name for name, i in flat["named"].items()}
    rows = zip(flat["ops"], flat["inputs"], flat["types"], strict=True)
    for index, (op, inputs, types) in enumerate(rows):
        op = op if isinstance(op, Op) else _restored_op(op, regions, bodies)
        read = tuple([nodes[i].outputs[k] for i, k in inputs])
        node = new_node(graph, op, read, types, index)
        if index in flat["controls"]:
            node.controls = tuple([nodes[i] for i in flat["controls"][index]])
        if index in flat["region"]:
            node.region = regions[flat["region"][index]]
        if index in flat["origin"]:
            kind, at = flat["origin"][index]
            node.origin = nodes[at] if kind == "node" else calls[at]
        node.stamp, node.scope = flat["stamp"].get(index), flat["scope"].get(index, "")
        node.position, node._name = flat["position"].get(index), named.get(index)
        nodes.append(node)


def _restore_copies(graph: Graph, flat: Flat, within: dict[Any, Any]) -> None:
    """What is a copy of what, and what was built once more."""
    for is_node, i, twins in flat["twins"]:
        graph.twins[graph.nodes[i] if is_node else graph.regions[i]] = twins
    for is_node, i, j in flat["again"]:
        steps: Any = graph.nodes if is_node else graph.regions
        graph.again[steps[i]] = steps[j]
    graph.healed = [HealedForm(*form) for form in flat.get("healed", ())]
    for is_node, at, i, of, j in flat.get("again_in_bodies", ()):  # of the outermost graph
        new, first = (reduce(lambda g, k: within[g][k], path_of(b), graph) for b in (at, of))
        steps = (new.nodes, first.nodes) if is_node else (new.regions, first.regions)
        new.again[steps[0][i]] = steps[1][j]


# --- parts -------------------------------------------------------------------------------------


def _positions(nodes: Sequence[Node]) -> dict[int, Any]:
    """File and line of each node that has one: nodes of one line share them."""
    known: dict[tuple[int, int], Any] = {}
    positions = {}
    for node in nodes:
        position = node.position
        if position is not None:
            key = id(position[0]), position[1]
            if key not in known:
                known[key] = full(position)
            positions[node.index] = known[key]
    return positions


def _refs(tensors: tuple[Tensor, ...]) -> tuple[Ref, ...]:
    return tuple([(t.node.index, t.index) for t in tensors])


def _tensors(refs: Any, nodes: list[Node]) -> tuple[Tensor, ...]:
    return tuple(nodes[i].outputs[k] for i, k in refs)


def _both_in(graph: Graph, *steps: Node | Region) -> bool:
    """Whether all are in a graph still: regions may have been unmarked."""
    return all(
        s.graph is graph
        and (isinstance(s, Node) or (s.index < len(graph.regions) and graph.regions[s.index] is s))
        for s in steps
    )


def _at_home(item: Node | Region) -> bool:
    """Whether it has an origin, and that is in the same graph (a traced rule's is not)."""
    origin = item.origin
    site = origin.site if isinstance(origin, RuleCall) else origin
    return site is not None and site.graph is item.graph


def _origin(origin: Node | RuleCall | None, calls: dict[RuleCall, int]) -> tuple[str, int]:
    if isinstance(origin, RuleCall):
        return "call", calls.setdefault(origin, len(calls))
    assert origin is not None
    return "node", origin.index


def _flat_call(call: RuleCall) -> tuple[str, tuple[str, int], tuple[Ref, ...]]:
    kind = "node" if isinstance(call.site, Node) else "region"
    outer = tuple(sorted(_refs(tuple(call.outer))))
    return call.rule, (kind, call.site.index), outer


def _restore_calls(
    calls: list[RuleCall], flat: list[Any], nodes: list[Node], regions: list[Region]
) -> None:
    for call, (_, (kind, at), outer) in zip(calls, flat, strict=True):
        call.site = nodes[at] if kind == "node" else regions[at]
        call.outer = frozenset(_tensors(outer, nodes))


def _flat_op(node: Node, bodies: dict[Any, int]) -> Any:
    op = node.op
    if isinstance(op, Residual):
        return "residual", op.region.index
    if not op.bodies:
        return op
    parts = [
        (
            bodies.setdefault(p.outputs[0].graph, len(bodies)),
            _refs(p.inputs),
            _refs(p.outputs),
        )
        for p in op.bodies
    ]
    return "bodies", type(op), parts, op.replace_bodies([None] * len(parts)).attrs


def _restored_op(flat: Any, regions: list[Region], bodies: list[Any]) -> Op:
    if flat[0] == "residual":
        return residual_op(regions[flat[1]])
    _, cls, parts, rest = flat
    programs = [
        Program(_tensors(inputs, bodies[at].nodes), _tensors(outputs, bodies[at].nodes))
        for at, inputs, outputs in parts
    ]
    op: Op = cls(**dict.fromkeys(cls.fields) | rest)  # older files do not name what holds bodies
    return op.replace_bodies(programs)


def _place(path: Path) -> int | Path:
    """A path as it is stored: of a body in the graph itself, the place alone."""
    return path[0] if len(path) == 1 else path


def path_of(place: int | Path) -> Path:
    """The path that is stored."""
    return (place,) if isinstance(place, int) else place


def _flat_body(body: Any, carry: Carry, within: dict[Any, Path], path: Path) -> Flat:
    captures = [(_refs((o,))[0], _refs((i,))[0]) for i, o in body.captures.items()]
    graph = _flat_graph(body, carry, within, path)
    return {"graph": graph, "type": type(body), "captures": captures}


def _restored_body(flat: Flat, outer: Graph, within: dict[Any, Any]) -> Any:
    return _restored(flat["type"](outer, ""), flat["graph"], within)


def _flat_region(region: Region, calls: dict[RuleCall, int], carry: Carry) -> dict[str, Any]:
    where = _origin(region.origin, calls) if _at_home(region) else None
    return {
        "rule": _portable(region.rule, region, carry),
        "kind": region.kind,
        "parent": None if region.parent is None else region.parent.index,
        "origin": where,
        "position": full(region.position),
        "attrs": region.attrs,
        "options": (region.escape, region.order, region.late, region.allow_empty),
        "pinned_inputs": None if region.pinned_inputs is None else _refs(region.pinned_inputs),
        "pinned_outputs": None if region.pinned_outputs is None else _refs(region.pinned_outputs),
        "settled": None if region.settled is None else [_refs(ts) for ts in region.settled],
        "group": region.group and (region.group.label, _refs(region.group.tensors)),
    }


def _bare_region(graph: Graph, index: int, flat: dict[str, Any]) -> Region:
    escape, order, late, allow_empty = flat["options"]
    region = Region(
        graph,
        flat["rule"],
        position=flat["position"],
        attrs=dict(flat["attrs"]),
        escape=escape,
        order=order,
        late=late,
        allow_empty=allow_empty,
        kind=flat["kind"],
        open=False,
    )
    region.index = index
    return region


def _restore_region(
    region: Region,
    flat: dict[str, Any],
    nodes: list[Node],
    regions: list[Region],
    calls: list[RuleCall],
) -> None:
    region.parent = None if flat["parent"] is None else regions[flat["parent"]]
    if flat["origin"] is not None:
        kind, at = flat["origin"]
        region.origin = nodes[at] if kind == "node" else calls[at]
    for name in ("pinned_inputs", "pinned_outputs"):
        refs = flat[name]
        setattr(region, name, None if refs is None else _tensors(refs, nodes))
    if flat["settled"] is not None:
        inputs, outputs = flat["settled"]
        region.settled = _tensors(inputs, nodes), _tensors(outputs, nodes)
    if flat["group"] is not None:
        label, members = flat["group"]
        region.group = Members(label, _tensors(members, nodes))


def _portable(rule: Any, owner: Node | Region, carry: Carry) -> Any:
    """The rule as it can be used in another graph."""
    if carry is not None:
        return carry(rule, owner)
    if closes_over(rule, owner):
        raise GraphError(
            f"the rule of {owner!r} closes over tensors of {owner.graph!r} and cannot leave it"
        )
    return rule


def closes_over(rule: Any, owner: Node | Region) -> bool:
    """Whether a rule holds on to tensors: then it means something in its own graph only."""
    if isinstance(owner, Region) and owner.kind != "scope":  # made by custom_gradient
        return True
    if getattr(getattr(rule, "fn", None), "at_home_only", False):
        return True
    return any(True for _ in holds(rule))


def closes_over_lengths(rule: Any) -> bool:
    """Whether a rule holds on to open lengths, whose names mean something in its own graph."""
    return any(True for _ in holds(rule, (Length,)))


def holds(rule: Any, kinds: tuple[type, ...] = (Tensor, Node, Region)) -> Iterator[Any]:
    """What a rule, or its own jvp, holds on to of a graph."""
    pending, seen = [getattr(rule, "fn", rule), getattr(rule, "jvp", None)], set()
    for fn in pending:
        if id(fn) not in seen:
            seen.add(id(fn))
            held = _held(fn)
            for value in held:
                yield from _of_kinds(value, kinds)
            pending += [h for h in held if _is_users(h)]


def _is_users(fn: Any) -> bool:
    """Whether it is a function that may hold tensors: not one of graphgrad's own."""
    if isinstance(fn, FunctionType):
        return not is_library(fn.__code__.co_filename)
    return isinstance(fn, MethodType | partial)


def _held(fn: Any) -> list[Any]:
    """What a function, partial, bound method or object holds on to: closed over, bound, global."""
    held = [getattr(fn, "func", None), getattr(fn, "__func__", None)]
    held += [*getattr(fn, "args", ()), *getattr(fn, "keywords", {}).values()]
    held += [*(getattr(fn, "__defaults__", None) or ())]
    held += (getattr(fn, "__kwdefaults__", None) or {}).values()
    for owner in (fn, getattr(fn, "__self__", None)):
        held += getattr(owner, "__dict__", {}).values()
        for slots in [c.__dict__.get("__slots__", ()) for c in type(owner).__mro__]:
            names = (slots,) if isinstance(slots, str) else slots
            held += [getattr(owner, name, None) for name in names]
    names = _global_names(fn)
    held += [fn.__globals__[name] for name in names if name in fn.__globals__]
    for cell in getattr(fn, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:
            continue
    return held


def _global_names(fn: Any) -> set[str]:
    """The names that a function and the functions inside it look up."""
    names: set[str] = set()
    codes = [getattr(fn, "__code__", None)]
    for code in codes:
        if isinstance(code, CodeType):
            names.update(code.co_names)
            codes += code.co_consts
    return names


def _of_kinds(value: Any, kinds: tuple[type, ...]) -> list[Any]:
    """The tensors and so on among a value and what the containers in it contain."""
    pending, seen = [value], set()
    elements: list[Any] = []
    for item in pending:
        if isinstance(item, kinds):
            elements.append(item)
        elif isinstance(item, dict | list | tuple | set | frozenset) and id(item) not in seen:
            seen.add(id(item))
            pending += item.values() if isinstance(item, dict) else item
    return elements
