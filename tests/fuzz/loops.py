"""Random nests of loops, choices and rules, against the same programs with Python's own loops.

A program is a function of a seed. It is built twice: with the loops of graphgrad, and with `plain`
ones, which call the body once for each run, and the chosen branch alone, over the same graph
functions. What is asked of both is the same: derivatives of several orders, batches, marks that are
put later. What the first one goes through (copies, pickles, backends) changes nothing.

python -m tests.fuzz.loops --count 200 --seed 0
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import pickle
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np

import graphgrad as gg
from graphgrad.optimise.passes import segments

BACKENDS = [b for b, m in (("llvm", "llvmlite"), ("jax", "jax")) if importlib.util.find_spec(m)]
WIDTH = 3
"""The length of every vector: rows of a matrix, which may be looped over in their turn."""

Spec = tuple[str, tuple[int, ...]]


class Loops:
    """Control flow as graphgrad has it."""

    scan: Any = staticmethod(gg.scan)
    map: Any = staticmethod(gg.map)
    fori_loop: Any = staticmethod(gg.fori_loop)
    while_loop: Any = staticmethod(gg.while_loop)
    cond: Any = staticmethod(gg.cond)
    switch: Any = staticmethod(gg.switch)
    vmap: Any = staticmethod(gg.vmap)

    def __init__(self, unknown: bool = False) -> None:
        self.unknown = unknown
        self.feeds: list[tuple[gg.Tensor, np.ndarray]] = []

    def feed(self, array: Any, name: str) -> gg.Tensor:
        shape = (None, *array.shape[1:]) if self.unknown and array.ndim > 1 else array.shape
        x = gg.placeholder(shape, array.dtype, name=name)
        self.feeds.append((x, array))
        return x

    def apart(self, tree: Any) -> Any:
        """A tree of tensors as it is: parameters of a body are tensors of their own anyway."""
        return tree


class Plain(Loops):
    """Control flow as Python runs it: what is chosen is looked up while the graph is built."""

    def value(self, x: gg.Tensor) -> Any:
        xs, arrays = zip(*self.feeds, strict=True)
        return gg.compile(list(xs), x, backend="numpy", optimize=False)(*arrays)

    def apart(self, tree: Any) -> Any:
        return each(gg.identity, tree)

    def scan(self, f, init, xs=None, length=None, reverse=False, unroll=1, specs=()):
        n = length if xs is None else leaves(xs)[0].shape[0]
        carry, ys = init, {}
        for i in reversed(range(n)) if reverse else range(n):
            row = None if xs is None else each(lambda x, i=i: x[i], xs)
            carry, y = f(self.apart(carry), self.apart(row))
            carry, ys[i] = self.apart(carry), self.apart(y)
        rows = [leaves(ys[i]) for i in range(n)]
        stacked = [
            gg.stack([r[k] for r in rows]) if rows else gg.zeros((0, *shape), dtype=kind)
            for k, (kind, shape) in enumerate(specs)
        ]
        return self.apart(carry), stacked

    def map(self, f, xs, specs=()):
        return self.scan(lambda _, x: ((), f(x)), (), xs, specs=specs)[1]

    def fori_loop(self, lo, hi, f, init):
        lo, hi = (int(self.value(v)) if isinstance(v, gg.Tensor) else v for v in (lo, hi))
        for i in range(lo, hi):
            init = f(gg.constant(i, "int64"), self.apart(init))
        return self.apart(init)

    def while_loop(self, test, body, init, max_trips=None):
        while self.value(test(init)):
            init = self.apart(body(self.apart(init)))
        return self.apart(init)

    def cond(self, pred, then, otherwise):
        return self.apart((then if self.value(pred) else otherwise)())

    def switch(self, index, branches, *operands):
        at = min(max(int(self.value(index)), 0), len(branches) - 1)
        return self.apart(branches[at](*operands))

    def vmap(self, f, in_axes):
        def all_examples(*xs):
            n = next(x.shape[a] for x, a in zip(xs, in_axes, strict=True) if a is not None)
            found = [
                leaves(
                    f(
                        *(
                            gg.identity(x if a is None else gg.take(x, gg.constant(i), axis=a))
                            for x, a in zip(xs, in_axes, strict=True)
                        )
                    )
                )
                for i in range(n)
            ]
            return [gg.stack(list(column)) for column in zip(*found, strict=True)]

        return all_examples


def leaves(tree: Any) -> list[Any]:
    """The tensors of a tree of tuples, lists and dicts, those of dicts in the order of keys."""
    if isinstance(tree, dict):
        return [t for k in sorted(tree) for t in leaves(tree[k])]
    if isinstance(tree, list | tuple):
        return [t for part in tree for t in leaves(part)]
    return [] if tree is None else [tree]


def each(f: Callable[[Any], Any], tree: Any) -> Any:
    """A tree with f of each of its tensors."""
    if isinstance(tree, dict):
        return {k: each(f, v) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(each(f, v) for v in tree)
    return None if tree is None else f(tree)


# --- rules ----------------------------------------------------------------------------------------

LINEAR = ["sum", "inputs", "outputs", "both", "default", "closure", "mapping", "some", "partial"]
OTHERS = ["tanh", "clip", "square", "clipped default"]


def rule_of(kind: str, closed_over: gg.Tensor | None) -> Callable[..., Any]:
    """A rule of this kind for sites of any inputs and outputs."""

    def rule(site: gg.Site, *dys: Any) -> Any:
        real = [i for i, x in enumerate(site.inputs) if x.dtype.kind == "f"]
        if "default" in kind:
            found = [gg.NO_GRAD if d is gg.NO_GRAD else 2.0 * d for d in site.default(*dys)]
            if kind == "clipped default":
                found = [d if d is gg.NO_GRAD else gg.clip(d, -0.4, 0.4) for d in found]
            return found
        total: Any = gg.constant(0.0)
        for y, dy in zip(site.outputs, dys, strict=True):
            if dy is None or (kind == "aware" and gg.is_zero(dy)):
                continue
            dy = gg.cast(dy, "float64")
            if kind in ("outputs", "both"):
                dy = dy * (0.5 + gg.sin(gg.cast(y, "float64")))
            total = total + gg.sum(dy)
        if kind == "tanh":
            total = gg.tanh(total)
        elif kind == "clip":
            total = gg.clip(total, -0.5, 0.5)
        elif kind == "square":
            total = total * total * 0.2
        elif kind in ("affine", "aware"):
            total = total + 0.1
        elif kind == "closure":
            total = total * closed_over
        result: list[Any] = [gg.NO_GRAD] * len(site.inputs)
        for i in real:
            x = site.inputs[i]
            s = gg.cast(total, x.dtype)
            result[i] = s * (gg.cos(x) if kind in ("inputs", "both") else gg.ones_like(x) * 0.3)
        if kind == "some" and len(real) > 1:
            result[real[-1]] = gg.NO_GRAD
        if kind == "partial":
            result[real[0]] = gg.DEFAULT
        if kind == "mapping":
            return {site.inputs[i]: result[i] for i in real}
        return result

    rule.__name__ = kind.replace(" ", "_")
    return rule


def by_elements(site: gg.Site, dy: gg.Tensor) -> gg.Tensor:
    """A rule for what is batched already, too."""
    (x,) = site.inputs
    return dy * (0.5 + 0.3 * x)


# --- programs -------------------------------------------------------------------------------------


class Builder:
    """Random steps over values. A body has a builder of its own, the same each time it is built."""

    def __init__(
        self, seed: Any, world: Loops, values: Sequence[gg.Tensor], how: Config, depth: int = 0
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.world, self.how, self.depth = world, how, depth
        self.values = list(values)
        self.rows: dict[str, list[gg.Tensor]] = {}
        self.simple = False

    def flip(self, p: float = 0.5) -> bool:
        return bool(self.rng.random() < p)

    def of(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def pick(self, kind: str = "f", late: bool = True) -> gg.Tensor:
        """A value of a kind of dtypes, most often a late one; one is made if there is none."""
        found = [v for v in self.values if v.dtype.kind == kind]
        if found:
            return self.of(found[-4:] if late and self.flip(0.7) else found)
        if kind == "i":
            return gg.constant(int(self.rng.integers(4)))
        x = self.pick("f")
        return gg.mean(x) > 0.1 if kind == "b" else gg.cast(gg.mean(x), "complex128")

    def as_a(self, spec: Spec) -> gg.Tensor:
        """A value with the dtype and the shape of a spec."""
        return fit(self.pick(np.dtype(spec[0]).kind), spec)

    def spec(self) -> Spec:
        shape = (WIDTH,) if self.flip(0.4) else ()
        others = ["float32", "int64", "bool"] + ["complex128"] * self.how.complex
        kind = self.of(others) if self.flip(0.25) else "float64"
        return (kind, shape if kind == "float64" else ())

    def specs(self, least: int) -> list[Spec]:
        first: list[Spec] = [("float64", (WIDTH,) if self.flip(0.3) else ())]
        return first[:least] + [self.spec() for _ in range(int(self.rng.integers(0, 3)))]

    def body(self, *given: Any) -> Callable[..., Builder]:
        """A builder for a body, which sees what is here and its parameters last."""
        seed = int(self.rng.integers(2**31))
        outer = [self.pick(), *(v for v in self.values if self.rng.random() < 0.6)]

        def make(*parameters: Any) -> Builder:
            b = Builder(seed, self.world, [*outer, *leaves(parameters)], self.how, self.depth + 1)
            b.run(int(b.rng.integers(1, 4)))
            return b

        return make

    def run(self, count: int) -> None:
        for _ in range(count):
            steps: list[Callable[[Builder], None]] = [smooth, smooth, pair, integers, stopped]
            if self.depth < 3 and not self.simple:
                steps += [scan, scan, choice, several, mapped, fori, while_, batched]
                steps += [region, region, stamped, custom, inner, checkpointed]
            self.of(steps)(self)


def fit(x: gg.Tensor, spec: Spec) -> gg.Tensor:
    if spec[1] == () and x.ndim:
        x = gg.mean(x)
    if spec[1] != () and x.ndim == 0:
        x = gg.broadcast_to(x, spec[1])
    return gg.cast(x, spec[0])


class Config:
    """What a program may hold."""

    def __init__(self, q: Question) -> None:
        self.kinds, self.complex = q.kinds, q.complex
        self.bounded, self.known = q.backend == "jax", not q.unknown


def smooth(b: Builder) -> None:
    fs: list[Any] = [gg.tanh, gg.sin, gg.cos, lambda x: x * 0.7, lambda x: x + 0.3, gg.atan,
                     lambda x: gg.cumsum(x) * 0.4 if x.ndim else x * x * 0.2]  # fmt: skip
    kind = "c" if b.how.complex and b.flip(0.15) else "f"
    x = b.pick(kind)
    if kind == "c":
        b.values.append(x * (0.6 + 0.5j))
        y = b.values[-1]
        b.values.append(gg.real(y) if b.flip() else gg.imag(y * y) * 0.3)
    else:
        b.values.append(b.of(fs)(x))


def pair(b: Builder) -> None:
    x, y = b.pick(), b.pick(late=False)
    y = gg.cast(y, x.dtype)
    fs: list[Any] = [gg.multiply, gg.add, gg.subtract, lambda x, y: x * gg.sin(y)]
    b.values.append(gg.tanh(b.of(fs)(x, y)))


def integers(b: Builder) -> None:
    i = b.pick("i")
    i = gg.remainder(i * 2 + 1, gg.constant(5, i.dtype))
    b.values += [i, gg.cast(i, "float64") * 0.2 * gg.mean(gg.cast(b.pick(), "float64"))]


def stopped(b: Builder) -> None:
    x = b.pick()
    b.values.append(gg.tanh(x) * gg.stop_gradient(gg.sin(x)))


def leave(b: Builder, inside: Builder, start: int) -> None:
    """What stays visible of a block: its last values, read outside of it."""
    made = [v for v in inside.values[start:] if v.dtype.kind in "fib"]
    for v in made[-2:]:
        b.values.append(gg.identity(v))


def block(b: Builder) -> tuple[Builder, int]:
    """A builder that goes on with the values that are here."""
    inside = Builder(int(b.rng.integers(2**31)), b.world, b.values, b.how, b.depth + 1)
    return inside, len(b.values)


def region(b: Builder) -> None:
    kind = b.of(b.how.kinds)
    options = {"order": b.of(["again", "through"])} if b.flip(0.3) else {}
    if b.flip(0.2):
        options["escape"] = "default"
    complex, b.how.complex = b.how.complex, False
    rule = rule_of(kind, scalar(b))
    inside, _ = block(b)
    inside.values = [v for v in inside.values if v.dtype.kind != "c"]
    if b.flip(0.6):  # with control flow: what is read is said, for branches may read other things
        kept = {b.pick(): None, b.pick("i"): None, b.pick(late=False): None}
        inside.values, options["inputs"] = list(kept), list(kept)
    else:
        inside.simple = True
    start = len(inside.values)
    with gg.override_gradient(rule, **options):
        inside.values.append(gg.tanh(inside.pick()))
        inside.run(int(b.rng.integers(0, 3)))
    b.how.complex = complex
    leave(b, inside, start)


def scalar(b: Builder) -> gg.Tensor:
    return gg.cast(gg.mean(b.pick(late=False)), "float64")


def stamped(b: Builder) -> None:
    rule = rule_of(b.of([k for k in b.how.kinds if k != "some"]), scalar(b))
    inside, start = block(b)
    with gg.gradient_override_map({b.of(["Tanh", "Sin", "Cos"]): rule}):
        inside.values.append(gg.tanh(gg.sin(gg.cos(inside.pick()))))
        inside.run(int(b.rng.integers(1, 3)))
    leave(b, inside, start)


def custom(b: Builder) -> None:
    squared = b.flip(0.3) and "square" in b.how.kinds

    @gg.custom_gradient
    def f(x: gg.Tensor, y: gg.Tensor) -> Any:
        e = gg.tanh(x) * gg.sin(y)

        def grad(dy: gg.Tensor) -> Any:
            d = dy * dy if squared else dy
            return d * gg.cos(e), gg.sum(d * x)

        return e, grad

    b.values.append(f(gg.cast(b.pick(), "float64"), scalar(b)))


def inner(b: Builder) -> None:
    """A derivative that is part of the program."""
    x = gg.identity(b.pick())
    inside = Builder(int(b.rng.integers(2**31)), b.world, [x], b.how, b.depth + 1)
    inside.run(2)
    y = gg.sum(gg.cast(inside.pick(), "float64"))
    b.values.append(gg.tanh(gg.gradients(y, x, unconnected="zero")))


def checkpointed(b: Builder) -> None:
    seed = int(b.rng.integers(2**31))
    outer = b.values

    def f(x: gg.Tensor) -> gg.Tensor:
        inside = Builder(seed, b.world, [*outer, x], b.how, b.depth + 1)
        inside.run(2)
        return inside.pick()

    b.values.append(gg.identity(gg.rules.checkpoint(f)(b.pick())))


def packed(b: Builder, parts: list[Any]) -> tuple[Any, Callable[[Any], list[Any]]]:
    """Tensors in one of several structures, and what takes them out of it."""
    way = int(b.rng.integers(3)) if parts else 0
    if way == 1:
        keys = [f"k{i}" for i in range(len(parts))]
        return dict(zip(keys, parts, strict=True)), lambda t: [t[k] for k in keys]
    if way == 2 and len(parts) > 1:
        return (parts[0], parts[1:]), lambda t: [t[0], *t[1]]
    return tuple(parts), list


def scan(b: Builder) -> None:
    specs, outs = b.specs(1), b.specs(int(b.rng.integers(2)))
    init, parts = packed(b, [b.as_a(s) for s in specs])
    how: dict[str, Any] = {"reverse": b.flip(0.3), "unroll": b.of([1, 1, 2, 3])}
    if not b.how.known:
        how["unroll"] = 1
    tag, xs = rows_for(b)
    if xs is None:
        how["length"] = int(b.rng.integers(0, 4))
    make = b.body()
    like = init

    def step(carry: Any, row: Any) -> Any:
        inside = make(parts(carry), row)
        new = [inside.as_a(s) for s in specs]
        again = {f"k{i}": t for i, t in enumerate(new)} if isinstance(like, dict) else tuple(new)
        if isinstance(like, tuple) and len(like) == 2 and isinstance(like[1], list):
            again = (new[0], new[1:])
        return again, [inside.as_a(s) for s in outs]

    plain = {"specs": outs} if isinstance(b.world, Plain) else {}
    last, ys = b.world.scan(step, init, xs, **how, **plain)
    add_rows(b, tag or "", ys)
    b.values += parts(last)


def rows_for(b: Builder) -> tuple[str | None, Any]:
    """Rows to loop over: of a matrix, of several of one length, or of a vector; or none."""
    way = int(b.rng.integers(4))
    tags = [t for t, found in b.rows.items() if found]
    if way < 2 and tags:
        tag = b.of(tags)
        found = [b.of(b.rows[tag]) for _ in range(int(b.rng.integers(1, 3)))]
        return tag, found
    vectors = [v for v in b.values if v.ndim == 1 and v.dtype.kind == "f"]
    if way < 3 and vectors:
        return "3", b.of(vectors)
    return None, None


def add_rows(b: Builder, tag: str, ys: list[gg.Tensor]) -> None:
    for y in ys:
        if tag:
            b.rows.setdefault(tag, []).append(y)
        if y.dtype.kind in "fc":
            b.values.append(gg.sum(y) if y.ndim == 1 else gg.sum(y, axis=0))


def mapped(b: Builder) -> None:
    tag, xs = rows_for(b)
    if xs is None:
        return
    outs = b.specs(1)
    make = b.body()

    def f(row: Any) -> Any:
        inside = make(row)
        return [inside.as_a(s) for s in outs]

    plain = {"specs": outs} if isinstance(b.world, Plain) else {}
    add_rows(b, tag or "", b.world.map(f, xs, **plain))


def fori(b: Builder) -> None:
    specs = b.specs(1)
    init = tuple(b.as_a(s) for s in specs)
    lo: Any = int(b.rng.integers(0, 2))
    hi: Any = int(b.rng.integers(0, 4))
    if b.flip(0.3) and not b.how.bounded:
        hi = gg.remainder(gg.cast(b.pick("i"), "int64"), 4)
    make = b.body()

    def step(i: Any, carry: Any) -> Any:
        inside = make(i, carry)
        return tuple(inside.as_a(s) for s in specs)

    b.values += list(b.world.fori_loop(lo, hi, step, init))


def while_(b: Builder) -> None:
    specs = b.specs(1)
    limit, most = float(b.rng.uniform(0.2, 2.0)), int(b.rng.integers(0, 5))
    init = {"n": gg.constant(0), "at": gg.abs(scalar(b)), "c": [b.as_a(s) for s in specs]}
    make = b.body()

    def test(carry: Any) -> Any:
        return (carry["n"] < most) & (carry["at"] < limit)

    def step(carry: Any) -> Any:
        inside = make(carry["c"], carry["at"])
        at = carry["at"] * 1.3 + 0.3 * gg.square(gg.sin(gg.mean(inside.as_a(("float64", ())))))
        return {"n": carry["n"] + 1, "at": at, "c": [inside.as_a(s) for s in specs]}

    most_of_all = 6 if b.flip(0.5) or b.how.bounded else None
    last = b.world.while_loop(test, step, init, max_trips=most_of_all)
    b.values += [gg.tanh(last["at"]), *last["c"]]


def choice(b: Builder) -> None:
    specs = b.specs(1)
    pred = scalar(b) > float(b.rng.uniform(-0.5, 0.5))
    bodies = [b.body(), b.body()]

    def branch(make: Any) -> Any:
        def f() -> Any:
            inside = make()
            return [inside.as_a(s) for s in specs]

        return f

    b.values += b.world.cond(pred, branch(bodies[0]), branch(bodies[1]))


def several(b: Builder) -> None:
    specs = b.specs(1)
    index = gg.remainder(b.pick("i"), 5) - 1
    bodies = [b.body() for _ in range(int(b.rng.integers(1, 4)))]
    operands = [b.pick() for _ in range(int(b.rng.integers(0, 3)))]

    def branch(make: Any) -> Any:
        def f(*given: Any) -> Any:
            inside = make(given)
            return [inside.as_a(s) for s in specs]

        return f

    b.values += b.world.switch(index, [branch(make) for make in bodies], *operands)


def batched(b: Builder) -> None:
    """vmap inside the program, over rows."""
    x = gg.broadcast_to(b.as_a(("float64", (WIDTH,))), (2, WIDTH)) * gg.constant([[1.0], [0.5]])
    y = gg.cast(b.pick(), "float64")
    axis = int(b.rng.integers(2))
    make = b.body()
    spec = b.specs(1)[0]

    def f(row: Any, shared: Any) -> Any:
        row = row if row.shape == (WIDTH,) else gg.sum(row)
        inside = make(row, shared)
        return inside.as_a(spec)

    (found,) = leaves(b.world.vmap(f, in_axes=(axis, None))(x, y))
    b.values += [gg.mean(found, axis=0)]


# --- questions ------------------------------------------------------------------------------------


class Question:
    """What is asked of a program: data, so that both worlds are asked the same."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        self.linear = bool(rng.random() < 0.4)
        kinds = LINEAR if self.linear else LINEAR + OTHERS
        self.kinds = [str(k) for k in rng.choice(kinds, 3)]
        self.complex = bool(rng.random() < 0.2)
        self.count = int(rng.integers(0, 4)) if rng.random() < 0.5 else 3
        self.unknown = bool(rng.random() < 0.4)
        self.batch = int(rng.integers(3)) if rng.random() < 0.4 else None
        self.axes: tuple[Any, ...] = (None, None, None)
        if self.batch is not None:
            self.batch += 1
            while all(a is None for a in self.axes):
                self.axes = tuple(
                    None if rng.random() < 0.4 else int(rng.integers(k + 1)) for k in range(3)
                )
        steps = ["grad", "grad", "grad", "jvp", "hvp", "one", "stop", "overrides", "none"]
        self.steps = [str(s) for s in rng.choice(steps, int(rng.integers(0, 4)))]
        self.after = int(rng.integers(0, 2)) if self.batch is not None else 0
        self.mark = bool(rng.random() < 0.25)
        self.unmark = int(rng.integers(0, 4)) if rng.random() < 0.3 else None
        self.journeys = [str(s) for s in rng.choice(JOURNEYS, 8)]
        self.backend = str(rng.choice(["numpy", "numpy", *BACKENDS]))
        self.optimize = bool(rng.random() < 0.6)
        self.memory = self.optimize and bool(np.random.default_rng([seed, 5]).random() < 0.4)
        self.seed = seed

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng([self.seed, 2])
        arrays = [rng.normal(size=s) for s in [(), (WIDTH,), (self.count, WIDTH)]]
        if self.batch is not None:
            arrays = [
                a if axis is None else np.moveaxis(rng.normal(size=(self.batch, *a.shape)), 0, axis)
                for a, axis in zip(arrays, self.axes, strict=True)
            ]
        return [np.asarray(a) for a in arrays]

    def __repr__(self) -> str:
        return " ".join(f"{k}={v}" for k, v in vars(self).items())


