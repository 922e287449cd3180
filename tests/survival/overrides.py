"""The rows: overrides, each with what it means.

The program around all of them is `h = x * x / 2 + x`, `k = cos(x)` before, and a quadratic loss
behind. An override marks a function of h, or of h and k. `meaning` says in plain words (NumPy's
own, so that arrays do as well as tensors) which gradients the rule stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

import graphgrad as gg
from graphgrad import rules

from .spelled import Spelling

WEIGHTS = np.array([[0.5, -1.0, 0.25], [2.0, 0.75, -0.5], [-1.5, 0.5, 1.0]])
ENTRY = np.array([1.0, -2.0, 0.5])

Last = Callable[[Callable[[], Any], Any], Any]
"""How the last step of the inside is built: as it is, or in a branch of a choice."""


def straight(step: Callable[[], Any], instead: Any) -> Any:
    """The last step as it is."""
    return step()


class AsItIs:
    """The one node inside that a column may mark: as it is built."""

    def __call__(self, t: Any, *ins: Any) -> Any:
        """What it gives, for the inputs that a gradient may flow to."""
        return t

    def back(self, derivative: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
        """Gradients of its inputs from one of what it gives."""
        return derivative


AS_IT_IS = AsItIs()


@dataclass
class Made:
    """What an override built.

    ins     what the site reads, in the order of its gradients
    m       a value inside
    raws    what the inside computes
    ys      what is read outside
    extra   further tensors whose gradient is asked for
    k       a tensor that is not an input, and that a rule may capture
    back    gradients of what the node that a column may mark reads, from one of what it gives
    beside  what else the site reads, to which no gradient flows
    """

    ins: list[Any]
    m: Any
    raws: list[Any]
    ys: list[Any] = field(default_factory=list)
    extra: list[Any] = field(default_factory=list)
    k: Any = None
    back: Any = None
    beside: list[Any] = field(default_factory=list)


class Override:
    """A row of the matrix: y = exp(sin(h)) in a region whose rule is registered by name."""

    title = ""
    linear = True
    options: dict[str, Any] = {}
    inner_type = "Sin"
    op_type = ""

    @property
    def name(self) -> str:
        return type(self).__name__

    def inside(self, h: Any, k: Any, last: Last = straight, at: AsItIs = AS_IT_IS) -> Made:
        """The forward computation, unmarked; `at` the first node of inner_type."""
        m = at(np.sin(h), h)
        back = at.back(lambda d: [d * np.cos(h)])
        return Made([h], m, [last(lambda: np.exp(m), m)], k=k, back=back)

    def bare(self, h: Any, k: Any, spelling: Spelling, at: AsItIs = AS_IT_IS) -> Made:
        """The forward computation without the override itself, but with what it is put around."""
        return self.inside(h, k, at=at)

    def meaning(self, s: Made, spelling: Spelling, *dys: Any) -> list[Any]:
        """The gradients of `s.ins` that the rule stands for; s.ys are those read outside."""
        raise NotImplementedError

    def rule(self, site: Any, *dys: Any) -> Any:
        """The user's rule."""
        raise NotImplementedError

    def reference(self) -> Any:
        """How the rule is named where it is put on."""
        return f"survival/{self.name}"

    def marked(self, h: Any, k: Any, last: Last = straight) -> Made:
        """The forward computation, marked as a user marks it."""
        k = self.prepared(k)
        with gg.override_gradient(self.reference(), **self.options):
            made = self.inside(h, k, last)
        made.ys = self.outside(made.raws)
        return made

    def prepared(self, k: Any) -> Any:
        """What the inside reads beside h, made of k outside."""
        return k

    def outside(self, raws: list[Any]) -> list[Any]:
        """What the program reads of what the inside gives."""
        return raws

    def placed(self, s: Made, spelling: Spelling, meaning: Callable[..., Any]) -> list[Any]:
        """What the program reads of a site that means this."""
        return self.outside(spelling.place(s.ins, s.raws, meaning))

    def spelled(self, h: Any, k: Any, spelling: Spelling, at: AsItIs = AS_IT_IS) -> Made:
        """The forward computation with its meaning."""
        made = self.bare(h, self.prepared(k), spelling, at)
        made.ys = self.placed(made, spelling, lambda *g: self.meaning(made, spelling, *g))
        return made

    def mark_later(self, graph: gg.Graph, made: Made, nodes: Sequence[gg.Node]) -> None:
        """Mark what `inside` built when it stands already."""
        graph.mark(
            gg.select.nodes(*nodes).together(),
            self.retrofitted(made),
            inputs=[*made.ins, *made.beside],
            outputs=made.raws,
            **self.options,
        )

    def retrofitted(self, made: Made) -> Any:
        """The rule, for what stands already."""
        return self.reference()

    def call_override(self, h: Any, k: Any) -> tuple[Made, dict[Any, Any]]:
        """The computation with another rule on it, and what to say in overrides=.

        The other rule is the default, so that a rule that asks for its default gets the inside.
        """
        k = self.prepared(k)
        with gg.override_gradient(default) as region:
            made = self.inside(h, k)
        made.ys = self.outside(made.raws)
        return made, {region: self.retrofitted(made)}

    def register(self) -> None:
        """Register the rule under its name, if it has one."""
        if type(self).rule is not Override.rule:
            name, jvp = f"survival/{self.name}", getattr(self, "jvp", None)
            gg.register_gradient(name, replace=True, jvp=jvp)(self.rule)


