"""`tf.gradients`, by TensorFlow's algorithm: backward over the ops between ys and xs."""

from __future__ import annotations

import warnings
from collections import deque
from enum import Enum
from typing import Any

import numpy as np

from .create import apply, build, constant, convert_to_tensor, name_scope
from .graph import Operation, Tensor
from .registry import get_gradient_function
from .scope import changed

__all__ = ["AggregationMethod", "UnconnectedGradients", "gradients", "gradients_v2"]

HOME = __name__.rpartition(".")[0]


class AggregationMethod:
    """How contributions are added: the values are the same."""

    ADD_N = 0
    DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class UnconnectedGradients(Enum):
    """What is given for an x that no y depends on."""

    NONE = "none"
    ZERO = "zero"


def _IsBackpropagatable(tensor: Tensor) -> bool:
    """Whether gradients flow through a tensor; explainers put another function in its place."""
    return tensor.dtype.base_dtype.is_trainable


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """The gradient of the sum of ys, weighted by grad_ys, with respect to each of xs.

    Raises LookupError for an op between that has no gradient, and ValueError for a rule that
    returns another number of gradients, or other shapes, than the op has inputs.
    """
    try:
        unconnected = UnconnectedGradients(unconnected_gradients)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: '{unconnected_gradients}'"
        ) from None
    if aggregation_method not in (None, 0, 1, 2):
        raise ValueError(f"Invalid aggregation_method specified {aggregation_method}.")
    ys, xs = _as_list(ys), _as_list(xs)
    given = [None] * len(ys) if grad_ys is None else _as_list(grad_ys)
    if len(given) != len(ys):
        raise ValueError(f"Length mismatch. Passed {len(given)} grad_ys for {len(ys)} ys")
    stops = _as_list(stop_gradients) if stop_gradients is not None else []
    with name_scope(name, "gradients", [*ys, *xs]):
        y_tensors = [convert_to_tensor(y, name="y") for y in ys]
        x_tensors = [convert_to_tensor(x, name="x", as_ref=True) for x in xs]
        stop_ops = [convert_to_tensor(s, as_ref=True).op for s in stops]
        seeds = [_seed(y, g, i) for i, (y, g) in enumerate(zip(y_tensors, given, strict=True))]
        sweep = Sweep(y_tensors, x_tensors, stop_ops, gate_gradients)
        for y, seed in zip(y_tensors, seeds, strict=True):
            sweep.add(y, seed)
        sweep.run()
        found = [sweep.gradient(x) for x in x_tensors]
        if unconnected is UnconnectedGradients.ZERO:
            found = [
                apply("ZerosLike", x, name="zeros_like") if g is None else g
                for g, x in zip(found, x_tensors, strict=True)
            ]
    return found


