"""Chains of transforms over random programs with overrides, against loops over plain arrays.

A function is plain data that is read twice: by `real`, which builds it with graphgrad, and by
`plain`, which computes it on the tape of `loops.py`, where a site is an entry with a rule, `vmap`
a loop, and a journey nothing at all. Both then differentiate, to first and second order.

    python -m tests.survival.chains --count 20000 --seed 0

prints the seeds whose numbers differ, and counts what agreed and what was refused, by message.
"""

from __future__ import annotations

import argparse
import collections
import copy
import pickle
import random
import re
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from types import SimpleNamespace
from typing import Any

import numpy as np

import graphgrad as gg

from . import loops
from .transforms import through_file

Shape = tuple[int, ...]
Shapes = tuple[Shape, ...]
NAMES: dict[str, Any] = {}  # the rules of `plain` by name, as they stand now
STAMPS: dict[str, Any] = {"Tanh": loops.tanh, "Exp": loops.exp}


# -- rules: one text for both sides -----------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    kind: str
    k: float = 1.5
    name: str | None = None  # registered, else given as it is
    order: str = "again"


REAL = SimpleNamespace(sum=gg.sum, abs=gg.abs, sqrt=gg.sqrt, sin=gg.sin, is_zero=gg.is_zero)
PLAIN = SimpleNamespace(
    sum=loops.sum, abs=loops.abs, sqrt=loops.sqrt, sin=loops.sin, is_zero=loops.is_zero
)
BY_DEFAULT = ("scale", "absolute", "norm", "mapping", "entry", "partial")
BY_READING = ("spread", "inputs", "outputs", "outside", "inside", "square", "affine", "zeros")
NOT_LINEAR = ("absolute", "norm", "square", "affine", "zeros")
ELEMENTWISE = ("scale", "mapping", "entry")


def answer(rule: Rule, m: Any, site: Any, dys: Sequence[Any], kept: Any) -> list[Any]:
    """One gradient for each floating input; the string "DEFAULT" stands for gg.DEFAULT."""
    k, xs = rule.k, site.inputs
    if rule.kind in ("scale", "mapping"):
        return [k * dx for dx in site.default(*dys)]
    if rule.kind == "absolute":
        return [k * dx * m.abs(dx) for dx in site.default(*dys)]
    if rule.kind == "norm":
        return [dx / (1.0 + m.sqrt(m.sum(dx * dx) + 0.1)) for dx in site.default(*dys)]
    if rule.kind == "entry":
        return ["DEFAULT" for _ in xs]
    if rule.kind == "partial":
        first, *others = site.default(*dys)
        return [k * first, *("DEFAULT" for _ in others)]
    total = 0.0
    for dy in dys:
        total = total + (0.5 if rule.kind == "zeros" and m.is_zero(dy) else k * m.sum(dy))
    if rule.kind == "inputs":
        return [total * m.sin(x) for x in xs]
    if rule.kind == "outputs":
        for y in site.outputs:
            total = total * (1.0 + 0.1 * m.sum(y))
    if rule.kind in ("outside", "inside"):
        total = total * m.sum(m.sin(kept))
    if rule.kind == "square":
        total = total * m.abs(total) * 0.1
    if rule.kind == "affine":
        return [total + x * 0.3 for x in xs]
    return [_full(total, x) for x in xs]


def _full(total: Any, x: Any) -> Any:
    return total * np.ones(x.shape)


def floating(xs: Any) -> list[Any]:
    return [x for x in xs if x is not None and x.dtype.kind == "f"]


def real_rule(rule: Rule, kept: Any = None) -> Any:
    """The function, or the name under which it is registered."""

    def fn(site: Any, *dys: Any) -> Any:
        view = SimpleNamespace(
            inputs=floating(site.inputs),
            outputs=[] if rule.kind != "outputs" else floating(site.outputs),
            default=lambda *_: [
                dx for x, dx in zip(site.inputs, site.default(*dys)) if x.dtype.kind == "f"
            ],
        )
        dxs = answer(rule, REAL, view, [d for d in dys if d is not None], kept)
        found = [gg.DEFAULT if isinstance(dx, str) else dx for dx in dxs]
        if rule.kind == "mapping":
            return dict(zip(view.inputs, found, strict=True))
        rest = iter(found)
        return [next(rest) if x.dtype.kind == "f" else gg.NO_GRAD for x in site.inputs]

    if rule.name is None:
        return fn
    gg.register_gradient(rule.name, replace=True)(fn)
    return rule.name


def plain_rule(rule: Rule, kept: Any = None) -> Any:
    def fn(site: Any, *dys: Any) -> Any:
        dxs = answer(rule, PLAIN, site, dys, kept)
        own = site.default(*dys) if "DEFAULT" in [d for d in dxs if isinstance(d, str)] else dxs
        return [d if isinstance(dx, str) else dx for dx, d in zip(dxs, own, strict=True)]

    if rule.name is None:
        return fn
    NAMES[rule.name] = fn
    return by_name(rule.name)


