"""Two forms of one function, run along one input beside the truth: in many digits, or by a form."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import ExecutionError, GraphGradError
from ..compiled import compile
from ..differentiate.gradients import gradients
from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ir.types import Array
from ..ops.base import Constant, apply, constant
from ..ops.reduce.reductions import sum as total_of
from ..ops.sources import placeholder
from .accuracy import SIDE, AccuracyCurve, Axis, Interval, Measured, accuracy_curve
from .identity import RealIdentity
from .many_digits import floats, values
from .shadow import DIGITS, cut_between
from .table import IDENTITIES, OWN

HELD = 0.75
"""What the other inputs are, where nothing is known of them."""
FEW = 64
"""Elements: an array of more is too long to be run in many digits."""
OPEN = 3
"""An open length, where one is needed."""
WEIGHTS = 3
"""Of a sum, which of the directions they are."""
RESHAPED = ("Reshape", "BroadcastTo", "ExpandDims", "Squeeze", "Identity")
SLOW = {"GammaLn", "Digamma", "BetaLn", "LogNdtr", "Erfcx", "PolyGammaDifference"}
"""Op types that mpmath is slow at, and whose terms do not vanish: fewer digits are enough."""
FEWER = 400
"""Digits that are enough where inputs are between 1e-20 and 1e20."""
SIDE_OF_ARRAYS = 45
SIDE_OF_MATRICES = 20
"""Numbers on each side of 0, where each is a run of its own."""


class FormPair(NamedTuple):
    """What was written and what it became, as functions of the same inputs.

    xs      placeholders; of ("N",) where the formula works element by element, whence `each`
    naive   the value, then the gradient with respect to each x; stable, the same
    held    what each x is while another one changes
    by      those of naive and stable that are the truth where they are run in many digits
    """

    xs: Sequence[Tensor]
    naive: Sequence[Tensor]
    stable: Sequence[Tensor]
    held: Sequence[Array]
    each: bool
    by: Sequence[Tensor]

    @property
    def axis(self) -> Axis:
        """That of the dtype."""
        return Axis(self.naive[0].dtype)

    @property
    def key(self) -> Any:
        """Equal for forms that are the same ops of the same inputs, held at the same numbers."""
        place: dict[Tensor, int] = {}
        steps = []
        for node in (self.naive[0].node.graph or Graph()).nodes:
            steps.append((_step(node), tuple([place[t] for t in node.inputs])))
            for t in node.outputs:
                place[t] = len(place)
        held = tuple([(a.shape, a.tobytes()) for a in self.held])
        return tuple(steps), tuple([place[x] for x in self.xs]), self.naive[0].dtype, held


def _step(node: Node) -> Any:
    if isinstance(node.op, Constant):
        return node.op.value.tobytes(), repr(node.outputs[0].type)
    return node.op if node.inputs else (node.type, repr(node.outputs[0].type))


class Along(NamedTuple):
    """A curve, and along what: the place of the input, and how it changes, in words."""

    at: int
    how: str
    curve: AccuracyCurve
    exact: bool


def with_slopes(xs: Sequence[Tensor], y: Tensor) -> list[Tensor]:
    """A value, and its gradients; of an array, those of a sum with weights."""
    lengths = tuple([d for d in y.shape if isinstance(d, int)])
    fixed = bool(lengths) and len(lengths) == len(y.shape)
    weighted = y * constant(direction(lengths, WEIGHTS), y.dtype) if fixed else y
    whole = total_of(weighted) if y.shape else y
    return [y, *gradients(whole, list(xs), unconnected="zero")]


def direction(shape: tuple[int, ...], which: int = 0) -> Array:
    """Numbers between 0.1 and 1, no two the same; of a square, far from singular."""
    count = int(np.prod(shape))
    made = (1 - 0.9 * ((0.618034 * np.arange(count) + 0.23 * which) % 1)).reshape(shape)
    square = len(shape) > 1 and shape[-1] == shape[-2]
    return np.asarray(made + 2 * np.eye(shape[-1])) if square else made


WAYS: tuple[tuple[str, Callable[[Array, Array], Array]], ...] = (
    ("t", lambda t, d: t * d),
    ("t + d", lambda t, d: t + d),
)
"""How an array follows a number t: every element of it is one of t."""


def curves_of(forms: FormPair, most: int = 3) -> list[Along]:
    """The curves along each input, as many as there is room for."""
    made = []
    for at in range(min(len(forms.xs), most)):
        ways = WAYS[:1] if forms.each or not forms.held[at].shape else WAYS
        if len(ways) > 1:
            ways = (
                max(ways, key=lambda way: _lost(_along(forms, at, way[0], way[1], few=True).curve)),
            )
        made.append(_along(forms, at, *ways[0]))
    return made


def _lost(curve: AccuracyCurve) -> float:
    """How many digits what was written lacks of the stable form, all in all."""
    return float(np.nansum(np.maximum(curve.after - curve.before, 0.0)))


Run = Callable[[int, Sequence[Array]], tuple[Sequence[Array], Sequence[Array], Sequence[Array]]]
"""Of the place of an input, and arrays: truth, before and after, each the value and the slope."""


def _along(
    forms: FormPair, at: int, how: str, move: Callable[[Array, Array], Array], few: bool = False
) -> Along:
    """The curve along an input; with few digits the stable form counts as the truth."""
    exact = [not few]

    def run(at: int, arrays: Sequence[Array]) -> Any:
        before, after = (_values(forms.xs, ys, arrays, at) for ys in (forms.naive, forms.stable))
        try:
            truth = after if few else _truth(forms, [forms.by[0], forms.by[1 + at]], arrays)
            if forms.each and not few:
                truth = _past_digits(forms, at, arrays, truth, after)
        except ExecutionError:
            exact[0] = False
            truth = after
        return truth, before, after

    curve = _curve(forms, at, move, run)
    return Along(at, how, curve, exact[0])


def _curve(
    forms: FormPair, at: int, move: Callable[[Array, Array], Array], run: Run
) -> AccuracyCurve:
    others = [float(a.flat[0]) for i, a in enumerate(forms.held) if i != at and a.size]
    dtype = forms.naive[0].dtype

    def measure(t: Array) -> Measured:
        t = np.asarray(t, dtype).astype(float)
        with np.errstate(all="ignore"):
            return _each(forms, at, t, run) if forms.each else _one_by_one(forms, at, t, move, run)

    matrices = any(a.ndim > 1 for a in forms.held)
    side = SIDE if forms.each else SIDE_OF_MATRICES if matrices else SIDE_OF_ARRAYS
    return accuracy_curve(measure, forms.axis, others, side)


def _each(forms: FormPair, at: int, t: Array, run: Run) -> Measured:
    arrays = [np.full(t.shape, a) for a in forms.held]
    arrays[at] = t
    return Measured(*(np.stack(part) for part in run(at, _typed(forms, arrays))))


def _one_by_one(
    forms: FormPair, at: int, t: Array, move: Callable[[Array, Array], Array], run: Run
) -> Measured:
    runs = []
    for number in t:
        arrays = list(forms.held)
        arrays[at] = move(number, direction(arrays[at].shape, at))
        try:
            parts = run(at, _typed(forms, arrays))
        except (np.linalg.LinAlgError, ZeroDivisionError):  # a singular matrix
            runs.append([(math.nan,) * 3] * 2)
            continue
        runs.append([_as_numbers(*each) for each in zip(*parts, strict=True)])
    table = np.array(runs, dtype=float)  # (number, value or slope, form)
    return Measured(*np.moveaxis(table, -1, 0).swapaxes(1, 2))


def _typed(forms: FormPair, arrays: Sequence[Array]) -> list[Array]:
    return [np.asarray(a, x.dtype) for x, a in zip(forms.xs, arrays, strict=True)]


def _values(
    xs: Sequence[Tensor], ys: Sequence[Tensor], arrays: Sequence[Array], at: int
) -> list[Array]:
    """The value and a slope, in float64."""
    given = [np.asarray(a, x.dtype) for x, a in zip(xs, arrays, strict=True)]
    found = _compiled(tuple(xs), (ys[0], ys[1 + at]))(*given)
    return [np.asarray(y).astype(float) for y in found]


def _truth(forms: FormPair, ys: list[Tensor], arrays: Sequence[Array]) -> list[Array]:
    """What ys are, by many digits; more of them for numbers that need more."""
    xs = forms.xs
    if forms.each:
        size = np.abs(np.stack([a.astype(float) for a in arrays]))
        far = ((size > 1e20) | ((size < 1e-20) & (size > 0))).any(0)
        made = [np.empty(far.shape) for _ in ys]
        slow = ys[0].graph is not None and any(n.type in SLOW for n in ys[0].graph.nodes)
        many = (380, 100) if slow else (DIGITS, FEWER)
        for where, digits in zip((far, ~far), many, strict=True):
            found = values(xs, ys, [a[where] for a in arrays], digits)
            for out, y in zip(made, ys, strict=True):
                out[where] = floats(found[y])
        return made
    found = values(xs, ys, arrays, DIGITS)
    return [np.asarray(floats(found[y]), float) for y in ys]


def _past_digits(
    forms: FormPair,
    at: int,
    arrays: Sequence[Array],
    truth: Sequence[Array],
    after: Sequence[Array],
) -> list[Array]:
    """The truth; by the stable form where many digits are too few for what was written.

    As in 1 - exp(-exp(-2000)), which is 0 in 800 digits.
    """
    ends = [
        (np.isinf(t) | (t == 0)) & np.isfinite(a) & (a != 0)
        for t, a in zip(truth, after, strict=True)
    ]
    where = ends[0] | ends[1]
    if not where.any():
        return list(truth)
    some = [a[where] for a in arrays]
    found = _truth(forms, [forms.stable[0], forms.stable[1 + at]], some)
    made = []
    for t, end, y in zip(truth, ends, found, strict=True):
        t = t.copy()
        t[where] = np.where(end[where] & np.isfinite(y), y, t[where])
        made.append(t)
    return made


@cache
def _compiled(xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> Any:
    return compile(list(xs), list(ys), backend="numpy", optimize=False)


def _as_numbers(truth: Array, before: Array, after: Array) -> tuple[float, float, float]:
    """Arrays as numbers that differ by as much as these do, by the greatest element."""
    if truth.ndim == 0:
        return float(truth), float(before), float(after)
    finite = np.where(np.isfinite(truth), truth, 0.0)
    size = float("nan") if np.isnan(truth).any() else float(np.max(np.abs(finite), initial=0.0))
    near = [np.where(a == truth, 0.0, np.abs(a - truth)) for a in (before, after)]
    return size, size - float(np.max(near[0])), size - float(np.max(near[1]))


# --- forms of a site ------------------------------------------------------------------------------


AFFINE = ("Add", "Subtract", "Multiply", "Divide", "Negative")


def moving(inputs: Sequence[Tensor], fixed: Set[Tensor] = frozenset()) -> list[Tensor]:
    """What inputs are a multiple of, or differ from by a number; numbers are left out."""
    found: dict[Tensor, None] = {}
    for x in inputs:
        while (
            x.node.type in AFFINE
            and x not in fixed
            and x.node.region is None
            and x.node.stamp is None
        ):
            variable = [t for t in x.node.inputs if not isinstance(t.node.op, Constant)]
            if len(variable) != 1 or variable[0].shape != x.shape:
                break
            x = variable[0]
        if not isinstance(x.node.op, Constant):
            found[x] = None
    return list(found)


def forms_of_site(
    y: Tensor,
    inputs: Sequence[Tensor],
    known: Mapping[Tensor, Array],
    heal: Callable[[Tensor], Any],
    by_stable: bool = False,
    same: Mapping[Tensor, Tensor] = {},
) -> FormPair | None:
    """What was written between some inputs and y, and what `heal` makes of it.

    by_stable: whether what it makes is the truth. same: what one of the inputs stands for.

    None where that is too long to be run in many digits, or has inputs that are not real numbers.
    """
    if not inputs or not all(x.type.differentiable for x in inputs):
        return None
    graph, xs, end = cut_between(inputs, y, same)
    held = [np.asarray(known[x], float) if x in known else None for x in inputs]
    each = _element_by_element(graph, xs, end)
    try:
        if each is not None:
            scalars = [HELD if a is None or not a.size else float(a.flat[0]) for a in held]
            return _forms(*each, [np.asarray(a) for a in scalars], heal, True, by_stable)
        arrays = [_filled(x.shape, i) if a is None else a for i, (x, a) in enumerate(zip(xs, held))]
        if sum(a.size for a in arrays) > FEW:
            return None
        return _forms(graph, xs, end, arrays, heal, False, by_stable)
    except GraphGradError:
        return None


def _forms(
    graph: Graph,
    xs: Sequence[Tensor],
    y: Tensor,
    held: Sequence[Array],
    heal: Callable[[Tensor], Any],
    each: bool,
    by_stable: bool,
) -> FormPair:
    with graph:
        naive, stable = (with_slopes(xs, t) for t in (y, heal(y)))
    return FormPair(xs, naive, stable, held, each, stable if by_stable else naive)


def _filled(shape: Any, which: int) -> Array:
    return HELD * direction(tuple([d if isinstance(d, int) else OPEN for d in shape]), which)


def _element_by_element(
    graph: Graph, xs: Sequence[Tensor], y: Tensor
) -> tuple[Graph, list[Tensor], Tensor] | None:
    """The same for each element of ("N",), where each is computed for itself."""
    new = Graph()
    made: dict[Tensor, Tensor] = {}
    with new:
        for x in xs:
            made[x] = placeholder(("N",), dtype=x.dtype)
        for node in _between(graph, xs, y):
            inputs = [made[t] for t in node.inputs]
            if isinstance(node.op, Constant):
                (value,) = np.unique(node.op.value)[:1] if node.op.value.size else (0.0,)
                made[node.outputs[0]] = constant(value, node.outputs[0].dtype)
            elif node.op.type in RESHAPED:
                made[node.outputs[0]] = inputs[0]
            elif node.op.elementwise and len(node.outputs) == 1:
                made[node.outputs[0]] = apply(node.op, *inputs)
            else:
                return None
    return new, [made[x] for x in xs], made[y]


def _between(graph: Graph, xs: Sequence[Tensor], y: Tensor) -> list[Node]:
    starts = {x.node for x in xs}
    found: set[Node] = set()
    stack = [y.node]
    while stack:
        node = stack.pop()
        if node in found or node in starts:
            continue
        found.add(node)
        stack += [t.node for t in node.inputs]
    return sorted(found, key=lambda node: node.index)


# --- forms of an identity -------------------------------------------------------------------------


def named(name: str) -> RealIdentity | None:
    """The identity of that name, of the table or of the user's."""
    return next((i for i in (*IDENTITIES, *OWN.values()) if i.name == name), None)


