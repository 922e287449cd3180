"""`while_loop`, and what is made of it: `map_fn`, `scan`, `foldl`.

A loop is one op of type While, which Python drives: each run of the body is a run of compiled
ops. Its gradient is a loop the other way round, which makes the ops of the body anew from what the
loop variables were; it is a loop of the same kind, so it has a gradient too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .copying import copied
from .create import apply, build, constant, convert_to_tensor, name_scope
from .definition import define
from .dtypes import as_dtype
from .errors import InvalidArgumentError
from .gradients import gradients
from .graph import GraphKeys, Operation, Tensor
from .nest import flatten, map_structure, pack_sequence_as
from .registry import RegisterGradient
from .schedule import needed_ops
from .scope import changed, scope_of
from .shapes import TensorShape, as_shape, unknown_shape
from .tensor_array import TensorArray

__all__ = ["foldl", "foldr", "map_fn", "scan", "while_loop"]


class WhileContext:
    """The ops of the body of a loop: what they read from outside comes through an Enter."""

    def __init__(self, outer: Any, name: str) -> None:
        self.outer = outer
        self.name = name
        self.grad_state = None
        self.captured: dict[Tensor, Tensor] = {}
        self.again: Again | None = None
        self._inside: set[Tensor] = set()

    @property
    def outer_context(self) -> Any:
        """The branch or loop around, or None."""
        return self.outer

    def contains(self, op: Operation) -> bool:
        """Whether an op is in the body, or in a branch or loop within it."""
        context = op._control_flow_context
        while context is not None:
            if context is self:
                return True
            context = context.outer
        return False

    def capture(self, t: Tensor) -> Tensor:
        """A tensor as ops of the body read it."""
        if t in self._inside or self.contains(t.op) or t.dtype._is_ref_dtype:
            return t
        if self.again is not None and self.again.knows(t):
            return self.again.of(t)
        found = self.captured.get(t)
        if found is None:
            graph = t.graph
            with changed(graph, flow=None, controls=()):
                op = graph._make(
                    "Enter", (t,), [t.dtype.base_dtype], [t.shape], {"is_constant": True}, "Enter"
                )
            op._control_flow_context = self
            found = self.captured[t] = op.outputs[0]
            self._inside.add(found)
        return found

    def take(self, op: Operation) -> None:
        """An op was made in the body."""
        op._control_flow_context = self

    def GetWhileContext(self) -> Any:
        """Itself."""
        return self

    def IsCondContext(self) -> bool:
        """False."""
        return False

    def IsWhileContext(self) -> bool:
        """True."""
        return True


class Again:
    """The body of a loop, whose ops are made again as they are asked for in another loop.

    known  {tensor of the body: what stands for it}
    """

    def __init__(self, op: Operation, context: WhileContext, place: Tensor) -> None:
        attrs = op.attrs
        self.op, self.inside, self.context, self.place = op, attrs["_context"], context, place
        self.places = {t: i for i, t in enumerate(attrs["_inner"])}
        self.known: dict[Tensor, Tensor] = {}

    def knows(self, t: Tensor) -> bool:
        """Whether this is a tensor of the body."""
        return bool(self.inside.contains(t.op))

    def of(self, t: Tensor) -> Tensor:
        """What stands for a tensor of the body."""
        if t in self.known:
            return self.known[t]
        graph = t.graph
        with changed(graph, flow=self.context, controls=(), maps={}):
            ops = needed_ops([t], [], list(self.known))
            sources = [o for o in ops if o.type in ("LoopVariable", "Enter") or not self.knows(
                o.outputs[0] if o.outputs else t)]  # fmt: skip
            for source in sources:
                for s in source.outputs:
                    if s not in self.known and self.knows(s):
                        self.known[s] = self._source(s)
            rest = needed_ops([t], [], list(self.known))
            copied([o for o in rest if self.inside.contains(o)], self.known)
        return self.known[t]

    def _source(self, t: Tensor) -> Tensor:
        """A loop variable as it was before a run, or what came in from outside."""
        made: Tensor
        if t in self.places:
            i = self.places[t]
            made = _part(self.op, i, self.op.outputs[len(self.places) + 1 + i], self.place)
        elif t.op._control_flow_context is self.inside and t.op.type == "Enter":
            made = apply("Identity", t.op._inputs[0])
        else:
            raise NotImplementedError(f"{t.name}: a gradient reads the inside of a loop in a loop")
        return made


def _part(op: Operation, i: int, stack: Tensor, place: Tensor) -> Tensor:
    """Of what a loop variable was before each run, one; without what fills up shorter ones."""
    made: Tensor = apply("GatherV2", stack, place, 0, batch_dims=0)
    loose = op.attrs["_loose"]
    if i in loose:
        shapes = op.outputs[2 * len(op.attrs["_inner"]) + 1 + loose.index(i)]
        shape = apply("GatherV2", shapes, place, 0, batch_dims=0)
        made = apply("Slice", made, apply("ZerosLike", shape), shape)
    made.set_shape(op.attrs["_shapes"][i])
    return made


define("Enter", "data:A", infer=lambda i, a: i[0]._shape, lower=lambda t, op, x: x)
define("Exit", "data:A", infer=lambda i, a: i[0]._shape, lower=lambda t, op, x: x)
define("LoopVariable", types=lambda i, a: [a["dtype"]], infer=lambda i, a: [a["shape"]])


@RegisterGradient("Enter")
def _EnterGrad(op: Operation, grad: Any) -> Any:
    """dy."""
    return grad


@RegisterGradient("Exit")
def _ExitGrad(op: Operation, grad: Any) -> Any:
    """dy; None where the loop was built with back_prop=False."""
    return grad if op.attrs["_back_prop"] else None


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """body(*vars) again and again, as long as cond(*vars) holds.

    Gives the last loop variables, in their structure; a single one is unwrapped. Raises ValueError
    where the body changes the structure or the shape of a variable beyond `shape_invariants`, and
    TypeError where it changes a type.
    """
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if not loop_vars:
        raise ValueError("No loop variables provided")
    if maximum_iterations is not None:
        return _bounded(cond, body, loop_vars, shape_invariants, name, maximum_iterations,
                        return_same_structure, back_prop)  # fmt: skip
    single = not isinstance(loop_vars, list | tuple)
    structure = [loop_vars] if single else list(loop_vars)
    with name_scope(name, "while", flatten(structure)):
        plain = map_structure(_as_flow, structure)
        first = [convert_to_tensor(v) for v in flatten(plain)]
        wanted = _invariants(shape_invariants, first, single)
        loose = [i for i, s in enumerate(wanted) if shape_invariants and not s.is_fully_defined()]
        last = _built(cond, body, first, wanted, structure, back_prop, loose)
    packed = _packed(structure, last)
    if single or (len(packed) == 1 and not return_same_structure):
        return packed[0]
    return packed if not isinstance(loop_vars, tuple) else type_of(loop_vars, packed)


def type_of(like: Any, parts: list[Any]) -> Any:
    """Parts as a tuple of the kind of another."""
    return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)


def _as_flow(value: Any) -> Any:
    return value.flow if isinstance(value, TensorArray) else value


def _packed(structure: Any, tensors: Any) -> Any:
    """Tensors in a structure; TensorArrays are made of their flows."""
    values = [
        old._with_flow(t) if isinstance(old, TensorArray) else t
        for old, t in zip(flatten(structure), tensors, strict=True)
    ]
    return pack_sequence_as(structure, values)


def _invariants(given: Any, first: list[Tensor], single: bool) -> list[TensorShape]:
    if given is None:
        return [t.shape for t in first]
    shapes: list[TensorShape] = []

    def collect(part: Any) -> None:
        if isinstance(part, TensorShape) or part is None:
            shapes.append(as_shape(part))
        elif isinstance(part, list | tuple):
            for p in part:
                collect(p)
        elif isinstance(part, dict):
            for k in sorted(part):
                collect(part[k])
        else:
            raise TypeError(f"shape_invariants are TensorShapes, got {part!r}")

    collect([given] if single else given)
    for t, shape in zip(first, shapes, strict=True):
        if not shape.is_compatible_with(t.shape):
            raise ValueError(f"The shape invariant {shape} does not fit {t.name} of {t.shape}")
    return shapes


def _built(
    cond: Any, body: Any, first: list[Tensor], shapes: list[TensorShape], structure: Any,
    back_prop: bool = True, loose: Sequence[int] = (),
) -> list[Tensor]:  # fmt: skip
    """The last loop variables; those at places `loose` may have another shape in each run."""
    graph = first[0].graph
    outer = scope_of(graph).flow
    context = WhileContext(outer, graph.get_name_scope())
    graph.add_to_collection(GraphKeys.WHILE_CONTEXT, context)
    with changed(graph, flow=context, controls=()):
        inner = [
            build("LoopVariable", name="Identity", dtype=t.dtype.base_dtype, shape=s).outputs[0]
            for t, s in zip(first, shapes, strict=True)
        ]
        variables = _packed(structure, inner)
        pred = convert_to_tensor(cond(*variables))
        pred = context.capture(pred)
        if not pred.dtype.is_bool or pred.shape.ndims not in (0, None):
            raise TypeError(f"the condition of a loop is a bool, got {pred}")
        result = body(*_packed(structure, inner))
        flat = _results(result, structure, inner, context)
    for t, s, old in zip(flat, shapes, inner, strict=True):
        _check_shape(t, s, old)
    used = set(needed_ops([pred, *flat], [], inner))
    captured = {t: e for t, e in context.captured.items() if e.op in used}
    op = build(
        "While", *first, *captured, name="Exit_loop", _inner=inner,
        _enter=list(captured.values()), _pred=pred, _results=flat, _shapes=shapes,
        _context=context, _loose=list(loose),
    )  # fmt: skip
    last = op.outputs[: len(first)]
    return [apply("Exit", t, name="Exit", _back_prop=back_prop) for t in last]


def _results(result: Any, structure: Any, inner: list[Tensor], context: Any) -> list[Tensor]:
    """What the body gave, as tensors of the body."""
    if isinstance(result, Operation):
        raise TypeError("the body of a loop returned an op, not loop variables")
    if (len(structure) == 1 and not isinstance(result, list | tuple)) or (
        len(structure) == 1 and isinstance(structure[0], list | tuple) and len(result) != 1
    ):
        result = [result]
    values = flatten(map_structure(_as_flow, list(result)))
    if len(values) != len(inner):
        raise ValueError(
            "The number and structure of loop variables changed in the body: "
            f"{len(inner)} went in, {len(values)} came out"
        )
    found = []
    for value, old in zip(values, inner, strict=True):
        t = convert_to_tensor(value, None if isinstance(value, Tensor) else old.dtype)
        if t.dtype.base_dtype is not old.dtype:
            raise TypeError(
                f"the body of a loop changed the type of a variable: {old.name} is "
                f"{old.dtype.name}, it became {t.dtype.name}"
            )
        found.append(context.capture(t))
    return found


def _check_shape(t: Tensor, shape: TensorShape, old: Tensor) -> None:
    if shape.lengths is None:
        return
    got = t.shape.lengths
    looser = got is None or len(got) != len(shape.lengths) or any(
        m is not None and m != n for m, n in zip(shape.lengths, got, strict=True)
    )  # fmt: skip
    if looser:
        raise ValueError(
            f"Input tensor '{old.name}' enters the loop with shape {shape}, but has shape "
            f"{t.shape} after one iteration. To allow the shape to vary across iterations, use the "
            "`shape_invariants` argument of tf.while_loop to specify a less-specific shape."
        )


def _bounded(
    cond: Any, body: Any, loop_vars: Any, invariants: Any, name: Any, limit: Any, same: bool,
    back_prop: bool,
) -> Any:  # fmt: skip
    """A loop that counts its runs."""
    single = not isinstance(loop_vars, list | tuple)
    given = (loop_vars,) if single else tuple(loop_vars)
    limit = convert_to_tensor(limit, name="maximum_iterations")

    def again(count: Any, inner: Any) -> Any:
        return apply("LogicalAnd", count < limit, cond(*inner))

    def step(count: Any, inner: Any) -> Any:
        result = body(*inner)
        if len(given) == 1 and not (isinstance(result, list | tuple) and len(result) == 1):
            result = (result,)
        return count + 1, type_of(given, list(result))

    shapes = None
    if invariants is not None:
        shapes = [TensorShape(()), [invariants] if single else invariants]
    zero = constant(0, limit.dtype)
    _, found = while_loop(again, step, (zero, given), shapes, name=name, back_prop=back_prop)
    found = list(found)
    if len(found) == 1 and not same:
        return found[0]
    return found if not isinstance(loop_vars, tuple) else type_of(loop_vars, found)


# running


def _types(inputs: Any, attrs: Any) -> Any:
    kinds = [t.dtype.base_dtype for t in attrs["_inner"]]
    return [*kinds, as_dtype("int32"), *kinds, *[as_dtype("int32")] * len(attrs["_loose"])]


def _shapes(inputs: Any, attrs: Any) -> Any:
    shapes = attrs["_shapes"]
    kept = [TensorShape([None]).concatenate(s) for s in shapes]
    return [*shapes, TensorShape(()), *kept, *[TensorShape([None, None])] * len(attrs["_loose"])]


def _run(run: Any, op: Operation, *arrays: Any) -> list[Any]:
    """The last loop variables, the number of runs, what they were before each run, and of those
    that change their shape the shapes.
    """
    attrs = op.attrs
    inner, entered = attrs["_inner"], attrs["_enter"]
    count = len(inner)
    state, around = list(arrays[:count]), dict(zip(entered, arrays[count:], strict=True))
    feeds = [*inner, *entered]
    session = run.session
    test = session.plan([attrs["_pred"]], [], feeds)
    step = session.plan(attrs["_results"], [], feeds)
    kept: list[Any] = [[] if _is_read(t) else None for t in op.outputs[count + 1 : 2 * count + 1]]
    trips, backward = 0, attrs.get("_backward", False)
    while True:
        values = {**dict(zip(inner, state, strict=True)), **around}
        part = run.part(int(state[0]) if backward else trips)
        found = dict(values)
        test.run(part, found)
        if not found[attrs["_pred"]]:
            break
        for store, value in zip(kept, state, strict=True):
            if store is not None:
                store.append(value)
        found = dict(values)
        step.run(part, found)
        state = [found[t] for t in attrs["_results"]]
        trips += 1
    shapes = [np.array([a.shape for a in kept[i] or [arrays[i]]], "int32") for i in attrs["_loose"]]
    for i in attrs["_loose"]:
        kept[i] = _filled(kept[i])
    stacks = [_stacked(s, t, a) for s, t, a in zip(kept, inner, arrays, strict=False)]
    return [*state, np.array(trips, "int32"), *stacks, *shapes]


def _filled(store: Any) -> Any:
    """Arrays of one rank, with zeros behind the shorter ones."""
    if not store or len({a.ndim for a in store}) > 1:
        return store
    most = np.max([a.shape for a in store], axis=0)
    return [np.pad(a, [(0, n - m) for m, n in zip(a.shape, most, strict=True)]) for a in store]


def _is_read(t: Tensor) -> bool:
    """Whether an op reads it that a run may need: not only the door of a loop that does not."""
    return any(c.type != "Enter" for c in t._consumers)


def _stacked(store: Any, t: Tensor, first: Any) -> Any:
    if not store:
        return np.zeros((0, *first.shape), t.dtype.numpy)
    if any(a.shape != store[0].shape for a in store):
        raise InvalidArgumentError(
            None, t.op, f"the gradient of a loop needs {t.name}, whose shape changes from run to "
            "run: say so by shape_invariants="
        )  # fmt: skip
    return np.stack(store)


define("While", "input*:A", host=_run, infer=_shapes, types=_types)


# the gradient


@RegisterGradient("While")
def _WhileGrad(op: Operation, *dys: Any) -> list[Any]:
    """A loop the other way round: the ops of the body made anew, and their gradients."""
    attrs = op.attrs
    inner, entered, results = attrs["_inner"], attrs["_enter"], attrs["_results"]
    n = len(inner)
    trips = op.outputs[n]
    floats = [i for i, t in enumerate(inner) if t.dtype.is_trainable]
    outside = [i for i, t in enumerate(entered) if t.dtype.is_trainable]
    last = [
        apply("ZerosLike", op.outputs[i], name="zeros_like") if dys[i] is None else dys[i]
        for i in floats
    ]
    sums = [apply("ZerosLike", op.inputs[n + i], name="zeros_like") for i in outside]
    from_kept = {i: dys[n + 1 + i] for i in floats}

    def again(place: Any, *_: Any) -> Any:
        return apply("GreaterEqual", place, 0)

    def step(place: Any, *carried: Any) -> list[Any]:
        context = scope_of(op.graph).flow
        context.again = again_of = Again(op, context, place)
        ys = [again_of.of(results[i]) for i in floats]
        starts = {i: again_of.known[inner[i]] for i in floats if inner[i] in again_of.known}
        ends = {i: again_of.known[entered[i]] for i in outside if entered[i] in again_of.known}
        xs = [*starts.values(), *ends.values()]
        found = gradients(ys, xs, list(carried[: len(floats)])) if xs else []
        through = dict(zip(starts, found))
        beyond = dict(zip(ends, found[len(starts) :]))
        new = []
        for i, y in zip(floats, ys, strict=True):
            g = through.get(i)
            if from_kept[i] is not None:
                extra = _part(op, i, from_kept[i], place)
                g = extra if g is None else apply("AddV2", g, extra)
            new.append(_or_zeros(g, starts.get(i, y)))
        added = [
            total if beyond.get(i) is None else apply("AddV2", total, beyond[i])
            for i, total in zip(outside, carried[len(floats) :], strict=True)
        ]
        return [apply("Sub", place, 1), *new, *added]

    start = [apply("Sub", trips, 1), *last, *sums]
    open_shapes = [
        TensorShape(()),
        *[attrs["_shapes"][i] for i in floats],
        *[t.shape for t in sums],
    ]
    loose = [1 + floats.index(i) for i in attrs["_loose"] if i in floats]
    found = list(_backward_loop(again, step, start, open_shapes, loose))[1:]
    grads: list[Any] = [None] * len(op.inputs)
    for i, g in zip(floats, found[: len(floats)], strict=True):
        grads[i] = g
    for i, g in zip(outside, found[len(floats) :], strict=True):
        grads[n + i] = g
    return grads


def _or_zeros(g: Any, like: Tensor) -> Tensor:
    if g is None:
        return apply("ZerosLike", like, name="zeros_like")
    return g


def _backward_loop(
    cond: Any, body: Any, start: list[Any], shapes: list[Any], loose: list[int]
) -> Any:
    with name_scope("while_grad"):
        first = [convert_to_tensor(v) for v in start]
        open_shapes = [_loose(s) for s in shapes]
        last = _built(cond, body, first, open_shapes, list(first), loose=loose)
        last[0].op._inputs[0].op.attrs["_backward"] = True
        return last


def _loose(shape: TensorShape) -> TensorShape:
    return shape if shape.is_fully_defined() else unknown_shape()


# loops over the first axis


def _lengths(elems: list[Tensor]) -> Any:
    """How many parts there are along the first axis."""
    for t in elems:
        if t.shape.ndims and t.shape[0].value is not None:
            return constant(t.shape[0].value, "int32")
    return apply("Shape", elems[0], out_type="int32")[0]


def _part_of(elems: Any, flat: list[Tensor], i: Any) -> Any:
    """The part of a number, in the structure of elems."""
    return pack_sequence_as(elems, [apply("GatherV2", t, i, 0, batch_dims=0) for t in flat])


def _stacked_in(structure: Any, arrays: list[TensorArray], flat: list[Tensor]) -> Any:
    """All parts that were written, as many as there were to read, in a structure."""
    stacks = [a.stack() for a in arrays]
    n = flat[0].shape[0].value if flat[0].shape.ndims else None
    for t in stacks:
        if t.shape.ndims is not None:
            t.set_shape([n, *t.shape.as_list()[1:]])
    return pack_sequence_as(structure, stacks)


def map_fn(
    fn: Callable[..., Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: Any = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """fn of each part of elems along the first axis, next to each other."""
    if not callable(fn):
        raise TypeError("fn must be callable.")
    flat = [convert_to_tensor(e, name="elem") for e in flatten(elems)]
    with name_scope(name, "map", flat):
        kinds = [t.dtype.base_dtype for t in flat] if dtype is None else [
            as_dtype(d) for d in flatten(dtype)
        ]  # fmt: skip
        shape_of = elems if dtype is None else dtype
        n = _lengths(flat)
        out = [TensorArray(k, n, infer_shape=infer_shape) for k in kinds]

        def step(i: Any, arrays: Any) -> Any:
            values = flatten(fn(_part_of(elems, flat, i)))
            if len(values) != len(arrays):
                raise TypeError(f"fn gave {len(values)} results, dtype says {len(arrays)}")
            values = [convert_to_tensor(v) for v in values]
            return i + 1, [a.write(i, v) for a, v in zip(arrays, values, strict=True)]

        start = (constant(0), out)
        _, arrays = while_loop(lambda i, _: i < n, step, start, back_prop=back_prop)
        return _stacked_in(shape_of, arrays, flat)


def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All values of a = fn(a, part) over the parts of elems along the first axis."""
    if not callable(fn):
        raise TypeError("fn must be callable.")
    flat = [convert_to_tensor(e, name="elem") for e in flatten(elems)]
    with name_scope(name, "scan", flat):
        n = _lengths(flat)
        structure = elems if initializer is None else initializer
        start: Any = (n - 1 if reverse else constant(0)) if initializer is None else None
        if initializer is None:
            first = [convert_to_tensor(v) for v in flatten(_part_of(elems, flat, start))]
        else:
            first = [convert_to_tensor(v) for v in flatten(initializer)]
        out = [TensorArray(t.dtype.base_dtype, n, infer_shape=infer_shape) for t in first]
        if initializer is None:
            out = [a.write(start, t) for a, t in zip(out, first, strict=True)]
        begin = constant(0 if initializer is not None else 1)

        def step(i: Any, held: Any, arrays: Any) -> Any:
            at = n - 1 - i if reverse else i
            new = fn(pack_sequence_as(structure, held), _part_of(elems, flat, at))
            values = [convert_to_tensor(v) for v in flatten(new)]
            return i + 1, values, [a.write(at, v) for a, v in zip(arrays, values, strict=True)]

        found = while_loop(lambda i, *_: i < n, step, (begin, first, out), back_prop=back_prop)
        return _stacked_in(structure, found[2], flat)


