"""Relevance of transformers' parts: what arrives and what is given is relevance."""

from __future__ import annotations

from typing import Any, Literal

from ...ir.node import Tensor
from . import maths as m
from .grids import passed
from .needs import shapes
from .row import Axis, Draw, Finite, NonNegative, Positive
from .rows import formula, pull, pull_two, pulled, through

FAMILY = "relevance"
ACHTIBAT = (
    "Achtibat et al. 2024, AttnLRP: attention-aware layer-wise relevance propagation for "
    "transformers"
)
EPSILON = "epsilon has no sign"


@pull_two(ACHTIBAT, contract="attribution", traps=EPSILON, on=("Add",))
def attn_add(dy: Tensor, x: Tensor, y: Tensor, epsilon: NonNegative = 1e-8) -> tuple[Tensor, ...]:
    """For x + y: each operand gets its share of the sum."""
    dz = dy / (x + y + epsilon)
    return x * dz, y * dz


@pull_two(ACHTIBAT, contract="attribution", traps=EPSILON, on=("MatMul",))
def attn_matmul(
    dy: Tensor, x: Tensor, y: Tensor, epsilon: NonNegative = 1e-8
) -> tuple[Tensor, ...]:
    """For x @ y: both factors of each product get half of its share."""
    dz = dy / (2.0 * m.matmul(x, y) + epsilon)
    at_x = m.matmul(dz, m.swapaxes(y, -1, -2))
    return x * at_x, y * m.matmul(m.swapaxes(x, -1, -2), dz)


@pull_two(
    ACHTIBAT,
    contract="attribution",
    traps="who carries is found by requires_grad",
    on=("Multiply",),
)
def attn_multiply(
    dy: Tensor, x: Tensor, y: Tensor, carries: Literal["both", "first", "second"] = "both"
) -> tuple[Tensor, ...]:
    """For x y: half for each factor that carries relevance, or all for one of them."""
    first = {"both": 0.5, "first": 1.0, "second": 0.0}[carries]
    return dy * first, dy * (1.0 - first)


@pull(ACHTIBAT, contract="attribution", traps=EPSILON, reduces=True)
def attn_mean(dy: Tensor, x: Tensor, axis: Axis = -1, epsilon: NonNegative = 1e-8) -> Tensor:
    """For the mean along an axis, kept or not: shares of the sum."""
    wide = dy if dy.ndim == x.ndim else m.expand_dims(dy, axis)
    return x * wide / (m.sum(x, axis, keepdims=True) + epsilon)


@pull(
    ACHTIBAT,
    contract="attribution",
    traps="lxt sums over the last axis, whatever the axis of the softmax is (over=-1)",
    on=("Softmax",),
)
def attn_softmax(
    dy: Tensor, x: Tensor, axis: Axis = -1, temperature: Positive = 1.0, over: Axis | None = None
) -> Tensor:
    """For softmax(x / temperature): x (R - y sum of R), and 0 where x is -infinity."""
    at = x / temperature
    total = m.sum(dy, axis if over is None else over, keepdims=True)
    kept = m.where(at == -float("inf"), 0.0, at)
    return kept * (dy - m.softmax(at, axis=axis) * total)


@through(
    "Kindermans et al. 2018, Learning how to explain neural networks: PatternNet and "
    "PatternAttribution",
    contract="attribution",
)
def pattern_attribution(w: Tensor, patterns: Finite) -> Tensor:
    """For a layer: errors are sent back through its weights times a pattern of the same shape."""
    return w * patterns


@pull(ACHTIBAT, contract="attribution")
def attn_divide(dy: Tensor, x: Tensor, factor: Positive = 2.0) -> Tensor:
    """For an identity: the gradient is divided, such as by the number of factors of a product."""
    return dy / factor