JOURNEYS = ["stay", "stay", "stay", "copy", "pickle", "import", "subgraph"]


def program(q: Question, world: Loops, w: gg.Tensor) -> Callable[..., list[gg.Tensor]]:
    def f(a: gg.Tensor, v: gg.Tensor, rows: gg.Tensor) -> list[gg.Tensor]:
        b = Builder([q.seed, 3], world, [w, a, v, gg.constant(1)], Config(q))
        b.rows["n"] = [rows]
        b.run(5)
        b.values += [gg.sum(gg.sin(rows)) * 0.1 * w]
        return [gg.cast(y, "float64") for y in b.values[4:] if y.dtype.kind == "f"][-4:]

    return f


def ask(q: Question, step: str, ys: list[Any], xs: list[Any], at: int) -> list[Any]:
    """One derivative of ys with respect to xs, as a list of tensors."""
    rng = np.random.default_rng([q.seed, 4, at])
    weights = [float(rng.uniform(0.3, 1.0)) for _ in ys]
    loss = gg.constant(0.0)
    for y, c in zip(ys, weights, strict=True):
        loss = loss + c * gg.sum(gg.sin(y))
    if step == "jvp":
        return leaves(gg.jvp(ys, xs, [gg.sin(x + 1.0) for x in xs]))
    if step == "hvp":
        return list(gg.hvp(loss, xs, [gg.cos(x + 1.0) for x in xs], unconnected="zero"))
    how: dict[str, Any] = {"unconnected": "zero"}
    if step == "stop":
        how["stop_gradients"] = [xs[0]]
    if step == "overrides":
        how["overrides"] = {"Tanh": by_elements, "Sin": by_elements}
    if step == "none":
        how["overrides"] = "none"
    if step == "one":
        y = ys[int(rng.integers(len(ys)))]
        return list(gg.gradients(y, xs, grad_ys=gg.cos(y), **how))
    return list(gg.gradients(loss, xs, **how))


