"""Random programs on open lengths, against the same programs on fixed ones.

A seed is a program: text, in which N and M are lengths or ints. It is built once with open
placeholders and run at several sizes, and built anew for each of these sizes with fixed ones.

    python -m tests.fuzz.lengths --count 100 --seed 0 --backend llvm --shrink
"""

from __future__ import annotations

import argparse
import collections
import pickle
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import graphgrad as gg
from graphgrad.base.length import Length
from graphgrad.base.solving import told_names
from graphgrad.ir.types import sized

BACKENDS = ("numpy", "llvm")
LARGEST = 1e6  # of a value: beyond, nothing is compared
MOST = 3_000  # elements of a value where the program is drawn
FIXED = ({"N": 5, "M": 3}, {"N": 8, "M": 5}, {"N": 2, "M": 4})
"""What a drawn line is tried with: it is kept where the first two of these take it."""
WAYS = ("as it is",) * 5 + ("copy", "pickle", "file", "renamed", "import", "import of one",
        "import of more")  # fmt: skip
INPUTS = (
    "N", "N", "N", "M", "M", "3", "2", "1", "2*N + 1", "N + 2", "2*N", "3*M", "M + 1", "N*M",
    "N + M", "N//2 + 1", "max(N - 1, 0)", "max(N, M)", "N%3 + 1", "2*(M//2)", "min(N, 4)",
)  # fmt: skip
ARITHMETIC = (
    "N", "M", "N + 1", "N // 2", "2 * N", "M + 2", "N // 2 + M", "N * M", "N % 3", "(N + M) // 2",
    "gg.Length.max(N, M)", "gg.Length.min(N, 3)", "gg.Length.max(N - 1, 0)",
    "gg.Length.ceil_div(N, 2)", "abs(N - M)", "N // 2 * 2", "N - N // 2",
)  # fmt: skip


@dataclass
class Question:
    """A program and how it travels.

    inputs: (name, lengths of its axes); lines: (name of the value, statement);
    spent: (what draws it, why) of lines that the open build did not take.
    """

    inputs: list[tuple[str, tuple[str, ...]]]
    lines: list[tuple[str, str]]
    way: str = "as it is"
    early: bool = True  # gradients are built before the journey
    optimize: bool = True
    second: bool = True
    spent: list[tuple[str, str]] = field(default_factory=list)


class Refused(Exception):
    """The open build or its run said no, in words, where the fixed one ran."""


# --- building -------------------------------------------------------------------------------------


class Build:
    """A program in a graph of its own, where names are these sizes or open."""

    def __init__(self, sizes: dict[str, int] | None) -> None:
        self.sizes = sizes
        self.graph = gg.Graph()
        names = sizes or {name: Length(name) for name in ("N", "M")}
        self.scope: dict[str, Any] = {"gg": gg, "np": np, "front": front, **names}
        self.inputs: list[str] = []

    def place(self, name: str, dims: tuple[str, ...]) -> None:
        """A placeholder of these lengths."""
        shape = tuple(map(opened, dims)) if self.sizes is None else at(dims, self.sizes)
        with self.graph:
            self.scope[name] = gg.placeholder(shape, name=name)
        self.inputs.append(name)

    def run(self, line: str) -> None:
        """One statement of the program."""
        with self.graph:
            exec(compile(line, "<program>", "exec"), self.scope)

    def tensors(self, names: list[str]) -> list[gg.Tensor]:
        return [self.scope[name] for name in names]


def opened(dim: str) -> Any:
    return int(dim) if dim.isdigit() else dim


def front(bound: Any) -> Any:
    """A bound that counts from the front, as a length does."""
    return max(bound, 0) if isinstance(bound, int) else bound


def at(dims: tuple[str, ...], sizes: dict[str, int]) -> tuple[int, ...]:
    """Lengths of axes at these sizes."""
    scope = {"max": max, "min": min, **sizes}
    return tuple(int(eval(d, dict(scope))) for d in dims)


def built(q: Question, sizes: dict[str, int] | None) -> Build:
    b = Build(sizes)
    for name, dims in q.inputs:
        b.place(name, dims)
    for _, line in q.lines:
        b.run(line)
    return b


# --- drawing --------------------------------------------------------------------------------------