def by_name(name: str) -> Any:
    def fn(site: Any, *dys: Any) -> Any:
        return NAMES[name](site, *dys)

    fn.named = name  # type: ignore[attr-defined]
    return fn


# -- functions --------------------------------------------------------------------------------


@dataclass
class Function:
    """Float64 arrays of the shapes `takes` to float64 arrays of the shapes `gives`."""

    takes: Shapes = field(init=False)
    gives: Shapes = field(init=False)
    reads: bool = field(init=False, default=False)  # the captured placeholder

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        raise NotImplementedError

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        raise NotImplementedError


class Env:
    """What functions capture (a placeholder, a constant), and on the plain side what is open."""

    def __init__(self, captured: Any, constant: Any, maps: dict[str, Any] | None = None) -> None:
        self.captured, self.constant, self.maps = captured, constant, maps or {}


CONSTANT = 0.8


@dataclass
class Program(Function):
    """Steps on a growing list of values: (op, arguments, parameter)."""

    takes: Shapes
    steps: list[tuple[str, tuple[int, ...], Any]]
    results: list[int]

    def __post_init__(self) -> None:
        xs = [loops.Entry(np.ones(s)) for s in self.takes]
        inner = [p for op, _, p in self.steps if op == "call"]
        self.reads = any(op == "captured" for op, *_ in self.steps) or any(f.reads for f in inner)
        self.gives = tuple(y.shape for y in self.plain(xs, Env(loops.entry(1.0), loops.entry(1.0))))

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        values = list(xs)
        for op, at, p in self.steps:
            args = [values[i] for i in at]
            values.extend(p.real(args, env) if op == "call" else [_real_op(op, args, p, env)])
        return [values[i] * 1.0 for i in self.results]

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        values = list(xs)
        for op, at, p in self.steps:
            args = [values[i] for i in at]
            values.extend(p.plain(args, env) if op == "call" else [_plain_op(op, args, p, env)])
        return [values[i] * 1.0 for i in self.results]


def _real_op(op: str, xs: list[Any], p: Any, env: Env) -> Any:
    match op:
        case "Tanh":
            return gg.tanh(xs[0])
        case "Exp":
            return gg.exp(0.3 * xs[0])
        case "sin":
            return gg.sin(xs[0])
        case "add":
            return xs[0] + xs[1]
        case "mul":
            return xs[0] * xs[1]
        case "div":
            return xs[0] / (1.0 + xs[1] * xs[1])
        case "matmul":
            return xs[0] @ gg.transpose(xs[1])
        case "sum":
            return gg.sum(xs[0], axis=p)
        case "reshape":
            return gg.reshape(xs[0], p)
        case "where":
            return gg.where(xs[0] > 0.1, xs[0] * xs[0], xs[1])
        case "integer":
            n = (xs[0] > 0.0).astype("int64")
            return gg.where(n > 0, xs[1], 0.5 * xs[1])
        case "array":
            return xs[0] + np.arange(xs[0].size).reshape(xs[0].shape) * 0.1
        case "captured":
            return xs[0] * env.captured
        case "constant":
            return xs[0] * env.constant
        case "fit":
            return gg.sum(xs[0]) * np.ones(p) if xs[0].shape != p else xs[0] * 1.0
    raise AssertionError(op)


def _plain_op(op: str, xs: list[Any], p: Any, env: Env) -> Any:
    match op:
        case "Tanh":
            return loops.stamped(loops.tanh, xs[0], env.maps.get(op), op)
        case "Exp":
            return loops.stamped(loops.exp, 0.3 * xs[0], env.maps.get(op), op)
        case "sin":
            return loops.sin(xs[0])
        case "add":
            return xs[0] + xs[1]
        case "mul":
            return xs[0] * xs[1]
        case "div":
            return xs[0] / (1.0 + xs[1] * xs[1])
        case "matmul":
            return xs[0] @ loops.transpose(xs[1])
        case "sum":
            return loops.sum(xs[0], p)
        case "reshape":
            return loops.reshape(xs[0], p)
        case "where":
            return loops.where(xs[0].value > 0.1, xs[0] * xs[0], xs[1])
        case "integer":
            return loops.where(xs[0].value > 0.0, xs[1], 0.5 * xs[1])
        case "array":
            return xs[0] + np.arange(xs[0].value.size).reshape(xs[0].shape) * 0.1
        case "captured":
            return xs[0] * env.captured
        case "constant":
            return xs[0] * env.constant
        case "fit":
            return loops.sum(xs[0]) * np.ones(p) if xs[0].shape != p else xs[0] * 1.0
    raise AssertionError(op)


@dataclass
class Wrapped(Function):
    """A function around another, with its arguments and results unless told otherwise."""

    f: Function

    def __post_init__(self) -> None:
        self.takes, self.gives, self.reads = self.f.takes, self.f.gives, self.f.reads


