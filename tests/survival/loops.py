"""What overrides mean, spelled out in NumPy: the other side of `chains.py`.

A tape of float64 arrays whose derivatives are entries of the tape again, so that derivatives of
derivatives need nothing more. It knows nothing of graphgrad. A site is the group of entries that
leave it (`outs`), what they are inside (`inner`), what it reads outside (`inputs`) and the same
inside (`ins`): who reads an entry of `outs` meets the rule, who reads one of `inner` the inside.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_count = itertools.count()
sites: list[Site] = []  # in order of building


class Entry:
    """A value, what it was computed from, and back(dy): one gradient (or None) per parent."""

    __slots__ = ("back", "id", "parents", "site", "value", "zero")

    def __init__(self, value: Any, parents: Sequence[Entry] = (), back: Any = None) -> None:
        self.value = np.asarray(value, np.float64)
        self.parents, self.back, self.id = tuple(parents), back, next(_count)
        self.site: Site | None = None
        self.zero = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def __add__(self, other: Any) -> Entry:
        x, y = _meet(self, other)
        return Entry(x.value + y.value, (x, y), lambda d: (d, d))

    def __mul__(self, other: Any) -> Entry:
        x, y = _meet(self, other)
        return Entry(x.value * y.value, (x, y), lambda d: (d * y, d * x))

    def __truediv__(self, other: Any) -> Entry:
        x, y = _meet(self, other)
        return Entry(x.value / y.value, (x, y), lambda d: (d / y, d * x / (y * y) * -1.0))

    def __sub__(self, other: Any) -> Entry:
        return self + entry(other) * -1.0

    def __rsub__(self, other: Any) -> Entry:
        return self * -1.0 + other

    def __rtruediv__(self, other: Any) -> Entry:
        return entry(other) / self

    def __neg__(self) -> Entry:
        return self * -1.0

    def __matmul__(self, y: Entry) -> Entry:
        x = self
        return Entry(x.value @ y.value, (x, y), lambda d: (d @ transpose(y), transpose(x) @ d))

    __radd__, __rmul__ = __add__, __mul__


def entry(x: Any) -> Entry:
    return x if isinstance(x, Entry) else Entry(x)


def _meet(x: Any, y: Any) -> tuple[Entry, Entry]:
    x, y = entry(x), entry(y)
    shape = np.broadcast_shapes(x.shape, y.shape)
    return broadcast_to(x, shape), broadcast_to(y, shape)


def broadcast_to(x: Entry, shape: Any) -> Entry:
    if x.shape == tuple(shape):
        return x
    return Entry(np.broadcast_to(x.value, shape), (x,), lambda d: (_unbroadcast(d, x.shape),))


def _unbroadcast(d: Entry, shape: tuple[int, ...]) -> Entry:
    lead = d.value.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 and d.shape[lead + i] != 1
    )
    return reshape(sum(d, axes), shape)


def sum(x: Entry, axis: Any = None) -> Entry:
    axes = tuple(range(x.value.ndim)) if axis is None else np.atleast_1d(axis).tolist()
    kept = [1 if i in axes else n for i, n in enumerate(x.shape)]
    return Entry(
        x.value.sum(tuple(axes)), (x,), lambda d: (broadcast_to(reshape(d, kept), x.shape),)
    )


def reshape(x: Entry, shape: Any) -> Entry:
    return Entry(x.value.reshape(shape), (x,), lambda d: (reshape(d, x.shape),))


def transpose(x: Entry) -> Entry:
    return Entry(x.value.T, (x,), lambda d: (transpose(d),))


def exp(x: Entry) -> Entry:
    y = Entry(np.exp(x.value), (x,))
    y.back = lambda d: (d * y,)
    return y


def tanh(x: Entry) -> Entry:
    return Entry(np.tanh(x.value), (x,), lambda d: (d * tanh_slope(x),))


def tanh_slope(x: Entry) -> Entry:
    """1 / cosh(x)**2: made of x, so that the rule of a tanh says nothing about it."""
    y = Entry(1.0 / np.cosh(x.value) ** 2, (x,))
    y.back = lambda d: (d * (y * (-2.0 * tanh(x))),)
    return y


def sqrt(x: Entry) -> Entry:
    y = Entry(np.sqrt(x.value), (x,))
    y.back = lambda d: (d * 0.5 / y,)
    return y


def sin(x: Entry) -> Entry:
    return Entry(np.sin(x.value), (x,), lambda d: (d * cos(x),))


def cos(x: Entry) -> Entry:
    return Entry(np.cos(x.value), (x,), lambda d: (d * sin(x) * -1.0,))


def abs(x: Entry) -> Entry:
    return Entry(np.abs(x.value), (x,), lambda d: (d * np.sign(x.value),))


def where(mask: Any, x: Any, y: Any) -> Entry:
    x, y = _meet(x, y)
    part = np.asarray(mask, np.float64)
    return Entry(np.where(mask, x.value, y.value), (x, y), lambda d: (d * part, d * (1.0 - part)))


def take(x: Entry, index: int, axis: int) -> Entry:
    n = x.shape[axis]
    return Entry(x.value.take(index, axis), (x,), lambda d: (put(d, index, axis, n),))


def put(x: Entry, index: int, axis: int, n: int) -> Entry:
    """Zeros but for x at the index: the adjoint of take."""
    value = np.zeros((n, *x.shape))
    value[index] = x.value
    return Entry(np.moveaxis(value, 0, axis), (x,), lambda d: (take(d, index, axis),))


def stack(xs: Sequence[Entry], axis: int) -> Entry:
    return Entry(
        np.stack([x.value for x in xs], axis),
        xs,
        lambda d: tuple(take(d, i, axis) for i in range(len(xs))),
    )


def nothing(like: Entry) -> Entry:
    """A structural zero."""
    zero = Entry(np.zeros(like.shape))
    zero.zero = True
    return zero


def is_zero(x: Entry) -> bool:
    return x.zero


def inside(x: Entry) -> Entry:
    """x as it is read inside a site."""
    return Entry(x.value, (x,), lambda d: (d,))


class Site:
    """answer(view, *dys) -> one gradient per input; None: no rule, the inside shows through."""

    def __init__(
        self, inputs: Any, ins: Any, inner: Any, answer: Any, key: Any, order: str = "again"
    ) -> None:
        self.inputs, self.ins, self.inner = list(inputs), list(ins), list(inner)
        self.answer = self.first = answer
        self.key, self.order = key, order
        self.outs = [Entry(y.value, (y,), lambda d: (d,)) for y in inner]
        for out in self.outs:
            out.site = self
        self.stamp: Callable[[Entry], Entry] | None = None
        self.born = next(_count)
        sites.append(self)


class View:
    """What a rule is given."""

    def __init__(self, site: Site, default: Any, own: Any, choose: Any) -> None:
        self.inputs, self.default, self.own, self.choose = site.inputs, default, own, choose
        self.outputs = site.outs if site.order == "again" else site.inner


def stamped(op: Callable[[Entry], Entry], x: Entry, answer: Any, key: Any) -> Entry:
    """An op that has a rule, or may get one."""
    seen = inside(x)
    site = Site([x], [seen], [op(seen)], answer, key)
    site.stamp = op
    (out,) = site.outs
    out.parents, out.back = (x,), _BACK[op](x, out)  # while unmarked it is an op like any other
    return out


_BACK: dict[Any, Any] = {
    tanh: lambda x, y: lambda d: (d * tanh_slope(x),),
    exp: lambda x, y: lambda d: (d * y,),
    sin: lambda x, y: lambda d: (d * cos(x),),
}


Choose = Callable[[Site, Any], Any]  # the answer of a site in this call


def as_marked(site: Site, answer: Any) -> Any:
    return answer


def pull(ys: Any, xs: Any, dys: Any, choose: Choose = as_marked) -> list[Entry | None]:
    """The gradients of ys with respect to xs, which do not depend on one another."""
    stops = {x.id for x in xs}
    answers: dict[Site, Any] = {}
    alive = _alive(ys, stops, choose, answers)
    grads: dict[int, Entry] = {}
    queue: list[tuple[int, Entry]] = []

    def add(x: Entry, dx: Entry | None) -> None:
        if dx is None or dx.zero or x.id not in alive:
            return
        assert dx.shape == x.shape, (dx.shape, x.shape)
        if x.id not in grads:
            heapq.heappush(queue, (-x.id, x))
        grads[x.id] = grads[x.id] + dx if x.id in grads else dx

    for y, dy in zip(ys, dys, strict=True):
        add(y, dy)
    done: set[Site] = set()
    while queue:
        _, node = heapq.heappop(queue)
        if node.id in stops:
            continue
        site = node.site
        if site is None or answers[site] is None:
            for x, dx in zip(node.parents, _own(node, grads[node.id]), strict=True):
                add(x, dx)
        elif site not in done:
            done.add(site)
            given = [grads.get(y.id) or nothing(y) for y in site.outs]
            for x, dx in zip(site.inputs, _ask(site, answers[site], given, choose), strict=True):
                add(x, dx)
    return [grads.get(x.id) for x in xs]


def _own(node: Entry, dy: Entry) -> Sequence[Entry | None]:
    back: Any = node.back
    dxs: Sequence[Entry | None] = back(dy)
    return dxs


def _ask(site: Site, answer: Any, dys: Sequence[Entry], choose: Choose) -> Any:
    def own(*dys: Entry) -> list[Entry]:
        dxs = pull(site.inner, site.ins, dys, choose)
        return [nothing(x) if dx is None else dx for x, dx in zip(site.inputs, dxs, strict=True)]

    def marked(*dys: Entry) -> Any:
        return site.answer(View(site, own, own, choose), *dys)

    below = own if site.answer is None or answer is site.answer else marked
    return answer(View(site, below, own, choose), *dys)


def _alive(ys: Any, stops: set[int], choose: Choose, answers: dict[Site, Any]) -> set[int]:
    """The entries on the way from ys that lead to a stop."""
    parents: dict[int, list[int]] = {}
    todo = list(ys)
    while todo:
        node = todo.pop()
        if node.id in parents:
            continue
        before: Sequence[Entry] = () if node.id in stops else node.parents
        if node.site is not None and node.id not in stops:
            site = node.site
            if site not in answers:
                answers[site] = choose(site, site.answer)
            if answers[site] is not None:
                before = site.inputs
        parents[node.id] = [x.id for x in before]
        todo.extend(before)
    alive = set(stops)
    for node in sorted(parents):
        if any(x in alive for x in parents[node]):
            alive.add(node)
    return alive


def push(ys: Any, xs: Any, ts: Any) -> list[Entry | None]:
    """How ys move along ts: the transpose of pull, which has to be linear in its dys."""
    us = [Entry(np.zeros(y.shape)) for y in ys]
    dxs = pull(ys, xs, us)
    some = [(dx, t) for dx, t in zip(dxs, ts, strict=True) if dx is not None]
    return pull([dx for dx, _ in some], us, [t for _, t in some])
