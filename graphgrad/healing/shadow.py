"""What a formula loses at given inputs: a run in few digits beside one in many."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import ExecutionError, GraphError
from ..compiled import compile, evaluate
from ..differentiate.gradients import gradients
from ..differentiate.travel.importing import cut_out, import_graph
from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ops.base import Constant
from ..ops.reduce.reductions import sum as total_of
from ..ops.sources import Placeholder, Variable, placeholder_of
from .many_digits import floats, needed_package, values

DIGITS = 800
ALL = 16.0
"""Digits that are lost where nothing is right."""


def shadow_values(
    nodes: Sequence[Node], wanted: Sequence[Tensor], at: Mapping[Tensor, Any]
) -> dict[Tensor, Any]:
    """Many-digit values of tensors of a forward graph, at feeds, rounded to float64.

    Raises: MissingBackendError without mpmath; GraphError for a placeholder that is not fed.
    """
    needed_package("heal(at=...)")
    given = dict(at)
    for node in nodes:
        (*outputs,) = node.outputs
        if isinstance(node.op, Variable) and outputs[0] not in given:
            given[outputs[0]] = evaluate(outputs[0])
        if isinstance(node.op, Placeholder) and outputs[0] not in given:
            raise GraphError(f"at= needs a value of {node.name} (built at {node.where})")
    found = values(list(given), list(wanted), [np.asarray(a) for a in given.values()], DIGITS)
    return {t: floats(v) for t, v in found.items()}


def cut_between(
    xs: Sequence[Tensor], y: Tensor, same: Mapping[Tensor, Tensor]
) -> tuple[Graph, list[Tensor], Tensor]:
    """A graph of what is between xs and y, and these there; same: what one of xs stands for."""
    assert y.node.graph is not None
    given = {t: x for t, x in same.items() if x in set(xs)}
    graph, there = cut_out(y.node.graph, [*xs, *given], [y])
    if not given:
        return graph, [there[x] for x in xs], there[y]
    whole = Graph()
    with whole:
        here = {x: placeholder_of(x.type, x.node._name) for x in xs}
        stand = {t: here[x] for t, x in given.items()}
        made = import_graph(graph, {there[t]: new for t, new in {**here, **stand}.items()})
    return whole, [here[x] for x in xs], made[there[y]]


def lost_digits(
    y: Tensor, leaves: Sequence[Tensor], known: Mapping[Tensor, Any], same: Mapping[Tensor, Tensor]
) -> float:
    """Decimal digits that the value or a gradient of y loses between leaves and y.

    Where the formula has no value in many digits, which is a limit, all are lost.
    """
    xs = [x for x in leaves if x.type.differentiable and not isinstance(x.node.op, Constant)]
    graph, here, end = cut_between(xs, y, same)
    with graph:
        ys = [end, *gradients(total_of(end), here, unconnected="zero")]
    arrays = [np.asarray(known[x], dtype=x.dtype) for x in xs]
    with np.errstate(all="ignore"):
        got = compile(here, ys, backend="numpy", optimize=False)(*arrays)
        try:
            want = values(here, ys, arrays, DIGITS)
        except ExecutionError:
            return ALL
        unit = float(np.finfo(np.float64).eps)
        return max(_lost(floats(want[t]), np.asarray(g), unit) for t, g in zip(ys, got))


def _lost(want: Any, got: Any, unit: float) -> float:
    want, got = np.asarray(want, dtype=float), got.astype(float)
    if np.isnan(want).any() or (np.isfinite(want) != np.isfinite(got)).any():
        return ALL
    if not want.size:
        return 0.0
    size = np.max(np.abs(np.where(np.isfinite(want), want, 0.0)), initial=1e-300)
    gap = np.max(np.where(want == got, 0.0, np.abs(got - want)))
    return min(ALL, math.log10(gap / size / unit)) if gap > size * unit else 0.0