def _folded(
    fn: Any, elems: Any, initializer: Any, back_prop: bool, name: Any, default: str, right: bool
) -> Any:
    flat = [convert_to_tensor(e, name="elem") for e in flatten(elems)]
    with name_scope(name, default, flat):
        n = _lengths(flat)

        def part(i: Any) -> Any:
            return _part_of(elems, flat, n - 1 - i if right else i)

        first = part(constant(0)) if initializer is None else initializer
        begin = constant(1 if initializer is None else 0)
        first = map_structure(convert_to_tensor, first)

        def step(i: Any, a: Any) -> Any:
            return i + 1, fn(a, part(i))

        return while_loop(lambda i, a: i < n, step, (begin, first), back_prop=back_prop)[1]


def foldl(
    fn: Any, elems: Any, initializer: Any = None, parallel_iterations: int = 10,
    back_prop: bool = True, swap_memory: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    """The last value of a = fn(a, part) over the parts of elems, from the first."""
    return _folded(fn, elems, initializer, back_prop, name, "foldl", False)


def foldr(
    fn: Any, elems: Any, initializer: Any = None, parallel_iterations: int = 10,
    back_prop: bool = True, swap_memory: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    """The last value of a = fn(a, part) over the parts of elems, from the last."""
    return _folded(fn, elems, initializer, back_prop, name, "foldr", True)
