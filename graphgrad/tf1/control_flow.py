"""Groups, order, and branches: a branch that is not taken is not computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .create import apply, build, convert_to_tensor, graph_of, name_scope
from .definition import define
from .dtypes import as_dtype
from .graph import GraphKeys, Operation, Tensor, get_default_graph
from .nest import flatten, pack_sequence_as
from .registry import RegisterGradient
from .scope import changed, scope_of
from .shapes import unknown_shape

__all__ = ["case", "cond", "control_dependencies", "group", "no_op", "switch_case"]


define("NoOp", dtype=[], infer=lambda i, a: [])
define("Switch", "data:A pred:bool", infer=lambda i, a: [i[0]._shape] * 2, like=(0, 0))


define("RefSwitch", "data:R pred:bool", infer=lambda i, a: [i[0]._shape] * 2,
       types=lambda i, a: [i[0].dtype] * 2)  # fmt: skip


def _merged(inputs: Any, attrs: Any) -> Any:
    first = inputs[0]._shape
    for t in inputs[1:]:
        first = first if first == t._shape else _loosest(first, t._shape)
    return [first, unknown_shape(0)]


def _loosest(a: Any, b: Any) -> Any:
    if a.lengths is None or b.lengths is None or len(a.lengths) != len(b.lengths):
        return unknown_shape()
    both = zip(a.lengths, b.lengths, strict=True)
    return type(a)([m if m == n else None for m, n in both])


define("Merge", "inputs*", infer=_merged,
       types=lambda i, a: [i[0].dtype.base_dtype, as_dtype("int32")])  # fmt: skip


def no_op(name: str | None = None) -> Operation:
    """An op that does nothing, but can be waited for."""
    return build("NoOp", name=name)


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """An op that runs when all of inputs have run."""
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {', '.join(kwargs)}")
    flat: list[Any] = []
    for x in inputs:
        flat.extend(flatten(x))
    if any(x is None for x in flat):
        raise TypeError("tf.group got None among its inputs")
    with name_scope(name, "group_deps", flat) as scope:
        graph = graph_of(flat)
        with graph.control_dependencies(flat):
            return graph._make("NoOp", (), [], [], {}, scope)


def tuple_(tensors: Any, name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The tensors, each there only when all of them are."""
    tensors = list(tensors)
    there = [t for t in tensors if t is not None]
    if not there:
        raise ValueError(f"Must have at least one Tensor: {tensors}")
    with name_scope(name, "tuple", there):
        gate = group(*there, *(control_inputs or []))
        return [t if t is None else with_dependencies([gate], t) for t in tensors]


def with_dependencies(dependencies: Any, output_tensor: Any, name: str | None = None) -> Tensor:
    """The tensor, there only when dependencies have run."""
    with name_scope(name, "control_dependency", [output_tensor]) as scope:
        t = convert_to_tensor(output_tensor)
        with t.graph.control_dependencies(dependencies):
            return apply("Identity", t, name=scope)


class CondContext:
    """The ops of one branch: what they read from outside comes through a Switch.

    pred    the truth value that chooses
    pivot   what is there if the branch is taken
    branch  1: taken where pred is true; 0: where it is false
    """

    def __init__(self, pred: Tensor, pivot: Tensor, branch: int, outer: Any, name: str) -> None:
        self.pred, self.pivot, self.branch, self.outer = pred, pivot, branch, outer
        self.name = name
        self.grad_state = None
        self._outside: dict[Tensor, Tensor] = {}
        self._inside: set[Tensor] = {pred, pivot}

    @property
    def outer_context(self) -> Any:
        """The branch or loop around, or None."""
        return self.outer

    def capture(self, t: Tensor) -> Tensor:
        """A tensor as ops of the branch read it."""
        if t in self._inside or self.contains(t.op):
            return t
        found = self._outside.get(t)
        if found is None:
            inner = t if self.outer is None else self.outer.capture(t)
            kind = "RefSwitch" if inner.dtype._is_ref_dtype else "Switch"
            with changed(t.graph, flow=self.outer, controls=()):
                switched = build(kind, inner, self.pred, name="Switch")
            switched._control_flow_context = self
            found = self._outside[t] = switched.outputs[self.branch]
            self._inside.add(found)
        return found

    def contains(self, op: Operation) -> bool:
        """Whether an op is in the branch, or in one within it."""
        context = op._control_flow_context
        while context is not None:
            if context is self:
                return "Switch" not in op.type or not any(t in self._inside for t in op.outputs)
            context = context.outer
        return False

    def take(self, op: Operation) -> None:
        """An op was made in the branch: without inputs, it waits for the branch to be taken."""
        op._control_flow_context = self
        if not op._inputs and not any(self.contains(c) for c in op.control_inputs):
            op.control_inputs.append(self.pivot.op)

    def GetWhileContext(self) -> Any:
        """The loop around, or None."""
        return None if self.outer is None else self.outer.GetWhileContext()

    def IsCondContext(self) -> bool:
        """True."""
        return True

    def IsWhileContext(self) -> bool:
        """False."""
        return False