def _enter(xs: list[Any], env: Env, reads: bool) -> tuple[list[Any], list[Any], Env]:
    """What a site reads, the same seen from inside, and what is captured there."""
    inputs = [*xs, env.captured] if reads else list(xs)
    ins = [loops.inside(x) for x in inputs]
    return inputs, ins, Env(ins[-1] if reads else env.captured, env.constant, env.maps)


@dataclass
class Region(Wrapped):
    """`with override_gradient`; `declared` pins the boundary; `side` returns an integer too."""

    rule: Rule
    declared: bool = False
    side: bool = False

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        kept: list[Any] = [gg.sin(gg.sum(xs[0])) if self.rule.kind == "outside" else None]
        holder = _Holder(self.rule, kept)
        inputs = ([*xs, env.captured] if self.f.reads else xs) if self.declared else None
        n = None
        with gg.override_gradient(holder.real(), inputs=inputs, order=self.rule.order) as region:
            hs = self.f.real(xs, env)
            if self.rule.kind == "inside":
                kept[0] = hs[0]
            ys = [h * 1.0 for h in hs]
            if self.side:
                n = (hs[0] > 0.0).astype("int64")
            if self.declared:
                region.declare(outputs=ys if n is None else [*ys, n])
        if n is not None:
            ys[0] = gg.where(n > 0, ys[0] * 1.5, ys[0])
        return ys

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        kept: list[Any] = [loops.sin(loops.sum(xs[0])) if self.rule.kind == "outside" else None]
        inputs, ins, within = _enter(xs, env, self.f.reads)
        hs = self.f.plain(ins[: len(xs)], within)
        if self.rule.kind == "inside":
            kept[0] = hs[0]
        fn = _Holder(self.rule, kept).plain()
        site = loops.Site(inputs, ins, [h * 1.0 for h in hs], fn, self.rule.name, self.rule.order)
        ys = list(site.outs)
        if self.side:
            ys[0] = loops.where(hs[0].value > 0.0, ys[0] * 1.5, ys[0])
        return ys


class _Holder:
    """A rule that reads what is known only later."""

    def __init__(self, rule: Rule, kept: list[Any]) -> None:
        self.rule, self.kept = rule, kept

    def real(self) -> Any:
        if self.rule.kind not in ("outside", "inside"):
            return real_rule(self.rule)
        kept = self.kept
        return lambda site, *dys: real_rule(self.rule, kept[0])(site, *dys)

    def plain(self) -> Any:
        if self.rule.kind not in ("outside", "inside"):
            return plain_rule(self.rule)
        kept = self.kept
        return lambda site, *dys: plain_rule(self.rule, kept[0])(site, *dys)


@dataclass
class Custom(Wrapped):
    """`custom_gradient`, whose grad_fn reads values of the inside; `second` adds a second rule."""

    rule: Rule
    second: bool = False
    variable: bool = False

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        outer = gg.sin(gg.sum(xs[0]))
        v = gg.variable(np.array(0.7)) if self.variable else None

        @gg.custom_gradient
        def f(*xs: Any) -> Any:
            hs = self.f.real(list(xs), env)
            if v is not None:
                hs = [h * v for h in hs]
            read = [*xs, env.captured] if self.f.reads else list(xs)
            kept = outer if self.rule.kind == "outside" else hs[0]

            def grad_fn(*dys: Any, variables: Any = None) -> Any:
                view = SimpleNamespace(inputs=read, outputs=hs)
                dxs: Any = answer(self.rule, REAL, view, dys, kept)
                if self.second:
                    return dxs, lambda *dds: [_full(gg.sum(dds[0]), x) * 0.3 for x in read]
                if self.f.reads:
                    dxs = dict(zip(read, dxs, strict=True))
                return dxs if variables is None else (dxs, [w * 0.0 for w in variables])

            return tuple(hs), grad_fn

        return list(f(*xs))

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        outer = loops.sin(loops.sum(xs[0]))
        inputs, ins, within = _enter(xs, env, self.f.reads)
        hs = self.f.plain(ins[: len(xs)], within)
        if self.variable:
            hs = [h * 0.7 for h in hs]
        kept = outer if self.rule.kind == "outside" else hs[0]

        def grad_fn(site: Any, *dys: Any) -> Any:
            view = SimpleNamespace(inputs=inputs, outputs=hs)
            if not self.second:
                return answer(self.rule, PLAIN, view, dys, kept)
            return _second(inputs, dys, lambda ds: answer(self.rule, PLAIN, view, ds, kept))

        return list(loops.Site(inputs, ins, hs, grad_fn, None).outs)


def _second(xs: list[Any], dys: Any, rule: Any) -> Any:
    """What a rule built, as a site of its own: by a second rule for xs, by itself for dys."""
    seen = [loops.inside(d) for d in dys]
    for d, dy in zip(seen, dys, strict=True):
        d.zero = dy.zero
    dxs = rule(seen)

    def again(site: Any, *dds: Any) -> Any:
        by_dys = loops.pull(dxs, seen, dds)
        zeros = [loops.nothing(d) if e is None else e for d, e in zip(dys, by_dys, strict=True)]
        return [*(_full(loops.sum(dds[0]), x) * 0.3 for x in xs), *zeros]

    ins = [*(loops.inside(x) for x in xs), *seen]
    return loops.Site([*xs, *dys], ins, dxs, again, None).outs


