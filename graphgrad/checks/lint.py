"""`lint`: what in a graph looks like a mistake about gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dis import get_instructions
from inspect import CO_VARARGS
from types import MethodType
from typing import Any

from ..base.errors import GraphError, did_you_mean
from ..base.position import is_library
from ..base.tree import flatten
from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor, rule_name
from ..ir.op import OP_TYPES
from ..ops.base import Constant
from ..ops.control import Cond, Scan, While
from ..ops.random.draws import Draw
from ..regions.boundary import boundary_of, is_empty
from ..regions.index import marked_regions
from ..regions.rules import (
    BuiltinRule,
    as_rule,
    is_own,
    is_registered,
    registered_gradients,
)
from .bodies import all_graphs
from .grids import unfused_grids
from .naive import masked_arguments, naive
from .partial import unsafe_wheres
from .report import Finding

__all__ = ["lint"]


def lint(graph: Graph | Any) -> list[Finding]:
    """Find likely mistakes about gradients in the graph, each with its line and what to do.

    "dead mark"         a rule that no gradient can ever reach
    "unmatched entry"   an entry of an op-type map that stamped no node
    "unread gradient"   a rule that reads none of its dys, and is not declared to be a "stop"
    "no path"           an input of a region that leads to none of its outputs
    "shadowed rule"     a mark inside a region: it needs a rule that calls site.default
    "unsafe where"      a branch of where() that can be NaN where the other is chosen
    "naive form"        a formula that overflows, cancels or is 0 / 0 where the function is not
    "masked argument"   a root, logarithm or quotient of what is 0 by a mask: there is no slope
    "zero gradient"     a step function on a floating path, with no rule of its own
    "repeated draw"     a random op in the body of a loop that draws the same in every run
    "late name"         a rule's name that nothing is registered under
    "undeclared"        a floating tensor that crosses the boundary of a region undeclared
    "unfused grid"      a grid, or a layer beside one, that a deployed net computes with floats

    Bodies of control flow are searched too. Regions that are still open are skipped. No node is
    built.

    Parameters: graph: a Graph, or tensors (any nesting of them), whose graph it is.

    Returns: a list of Finding, maybe empty.

    Raises: TypeError for other arguments; GraphError for tensors of several graphs.

    >>> x = gg.placeholder((2,))
    >>> y = gg.exp(gg.floor(x))
    >>> [found.kind for found in gg.lint(x.graph)]
    ['zero gradient']
    """
    findings: list[Finding] = []
    for each in all_graphs(_graph_of(graph)):
        for search in SEARCHES:
            findings += search(each)
    return findings


def _graph_of(shown: Any) -> Graph:
    """The graph that is meant."""
    if isinstance(shown, Graph):
        return shown
    tensors = [t for t in flatten(shown) if t is not None]
    for t in tensors:
        if not isinstance(t, Tensor) or t.node.graph is None:
            raise TypeError(f"lint() searches a graph, or that of tensors, got {t!r}")
        if t.node.graph is not tensors[0].node.graph:
            raise GraphError(
                f"{t.name} and {tensors[0].name} are in different graphs: lint each graph "
                "separately"
            )
    if not tensors:
        raise TypeError(f"lint() searches a graph, or that of tensors, got {shown!r}")
    graph: Graph | None = tensors[0].node.graph
    assert graph is not None
    return graph


def _closed(graph: Graph) -> list[Region]:
    """The user's regions that are complete and hold a node."""
    regions = [r for r in marked_regions(graph) if r.origin is None and not r.open]
    return [r for r in regions if not is_empty(r)]


def _stamped(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes if n.stamp is not None and n.origin is None]


def _floating(tensors: Iterable[Tensor]) -> list[Tensor]:
    return [t for t in tensors if t.type.differentiable]


def _names(tensors: Iterable[Tensor]) -> str:
    return ", ".join(f"{t.name} ({t.where})" for t in tensors)