def travel(way: str, ys: list[Any], xs: list[Any]) -> tuple[list[Any], list[Any]]:
    """ys and xs in another graph."""
    graph = xs[0].graph
    if way == "stay":
        return ys, xs
    if way == "subgraph":
        with graph:
            names = [f"out{len(graph)}_{i}" for i in range(len(ys))]
            ys = [gg.identity(y, name=name) for y, name in zip(ys, names, strict=True)]
    table: dict[Any, gg.Tensor]
    if way == "pickle":
        _, named = pickle.loads(pickle.dumps((graph, {t.name: t for t in [*ys, *xs]})))
        table = {t: named[t.name] for t in [*ys, *xs]}
    elif way == "import":
        with gg.Graph():
            table = gg.import_graph(graph)
    else:
        given = [x for x in xs if x.node.type == "Placeholder"]
        other = graph.copy() if way == "copy" else graph.subgraph(given, ys)
        table = {t: other.tensor(t.name) for t in [*ys, *xs]}
    return [table[y] for y in ys], [table[x] for x in xs]


def answer(q: Question, world: Loops, travels: bool) -> list[np.ndarray]:
    """What a question comes to."""
    arrays = q.arrays()
    with gg.Graph():
        feeds = [world.feed(a, n) for a, n in zip(arrays, ["a", "v", "rows"], strict=True)]
        w = gg.variable(0.4, name="w")
        shared = list(q.steps[: len(q.steps) - q.after])
        later = list(q.steps[len(shared) :])
        journeys = list(q.journeys) if travels else ["stay"] * 8
        f = program(q, world, w)
        if q.batch is None:
            ys, xs = f(*feeds), [*feeds, w]
            found = list(ys)
            later = q.steps
        else:

            def examples(*given: Any) -> Any:
                ys = f(*given)
                found = list(ys)
                for at, step in enumerate(shared):
                    ys = ask(q, step, ys, list(given), at)
                    found += ys
                return found

            found = list(leaves(world.vmap(examples, in_axes=q.axes)(*feeds)))
            ys, xs = found, [*feeds, w]
    used = len(found)
    for at, step in enumerate(later):
        both, xs = travel(journeys[at], [*found, *ys], xs)
        found, ys = both[:used], both[used:]
        with xs[0].graph as graph:
            if q.mark and at == 0:
                rule = by_elements
                graph.mark(gg.select.op("Sin"), rule, allow_inside=True, allow_empty=True,
                           replace=True)  # fmt: skip
            if q.unmark == at and q.mark:
                graph.unmark(gg.select.op("Sin"))
            ys = ask(q, step, ys, xs, at + 10)
            found += ys
            used = len(found)
    both, xs = travel(journeys[-1], found, xs)
    with xs[0].graph:
        options = {"backend": q.backend, "optimize": q.optimize}
        if not travels:
            return list(gg.compile(xs[:-1], both, backend="numpy", optimize=False)(*arrays))
        if not q.memory:
            return list(gg.compile(xs[:-1], both, **options)(*arrays))
        with mock.patch.object(segments, "FEWEST", 2):  # short loops are cut, too
            options |= least_memory(xs[:-1], both, arrays, options)
            return list(gg.compile(xs[:-1], both, **options)(*arrays))


