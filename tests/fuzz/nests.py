"""Random programs of loops, rules and chains of transforms, against a tape that shares no code.

A program is a list of statements over typed variables; loops, choices, batches, derivatives,
checkpoints, regions and journeys are statements that hold programs, one in the other or as a chain
of three to six. One interpreter runs it in two worlds: graphgrad builds a graph, and the tape of
`tape.py` computes what Python's own loops compute. The same derivatives are asked of both. Where a
rule draws, the tape draws the same, call by call (`draws.py`).

python -m tests.fuzz.nests --count 20000 --seed 0 --backend numpy   prints the seeds that go wrong
python -m tests.fuzz.nests --seed 17 --count 1 --shrink   makes one smaller while it goes wrong
python -m tests.fuzz.nests --count 2000 --census   counts what programs hold, and runs none
"""

from __future__ import annotations

import argparse
import collections
import copy
import importlib.util
import itertools
import pickle
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np

import graphgrad as gg
from graphgrad.optimise.passes import segments

from . import draws, tape

BACKENDS = [b for b, m in (("llvm", "llvmlite"), ("jax", "jax")) if importlib.util.find_spec(m)]
D = 3
"""The length of vectors, and of both sides of matrices."""

Type = tuple[str, tuple[Any, ...]]
F, V, M, N, R = (("f", s) for s in [(), (D,), (D, D), ("n",), ("n", D)])
I, P, C, G = ("i", ()), ("b", ()), ("c", ()), ("g", ())  # noqa: E741
KINDS = {"f": "float64", "g": "float32", "i": "int64", "b": "bool", "c": "complex128"}


@dataclass
class Body:
    """A program: what it is given, what it does, what it returns; it sees what is around it."""

    params: list[int]
    steps: list[Statement]
    results: list[int]


@dataclass
class Statement:
    """outs = op(ins), with bodies and what else there is to know."""

    op: str
    ins: list[int]
    outs: list[int]
    types: list[Type]
    how: dict[str, Any] = field(default_factory=dict)
    bodies: list[Body] = field(default_factory=list)


# --- elementary statements: what they take, and what they are in each world ----------------------


class Graphs:
    """The elementary functions of graphgrad under the names of the tape."""

    constant, sin, cos, tanh, exp = gg.constant, gg.sin, gg.cos, gg.tanh, gg.exp
    identity, stop_gradient, cast, where, clip, real, imag, is_zero = (
        gg.identity, gg.stop_gradient, gg.cast, gg.where, gg.clip, gg.real, gg.imag,
        gg.is_zero)  # fmt: skip
    add, multiply, subtract, negative = gg.add, gg.multiply, gg.subtract, gg.negative
    total = staticmethod(lambda x, axis=None: gg.sum(x, axis=axis))
    broadcast, transpose, flip = gg.broadcast_to, gg.permute_dims, staticmethod(lambda x: x[::-1])
    product, stack = gg.matmul, staticmethod(lambda xs, axis=0: gg.stack(list(xs), axis=axis))
    cumsum = staticmethod(lambda x: gg.cumsum(x, axis=0))
    pick = staticmethod(lambda x, key: x[key])
    reshape = gg.reshape

    @staticmethod
    def at(x: Any, i: Any) -> Any:
        return gg.take(x, i, axis=0)

    @staticmethod
    def draw(site: Any, call: Any, keyed: bool) -> Any:
        u = gg.random.uniform((), 0.4, 1.2, seed=site.random_key() if keyed else None)
        return gg.extend.apply(draws.Noted(), u, call)


class Tapes:
    """The tape as it is."""

    @staticmethod
    def at(x: tape.Value, i: tape.Value) -> tape.Value:
        return tape.pick(x, int(i.array))

    @staticmethod
    def constant(array: Any, dtype: Any = None) -> tape.Value:
        return tape.Value(np.asarray(array, dtype))

    @staticmethod
    def is_zero(x: tape.Value) -> bool:
        return x.zero

    @staticmethod
    def draw(site: Any, call: tape.Value, keyed: bool) -> tape.Value:
        return tape.Value(draws.again(float(call.array)))

    def __getattr__(self, name: str) -> Any:
        return getattr(tape, name)


def _vm(w: Any, x: Any, m: Any) -> Any:
    return w.reshape(w.product(w.reshape(x, (1, D)), m), (D,))


def _integer(w: Any, i: Any, by: int) -> Any:
    if w is TAPE:
        return tape.Value((i.array * 2 + by) % 3)
    return gg.remainder(i * 2 + by, 3)


def _compare(w: Any, x: Any, c: float) -> Any:
    return tape.Value(x.array > c) if w is TAPE else x > c


def _logic(w: Any, p: Any, q: Any) -> Any:
    return tape.Value(p.array ^ q.array) if w is TAPE else p ^ q


GRAPH, TAPE = Graphs, Tapes()

EASY: dict[str, Any] = {  # name: (types of the inputs, function)
    "sin": ("x", lambda w, x: w.sin(x)),
    "cos": ("x", lambda w, x: w.cos(x)),
    "tanh": ("x", lambda w, x: w.tanh(x)),
    "bell": ("x", lambda w, x: w.exp(w.negative(w.multiply(x, x)))),
    "scaled": ("x", lambda w, x: w.multiply(x, 0.7)),
    "shifted": ("x", lambda w, x: w.add(x, 0.3)),
    "negative": ("x", lambda w, x: w.negative(x)),
    "same": ("x", lambda w, x: w.identity(x)),
    "held": ("x", lambda w, x: w.multiply(w.sin(x), w.stop_gradient(w.cos(x)))),
    "add": ("xx", lambda w, x, y: w.add(x, y)),
    "subtract": ("xx", lambda w, x, y: w.subtract(x, y)),
    "times": ("xx", lambda w, x, y: w.tanh(w.multiply(x, y))),
    "by": ("xs", lambda w, x, y: w.multiply(x, w.sin(y))),
    "where": ("pxx", lambda w, p, x, y: w.where(p, x, y)),
    "first sum": ([V], lambda w, x: w.total(x, 0)),
    "sums": ([M], lambda w, x: w.total(x, 1)),
    "column sums": ([M], lambda w, x: w.total(x, 0)),
    "row sums": ([R], lambda w, x: w.total(x, 0)),
    "all": ([N], lambda w, x: w.total(x)),
    "mean": ([V], lambda w, x: w.multiply(w.total(x), 1 / D)),
    "flat": ([M], lambda w, x: w.total(w.reshape(x, (D * D,)))),
    "to complex": ([F], lambda w, x: w.cast(x, "complex128")),
    "turn": ([C], lambda w, z: w.multiply(z, 0.6 + 0.5j)),
    "together": ([C, C], lambda w, x, y: w.multiply(w.multiply(x, y), 0.4)),
    "real": ([C], lambda w, z: w.real(z)),
    "imag": ([C], lambda w, z: w.imag(z)),
    "third": ([V], lambda w, x: w.pick(x, 2)),
    "row": ([M], lambda w, x: w.pick(x, 1)),
    "at": ([V, I], lambda w, x, i: w.at(x, i)),
    "row at": ([M, I], lambda w, x, i: w.at(x, i)),
    "vm": ([V, M], lambda w, x, m: _vm(w, x, m)),
    "mv": ([V, M], lambda w, x, m: _vm(w, x, w.transpose(m, (1, 0)))),
    "mm": ([M, M], lambda w, x, m: w.multiply(w.product(x, m), 0.4)),
    "rm": ([R, M], lambda w, x, m: w.multiply(w.product(x, m), 0.5)),
    "gram": ([R, R], lambda w, x, y: w.multiply(w.product(w.transpose(x, (1, 0)), y), 0.2)),
    "outer": ([V, V], lambda w, x, y: w.multiply(w.reshape(x, (D, 1)), w.reshape(y, (1, D)))),
    "turned": ([M], lambda w, x: w.transpose(x, (1, 0))),
    "three": ([F, F, F], lambda w, *xs: w.stack(xs)),
    "rows": ([V, V, V], lambda w, *xs: w.stack(xs)),
    "columns": ([V, V, V], lambda w, *xs: w.stack(xs, 1)),
    "sums so far": ([V], lambda w, x: w.cumsum(x)),
    "rows so far": ([R], lambda w, x: w.multiply(w.cumsum(x), 0.5)),
    "backwards": ([V], lambda w, x: w.flip(x)),
    "rows backwards": ([R], lambda w, x: w.flip(x)),
    "wide": ([F], lambda w, x: w.broadcast(x, (D,))),
    "to rows": ([R, V], lambda w, x, y: w.add(x, y)),
    "narrow": ([F], lambda w, x: w.cast(w.cast(x, "float32"), "float64")),
    "next": ([I], lambda w, i: _integer(w, i, 1)),
    "after": ([I], lambda w, i: _integer(w, i, 2)),
    "as float": ([I], lambda w, i: w.multiply(w.cast(i, "float64"), 0.3)),
    "above": ([F], lambda w, x: _compare(w, x, 0.05)),
    "many": ([I], lambda w, i: _compare(w, i, 0)),
    "either": ([P, P], lambda w, p, q: _logic(w, p, q)),
}
GIVES: dict[str, Type] = {
    "first sum": F, "sums": V, "column sums": V, "row sums": V, "all": F, "third": F, "row": V,
    "at": F, "row at": V, "vm": V, "mv": V, "mm": M, "rm": R, "gram": M, "outer": M, "turned": M,
    "three": V, "rows": M, "columns": M, "sums so far": V, "rows so far": R, "backwards": V,
    "rows backwards": R, "wide": V, "to rows": R, "narrow": F, "next": I, "after": I,
    "as float": F, "above": P, "many": P, "either": P, "mean": F, "flat": F, "to complex": C,
    "turn": C, "together": C, "real": F, "imag": F,
}  # fmt: skip