@dataclass
class Map(Wrapped):
    """`gradient_override_map` around the building."""

    rules: dict[str, Rule]

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        with gg.gradient_override_map(
            {t: real_rule(r) for t, r in self.rules.items()}, allow_empty=True
        ):
            return self.f.real(xs, env)

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        maps = {**env.maps, **{t: plain_rule(r) for t, r in self.rules.items()}}
        return self.f.plain(xs, Env(env.captured, env.constant, maps))


@dataclass
class Vmap(Wrapped):
    axes: tuple[int | None, ...]
    size: int
    out: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.takes = tuple(
            s if a is None else (*s[:a], self.size, *s[a:])
            for s, a in zip(self.f.takes, self.axes, strict=True)
        )
        self.gives = tuple((*s[: self.out], self.size, *s[self.out :]) for s in self.f.gives)

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        def one(*xs: Any) -> Any:
            return tuple(self.f.real(list(xs), env))

        return list(gg.vmap(one, in_axes=self.axes, out_axes=self.out)(*xs))

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        rows = [
            self.f.plain(
                [
                    x if a is None else loops.take(x, i, a)
                    for x, a in zip(xs, self.axes, strict=True)
                ],
                env,
            )
            for i in range(self.size)
        ]
        return [loops.stack(ys, self.out) for ys in zip(*rows, strict=True)]


@dataclass
class Jvp(Wrapped):
    """Tangents of the results where each argument moves along its sine."""

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        xs = [x * 1.0 for x in xs]
        ys = self.f.real(xs, env)
        return [t * 1.0 for t in gg.jvp(ys, xs, [gg.sin(x) for x in xs])]

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        xs = [x * 1.0 for x in xs]
        ys = self.f.plain(xs, env)
        ts = loops.push(ys, xs, [loops.sin(x) for x in xs])
        return [
            loops.Entry(np.zeros(y.shape)) if t is None else t * 1.0
            for y, t in zip(ys, ts, strict=True)
        ]


@dataclass
class Grad(Wrapped):
    """Gradients of the weighted results; `chosen` are rules of the call by op type or name."""

    chosen: dict[str, Rule | None] | str | None = None
    keep: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gives = self.f.takes + (self.f.gives if self.keep else ())

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        xs = [x * 1.0 for x in xs]
        ys = self.f.real(xs, env)
        overrides: Any = self.chosen
        if isinstance(self.chosen, dict):
            overrides = {
                t if t in STAMPS else gg.select.rule(t): None if r is None else real_rule(r)
                for t, r in self.chosen.items()
            }
        dys = [weights(y.shape) for y in ys]
        dxs = gg.gradients(
            ys, xs, [gg.constant(d) for d in dys], unconnected="zero", overrides=overrides
        )
        return [d * 1.0 for d in dxs] + (ys if self.keep else [])

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        xs = [x * 1.0 for x in xs]
        ys = self.f.plain(xs, env)
        dxs = loops.pull(ys, xs, [loops.entry(weights(y.shape)) for y in ys], self._choose())
        zeros = [
            loops.Entry(np.zeros(x.shape)) if d is None else d * 1.0
            for x, d in zip(xs, dxs, strict=True)
        ]
        return zeros + (ys if self.keep else [])

    def _choose(self) -> Any:
        if self.chosen is None:
            return loops.as_marked
        if isinstance(self.chosen, str):
            return lambda site, marked: off(site)
        rules = {t: None if r is None else plain_rule(r) for t, r in self.chosen.items()}
        return lambda site, marked: (rules[site.key] or off(site)) if site.key in rules else marked


def off(site: Any) -> Any:
    """A rule switched off by the call: an op reads its inside, a region shows it."""
    return None if site.stamp is None or site.answer is None else lambda v, *dys: v.own(*dys)


def weights(shape: Shape) -> Any:
    return 0.5 + np.cos(np.arange(np.prod(shape, dtype=int)).reshape(shape))


@dataclass
class Cond(Wrapped):
    """f where the sum of the first argument is over the threshold, else a function like it."""

    other: Function
    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reads = self.f.reads or self.other.reads

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        def then() -> Any:
            return tuple(self.f.real(xs, env))

        def otherwise() -> Any:
            return tuple(self.other.real(xs, env))

        return list(gg.cond(gg.sum(xs[0]) > self.threshold, then, otherwise))

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        chosen = self.f if xs[0].value.sum() > self.threshold else self.other
        return chosen.plain(xs, env)


@dataclass
class Flat(Function):
    """Any shapes to any shapes."""

    takes: Shapes
    gives: Shapes
    reads: bool = False

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        total = sum(gg.sum(gg.sin(x)) for x in xs)
        return [total * weights(s) for s in self.gives]

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        total = loops.entry(0.0)
        for x in xs:
            total = total + loops.sum(loops.sin(x))
        return [total * weights(s) for s in self.gives]


