"""Choices and loops: bodies of a file become bodies of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ....base.errors import FileError, ShapeError
from ....ir.node import Tensor
from ....ops.base import Constant, constant
from ....ops.control import cond, while_loop
from ....ops.elementwise.logic import less, logical_and
from ....ops.shape.indexing import getitem
from ....ops.shape.joining import stack
from ....ops.shape.padding import flip
from ....ops.shape.reshaping import moveaxis, reshape
from ..call import OperatorCall
from ..lengths import GIVE_SHAPES, told_by
from .common import few
from .loops import over_rows, trips
from .table import form


@form("If", folded=False)
def _if(call: OperatorCall) -> Any:
    branches = [call.needed("then_branch"), call.needed("else_branch")]
    test = call.values[0]
    if not isinstance(test, Tensor):
        return tuple(call.inside.body(branches[0 if np.asarray(test).reshape(()) else 1], ()))
    if _squeezes_or_not(*branches):
        return tuple(call.inside.body(branches[0], ()))
    made = [partial(_tensors, call, branch) for branch in branches]
    try:
        return tuple(cond(reshape(test, ()), *made))
    except ShapeError as error:
        said = _compared(test)
        if said is None:
            raise
        raise FileError(
            f"it chooses by {said}, which is only known at run time: {error}. {GIVE_SHAPES}"
        ) from error


def _squeezes_or_not(then: Any, otherwise: Any) -> bool:
    """Whether a choice is what PyTorch writes for `x.squeeze(axis)`: x without the axis where its
    length is 1, else as it is. The ranks differ, and what follows is made for the first; a run in
    which that length is another is an error.
    """
    squeezes, keeps = (
        [node for node in body.node if node.op_type != "Constant"] for body in (then, otherwise)
    )
    types = [node.op_type for node in (*squeezes, *keeps)]
    return types == ["Squeeze", "Identity"] and squeezes[0].input[0] == keeps[0].input[0]


def _compared(test: Tensor) -> str | None:
    """The comparison of lengths that a condition is, in words."""
    node = test.node
    while node.type in ("Cast", "Reshape", "LogicalNot"):
        node = node.inputs[0].node
    sides = [_length(t) for t in node.inputs]
    sign = _SIGNS.get(node.type)
    return None if sign is None or None in sides else f"{sides[0]} {sign} {sides[1]}"


_SIGNS = {"Equal": "==", "Less": "<", "LessEqual": "<=", "Greater": ">", "GreaterEqual": ">="}


def _length(t: Tensor) -> str | None:
    length = told_by(t)
    if length is not None:
        return str(length)
    value = t.node.op.value if isinstance(t.node.op, Constant) else None
    return str(value.reshape(-1)[0]) if value is not None and value.size == 1 else None


def _tensors(call: OperatorCall, body: Any, given: Sequence[Any] = ()) -> list[Tensor]:
    """The outputs of a body as tensors."""
    return [call.inside.as_tensor(value) for value in call.inside.body(body, given)]


@form("Scan", folded=False)
def _scan(call: OperatorCall) -> Any:
    if call.opset < 9:
        return _scan_of_examples(call)
    return _scanned(call, call.tensors)


def _scan_of_examples(call: OperatorCall) -> Any:
    """Of version 8: each example by itself, after an input of lengths that nobody gives."""
    if call.given(0):
        raise FileError("it runs over sequences of different lengths")
    given = [call.tensor(i) for i in range(1, len(call.values))]
    call.attribute("directions")
    each = [_scanned(call, list(row)) for row in zip(*map(_rows, given), strict=True)]
    return tuple(stack(list(outputs)) for outputs in zip(*each, strict=True))


def _rows(x: Tensor) -> list[Tensor]:
    if not isinstance(x.shape[0], int):
        raise ShapeError(f"{x!r} needs a known number of examples")
    return [getitem(x, i) for i in range(x.shape[0])]


def _scanned(call: OperatorCall, tensors: Sequence[Tensor]) -> Any:
    body, count = call.needed("body"), call.needed("num_scan_inputs")
    states = len(tensors) - count
    outs = len(body.output) - states
    if states < 0 or outs < 0:
        raise FileError(f"it has {len(tensors)} inputs, but scans {count}")
    ins = call.attribute("scan_input_axes", [0] * count)
    out_axes = call.attribute("scan_output_axes", [0] * outs)
    backward = call.attribute("scan_input_directions", [0] * count)
    out_backward = call.attribute("scan_output_directions", [0] * outs)
    xs = [moveaxis(x, a, 0) if a else x for x, a in zip(tensors[states:], ins, strict=True)]
    xs = [flip(x, 0) if b else x for x, b in zip(xs, backward, strict=True)]

    def run(carry: Any, x: Any) -> Any:
        made = _tensors(call, body, [*carry, *x])
        return tuple(made[:states]), tuple(made[states:])

    last, rows = over_rows(call, run, tuple(tensors[:states]), tuple(xs))
    ys = [flip(y, 0) if b else y for y, b in zip(rows, out_backward, strict=True)]
    ys = [moveaxis(y, 0, a) if a else y for y, a in zip(ys, out_axes, strict=True)]
    return *last, *ys


@form("Loop", folded=False)
def _loop(call: OperatorCall) -> Any:
    body = call.needed("body")
    start = [call.values[i] for i in range(2, len(call.values))]
    if any(value is None for value in start):
        raise FileError("it carries a value that is omitted")
    carried = len(start)
    limit = call.values[0] if call.given(0) else None
    test = call.values[1] if call.given(1) else None
    goes_on = test is None or (not isinstance(test, Tensor) and bool(np.reshape(test, ())))
    rows = len(body.output) - 1 - carried
    if goes_on and limit is not None and not isinstance(limit, Tensor) and _is_counted(body):
        return _counted_loop(call, body, int(np.reshape(limit, ())), carried, rows)
    count = trips(call, body) if rows else None
    if count is not None:
        return _counted_loop(call, body, count, carried, rows)
    if rows:
        raise FileError("it collects rows while a condition holds, or a computed number of times")
    return _while_loop(call, body, limit, test, carried)


def _is_counted(body: Any) -> bool:
    """Whether the condition that a body gives is the one that it took, or a constant true."""
    name, taken = body.output[0].name, body.input[1].name
    made = {output: node for node in body.node for output in node.output}
    while name in made and made[name].op_type == "Identity":
        name = made[name].input[0]
    return bool(name == taken)


def _counted_loop(call: OperatorCall, body: Any, count: int, carried: int, rows: int) -> Any:
    start = tuple(call.tensor(2 + i) for i in range(carried))
    always = constant(True)

    def run(carry: Any, row: Any) -> Any:
        made = _tensors(call, body, [*row, always, *carry])
        return tuple(made[1 : 1 + carried]), tuple(made[1 + carried :])

    last, ys = over_rows(call, run, start, (constant(np.arange(few(count)), "int64"),))
    return *last, *ys


def _while_loop(call: OperatorCall, body: Any, limit: Any, test: Any, carried: int) -> Any:
    start = [call.tensor(2 + i) for i in range(carried)]
    go = constant(True) if test is None else reshape(call.tensor(1), ())
    most = None if limit is None else reshape(call.tensor(0), ())

    def goes_on(carry: Any) -> Tensor:
        i, more, _ = carry
        return more if most is None else logical_and(more, less(i, most))

    def run(carry: Any) -> Any:
        i, more, states = carry
        made = _tensors(call, body, [i, more, *states])
        return i + 1, reshape(made[0], ()), tuple(made[1:])

    _, _, last = while_loop(goes_on, run, (constant(0, "int64"), go, tuple(start)))
    return tuple(last)
