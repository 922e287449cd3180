"""A tape: derivatives of any order of what NumPy computes at once; no code is graphgrad's.

Every value is an array that is there when it is made, so that Python's own loops and choices are
the control flow, and a program is its runs one after the other. A site, which is one step with a
rule of its own, holds its inside a second time, as hidden values: what its default and its
residuals read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_count = itertools.count()


class Step:
    """What made some values, and how gradients go back through it.

    A step with a rule is a site: `key` names its rule or op type, `inside(*dys)` is its default,
    and `seen` are the outputs that the rule is shown.
    """

    def __init__(self, kind: str, ins: Sequence[Value], arrays: Sequence[Any], pull: Any) -> None:
        self.id = next(_count)
        self.kind, self.ins, self.pull = kind, tuple(ins), pull
        self.key: str | None = None
        self.rule: Any = None
        self.inside: Any = None
        self.outs = self.seen = tuple(Value(np.asarray(a), self) for a in arrays)


class Value:
    """An array and the step that made it; None made what is given."""

    def __init__(self, array: Any, step: Step | None = None) -> None:
        self.array, self.step = np.asarray(array), step
        self.zero = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def ndim(self) -> int:
        return self.array.ndim


def make(kind: str, array: Any, ins: Sequence[Value], pull: Any) -> Value:
    """A step of one output: pull(dy) gives a gradient or None for each input."""
    return Step(kind, ins, [array], lambda dys: pull(dys[0])).outs[0]


def inexact(x: Value) -> bool:
    return x.dtype.kind in "fc"


# --- operations, whose gradients are made of operations ------------------------------------------


def constant(array: Any) -> Value:
    return Value(array)


def like(x: Any, ref: Value) -> Value:
    return x if isinstance(x, Value) else Value(np.asarray(x, ref.dtype))


def sum_to(x: Value, shape: tuple[int, ...]) -> Value:
    while x.ndim > len(shape):
        x = total(x, 0)
    for axis, n in enumerate(shape):
        if n == 1 and x.shape[axis] != 1:
            x = reshape(total(x, axis), (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return x


def add(x: Value, y: Any) -> Value:
    y = like(y, x)
    return make("Add", x.array + y.array, [x, y],
                lambda d: (sum_to(d, x.shape), sum_to(d, y.shape)))  # fmt: skip


def negative(x: Value) -> Value:
    return make("Negative", -x.array, [x], lambda d: (negative(d),))


def subtract(x: Value, y: Any) -> Value:
    return add(x, negative(like(y, x)))


def multiply(x: Value, y: Any) -> Value:
    y = like(y, x)
    return make("Multiply", x.array * y.array, [x, y], lambda d: (
        sum_to(multiply(d, y), x.shape), sum_to(multiply(d, x), y.shape)))  # fmt: skip


def sin(x: Value) -> Value:
    return make("Sin", np.sin(x.array), [x], lambda d: (multiply(d, cos(x)),))


def cos(x: Value) -> Value:
    return make("Cos", np.cos(x.array), [x], lambda d: (negative(multiply(d, sin(x))),))


def tanh(x: Value) -> Value:
    return make("Tanh", np.tanh(x.array), [x], lambda d: _inside(hidden_tanh, x)(d))


def hidden_tanh(x: Value) -> Value:
    y = make("tanh", np.tanh(x.array), [x], lambda d: (
        multiply(d, subtract(Value(np.ones_like(y.array)), multiply(y, y))),))  # fmt: skip
    return y


def exp(x: Value) -> Value:
    y = make("Exp", np.exp(x.array), [x], lambda d: (multiply(d, y),))
    return y


STAMPED = {"Tanh": hidden_tanh, "Exp": exp}
"""The ops on which rules are put, and what their default reads."""


def _inside(op: Callable[[Value], Value], x: Value) -> Callable[[Value], list[Any]]:
    hidden = identity(x)
    y = op(hidden)
    return lambda dy: _gradients([y], [hidden], [dy])


def identity(x: Value) -> Value:
    return make("Identity", x.array, [x], lambda d: (d,))


def stop_gradient(x: Value) -> Value:
    return Value(x.array)


def cast(x: Value, dtype: Any) -> Value:
    was, array = x.dtype, x.array
    if was.kind == "c" and np.dtype(dtype).kind == "f":
        array = array.real
    return make("Cast", array.astype(dtype), [x],
                lambda d: (cast(d, was) if inexact(x) else None,))  # fmt: skip


def real(x: Value) -> Value:
    return cast(x, "float64")


def imag(x: Value) -> Value:
    return make("Imag", x.array.imag, [x], lambda d: (multiply(cast(d, x.dtype), -1j),))


def total(x: Value, axis: int | None = None) -> Value:
    shape = x.shape
    kept = () if axis is None else (*shape[:axis], 1, *shape[axis + 1 :])
    return make("Sum", np.sum(x.array, axis=axis, dtype=x.dtype), [x],
                lambda d: (broadcast(reshape(d, kept), shape),))  # fmt: skip


def broadcast(x: Value, shape: tuple[int, ...]) -> Value:
    return make("Broadcast", np.broadcast_to(x.array, shape), [x],
                lambda d: (sum_to(d, x.shape),))  # fmt: skip


def reshape(x: Value, shape: tuple[int, ...]) -> Value:
    was = x.shape
    return make("Reshape", x.array.reshape(shape), [x], lambda d: (reshape(d, was),))


def transpose(x: Value, axes: Sequence[int]) -> Value:
    back = tuple(int(i) for i in np.argsort(axes))
    return make("Transpose", x.array.transpose(axes), [x], lambda d: (transpose(d, back),))


def product(x: Value, y: Value) -> Value:
    """Of two matrices."""
    return make("MatMul", x.array @ y.array, [x, y], lambda d: (
        product(d, transpose(y, (1, 0))), product(transpose(x, (1, 0)), d)))  # fmt: skip


def pick(x: Value, key: Any) -> Value:
    """x[key]; no element is there twice."""
    return make("Slice", x.array[key], [x], lambda d: (put(d, key, x.shape),))


def put(x: Value, key: Any, shape: tuple[int, ...]) -> Value:
    array = np.zeros(shape, x.dtype)
    array[key] = x.array
    return make("Put", array, [x], lambda d: (pick(d, key),))


def stack(xs: Sequence[Value], axis: int = 0) -> Value:
    here = (slice(None),) * axis
    return make("Stack", np.stack([x.array for x in xs], axis), xs,
                lambda d: [pick(d, (*here, i)) for i in range(len(xs))])  # fmt: skip


def cumsum(x: Value) -> Value:
    """Along the first axis."""
    return make("Cumsum", np.cumsum(x.array, 0, dtype=x.dtype), [x],
                lambda d: (flip(cumsum(flip(d))),))  # fmt: skip


def flip(x: Value) -> Value:
    return make("Flip", x.array[::-1], [x], lambda d: (flip(d),))


def where(p: Value, x: Value, y: Value) -> Value:
    return make("Where", np.where(p.array, x.array, y.array), [p, x, y], lambda d: (
        None, where(p, d, Value(np.zeros_like(d.array))),
        where(p, Value(np.zeros_like(d.array)), d)))  # fmt: skip


def clip(x: Value, low: float, high: float) -> Value:
    inside = Value((x.array >= low) & (x.array <= high))
    zero = Value(np.zeros_like(x.array))
    return make("Clip", np.clip(x.array, low, high), [x], lambda d: (where(inside, d, zero),))


# --- sites ---------------------------------------------------------------------------------------


class Default:
    """In place of a gradient: the one that would be without the rule."""


class Site:
    """What a rule is called with."""

    def __init__(self, inputs: Any, outputs: Any, default: Any) -> None:
        self.inputs, self.outputs, self.default = inputs, outputs, default


def site(
    inside: Callable[..., list[Value]],
    ins: Sequence[Value],
    rule: Any,
    through: bool = False,
    declared: bool = False,
) -> Step:
    """An inside as one step with a rule: rule(site, *dys) as in graphgrad.

    declared  the inputs are declared: each counts as reaching every output (S21)
    """
    hidden = [identity(x) for x in ins]
    made = [identity(y) for y in inside(*hidden)]

    def default(*dys: Any) -> list[Value | None]:
        pairs = [(y, d) for y, d in zip(made, dys, strict=True) if inexact(y) and d is not None]
        return _gradients([y for y, _ in pairs], hidden, [d for _, d in pairs])

    step = Step("Site", ins, [y.array for y in made], lambda dys: default(*dys))

    def reached(*dys: Any) -> list[Value | None]:
        dxs = zip(default(*dys), ins, strict=True)
        return [Value(np.zeros_like(x.array)) if inexact(x) and (d is None or d.zero) else d
                for d, x in dxs]  # fmt: skip

    step.rule, step.inside = rule, reached if declared else default
    if through:
        step.seen = tuple(made)
    return step


def _answered(step: Step, rules: Sequence[Any], dys: Sequence[Any]) -> list[Any]:
    """What the first of some rules gives; its default is what the others give, or the inside."""
    if step.inside is None:
        step.inside = _inside(STAMPED[step.kind], step.ins[0])
    if not rules:
        return list(step.inside(*dys))

    def default(*dys: Any) -> list[Any]:
        return _answered(step, rules[1:], dys)

    dxs = list(rules[0](Site(step.ins, step.seen, default), *dys))
    if any(d is Default for d in dxs):
        plain = default(*dys)
        dxs = [p if d is Default else d for d, p in zip(dxs, plain, strict=True)]
    return dxs


def zeros(x: Value) -> Value:
    """A structural zero."""
    zero = Value(np.zeros_like(x.array))
    zero.zero = True
    return zero


# --- derivatives ---------------------------------------------------------------------------------


_chosen: dict[str | None, Any] | None = {}
"""What the call that is running chose: rules by key, where None is the inside; None: no rules."""


def gradients(
    ys: Sequence[Value],
    xs: Sequence[Value],
    dys: Sequence[Value],
    stops: Sequence[Value] = (),
    chosen: dict[str | None, Any] | None = None,
    plain: bool = False,
) -> list[Any]:
    """The gradient of each x, None where nothing flows."""
    global _chosen
    before, _chosen = _chosen, None if plain else chosen or {}
    try:
        return _gradients(ys, xs, dys, stops)
    finally:
        _chosen = before


def _gradients(
    ys: Sequence[Value], xs: Sequence[Value], dys: Sequence[Any], stops: Sequence[Value] = ()
) -> list[Any]:
    steps = _live(ys, xs)
    found: dict[int, Value] = {}
    wanted, stopped = {id(x) for x in xs}, {id(x) for x in stops}

    def arrive(x: Value, d: Value) -> None:
        if x.step in steps or id(x) in wanted:
            found[id(x)] = add(found[id(x)], d) if id(x) in found else d

    for y, d in zip(ys, dys, strict=True):
        arrive(y, d)
    for step in sorted(steps, key=lambda s: -s.id):
        here = [None if id(y) in stopped else found.get(id(y)) for y in step.outs]
        if all(d is None for d in here):
            continue
        for x, d in zip(step.ins, _pulled(step, here), strict=True):
            if d is not None and not d.zero and inexact(x):
                assert d.shape == x.shape, (step.kind, d.shape, x.shape)
                arrive(x, d)
    return [found.get(id(x)) for x in xs]


def _pulled(step: Step, dys: list[Any]) -> list[Any]:
    marked = [] if step.rule is None else [step.rule]
    if _chosen is None:
        rules = []
    elif step.key in _chosen:
        first = _chosen[step.key]
        rules = [] if first is None else [first, *marked]
    else:
        rules = marked
    if not rules and not marked:
        return list(step.pull(dys))
    whole = [zeros(y) if d is None and inexact(y) else d
             for y, d in zip(step.outs, dys, strict=True)]  # fmt: skip
    return _answered(step, rules, whole)


def _live(ys: Sequence[Value], xs: Sequence[Value]) -> set[Step]:
    """The steps between xs and ys."""
    seen: dict[int, Step] = {}
    todo = [y.step for y in ys]
    while todo:
        step = todo.pop()
        if step is not None and step.id not in seen:
            seen[step.id] = step
            todo += [x.step for x in step.ins]
    wanted = {id(x) for x in xs}
    live: set[Step] = set()
    for _, step in sorted(seen.items()):
        if any(id(x) in wanted or x.step in live for x in step.ins):
            live.add(step)
    return live