def cond(
    pred: Any,
    true_fn: Any = None,
    false_fn: Any = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Any = None,
    fn2: Any = None,
) -> Any:
    """What true_fn() gives where pred holds, else what false_fn() gives.

    Ops that a function makes run only where it is taken; tensors from outside are computed always.
    Both give the same structure, of the same types. A list of one is unwrapped unless `strict`.
    """
    true_fn, false_fn = fn1 if true_fn is None else true_fn, fn2 if false_fn is None else false_fn
    if not callable(true_fn):
        raise TypeError("true_fn must be callable.")
    if not callable(false_fn):
        raise TypeError("false_fn must be callable.")
    with name_scope(name, "cond", [pred]):
        if isinstance(pred, bool):
            raise TypeError("pred must not be a Python bool")
        pred = convert_to_tensor(pred, name="pred")
        graph = pred.graph
        outer = scope_of(graph).flow
        switch = build("Switch", pred, pred)
        pivots = [
            apply("Identity", switch.outputs[1], name="switch_t"),
            apply("Identity", switch.outputs[0], name="switch_f"),
        ]
        chosen = apply("Identity", pred, name="pred_id")
        if outer is not None:
            chosen = outer.capture(chosen)
        taken = []
        for branch, function in ((1, true_fn), (0, false_fn)):
            context = CondContext(chosen, pivots[1 - branch], branch, outer, graph.get_name_scope())
            graph.add_to_collection(GraphKeys.COND_CONTEXT, context)
            with changed(graph, flow=context, controls=()):
                taken.append(_branch(function, context))
        return _merge_branches(taken, chosen, strict)


def _branch(function: Callable[[], Any], context: CondContext) -> tuple[Any, list[Any]]:
    """What a branch gives: the structure, and its tensors; of ops, something to wait for."""
    result = function()
    flat: list[Any] = []
    for value in flatten(result):
        if value is None:
            flat.append(None)
        elif isinstance(value, Operation):
            with value.graph.control_dependencies([value]):
                flat.append(apply("Identity", context.pivot))
        else:
            t = convert_to_tensor(value)
            inside = context.capture(t)
            if inside is not t or t.dtype._is_ref_dtype:
                inside = apply("Identity", inside)
            flat.append(inside)
    return result, flat


def _merge_branches(taken: list[Any], pred: Tensor, strict: bool) -> Any:
    (true_result, true_flat), (_false_result, false_flat) = taken
    if len(true_flat) != len(false_flat):
        raise ValueError("true_fn and false_fn must return the same number of outputs, got "
                         f"{len(true_flat)} and {len(false_flat)}")  # fmt: skip
    found: list[Any] = []
    values = flatten(true_result)
    for t, f, value in zip(true_flat, false_flat, values, strict=True):
        if t is None and f is None:
            found.append(None)
            continue
        if t is None or f is None:
            raise ValueError("one branch of tf.cond returned None, the other a tensor")
        if t.dtype.base_dtype is not f.dtype.base_dtype:
            raise ValueError(
                f"Outputs of true_fn and false_fn must have the same type: {t.dtype.name}, "
                f"{f.dtype.name}"
            )
        merged = build("Merge", f, t, _pred=pred)
        found.append(merged if isinstance(value, Operation) else merged.outputs[0])
    if isinstance(true_result, list | tuple) and type(true_result) in (list, tuple):
        if len(found) == 1 and not strict:
            return found[0]
    return pack_sequence_as(true_result, found)


