"""Wrong gradient rules, made from right ones: does check_gradient see that they are wrong?

python tools/mutate_rules.py            how many of each kind are caught, and which are not
python tools/mutate_rules.py --list     every mutant

A case is a function and its right rule, written as the terms that add up to each gradient. Mutants
that would be right again are left out by construction: a case says which inputs its rule reads by
value (a stale or stopped value is wrong only there), along which axes a gradient is constant (a
shift along those changes nothing), and every other change is one of a quantity that is not zero at
random points.
"""

import argparse
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphgrad as gg
from graphgrad.checks.gradient import check_gradient

SEED = 20


@dataclass
class Case:
    """A function, arrays to build it with, and its right rule as terms.

    terms     terms(xs, ys, dys) -> for each input the list of tensors that add up to its gradient
    reads     the inputs whose values the terms use
    uses_y    whether the terms use the outputs' values
    constant  (input, axis) along which the gradient is constant
    wrong     other rules of the same signature that return gradients, each wrong
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    terms: Callable[..., Any]
    reads: tuple[int, ...] = ()
    uses_y: bool = False
    constant: tuple[tuple[int, int], ...] = ()
    wrong: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def arrays(self) -> list[np.ndarray]:
        """Example arrays, none of whose entries is near zero."""
        rng = np.random.default_rng(SEED)
        return [rng.uniform(0.5, 1.5, s) * np.sign(rng.normal(size=s)) for s in self.shapes]


def total(terms: Any) -> Any:
    """The sum of a list of tensors."""
    found = terms[0]
    for t in terms[1:]:
        found = found + t
    return found


def rule_of(case: Case, change: Callable[..., Any] = lambda g: g, **given: Any) -> Any:
    """The right rule, with something changed: its gradients, or what it reads."""

    def rule(site: Any, *dys: Any) -> Any:
        xs, ys = list(site.inputs), list(site.outputs)
        xs = given.get("xs", lambda v: v)(xs)
        ys = given.get("ys", lambda v: v)(ys)
        seeds = given.get("dys", lambda v: v)(list(dys))
        return change([list(terms) for terms in case.terms(xs, ys, seeds)])

    return rule


def right(case: Case) -> Any:
    """The right rule."""
    return rule_of(case, lambda terms: [total(t) for t in terms])


def rows(x: Any, axis: int) -> Any:
    """The sum along an axis, which stays."""
    return gg.sum(x, axis=axis, keepdims=True)


# --- the cases ----------------------------------------------------------------------------------


def softmax_terms(xs: Any, ys: Any, dys: Any) -> Any:
    """dx = y (dy - sum of dy y)."""
    (y,), (dy,) = ys, dys
    return [[dy * y, -y * rows(dy * y, 1)]]


def normalised(x: Any) -> Any:
    """Rows of mean 0 and of about variance 1."""
    m = gg.mean(x, axis=1, keepdims=True)
    return (x - m) / gg.sqrt(gg.mean((x - m) * (x - m), axis=1, keepdims=True) + 0.1)


def normalised_terms(xs: Any, ys: Any, dys: Any) -> Any:
    """Through x, the mean and the variance."""
    (x,), (dy,) = xs, dys
    m = gg.mean(x, axis=1, keepdims=True)
    c = x - m
    s = gg.sqrt(gg.mean(c * c, axis=1, keepdims=True) + 0.1)
    n = float(x.shape[1])
    return [[dy / s, -rows(dy, 1) / (n * s), -c * rows(dy * c, 1) / (n * s * s * s)]]


def affine_terms(xs: Any, ys: Any, dys: Any) -> Any:
    """Back through tanh, then each operand."""
    (x, w, _), (y,) = xs, ys
    g = dys[0] * (1 - y * y)
    return [[g @ w.T], [x.T @ g], [gg.sum(g, axis=0)]]


def affine(change: Callable[..., Any]) -> Callable[..., Any]:
    """A wrong rule of the affine case, from x, w, b, y and the gradient before tanh."""

    def rule(xs: Any, ys: Any, dys: Any) -> Any:
        (x, w, b), (y,) = xs, ys
        return change(x, w, b, y, dys[0] * (1 - y * y))

    return rule


CASES = [
    Case(
        "multiply",
        lambda x, w: x * w,
        ((2, 3), (2, 3)),
        lambda xs, ys, dys: [[dys[0] * xs[1]], [dys[0] * xs[0]]],
        reads=(0, 1),
        wrong={
            "own operand": lambda xs, ys, dys: [dys[0] * xs[0], dys[0] * xs[1]],
            "product": lambda xs, ys, dys: [dys[0] * ys[0], dys[0] * xs[0]],
        },
    ),
    Case(
        "broadcast multiply",
        lambda x, w: x * w,
        ((3, 4), (4,)),
        lambda xs, ys, dys: [[dys[0] * xs[1]], [gg.sum(dys[0] * xs[0], axis=0)]],
        reads=(0, 1),
        wrong={
            "first row, not the sum": lambda xs, ys, dys: [dys[0] * xs[1], (dys[0] * xs[0])[0]],
            "mean, not the sum": lambda xs, ys, dys: [
                dys[0] * xs[1],
                gg.mean(dys[0] * xs[0], axis=0),
            ],
            "largest, not the sum": lambda xs, ys, dys: [
                dys[0] * xs[1],
                gg.max(dys[0] * xs[0], axis=0),
            ],
            "sum of factors": lambda xs, ys, dys: [
                dys[0] * xs[1],
                gg.sum(dys[0], axis=0) * gg.sum(xs[0], axis=0),
            ],
        },
    ),
    Case(
        "square matmul",
        lambda x, w: x @ w,
        ((3, 3), (3, 3)),
        lambda xs, ys, dys: [[dys[0] @ xs[1].T], [xs[0].T @ dys[0]]],
        reads=(0, 1),
        wrong={
            "left not transposed": lambda xs, ys, dys: [dys[0] @ xs[1], xs[0].T @ dys[0]],
            "right not transposed": lambda xs, ys, dys: [dys[0] @ xs[1].T, xs[0] @ dys[0]],
            "operands exchanged": lambda xs, ys, dys: [xs[1].T @ dys[0], xs[0].T @ dys[0]],
            "second exchanged": lambda xs, ys, dys: [dys[0] @ xs[1].T, dys[0] @ xs[0].T],
            "dy transposed": lambda xs, ys, dys: [dys[0].T @ xs[1].T, xs[0].T @ dys[0]],
        },
    ),
    Case(
        "affine tanh",
        lambda x, w, b: gg.tanh(x @ w + b),
        ((2, 3), (3, 4), (4,)),
        affine_terms,
        reads=(0, 1),
        uses_y=True,
        wrong={
            "bias summed twice": affine(
                lambda x, w, b, y, g: [g @ w.T, x.T @ g, gg.sum(g, axis=0) + gg.mean(g, axis=0)]
            ),
            "bias first row": affine(lambda x, w, b, y, g: [g @ w.T, x.T @ g, g[0]]),
            "slope of y": affine(lambda x, w, b, y, g: [(g * y) @ w.T, x.T @ g, gg.sum(g, axis=0)]),
        },
    ),
    Case(
        "softmax",
        lambda x: gg.nn.softmax(x, axis=1),
        ((2, 4),),
        softmax_terms,
        uses_y=True,
        wrong={
            "wrong axis": lambda xs, ys, dys: [ys[0] * (dys[0] - rows(dys[0] * ys[0], 0))],
            "mean": lambda xs, ys, dys: [
                ys[0] * (dys[0] - gg.mean(dys[0] * ys[0], axis=1, keepdims=True))
            ],
            "all axes": lambda xs, ys, dys: [ys[0] * (dys[0] - gg.sum(dys[0] * ys[0]))],
            "dy not weighted": lambda xs, ys, dys: [ys[0] * (dys[0] - rows(dys[0], 1))],
        },
    ),
    Case(
        "log softmax",
        lambda x: gg.nn.log_softmax(x, axis=1),
        ((2, 4),),
        lambda xs, ys, dys: [[dys[0], -gg.exp(ys[0]) * rows(dys[0], 1)]],
        uses_y=True,
        wrong={
            "wrong axis": lambda xs, ys, dys: [dys[0] - gg.exp(ys[0]) * rows(dys[0], 0)],
            "y, not exp(y)": lambda xs, ys, dys: [dys[0] - ys[0] * rows(dys[0], 1)],
        },
    ),
    Case(
        "layer norm",
        normalised,
        ((2, 4),),
        normalised_terms,
        reads=(0,),
        wrong={
            "statistics held": lambda xs, ys, dys: [
                normalised_terms([gg.stop_gradient(xs[0])], ys, dys)[0][0]
            ],
        },
    ),
    Case(
        "sum of squares",
        lambda x: gg.sum(x * x, axis=1),
        ((3, 3),),
        lambda xs, ys, dys: [[2.0 * xs[0] * gg.expand_dims(dys[0], 1)]],
        reads=(0,),
        wrong={
            "along the other axis": lambda xs, ys, dys: [2.0 * xs[0] * dys[0]],
            "without the two": lambda xs, ys, dys: [xs[0] * gg.expand_dims(dys[0], 1)],
        },
    ),
    Case(
        "sum",
        lambda x: gg.sum(x, axis=0),
        ((3, 4),),
        lambda xs, ys, dys: [[gg.broadcast_to(dys[0], (3, 4))]],
        constant=((0, 0),),
        wrong={
            "mean": lambda xs, ys, dys: [gg.broadcast_to(dys[0], (3, 4)) / 3.0],
            "one entry for all": lambda xs, ys, dys: [gg.broadcast_to(dys[0][0], (3, 4))],
        },
    ),
    Case(
        "exp times sine",
        lambda x: gg.exp(x) * gg.sin(x),
        ((4,),),
        lambda xs, ys, dys: [
            [dys[0] * gg.exp(xs[0]) * gg.sin(xs[0]), dys[0] * gg.exp(xs[0]) * gg.cos(xs[0])]
        ],
        reads=(0,),
        wrong={
            "sine twice": lambda xs, ys, dys: [2.0 * dys[0] * gg.exp(xs[0]) * gg.sin(xs[0])],
            "product of derivatives": lambda xs, ys, dys: [dys[0] * gg.exp(xs[0]) * gg.cos(xs[0])],
        },
    ),
    Case(
        "two outputs",
        lambda x, w: (x * x * w, gg.sin(x) + w),
        ((3,), (3,)),
        lambda xs, ys, dys: [
            [2.0 * dys[0] * xs[0] * xs[1], dys[1] * gg.cos(xs[0])],
            [dys[0] * xs[0] * xs[0], dys[1]],
        ],
        reads=(0, 1),
        wrong={
            "cosine negated": lambda xs, ys, dys: [
                2.0 * dys[0] * xs[0] * xs[1] - dys[1] * gg.cos(xs[0]),
                dys[0] * xs[0] * xs[0] + dys[1],
            ],
        },
    ),
    Case(
        "divide",
        lambda x, w: x / w,
        ((2, 3), (3,)),
        lambda xs, ys, dys: [
            [dys[0] / xs[1]],
            [-gg.sum(dys[0] * xs[0] / (xs[1] * xs[1]), axis=0)],
        ],
        reads=(0, 1),
        wrong={
            "not squared": lambda xs, ys, dys: [
                dys[0] / xs[1],
                -gg.sum(dys[0] * xs[0] / xs[1], axis=0),
            ],
            "positive": lambda xs, ys, dys: [
                dys[0] / xs[1],
                gg.sum(dys[0] * ys[0] / xs[1], axis=0),
            ],
        },
    ),
    Case(
        "sine times cube",
        lambda x, w: gg.sin(x) * w + w * w * w,
        ((3,), (3,)),
        lambda xs, ys, dys: [
            [dys[0] * gg.cos(xs[0]) * xs[1]],
            [dys[0] * gg.sin(xs[0]), 3.0 * dys[0] * xs[1] * xs[1]],
        ],
        reads=(0, 1),
    ),
    Case(
        "bilinear form",
        lambda x, a, y: gg.sum(x * (a @ y)),
        ((3,), (3, 3), (3,)),
        lambda xs, ys, dys: [
            [dys[0] * (xs[1] @ xs[2])],
            [dys[0] * gg.outer(xs[0], xs[2])],
            [dys[0] * (xs[1].T @ xs[0])],
        ],
        reads=(0, 1, 2),
        wrong={
            "outer exchanged": lambda xs, ys, dys: [
                dys[0] * (xs[1] @ xs[2]),
                dys[0] * gg.outer(xs[2], xs[0]),
                dys[0] * (xs[1].T @ xs[0]),
            ],
            "not transposed": lambda xs, ys, dys: [
                dys[0] * (xs[1] @ xs[2]),
                dys[0] * gg.outer(xs[0], xs[2]),
                dys[0] * (xs[1] @ xs[0]),
            ],
        },
    ),
    Case(
        "log of sum of exponentials",
        lambda x: gg.log(gg.sum(gg.exp(x), axis=1)),
        ((3, 3),),
        lambda xs, ys, dys: [
            [gg.expand_dims(dys[0], 1) * gg.exp(xs[0] - gg.expand_dims(ys[0], 1))]
        ],
        reads=(0,),
        uses_y=True,
        wrong={
            "dy along the other axis": lambda xs, ys, dys: [
                dys[0] * gg.exp(xs[0] - gg.expand_dims(ys[0], 1))
            ],
            "not normalised": lambda xs, ys, dys: [gg.expand_dims(dys[0], 1) * gg.exp(xs[0])],
        },
    ),
    Case(
        "sigmoid gate",
        lambda x, w: gg.nn.sigmoid(x) * w,
        ((2, 1), (1, 3)),
        lambda xs, ys, dys: [
            [
                rows(dys[0] * xs[1], 1) * gg.nn.sigmoid(xs[0]),
                -rows(dys[0] * xs[1], 1) * gg.nn.sigmoid(xs[0]) * gg.nn.sigmoid(xs[0]),
            ],
            [rows(dys[0] * gg.nn.sigmoid(xs[0]), 0)],
        ],
        reads=(0, 1),
        wrong={
            "first column, not the sum": lambda xs, ys, dys: [
                (dys[0] * xs[1] * gg.nn.sigmoid(xs[0]) * (1 - gg.nn.sigmoid(xs[0])))[:, :1],
                rows(dys[0] * gg.nn.sigmoid(xs[0]), 0),
            ],
        },
    ),
]


# --- the mutants --------------------------------------------------------------------------------


@dataclass
class Mutant:
    """A wrong rule."""

    case: Case
    kind: str
    what: str
    rule: Callable[..., Any]

    def __str__(self) -> str:
        return f"{self.case.name}: {self.kind}, {self.what}"


def only(i: int, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """All gradients summed up, with f applied to that of input i."""

    def change(terms: Any) -> Any:
        grads = [total(t) for t in terms]
        grads[i] = f(grads[i])
        return grads

    return change


def term(i: int, j: int, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """All gradients summed up, with f applied to term j of input i; None drops it."""

    def change(terms: Any) -> Any:
        changed = f(terms[i][j])
        terms[i] = [t for t in [*terms[i][:j], changed, *terms[i][j + 1 :]] if t is not None]
        return [total(t) for t in terms]

    return change


def at(i: int, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A list with f applied to entry i."""
    return lambda items: [f(v) if k == i else v for k, v in enumerate(items)]