# --- marks --------------------------------------------------------------------------------------


def dead_marks(graph: Graph) -> Iterator[Finding]:
    """Regions and stamps without a floating path from an input to an output."""
    for region in _closed(graph):
        why = _dead(region)
        if why:
            yield Finding(
                "dead mark",
                f"no gradient can ever reach the rule of region {region.name!r}: {why}",
                region.where,
                "Mark a part with a floating input that leads to a floating output, or drop it.",
            )
    for node in _stamped(graph):
        inputs, outputs = _floating(node.inputs), _floating(node.outputs)
        if not inputs or not outputs:
            what = "inputs" if not inputs else "outputs"
            yield Finding(
                "dead mark",
                f"no gradient can ever reach the rule {rule_name(node.stamp)!r} on {node.name}: it "
                f"has no floating {what}",
                node.where,
                "Take the op type out of the map, or cast before the op.",
            )


def _dead(region: Region) -> str:
    boundary = boundary_of(region)
    inputs, outputs = _floating(boundary.inputs), _floating(boundary.outputs)
    if not inputs:
        return "it has no floating input"
    if not outputs:
        return "it has no floating output"
    bits = 0
    for i, t in enumerate(boundary.outputs):
        bits |= t.type.differentiable << i
    if region.pinned_inputs is None and not any(boundary.reach(t) & bits for t in inputs):
        return "no floating input leads to a floating output inside it"
    return ""


def unmatched_entries(graph: Graph) -> Iterator[Finding]:
    """Entries of maps that stamped no node, beside entries that did."""
    maps = [m for m in graph.maps if not m.allow_empty and not m.is_current()]
    matched: dict[str, set[str]] = {}
    for scope in maps:  # a function under a map opens one for each call
        matched.setdefault(scope.where, set()).update(scope.matched)
    seen: set[tuple[str, str]] = set()
    for scope in maps:
        where = scope.where
        for op_type in scope.unmatched:
            if op_type in matched[where] or (where, op_type) in seen:
                continue
            seen.add((where, op_type))
            made = ", ".join(sorted(matched[where])) or "nothing"
            yield Finding(
                "unmatched entry",
                f"the entry for {op_type!r} stamped no node in its block (matched: {made})",
                where,
                "Build the op inside the block, or drop the entry.",
            )


def unread_gradients(graph: Graph) -> Iterator[Finding]:
    """Rules whose code never reads a gradient of an output."""
    marks = [(r.rule, f"region {r.name!r}", r.where) for r in _closed(graph)]
    marks += [(n.stamp, n.name, n.where) for n in _stamped(graph)]
    for reference, what, where in marks:
        if isinstance(reference, str) and not _resolves(reference):
            continue
        rule = as_rule(reference)
        stops = rule.contract is not None and rule.contract.kind == "stop"
        if not stops and not isinstance(rule, BuiltinRule) and _reads_no_dy(rule.fn):
            yield Finding(
                "unread gradient",
                f"the rule {rule.name!r} (defined at {rule.where}) of {what} never reads the "
                "gradients of the outputs, so its result does not depend on them",
                where,
                'If no gradient should flow, declare contract="stop"; otherwise use dy.',
            )


def _reads_no_dy(fn: Any) -> bool:
    """Whether a function of (site, *dys), or the grad_fn(*dys) it was made of, never reads them."""
    code = getattr(fn, "__code__", None)
    held = dict(zip(code.co_freevars, _closed_over(fn), strict=False)) if code is not None else {}
    grad_fn = held.get("grad_fn") if code is not None and is_library(code.co_filename) else None
    first = 1 if grad_fn is None else 0
    if grad_fn is not None:
        fn, code = grad_fn, getattr(grad_fn, "__code__", None)
    if code is None:
        return False
    first += isinstance(fn, MethodType)
    count = code.co_argcount
    names = {*code.co_varnames[first:count]}
    if code.co_flags & CO_VARARGS:
        names.add(code.co_varnames[count + code.co_kwonlyargcount])
    read = {*code.co_cellvars}
    for each in get_instructions(code):
        if "LOAD" in each.opname:  # some load two at once
            read.update(each.argval if isinstance(each.argval, tuple) else (each.argval,))
    return bool(names) and names.isdisjoint(read)