def default(site: Any, *dys: Any) -> Any:
    """A rule that changes nothing."""
    return site.default(*dys)


def weight_around(t: Any) -> Any:
    """The variable w, made once, in the graph around all bodies in which t may be."""
    graph = t.graph
    while hasattr(graph, "outer"):
        graph = graph.outer
    if not graph.find("w"):
        with graph:
            gg.variable(1.25, name="w")
    return graph.tensor("w:0")


def within(site: Any, op_type: str) -> Any:
    """The output of the one node of a type inside a site."""
    (node,) = (n for n in site.nodes if n.type == op_type)
    return node.outputs[0]


class Pair(Override):
    """Two inputs and two outputs: m = sin(h) k, p = exp(m), q = m + h k."""

    inner_type = "Multiply"

    def inside(self, h: Any, k: Any, last: Last = straight, at: AsItIs = AS_IT_IS) -> Made:
        s = np.sin(h)
        m = at(s * k, s, k)
        back = at.back(lambda d: [d * k, d * s])
        return Made([h, k], m, [last(lambda: np.exp(m), m), m + h * k], back=back)


class Linear(Override):
    title = "linear: 2 dy"

    def rule(self, site, dy):
        return 2.0 * dy

    def meaning(self, s, spelling, g):
        return [2.0 * g]


class Draws(Linear):
    """S41: it draws, in every call; whatever it drew, the gradient is 2 dy."""

    title = "a rule that draws without a seed"

    def rule(self, site, dy):
        own = 1.0 + gg.random.uniform((3,))
        of_call = 1.0 + gg.random.uniform((), seed=site.random_key())
        return 2.0 * dy * (own / own) * (of_call / of_call)


class Square(Override):
    title = "not linear: dy * dy"
    linear = False

    def rule(self, site, dy):
        return dy * dy

    def meaning(self, s, spelling, g):
        return [g * g]


class Affine(Override):
    title = "affine: dy + x"
    linear = False

    def rule(self, site, dy):
        return dy + site.inputs[0]

    def meaning(self, s, spelling, g):
        return [g + s.ins[0]]


class Clip(Override):
    title = "clip dy"
    linear = False

    def rule(self, site, dy):
        return gg.clip(dy, -0.75, 0.75)

    def meaning(self, s, spelling, g):
        return [np.minimum(np.maximum(g, -0.75), 0.75)]


class Normalise(Override):
    title = "normalise dy"
    linear = False

    def rule(self, site, dy):
        return dy / gg.sqrt(gg.sum(gg.square(dy)) + 1.0)

    def meaning(self, s, spelling, g):
        return [g * (np.sum(g * g) + 1.0) ** -0.5]


class Reversal(Override):
    title = "reversal"

    def rule(self, site, dy):
        return -0.7 * dy

    def meaning(self, s, spelling, g):
        return [g * -0.7]


