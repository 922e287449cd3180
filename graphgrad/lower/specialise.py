"""A program for inputs of which more is known than when it was built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import ShapeError
from ..base.solving import solved
from ..base.words import visible_lines
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program, derive
from ..ir.types import TensorType, tensor_type
from ..ops.control import Cond, Scan, While
from ..ops.elementwise.accumulate import EnsureLike
from .equated import equated, unequal


def specialise(program: Program, types: Sequence[TensorType]) -> Program:
    """The same nodes on inputs of these types, with everything inferred again.

    Named lengths in attributes get the values that they have in these types. What stands in several
    bodies, as what a loop and its gradient compute does, stays one.

    Raises what `infer` raises where the types do not fit together, with the node as a note and as
    `failed`, for pictures that ring it; ShapeError where a named length would have two values.
    """
    needed = program.open_lengths
    sizes = sizes_of(program.inputs, types)
    if not needed <= sizes.keys() and all(t.static for t in types):
        _refuse_untold(program, types, min(needed - sizes.keys()))
    return _specialised(program, types, sizes, {})


def _refuse_untold(program: Program, types: Sequence[TensorType], name: str) -> None:
    """ShapeError for a length that these inputs leave open, as N*M does where N is 0."""
    pairs = zip(program.inputs, types, strict=True)
    given = ", ".join(f"{t.name}: {t.type!r} is {type!r}" for t, type in pairs)
    raise ShapeError(
        f"the length {name!r} is needed and cannot be determined here ({given}).\n"
        "Add an input with an axis of that length"
    )


def sizes_of(inputs: Sequence[Tensor], types: Sequence[TensorType]) -> dict[str, int]:
    """What named lengths of inputs are, where they are of these types."""
    return solved(
        (d, n, f"in {t.name}")
        for t, given in zip(inputs, types, strict=True)
        for d, n in zip(t.type.shape, given.shape, strict=True)
        if isinstance(n, int)
    )


def with_lengths(program: Program, shapes: Sequence[Sequence[Any]]) -> Program:
    """The same nodes, of the same types, with the named lengths in attributes that inputs of these
    shapes have. They may be lengths of JAX, of which `infer` knows nothing.

    Raises: ShapeError where a named length would have two values, or may have.
    """
    axes = [
        (d, n, f"in {t.name}")
        for t, shape in zip(program.inputs, shapes, strict=True)
        for d, n in zip(t.type.shape, shape, strict=True)
    ]
    return _with_lengths(program, solved(axes, exact=True))


def _with_lengths(program: Program, sizes: Mapping[str, Any]) -> Program:
    given = frozenset(program.inputs)
    new: dict[Tensor, Tensor] = {}
    nodes: list[Node] = []
    for node in program.nodes:
        made = derive(node, node.op, tuple([new.get(t, t) for t in node.inputs]))
        if node.op.open_lengths:
            op = node.op.with_sizes(sizes)
            if op.bodies:
                op = op.replace_bodies([_with_lengths(body, sizes) for body in op.bodies])
            made.op = op
        new.update([(a, b) for a, b in zip(node.outputs, made.outputs) if a not in given])
        nodes.append(made)
    return Program(program.inputs, [new.get(t, t) for t in program.outputs], nodes)


_Known = dict[Any, Any]
"""(tensor, type) -> the tensor of that type; (node, what it reads) -> the node on that."""


def _specialised(
    program: Program, types: Sequence[TensorType], sizes: Mapping[str, int], known: _Known
) -> Program:
    new: dict[Tensor, Tensor] = {}
    inputs = []
    for t, type in zip(program.inputs, types, strict=True):
        new[t] = _of_type(t, type, known)
        inputs.append(new[t])
    given = frozenset(program.inputs)
    nodes: list[Node] = []
    for node in program.nodes:
        reads = tuple([new.get(t, t) for t in node.inputs])
        same = all(a is b for a, b in zip(reads, node.inputs, strict=True))
        if same and not (sizes and node.op.open_lengths):
            nodes.append(node)
            continue
        try:
            made = _on(node, reads, sizes, known)
        except Exception as error:
            rows = "".join(map(_told, node.inputs, reads))
            note = f"in {node.name} = {node.op!r}, built at {node.where}, on{rows}"
            error.add_note(visible_lines(note))
            error.__dict__.setdefault("failed", _original(node, program))
            raise
        new.update([(a, b) for a, b in zip(node.outputs, made.outputs) if a not in given])
        nodes.append(made)
    return Program(inputs, [new.get(t, t) for t in program.outputs], nodes)


def _told(promised: Tensor, t: Tensor) -> str:
    """What a node reads, and what it was when it was built."""
    was = "" if promised.type is t.type else f", of {promised.type!r}"
    return f"\n  {t.name}: {t.type!r}{was}, built at {t.where}"


def _of_type(t: Tensor, type: TensorType, known: _Known) -> Tensor:
    if type is t.type:
        return t
    retyped: Tensor | None = known.get((t, type))
    if retyped is None:
        retyped = known[t, type] = Tensor(t.node, t.index, type)
    return retyped


def _on(node: Node, reads: tuple[Tensor, ...], sizes: Mapping[str, int], known: _Known) -> Node:
    """The node on what it reads now."""
    derived: Node | None = known.get((node, reads))
    if derived is None:
        if isinstance(node.op, EnsureLike) and all(t.type.static for t in reads):
            node.op.check(*[t.shape for t in reads])
        op = node.op.with_sizes(sizes) if sizes else node.op
        if sizes:
            _check_equated(node, sizes)
        derived = derive(node, _of_types(op, reads, sizes, known), reads)
        if node.op.pure:
            known[node, reads] = derived
    return derived


def _check_equated(node: Node, sizes: Mapping[str, int]) -> None:
    """ShapeError where lengths that count as equal are not."""
    wrong = unequal(equated(node.op, [t.type for t in node.inputs]), sizes)
    if wrong is not None:
        raise ShapeError(f"{wrong}.\nState the condition that they satisfy with gg.assume(...)")


def _of_types(op: Op, reads: Sequence[Tensor], sizes: Mapping[str, int], known: _Known) -> Op:
    """An op with its bodies for inputs of these types; any other op as it is.

    A body that these do not fit stays as it is: it is an error only where it is run.
    """
    if not op.bodies:
        return op
    taken = _taken(op, [t.type for t in reads])
    pairs = zip(op.bodies, taken, strict=True)
    return op.replace_bodies([_where_it_fits(*pair, sizes, known) for pair in pairs])


def _taken(op: Op, types: Sequence[TensorType]) -> list[Sequence[TensorType]]:
    """The types that each body takes, where the node takes these."""
    if isinstance(op, Cond):
        return [[types[1 + i] for i in places] for places in op.reads]
    if isinstance(op, Scan):
        carries, stacked, constants = op.parts(types)
        return [[*carries, *(tensor_type(t.shape[1:], t.dtype) for t in stacked), *constants]]
    if isinstance(op, While):
        return [types, types]
    return [[t.type for t in body.inputs] for body in op.bodies]


def _where_it_fits(
    program: Program, types: Sequence[TensorType], sizes: Mapping[str, int], known: _Known
) -> Program:
    try:
        return _specialised(program, types, sizes, known)
    except Exception:  # whatever infer raises, a user's op's too
        return program


def _original(node: Node, program: Program) -> Node:
    """The node of the graph that one of a program stands for, where it is known."""
    if node.graph is not None:
        return node
    graph = next((t.graph for t in (*program.inputs, *node.inputs) if t.graph is not None), None)
    return graph.nodes[node.index] if graph is not None and node.index < len(graph.nodes) else node