@dataclass
class Checkpoint(Wrapped):
    def real(self, xs: list[Any], env: Env) -> list[Any]:
        out = gg.rules.checkpoint(lambda *xs: tuple(self.f.real(list(xs), env)))(*xs)
        return list(out)

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        inputs, ins, within = _enter(xs, env, self.f.reads)
        start = len(loops.sites)
        hs = self.f.plain(ins[: len(xs)], within)
        made = loops.sites[start:]

        def again(site: Any, *dys: Any) -> Any:
            _, ins, within = _enter(xs, env, self.f.reads)
            start, names = len(loops.sites), dict(NAMES)
            hs = self.f.plain(ins[: len(xs)], within)
            NAMES.update(names)
            for new, old in zip(loops.sites[start:], made, strict=True):
                if old.answer is not old.first:
                    new.answer = old.answer
            dxs = loops.pull(hs, ins, dys, site.choose)
            return [loops.nothing(x) if d is None else d for x, d in zip(ins, dxs, strict=True)]

        return list(loops.Site(inputs, ins, hs, again, None).outs)


@dataclass
class Journey(Wrapped):
    """f in a graph of its own, which travels, is edited, and is imported: ("copy",), ..."""

    steps: list[tuple[Any, ...]]

    def real(self, xs: list[Any], env: Env) -> list[Any]:
        graph = gg.Graph()
        with graph:
            here = [gg.placeholder(s) for s in self.takes]
            inner = Env(gg.placeholder(()) if self.reads else None, gg.constant(CONSTANT))
            ys = self.f.real(here, inner)
        tensors = [*here, *([inner.captured] if self.reads else []), *ys]
        given = [*xs, *([env.captured] if self.reads else [])]
        tensors = travel(tensors, len(given), self.steps)
        made = gg.import_graph(
            tensors[-1].node.graph, inputs=dict(zip(tensors, given, strict=False))
        )
        return [made[t] for t in tensors[len(given) :]]

    def plain(self, xs: list[Any], env: Env) -> list[Any]:
        start = len(loops.sites)
        ys = self.f.plain(xs, Env(env.captured, env.constant))
        edit(loops.sites[start:], self.steps)
        for site in loops.sites[start:]:
            if site.answer is None and site.key in env.maps:
                site.answer = env.maps[site.key]
        return ys


