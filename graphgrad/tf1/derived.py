"""Gradients of op types that have no rule of TensorFlow's here: what their meaning says.

The gradient of `Cumsum` is one op of type `CumsumGrad`, which reads what the op read and the
gradients of its results. What it computes is graphgrad's own vjp of what `Cumsum` computes, so it
has a gradient in turn.
"""

from __future__ import annotations

from typing import Any

import graphgrad as gg

from .create import build
from .definition import DEFINITIONS, Definition, define, definition_of
from .graph import Operation, Tensor
from .registry import NOT_REGISTERED, gradient_registry
from .trace import _typed
from .trial import Trial, as_results, stand_ins

__all__ = ["derived_gradient", "derived_of", "register_derived"]


class Forward:
    """The op whose derivative an op is, as its lowering sees it."""

    def __init__(self, op: Any, count: int) -> None:
        self.attrs = op.attrs["_forward"]
        self.type = op.attrs["_type"]
        self.inputs = op.inputs[:count]
        self._inputs = self.inputs
        self.name = op.name
        self.outputs = self._outputs = op.attrs["_outputs"]
        self._id = op.attrs.get("_draw", 0)


class Result:
    """What is known of a result of the op whose derivative an op is."""

    def __init__(self, t: Any) -> None:
        self.dtype, self.shape = t.dtype, t.shape


def derived_gradient(op: Operation, *dys: Tensor | None) -> Any:
    """The gradient of an op, from what the op means in graphgrad."""
    return _one_or_all(_derived(definition_of(op.type), op, dys))


def _one_or_all(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else found


def derived_of(type: str) -> Any:
    """The derived gradient of an op type, as a function of any op with its inputs."""

    def gradient(op: Operation, *dys: Tensor | None) -> Any:
        return _one_or_all(_derived(definition_of(type), op, dys))

    gradient.__name__ = f"_{type}Grad"
    gradient.__doc__ = f"The gradient of {type}."
    return gradient


def _derived(definition: Definition, op: Any, dys: Any) -> list[Tensor | None]:
    wanted = [
        i
        for i, t in enumerate(op.inputs)
        if t.dtype.base_dtype.is_trainable and i not in definition.no_gradient
    ]
    given = [i for i, dy in enumerate(dys) if dy is not None and dy.dtype.is_trainable]
    given = [i for i in given if dys[i].op.type != "ZerosLike"] or given
    found: list[Tensor | None] = [None] * len(op.inputs)
    if not wanted or not given:
        return found
    if definition.lower is _lower:
        wanted = _connected(op, wanted, given)
        if not wanted:
            return found
    name = _definition(definition).type
    made = build(
        name,
        *op.inputs,
        *[dys[i] for i in given],
        name=name,
        dtypes=[op.inputs[i].dtype.base_dtype for i in wanted],
        shapes=[op.inputs[i].shape for i in wanted],
        _forward=op.attrs,
        _type=definition.type,
        _outputs=[Result(t) for t in op.outputs],
        _given=given,
        _wanted=wanted,
        _draw=op.attrs.get("_draw", getattr(op, "_id", 0)),
    )
    for i, t in zip(wanted, made.outputs, strict=True):
        found[i] = t
    return found


def _connected(op: Any, wanted: list[int], given: list[int]) -> list[int]:
    """Of the inputs of a derivative, those that reach the results given: of a linear op's, not x.

    All of them where it takes a run to know.
    """
    try:
        with gg.Graph():
            xs = stand_ins(op.inputs)
            ys = _lower(Trial(), op, *xs)
            ys = [ys[i] for i in given]
            dys = [gg.identity(gg.placeholder(y.shape, y.dtype)) for y in ys]
            found = gg.gradients(ys, [xs[i] for i in wanted], dys)
    except Exception:  # whatever a lowering says of shapes that are not known yet
        return wanted
    return [i for i, g in zip(wanted, found, strict=True) if g is not None and g.node.inputs]


def _definition(forward: Definition) -> Definition:
    """The op type that computes the derivative of another."""
    name = forward.type + "Grad"
    known = DEFINITIONS.get(name)
    if known is not None and known.lower is not _lower:
        name = forward.type + "Derivative"
        known = DEFINITIONS.get(name)
    if known is None:
        define(name, "inputs*:A", lower=_lower, no_gradient=forward.no_gradient)
        known = DEFINITIONS[name]
    if name not in gradient_registry._registry:  # whoever swaps the table loses none of these
        gradient_registry.register(derived_gradient, name)
    return known


def _lower(trace: Any, op: Any, *args: Any) -> list[Any]:
    given, wanted = op.attrs["_given"], op.attrs["_wanted"]
    count = len(args) - len(given)
    view = Forward(op, count)
    xs = [a if a is None else gg.identity(a) for a in args[:count]]
    lower: Any = definition_of(view.type).lower
    ys = [_typed(y, t) for y, t in zip(as_results(lower(trace, view, *xs)), view.outputs)]
    dys = [_seed(dy, ys[i]) for i, dy in zip(given, args[count:], strict=True)]
    found = gg.gradients([ys[i] for i in given], [xs[i] for i in wanted], dys)
    return [
        gg.zeros_like(xs[i]) if g is None else gg.conj(g) if g.dtype.kind == "c" else g
        for i, g in zip(wanted, found, strict=True)
    ]


def _seed(dy: Any, y: Any) -> Any:
    if dy.shape != y.shape:
        dy = gg.broadcast_to(dy, y.shape)
    return gg.conj(dy) if dy.dtype.kind == "c" else dy


def register_derived() -> None:
    """Op types without a rule of their own get their derived one."""
    for type, definition in DEFINITIONS.items():
        if (
            type not in gradient_registry._registry
            and type not in NOT_REGISTERED
            and definition.lower
        ):
            gradient_registry.register(derived_of(type), type)