def least_memory(
    xs: list[Any], ys: list[Any], arrays: list[np.ndarray], options: dict[str, Any]
) -> dict[str, int]:
    """The least limit under which a program runs, as its error names it; none if nobody knows."""
    try:
        gg.compile(xs, ys, memory=1, **options)(*arrays)
    except gg.ExecutionError as error:
        found = re.search(r"needs at least ([\d,]+)", str(error))
        return {"memory": int(found[1].replace(",", ""))} if found else {}
    return {"memory": 1}


REASONS = (
    "is called for each part and not once for their sum",
    "needs the transpose of its gradient rule",
    "the choice has no effect",
    "are others than those that were carried here",
)
"""What loops may refuse where plain loops do not, with these words (docs/semantics.md)."""


class Refused(Exception):
    """The loops gave an error where plain loops did not, for another reason than these."""


def check(seed: int) -> str:
    """How a program fared: agreed or refused in words; Refused or AssertionError else."""
    q = Question(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.PerformanceWarning)
        try:
            expected: Any = answer(q, Plain(), travels=False)
        except gg.GraphGradError as error:
            expected = error
        try:
            found: Any = answer(q, Loops(q.unknown), travels=True)
        except gg.GraphGradError as error:
            found = error
    if isinstance(found, Exception):
        if isinstance(expected, Exception):
            return "both refused"
        if any(reason in str(found) for reason in REASONS):
            return "refused with a reason"
        raise Refused(f"{type(found).__name__}: {found}") from found
    if isinstance(expected, Exception):  # of a run or a branch that the other way has once
        assert REASONS[2] in str(expected), f"only plain loops refused: {expected}"
        return "only plain loops refused"
    assert len(found) == len(expected)
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        size = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-4 * size, err_msg=f"output {i}, {q}")
        assert a.dtype == b.dtype
    return "agreed"


def main() -> int:
    """Run the programs; 1 where a value is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args()
    how: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    wrong = 0
    for seed in range(given.seed, given.seed + given.count):
        try:
            how[check(seed)] += 1
        except Refused as error:
            how["refused"] += 1
            print(f"{seed}: REFUSED {' '.join(str(error).split())[:400]}", flush=True)
            if given.trace:
                traceback.print_exc()
        except Exception as error:
            how["wrong"] += 1
            wrong += 1
            print(f"{seed}: WRONG {type(error).__name__} {' '.join(str(error).split())[:700]}",
                  flush=True)  # fmt: skip
            if given.trace:
                traceback.print_exc()
    print(dict(how), f"{time.monotonic() - began:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