class Stop(Override):
    title = "stop: NO_GRAD"

    def rule(self, site, dy):
        return gg.NO_GRAD

    def meaning(self, s, spelling, g):
        return [np.zeros(3)]


class DefaultEntry(Pair):
    title = "DEFAULT as an entry"

    def rule(self, site, dp, dq):
        return gg.DEFAULT, 3.0 * (dp - dq)

    def meaning(self, s, spelling, dp, dq):
        (h, k), (p, _) = s.ins, s.raws
        return [s.back(dp * p + dq)[0] * np.cos(h) + dq * k, 3.0 * (dp - dq)]


class DoubleDefault(Override):
    title = "twice the default"

    def rule(self, site, dy):
        return [2.0 * dx for dx in site.default(dy)]

    def meaning(self, s, spelling, g):
        return [2.0 * dx for dx in s.back(g * s.raws[0])]


class Many(Pair):
    title = "many inputs and outputs"
    linear = False

    def rule(self, site, dp, dq):
        return dp * dq, dp - 2.0 * dq * site.inputs[0]

    def meaning(self, s, spelling, dp, dq):
        return [dp * dq, dp - 2.0 * dq * s.ins[0]]


class Mapping(Pair):
    title = "a mapping as result"

    def rule(self, site, dp, dq):
        h, k = site.inputs
        return {k: 5.0 * dp, h: dq * h}

    def meaning(self, s, spelling, dp, dq):
        return [dq * s.ins[0], 5.0 * dp]


class Swapped(Pair):
    title = "swapped gradients"

    def rule(self, site, dp, dq):
        return dq, dp

    def meaning(self, s, spelling, dp, dq):
        return [dq, dp]


class Values(Pair):
    title = "numbers and arrays as entries"
    linear = False

    def rule(self, site, dp, dq):
        return 2.5, ENTRY

    def meaning(self, s, spelling, dp, dq):
        return [2.5, ENTRY]


class Capture(Override):
    title = "a rule that captures a tensor"

    def retrofitted(self, made):
        k = made.k

        def capturing(site, dy):
            return dy * k

        return capturing

    def marked(self, h, k, last=straight):
        with gg.override_gradient(self.retrofitted(SimpleNamespace(k=k))):
            made = self.inside(h, k, last)
        made.ys = made.raws
        return made

    def meaning(self, s, spelling, g):
        return [g * s.k]


class Custom(Override):
    """A custom_gradient of h; `grad` makes its grad_fn from what was built."""

    def grad(self, made: Made) -> Callable[..., Any]:
        raise NotImplementedError

    def marked(self, h, k, last=straight):
        built = []

        def function(h):
            made = self.inside(h, k, last)
            built.append(made)
            return made.raws[0], self.grad(made)

        function.__name__ = self.name
        y = gg.custom_gradient(function)(h)
        (made,) = built
        made.ins, made.ys = [h, *made.ins[1:]], [y]
        return made

    def retrofitted(self, made):
        grad = self.grad(made)

        def rule(site, dy):
            return grad(dy)

        return rule


class Closure(Custom):
    title = "custom_gradient closing over an inner value"

    def grad(self, made):
        return lambda dy: dy * made.m

    def meaning(self, s, spelling, g):
        return [g * s.m]


class Variables(Custom):
    title = "custom_gradient with variables="

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        w = weight_around(h)
        m = at(np.sin(h), h)
        return Made([h, w], m, [last(lambda: np.exp(m) * w, m)], extra=[w], k=k)

    def grad(self, made):
        w = made.ins[-1]
        return lambda dy, variables=None: (2.0 * w * dy, [gg.sum(dy * made.m)])

    def retrofitted(self, made):
        grad = self.grad(made)

        def rule(site, dy):
            dx, dvars = grad(dy)
            return [dx, *dvars]

        return rule

    def meaning(self, s, spelling, g):
        return [2.0 * s.ins[1] * g, np.sum(g * s.m)]