def summed(terms: Any) -> Any:
    """The gradients."""
    return [total(t) for t in terms]


def mutants() -> Iterator[Mutant]:
    """Every wrong rule, case by case."""
    for case in CASES:
        for kind, what, rule in itertools.chain(
            of_gradients(case), of_terms(case), of_reads(case), of_dys(case), of_form(case)
        ):
            yield Mutant(case, kind, what, rule)
        for what, gradients in case.wrong.items():

            def rule(site: Any, *dys: Any, gradients: Any = gradients) -> Any:
                return gradients(list(site.inputs), list(site.outputs), list(dys))

            yield Mutant(case, "formula", what, rule)


def of_gradients(case: Case) -> Iterator[tuple[str, str, Any]]:
    """One gradient changed as a whole."""
    for i, shape in enumerate(case.shapes):
        yield "sign", f"input {i}", rule_of(case, only(i, lambda g: -g))
        for factor in (0.5, 1.01, 2.0):
            change = only(i, lambda g, factor=factor: factor * g)
            yield "factor", f"input {i} times {factor}", rule_of(case, change)
        yield "nothing", f"input {i} zero", rule_of(case, only(i, lambda g: 0.0 * g))
        yield "nothing", f"input {i} NO_GRAD", rule_of(case, only(i, lambda g: gg.NO_GRAD))
        yield "offset", f"input {i}", rule_of(case, only(i, lambda g: g + 0.1))
        for axis, n in enumerate(shape):
            if n > 1 and (i, axis) not in case.constant:
                change = only(i, lambda g, axis=axis: gg.roll(g, 1, axis=axis))
                yield "shifted", f"input {i} axis {axis}", rule_of(case, change)
                change = only(
                    i, lambda g, axis=axis, s=shape: gg.broadcast_to(
                        gg.mean(g, axis=axis, keepdims=True), s
                    )
                )  # fmt: skip
                yield "mean for each", f"input {i} axis {axis}", rule_of(case, change)
        if len(shape) == 2 and shape[0] == shape[1] > 1:
            yield "transposed", f"input {i}", rule_of(case, only(i, lambda g: g.T))
    for i, k in itertools.combinations(range(len(case.shapes)), 2):
        if case.shapes[i] == case.shapes[k]:

            def exchanged(terms: Any, i: int = i, k: int = k) -> Any:
                terms[i], terms[k] = terms[k], terms[i]
                return summed(terms)

            yield "exchanged", f"inputs {i}, {k}", rule_of(case, exchanged)