@pulled(
    ACHTIBAT,
    m.affine,
    contract="attribution",
    traps=f"{EPSILON}; the bias keeps its share",
    needs=(shapes(x="* inputs", w="outputs inputs", b="outputs"),),
)
def attn_linear(
    dy: Tensor, x: Tensor, w: Draw, b: Draw | None = None, epsilon: NonNegative = 1e-8
) -> Tensor:
    """x (..., inputs) times w (outputs, inputs), and a bias: shares of the sum."""
    return x * m.matmul(dy / (m.affine(x, w, b) + epsilon), w)


def _normalised(x: Tensor, w: Tensor, b: Tensor | None, variance_epsilon: float | Tensor) -> Tensor:
    """A layer norm whose deviation is a constant."""
    far = x - m.mean(x, -1, keepdims=True)
    deviation = m.sqrt(m.mean(m.square(far), -1, keepdims=True) + variance_epsilon)
    y = far / m.stop_gradient(deviation) * w
    return y if b is None else y + b


@pulled(
    ACHTIBAT,
    _normalised,
    contract="attribution",
    needs=(shapes(x="* features", w="features", b="features"),),
    traps="y includes the bias, whose shares vanish",
)
def attn_layer_norm(
    dy: Tensor,
    x: Tensor,
    w: Draw,
    b: Draw | None = None,
    epsilon: NonNegative = 1e-6,
    variance_epsilon: NonNegative = 1e-5,
) -> Tensor:
    """Layer norm along the last axis, with the standard deviation as a constant."""
    at = m.identity(x)
    y = _normalised(at, w, b, variance_epsilon)
    return x * m.gradients(y, at, dy / (y + epsilon), overrides={})


@pulled(
    ACHTIBAT,
    lambda x, w, variance_epsilon: (
        x / m.sqrt(m.mean(m.square(x), -1, keepdims=True) + variance_epsilon) * w
    ),
    contract="attribution",
)
def attn_rms_norm(dy: Tensor, x: Tensor, w: Draw, variance_epsilon: NonNegative = 1e-5) -> Tensor:
    """RMS norm along the last axis; the whole relevance passes."""
    return dy


@pulled(
    ACHTIBAT,
    lambda x, axis: x / m.maximum(m.sqrt(m.sum(m.square(x), axis, keepdims=True)), 1e-12),
    contract="attribution",
)
def attn_normalise(dy: Tensor, x: Tensor, axis: Axis = -1) -> Tensor:
    """x over its norm; the whole relevance passes."""
    return dy


ACTIVATIONS: Any = {"silu": m.silu, "gelu": lambda x: m.gelu(x), "relu": m.relu, "tanh": m.tanh}


@pulled(
    ACHTIBAT,
    lambda x, f: ACTIVATIONS[f](x),
    contract="attribution",
    traps="at 0 it is 0, and not f'(0) dy",
)
def attn_identity(
    dy: Tensor, x: Tensor, f: Literal["silu", "gelu", "relu", "tanh"] = "silu"
) -> Tensor:
    """An activation, for gradient times input: dy f(x) / x."""
    return dy * ACTIVATIONS[f](x) / (x + 1e-10)


def _halved(t: Tensor) -> Tensor:
    return passed(t, t / 2.0)


@formula(
    f"{ACHTIBAT}; Ali et al. 2022, XAI for transformers: better explanations through conservative "
    "propagation"
)
def attn_attention(
    q: Tensor, k: Tensor, v: Tensor, scale: Positive = 1.0, kind: Literal["attn", "cp"] = "attn"
) -> Tensor:
    """An attention head, for gradient times input: both products halved, or constant weights."""
    scores = m.matmul(q, m.swapaxes(k, -1, -2)) * scale
    if kind == "cp":
        return m.matmul(m.stop_gradient(m.softmax(scores, axis=-1)), v)
    return _halved(m.matmul(m.softmax(_halved(scores), axis=-1), v))


__all__ = ["attn_add", "attn_attention", "attn_divide", "attn_identity", "attn_layer_norm"]
__all__ += ["attn_linear", "attn_matmul", "attn_mean", "attn_multiply", "attn_normalise"]
__all__ += ["attn_rms_norm", "attn_softmax", "pattern_attribution"]