def inputs_without_path(graph: Graph) -> Iterator[Finding]:
    """Inputs of regions that lead to no output."""
    for region in _closed(graph):
        boundary = boundary_of(region)
        for t in boundary.inputs:
            if not boundary.reach(t):
                yield Finding(
                    "no path",
                    f"input {t.name} (built at {t.where}) of region {region.name!r} leads to none "
                    f"of its outputs, {_names(boundary.outputs) or 'as it has none'}",
                    region.where,
                    "Declare a tensor that depends on it as an output, or keep it out of the "
                    "region.",
                )


def shadowed_rules(graph: Graph) -> Iterator[Finding]:
    """Marks inside a region whose rule does not look as if it asked for its default."""
    shadowed: list[tuple[Region, str, str]] = []
    known: Answers = {}
    for region in _closed(graph):
        around = _answering(region.parent, known)
        if around is not None:
            shadowed.append((around, f"the region {region.name!r}", region.where))
    for node in _stamped(graph):
        around = _answering(node.region, known)
        if around is not None:
            shadowed.append(
                (around, f"the rule {rule_name(node.stamp)!r} on {node.name}", node.where)
            )
    for around, what, where in shadowed:
        yield Finding(
            "shadowed rule",
            f"{what} is inside region {around.name!r} ({around.where}): it has an effect only if "
            "the rule calls site.default",
            where,
            "Take it out of the region, or let the region's rule use site.default(*dys).",
        )


Answers = dict[Region | None, Region | None]


def _answering(region: Region | None, known: Answers) -> Region | None:
    """The outermost region around whose rule does not ask for its default; None: all do."""
    inner: list[Region] = []
    while region is not None and region not in known:
        inner.append(region)
        region = region.parent
    outermost = known.get(region)
    for each in reversed(inner):
        if outermost is None and not _asks_for_default(each.rule):
            outermost = each
        known[each] = outermost
    return outermost


def _asks_for_default(reference: Any) -> bool:
    """Whether the code of a rule mentions `default` or DEFAULT; an unknown rule may."""
    if is_own(reference) or (isinstance(reference, str) and not _resolves(reference)):
        return True
    rule = as_rule(reference)
    if isinstance(rule, BuiltinRule):
        return False
    stack: list[Any] = [rule.fn]
    seen: set[int] = set()
    while stack:
        fn = stack.pop()
        if id(fn) in seen:
            continue
        seen.add(id(fn))
        code = getattr(fn, "__code__", None)
        if code is None or {"default", "DEFAULT"} & {*code.co_names, *code.co_freevars}:
            return True
        stack += [value for value in _closed_over(fn) if hasattr(value, "__code__")]
    return False


def _closed_over(fn: Any) -> list[Any]:
    contents = []
    for cell in getattr(fn, "__closure__", None) or ():
        with suppress(ValueError):  # a cell that is still empty
            contents.append(cell.cell_contents)
    return contents


# --- names and boundaries -----------------------------------------------------------------------


def late_names(graph: Graph) -> Iterator[Finding]:
    """Names of rules that nothing is registered under."""
    regions = [r for r in marked_regions(graph) if r.origin is None]
    marks = [(r.rule, f"region #{r.index}", r.where) for r in regions]
    marks += [(n.stamp, n.name, n.where) for n in _stamped(graph)]
    for rule, what, where in marks:
        if isinstance(rule, str) and not _resolves(rule):
            yield Finding(
                "late name",
                f"no gradient is registered as {rule!r}, the rule of {what}",
                where,
                did_you_mean(
                    rule,
                    [*registered_gradients(), *OP_TYPES],
                    "Register it before gradients() is called.",
                ),
            )


