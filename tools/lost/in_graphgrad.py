"""graphgrad: a region with a rule."""

import tempfile
from pathlib import Path

import numpy as np
from rows import elsewhere, own

import graphgrad as gg

NAME = "graphgrad"
VERSIONS = {"numpy": np.__version__}
DOCUMENTED = {}
NOT_OFFERED = {}
CANNOT_BE = {"value": "there is one forward part, whether a gradient is taken or not"}


def twice(site, dy):
    """The rule: twice the derivative of x ** 3."""
    (x,) = site.inputs
    return dy * 6 * x**2


def cubed(x):
    """x ** 3 with the rule."""
    with gg.override_gradient(twice):
        return x**3


def asked(answer, at=2.0):
    """The value of answer(x) at a number."""
    with gg.Graph():
        x = gg.placeholder((), name="x")
        return float(gg.compile(x, answer(x))(at))


def order(n, x):
    """The n-th derivative of the square of the step."""
    y = cubed(x) ** 2
    for _ in range(n):
        y = gg.gradients(y, x)
    return y


def first():
    return asked(lambda x: order(1, x))


def many_ops():
    def answer(x):
        with gg.override_gradient(twice):
            y = gg.exp(3 * gg.log(x))
        return gg.gradients(y**2, x)

    return asked(answer)


def second():
    return asked(lambda x: order(2, x))


def kept():
    @gg.custom_gradient
    def cube(x):
        slope = 6 * x**2
        return x**3, lambda dy: dy * slope

    return asked(lambda x: gg.gradients(gg.gradients(cube(x) ** 2, x), x))


def branch():
    def rule(site, dy):
        return twice(site, dy) if dy > 0 else gg.zeros_like(dy)

    def answer(x):
        with gg.override_gradient(rule):
            y = x**3
        return gg.gradients(y**2, x)

    return asked(answer)


def opaque():
    def rule(site, dy):
        (x,) = site.inputs
        return gg.py_function(lambda x, dy: dy * 6 * x**2, [x, dy], [((), "float64")])

    def answer(x):
        with gg.override_gradient(rule):
            y = x**3
        return gg.gradients(gg.gradients(x * y**2, x), x)

    return asked(answer)


def forward():
    return asked(lambda x: gg.jvp(cubed(x) ** 2, x))


def normalised(v):
    """The sum of squares of a vector whose gradient a rule normalises."""
    with gg.override_gradient(lambda site, dy: dy / gg.sqrt(gg.sum(dy**2))):
        y = gg.identity(v)
    return gg.sum(y**2)


def per_example():
    batch = gg.constant([[3.0, 4.0], [6.0, 8.0]])
    return gg.evaluate(gg.vmap(lambda v: gg.gradients(normalised(v), v))(batch)).tolist()


def through_vmap():
    batch = gg.constant([[3.0, 4.0], [6.0, 8.0]])
    return gg.evaluate(gg.gradients(gg.sum(gg.vmap(normalised)(batch)), batch)).tolist()


def compiled():
    return asked(lambda x: order(1, x))


def compiled_whole():
    return compiled()


def compiled_second():
    return asked(lambda x: order(2, x))


def checkpointed():
    return asked(lambda x: gg.gradients(gg.rules.checkpoint(cubed)(x) ** 2, x))


def in_loop():
    def answer(x):
        y, _ = gg.scan(lambda c, _: (cubed(c), None), x, length=2)
        return gg.gradients(y, x)

    return asked(answer)


def around_loop():
    def answer(x):
        with gg.override_gradient(twice):
            y = gg.fori_loop(0, 3, lambda _, c: c * x, gg.ones_like(x))
        return gg.gradients(y**2, x)

    return asked(answer)


def copied():
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        gg.identity(cubed(x) ** 2, name="y")
    copy = graph.copy()
    x, y = copy.tensor("x:0"), copy.tensor("y:0")
    with copy:
        return float(gg.compile(x, gg.gradients(y, x))(2.0))


def saved():
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        gg.identity(cubed(x) ** 2, name="y")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cube.gg"
        gg.save(path, graph)
        return elsewhere(f"""
import graphgrad as gg
graph = gg.load({str(path)!r}).graph
x, y = graph.tensor("x:0"), graph.tensor("y:0")
with graph:
    print(gg.compile(x, gg.gradients(y, x))(2.0))
""")


def afterwards():
    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        y = 3 * gg.tanh(x)
    graph.mark(gg.select.op("Tanh"), lambda site, dy: dy)
    with graph:
        return float(gg.compile(x, gg.gradients(y, x))(2.0))


def theirs():
    """A function of JAX, which JAX differentiates."""
    import jax

    def program(x):
        return 3 * jax.numpy.tanh(x)

    def mark(graph):
        graph.mark("Tanh", lambda site, dy: dy)

    return float(jax.grad(gg.interop.retrofit(program, mark))(2.0))


def choose():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        y = cubed(x) ** 2
        both = [gg.gradients(y, x), gg.gradients(y, x, overrides="none")]
        return [float(v) for v in gg.compile(x, both)(2.0)]


def misspelt():
    def answer(x):
        with gg.gradient_override_map({"Relu6": "Identity"}):
            return gg.gradients(gg.nn.relu(x), x)

    return asked(answer, at=-1.0)


def captured():
    def answer(x):
        w = gg.identity(x)
        with gg.override_gradient(lambda site, dy: dy * 6 * x**2):
            y = w * x**3
        return gg.gradients(y, x)

    return asked(answer)


def shape():
    with gg.Graph():
        x = gg.constant([1.0, 2.0])
        with gg.override_gradient(lambda site, dy: gg.broadcast_to(dy, (3, 2))):
            y = gg.identity(x)
        return gg.evaluate(gg.gradients(gg.sum(y), x)).tolist()


def dtype():
    def answer(x):
        with gg.override_gradient(lambda site, dy: (dy / 3).astype("float32")):
            y = gg.identity(x)
        return gg.gradients(y, x)

    return asked(answer)


@own("put on a module of PyTorch, which stays one: both orders by torch", [3.0, 0.75])
def module():
    """A quarter of 12, and of a quarter of that one's derivative, by torch.autograd.grad."""
    import torch

    class Program(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x) ** 3

    def mark(graph):
        graph.mark("Relu", lambda site, dy: dy / 4)

    marked = gg.interop.retrofit(Program(), mark)
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(marked(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    return [float(first.detach()), float(second)]