class SecondRule(Custom):
    title = "custom_gradient that returns a second rule"

    def grad(self, made):
        (h,) = made.ins
        return lambda dy: (dy * made.m, lambda ddx: 5.0 * ddx * h)

    def retrofitted(self, made):
        """On what stands already a rule has no second one: that is custom_gradient's protocol."""
        return lambda site, dy: dy * made.m

    def meaning(self, s, spelling, g):
        (h,) = s.ins
        return spelling.place([h, g], [g * s.m], lambda ddx: [5.0 * ddx * h, ddx * s.m])


class CapturedMapping(Custom):
    title = "custom_gradient with a mapping for what it captures"

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        m = at(np.sin(h), h)
        return Made([h, k], m, [last(lambda: np.exp(m) * k, m)])

    def grad(self, made):
        h, k = made.ins
        return lambda dy: {k: 3.0 * dy * h, h: 2.0 * dy * made.m}

    def meaning(self, s, spelling, g):
        return [2.0 * g * s.m, 3.0 * g * s.ins[0]]


class Method(Custom):
    title = "custom_gradient of a bound method"
    factor = 1.75

    def marked(self, h, k, last=straight):
        layer = Layer(self, k, last)
        y = layer.call(h)
        return replace(layer.made, ins=[h], ys=[y])

    def grad(self, made):
        return lambda dy: dy * made.ins[0] * self.factor

    def meaning(self, s, spelling, g):
        return [g * s.ins[0] * self.factor]


class Layer:
    """An object whose method has a gradient of its own."""

    def __init__(self, row: Custom, k: Any, last: Last) -> None:
        self.row, self.k, self.last = row, k, last
        self.call = gg.custom_gradient(self.forward)

    def forward(self, h: Any) -> Any:
        """What it computes, and its gradient."""
        self.made = self.row.inside(h, self.k, self.last)
        return self.made.raws[0], self.row.grad(self.made)


class BoundMethod(Override):
    title = "a rule that is a bound method"
    factor = -1.25

    def reference(self):
        return self.scaled

    def scaled(self, site, dy):
        """The rule."""
        return dy * site.inputs[0] * self.factor

    def meaning(self, s, spelling, g):
        return [g * s.ins[0] * self.factor]


class IsZero(Pair):
    title = "a rule that asks is_zero"

    def rule(self, site, dp, dq):
        if gg.is_zero(dq):
            return 2.0 * dp, 0.5 * dp * site.inputs[1]
        if gg.is_zero(dp):
            return -1.5 * dq, dq * site.inputs[0]
        return 3.0 * dp + dq, dp - 0.25 * dq

    def meaning(self, s, spelling, dp, dq):
        if spelling.missing == [1]:
            return [2.0 * dp, 0.5 * dp * s.ins[1]]
        if spelling.missing == [0]:
            return [-1.5 * dq, dq * s.ins[0]]
        return [3.0 * dp + dq, dp - 0.25 * dq]


class IntegerOutput(Override):
    title = "an integer output beside a floating one"

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        made = super().inside(h, k, last, at)
        made.raws.append((3.0 * h).astype("int64"))
        return made

    def outside(self, raws):
        y, n = raws
        return [y * (1.0 + 0.25 * n.astype("float64"))]

    def rule(self, site, dy, dn):
        assert dn is None
        return 0.6 * dy * site.outputs[1].astype("float64")

    def placed(self, s, spelling, meaning):
        (y,) = spelling.place(s.ins, s.raws[:1], meaning)
        return self.outside([y, s.raws[1]])

    def meaning(self, s, spelling, g):
        return [0.6 * g * s.raws[1].astype("float64")]


class IntegerInput(Override):
    title = "an integer input beside a floating one"

    def prepared(self, k):
        return (4.0 * k).astype("int64")

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        m = at(np.sin(h), h)
        y = last(lambda: np.exp(m) * (1.0 + 0.1 * k.astype("float64")), m)
        return Made([h], m, [y], beside=[k])

    def rule(self, site, dy):
        _, n = site.inputs
        return dy * (0.3 * n.astype("float64")), gg.NO_GRAD

    def meaning(self, s, spelling, g):
        return [g * (0.3 * s.beside[0].astype("float64"))]