def _resolves(name: str) -> bool:
    return is_registered(name) or name in OP_TYPES


def undeclared_crossings(graph: Graph) -> Iterator[Finding]:
    """Floating tensors that enter or leave a region beside its settled boundary."""
    for region in _closed(graph):
        boundary = boundary_of(region)
        for t in _floating(boundary.undeclared):
            if type(t.node.op) is Constant:
                continue
            custom = region.kind == "custom_gradient"
            yield Finding(
                "undeclared",
                f"region {region.name!r} reads {t.name} (built at {t.where}), which is not among "
                "its declared inputs: an error once a gradient has to flow through it",
                region.where,
                f"Make it {'an argument' if custom else 'one of inputs='}, return a mapping with "
                "an entry for it, or gg.stop_gradient it.",
            )
        if region.escape == "default":
            continue
        leaving = set(boundary.left) - boundary.output_set
        for t in sorted(_floating(leaving), key=lambda t: (t.node.index, t.index)):
            yield Finding(
                "undeclared",
                f"{t.name} (built at {t.where}) leaves region {region.name!r} but is not among its "
                f"outputs, {_names(boundary.outputs)}: an error once a gradient has to flow "
                "through it",
                region.where,
                "Declare it with region.declare(outputs=[...]), or say escape='default'.",
            )


# --- ops ------------------------------------------------------------------------------------------


def zero_gradients(graph: Graph) -> Iterator[Finding]:
    """Step functions on a floating path, outside every region and without a rule."""
    live = _live(graph)
    readers = _readers(graph)
    used = _passed_on(graph, readers)
    made = _from_floats(graph, live)
    for node in graph.nodes:
        if not used.issuperset(node.outputs):
            continue
        if node.origin is not None or node.region is not None or node.stamp is not None:
            continue
        if node.op.traits.stepwise and any(t in live for t in node.inputs[:1]):
            yield _zero(node, node)
        elif _returns_to_floats(node):
            made_by = made.get(node)
            if made_by is not None and not _only_a_mask(node, live, readers):
                yield _zero(node, made_by)


def _zero(node: Node, step: Node) -> Finding:
    what = f"{step.type} ({step.name})" if step is node else f"{step.type} ({step.name}), cast back"
    return Finding(
        "zero gradient",
        f"{what} is a step function: what flows back through it is zero"
        if step is node
        else f"{what} to {node.outputs[0].dtype.name} by {node.name}, stops every gradient",
        node.where,
        'If a gradient is wanted, mark it: `with gg.override_gradient("..."):` with a surrogate '
        "such as straight-through; if not, gg.stop_gradient says so.",
    )


def _live(graph: Graph) -> set[Tensor]:
    """The floating tensors that depend on a floating placeholder or variable, by floats."""
    live: set[Tensor] = set()
    for node in graph.nodes:
        if node.op.source or (
            not node.op.derivative.withholds and any(t in live for t in node.inputs)
        ):
            live.update(_floating(node.outputs))
    return live


def _readers(graph: Graph) -> dict[Tensor, list[Node]]:
    readers: dict[Tensor, list[Node]] = {}
    for node in graph.nodes:
        if node.origin is None:
            for t in node.inputs:
                readers.setdefault(t, []).append(node)
    return readers


def _passed_on(graph: Graph, readers: dict[Tensor, list[Node]]) -> set[Tensor]:
    """The tensors that nothing reads, or that are read by more than what stops at once."""
    used: set[Tensor] = set()
    for node in reversed(graph.nodes):
        for t in node.outputs:
            reading = readers.get(t, [])
            going_on = [n for n in reading if not n.op.derivative.withholds]
            if not reading or any(not used.isdisjoint(n.outputs) for n in going_on):
                used.add(t)
    return used


