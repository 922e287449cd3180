"""HIPS autograd: primitive and defvjp."""

from importlib.metadata import version

import autograd
import autograd.numpy as np
import numpy
from autograd.extend import defvjp, primitive

NAME = "autograd"
VERSIONS = {"autograd": version("autograd"), "numpy": numpy.__version__}
TUTORIAL = "https://github.com/HIPS/autograd/blob/master/docs/tutorial.md"
DOCUMENTED = {"captured": TUTORIAL, "shape": TUTORIAL, "dtype": TUTORIAL}
NOT_OFFERED = {
    "theirs": "programs of other frameworks are not opened",
    "per_example": "there is no vmap",
    "through_vmap": "there is no vmap",
    "compiled": "there is no compiler",
    "compiled_whole": "there is no compiler",
    "compiled_second": "there is no compiler",
    "copied": "a program is its Python code",
    "saved": "a program is its Python code",
    "choose": "a function has one rule",
}
CANNOT_BE = {
    "kept": "a rule reads arguments and value; the rest it computes again",
    "misspelt": "a rule is given as a function",
    "value": "there is one forward part, whether a gradient is taken or not",
}


def with_rule(f, rule=lambda y, x: lambda dy: dy * 6 * x**2):
    """A function with the rule."""
    g = primitive(f)
    defvjp(g, rule)
    return g


cube = with_rule(lambda x: x**3)


def square(x):
    return cube(x) ** 2


def first():
    return float(autograd.grad(square)(2.0))


def many_ops():
    many = with_rule(lambda x: np.exp(3 * np.log(x)))
    return float(autograd.grad(lambda x: many(x) ** 2)(2.0))


def second():
    return float(autograd.grad(autograd.grad(square))(2.0))


def branch():
    f = with_rule(lambda x: x**3, lambda y, x: lambda dy: dy * 6 * x**2 if dy > 0 else 0 * dy)
    return float(autograd.grad(lambda x: f(x) ** 2)(2.0))


def opaque():
    opaque_rule = primitive(lambda x, dy: dy * 6 * x**2)
    f = with_rule(lambda x: x**3, lambda y, x: lambda dy: opaque_rule(x, dy))
    return float(autograd.grad(autograd.grad(lambda x: x * f(x) ** 2))(2.0))


def forward():
    return float(autograd.make_jvp(square)(2.0)(1.0)[1])


def checkpointed():
    return float(autograd.grad(autograd.checkpoint(square))(2.0))


def in_loop():
    def twice(x):
        for _ in range(2):
            x = cube(x)
        return x

    return float(autograd.grad(twice)(2.0))


def around_loop():
    def loop(x):
        y = 1.0
        for _ in range(3):
            y = y * x
        return y

    f = with_rule(loop)
    return float(autograd.grad(lambda x: f(x) ** 2)(2.0))


def afterwards():
    """For the whole process."""
    before = autograd.grad(lambda x: 3 * np.tanh(x))
    old = autograd.core.primitive_vjps[np.tanh]
    try:
        defvjp(np.tanh, lambda y, x: lambda dy: dy)
        return float(before(2.0))
    finally:
        autograd.core.primitive_vjps[np.tanh] = old


def captured():
    """A tensor that is not an argument gets no gradient."""

    def answer(x):
        w = 1.0 * x
        return with_rule(lambda x: w * x**3)(x)

    return float(autograd.grad(answer)(2.0))


def shape():
    """It is passed on unchecked."""
    f = with_rule(lambda x: x, lambda y, x: lambda dy: np.broadcast_to(dy, (3, 2)))
    return autograd.grad(lambda x: np.sum(f(x)))(np.array([1.0, 2.0])).tolist()


def dtype():
    """It is passed on unchecked."""
    f = with_rule(lambda x: x * 1.0, lambda y, x: lambda dy: np.float32(dy / 3))
    return float(autograd.grad(f)(2.0))