def of_terms(case: Case) -> Iterator[tuple[str, str, Any]]:
    """One term of a gradient changed."""
    with gg.Graph():
        xs = [gg.placeholder(s) for s in case.shapes]
        ys = case.function(*xs)
        ys = list(ys) if isinstance(ys, tuple) else [ys]
        counts = [len(t) for t in case.terms(xs, ys, ys)]
    for i, count in enumerate(counts):
        for j in range(count if count > 1 else 0):
            yield "missing term", f"input {i} term {j}", rule_of(case, term(i, j, lambda t: None))
            yield "sign of term", f"input {i} term {j}", rule_of(case, term(i, j, lambda t: -t))
            yield "term twice", f"input {i} term {j}", rule_of(case, term(i, j, lambda t: t + t))


def of_reads(case: Case) -> Iterator[tuple[str, str, Any]]:
    """What the rule reads is old, cut off, or something else."""
    arrays = case.arrays()
    for i in case.reads:
        old = at(i, lambda x, a=arrays[i]: gg.constant(a))
        yield "stale value", f"input {i}", rule_of(case, summed, xs=old)
        cut = at(i, gg.stop_gradient)
        yield "second order cut", f"input {i}", rule_of(case, summed, xs=cut)
    if case.uses_y:
        yield "second order cut", "output", rule_of(case, summed, ys=at(0, gg.stop_gradient))
        yield "stale value", "output", rule_of(case, summed, ys=at(0, lambda y: y + 0.05))