def _returns_to_floats(node: Node) -> bool:
    """Whether a node makes floats of nothing but integers and bools."""
    return bool(node.inputs) and bool(_floating(node.outputs)) and not _floating(node.inputs)


def _from_floats(graph: Graph, live: set[Tensor]) -> dict[Node, Node]:
    """Node -> the op that made the integers it reads of live floats, going back over integers."""
    made: dict[Node, Node] = {}
    for node in graph.nodes:
        before = [t.node for t in node.inputs]
        direct = [n for n in before if not live.isdisjoint(n.inputs)]
        plain = [n for n in before if n.origin is None and n.stamp is None and n.region is None]
        makers = direct or [made[n] for n in reversed(plain) if n in made]
        if makers:
            made[node] = makers[0]
    return made


def _only_a_mask(node: Node, live: set[Tensor], readers: dict[Tensor, list[Node]]) -> bool:
    """Whether it only multiplies what has a gradient of its own."""
    used = [(n, t) for t in node.outputs for n in readers.get(t, [])]
    return bool(used) and all(
        n.type == "Multiply" and any(x is not t and x in live for x in n.inputs) for n, t in used
    )


def wheres(graph: Graph) -> Iterator[Finding]:
    """Branches of where() that can be NaN where they are not chosen."""
    for node, branch, partial in unsafe_wheres(graph):
        yield Finding(
            "unsafe where",
            f"branch {branch} of {node.name} computes {partial.name} ({partial.type}, built at "
            f"{partial.where}) of what the condition tests: where the other branch is chosen its "
            "gradient is 0 * inf = NaN",
            node.where,
            "Make the argument safe first: safe = gg.where(condition, x, 1), then "
            "gg.where(condition, f(safe), other).",
        )


# --- loops ----------------------------------------------------------------------------------------


def repeated_draws(graph: Graph) -> Iterator[Finding]:
    """Random ops in the bodies of loops whose key is the same in every run of the loop."""
    seen: set[Node] = set()
    for loop in graph.nodes:
        op = loop.op
        if loop.origin is not None or not isinstance(op, Scan | While):
            continue
        for node in _fixed_draws(op):
            if node not in seen and node.origin is None:
                seen.add(node)
                yield Finding(
                    "repeated draw",
                    f"{node.name} ({node.type}) in the body of {loop.name} ({loop.where}) draws "
                    "the same numbers in every run of the loop: its seed depends on nothing that "
                    "changes from run to run",
                    node.where,
                    "Let the seed depend on the run: carry a counter, or go over gg.arange(n), and "
                    "draw with seed=gg.random.fold_in(seed, i).",
                )


def _fixed_draws(op: Scan | While) -> Iterator[Node]:
    """The draws in a loop, and in choices in it, with keys that do not depend on the run."""
    body, after = op.bodies[-1], op.bodies[-1].outputs
    own = op.carries + (op.slices if isinstance(op, Scan) else 0)
    changing = {
        t
        for program in op.bodies
        for i, t in enumerate(program.inputs[:own])
        if i >= op.carries or after[i] is not body.inputs[i]
    }
    stack = list(op.bodies)
    while stack:
        for node in stack.pop().nodes:
            if not changing.isdisjoint(node.inputs):
                changing.update(node.outputs)
            elif isinstance(node.op, Draw):
                yield node
            if isinstance(node.op, Cond):
                for program, reads in zip(node.op.programs, node.op.reads, strict=True):
                    taken = [node.inputs[1 + i] for i in reads]
                    pairs = zip(program.inputs, taken, strict=True)
                    changing.update(inner for inner, outer in pairs if outer in changing)
                    stack.append(program)


SEARCHES: tuple[Callable[[Graph], Iterator[Finding]], ...] = (
    dead_marks,
    unmatched_entries,
    unread_gradients,
    inputs_without_path,
    shadowed_rules,
    late_names,
    undeclared_crossings,
    wheres,
    naive,
    masked_arguments,
    repeated_draws,
    zero_gradients,
    unfused_grids,
)