# --- rules ---------------------------------------------------------------------------------------

LINEAR = ["sum", "inputs", "outputs", "both", "twice", "closure", "inner", "partial", "exact",
          "entry", "some", "mapping", "drawn", "keyed"]  # fmt: skip
OTHERS = ["sine", "clip", "square", "norm", "clipped default"]
BY_DEFAULT = ("exact", "twice", "clipped default", "norm", "drawn default")
DRAWN = ("drawn", "keyed", "drawn default")
NOT_AT_ZERO = ("affine", "zeros", "drawn default")
"""What a loop or a choice may call with a zero where the runs that happen call nothing."""
CLOSED = ("closure", "inner")
BY_ELEMENTS = ("twice", "exact", "entry")


def rule_of(kind: str, w: Any, closed: Sequence[Any] = (), forward: bool = False) -> Any:
    """A rule that treats all inputs alike, of graphgrad or of the tape.

    closed   what it closes over, maybe known only later
    forward  it may be asked for a jvp, so that a draw must not be named by the gradients
    """
    default = tape.Default if w is TAPE else gg.DEFAULT
    nothing = None if w is TAPE else gg.NO_GRAD

    def absent(d: Any) -> bool:
        return d is None or d is gg.NO_GRAD

    def sums(parts: Sequence[Any]) -> Any:
        s = w.constant(0.0, "float64")
        for k, x in enumerate(parts):
            s = w.add(s, w.multiply(w.cast(w.total(w.sin(x)), "float64"), 1.0 + 0.3 * k))
        return s

    def rule(site: Any, *dys: Any) -> Any:
        floats = [x.dtype.kind == "f" for x in site.inputs]

        def draw() -> Any:
            call = [x for x in site.inputs if x.dtype.kind == "f"]
            call += [] if forward else [d for d in dys if d is not None]
            return w.draw(site, sums(call), kind == "keyed")

        if kind in BY_DEFAULT:
            changes = {
                "exact": lambda d: d,
                "twice": lambda d: w.multiply(d, 2.0),
                "clipped default": lambda d: w.clip(d, -0.4, 0.4),
                "norm": lambda d: w.multiply(d, w.exp(w.negative(w.total(w.multiply(d, d))))),
                "drawn default": lambda d: w.add(d, w.cast(u, d.dtype)),
            }
            u = draw() if kind == "drawn default" else None
            dxs = list(site.default(*dys))
            if kind == "drawn default" and w is TAPE:  # nothing flows: a zero
                dxs = [tape.zeros(x) if d is None and f else d
                       for d, x, f in zip(dxs, site.inputs, floats, strict=True)]  # fmt: skip
            return [nothing if absent(d) else changes[kind](d) for d in dxs]
        if kind == "entry":
            return [default if f else nothing for f in floats]
        s = w.constant(0.0, "float64")
        for y, dy in zip(site.outputs, dys, strict=True):
            if dy is None:
                continue
            if kind == "zeros" and w.is_zero(dy):
                s = w.add(s, 0.5)
                continue
            if kind in ("outputs", "both"):
                dy = w.multiply(dy, w.add(w.sin(y), 0.5))
            s = w.add(s, w.cast(w.total(dy), "float64"))
        if kind == "sine":
            s = w.sin(s)
        if kind == "clip":
            s = w.clip(s, -0.5, 0.5)
        if kind == "square":
            s = w.multiply(w.multiply(s, s), 0.2)
        if kind in CLOSED:
            s = w.multiply(s, sums(closed))
        if kind in DRAWN:
            s = w.multiply(s, draw())
        dxs: list[Any] = [nothing] * len(floats)
        for i, x in enumerate(site.inputs):
            if floats[i]:
                slope = w.cos(x) if kind in ("inputs", "both") else w.add(w.multiply(x, 0.0), 0.3)
                dxs[i] = w.multiply(slope, w.cast(s, x.dtype))
                if kind == "affine":
                    dxs[i] = w.add(dxs[i], w.multiply(x, 0.3))
        if kind == "partial":
            dxs[floats.index(True)] = default
        if kind == "some" and sum(floats) > 1:
            dxs[len(floats) - 1 - floats[::-1].index(True)] = nothing
        if kind == "mapping" and w is GRAPH:
            return {x: d for x, d, f in zip(site.inputs, dxs, floats, strict=True) if f}
        return dxs

    rule.__name__ = kind.replace(" ", "_")
    return rule


def replacing(w: Any) -> Any:
    """A rule for each op of a type that a call names, or that is marked later."""

    def rule(site: Any, dy: Any) -> Any:
        (x,) = site.inputs
        return [w.multiply(dy, w.add(w.multiply(x, 0.3), 0.5))]

    return rule


# --- making programs -----------------------------------------------------------------------------


@dataclass
class Config:
    """What programs of a question may hold."""

    rules: list[str]
    unknown: bool
    bounded: bool
    forward: bool
    complex: bool
    draws: bool
    loops: bool
    derivatives: int