class Nested(Override):
    title = "nested: the outer default honours the inner rule"
    inner_type = "Exp"

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        with gg.override_gradient("survival/inner"):
            m = np.sin(h)
        return Made([h], m, [last(lambda: np.exp(m), m)], k=k)

    def rule(self, site, dy):
        return [3.0 * dx for dx in site.default(dy)]

    def bare(self, h, k, spelling, at=AS_IT_IS):
        (m,) = spelling.place([h], [np.sin(h)], lambda g: [g * h])
        y = np.exp(m)
        return Made([h], m, [at(y, m)], k=k, back=at.back(lambda d: [d * y]))

    def meaning(self, s, spelling, g):
        return [3.0 * dm * s.ins[0] for dm in s.back(g)]


class Again(Override):
    title = 'reads site.outputs, order="again"'

    def rule(self, site, dy):
        return dy * site.outputs[0]

    def meaning(self, s, spelling, g):
        return [g * s.ys[0]]


class Through(Again):
    title = 'reads site.outputs, order="through"'
    options = {"order": "through"}

    def meaning(self, s, spelling, g):
        return [g * s.raws[0]]


class Stamp(Override):
    """An override of an op type: the site is the one node of that type."""

    def marked(self, h, k, last=straight):
        with gg.gradient_override_map({self.op_type: self.reference()}):
            made = self.inside(h, k, last)
        made.ys = made.raws
        return made

    def mark_later(self, graph, made, nodes):
        graph.mark(self.op_type, self.reference())

    def call_override(self, h, k):
        made = self.inside(h, k)
        made.ys = made.raws
        return made, {self.op_type: self.reference()}


class OpType(Stamp):
    title = "op-type map"
    op_type = "Exp"

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        made = super().inside(h, k, last, at)
        made.ins = [made.m]
        return made

    def rule(self, site, dy):
        return dy * site.inputs[0] * 1.5

    def meaning(self, s, spelling, g):
        return [g * s.m * 1.5]


class Builtin(Stamp):
    title = 'builtin name: {"Round": "Identity"}'
    op_type = "Round"
    inner_type = "Multiply"

    def reference(self):
        return "Identity"

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        s = np.sin(h)
        m = at(s * 3.0, s)
        return Made([m], m, [last(lambda: np.round(m), m)], k=k)

    def meaning(self, s, spelling, g):
        return [g]


class Random(Override):
    title = "random op inside"
    inner_type = "Multiply"

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        m = gg.random.uniform((3,), seed=7)
        return Made([h], m, [last(lambda: np.exp(at(h * m, h, m)), h)], k=k)

    def rule(self, site, dy):
        return dy * within(site, "RandomUniform") * 2.0

    def meaning(self, s, spelling, g):
        return [g * s.m * 2.0]


class Integer(Override):
    title = "integer inside"
    inner_type = "Exp"

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        whole = (3.0 * h).astype("int64")
        m = whole.astype("float64")

        def step():
            tenth = m * 0.1
            return at(np.exp(tenth), tenth)

        return Made([h], m, [last(step, m)], k=k)

    def rule(self, site, dy):
        return 1.5 * dy

    def meaning(self, s, spelling, g):
        return [1.5 * g]


class Weights(Override):
    title = "block with weights inside"
    inner_type = "MatMul"

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        m = at(gg.matmul(h, gg.constant(WEIGHTS)), h)
        return Made([h], m, [last(lambda: np.tanh(m), m)], k=k)

    def rule(self, site, dy):
        w = next(n.outputs[0] for n in site.nodes if n.type == "Constant" and n.outputs[0].ndim)
        return 0.5 * gg.matmul(dy, w.T)

    def meaning(self, s, spelling, g):
        return [0.5 * (g @ WEIGHTS.T)]


def saw(x):
    """A black box."""
    return x - np.floor(x)


def saw_vjp(node, dy):
    """Its own gradient, as its author wants it."""
    return dy * 3.0 * node.inputs[0]


