"""What a user writes, typed: mypy --strict and pyright pass it with no ignore."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import graphgrad as gg
from graphgrad import extend, nn


@gg.register_gradient("typed_ste", replace=True)
def straight_through(site: gg.Site, *dys: gg.Tensor) -> gg.Tensor:
    """A rule: through where |x| <= 1."""
    (x,), (dy,) = site.inputs, dys
    assert site.type in ("Region", "Round")
    window: float = site.attrs.get("window", 1.0)
    return gg.where(gg.abs(x) <= window, dy, 0.0)


class Softsign(extend.RealUnary):
    """y = x / (scale + |x|), dx = dy * scale / (scale + |x|)**2."""

    scale: float = 1.0

    def kernel(self, xp: Any, x: extend.Array) -> extend.Array:
        """In the array namespace xp."""
        y: extend.Array = x / (self.scale + xp.abs(x))
        return y

    def vjp(self, node: gg.Node, dy: gg.Tensor) -> extend.Gradients:
        """Builds graph."""
        (x,) = node.inputs
        return (dy * self.scale / (self.scale + gg.abs(x)) ** 2,)


class Scaled(extend.Op):
    """y = factor * x of floating x, dx = factor * dy."""

    factor: float
    linear = "joint"
    derivative = extend.Derivative(relevance="passed")

    def infer(self, x: extend.TensorType) -> extend.Types:
        """The type of x; DTypeError for what is not floating."""
        if x.dtype.kind != "f":
            raise gg.DTypeError(f"Scaled takes floating numbers, got {x}")
        return (extend.tensor_type(x.shape, x.dtype),)

    def kernel(self, xp: Any, x: extend.Array) -> extend.Array:
        """In the array namespace xp."""
        return x * self.factor

    def vjp(self, node: gg.Node, dy: gg.Tensor) -> extend.Gradients:
        """Nothing is built for what is known to be zero."""
        return (extend.ZERO if gg.is_zero(dy) else extend.apply(self, dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> extend.Samples:
        """What laws apply it to."""
        yield cls(0.5), [rng.normal(size=(2, 3))]


def softsign(x: gg.TensorLike, scale: float = 1.0) -> gg.Tensor:
    """x / (scale + |x|)."""
    return extend.floating_unary(Softsign(scale), x)


def scaled(x: gg.TensorLike, factor: float) -> gg.Tensor:
    """factor * x."""
    return extend.apply(Scaled(factor), extend.as_tensor(x))


@extend.rule(Scaled, of=Scaled, level=extend.ROUNDING)
def scaled_twice(node: extend.NodeOf[Scaled], inner: extend.NodeOf[Scaled]) -> gg.Tensor | None:
    """scaled(scaled(x, a), b) -> scaled(x, a * b)."""
    return extend.instead(node, Scaled(inner.op.factor * node.op.factor), inner.inputs[0])


class Plainest(extend.Backend):
    """A backend: one call per node, after a pass of one's own.

    fired  how often its rewrites fired
    """

    name: str = "plainest"

    def __init__(self) -> None:
        self.kernels = extend.Kernels(np)
        self.fired: Counter[str] = Counter()

    def compile(self, program: gg.Program) -> extend.ArrayFunction:
        """The program as a function of arrays."""
        after = extend.rewrite(scaled_twice, fired=self.fired)(program)
        extend.verify_program(after)
        return extend.one_call_per_node(after, self.kernels)


def train() -> list[float]:
    """Some steps of training, with an override on the way: the losses."""
    with gg.Graph() as graph:
        x = gg.placeholder(("batch", 3), "float32", name="x")
        w = gg.variable(gg.initializers.he_normal((3, 2), seed=0, dtype="float32"), name="w")
        z = nn.softplus(x @ w)
        with gg.override_gradient("typed_ste", window=2.0) as region:
            h = gg.round(z)
        loss = gg.mean(gg.square(h)) + gg.max(scaled(scaled(softsign(h), 0.5), 4.0))
        (dw,) = gg.gradients(loss, [w])
        updates = gg.optimizers.Adam(0.1).updates([w], [dw])
        step: gg.CompiledFunction = gg.compile([x], loss, updates=updates, backend=Plainest())
    assert region in graph.regions
    program: gg.Program = step.program
    assert program.nodes
    rows = np.ones((4, 3), np.float32)
    return [float(step(rows)) for _ in range(20)]


def look() -> list[gg.Finding]:
    """Marks put later, a call's own choice, what explain and lint say, a session, values."""
    with gg.Graph() as graph:
        x = gg.placeholder((3,), name="x")
        y = gg.sum(gg.tanh(x))
        selection: gg.Selection = gg.select.op("Tanh") | gg.select.name("other*")
        graph.mark(selection, gg.rules.ste(window=1.0))
        gg.gradients(y, x, overrides={"Tanh": None})
        explained: gg.Explanation = gg.explain(y, x)
    assert str(explained)
    backend: extend.Backend = Plainest()
    with gg.Session(graph, backend) as session:
        session.run(y, {x: np.ones(3)})
    profile: gg.Profile = gg.compile(x, y, backend="numpy").profile(np.ones(3))
    assert str(profile)
    values: gg.debug.Values = gg.debug.values(y, {x: np.ones(3)})
    assert values
    return gg.lint(graph)


def traced() -> gg.Function:
    """A function of arrays from a function of tensors."""

    @gg.function
    def doubled(t: gg.Tensor) -> gg.Tensor:
        return t * 2

    return doubled


class Signed(gg.optimizers.Optimizer):
    """p - rate * sign(momentum)."""

    def update(self, call: gg.optimizers.UpdateCall, p: gg.Tensor, g: gg.Tensor) -> gg.Tensor:
        """The next value of p."""
        v = call.slot(p, "momentum", lambda v: 0.9 * v + g)
        return p - call.rate(p) * gg.sign(v)