class Maker:
    """Makes a body. Variables that are seen: outer ones, parameters, what was made."""

    def __init__(self, rng: Any, ids: Any, seen: Sequence[tuple[int, Type]], how: Config,
                 depth: int = 0, chain: int = 0) -> None:  # fmt: skip
        self.rng, self.ids, self.how, self.depth = rng, ids, how, depth
        self.seen = list(seen)
        self.steps: list[Statement] = []
        self.simple = depth >= 3
        self.chain = chain
        self.linked: list[tuple[int, Type]] = []

    def flip(self, p: float = 0.5) -> bool:
        return bool(self.rng.random() < p)

    def of(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def do(self, op: str, ins: Sequence[int], types: Sequence[Type], how: Any = None,
           bodies: Sequence[Body] = ()) -> list[int]:  # fmt: skip
        outs = [next(self.ids) for _ in types]
        self.steps.append(Statement(op, list(ins), outs, list(types), how or {}, list(bodies)))
        self.seen += zip(outs, types, strict=True)
        return outs

    def have(self, t: Type) -> list[int]:
        return [i for i, u in self.seen if u == t]

    def get(self, t: Type, fresh: float = 0.0) -> int:
        """A variable of a type, often a late one; made of others if there is none."""
        found = self.have(t)
        if found and not self.flip(fresh):
            return int(self.of(found[-3:] if self.flip(0.65) else found))
        kind, shape = t
        if t in (I, P) or not any(u[0] == "f" for _, u in self.seen):
            value = int(self.rng.integers(3)) if kind == "i" else kind == "b" and self.flip()
            return self.do("constant", [], [t], {"value": value})[0]
        if kind in "gc":
            return self.do("cast", [self.get(("f", shape))], [t], {"to": KINDS[kind]})[0]
        if t == F:
            narrow = [i for i, u in self.seen if u == ("g", ())]
            if narrow and self.flip():
                return self.do("cast", [self.of(narrow)], [t], {"to": "float64"})[0]
            vectors = self.have(V)
            if vectors:
                return self.do("third", [self.of(vectors)], [F])[0]
            return self.do("constant", [], [F], {"value": float(self.rng.uniform(-1, 1))})[0]
        if t == V:
            return self.do("wide", [self.get(F)], [V])[0]
        if t == M:
            return self.do("outer", [self.get(V), self.get(V)], [M])[0]
        raise AssertionError(t)

    def gets(self, types: Sequence[Type]) -> list[int]:
        """A variable for each type, sometimes one for two."""
        found: dict[Type, int] = {}
        return [found[t] if t in found and self.flip(0.25) else found.setdefault(t, self.get(t))
                for t in types]  # fmt: skip

    def fitted(self, i: int, t: Type) -> int:
        """A variable made of another one by its sum; both are floats."""
        have = type_of(self, i)
        if have == t:
            return i
        if have[1]:
            i = self.do("total", [i], [(have[0], ())])[0]
        if have[0] != t[0]:
            i = self.do("cast", [i], [(t[0], ())], {"to": KINDS[t[0]]})[0]
        if t[1]:
            i = self.do("wide", [i], [V])[0]
        return self.do("outer", [i, i], [M])[0] if t == M else i

    def type(self) -> Type:
        kinds = [F, F, F, V, V, V, M, I, P] + [G] * (not self.how.draws) + [C] * self.how.complex
        return self.of(kinds)

    def types(self, least: int, most: int) -> list[Type]:
        found = [self.type() for _ in range(int(self.rng.integers(least, most + 1)))]
        if least and not any(t[0] == "f" for t in found):
            found[0] = self.of([F, V])
        return found

    def inside(self, params: Sequence[Type], results: Sequence[Type], alone: bool = False,
               fixed: Sequence[Type] = (), how: Config | None = None) -> Body:  # fmt: skip
        """A body of what is seen here. A result that is fixed may be what a parameter was."""
        ids = [next(self.ids) for _ in params]
        outer = [] if alone else [s for s in self.seen if s[1][1][:1] != ("n",) or self.flip()]
        if how is not None:
            outer = [s for s in outer if s[1][0] != "c"]
        if outer:
            keep = [s for s in outer if self.flip(0.6)]
            outer = keep or outer[-2:]
        b = Maker(self.rng, self.ids, [*outer, *zip(ids, params, strict=True)], how or self.how,
                  self.depth + 1, max(self.chain - 1, 0))  # fmt: skip
        most = 1 if self.chain else 3
        b.run(int(self.rng.integers(0 if self.flip(0.2) else 1, most + 1)))
        links = [i for i, t in b.linked if t[0] in "fg"]
        out = []
        for i, t in enumerate(results):
            if links and t[0] in "fg":
                out.append(b.fitted(links.pop(0), t))
            elif i < len(fixed) and self.flip(0.15):  # a carry that goes on as it came, or another
                same = [p for p, u in zip(ids, params, strict=True) if u == t]
                out.append(int(self.of(same)))
            elif i < len(fixed) and t[0] == "f" and self.flip(0.25):  # one that adds up
                out += b.do("add", [ids[i], b.get(t)], [t])
            else:
                out.append(b.get(t))
        b.linked = [(i, t) for i, t in b.linked if i in out]
        return pruned(Body(ids, b.steps, out))

    def run(self, count: int) -> None:
        """Statements; the last one is the next link of the chain."""
        for _ in range(count):
            kinds: list[Any] = [easy] * 3 + [complexes] * 2 * self.how.complex
            if not self.simple and not self.chain:
                kinds += OPS + self.how.loops * LOOPED
            self.of(kinds)(self)
        before, first = len(self.seen), len(self.steps)
        while self.chain and not any(s.bodies for s in self.steps[first:]):
            self.of(OPS + self.how.loops * LOOPED)(self)
        made = [(i, t) for i, t in self.seen[before:] if self.chain and t[0] in "fg"]
        self.linked = [(i, t) for i, t in made if "n" not in t[1] and t[1] in ((), (D,), (D, D))]


def pruned(body: Body) -> Body:
    """Without statements that nothing needs."""
    needed = set(body.results)
    kept = []
    for s in reversed(body.steps):
        if needed.intersection(s.outs):
            kept.append(s)
            needed |= reads(s)
    return Body(body.params, kept[::-1], body.results)


def reads(s: Statement) -> set[int]:
    """The variables that a statement reads, in its bodies too."""
    found = set(s.ins)
    for b in s.bodies:
        found |= free(b)
    return found | {s.how[k] for k in ("closed", "captured") if k in s.how}


def free(body: Body) -> set[int]:
    """The variables around a body that it reads."""
    own, found = set(body.params), set()
    for s in body.steps:
        found |= reads(s) - own
        own |= set(s.outs)
    return found | (set(body.results) - own)


def easy(m: Maker) -> None:
    name = m.of(list(EASY))
    takes = EASY[name][0]
    if isinstance(takes, str):
        t = m.of([F, V, M, *[u for _, u in m.seen if u in (N, R)][:2]])
        ins = [m.get({"x": t, "s": F, "p": P}[c]) for c in takes]
        m.do(name, ins, [t])
        return
    if any(t in (N, R, C) and not m.have(t) for t in takes):
        return
    if (name == "to complex" and not m.how.complex) or (name == "narrow" and m.how.draws):
        return
    m.do(name, [m.get(t) for t in takes], [GIVES[name]])


def complexes(m: Maker) -> None:
    z = m.do("to complex", [m.get(F)], [C])[0]
    m.do("together", [m.do("turn", [z], [C])[0], m.get(C)], [C])
    m.do(m.of(["real", "imag"]), [m.get(C)], [F])


def row_of(t: Type) -> Type:
    return (t[0], t[1][1:])


def sequences(m: Maker) -> list[int]:
    """Variables of one number of rows, or none."""
    whole = [s for s in m.seen if s[1][1][:1] == ("n",)]
    fixed = [s for s in m.seen if s[1][1][:1] == (D,)]
    found = whole if whole and m.flip(0.6) else fixed
    if not found:
        return []
    return [int(m.of(found)[0]) for _ in range(m.of([1, 1, 2]))]


def type_of(m: Maker, i: int) -> Type:
    return next(t for j, t in m.seen if j == i)


def scan(m: Maker) -> None:
    xs = sequences(m) if m.flip(0.7) else []
    carries, rows = m.types(0 if m.flip(0.15) else 1, 3), m.types(0, 2)
    rows = [t for t in rows if len(t[1]) < 2]
    if not carries and not rows:
        return
    slices = [row_of(type_of(m, i)) for i in xs]
    how: dict[str, Any] = {"carries": len(carries), "reverse": m.flip(0.3), "length": None}
    how["unroll"], how["pack"] = m.of([1, 1, 1, 2, 3]), m.of([None, None, "dict", "pair"])
    n: Any = type_of(m, xs[0])[1][0] if xs else None
    if not xs:
        how["length"] = n = int(m.of([0, 1, 2, 3, 3, 5]))
    if n == "n" and m.how.unknown:
        how["unroll"] = 1
    body = m.inside([*carries, *slices], [*carries, *rows], fixed=carries)
    stacked = [(t[0], (n, *t[1])) for t in rows]
    m.do("scan", [*m.gets(carries), *xs], [*carries, *stacked], how, [body])


def mapped(m: Maker) -> None:
    xs = sequences(m)
    if not xs:
        return
    rows = [t for t in m.types(1, 2) if len(t[1]) < 2] or [F]
    body = m.inside([row_of(type_of(m, i)) for i in xs], rows)
    n = type_of(m, xs[0])[1][0]
    m.do("map", xs, [(t[0], (n, *t[1])) for t in rows], {}, [body])


def fori(m: Maker) -> None:
    carries = m.types(1, 3)
    lo, ins = int(m.rng.integers(0, 2)), m.gets(carries)
    how = {"lo": lo, "hi": int(m.rng.integers(0, 4)), "late": False}
    body = m.inside([I, *carries], carries)
    if m.flip(0.35) and not m.how.bounded:
        ins.append(m.get(I))
        how["late"] = True
    m.do("fori", ins, carries, how, [body])


def while_(m: Maker) -> None:
    carries = m.types(1, 3)
    body = m.inside([F, *carries], [F, *carries])
    how = {"most": int(m.rng.integers(0, 5)), "limit": float(m.rng.uniform(0.2, 2.5)),
           "bound": 6 if m.how.bounded or m.flip() else None}  # fmt: skip
    m.do("while", m.gets([F, *carries]), [F, *carries], how, [body])


def choice(m: Maker) -> None:
    types = m.types(1, 3)
    bodies = [m.inside([], types), m.inside([], types)]
    m.do("cond", [m.do("above", [m.get(F)], [P])[0] if m.flip() else m.get(P)], types, {}, bodies)


def several(m: Maker) -> None:
    types, params = m.types(1, 2), m.types(0, 2)
    bodies = [m.inside(params, types) for _ in range(int(m.rng.integers(1, 4)))]
    m.do("switch", [m.get(I), *m.gets(params)], types, {"less": m.of([0, 1])}, bodies)


def prefixes(m: Maker) -> None:
    found = [s for s in m.seen if s[1] in (V, M) or (s[1] in (N, R) and not m.how.unknown)]
    if not found:
        return
    x, t = m.of(found)
    how = {"fn": m.of(["add", "affine"]), "reverse": m.flip()}
    m.do("prefixes", [x, m.get(t)], [t], how)


def batch(m: Maker) -> None:
    """vmap over an axis of some of the arguments."""
    args = [m.of([V, V, M, M]), *m.types(0, 2)]
    axes: list[Any] = [int(m.rng.integers(len(args[0][1])))]
    axes += [int(m.rng.integers(len(t[1]))) if t in (V, M) and m.flip() else None for t in args[1:]]
    params = [t if a is None else row_of(t) for t, a in zip(args, axes, strict=True)]
    results = [t for t in m.types(1, 2) if t in (F, V)] or [F]
    body = m.inside(params, results)
    out = int(m.rng.integers(2)) if all(t == V for t in results) else 0
    types = [(t[0], (D, *t[1])) for t in results]
    axes = [a - len(t[1]) if a is not None and m.flip(0.2) else a
            for a, t in zip(axes, args, strict=True)]  # fmt: skip
    m.do("vmap", m.gets(args), types, {"axes": axes, "out": out}, [body])


def region(m: Maker) -> None:
    kind = m.of(m.how.rules)
    closed = m.get(F)
    start = next((s for s in m.seen if s[1] in (F, V)), None)
    if start is None:
        return
    results = [t for t in m.types(1, 2) if t[0] not in "gc"]
    body = m.inside([], results or [F], how=replace(m.how, complex=False))
    inner = next(m.ids)  # there is always a float that is made inside of a float outside
    body.steps.insert(0, Statement("tanh", [start[0]], [inner], [start[1]]))
    own = {i: t for s in body.steps for i, t in zip(s.outs, s.types, strict=True)}
    body.results = list(dict.fromkeys([inner, *(i for i in body.results if i in own)]))
    nested = any(s.bodies for s in body.steps)
    sure = nested or kind in ("partial", "entry", "some", "zeros")
    how = {"rule": kind, "closed": closed, "inner": inner, "declared": sure or m.flip(),
           "through": m.flip(0.2), "escape": m.flip(0.1)}  # fmt: skip
    if kind not in CLOSED and m.flip(0.8):
        how["name"] = f"nests {inner}"
    m.do("region", [], [own[i] for i in body.results], how, [pruned(body)])


def stamps(m: Maker) -> None:
    start = m.get(m.of([F, V]))
    body = m.inside([], m.types(1, 2))
    inner = next(m.ids)
    op = m.of(["tanh", "bell"])
    body.steps.append(Statement(op, [start], [inner], [type_of(m, start)]))
    body.results.append(inner)
    known = dict(m.seen) | {i: t for s in body.steps for i, t in zip(s.outs, s.types, strict=True)}
    rules = [k for k in m.how.rules if k not in ("inner", "zeros", "some", "partial")] or ["sum"]
    carried = any(s.op == "journey" and "vmap" in ops_in(s) for s in statements(body))
    kinds = {t: m.of(BY_ELEMENTS if carried else rules) for t in tape.STAMPED
             if t == {"tanh": "Tanh", "bell": "Exp"}[op] or m.flip()}  # fmt: skip
    m.do("stamps", [], [known[i] for i in body.results], {"rules": kinds, "closed": m.get(F)},
         [body])  # fmt: skip


def custom(m: Maker) -> None:
    params = [m.of([F, V]), *[t for t in m.types(0, 2) if t[0] == "f"]]
    results = [m.of([F, V]), *[t for t in m.types(0, 1) if t[0] == "f"]]
    body = m.inside(params, results, alone=True)
    how: dict[str, Any] = {"square": m.flip(0.3) and not m.how.forward}
    extra = m.of(["closed", "captured", "second", "variable", None, None])
    if extra in ("closed", "captured"):
        how[extra] = m.get(F)
    elif extra is not None and (extra == "second" or m.depth == 0):
        how[extra] = True
    m.do("custom", m.gets(params), results, how, [body])


def checkpoint(m: Maker) -> None:
    params, types = m.types(1, 2), m.types(1, 2)
    body = m.inside(params, types)
    m.do("checkpoint", m.gets(params), types, {}, [body])


def derivative(m: Maker) -> None:
    """A derivative that is part of the program."""
    if not m.how.derivatives:
        return
    params = [t for t in m.types(1, 2) if t[0] == "f" and t != M] or [F]
    how = replace(m.how, derivatives=m.how.derivatives - 1)
    body = m.inside(params, [t for t in m.types(1, 2) if t in (F, V)] or [F], how=how)
    way = m.of(["grad", "grad", "jvp", "hvp"] if m.how.forward else ["grad", "hvp"])
    chosen = chosen_of(m, body) if way == "grad" else None
    types = params if way != "jvp" else [F]
    m.do("derivative", m.gets(params), types, {"way": way, "chosen": chosen}, [body])


def chosen_of(m: Maker, body: Body) -> Any:
    """What a call chooses: "none", or a rule or None for an op type or the regions of a name."""
    keys = names_of(body) + stamped_in(body)
    if m.flip(0.2) or not keys:
        return m.of([None, None, None, "none"])
    key = m.of(keys)
    return {key: m.of([None, "twice"] if key not in tape.STAMPED else ["twice", "entry"])}


def journey(m: Maker) -> None:
    """A program in a graph of its own, which travels, is edited, and is imported here."""
    params, types = m.types(1, 2), m.types(1, 2)
    body = m.inside(params, types, alone=True)
    count = int(m.rng.integers(2, 5))
    m.do("journey", m.gets(params), types, {"ways": edits(m, body, count)}, [body])


def edits(m: Any, body: Body, count: int) -> list[list[str]]:
    """Ways of a graph and edits of its marks: ["copy"], ["replace", name], ["mark", op type]."""
    ops, names, found = ops_in(body), names_of(body), list[list[str]]()
    derived = "derivative" in ops
    for _ in range(count):
        way = m.of([*WAYS, "edit", "edit", "edit"])
        if way == "subgraph" and derived:  # what is cut off is read no more by regions around it
            way = "copy"
        if way != "edit":
            found.append([way])
            continue
        if ("checkpoint" in ops and derived) or ["subgraph"] in found:
            continue
        edit = m.of(["mark", "unmark", "replace", "replace", "register"])
        if edit == "mark" or not names:
            if not {"stamps", "vmap"} <= ops:  # a stamp in a batch is a region around the op
                found.append(["mark", m.of(["Tanh", "Exp"])])
        else:
            name = m.of(names)
            found.append([edit, name])
            if edit != "register":
                names.remove(name)
    return found


def names_of(body: Body, gone: bool = False) -> list[str]:
    """The rules of regions by name, those that are there to the end, or also others."""
    taken = set() if gone else {e[1] for s in statements(body) for e in s.how.get("ways", [])
            if e[0] in ("unmark", "replace")}  # fmt: skip
    names = [s.how["name"] for s in statements(body) if "name" in s.how]
    return [n for n in names if n not in taken]


def statements(body: Body) -> Iterator[Statement]:
    for s in body.steps:
        yield s
        for b in s.bodies:
            yield from statements(b)


def stamped_in(body: Body) -> list[str]:
    """The op types on which rules may be put."""
    ops = {"Tanh": {"tanh", "times"}, "Exp": {"bell"}}
    return [t for t in tape.STAMPED if ops[t] & ops_in(body)]


def ops_in(part: Body | Statement) -> set[str]:
    bodies = [part] if isinstance(part, Body) else part.bodies
    return {s.op for b in bodies for s in statements(b)}


LOOPED = [choice, several, scan, scan, scan, mapped, mapped, fori, fori, while_, while_, prefixes]
OPS = [batch, batch, region, region, region, region, stamps, stamps, custom,
       checkpoint, derivative, derivative, journey, journey]  # fmt: skip
WAYS = ["copy", "deepcopy", "pickle", "file", "import", "subgraph"]


# --- the two worlds ------------------------------------------------------------------------------


class World:
    """Runs statements; the worlds differ in control flow and rules."""

    w: Any

    def __init__(self, n: int, forward: bool) -> None:
        self.n, self.forward = n, forward

    def run(self, body: Body, env: dict[int, Any], *given: Any) -> list[Any]:
        env = {**env, **dict(zip(body.params, given, strict=True))}
        for s in body.steps:
            ins = [env[i] for i in s.ins]
            if s.op in EASY:
                found = [EASY[s.op][1](self.w, *ins)]
            elif s.op == "constant":
                found = [self.constant(s)]
            elif s.op == "cast":
                found = [self.w.cast(ins[0], s.how["to"])]
            elif s.op == "total":
                found = [self.w.total(ins[0])]
            else:
                found = getattr(self, s.op)(s, ins, env)
            env.update(zip(s.outs, found, strict=True))
        return [env[i] for i in body.results]

    def constant(self, s: Statement) -> Any:
        (kind, shape), value = s.types[0], s.how["value"]
        shape = tuple(self.n if d == "n" else d for d in shape)
        return self.w.constant(np.full(shape, value, KINDS[kind]), KINDS[kind])

    def rules(self, s: Statement, env: Any) -> dict[str, Any]:
        return {t: rule_of(k, self.w, [env[s.how["closed"]]], self.forward)
                for t, k in s.how["rules"].items()}  # fmt: skip

    def loss(self, ys: Sequence[Any]) -> Any:
        w, found = self.w, self.w.constant(0.0, "float64")
        for k, y in enumerate(ys):
            if y.dtype.kind == "f":
                part = w.cast(w.total(w.sin(w.add(y, 0.1 * k))), "float64")
                found = w.add(found, w.multiply(part, 1.0 - 0.15 * k))
        return found

    def customised(self, s: Statement, xs: Any, captured: Any, variable: Any) -> list[Any]:
        """What a function with a rule of its own returns."""
        ys = self.run(s.bodies[0], {}, *xs)
        for by in [*captured, *([] if variable is None else [variable])]:
            ys = [self.w.multiply(y, by) for y in ys]
        return ys

    def closed_over(self, s: Statement, xs: Any, ys: Any, env: Any) -> Any:
        """A grad_fn that closes over what was returned, by its inner value."""
        w = self.w

        def grad(dys: Any) -> Any:
            total = w.constant(0.0, "float64")
            for y, d in zip(ys, dys, strict=True):
                d = w.multiply(d, d) if s.how["square"] else d
                total = w.add(total, w.total(w.multiply(d, w.cos(y))))
            if "closed" in s.how:
                total = w.multiply(total, w.sin(env[s.how["closed"]]))
            return [w.multiply(w.sin(x), total) for x in xs]

        return grad


def affine(w: Any) -> Any:
    return lambda x, y: (w.multiply(x[0], y[0]), w.add(w.multiply(y[0], x[1]), y[1]))


class InGraph(World):
    """As graphgrad has it."""

    w = GRAPH

    def scan(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        k, pack = s.how["carries"], s.how["pack"] if s.how["carries"] else None

        def packed(parts: list[Any]) -> Any:
            if pack == "dict":
                return {f"k{i:02}": t for i, t in enumerate(parts)}
            return (parts[0], parts[1:]) if pack == "pair" else parts

        def unpacked(tree: Any) -> list[Any]:
            if pack == "dict":
                return [tree[key] for key in sorted(tree)]
            return [tree[0], *tree[1]] if pack == "pair" else list(tree)

        def f(carry: Any, row: Any) -> Any:
            found = self.run(s.bodies[0], env, *unpacked(carry), *(row or ()))
            return packed(found[:k]), found[k:]

        last, ys = gg.scan(f, packed(ins[:k]), ins[k:] or None, s.how["length"], s.how["reverse"],
                           s.how["unroll"])  # fmt: skip
        return [*unpacked(last), *ys]

    def map(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        return list(gg.map(lambda row: self.run(s.bodies[0], env, *row), ins))

    def fori(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        hi = ins.pop() if s.how["late"] else s.how["hi"]
        return list(gg.fori_loop(s.how["lo"], hi, lambda i, c: self.run(s.bodies[0], env, i, *c),
                                 ins))  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        return {"while": self._while}[name]

    def _while(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        def test(c: Any) -> Any:
            return (c[0] < s.how["most"]) & (gg.abs(c[1]) < s.how["limit"])

        def body(c: Any) -> Any:
            return [c[0] + 1, *self.run(s.bodies[0], env, *c[1:])]

        init = [gg.constant(0), *ins]
        return list(gg.while_loop(test, body, init, max_trips=s.how["bound"]))[1:]

    def cond(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        a, b = s.bodies
        return list(gg.cond(ins[0], lambda: self.run(a, env), lambda: self.run(b, env)))

    def switch(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        branches = [lambda *xs, b=b: self.run(b, env, *xs) for b in s.bodies]
        return list(gg.switch(ins[0] - s.how["less"], branches, *ins[1:]))

    def prefixes(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        a = gg.sin(ins[1])
        if s.how["fn"] == "add":
            return [gg.associative_scan(gg.add, ins[0] * a, s.how["reverse"])]
        return [gg.associative_scan(affine(gg), (a, ins[0]), s.how["reverse"])[1]]

    def vmap(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        f = gg.vmap(lambda *xs: self.run(s.bodies[0], env, *xs), s.how["axes"], s.how["out"])
        return list(f(*ins))

    def region(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        (body,) = s.bodies
        closed = [env[s.how["closed"]]]
        rule: Any = rule_of(s.how["rule"], GRAPH, closed, self.forward)
        name, how = s.how.get("name"), dict[str, Any]()
        if name:
            if not gg.is_registered(name):
                gg.register_gradient(name)(rule)
            rule = name
        if s.how["through"]:
            how["order"] = "through"
        if s.how["escape"]:
            how["escape"] = "default"
        if s.how["declared"]:
            how["inputs"] = list({id(env[i]): env[i] for i in sorted(free(body))}.values())
        with gg.override_gradient(rule, **how) as here:
            made = self.run(body, env)
            if s.how["rule"] == "inner":
                closed[0] = made[body.results.index(s.how["inner"])]
            found = [gg.identity(y) for y in made]
            if s.how["declared"]:
                here.declare(outputs=list({id(t): t for t in found}.values()))
        return [gg.identity(y) for y in found]

    def stamps(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        with gg.gradient_override_map(self.rules(s, env)):
            return self.run(s.bodies[0], env)

    def custom(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        captured = [self.w.identity(env[s.how["captured"]])] if "captured" in s.how else []
        variable = gg.variable(0.7) if s.how.get("variable") else None

        @gg.custom_gradient
        def f(*xs: Any) -> Any:
            ys = self.customised(s, xs, captured, variable)
            grad = self.closed_over(s, [*xs, *captured], ys, env)

            def grad_fn(*dys: Any) -> Any:
                dxs = grad(dys)
                if s.how.get("second"):
                    return dxs, lambda *dds: again(GRAPH, xs, dys, dds)
                return dict(zip([*xs, *captured], dxs, strict=True)) if captured else dxs

            def of_variables(*dys: Any, variables: Any = None) -> Any:
                return grad(dys), [v * 0.0 for v in variables]

            return ys, grad_fn if variable is None else of_variables

        return list(f(*map(gg.identity, ins) if captured else ins))

    def journey(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        for name in {*names_of(s.bodies[0], gone=True)} & {*gg.registered_gradients()}:
            gg.unregister_gradient(name)  # each time that this is built begins with its own rules
        with gg.Graph():
            xs = [gg.placeholder(x.shape, x.dtype, name=f"p{i}") for i, x in enumerate(ins)]
            ys = [gg.identity(y) for y in self.run(s.bodies[0], {}, *xs)]
        ys, xs = travel(s.how["ways"], ys, xs)
        made = gg.import_graph(xs[0].graph, dict(zip(xs, ins, strict=True)))
        return [made[y] for y in ys]

    def checkpoint(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        return list(gg.rules.checkpoint(lambda *xs: self.run(s.bodies[0], env, *xs))(*ins))

    def derivative(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        xs = [gg.identity(x) for x in ins]
        y = self.loss(self.run(s.bodies[0], env, *xs))
        if s.how["way"] == "jvp":
            return [gg.jvp(y, xs, [gg.cos(x) for x in xs])]
        if s.how["way"] == "hvp":
            return list(gg.hvp(y, xs, [gg.ones_like(x) * 0.7 for x in xs], unconnected="zero"))
        how = {"overrides": choice_of(GRAPH, s.how["chosen"])} if s.how["chosen"] else {}
        return [gg.sin(d) for d in gg.gradients(y, xs, unconnected="zero", **how)]


def choice_of(w: Any, chosen: Any) -> Any:
    """What a call chooses, in the words of a world."""
    if chosen == "none":
        return "none"
    found = {}
    for key, kind in chosen.items():
        words = key if w is TAPE or key in tape.STAMPED else gg.select.rule(key)
        found[words] = None if kind is None else rule_of(kind, w)
    return found


def again(w: Any, xs: Any, dys: Any, dds: Any) -> list[Any]:
    """A second rule, which is zero where the first is given zeros: in runs that are not reached."""
    total = w.multiply(w.multiply(w.total(dds[0]), w.total(dys[0])), 0.3)
    return [w.broadcast(total, x.shape) for x in xs]


def rolled(v: tape.Value, axis: int) -> tape.Value:
    """Its first axis at another place."""
    order = list(range(1, v.ndim))
    order.insert(axis, 0)
    return tape.transpose(v, order)


class OnTape(World):
    """As Python runs it."""

    w = TAPE

    def __init__(self, n: int, forward: bool) -> None:
        super().__init__(n, forward)
        self.marks: list[dict[str, Any]] = [{}]
        self.sites: list[tape.Step] = []
        self.names: dict[str, Any] = {}

    def apart(self, body: Body, env: dict[int, Any], *given: Any) -> list[Any]:
        """A run of a body, whose parameters and results are tensors of their own."""
        return [tape.identity(y) for y in self.run(body, env, *map(tape.identity, given))]

    def run(self, body: Body, env: dict[int, Any], *given: Any) -> list[Any]:
        env = {**env, **dict(zip(body.params, given, strict=True))}
        for s in body.steps:
            before = next(tape._count)
            found = super().run(Body([], [s], s.outs), env)
            for y in found:  # a tanh in the statement "times" is the last step as well
                if s.op in EASY and y.step and y.step.kind in tape.STAMPED and y.step.id > before:
                    y.step.key, y.step.rule = y.step.kind, self.marks[-1].get(y.step.kind)
                    self.sites.append(y.step)
            env.update(zip(s.outs, found, strict=True))
        return [env[i] for i in body.results]

    def scan(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        k = s.how["carries"]
        carry, xs = [tape.identity(x) for x in ins[:k]], ins[k:]
        n = xs[0].shape[0] if xs else s.how["length"]
        rows: dict[int, list[Any]] = {}
        for i in reversed(range(n)) if s.how["reverse"] else range(n):
            found = self.apart(s.bodies[0], env, *carry, *(tape.pick(x, i) for x in xs))
            carry, rows[i] = found[:k], found[k:]
        out = list(carry)
        for j, (kind, shape) in enumerate(s.types[k:]):
            if n:
                out.append(tape.stack([rows[i][j] for i in range(n)]))
            else:
                shape = tuple(self.n if d == "n" else d for d in shape)
                out.append(tape.Value(np.zeros(shape, KINDS[kind])))
        return out

    def map(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        how = {"carries": 0, "length": None, "reverse": False}
        return self.scan(Statement("scan", s.ins, s.outs, s.types, how, s.bodies), ins, env)

    def fori(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        hi = int(ins.pop().array) if s.how["late"] else s.how["hi"]
        ins = [tape.identity(x) for x in ins]
        for i in range(s.how["lo"], hi):
            ins = self.apart(s.bodies[0], env, tape.Value(np.asarray(i, "int64")), *ins)
        return ins

    def __getattr__(self, name: str) -> Any:
        return {"while": self._while}[name]

    def _while(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        n, ins = 0, [tape.identity(x) for x in ins]
        while n < s.how["most"] and abs(float(ins[0].array)) < s.how["limit"]:
            ins, n = self.apart(s.bodies[0], env, *ins), n + 1
        return ins

    def cond(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        return self.apart(s.bodies[0 if ins[0].array else 1], env)

    def switch(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        at = min(max(int(ins[0].array) - s.how["less"], 0), len(s.bodies) - 1)
        ys = self.run(s.bodies[at], env, *ins[1:])
        return ys if len(s.bodies) == 1 else [*map(tape.identity, ys)]  # one is no choice

    def prefixes(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        x, a = ins[0], tape.sin(ins[1])
        if s.how["fn"] == "add":
            x = tape.multiply(x, a)
            a = tape.Value(np.ones_like(a.array))
        order = list(range(x.shape[0]))
        order = order[::-1] if s.how["reverse"] else order
        found: dict[int, Any] = {}
        last = None
        for i in order:
            here = tape.pick(x, i)
            last = here if last is None else tape.add(tape.multiply(tape.pick(a, i), last), here)
            found[i] = last
        if not found:
            return [x]
        return [tape.stack([found[i] for i in sorted(found)])]

    def vmap(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        axes = s.how["axes"]
        return self.batched(lambda *xs: self.run(s.bodies[0], env, *xs), axes, s.how["out"], ins)

    def batched(self, f: Any, axes: Any, out: int, ins: Any) -> list[Any]:
        n = next(x.shape[a] for x, a in zip(ins, axes, strict=True) if a is not None)
        found = []
        for i in range(n):
            given = []
            for x, a in zip(ins, axes, strict=True):
                key = None if a is None else (*(slice(None),) * (a % x.ndim), i)
                given.append(tape.identity(x if key is None else tape.pick(x, key)))
            found.append(f(*given))
        return [rolled(tape.stack(list(ys)), out) for ys in zip(*found, strict=True)]

    def region(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        (body,) = s.bodies
        names = sorted(free(body))
        closed = [env[s.how["closed"]]]
        rule = rule_of(s.how["rule"], TAPE, closed, self.forward)
        if "name" in s.how:
            self.names.setdefault(s.how["name"], rule)
            rule = self.named(s.how["name"])
        unique = list({id(env[i]): env[i] for i in names}.values())
        places = {id(x): k for k, x in enumerate(unique)}

        def inside(*xs: Any) -> list[Any]:
            ys = self.run(body, {**env, **{i: xs[places[id(env[i])]] for i in names}})
            if s.how["rule"] == "inner":
                closed[0] = ys[body.results.index(s.how["inner"])]
            return ys

        step = tape.site(inside, unique, rule, s.how["through"], s.how["declared"])
        step.key = s.how.get("name")
        self.sites.append(step)
        return [tape.identity(y) for y in step.outs]

    def named(self, name: str) -> Any:
        def rule(site: Any, *dys: Any) -> Any:
            return self.names[name](site, *dys)

        rule.named = name  # type: ignore[attr-defined]
        return rule

    def stamps(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        self.marks.append({**self.marks[-1], **self.rules(s, env)})
        found = self.run(s.bodies[0], env)
        self.marks.pop()
        return found

    def custom(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        captured = [self.w.identity(env[s.how["captured"]])] if "captured" in s.how else []
        ins = [*map(tape.identity, ins)] if captured else ins
        variable, n = 0.7 if s.how.get("variable") else None, len(ins)
        hidden: list[Any] = []
        places = {id(x): k for k, x in enumerate(ins)}

        def inside(*xs: Any) -> list[Any]:
            args = [xs[places[id(x)]] for x in ins]  # an argument given twice is seen as one
            hidden[:] = self.customised(s, args, xs[n:], variable)
            return hidden

        def rule(site: Any, *dys: Any) -> Any:
            if not s.how.get("second"):
                return self.closed_over(s, site.inputs, hidden, env)(dys)

            def grad(*xs: Any) -> Any:
                return self.closed_over(s, xs[:n], xs[n:k], env)(xs[k:])

            def second_rule(site: Any, *dds: Any) -> Any:
                own = again(TAPE, ins, site.inputs[k:], dds)
                return [*own, *[None] * len(hidden), *site.default(*dds)[k:]]

            k = n + len(hidden)
            return tape.site(grad, [*ins, *hidden, *dys], second_rule).outs

        return list(tape.site(inside, [*ins, *captured], rule).outs)

    def journey(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        start = len(self.sites)
        for name in names_of(s.bodies[0], gone=True):
            self.names.pop(name, None)
        self.marks.append({})
        ys = self.apart(s.bodies[0], {}, *ins)
        self.marks.pop()
        self.edit(s.how["ways"], start)
        for step in self.sites[start:]:
            if step.key in tape.STAMPED and step.rule is None:
                step.rule = self.marks[-1].get(step.key)
        return ys

    def edit(self, ways: Sequence[Sequence[str]], start: int = 0) -> None:
        """What journeys and edits do to the sites since then."""
        for way, *rest in ways:
            for step in self.sites[start:]:
                if way in ("pickle", "file") and hasattr(step.rule, "named"):
                    step.rule = self.names[step.rule.named]  # what is stored is stored
                elif way in ("mark", "unmark", "replace") and step.key == rest[0]:
                    step.rule = edited(way, TAPE)
                    step.key = None if way == "replace" else step.key
            if way == "register":
                self.names[rest[0]] = edited(way, TAPE)

    def checkpoint(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        return [tape.identity(y) for y in self.run(s.bodies[0], env, *ins)]

    def derivative(self, s: Statement, ins: list[Any], env: Any) -> list[Any]:
        xs = [tape.identity(x) for x in ins]
        y = self.loss(self.run(s.bodies[0], env, *xs))
        if s.how["way"] == "jvp":
            return forward([y], xs, [tape.cos(x) for x in xs])
        if s.how["way"] == "hvp":
            return second(y, xs, [tape.Value(np.full(x.shape, 0.7)) for x in xs])
        chosen = choice_of(TAPE, s.how["chosen"]) if s.how["chosen"] else {}
        how = {"plain": True} if chosen == "none" else {"chosen": chosen}
        return [tape.sin(d) for d in whole(tape.gradients([y], xs, [ones(y)], **how), xs)]


def edited(way: str, w: Any) -> Any:
    """The rule that an edit puts on."""
    return {"unmark": None, "mark": replacing(w)}.get(way, rule_of("twice", w))


def ones(x: tape.Value) -> tape.Value:
    return tape.Value(np.ones_like(x.array))


def whole(ds: Sequence[Any], xs: Sequence[tape.Value]) -> list[tape.Value]:
    return [tape.zeros(x) if d is None else d for d, x in zip(ds, xs, strict=True)]


def forward(ys: Any, xs: Any, ts: Any) -> list[tape.Value]:
    """The transpose of what goes backward."""
    us = [tape.Value(np.ones_like(y.array)) for y in ys]
    back = whole(tape.gradients(ys, xs, us), xs)
    return whole(tape.gradients(back, us, ts), us)


def second(y: Any, xs: Any, vs: Any) -> list[tape.Value]:
    ds = whole(tape.gradients([y], xs, [ones(y)]), xs)
    return whole(tape.gradients(ds, xs, vs), xs)


# --- questions -----------------------------------------------------------------------------------

ASKED = ["grad", "grad", "grad", "jvp", "hvp", "one", "stop", "overrides", "none", "jacobian"]
GIVEN = [F, V, M, R, N, I]


@dataclass
class Question:
    """A program and what is asked of it."""

    seed: int
    forward: bool
    draws: bool
    count: int
    unknown: bool
    axes: Any
    batch: int
    asked: list[str]
    within: int
    variable: bool
    journeys: list[list[list[str]]]
    backend: str
    optimize: bool
    memory: bool
    body: Body
    earlier: list[draws.Note] = field(default_factory=list)
    nudge: float = 0.0

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng([self.seed, 2])
        found = []
        for t, axis in zip(GIVEN, self.axes or [None] * len(GIVEN), strict=True):
            shape = [self.count if d == "n" else d for d in t[1]]
            if axis is not None:
                shape.insert(axis, self.batch)
            scale = 0.6 * (1.0 + self.nudge)
            a = rng.integers(0, 3, shape) if t == I else scale * rng.normal(size=shape)
            found.append(np.asarray(a))
        return found


def question(seed: int, backend: str | None = None) -> Question:
    """The question of a seed."""
    rng = np.random.default_rng([seed, 7])

    def flip(p: float) -> bool:
        return bool(rng.random() < p)

    linear, orders = flip(0.5), int(rng.choice([0, 1, 1, 2, 2, 2, 3]))
    others = [] if linear else list(NOT_AT_ZERO) * 2 if flip(0.25) else OTHERS * 3
    rules = [str(k) for k in rng.choice(LINEAR + others, 3)]
    drawn = bool({*rules} & {*DRAWN})
    unknown = flip(0.35)
    axes = None
    if flip(0.3):
        axes = [int(rng.integers(len(t[1]) + 1)) if flip(0.6) else None for t in GIVEN]
        axes = axes if any(a is not None for a in axes) else None
    without = set() if linear else {"jvp"}
    if drawn or {*rules} & {*NOT_AT_ZERO}:
        without.add("jacobian")  # its rows are examples of one batch
    asked = [str(s) for s in rng.choice([a for a in ASKED if a not in without], orders)]
    backend = backend or str(rng.choice(["numpy", "numpy", *BACKENDS]))
    if drawn and backend == "jax":  # which notes nothing of what it runs
        backend = "numpy"
    loops = not {*rules} & {*NOT_AT_ZERO}
    how = Config(rules, unknown, backend == "jax", linear, flip(0.3), drawn, loops,
                 max(0, min(2, 3 - orders)))  # fmt: skip
    chain = int(rng.integers(3, 7)) if flip(0.5) else 0
    m = Maker(rng, itertools.count(len(GIVEN)), list(enumerate(GIVEN)), how, chain=chain)
    m.run(int(rng.integers(1, 3) if chain else rng.integers(2, 5)))
    outs = [i for i, t in m.seen[len(GIVEN) :] if t[0] == "f"][-4:]
    body = pruned(Body(list(range(len(GIVEN))), m.steps, outs or [0]))
    ways = [edits(m, body, int(m.of([0, 0, 1, 1, 2])) if k < 2 else m.flip(0.4)) for k in range(5)]
    if axes is not None or "checkpoint" in ops_in(body):
        ways = [[w for w in steps if len(w) == 1] for steps in ways]
    count, batch = int(rng.choice([0, 1, 2, 3, 4, 5])), int(rng.integers(1, 4))
    within, variable = int(rng.integers(2)) if axes else 0, axes is None and flip(0.3)
    return Question(seed, linear, drawn, count, unknown, axes, batch, asked, within, variable,
                    ways, backend, flip(0.7), flip(0.2), body)  # fmt: skip


def in_graph(q: Question, step: str, ys: Any, xs: Any, world: World) -> list[Any]:
    loss = world.loss(ys)
    if step == "jvp":
        return list(gg.jvp(ys, xs, [gg.sin(x + 1.0) for x in xs]))
    if step == "hvp":
        vs = [gg.stop_gradient(gg.cos(x + 1.0)) for x in xs]
        return list(gg.hvp(loss, xs, vs, unconnected="zero"))
    if step == "jacobian":
        y = gg.stack([loss, world.loss(ys[:1])])
        return [j[1] + 0.5 * j[0] for j in gg.jacobian(y, xs, unconnected="zero")]
    how: dict[str, Any] = {"unconnected": "zero"}
    if step == "stop":
        how["stop_gradients"] = [xs[0]]
    if step == "overrides":
        how["overrides"] = dict.fromkeys(stamped_in(q.body), replacing(GRAPH))
    if step == "none":
        how["overrides"] = "none"
    if step == "one":
        return list(gg.gradients(ys[0], xs, grad_ys=gg.cos(ys[0]), **how))
    return list(gg.gradients(loss, xs, **how))


def on_tape(q: Question, step: str, ys: Any, xs: Any, world: World) -> list[Any]:
    loss = world.loss(ys)
    if step == "jvp":
        return forward(ys, xs, [tape.sin(tape.add(x, 1.0)) for x in xs])
    if step == "hvp":
        return second(loss, xs, [tape.Value(np.cos(x.array + 1.0)) for x in xs])
    if step == "jacobian":
        found = [whole(tape.gradients([y], xs, [ones(y)]), xs) for y in (loss, world.loss(ys[:1]))]
        return [tape.add(b, tape.multiply(a, 0.5)) for a, b in zip(*found, strict=True)]
    how: dict[str, Any] = {}
    if step == "stop":
        how["stops"] = [xs[0]]
    if step == "overrides":
        how["chosen"] = dict.fromkeys(tape.STAMPED, replacing(TAPE))
    if step == "none":
        how["plain"] = True
    if step == "one":
        return whole(tape.gradients(ys[:1], xs, [tape.cos(ys[0])], **how), xs)
    return whole(tape.gradients([loss], xs, [ones(loss)], **how), xs)


def expected(q: Question) -> list[np.ndarray]:
    """What the tape says."""
    world = OnTape(q.count, q.forward)
    given = [tape.Value(a) for a in q.arrays()]
    floats = given[:-1]

    def asked(first: int, last: int, ys: Any, xs: Any) -> Any:
        found, now = list(ys), list(ys)
        for at in range(first, last):
            world.edit(q.journeys[at])
            now = on_tape(q, q.asked[at], now, xs, world)
            found += now
        return found, now

    if q.axes is None:
        ys = asked(0, len(q.asked), world.run(q.body, {}, *given), floats)[0]
        return [y.array for y in ys]

    def example(*xs: Any) -> list[Any]:
        ys = world.run(q.body, {}, *xs)
        return asked(0, min(q.within, len(q.asked)), ys, list(xs[:-1]))[0]

    ys = world.batched(example, q.axes, 0, given)
    return [y.array for y in asked(min(q.within, len(q.asked)), len(q.asked), ys, floats)[0]]


def found(q: Question) -> list[np.ndarray]:
    """What graphgrad says. Where rules draw, it is run twice, and only the second run is noted."""
    arrays, world = q.arrays(), InGraph(q.count, q.forward)
    with gg.Graph():
        given = []
        for k, (a, t) in enumerate(zip(arrays, GIVEN, strict=True)):
            loose = q.unknown and "n" in t[1]
            shape = tuple(None if loose and i == 0 else d for i, d in enumerate(a.shape))
            given.append(gg.placeholder(shape, a.dtype, name=f"x{k}"))
        if q.variable:
            given[0] = gg.variable(arrays[0], name="w")
        if q.axes is None:
            ys, later = [gg.identity(y) for y in world.run(q.body, {}, *given)], 0
        else:

            def example(*xs: Any) -> Any:
                last = [gg.identity(y) for y in world.run(q.body, {}, *xs)]
                every = list(last)
                for step in q.asked[: q.within]:
                    last = in_graph(q, step, last, list(xs[:-1]), world)
                    every += last
                return every

            ys, later = list(gg.vmap(example, q.axes)(*given)), min(q.within, len(q.asked))
        every, last = list(ys), ys
        for at in range(later, len(q.asked)):
            n = len(every)
            moved, given = travel(q.journeys[at], [*every, *last], given)
            every, last = moved[:n], moved[n:]
            with given[0].graph:
                last = [gg.identity(y) for y in in_graph(q, q.asked[at], last, given[:-1], world)]
                every += last
        every, given = travel([w for w in q.journeys[-1] if len(w) == 1], every, given)
        with given[0].graph:
            return run(q, given[q.variable :], every, arrays[q.variable :])


def run(q: Question, xs: Any, ys: Any, arrays: Any) -> list[np.ndarray]:
    how: dict[str, Any] = {"backend": q.backend, "optimize": q.optimize}
    with mock.patch.object(segments, "FEWEST", 2):  # short loops are cut, too
        if q.memory:
            how |= least_memory(xs, ys, arrays, how)
        f = gg.compile(xs, ys, **how)
        if q.draws:
            draws.notes.clear()
            f(*arrays)
            q.earlier = list(draws.notes)
            draws.notes.clear()
        return list(f(*arrays))


def least_memory(xs: Any, ys: Any, arrays: Any, how: dict[str, Any]) -> dict[str, int]:
    """The least limit under which a program runs, as its error names it; none if nobody knows."""
    try:
        gg.compile(xs, ys, memory=1, **how)(*arrays)
    except gg.ExecutionError as error:
        least = re.search(r"needs at least ([\d,]+)", str(error))
        return {"memory": int(least[1].replace(",", ""))} if least else {}
    return {"memory": 1}


def travel(ways: Any, ys: list[Any], xs: list[Any]) -> tuple[list[Any], list[Any]]:
    """ys and xs in the graph that some ways and edits lead to."""
    for way, *rest in ways:
        graph = xs[0].graph
        table: Any = {}
        if way == "subgraph":  # which keeps the names that were given
            with graph:
                ys = [gg.identity(y, name=f"out{len(graph)}_{i}") for i, y in enumerate(ys)]
            fed = [x for x in xs if x.node.type == "Placeholder"]
            other = graph.subgraph(fed, [*ys, *(x for x in xs if x.node.type != "Placeholder")])
            table = {t: other.tensor(t.name) for t in [*ys, *xs]}
        elif way == "pickle":
            _, named = pickle.loads(pickle.dumps((graph, {t.name: t for t in [*ys, *xs]})))
            table = {t: named[t.name] for t in [*ys, *xs]}
        elif way == "deepcopy":
            _, ys, xs = copy.deepcopy((graph, ys, xs))
        elif way == "file":
            with tempfile.TemporaryDirectory() as folder:
                gg.save(f"{folder}/a.gg", graph)
                other = gg.load(f"{folder}/a.gg", mmap=False).graph
            table = {t: other.nodes[t.node.index].outputs[t.index] for t in [*ys, *xs]}
        elif way == "import":
            with gg.Graph():
                table = gg.import_graph(graph)
        elif way == "copy":
            other = graph.copy()
            table = {t: other.tensor(t.name) for t in [*ys, *xs]}
        elif way == "register":
            gg.register_gradient(rest[0], replace=True)(edited(way, GRAPH))
        elif way == "unmark":
            graph.unmark(gg.select.rule(rest[0]))
        else:
            what = gg.select.op(rest[0]) if way == "mark" else gg.select.rule(rest[0])
            graph.mark(what, edited(way, GRAPH), allow_inside=True, replace=True,
                       **({"allow_empty": True} if way == "mark" else {}))  # fmt: skip
        if table:
            ys, xs = [table[y] for y in ys], [table[x] for x in xs]
    return ys, xs


REASONS = (
    "is called once for each part and not once for their sum",
    "needs the transpose of its gradient rule",
    "the choice has no effect",
    "differ from those that were copied",
    "selects nothing",
    "its default is built from that graph",
    "is called once for all of them",
    "as one site for all examples, since its rule",
    "has a different rule here than when the graph was stored",
    "sums over the examples: a rule on the result of vmap()",
)
"""What graphgrad may say where the tape has an answer (docs/semantics.md)."""
IN_BATCH = ("the gradient rule 'rule' (defined at",)
"""And of a rule that a call chooses once the batch is there: its shapes are those of the batch."""


class Refused(Exception):
    """graphgrad gave an error for none of the known reasons."""


def check(q: Question) -> str:
    """How a question fared. Raises Refused, AssertionError, or what breaks."""
    before = set(gg.registered_gradients())
    draws.clear()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            there = found(q)
            here = expected(q)
    except gg.GraphGradError as error:
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])
        if any(reason in text for reason in REASONS + IN_BATCH * (q.axes is not None)):
            return "refused with a reason"
        raise Refused(f"{type(error).__name__}: {text}") from error
    finally:
        for name in set(gg.registered_gradients()) - before:
            gg.unregister_gradient(name)
    if not all(np.all(np.isfinite(a)) and np.max(np.abs(a), initial=0) < 1e6 for a in here):
        return "too large"
    assert len(here) == len(there), (len(here), len(there))
    ops = ops_in(q.body)
    exact = "while" not in ops and not (q.forward and ops & LOOPS)
    if q.draws and not draws.check_apart(q.earlier, exact):
        return "agreed in what is drawn"
    for i, (a, b) in enumerate(zip(there, here, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"output {i}"
        size = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        bound = 1e-9 if not narrow(q.body) else 3e-3
        try:
            np.testing.assert_allclose(a, b, rtol=0, atol=bound * size, err_msg=f"output {i}")
        except AssertionError:
            moved = expected(replace(q, nudge=1e-14))[i]
            if np.max(np.abs(moved - b)) < bound * size:
                raise
            return "ill-conditioned"
    return "agreed"


def narrow(body: Body) -> bool:
    """Whether anything is computed in float32."""
    return any(s.op == "narrow" or any(t[0] == "g" for t in s.types) for s in statements(body))


# --- smaller ones --------------------------------------------------------------------------------


def smaller(q: Question, kind: Callable[[Question], str]) -> Question:
    """A question that goes wrong in the same way, with less in it."""
    wrong, changed = kind(q), True
    while changed:
        changed = False
        for candidate in candidates(q):
            if kind(candidate) == wrong:
                q, changed = candidate, True
                break
    return q


def candidates(q: Question) -> Any:
    for name, value in [("journeys", [[]] * 5), ("variable", False), ("memory", False),
                        ("optimize", False), ("backend", "numpy"), ("axes", None),
                        ("unknown", False), ("count", 1), ("batch", 1)]:  # fmt: skip
        if getattr(q, name) != value:
            yield changed_to(q, **{name: value, **({"within": 0} if name == "axes" else {})})
    for k in range(len(q.asked)):
        yield changed_to(q, asked=q.asked[:k] + q.asked[k + 1 :], within=min(q.within, k))
    for k in range(len(q.body.results) if len(q.body.results) > 1 else 0):
        yield with_body(q, lambda b, k=k: b.results.pop(k))
    for path in places(q.body):
        s = at_place(q.body, path)
        if s.op != "constant":
            yield with_body(q, lambda b, p=path: become_constants(b, p))
        if s.op in ("stamps", "region", "checkpoint", "journey"):
            yield with_body(q, lambda b, p=path: become_inline(b, p))
        for name in ("reverse", "through"):
            if s.how.get(name):
                yield with_body(q, lambda b, p=path, n=name: at_place(b, p).how.update({n: False}))
        if s.how.get("unroll", 1) > 1:
            yield with_body(q, lambda b, p=path: at_place(b, p).how.update(unroll=1))
        if s.op == "scan":
            if s.how["pack"]:
                yield with_body(q, lambda b, p=path: at_place(b, p).how.update(pack=None))
            for k in range(s.how["carries"]):
                yield with_body(q, lambda b, p=path, k=k: without_carry(b, p, k))
            for k in range(s.how["carries"], len(s.outs)):
                yield with_body(q, lambda b, p=path, k=k: without_row(b, p, k))


def changed_to(q: Question, **how: Any) -> Question:
    new = copy.copy(q)
    for name, value in how.items():
        setattr(new, name, value)
    return new


def with_body(q: Question, change: Any) -> Question:
    body = copy.deepcopy(q.body)
    change(body)
    return changed_to(q, body=all_pruned(body))


def all_pruned(body: Body) -> Body:
    for s in body.steps:
        s.bodies = [all_pruned(b) for b in s.bodies]
    return pruned(body)


def places(body: Body, path: Any = ()) -> Any:
    for k, s in enumerate(body.steps):
        yield (*path, k)
        for j, b in enumerate(s.bodies):
            yield from places(b, (*path, k, j))


def holder(body: Body, path: Any) -> tuple[Body, int]:
    for k, j in zip(path[:-1:2], path[1::2], strict=True):
        body = body.steps[k].bodies[j]
    return body, path[-1]


def at_place(body: Body, path: Any) -> Statement:
    b, k = holder(body, path)
    return b.steps[k]


def become_constants(body: Body, path: Any) -> None:
    b, k = holder(body, path)
    s = b.steps[k]
    values = {"f": 0.4, "g": 0.4, "c": 0.4, "i": 1, "b": True}
    b.steps[k : k + 1] = [
        Statement("constant", [], [i], [t], {"value": values[t[0]]})
        for i, t in zip(s.outs, s.types, strict=True)
    ]


def become_inline(body: Body, path: Any) -> None:
    b, k = holder(body, path)
    s = b.steps[k]
    (inner,) = s.bodies
    names = [(p, i) for p, i in zip(inner.params, s.ins, strict=False)]
    same = [Statement("same", [i], [p], [F]) for p, i in names]
    out = [
        Statement("same", [r], [o], [t])
        for r, o, t in zip(inner.results, s.outs, s.types, strict=True)
    ]
    b.steps[k : k + 1] = [*same, *inner.steps, *out]


def without_carry(body: Body, path: Any, k: int) -> None:
    s = at_place(body, path)
    (b,), t = s.bodies, s.types[k]
    out, param, init = s.outs[k], b.params[k], s.ins[k]
    here, at = holder(body, path)
    for part in (s.ins, s.outs, s.types, b.params, b.results):
        del part[k]
    s.how["carries"] -= 1
    b.steps.insert(0, Statement("same", [init], [param], [t]))
    here.steps.insert(at + 1, Statement("same", [init], [out], [t]))


def without_row(body: Body, path: Any, k: int) -> None:
    s = at_place(body, path)
    t, out = s.types[k], s.outs[k]
    here, at = holder(body, path)
    for part in (s.outs, s.types, s.bodies[0].results):
        del part[k]
    here.steps.insert(at + 1, Statement("constant", [], [out], [t], {"value": 1}))


def told(body: Body, indent: str = "") -> str:
    """A program as text."""
    lines = []
    for s in body.steps:
        how = {k: v for k, v in s.how.items() if v is not None}
        outs = ", ".join(f"v{i}: {t[0]}{list(t[1])}" for i, t in zip(s.outs, s.types, strict=True))
        lines.append(f"{indent}{outs} = {s.op}({', '.join(f'v{i}' for i in s.ins)}) {how or ''}")
        for b in s.bodies:
            lines.append(f"{indent}  given {b.params}")
            lines.append(told(b, indent + "    "))
    lines.append(f"{indent}return {', '.join(f'v{i}' for i in body.results)}")
    return "\n".join(lines)


def features(q: Question) -> set[str]:
    """What a question holds, for a census."""
    found = {f"asked {a}" for a in q.asked} | {f"order {len(q.asked)}", f"{q.count} rows"}
    flags = ("forward", "unknown", "draws", "variable", "optimize", "memory")
    found |= {name for name in flags if getattr(q, name)} | {q.backend}
    found |= {"asked in a batch"} if q.axes and q.within and q.asked else set()
    found |= {"vmap of all"} if q.axes else set()
    found |= {f"way {way[0]}" for ways in q.journeys for way in ways}

    def walk(body: Body, depth: int, wraps: int, inside: frozenset[str]) -> None:
        for s in body.steps:
            found.add(f"op {s.op}")
            found.update(f"type {t[0]}" for t in s.types)
            if s.bodies:
                found.update(f"{s.op} in {outer}" for outer in inside)
                found.add(f"chain of {min(wraps + 1, 6)}")
            if s.bodies and len(set(s.ins)) < len(s.ins):
                found.add(f"one tensor twice: {s.op}")
            for name, value in s.how.items():
                if name == "rule":
                    found.add(f"region {value}" + (" in a loop" if inside & LOOPS else ""))
                elif name == "rules":
                    found.update(f"stamp {v}" for v in value.values())
                    found.add(f"map of {len(value)} types")
                elif name == "ways":
                    found.update(f"journey {way[0]}" for way in value)
                elif name in ("way", "pack", "fn"):
                    found.add(f"{s.op} {name} {value}")
                elif name == "chosen" and value:
                    key = next(iter(value)) if isinstance(value, dict) else "of a call: none"
                    key = key if key in tape.STAMPED or ":" in key else "a name"
                    found.add(f"chosen {key}" + (" off" if None in list(value) else ""))
                elif name == "name" or (isinstance(value, bool) and value):
                    found.add(f"{s.op} {name}")
                elif name in ("closed", "captured") and s.op == "custom":
                    found.add(f"custom {name}")
                elif name == "unroll" and value > 1:
                    found.add("unroll")
            deeper = depth + (s.op in LOOPS | {"cond", "switch"})
            if s.op in LOOPS:
                found.add(f"loops nested {min(depth + 1, 3)}")
            for b in s.bodies:
                walk(b, deeper, wraps + 1, inside | {s.op})

    walk(q.body, 0, 0, frozenset())
    return found


LOOPS = {"scan", "map", "fori", "while"}


def kind_of(q: Question) -> str:
    try:
        check(q)
    except AssertionError:
        return "wrong"
    except Refused as error:
        return "refused " + str(error)[:60]
    except Exception as error:
        return f"{type(error).__name__}"
    return "well"


def main() -> int:
    """Run the programs; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=["numpy", *BACKENDS], help="else one by the seed")
    parser.add_argument("--census", action="store_true")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.count)
    if given.census:
        counts = collections.Counter(f for k in seeds for f in features(question(k, given.backend)))
        for feature, count in sorted(counts.items(), key=lambda item: item[1]):
            print(f"{count:6}  {feature}")
        return 0
    how: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    for seed in seeds:
        q = question(seed, given.backend)
        try:
            how[check(q)] += 1
        except Exception as error:
            name = "refused" if isinstance(error, Refused) else "wrong"
            how[name] += 1
            text = " ".join(str(error).split())[:500]
            print(f"{seed}: {name.upper()} {type(error).__name__} {text}", flush=True)
            if given.trace:
                traceback.print_exc()
            if given.shrink:
                q = smaller(q, kind_of)
                print({k: v for k, v in vars(q).items() if k != "body"}, f"\n{told(q.body)}")
                try:
                    check(q)
                except Exception as error:
                    print("   ", str(error)[:1500], flush=True)
    print(dict(how), f"{time.monotonic() - began:.0f} s")
    return int(how["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
