"""PyTensor: OpFromGraph."""

import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.replace import clone_replace, vectorize_graph
from rows import elsewhere

NAME = "PyTensor"
VERSIONS = {"pytensor": pytensor.__version__}
API = "https://pytensor.readthedocs.io/en/latest/library/compile/opfromgraph.html"
DOCUMENTED = {"dtype": API, "shape": API}
NOT_OFFERED = {
    "theirs": "programs of other frameworks are not opened",
    "checkpointed": "only the runs of a scan can be recomputed",
    "choose": "an op has one rule",
}
CANNOT_BE = {
    "kept": "a rule reads arguments and value; the rest it computes again",
    "misspelt": "a rule is given as a function",
    "value": "there is one forward part, whether a gradient is taken or not",
}


def twice(inputs, outputs, dys):
    """The rule: twice the derivative of x ** 3."""
    (x,), (dy,) = inputs, dys
    return [dy * 6 * x**2]


def with_rule(f, rule=twice, like=pt.dscalar):
    """A function as an op with the rule."""
    x = like("x")
    return OpFromGraph([x], [f(x)], pullback=rule)


cube = with_rule(lambda x: x**3)


def asked(answer, at=2.0):
    """The value of answer(x) at a number."""
    x = pt.dscalar("x")
    return float(pytensor.function([x], answer(x))(at))


def first():
    return asked(lambda x: pt.grad(cube(x) ** 2, x))


def many_ops():
    many = with_rule(lambda x: pt.exp(3 * pt.log(x)))
    return asked(lambda x: pt.grad(many(x) ** 2, x))


def second():
    return asked(lambda x: pt.grad(pt.grad(cube(x) ** 2, x), x))


def branch():
    def rule(inputs, outputs, dys):
        return twice(inputs, outputs, dys) if dys[0] > 0 else [0 * dys[0]]

    f = with_rule(lambda x: x**3, rule)
    return asked(lambda x: pt.grad(f(x) ** 2, x))


def opaque():
    @pytensor.wrap_py(itypes=[pt.dscalar, pt.dscalar], otypes=[pt.dscalar])
    def opaque_rule(x, dy):
        return np.asarray(dy * 6 * x**2)

    f = with_rule(lambda x: x**3, lambda xs, ys, dys: [opaque_rule(xs[0], dys[0])])
    return asked(lambda x: pt.grad(pt.grad(x * f(x) ** 2, x), x))


def forward():
    return asked(lambda x: pytensor.gradient.pushforward(cube(x) ** 2, x, pt.ones_like(x)))


def normalised(v):
    """The sum of squares of a vector whose gradient a rule normalises."""

    def rule(inputs, outputs, dys):
        return [dys[0] / pt.sqrt(pt.sum(dys[0] ** 2))]

    return pt.sum(with_rule(lambda v: v * 1.0, rule, pt.dvector)(v) ** 2)


def per_example():
    v, batch = pt.dvector(), pt.dmatrix()
    slopes = vectorize_graph(pt.grad(normalised(v), v), {v: batch})
    return pytensor.function([batch], slopes)([[3.0, 4.0], [6.0, 8.0]]).tolist()


def through_vmap():
    v, batch = pt.dvector(), pt.dmatrix()
    total = pt.sum(vectorize_graph(normalised(v), {v: batch}))
    slopes = pt.grad(total, batch)
    return pytensor.function([batch], slopes)([[3.0, 4.0], [6.0, 8.0]]).tolist()


def compiled():
    return asked(lambda x: pt.grad(cube(x) ** 2, x))


def compiled_whole():
    return compiled()


def compiled_second():
    return second()


def in_loop():
    def answer(x):
        y = pytensor.scan(cube, outputs_info=x, n_steps=2, return_updates=False)
        return pt.grad(y[-1], x)

    return asked(answer)


def around_loop():
    def power(x):
        one = pt.ones_like(x)
        return pytensor.scan(
            lambda c, x: c * x, outputs_info=one, non_sequences=x, n_steps=3, return_updates=False
        )[-1]

    f = with_rule(power)
    return asked(lambda x: pt.grad(f(x) ** 2, x))


def copied():
    x = pt.dscalar("x")
    y = cube(x) ** 2
    (a,), (b,) = pytensor.graph.basic.clone([x], [y])
    return float(pytensor.function([a], pt.grad(b, a))(2.0))


def saved():
    """By pickle, which keeps the name of a rule, not the rule."""
    x = pt.dscalar("x")
    y = with_rule(lambda x: x**3)(x) ** 2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cube.pkl"
        path.write_bytes(pickle.dumps((x, y)))
        return elsewhere(f"""
import pickle
import pytensor, pytensor.tensor as pt
x, y = pickle.load(open({str(path)!r}, "rb"))
print(pytensor.function([x], pt.grad(y, x))(2.0))
""")


def afterwards():
    x = pt.dscalar("x")
    t = pt.tanh(x)
    y = 3 * t
    passed = with_rule(pt.tanh, lambda xs, ys, dys: dys)
    marked = clone_replace(y, {t: passed(x)})
    return float(pytensor.function([x], pt.grad(marked, x))(2.0))


def captured():
    def answer(x):
        w = 1.0 * x
        return pt.grad(with_rule(lambda x: w * x**3)(x), x)

    return asked(answer)


def shape():
    """It is passed on unchecked."""
    f = with_rule(
        lambda v: v * 1.0, lambda xs, ys, dys: [pt.concatenate([dys[0], dys[0]])], pt.dvector
    )
    v = pt.dvector()
    return pytensor.function([v], pt.grad(pt.sum(f(v)), v))([1.0, 2.0]).tolist()


def dtype():
    """It is passed on unchecked."""
    f = with_rule(lambda x: x * 1.0, lambda xs, ys, dys: [(dys[0] / 3).astype("float32")])
    return asked(lambda x: pt.grad(f(x), x))