def travel(ts: list[Any], count: int, steps: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The tensors, of which the first `count` are given, after the steps."""
    for step, *rest in steps:
        graph = ts[-1].node.graph
        match step:
            case "copy":
                after = graph.copy()
                ts = [after.tensor(t.name) for t in ts]
            case "deepcopy":
                after, ts = copy.deepcopy((graph, ts))
            case "pickle":
                after, ts = pickle.loads(pickle.dumps((graph, ts)))
            case "file":
                after = through_file(graph)
                ts = [after.nodes[t.node.index].outputs[t.index] for t in ts]
            case "import":
                with gg.Graph():
                    made = gg.import_graph(graph)
                ts = [made[t] for t in ts]
            case "subgraph":
                with graph:
                    ts[count:] = [
                        gg.identity(t, name=f"result{i}") for i, t in enumerate(ts[count:])
                    ]
                after = graph.subgraph(ts[:count], ts[count:])
                ts = [after.tensor(t.name) for t in ts]
            case "unmark":
                graph.unmark(gg.select.rule(rest[0]))
            case "replace":
                graph.mark(
                    gg.select.rule(rest[0]), real_rule(rest[1]), replace=True, allow_inside=True
                )
            case "mark":
                graph.mark(
                    rest[0], real_rule(rest[1]), replace=True, allow_inside=True, allow_empty=True
                )
            case "register":
                real_rule(rest[0])
            case _:
                raise AssertionError(step)
    return ts


def edit(sites: Sequence[Any], steps: Sequence[tuple[Any, ...]]) -> None:
    for step, *rest in steps:
        if step == "register":
            plain_rule(rest[0])
        elif step in ("pickle", "file"):
            for site in sites:
                if hasattr(site.answer, "named"):
                    site.answer = NAMES[site.answer.named]
        elif step in ("unmark", "replace", "mark"):
            rule = None if step == "unmark" else plain_rule(rest[1])
            for site in sites:
                if site.key == rest[0]:
                    site.answer = rule
                    if step == "replace" and rest[1].name:
                        site.key = rest[1].name


# -- random functions -------------------------------------------------------------------------

OPS = (
    *("Tanh", "Exp", "sin", "add", "mul", "div", "matmul", "sum", "reshape", "where"),
    *("integer", "array", "captured", "call", "call"),
)
SHAPES: list[Shape] = [(), (2,), (3,), (2, 3)]


class Maker:
    def __init__(self, seed: int) -> None:
        self.seed, self.random, self.names = seed, random.Random(seed), 0

    def name(self) -> str:
        self.names += 1
        return f"chains-{self.seed}-{self.names}"

    def rule(self, kinds: Sequence[str], linear: bool, named: float = 0.5) -> Rule:
        rng = self.random
        kinds = [k for k in kinds if not (linear and k in NOT_LINEAR)]
        kind = rng.choice(kinds)
        fixed = kind in ("outside", "inside")
        name = self.name() if rng.random() < named and not fixed else None
        order = "through" if kind == "outputs" and rng.random() < 0.4 else "again"
        return Rule(kind, round(rng.uniform(0.4, 1.6), 2), name, order)

    def program(self, takes: Shapes, depth: int, linear: bool) -> Program:
        rng = self.random
        steps: list[tuple[str, tuple[int, ...], Any]] = []
        values: list[Shape] = list(takes)

        def add(op: str, at: tuple[int, ...], p: Any, *shapes: Shape) -> int:
            steps.append((op, at, p))
            values.extend(shapes)
            return len(values) - 1

        def fit(i: int, shape: Shape) -> int:
            return add("fit", (i,), shape, shape)

        for _ in range(rng.randint(2, 6)):
            op = rng.choice(OPS if rng.random() < 0.97 else ["constant"])
            i = rng.randrange(len(values))
            s = values[i]
            if op in ("Tanh", "Exp", "sin", "array", "captured", "constant"):
                add(op, (i,), None, s)
            elif op in ("add", "mul", "div", "where", "integer"):
                add(op, (i, fit(rng.randrange(len(values)), s)), None, s)
            elif op == "matmul" and len(s) == 2:
                j = fit(rng.randrange(len(values)), (rng.randint(1, 3), s[1]))
                add(op, (i, j), None, (s[0], values[j][0]))
            elif op == "sum" and s:
                axis = rng.randrange(len(s))
                add(op, (i,), axis, s[:axis] + s[axis + 1 :])
            elif op == "reshape" and s:
                n = int(np.prod(s))
                p = rng.choice([(n,), (1, n), s[::-1]])
                add(op, (i,), p, p)
            elif op == "call" and depth:
                inner = tuple(rng.choice(SHAPES) for _ in range(rng.randint(1, 2)))
                f = self.marked(self.program(inner, depth - 1, linear), linear)
                at = tuple(fit(rng.randrange(len(values)), s) for s in inner)
                add("call", at, f, *f.gives)
        return Program(takes, steps, _gather(values, steps))

    def marked(self, f: Function, linear: bool) -> Function:
        rng, kinds = self.random, kinds_in(f)
        if f.reads and "Cond" in kinds and ("Grad" in kinds or "Jvp" in kinds):
            return f  # whether it reads the placeholder is hard to say
        match rng.choice(["region", "region", "region", "custom", "map"]):
            case "region":
                rule = self.rule(BY_DEFAULT + BY_READING, linear)
                needs = rule.kind in ("partial", "outputs", "zeros")
                return Region(f, rule, needs or rng.random() < 0.3, rng.random() < 0.15)
            case "custom":
                rule = self.rule(tuple(k for k in BY_READING if k != "zeros"), linear, named=0.0)
                held = f.reads or any(getattr(g, "variable", False) for g in inner_of(f))
                second = rng.random() < 0.3 and rule.kind not in ("outside", "inside") and not held
                return Custom(f, rule, second, not second and rng.random() < 0.3)
        types = rng.sample(sorted(STAMPS), rng.randint(1, 2))
        rules = {t: self.stamp(linear) for t in types}
        if "Journey" in kinds and "Vmap" in kinds:  # ops of a batch may be stamped as such
            rules = {t: Rule("scale", r.k, r.name) for t, r in rules.items()}
        return Map(f, rules)

    def stamp(self, linear: bool) -> Rule:
        kinds = ("scale", "absolute", "norm", "entry", "spread", "inputs", "outputs", "square")
        rule = self.rule(kinds, linear)
        return Rule(rule.kind, rule.k, rule.name)

    def wrap(self, f: Function, linear: bool) -> Function:
        rng, kinds = self.random, kinds_in(f)
        derived = kinds.count("Grad") + kinds.count("Jvp")
        options = ["mark", "mark", "Vmap", "Cond", "Checkpoint", "Journey", "Journey"]
        if derived < 2:
            options += ["Grad", "Grad"]
            if linear:
                options += ["Jvp", "Jvp"]
        match rng.choice(options):
            case "mark":
                return self.marked(f, linear)
            case "Vmap":
                if max(map(len, f.takes)) > 3:
                    return self.marked(f, linear)
                axes = [rng.choice([None, 0, 0, len(s) and 1]) for s in f.takes]
                if all(a is None for a in axes):
                    axes[0] = 0
                out = rng.choice([0, 0, min(1, min(map(len, f.gives)))])
                return Vmap(f, tuple(axes), rng.choice([2, 3]), out)
            case "Cond":
                if any(getattr(g, "variable", False) for g in inner_of(f)):
                    return self.marked(f, linear)
                other: Function = Flat(f.takes, f.gives)
                if rng.random() < 0.5:
                    other = self.marked(other, linear)
                if rng.random() < 0.3:
                    f, other = other, f
                return Cond(f, other, rng.choice([-10.0, 10.0, 0.0]))
            case "Checkpoint":
                return Checkpoint(f)
            case "Journey":
                return Journey(f, self.journey(f, linear, rng.randint(1, 3)))
            case "Jvp":
                return Jvp(f)
        return Grad(f, self.chosen(f, linear), rng.random() < 0.3)

    def chosen(self, f: Function, linear: bool) -> Any:
        rng = self.random
        if rng.random() < 0.7:
            return None
        if rng.random() < 0.2:
            return "none"
        found = [t for t in STAMPS if t in types_in(f)] + names_in(f)
        return {
            t: None if t not in STAMPS and rng.random() < 0.3 else self.rule(ELEMENTWISE, True, 0.0)
            for t in rng.sample(found, min(1, len(found)))
        } or None

    def journey(self, f: Function, linear: bool, count: int) -> list[tuple[Any, ...]]:
        rng, kinds = self.random, kinds_in(f)
        editable = not ("Checkpoint" in kinds and ("Grad" in kinds or "Jvp" in kinds))
        names, steps = names_in(f), list[tuple[Any, ...]]()
        for _ in range(count):
            step = rng.choice(["copy", "deepcopy", "pickle", "import", "subgraph", "edit", "edit"])
            if step == "subgraph" and ("Grad" in kinds or "Jvp" in kinds):
                step = "copy"  # what is cut off is read no more, by regions around it neither
            if step != "edit":
                steps.append(("file" if step == "pickle" and self.seed % 2 else step,))
                continue
            if not editable or ("subgraph",) in steps:
                continue
            pick = rng.choice(["unmark", "replace", "mark", "register"])
            kinds_of = ("scale",) if "Vmap" in kinds else BY_DEFAULT[:3]
            rule = self.rule(kinds_of, linear, 0.0)
            if pick == "mark":
                marked = [s for g in inner_of(f) if isinstance(g, Journey) for s in g.steps]
                stamped = "Map" in kinds or any(s[0] == "mark" for s in marked)
                if "Vmap" in kinds and stamped:  # a stamp is then a region around the op
                    continue
                types = [t for t in STAMPS if t in types_in(f)]
                if types:
                    steps.append((pick, rng.choice(types), rule))
            elif names:
                name = rng.choice(names)
                if pick == "register":
                    steps.append((pick, Rule(rule.kind, rule.k, name)))
                elif pick == "replace":
                    steps.append((pick, name, rule))
                    names.remove(name)
                else:
                    steps.append((pick, name))
                    names.remove(name)
        return steps

    def chain(self) -> Function:
        rng = self.random
        linear = rng.random() < 0.5
        takes = tuple(rng.choice(SHAPES) for _ in range(rng.randint(1, 2)))
        f: Function = self.marked(self.program(takes, 1, linear), linear)
        for _ in range(rng.randint(3, 5)):
            f = self.wrap(f, linear)
        return f


def _gather(values: list[Shape], steps: list[tuple[str, tuple[int, ...], Any]]) -> list[int]:
    """One or two results, to which every value leads."""
    read = {i for _, at, _ in steps for i in at}
    loose = [i for i in range(len(values)) if i not in read]
    results = loose[-2:]
    for i in loose[:-2]:
        shape = values[results[0]]
        steps += [("fit", (i,), shape), ("add", (results[0], len(values)), None)]
        values += [shape, shape]
        results[0] = len(values) - 1
    return results


def inner_of(f: Function) -> Iterator[Function]:
    """f and all functions in it."""
    yield f
    for part in fields_of(f):
        value = getattr(f, part.name)
        if isinstance(value, Function):
            yield from inner_of(value)
        elif part.name == "steps" and isinstance(f, Program):
            for op, _, p in f.steps:
                if op == "call":
                    yield from inner_of(p)


def kinds_in(f: Function) -> list[str]:
    return [type(g).__name__ for g in inner_of(f)]


def types_in(f: Function) -> set[str]:
    return {op for g in inner_of(f) if isinstance(g, Program) for op, *_ in g.steps}


def names_in(f: Function) -> list[str]:
    """The names of the rules of regions that are still there."""
    gone = {
        step[1]
        for g in inner_of(f)
        if isinstance(g, Journey)
        for step in g.steps
        if step[0] in ("unmark", "replace")
    }
    names = [g.rule.name for g in inner_of(f) if isinstance(g, Region) and g.rule.name]
    return [n for n in dict.fromkeys(names) if n not in gone]


# -- the comparison ---------------------------------------------------------------------------


@dataclass
class Case:
    """A function, how its graph travels before it is differentiated and between, and how far."""

    f: Function
    before: list[tuple[Any, ...]]
    between: list[tuple[Any, ...]]
    orders: int
    backend: str
    seed: int

    def values(self) -> list[Any]:
        rng = np.random.default_rng(self.seed)
        return [rng.uniform(-1.2, 1.2, s) for s in (*self.f.takes, ())]


def case(seed: int) -> Case:
    maker = Maker(seed)
    with np.errstate(all="ignore"):
        f = maker.chain()
    rng, kinds = maker.random, kinds_in(f)
    before = maker.journey(f, False, rng.randint(0, 2))
    between = maker.journey(f, False, rng.randint(0, 1))
    between = [s for s in between if s[0] not in ("subgraph", "unmark", "replace", "mark")]
    if "Checkpoint" in kinds:
        between = [s for s in between if s[0] != "register"]
    derived = kinds.count("Grad") + kinds.count("Jvp")
    backend = "llvm" if rng.random() < 0.02 else "numpy"
    return Case(f, before, between, 1 if derived > 1 else 2, backend, seed)


def wanted(case: Case) -> list[Any]:
    """Values, first and second derivatives, by loops over plain arrays."""
    loops.sites.clear()
    NAMES.clear()
    xs = [loops.Entry(v) for v in case.values()]
    ys = case.f.plain(xs[:-1], Env(xs[-1], loops.entry(CONSTANT)))
    edit(loops.sites, case.before)
    found = [y.value for y in ys]
    for order in range(case.orders):
        dxs = loops.pull(ys, xs, [loops.entry(weights(y.shape)) for y in ys])
        ys = [
            loops.Entry(np.zeros(x.shape)) if d is None else d for x, d in zip(xs, dxs, strict=True)
        ]
        found += [y.value for y in ys]
        if order == 0:
            edit(loops.sites, case.between)
    return found


def got(case: Case) -> list[Any]:
    """The same with graphgrad."""
    with gg.Graph():
        xs = [gg.placeholder(s) for s in case.f.takes] + [gg.placeholder(())]
        ys = case.f.real(xs[:-1], Env(xs[-1], gg.constant(CONSTANT)))
    found, count = list(ys), len(xs)
    ts = travel([*xs, *ys], count, case.before)
    xs, ys = ts[:count], ts[count:]
    found = list(ys)
    for order in range(case.orders):
        with xs[0].node.graph:
            dys = [gg.constant(weights(y.shape)) for y in ys]
            ys = gg.gradients(ys, xs, dys, unconnected="zero")
        found += ys
        if order == 0:
            ts = travel([*xs, *found], count, case.between)
            xs, found = ts[:count], ts[count:]
            ys = found[-count:]
    return list(gg.compile(xs, found, backend=case.backend)(*case.values()))


@contextmanager
def _names() -> Iterator[None]:
    """The registry as it was."""
    before = set(gg.registered_gradients())
    try:
        yield
    finally:
        for name in set(gg.registered_gradients()) - before:
            gg.unregister_gradient(name)


@dataclass(frozen=True)
class Outcome:
    """honoured, refused (with the message), or wrong (with what differs)."""

    what: str
    why: str = ""


def check(case: Case) -> Outcome:
    with np.errstate(all="ignore"):
        want = wanted(case)
    met = [y.value for site in loops.sites for y in site.outs]
    if not all(np.isfinite(w).all() and np.abs(w).max(initial=0.0) < 1e7 for w in want + met):
        return Outcome("skipped")  # rounding would show
    with _names(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            have = got(case)
        except gg.GraphGradError as error:
            text = "\n".join([str(error), *getattr(error, "__notes__", [])])
            if ".py:" not in text and "selects nothing" not in text:
                return Outcome("wrong", f"names no line: {type(error).__name__}: {text}")
            return Outcome("refused", f"{type(error).__name__}: {_general(text)}")
        except Exception as error:
            return Outcome("wrong", f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    scale = 1.0 + max(np.abs(w).max(initial=0.0) for w in want)
    for i, (h, w) in enumerate(zip(have, want, strict=True)):
        if np.shape(h) != np.shape(w) or not np.allclose(h, w, rtol=1e-7, atol=1e-9 * scale):
            return Outcome("wrong", f"result {i}: got {h}, want {w}")
    return Outcome("honoured")


def _general(text: str) -> str:
    """A message without names and lines."""
    text = re.sub(r"\S+\.py:\d+", "LINE", text.splitlines()[0])
    return re.sub(r"\d+", "N", text)[:160]


def main() -> None:
    parser = argparse.ArgumentParser(description="chains of transforms")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    refused: dict[str, list[int]] = collections.defaultdict(list)
    with suppress(KeyboardInterrupt):
        for seed in range(told.seed, told.seed + told.count):
            outcome = check(case(seed))
            counts[outcome.what] += 1
            if outcome.what == "refused":
                refused[outcome.why].append(seed)
            if outcome.what == "wrong":
                print(f"seed {seed}: {outcome.why[:300]}", flush=True)
    print(dict(counts))
    for why, seeds in sorted(refused.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds):6} {why}   seeds {seeds[:4]}")


if __name__ == "__main__":
    main()