def of_dys(case: Case) -> Iterator[tuple[str, str, Any]]:
    """The gradients of the outputs are used wrongly."""
    counts = 2 if case.name == "two outputs" else 1
    for k in range(counts):
        for what, f in (
            ("squared", lambda dy: dy * dy),
            ("clipped", lambda dy: gg.clip(dy, -0.5, 0.5)),
            ("made positive", gg.abs),
            ("ones", gg.ones_like),
            ("cut off", gg.stop_gradient),
        ):
            yield "gradient of output", f"{k} {what}", rule_of(case, summed, dys=at(k, f))
        if counts > 1:
            dropped = at(k, gg.zeros_like)
            yield "gradient of output", f"{k} ignored", rule_of(case, summed, dys=dropped)
    if counts > 1:
        other = rule_of(case, summed, dys=lambda dys: dys[::-1])
        yield "gradient of output", "exchanged", other


def of_form(case: Case) -> Iterator[tuple[str, str, Any]]:
    """Gradients that are no gradients of these inputs, or not the same twice."""
    calls = itertools.count(1)
    yield "form", "float32", rule_of(case, only(0, lambda g: g.astype("float32")))
    yield "form", "one axis more", rule_of(case, only(0, lambda g: gg.expand_dims(g, 0)))
    yield "form", "one too many", rule_of(case, lambda terms: [*summed(terms), summed(terms)[0]])
    yield "form", "nothing returned", rule_of(case, lambda terms: None)
    drifting = only(0, lambda g: g * (1.0 + 1e-9 * next(calls)))
    yield "form", "another each call", rule_of(case, drifting)