class BlackBox(Override):
    title = "py_function with vjp"
    inner_type = "Multiply"

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        m = gg.py_function(saw, [h], [((3,), "float64")], vjp=saw_vjp)
        return Made([h], m, [m], k=k)

    def marked(self, h, k, last=straight):
        made = self.inside(h, k)
        made.raws = [last(lambda: made.m * 1.0, made.m)]
        made.ys = made.raws
        return made

    def retrofitted(self, made):
        return lambda site, dy: dy * 3.0 * site.inputs[0]

    def bare(self, h, k, spelling, at=AS_IT_IS):
        m = h - gg.floor(h)
        return Made([h], m, [m], k=k)

    def spelled(self, h, k, spelling, at=AS_IT_IS):
        made = super().spelled(h, k, spelling, at)
        (made.m,) = made.ys
        made.ys = [at(made.m * 1.0, made.m)]
        return made

    def meaning(self, s, spelling, g):
        return [g * 3.0 * s.ins[0]]


class OpensRegion(Override):
    title = "a rule that opens a region"
    linear = False

    def rule(self, site, dy):
        with gg.override_gradient("survival/seven"):
            d = np.sin(dy)
        return d * 2.0

    def meaning(self, s, spelling, g):
        (d,) = spelling.place([g], [np.sin(g)], lambda dd: [7.0 * dd])
        return [d * 2.0]


class CallsGradients(Override):
    title = "a rule that calls gg.gradients"

    def rule(self, site, dy):
        (x,) = site.inputs
        return gg.gradients(np.tanh(x), x, dy)

    def meaning(self, s, spelling, g):
        return [g * (1.0 - np.tanh(s.ins[0]) ** 2)]


class OwnJvp(Override):
    title = "not linear, with its own jvp"

    def rule(self, site, dy):
        return dy * dy

    def meaning(self, s, spelling, g):
        return [g * g]

    @staticmethod
    def jvp(site, dx):
        """The rule's own forward mode."""
        return 4.0 * dx

    def tangent(self, dh):
        """What its forward mode means."""
        return 4.0 * dh

    def change(self, g, dg):
        """How its gradient changes with dy."""
        return 2.0 * g * dg


def two_times(site: Any, dy: Any) -> Any:
    """A linear rule whose forward mode is declared to be something else."""
    return 2.0 * dy


def four_times(site: Any, dx: Any) -> Any:
    """That forward mode."""
    return 4.0 * dx


class RuleObject(Override):
    title = "rule object, linear, with its own jvp"

    def reference(self):
        return gg.Rule(two_times, "two_times", jvp=four_times)

    def meaning(self, s, spelling, g):
        return [2.0 * g]

    def tangent(self, dh):
        """What its forward mode means."""
        return 4.0 * dh

    def change(self, g, dg):
        """How its gradient changes with dy."""
        return 2.0 * dg


class Library(Override):
    title = "rule object of the library: ste"

    def reference(self):
        return rules.ste()

    def inside(self, h, k, last=straight, at=AS_IT_IS):
        m = at(np.sin(h), h)
        return Made([h], m, [last(lambda: np.sign(m), m)], k=k)

    def meaning(self, s, spelling, g):
        return [g]


OVERRIDES: list[Override] = [
    kind()
    for kind in (
        Linear,
        Draws,
        Square,
        Affine,
        Clip,
        Normalise,
        Reversal,
        Stop,
        DefaultEntry,
        DoubleDefault,
        Many,
        Mapping,
        Swapped,
        Values,
        Capture,
        Closure,
        Variables,
        SecondRule,
        CapturedMapping,
        Method,
        BoundMethod,
        IsZero,
        IntegerOutput,
        IntegerInput,
        Nested,
        Again,
        Through,
        OpType,
        Builtin,
        Random,
        Integer,
        Weights,
        BlackBox,
        OpensRegion,
        CallsGradients,
        OwnJvp,
        RuleObject,
        Library,
    )
]


def register() -> None:
    """Register the rules of the rows under their names."""
    for row in OVERRIDES:
        row.register()
    gg.register_gradient("survival/inner", replace=True)(_times_input)
    gg.register_gradient("survival/seven", replace=True)(_seven)


def _times_input(site: Any, dy: Any) -> Any:
    return dy * site.inputs[0]


def _seven(site: Any, dy: Any) -> Any:
    return 7.0 * dy


register()