@RegisterGradient("Switch")
@RegisterGradient("RefSwitch")
def _SwitchGrad(op: Operation, *grads: Any) -> list[Any]:
    """The gradient of the branch that was taken."""
    found = []
    for t, dy in zip(op.outputs, grads, strict=True):
        if dy is None:
            return [None, None]
        if not dy.op.inputs:
            with op.graph.control_dependencies([apply("Identity", t)]):
                dy = apply("Identity", dy)
        found.append(dy)
    return [apply("Merge", *found, name="cond_grad", _pred=op.inputs[1])[0], None]


@RegisterGradient("Merge")
def _MergeGrad(op: Operation, dy: Any, _: Any) -> list[Any]:
    """dy to the branch that was taken."""
    pred = _pred_of(op)
    parts = build("Switch", dy, pred, name="cond_grad").outputs
    return list(parts)


def _pred_of(op: Operation) -> Tensor:
    """The truth value that chooses between the inputs of a Merge, false first."""
    known = op.attrs.get("_pred")
    if known is None:  # made by `merge`: of what comes straight from a Switch
        known = next((t.op._inputs[1] for t in op._inputs if t.op.type == "Switch"), None)
    if known is None:
        raise LookupError(f"{op.name}: which Switch decides this Merge cannot be seen")
    return known


def case(
    pred_fn_pairs: Any,
    default: Any = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """What the function of the first truth value that holds gives.

    Without a default a run in which none holds is an InvalidArgumentError, with `exclusive` one in
    which more than one does.
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    every, last = [p for p, _ in pairs], pairs.pop() if default is None else None

    def otherwise() -> Any:
        if last is None:
            return default()
        with get_default_graph().control_dependencies([_holds(last[0], every)]):
            return last[1]()

    def rest(i: int) -> Any:
        if i == len(pairs):
            return otherwise()
        return cond(pairs[i][0], pairs[i][1], lambda: rest(i + 1), strict=strict)

    with name_scope(name):
        if not exclusive or len(pairs) < 2:
            return rest(0)
        with get_default_graph().control_dependencies([_at_most_one([p for p, _ in pairs])]):
            return rest(0)


def _holds(last: Any, preds: list[Any]) -> Operation:
    """An op that fails where the last of these does not hold: none of them does, where it runs."""
    names = ", ".join(getattr(p, "name", str(p)) for p in preds)
    said = f"None of conditions evaluated as True: {names}"
    return build(
        "Assert",
        convert_to_tensor(last),
        convert_to_tensor(said),
        name="Assert",
        summarize=None,
    )


def _at_most_one(preds: list[Any]) -> Operation:
    """An op that fails where more than one of these holds."""
    names = ", ".join(getattr(p, "name", str(p)) for p in preds)
    said = f"Input error: exclusive=True: more than 1 conditions ({names}) evaluated as True:"
    truths = apply("Pack", *[convert_to_tensor(p) for p in preds], axis=0)
    count = apply("Sum", apply("Cast", truths, DstT=as_dtype("int32")), 0, keep_dims=False)
    return build(
        "Assert",
        apply("LessEqual", count, 1),
        convert_to_tensor(said),
        truths,
        name="Assert",
        summarize=None,
    )


def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: Any = None) -> Any:
    """What the function of a number gives."""
    items = dict(branch_fns) if isinstance(branch_fns, dict) else dict(enumerate(branch_fns))
    pairs = [(apply("Equal", branch_index, number), function) for number, function in items.items()]
    return case(pairs, default or pairs[-1][1], name=name or "switch_case")


def switch(data: Any, pred: Any, dtype: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """The data at the second place where pred holds, else at the first."""
    made = build("Switch", data, pred, name=name).outputs
    return made[0], made[1]


def merge(inputs: Any, name: str | None = None) -> Any:
    """The one of inputs that is there, and which it is."""
    return tuple(apply("Merge", *inputs, name=name))


def control_dependencies(control_inputs: Any) -> Any:
    """Ops made in the block run after these."""
    return get_default_graph().control_dependencies(control_inputs)