class Drawing:
    """A program that grows by lines that its builds take."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.fixed = [Build(sizes) for sizes in FIXED[:2]]
        self.open = Build(None)
        self.values: list[str] = []
        self.q = Question([], [])

    def flip(self, chance: float = 0.5) -> bool:
        return bool(self.rng.random() < chance)

    def of(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def type(self, name: str) -> Any:
        return self.fixed[0].scope[name].type

    def pick(self, least: int = 0, most: int = 9, kind: str = "f") -> str:
        """A value of so many axes, most often a late one; LookupError without any."""
        found = [
            v for v in self.values
            if least <= len(self.type(v).shape) <= most and self.type(v).dtype.kind in kind
        ]  # fmt: skip
        if not found:
            raise LookupError
        return str(self.of(found[-4:] if self.flip(0.7) else found))

    def rank(self, name: str) -> int:
        return len(self.type(name).shape)

    def axis(self, name: str) -> int:
        return int(self.rng.integers(self.rank(name)))

    def length(self) -> str:
        """Arithmetic on names and on lengths of values."""
        if self.values and self.flip(0.4):
            x = self.pick(1, kind="fi")
            axis = self.axis(x)
            forms = ("{}", "{} + 1", "{} // 2", "2 * {}", "gg.Length.max({} - 1, 0)", "{} % 2 + 1")
            return str(self.of(forms)).format(f"{x}.shape[{axis}]")
        return str(self.of(ARITHMETIC)) if self.flip(0.8) else str(self.rng.integers(1, 4))

    def place(self, name: str, dims: tuple[str, ...]) -> None:
        for b in (*self.fixed, self.open):
            b.place(name, dims)
        self.q.inputs.append((name, dims))
        self.values.append(name)

    def add(self, what: str, text: str) -> None:
        """A line `name = text`, or several lines that assign {y}, if the fixed builds take it."""
        y = f"v{len(self.q.lines)}"
        line = text.replace("{y}", y) if "{y}" in text else f"{y} = {text}"
        for b in self.fixed:
            b.scope.pop(y, None)
        try:
            for b in self.fixed:
                b.run(line)
                made = b.scope.get(y)
                if made is None and y in b.scope:  # a gradient of what nothing leads to
                    return
                if made is not None and not (isinstance(made, gg.Tensor) and made.type.static):
                    return
                if made is not None and np.prod(made.shape) > MOST:
                    return
        except Exception:  # the line is not for these
            return
        line_of = (y if y in self.fixed[0].scope else "", line)
        try:
            self.open.run(line)
        except Exception as error:
            if not in_words(error):
                self.q.lines.append(line_of)  # the program is wrong: it shows when it is asked
                raise Broken from error
            self.q.spent.append((what, reason(error)))
            return
        self.q.lines.append(line_of)
        if line_of[0]:
            self.values.append(y)


class Broken(Exception):
    """The open build broke at the last line."""


def question(seed: int) -> Question:
    """The program of a seed."""
    d = Drawing(seed)
    told = [d.of(("{0}", "{0}", "{0}", "2*{0} + 1", "{0} + 2", "3*{0}")).format(n) for n in "NM"]
    if d.flip():
        told.reverse()
    apart = d.flip(0.4)  # an input for each name
    for i in range(int(d.rng.integers(1 + apart, 4))):
        dims = [told.pop() for _ in range(min(len(told), 1 if apart else 2))]
        if not told:
            dims += [d.of(INPUTS) for _ in range(int(d.rng.integers(not dims, 4 - len(dims))))]
        dims = [dims[k] for k in d.rng.permutation(len(dims))]
        d.place(f"x{i}", tuple(dims))
    d.q.way, d.q.early, d.q.optimize, d.q.second = (
        d.of(WAYS), d.flip(), d.flip(0.8), d.flip(0.5)
    )  # fmt: skip
    try:
        wanted = int(d.rng.integers(3, 12))
        for _ in range(60):
            if len(d.q.lines) >= wanted:
                break
            name, draw = d.of(DRAWS)
            try:
                text = draw(d)
            except LookupError:
                continue
            d.add(name, text)
    except Broken:
        pass
    return d.q


def solvable(q: Question) -> set[str]:
    return told_names(Length(d) for _, dims in q.inputs for d in dims if not d.isdigit())


# --- what is drawn --------------------------------------------------------------------------------

Draw = Callable[[Drawing], str]


def unary(d: Drawing) -> str:
    forms = ("gg.tanh({x})", "gg.sin({x})", "{x} * 0.5", "{x} * {x}", "gg.nn.softmax({x}, axis=-1)")
    return str(d.of(forms)).format(x=d.pick())


def binary(d: Drawing) -> str:
    x, y = d.pick(), d.pick()
    return str(d.of(("{} + {}", "{} * {}", "gg.maximum({}, {})", "{} - {}"))).format(x, y)


def one_key(d: Drawing) -> str:
    n = d.length()
    keys = (
        ":", ":", ":", "1:", ":-1", "::2", "::-1", "::-2", "1::3", "-2:", ":3", "0", "-1", "1",
        "2:-1", "-3:-1", "-1::-2", "3::-1", ":-3:-1", "::3", "::-3", "-5::2", ":1:-1",
        f"front({n}):", f":front({n})", f"front({n})::2", f"front({n})::-1", f":front({n}):-1",
        f"front({n}):front({d.length()})", f"front({n} - 2):front({n})", f":front({n} - 1)",
        f"front({n}):-1", f"-3:front({n})", f"front({n}):front({n} + 2):3", f"-2:front({n}):-1",
        f"front({n})::-2", f"front({n}):1:-1", "None, :",
    )  # fmt: skip
    return str(d.of(keys))


def sliced(d: Drawing) -> str:
    x = d.pick(1)
    keys = [one_key(d) if d.flip(0.7) else ":" for _ in range(int(d.rng.integers(d.rank(x))) + 1)]
    return f"{x}[{'..., ' * d.flip(0.2)}{', '.join(keys)}]"


def joined(d: Drawing) -> str:
    x = d.pick(1)
    y = x if d.flip(0.3) else d.pick(d.rank(x), d.rank(x))
    axis = d.axis(x)
    forms = (
        f"gg.concat([{x}, {y}], axis={axis})",
        f"gg.concat([{x}, {y}, {x}], axis={axis})",
        f"gg.stack([{x}, {y}], axis={int(d.rng.integers(d.rank(x) + 1))})",
        f"gg.concat([{x}, gg.zeros_like({x})], axis={axis})",
        f"gg.concat([{x}, gg.ones({shape_with(x, d.rank(x), axis, d.length())})], axis={axis})",
    )
    return str(d.of(forms))


def shape_with(x: str, rank: int, axis: int, length: str) -> str:
    """The shape of x with another length of one axis, as text."""
    parts = [length if a == axis else f"{x}.shape[{a}]" for a in range(rank)]
    return f"({', '.join(parts)},)"


def padded(d: Drawing) -> str:
    x = d.pick(1)
    widths = [d.of(("(1, 2)", "(0, 0)", "(0, 1)", f"(0, {d.length()})")) for _ in range(d.rank(x))]
    mode = d.of(("constant", "constant", "reflect", "edge", "wrap", "symmetric"))
    return f"gg.pad({x}, ({', '.join(widths)},), mode={mode!r})"


def repeated(d: Drawing) -> str:
    x = d.pick(1)
    axis = d.axis(x)
    forms = (
        f"gg.tile({x}, {d.rng.integers(1, 3)})", f"gg.tile({x}, (2,) + (1,) * {d.rank(x)})",
        f"gg.repeat({x}, {d.rng.integers(1, 4)}, axis={axis})", f"gg.repeat({x}, 2)",
        f"gg.repeat({x}, {d.length()}, axis={axis})", f"gg.tile({x}, {d.length()})",
        f"gg.roll({x}, {d.rng.integers(-2, 4)}, axis={axis})", f"gg.flip({x}, axis={axis})",
        f"gg.broadcast_to({x}, ({d.length()}, *{x}.shape))",
    )  # fmt: skip
    return str(d.of(forms))


def reshaped(d: Drawing) -> str:
    x = d.pick(1)
    s = [f"{x}.shape[{a}]" for a in range(d.rank(x))]
    every = " * ".join(s)
    forms = [
        "-1", "(1, -1)", "(-1, 1)", "(2, -1)", "(-1, 2)", "(3, -1)", f"({every}, 1)", f"({every},)",
        f"({s[0]}, -1)", f"(-1, {s[-1]})", f"({', '.join(s[::-1])},)", f"({s[-1]}, 1, -1)",
        f"({every} // 2, 2)", f"(2 * {s[0]}, -1)", f"({s[0]} // 2, -1)", f"(2, {every} // 2)",
        f"({d.length()}, -1)", f"(-1, {d.length()})",
    ]  # fmt: skip
    return f"gg.reshape({x}, {d.of(forms)})"


def moved(d: Drawing) -> str:
    x = d.pick(1)
    a, b = d.axis(x), d.axis(x)
    forms = (
        f"gg.transpose({x})", f"gg.swapaxes({x}, {a}, {b})", f"gg.moveaxis({x}, {a}, {b})",
        f"gg.expand_dims({x}, {a})", f"gg.flatten({x})", f"gg.squeeze({x}, {a})",
        f"gg.diagonal({x})", f"gg.trace({x})",
    )  # fmt: skip
    return str(d.of(forms))


def created(d: Drawing) -> str:
    n, m = d.length(), d.length()
    forms = (
        f"gg.zeros(({n}, {m}))", f"gg.ones(({n} * 2, 3))", f"gg.full(({n},), 0.3)", f"gg.eye({n})",
        f"gg.eye({n}, {m})", f"gg.arange({n}) * 0.1", f"gg.ones(({n}, {m})) / ({n} + 1)",
        f"gg.eye({n}, {m}, 1)", f"gg.arange({n}, {n} + {m}) * 0.1", f"gg.tri({n})",
        f"gg.linspace(0.0, 1.0, {n})", f"gg.arange(0.0, {n}, 0.5)", f"gg.arange(1, 2 * {n}, 2)",
        f"gg.arange({n}, 0, -1) * 0.2", f"gg.zeros({n})", f"gg.full(({n}, 1), 0.1 * {m})",
    )  # fmt: skip
    if d.flip():
        x = d.pick()
        forms += (f"gg.zeros(({n}, 1)) + {x}", f"gg.zeros_like({x}) + 0.5")
        if d.rank(x):
            forms += (f"gg.zeros(({n}, {x}.shape[-1])) + {x}", f"gg.zeros({x}.shape) + 0.2")
    return str(d.of(forms))


def integers(d: Drawing) -> str:
    n = d.length()
    forms = [f"gg.arange({n})", f"gg.arange({n})[::-1]", f"gg.ones(({n},), 'int64')"]
    x = d.pick(1)
    axis = d.axis(x)
    forms += [f"gg.argsort({x}, axis={axis})", f"gg.argmax({x}, axis={axis})"]
    forms += [f"gg.astype({x} > 0, 'int64')", f"gg.arange({x}.shape[{axis}])"]
    return str(d.of(forms))


def reduced(d: Drawing) -> str:
    x = d.pick(1)
    a = d.axis(x)
    forms = (
        f"gg.sum({x}, axis={a}) / {x}.shape[{a}]", f"gg.sum({x}) / {x}.shape[{a}]",
        f"gg.mean({x}, axis={a})", f"gg.sum({x}, axis={a}, keepdims=True)",
        f"gg.max({x}, axis={a})",
        f"gg.var({x}, axis={a})", f"gg.mean({x})", f"gg.sum({x} * {x}) / ({d.length()} + 1)",
        f"gg.min({x}, axis={a})", f"{x} - gg.mean({x}, axis={a}, keepdims=True)",
        f"gg.logsumexp({x}, axis={a})", f"gg.median({x}, axis={a})", f"gg.prod({x}, axis={a})",
    )  # fmt: skip
    return str(d.of(forms))


def product(d: Drawing) -> str:
    x, y = d.pick(1, 3), d.pick(1, 3)
    forms = (
        f"{x} @ {y}", f"{x} @ gg.matrix_transpose({x})", f"gg.matrix_transpose({x}) @ {y}",
        f"gg.tensordot({x}, {y}, 1)", f"gg.einsum('ij,kj->ik', {x}, {y})", f"gg.outer({x}, {y})",
        f"gg.einsum('i...,i...->...', {x}, {y})", f"{x} @ gg.ones(({x}.shape[-1], {d.length()}))",
        f"gg.eye({x}.shape[0]) @ {x}", f"gg.einsum('...i,j->...ij', {x}, {y})",
    )  # fmt: skip
    return str(d.of(forms))


def ordered(d: Drawing) -> str:
    x = d.pick(1)
    a = d.axis(x)
    forms = (
        f"gg.cumsum({x}, axis={a})", f"gg.sort({x}, axis={a})", f"gg.diff({x}, axis={a})",
        f"gg.take({x}, gg.arange({x}.shape[{a}] // 2), axis={a})",
        f"gg.take({x}, gg.arange({x}.shape[{a}])[::-1], axis={a})",
        f"gg.take_along_axis({x}, gg.argsort({x}, axis={a}), axis={a})",
        f"gg.cumulative_prod({x}, axis={a})", f"gg.top_k({x}, 2)[0]",
    )  # fmt: skip
    return str(d.of(forms))


def taken(d: Drawing) -> str:
    x, i = d.pick(1), d.pick(1, 2, kind="i")
    a = d.axis(x)
    forms = (
        f"gg.take({x}, {i}, axis={a})", f"gg.take({x}, {i} % {x}.shape[{a}], axis={a})",
        f"{x}[{i} % {x}.shape[0]]", f"gg.one_hot({i}, {d.length()})", f"gg.one_hot({i} % 3, 3)",
        f"gg.at({x})[{i} % {x}.shape[0]].add(0.5)", f"{i} * 0.1", f"{x}.at[{i}].set(0.5)",
    )  # fmt: skip
    return str(d.of(forms))


def convolved(d: Drawing) -> str:
    x = d.pick(1, 2)
    n = d.rank(x)
    size, stride = d.of((1, 2, 3)), d.of((1, 1, 2, 3))
    padding = d.of(("SAME", "VALID"))
    image = f"{x}[None, ..., None]"
    window = f"({size},) * {n}"
    forms = (
        f"gg.nn.conv({image}, gg.full({window} + (1, 1), 0.3), {stride}, {padding!r})",
        f"gg.nn.conv({image}, gg.full({window} + (1, 2), 0.3), {stride}, {padding!r}, dilation=2)",
        f"gg.nn.max_pool({image}, {size}, {stride}, {padding!r})",
        f"gg.nn.avg_pool({image}, {size}, {stride}, {padding!r})",
        f"gg.nn.max_pool({image}, 2, 2, {padding!r}, ceil_mode=True)",
        f"gg.nn.conv_transpose({image}, gg.full({window} + (1, 1), 0.3), {stride}, {padding!r})",
        f"gg.nn.resize({image}, ({d.length()},) * {n})",
    )
    return f"{d.of(forms)}[0, ..., 0]"


def chosen(d: Drawing) -> str:
    x, y = d.pick(), d.pick()
    forms = (f"gg.where({x} > 0, {x}, {y})", f"gg.where({x} > {d.length()} * 0.1, {x}, 0.5)",
             f"gg.clip({x}, -0.5, {d.length()})")  # fmt: skip
    return str(d.of(forms))


def parted(d: Drawing) -> str:
    x = d.pick(1)
    a = d.axis(x)
    k = int(d.rng.integers(2, 4))
    forms = (
        f"gg.split({x}, {k}, axis={a})[{k - 1}]", f"gg.split({x}, [1, 2], axis={a})[1]",
        f"gg.split(gg.concat([{x}, {x}], axis={a}), 2, axis={a})[1]",
        f"gg.unstack({x}[:2])[0]", f"gg.array_split({x}, {k}, axis={a})[0]",
        f"gg.split({x}, [{x}.shape[{a}] // 2], axis={a})[1]",
    )  # fmt: skip
    return str(d.of(forms))


def windows(d: Drawing) -> str:
    x = d.pick(1)
    n, k = f"{x}.shape[0]", int(d.rng.integers(2, 4))
    one = f"{x}[i:front({n} - {k} + 1 + i)]"
    return f"gg.stack([{one} for i in range({k})], axis=0)"


def scaled(d: Drawing) -> str:
    x = d.pick()
    n = d.length()
    forms = ["{x} * ({n} * 0.5)", "{x} / ({n} + 1)", "{x} * (1 / ({n} + 1))", "{n} * 0.5 + {x}",
             "{x} * {n}", "{n} - {x}", "{x} * {n} ** 0.5", "{x} + 0.5 ** ({n})",
             "{x} * np.float64(0.5) * {n}", "gg.asarray({n}) * {x}"]  # fmt: skip
    if d.rank(x):
        forms += ["{x} / gg.size({x}, 0)", "{x} * gg.size({x})", "gg.ones(3) * gg.size({x}, -1)"]
        forms += ["gg.fori_loop(0, gg.size({x}, 0), lambda i, c: c * 0.9 + i * 0.1, {x})"]
    return str(d.of(forms)).format(x=x, n=n)


def looped(d: Drawing) -> str:
    x = d.pick(1)
    n, r = d.length(), d.rank(x)
    s = f"{x}.shape"
    forms = [
        f"gg.scan(lambda c, r: (gg.tanh(c + r), c * 0.5), gg.zeros({s}[1:]), {x})[1]",
        f"gg.scan(lambda c, r: (c * 0.5 + gg.sum(r) / {s}[0], r * c), 0.1, {x})[1]",
        f"gg.scan(lambda c, r: (c * 0.9, gg.concat([gg.ravel(r), c])), gg.zeros(({n},)), {x})[1]",
        f"gg.scan(lambda c, r: (gg.sin(c + r), c), gg.zeros({s}[1:]), {x}, reverse=True)[0]",
        f"gg.scan(lambda c, _: (c * 0.5 + 0.1, c), {x}, length={n})[1]",
        f"gg.fori_loop(0, 3, lambda i, c: gg.tanh(c * {n} / ({n} + 1)), {x})",
        f"gg.fori_loop(0, {n}, lambda i, c: gg.tanh(c), {x})",
        f"gg.fori_loop(0, 2, lambda i, c: c[::-1] * {s}[0] / ({s}[0] + 1), {x})",
        f"gg.cond(gg.sum({x}) > 0, lambda: {x} * 0.5, lambda: {x}[::-1] / ({n} + 1))",
        f"gg.cond(gg.size({x}, 0) > 2, lambda: gg.sum({x}, 0), lambda: gg.zeros({s}[1:]))",
        f"gg.vmap(lambda r: gg.concat([gg.ravel(r), gg.zeros(({n},))]))({x})",
        f"gg.vmap(lambda r: gg.sum(r) / {n} if {r} else r)({x})",
        f"gg.vmap(lambda r: gg.reshape(gg.ones(({s}[0],)) * gg.sum(r), (-1, 1)))({x})",
        f"gg.vmap(lambda r: gg.reshape(r, -1)[front({n}):])({x})",
        f"gg.vmap(lambda r: gg.sum({x}) * r)({x})",
        f"gg.map(lambda r: gg.sum(r) * {s}[0], {x})",
        f"gg.vmap(lambda r: gg.cumsum(r[1:]) * {n}, in_axes={d.axis(x)})({x})",
        f"gg.while_loop(lambda c: gg.sum(c) < 1.0, lambda c: c + {n} + 1.0, gg.sum({x}) * 0.1)",
    ]
    return str(d.of(forms))


def region(d: Drawing) -> str:
    x = d.pick(1)
    n = d.length()
    rules_and_bodies = (
        ("dy * site.inputs[0].shape[0]", f"gg.sin({x})"),
        ("dy / (site.inputs[0].shape[0] + 1)", f"{x} * 0.5"),
        ("gg.concat([gg.zeros((1, *site.inputs[0].shape[1:])), dy])", f"{x}[1:]"),
        ("gg.ones(site.inputs[0].shape) * gg.sum(dy)", f"gg.sum({x})"),
        ("gg.concat([dy, gg.zeros((site.inputs[0].shape[0] - dy.shape[0], "
         "*site.inputs[0].shape[1:]))])", f"{x}[:front({x}.shape[0] // 2)]"),
        ("site.default(dy)[0] * site.inputs[0].shape[0]", f"gg.concat([{x}, {x}])"),
        ("gg.reshape(dy, site.inputs[0].shape)", f"gg.flatten({x})"),
        (f"dy * {n}", f"gg.tanh({x})"),
    )  # fmt: skip
    rule, body = rules_and_bodies[int(d.rng.integers(len(rules_and_bodies)))]
    return (
        f"def rule_{{y}}(site, dy): return {rule}\n"
        f"with gg.override_gradient(rule_{{y}}, allow_empty=True): {{y}} = {body}"
    )


def nested(d: Drawing) -> str:
    """Loops, maps and rules in each other, over bodies that use lengths."""
    x = d.pick(1)
    n = d.length()
    rule = str(d.of((
        "dy * site.inputs[0].shape[0]", f"dy / ({n} + 1)",
        "gg.ones(site.inputs[0].shape) * dy[:1]",
        "site.default(dy)[0] * gg.size(site.inputs[0], 0)",
        "gg.cumsum(dy) / site.inputs[0].shape[0]",
    )))  # fmt: skip
    inner = str(d.of((
        f"gg.scan(lambda c, e: (c * 0.5 + e, c + {n}), 0.1, gg.ravel(r))[1]",
        f"gg.vmap(lambda e: gg.concat([gg.ravel(e), gg.ones(({n},))]))(gg.ravel(r))",
        "gg.cond(gg.sum(r) > 0, lambda: gg.ravel(r)[::-1], lambda: gg.ravel(r) * r.size)"
        .replace("r.size", f"{n}"),
        f"gg.fori_loop(0, 2, lambda i, c: c * {n} / ({n} + 1) + gg.sum(r), gg.ravel(r))",
        f"gg.pad(gg.ravel(r), (1, 1))[front({n}):]", f"gg.broadcast_to(gg.sum(r), ({n}, 2))",
        f"gg.gradients(gg.sum(gg.sin(r)) * {n}, [r])[0]", "gg.reshape(gg.ravel(r), (1, -1))",
        "marked(gg.ravel(r))", f"marked(gg.concat([gg.ravel(r), gg.ones(({n},))]))",
        f"gg.jvp([gg.sin(r) * {n}], [r], [r])[0]",
        f"gg.associative_scan(lambda a, b: a * b + {n}, gg.ravel(r))",
    )))  # fmt: skip
    outer = str(d.of((
        f"gg.vmap(one)({x})", f"gg.scan(lambda c, r: (c, one(r)), 0.0, {x})[1]",
        f"gg.map(one, {x})", f"gg.vmap(one, in_axes={d.axis(x)})({x})", f"one({x})",
        f"gg.vmap(lambda i: one({x} * i))(gg.arange({n}) * 0.3)",
        f"gg.gradients(gg.sum(gg.sin(one({x}))), [{x}])[0]", f"gg.jvp([one({x})], [{x}], [{x}])[0]",
        f"gg.cond(gg.size({x}, 0) > 2, lambda: one({x}), lambda: one({x} * 0.5))",
        f"gg.scan(lambda c, r: (c + gg.sum(one(r)), c), 0.0, {x}, reverse=True)[1]",
        f"gg.switch(gg.size({x}, 0) % 2, [lambda: one({x}), lambda: one(-{x})])",
    )))  # fmt: skip
    return (
        f"def rule_{{y}}(site, dy): return {rule}\n"
        "def marked(t):\n"
        "    with gg.override_gradient(rule_{y}, allow_empty=True): made = gg.tanh(t)\n"
        "    return made\n"
        f"def one(r): return {inner}\n"
        f"{{y}} = {outer}"
    )


def assumed(d: Drawing) -> str:
    facts = ("N >= 2", "N >= 1", "M >= 2", "N > 0", "N + M >= 2", "2 * N >= M", "N >= M", "M < 9")
    return f"gg.assume({d.of(facts)})  # {{y}}"


WEIGHTS: dict[Draw, int] = {
    unary: 2, binary: 4, sliced: 8, joined: 5, padded: 3, repeated: 4, reshaped: 6, moved: 3,
    created: 4, integers: 2, reduced: 5, product: 4, ordered: 3, taken: 3, convolved: 3, chosen: 2,
    parted: 2, windows: 1, scaled: 3, looped: 5, region: 3, nested: 6, assumed: 1,
}  # fmt: skip
DRAWS = [(draw.__name__, draw) for draw, weight in WEIGHTS.items() for _ in range(weight)]


# --- asking ---------------------------------------------------------------------------------------


@dataclass
class Asked:
    """A build with its gradients, where its journey has brought it."""

    graph: gg.Graph
    inputs: list[gg.Tensor]
    values: list[gg.Tensor]  # of the lines
    gradients: list[gg.Tensor]
    names: Callable[[dict[str, int]], dict[str, int] | None] = dict


def asked(q: Question, sizes: dict[str, int] | None) -> Asked:
    """The build of a question, with what is asked of it."""
    b = built(q, sizes)
    names = [name for name, _ in q.lines if name]
    found = Asked(b.graph, b.tensors(b.inputs), b.tensors(names), [])
    way = q.way if sizes is None else "as it is"
    if not q.early:
        found = gone(found, way)
    found.gradients = gradients(q, found)
    return gone(found, way) if q.early else found


def gradients(q: Question, a: Asked) -> list[gg.Tensor]:
    """First and second gradients of all values by all inputs."""
    with a.graph:
        total = gg.sum(gg.zeros(1))
        for y in a.values:
            if y.type.differentiable:
                total = total + gg.sum(gg.sin(y))
        firsts = gg.gradients(total, a.inputs)
        if not q.second:
            return list(map(given, firsts, a.inputs))
        smooth = gg.sum(gg.zeros(1))
        for dx in firsts:
            if dx is not None:
                smooth = smooth + gg.sum(gg.sin(dx))
        seconds = gg.gradients(smooth, a.inputs)
        return list(map(given, [*firsts, *seconds], [*a.inputs, *a.inputs]))


def given(dx: Any, x: gg.Tensor) -> gg.Tensor:
    return gg.zeros_like(x) if dx is None else dx


def gone(a: Asked, way: str) -> Asked:
    """What stands for all of it at the end of a journey."""
    if way == "as it is":
        return a
    every = [*a.inputs, *a.values, *a.gradients]
    names = a.names
    if way in ("copy", "pickle", "file"):
        graph = TRAVELS[way](a.graph)
        new = [graph.tensor(t.name) for t in every]
    else:
        graph = gg.Graph()
        stand, names = STANDS[way]
        with graph:
            there = {}
            for x in a.inputs:
                shape = [d.at(stand) if isinstance(d, Length) else d for d in x.shape]
                there[x] = gg.placeholder(shape, name=f"{x.node.name}_there")
            found = gg.import_graph(a.graph, there)
        new = [found[t] for t in every]
    parts = iter(new)
    counts = (a.inputs, a.values, a.gradients)
    return Asked(graph, *[[next(parts) for _ in part] for part in counts], names)


def through_file(graph: gg.Graph) -> gg.Graph:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.gg"
        gg.save(path, graph)
        return gg.load(path).graph


TRAVELS: dict[str, Callable[[gg.Graph], gg.Graph]] = {
    "copy": lambda graph: graph.copy(),
    "pickle": lambda graph: pickle.loads(pickle.dumps(graph)),
    "file": through_file,
}
P, Q = Length("P"), Length("Q")
STANDS: dict[str, Any] = {
    "renamed": ({"N": Length("M"), "M": Length("N")}, lambda s: {"N": s["M"], "M": s["N"]}),
    "import": ({"N": P, "M": 4}, lambda s: {"P": s["N"]} if s["M"] == 4 else None),
    "import of one": ({"N": P, "M": P}, lambda s: {"P": s["N"]} if s["M"] == s["N"] else None),
    "import of more": (
        {"N": 2 * P + 1, "M": Q + 1},
        lambda s: {"P": s["N"] // 2, "Q": s["M"] - 1} if s["N"] % 2 and s["M"] else None,
    ),
}
"""What stands for N and M where a graph is imported, and the sizes there of sizes here, if any."""


def in_words(error: BaseException) -> bool:
    """Whether an error is one of graphgrad's, or a TypeError or ValueError that it words."""
    if isinstance(error, gg.GraphGradError):
        return True
    words = ("is open", "gg.", "graphgrad", "Length", "length", "NoneType")  # None: not promised
    return isinstance(error, TypeError | ValueError) and any(w in str(error) for w in words)


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


