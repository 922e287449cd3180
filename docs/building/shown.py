"""The table of the gallery: for each rule of the library a program that shows what it does.

A program finds `x`, and makes `y`; the gradient of y is what is plotted, with the rule and without.
Where the rule is asked for an answer instead of a gradient, the program makes `dx` too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from textwrap import dedent

import numpy as np

import graphgrad as gg

LINE = np.linspace(-3, 3, 241)
ROW = np.array([[1.0, -2.0, 0.5, 1.5]])
LAYER = "w = np.array([[1.0, 0.5], [0.5, -1.0], [-1.0, 2.0], [1.0, 1.0]])"


def ones(x, y):
    """A gradient of 1 everywhere."""
    return np.ones_like(y)


def wave(x, y):
    """A gradient of both signs: the cosine of 2 x."""
    return np.cos(2 * x).reshape(y.shape).astype(y.dtype)


def score(x, y):
    """What is to be explained: y itself."""
    return y


@dataclass(frozen=True)
class Shown:
    """How a rule is shown.

    program  what a user writes, x being there
    x        where: a line of points is drawn as a curve, a row of numbers as bars
    dy       what arrives, of x and y
    parts    names of the bars; none: those of the elements of x
    """

    program: str
    x: np.ndarray = field(default_factory=lambda: LINE)
    dy: Callable = ones
    parts: tuple[str, ...] = ()

    @property
    def whole(self):
        """The program with the line that makes x."""
        dtype = "" if self.x.dtype == float else f', "{self.x.dtype}"'
        return f'x = gg.placeholder({self.x.shape}{dtype}, name="x")\n{self.program}'


def put(rule, function, x=LINE, dy=ones, before=""):
    """The usual program: a rule around a function of x."""
    block = f"with gg.override_gradient(gg.rules.{rule}):\n    y = {function}"
    return Shown(f"{before}\n{block}".strip(), x, dy)


def lines(program, *how, **more):
    """A program that is written out."""
    return Shown(dedent(program).strip(), *how, **more)


def layer(rule):
    """A rule of relevance on a layer of four inputs and two outputs."""
    return put(rule, "x @ w", ROW, score, LAYER)


PURPOSES = {
    (
        "Training through a step function",
        "Rounding, signs, quantisers have the derivative zero. Straight-through passes the "
        "gradient as if there were no step; a window stops it far outside. The quantisers "
        "beside it have gradients for their ranges and steps too.",
    ): {
        "ste": put("ste(window=1.0)", "gg.sign(x)"),
        "fake_quantise": Shown("y = gg.rules.fake_quantise(x, -1.5, 1.5, bits=2)"),
        "fake_float8": Shown("y = gg.rules.fake_float8(x, 1.0, format='e5m2')"),
        "lsq": Shown("y = gg.rules.lsq(x, 0.5, bits=3)"),
        "lsq_plus": Shown("y = gg.rules.lsq_plus(x, 0.5, 1.0, bits=3)"),
        "pact": Shown("y = gg.rules.pact(x, 2.0, bits=2)"),
    },
    (
        "Surrogate gradients of spikes",
        "A neuron fires or does not. A surrogate is the derivative of a smooth function that "
        "looks like the step.",
    ): {
        "fast_sigmoid": put("fast_sigmoid()", "gg.astype(x > 0, x.dtype)"),
        "atan": put("atan()", "gg.astype(x > 0, x.dtype)"),
        "triangle": put("triangle()", "gg.astype(x > 0, x.dtype)"),
        "surrogate": put("surrogate(gg.tanh)", "gg.astype(x > 0, x.dtype)"),
    },
    (
        "Gradient clipping, scaling, reversal",
        "They change the gradient that would have been, of whatever is in the block; put them "
        "on a `gg.identity` where no op is meant.",
    ): {
        "clip_value": put("clip_value(1.0)", "x**2 / 2"),
        "clip_norm": put("clip_norm(1.0)", "x**2 / 2", ROW[0]),
        "scale": put("scale(0.5)", "x**2 / 2"),
        "reverse": put("reverse()", "x**2 / 2"),
        "stop": put("stop()", "x**2 / 2"),
    },
    (
        "Numerically stable gradients",
        "Formulas whose value is fine and whose gradient is not. The first makes numbers of "
        "whatever comes, the others know the right one.",
    ): {
        "nan_guard": put("nan_guard(limit=3.0)", "gg.sqrt(gg.abs(x))"),
        "log1pexp": put(
            "log1pexp()", "gg.log(1 + gg.exp(x))", np.linspace(60, 120, 241, dtype="float32")
        ),
        "logsumexp": put(
            "logsumexp()", "gg.log(gg.sum(gg.exp(x)))", np.array([708.0, 709.0, 709.5])
        ),
        "norm": put("norm()", "gg.sqrt(gg.sum(x * x))", np.zeros(3)),
        "masked": put(
            "masked(gg.sqrt, lambda x: x > 0)",
            "gg.where(x > 0, gg.sqrt(x), 0.0)",
            np.linspace(-1, 3, 241),
        ),
    },
    (
        "Guided backprop and DeepLIFT",
        "Rules for activations, with which a gradient becomes a picture of what mattered.",
    ): {
        "guided": put("guided()", "gg.nn.relu(x)", dy=wave),
        "deconvnet": put("deconvnet()", "gg.nn.relu(x)", dy=wave),
        "redirected": put(
            "redirected()", "gg.nn.relu(x)", np.linspace([-6.0], [-0.1], 241).T, wave
        ),
        "rescale": put("rescale(-1.0, 0.0)", "gg.nn.relu(x)"),
        "deeplift": lines(
            """
            y = gg.nn.relu(x)
            dx = gg.rules.deeplift(gg.nn.relu, x, -1.0)
            """
        ),
        "deep_shap": lines(
            """
            y = gg.nn.relu(x)
            dx = gg.rules.deep_shap(gg.nn.relu, x, np.array([[-1.0], [1.0]]))
            """
        ),
    },
    (
        "Layer-wise relevance propagation",
        "Layer-wise relevance propagation: the gradient that arrives is relevance, and each "
        "rule says how a layer shares it among its inputs. Here the score is what a layer of "
        "four inputs and two outputs makes, or one op.",
    ): {
        "lrp_epsilon": layer("lrp_epsilon()"),
        "lrp_gamma": layer("lrp_gamma()"),
        "lrp_signed_gamma": layer("lrp_signed_gamma(gamma=1.0)"),
        "lrp_alpha_beta": layer("lrp_alpha_beta()"),
        "lrp_zbox": layer("lrp_zbox(-2.0, 2.0)"),
        "lrp_flat": layer("lrp_flat()"),
        "lrp_wsquare": layer("lrp_wsquare()"),
        "lrp_zplus": layer("lrp_zplus()"),
        "epsilon_plus": layer("epsilon_plus()"),
        "epsilon_plus_flat": layer("epsilon_plus_flat()"),
        "epsilon_alpha2_beta1": layer("epsilon_alpha2_beta1()"),
        "epsilon_gamma_box": layer("epsilon_gamma_box(-2.0, 2.0)"),
        "lrp_pass": put("lrp_pass()", "gg.tanh(x)"),
        "lrp_product": lines(
            """
            gate = gg.nn.sigmoid(3 * x)
            with gg.gradient_override_map({"Multiply": gg.rules.lrp_product()}):
                y = x * gate
            """,
            dy=score,
        ),
        "relevance": lines(
            f"""
            {LAYER}
            y = gg.sum(gg.nn.relu(x @ w))
            dx = gg.rules.relevance(y, x)
            """,
            ROW,
        ),
        "conservation": lines(
            f"""
            {LAYER}
            y = gg.sum(gg.nn.relu(x @ w + 0.5))
            r, *kept = gg.rules.conservation(y, x)
            dx = gg.concat([gg.reshape(r, 4), gg.stack(kept)])
            """,
            ROW,
            parts=("x0", "x1", "x2", "x3", "biases", "stabiliser", "rest"),
        ),
    },
    (
        "A function that cannot be differentiated",
        "Values alone are enough for an estimate; a function of arrays may bring its own adjoint.",
    ): {
        "spsa": put("spsa(gg.tanh, step=0.5)", "gg.sign(x)", np.array([-2.0, -0.5, 0.5, 2.0])),
        "black_box": lines(
            """
            y = gg.rules.black_box(
                np.floor, [x], [(x.shape, x.dtype)], adjoint=lambda x, dy: dy
            )
            """
        ),
    },
    (
        "A solution of an equation",
        "What solves it is found by iteration; its gradient comes from the equation, not from "
        "the way there.",
    ): {
        "fixed_point": Shown("y = gg.rules.fixed_point(lambda z: gg.cos(z) / 2 + x, x)"),
        "root": Shown("y = gg.rules.root(lambda z: z**3 + z - x, x)", LINE[::4]),
        "linear_solve": Shown(
            "y = gg.rules.linear_solve(lambda z: (1 + x**2) * z, gg.ones_like(x))", LINE[::4]
        ),
    },
    (
        "Less memory",
        "The gradient is what it was; what is kept for it is not. Look at the pictures.",
    ): {
        "checkpoint": Shown("y = gg.rules.checkpoint(lambda x: gg.tanh(gg.sin(x)))(x)"),
        "checkpoint_chain": Shown("y = gg.rules.checkpoint_chain([gg.sin, gg.tanh] * 2, x)"),
    },
    (
        "Errors that go another way",
        "Networks learn too where errors come back through fixed random weights instead of "
        "their own.",
    ): {
        "feedback": put("feedback(seed=1)", "x @ w", ROW, before=LAYER),
        "target_prop": put(
            "target_prop(lambda y: gg.tanh(y) @ gg.transpose(w))", "x @ w", ROW, before=LAYER
        ),
    },
}

SPIKES = next(rows for rows in PURPOSES.values() if "atan" in rows)
SLOPES = {n for n, e in gg.rules.library().items() if e.formula.startswith("dx = dy * slope")}
SPIKES |= {
    name: put(f"{name}()", "gg.heaviside(x, 1.0)")
    for name in sorted(SLOPES)
    if not any(name in rows for rows in PURPOSES.values())
}
"""Slopes of the zoo, each drawn against its step."""


def _builds_of_x(entry):
    """Whether it is a row that builds a step of one tensor."""
    if not hasattr(entry, "row") or not entry.builds or entry.family not in STEPPED:
        return False
    needed = [p for p in entry.row.signature.parameters.values() if p.default is p.empty]
    return [p.name for p in needed] == ["x"]


STEPPED = ("straight-through", "quantisation")
STEPS = next(rows for rows in PURPOSES.values() if "ste" in rows)
STEPS |= {
    name: Shown(f"y = gg.rules.{name}(x)")
    for name, entry in sorted(gg.rules.library().items())
    if _builds_of_x(entry) and name != "clamp_ste"
}
"""Rows that build a step; without bounds `clamp_ste` is none."""

SHOWN = {name: shown for rows in PURPOSES.values() for name, shown in rows.items()}