def forms_of_identity(identity: RealIdentity, dtype: Any = "float64") -> FormPair:
    """What an identity rewrites and what that becomes, at the shapes of its arguments."""
    each = not any(identity.shapes)
    with Graph():
        xs = [placeholder(("N",) if each else s, dtype=dtype) for s in identity.shapes]
        naive, stable = (with_slopes(xs, f(*xs)) for f in (identity.naive, identity.stable))
    held = [HELD * (1.0 if each else direction(s, i)) for i, s in enumerate(identity.shapes)]
    return FormPair(xs, naive, stable, [np.asarray(a) for a in held], each, naive)


@cache
def wrong_in(identity: RealIdentity, dtype: Any) -> tuple[Interval, ...]:
    """Where what an identity rewrites is wrong in a dtype, by its stable form in float64.

    Along its one argument; of several, along the first, and only what has no end.
    """
    naive, stable = forms_of_identity(identity, dtype), forms_of_identity(identity)
    low, high = identity.ranges[0]

    def run(at: int, arrays: Sequence[Array]) -> Any:
        before = _values(naive.xs, naive.naive, arrays, at)
        truth = _values(stable.xs, stable.stable, arrays, at)
        t = np.asarray(arrays[at], float)
        beyond = (t <= low) | (t >= high)
        outside = beyond if naive.each else np.asarray(beyond.any())
        known = [np.where(np.abs(y) > naive.axis.most, np.copysign(np.inf, y), y) for y in truth]
        return [np.where(outside, np.nan, y) for y in known], before, known

    curves = [_curve(naive, 0, move, run) for _, move in (WAYS[:1] if naive.each else WAYS)]
    found = max(curves, key=_lost).intervals
    if len(naive.xs) > 1:
        found = [i for i in found if math.isinf(i.start) or math.isinf(i.end)]
    return tuple(found)


def worst_first(found: Sequence[Interval]) -> list[Interval]:
    """Those in which there is no number, or where there are none, all; without an end first."""
    odd = [i for i in found if "infinite" in i.says or "NaN" in i.says] or list(found)
    return sorted(odd, key=lambda i: (math.isfinite(i.start) and math.isfinite(i.end), i.start < 0))


def wrong_words(identity: RealIdentity, dtype: Any, most: int = 3) -> str:
    """What is wrong with what an identity rewrites, and from where in a dtype, the worst first."""
    try:
        found = wrong_in(identity, dtype)
    except GraphGradError:  # an op that does not take the dtype
        found = ()
    spans = [f"x {interval}" for interval in worst_first(found)[:most]]
    if not spans:
        return identity.wrong
    why = re.sub(r" from \|?x\|? = \S+", "", identity.wrong)
    return f"{why}; in {dtype}, {', and '.join(spans)}"