class Wrong(Exception):
    """The open build gives what the fixed one does not give, or breaks."""


def check(q: Question, backend: str = "numpy", only: int | None = None) -> collections.Counter[str]:
    """How it fared at how many sizes; at the first ones only, where that is said. Raises Wrong."""
    counts: collections.Counter[str] = collections.Counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        open_build, refusal = attempt(lambda: asked(q, None))
        run: Any = None
        if open_build is not None:
            run, refusal = attempt(lambda: program(open_build, backend, q))
        for sizes in sizes_of(q):
            if open_build is not None and open_build.names(sizes) is None:
                continue
            if counts.total() == only:
                break
            counts[at_size(q, sizes, open_build, run, refusal, backend)] += 1
    return counts


def attempt(f: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return f(), None
    except Exception as error:
        if not in_words(error):
            raise Wrong(f"broke: {reason(error)}") from error
        return None, error


def as_wrong(f: Callable[[], Any], error: BaseException) -> bool:
    """Whether a run raises an error in words, or the one of the fixed build."""
    try:
        f()
    except Exception as found:
        if in_words(found) or type(found) is type(error):
            return True
        raise Wrong(f"broke: {reason(found)}") from found
    return False


def program(a: Asked, backend: str, q: Question) -> Any:
    with a.graph:
        wanted = [*a.values, *a.gradients]
        return gg.compile(a.inputs, wanted, backend=backend, optimize=q.optimize)


def sizes_of(q: Question) -> Iterator[dict[str, int]]:
    """Where the lengths of all inputs are 0 or more."""
    for n, m in ((3, 5), (1, 2), (0, 3), (2, 8), (5, 1), (8, 0), (3, 3), (4, 4), (5, 4)):
        sizes = {"N": n, "M": m}
        if all(d >= 0 for _, dims in q.inputs for d in at(dims, sizes)):
            yield sizes


def at_size(
    q: Question, sizes: dict[str, int], a: Asked | None, run: Any, refusal: Any, backend: str
) -> str:
    """How it fared at these sizes."""
    rng = np.random.default_rng(sum(sizes.values()))
    arrays = [rng.normal(size=at(dims, sizes)) for _, dims in q.inputs]
    try:
        b = asked(q, sizes)
        wanted = program(b, backend, q)(*arrays)
    except Exception as error:
        if isinstance(error, ZeroDivisionError):
            return "none: a division of ints by 0"
        if run is not None and not as_wrong(lambda: run(*arrays), error):
            raise Wrong(f"silent at {sizes}: the fixed build says {reason(error)}") from error
        return "both refuse"
    if run is None:
        return f"refused: {reason(refusal)}"
    found, said = attempt(lambda: run(*arrays))
    if found is None:
        return f"refused at a run: {reason(said)}"
    assert a is not None
    names = a.names(sizes)
    outputs = zip([*a.values, *a.gradients], [*b.values, *b.gradients], found, wanted, strict=True)
    names_here = [name for name, _ in q.lines if name]
    labels = [*names_here, *[f"gradient {i}" for i in range(len(a.gradients))]]
    way = "agreed"
    for label, (t, s, y, z) in zip(labels, outputs, strict=True):
        shape = sized(t.shape, names)
        if y.shape != z.shape or y.dtype != z.dtype:
            raise Wrong(f"{label} at {sizes}: {y.dtype}{y.shape} and not {z.dtype}{z.shape}")
        if t.dtype != y.dtype or len(shape) != y.ndim:
            raise Wrong(f"{label} at {sizes}: {t.type!r} was promised, {y.dtype}{y.shape} came")
        if any(d is not None and d != n for d, n in zip(shape, y.shape, strict=True)):
            raise Wrong(f"{label} at {sizes}: {t.type!r} is {shape}, {y.shape} came")
        if None in shape and None not in s.shape:
            way = "agreed, with a length that was not promised"
        if not np.all(np.abs(z) < LARGEST):
            same_kind = np.array_equal(np.isfinite(y), np.isfinite(z))
            if not same_kind:
                raise Wrong(f"{label} at {sizes}: {y} and not {z}")
            return "too large"
        bound = 1e-10 * max(1.0, float(np.max(np.abs(z), initial=0.0)))
        if not np.allclose(y, z, rtol=0, atol=bound):
            raise Wrong(f"{label} at {sizes}: values differ by {np.max(np.abs(y - z))}")
    return way


# --- smaller ones ---------------------------------------------------------------------------------


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


def candidates(q: Question) -> Iterator[Question]:
    for name, value in [("way", "as it is"), ("second", False), ("optimize", False),
                        ("early", True)]:  # fmt: skip
        if getattr(q, name) != value:
            yield replace(q, **{name: value})
    for k in reversed(range(len(q.lines))):
        yield replace(q, lines=without(q.lines, k))
    for k in range(len(q.inputs) if len(q.inputs) > 1 else 0):
        name = q.inputs[k][0]
        if not any(name in line for _, line in q.lines):
            fewer = replace(q, inputs=q.inputs[:k] + q.inputs[k + 1 :])
            if {"N", "M"} <= solvable(fewer):
                yield fewer
    for i, (name, dims) in enumerate(q.inputs):
        for j, dim in enumerate(dims):
            for simple in ("N", "M", "2"):
                if len(dim) > 1:
                    new = (*dims[:j], simple, *dims[j + 1 :])
                    fewer = replace(q, inputs=[*q.inputs[:i], (name, new), *q.inputs[i + 1 :]])
                    if {"N", "M"} <= solvable(fewer):
                        yield fewer


def without(lines: list[tuple[str, str]], k: int) -> list[tuple[str, str]]:
    """The lines without one of them and what reads it."""
    gone, left = {lines[k][0]} - {""}, lines[:k]
    for name, line in lines[k + 1 :]:
        if any(word in names_in(line) for word in gone):
            gone.add(name)
        else:
            left.append((name, line))
    return left


def names_in(line: str) -> set[str]:
    return set(re.findall(r"\bv\d+\b", line))


def told(q: Question) -> str:
    """A program as text."""
    rows = [f"{name} = gg.placeholder({dims!r}, name={name!r})" for name, dims in q.inputs]
    rows += [line for _, line in q.lines]
    how = {k: getattr(q, k) for k in ("way", "early", "optimize", "second")}
    return "\n".join([f"# {how}", *rows])


def kind_of(q: Question, backend: str) -> str:
    try:
        check(q, backend)
    except Wrong as error:
        return "".join(c for c in str(error)[:40] if not c.isdigit())
    except Exception as error:
        return f"{type(error).__name__}"
    return "well"


def main() -> int:
    """Run the programs; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=BACKENDS, default="numpy")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the programs")
    parser.add_argument("--why", action="store_true", help="print why programs are refused")
    given = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    spent: collections.Counter[str] = collections.Counter()
    began, wrong = time.monotonic(), []
    for seed in range(given.seed, given.seed + given.count):
        q = question(seed)
        spent.update(f"{what}: {why}" for what, why in q.spent)
        if given.show:
            print(f"# {seed}\n{told(q)}")
        try:
            found = check(q, given.backend)
            for how, n in found.items():
                counts[how if given.why else how.partition(":")[0]] += n
        except Exception as error:
            wrong.append(seed)
            print(f"{seed}: WRONG {type(error).__name__} {str(error)[:600]}", flush=True)
            if given.trace:
                traceback.print_exc()
            if given.shrink:
                print(told(smaller(q, lambda q: kind_of(q, given.backend))), flush=True)
    if given.why:
        for line, n in [*spent.most_common(), *counts.most_common()]:
            print(f"{n:6}  {line[:260]}")
    print({k.partition(":")[0]: n for k, n in counts.items()} if not given.why else "")
    print(f"wrong: {wrong}; lines not taken: {spent.total()}; {time.monotonic() - began:.0f} s")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