# --- running them -------------------------------------------------------------------------------


def caught(mutant: Mutant) -> bool:
    """Whether check_gradient finds something: in numbers, unless the form itself is wrong."""
    report = check_gradient(mutant.rule, mutant.case.function, *mutant.case.arrays())
    return any(mutant.kind == "form" or f.kind != "error" for f in report.findings)


def survivors() -> tuple[dict[str, list[int]], list[Mutant]]:
    """kind -> [caught, all], and the mutants that were not caught."""
    table: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    missed = []
    for mutant in mutants():
        seen = caught(mutant)
        table[mutant.kind][0] += seen
        table[mutant.kind][1] += 1
        if not seen:
            missed.append(mutant)
    return dict(table), missed


def main() -> None:
    """The table, or the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print every mutant")
    if parser.parse_args().list:
        for mutant in mutants():
            print(mutant)
        print(Counter(m.kind for m in mutants()))
        return
    for case in CASES:
        report = check_gradient(right(case), case.function, *case.arrays())
        print(f"right rule of {case.name}: {'ok' if report.ok else report}")
    table, missed = survivors()
    for kind, (hits, count) in sorted(table.items()):
        print(f"{kind:20} {hits:4} of {count:4}")
    hits, count = (sum(v[i] for v in table.values()) for i in (0, 1))
    print(f"{'all':20} {hits:4} of {count:4}  ({100 * hits / count:.1f} %)")
    for mutant in missed:
        print(f"not caught: {mutant}")


if __name__ == "__main__":
    main()