def gradients_v2(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """`gradients` with the arguments of TensorFlow 2."""
    return gradients(
        ys, xs, grad_ys, name, True, gate_gradients, aggregation_method, stop_gradients,
        unconnected_gradients,
    )  # fmt: skip


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _seed(y: Tensor, given: Any, place: int) -> Tensor:
    """The gradient that is put in at a y: ones where none is given."""
    kind = y.dtype.base_dtype
    if given is None:
        if kind.is_complex:
            raise TypeError(
                f"Gradients of complex tensors must set grad_ys (y.dtype = {kind.name})"
            )
        shape: Any
        if y.shape.is_fully_defined():
            shape = constant(np.array(y.shape.as_list(), "int32"), name="Shape")
        else:
            shape = apply("Shape", y, name="Shape", out_type="int32")
        return apply("Fill", shape, np.ones((), kind.numpy), name=f"grad_ys_{place}")
    seed = convert_to_tensor(given, preferred_dtype=kind, name="grad_y")
    if kind.is_floating and not (seed.dtype.is_floating or seed.dtype.is_integer):
        raise TypeError(
            f"Gradient type {seed.dtype.name} generated for real or integer-valued tensor {y} "
            f"with type {kind.name} must be real or integer"
        )
    if kind.is_trainable and seed.dtype.base_dtype is not kind:
        raise TypeError(f"grad_ys[{place}] has dtype {seed.dtype.name}, y {kind.name}: cast it")
    shapes = seed.shape, y.shape
    if all(s.is_fully_defined() for s in shapes) and shapes[0] != shapes[1]:
        warnings.warn(
            f"grad_ys[{place}] has shape {seed.shape}, y {y.shape}: what is broadcast counts for "
            "each element. Write it in the shape of y.",
            stacklevel=3,
        )
    return apply("Identity", seed, name=f"grad_ys_{place}")


class Sweep:
    """One walk backward: which ops are between, and what has come in at each of their outputs."""

    def __init__(
        self,
        ys: list[Tensor],
        xs: list[Tensor],
        stop_ops: list[Operation],
        gate: bool,
    ) -> None:
        self.gate = gate
        self.to_ops = list(dict.fromkeys(y.op for y in ys))
        from_ops = list(dict.fromkeys(x.op for x in xs))
        self.pending = _pending_counts(self.to_ops, from_ops)
        self.stops = {
            op for op in from_ops if not any(self.pending.get(t.op, 0) for t in op.inputs)
        }
        self.stops.update(stop_ops)
        self.grads: dict[Tensor, list[Tensor]] = {}

    def add(self, t: Tensor, grad: Tensor) -> None:
        """A contribution to the gradient of a tensor."""
        self.grads.setdefault(t, []).append(grad)

    def gradient(self, t: Tensor) -> Tensor | None:
        """What has come in at a tensor, added up."""
        found = self.grads.get(t)
        if not found:
            return None
        if len(found) > 1:
            found[:] = [apply("AddN", found, name="AddN")]
        return found[0]

    def run(self) -> None:
        """Walk."""
        queue = deque(op for op in self.to_ops if self.pending.get(op) == 0)
        queued = set(queue)
        while queue:
            op = queue.popleft()
            self._visit(op)
            for t in op.inputs:
                left = self.pending.get(t.op)
                if left is None:
                    continue
                self.pending[t.op] = left - 1
                if left == 1 and t.op not in queued:
                    queued.add(t.op)
                    queue.append(t.op)

    def _visit(self, op: Operation) -> None:
        dys = [self.gradient(t) for t in op.outputs]
        if op in self.stops or all(dy is None for dy in dys) or not op.inputs:
            return
        function = _rule_of(op)
        if function is None:
            return
        lost = [t for t in op.attrs.get("_reads", ()) if t.op in self.pending]
        if lost:
            warnings.warn(
                f"custom_gradient at {op.where} reads {lost[0].name}, which is not an argument of "
                "the function, and a gradient with respect to a tensor that it depends on is "
                "requested: no gradient flows that way. Make it an argument, or read "
                "tf.stop_gradient of it.",
                stacklevel=4,
            )
        with name_scope(op.name + "_grad"), changed(op.graph, original=op):
            for i, (t, dy) in enumerate(zip(op.outputs, dys, strict=True)):
                if dy is None and t.dtype.base_dtype.is_trainable and op.type != "While":
                    dys[i] = apply("ZerosLike", t, name="zeros_like")
            try:
                made = function(op, *dys)
            except Exception as error:
                note = (
                    f"in the gradient of {op.type} {op.name!r}, built at {op.where}, by "
                    f"{getattr(function, '__name__', function)!r}"
                )
                if note not in getattr(error, "__notes__", ()):  # of a rule that calls itself: once
                    error.add_note(note)
                raise
            found = _as_list(made)
            if len(found) != len(op.inputs):
                raise ValueError(
                    f"Num gradients {len(found)} generated for op {op.node_def} do not match num "
                    f"inputs {len(op.inputs)}"
                )
            checked = [_checked(op, i, g) for i, g in enumerate(found)]
            if not str(getattr(function, "__module__", None)).startswith(HOME):
                checked = [_shaped(op, i, g) for i, g in enumerate(checked)]
            if self.gate and sum(g is not None for g in checked) > 1:
                checked = _gated(checked)
        for t, g in zip(op.inputs, checked, strict=True):
            if g is not None:
                self.add(t, g)


def _gated(grads: list[Any]) -> list[Any]:
    """Gradients that are there when all of them are."""
    graph = next(g for g in grads if g is not None).graph
    with name_scope("tuple"):
        with graph.control_dependencies([g for g in grads if g is not None]):
            group = build("NoOp", name="group_deps", dtypes=[], shapes=[])
        with graph.control_dependencies([group]):
            return [
                g if g is None else apply("Identity", g, name="control_dependency") for g in grads
            ]


def _rule_of(op: Operation) -> Any:
    try:
        return get_gradient_function(op)
    except LookupError:
        own = op.attrs.get("_gradient")
        asked = op.attrs.get("_gradient_op_type")
        if own is not None and asked is None:
            return own
        named = (
            "" if asked is None else f" A map names {asked.decode()!r}, which is not registered."
        )
        raise LookupError(
            f"No gradient defined for operation'{op.name}' (op type: {op.type}). In general every "
            "operation must have an associated `@tf.RegisterGradient` for correct autodiff, which "
            f"this op is lacking.{named} It was built at {op.where}."
        ) from None


def _checked(op: Operation, place: int, grad: Any) -> Any:
    """What a rule returned for an input, as a tensor of its shape."""
    if grad is None:
        return None
    t = op.inputs[place]
    if not isinstance(grad, Tensor):
        dense = getattr(grad, "_tensor_of", None)
        if dense is not None:
            grad = dense(False)
        else:
            grad = convert_to_tensor(grad, t.dtype.base_dtype)
    trainable = t.dtype.base_dtype.is_trainable
    if trainable and grad.dtype.base_dtype is not t.dtype.base_dtype:
        raise TypeError(
            f"the gradient of {op.type} {op.name!r} (built at {op.where}) for input {place} has "
            f"dtype {grad.dtype.name}, the input {t.dtype.base_dtype.name}: cast it"
        )
    try:
        grad.set_shape(t.shape)
    except ValueError:
        raise ValueError(
            "Incompatible shapes between op input and calculated input gradient. Forward "
            f"operation: {op.name}. Input index: {place}. Original input shape: {t.shape}. "
            f"Calculated input gradient shape: {grad.shape}"
        ) from None
    return grad


def _shaped(op: Operation, place: int, grad: Any) -> Any:
    """What a user's rule returned, of which only a run knows whether it has the input's shape."""
    t = op.inputs[place]
    if grad is None or (grad.shape.is_fully_defined() and t.shape.is_fully_defined()):
        return grad
    return apply("GradientOf", grad, t, name="Identity", _of=(op, place))


def _pending_counts(to_ops: list[Operation], from_ops: list[Operation]) -> dict[Operation, int]:
    """Of the ops between, how many reads by ops between each has."""
    reached = set()
    stack = list(from_ops)
    while stack:
        op = stack.pop()
        if op in reached:
            continue
        reached.add(op)
        for t in op.outputs:
            if _IsBackpropagatable(t):
                stack += t._consumers
    between: dict[Operation, int] = {}
    stack = [op for op in to_ops if op in reached]
    while stack:
        op = stack.pop()
        if op not in between:
            between[op] = 0
            stack += [t.op for t in op.inputs if t.op in reached]
    for op in list(between):
        for t in op.inputs:
            if t.op in between:
                between[t.op] += 1
    return between
