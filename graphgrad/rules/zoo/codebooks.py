"""Vector quantisation: the nearest of some codes, or of implicit ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Annotated, Literal

from ...base.domains import Domain
from ...ir.node import Tensor
from . import maths as m
from .grids import passed
from .needs import Need, length, shapes
from .row import Axis, Draw, Levels, NonNegative, Positive
from .rows import formula, learned, passing, soft

FAMILY = "vector quantisation"
OORD = "van den Oord, Vinyals, Kavukcuoglu 2017, Neural discrete representation learning"
FIFTY = "Fifty et al. 2024, Restructuring vector quantization with the rotation trick"
MENTZER = "Mentzer et al. 2024, Finite scalar quantization: VQ-VAE made simple"
Layers = Annotated[int, Domain(1, whole=True)]
CODES = shapes(x="* features", codebook="* codes features")
PROJECTED = shapes(x="* features", matrix="features inner", codebook="* codes inner")
LEVELS = Need(
    "there is a level for each feature, the last axis of x",
    lambda x, levels: length(x) in (len(levels), inf),
)


def nearest(x: Tensor, codebook: Tensor) -> Tensor:
    """The code (of (..., codes, features)) that is nearest to each x (..., features)."""
    book = m.reshape(codebook, (-1, m.length(codebook)))
    far = m.sum(m.square(m.expand_dims(x, -2) - book), -1)
    return m.take(book, m.argmin(far, -1), axis=0)


def unit(x: Tensor, least: float = 1e-12) -> Tensor:
    """x over its norm along the last axis."""
    return x / m.maximum(m.sqrt(m.sum(m.square(x), -1, keepdims=True)), least)


def rotated(x: Tensor, target: Tensor) -> Tensor:
    """x, turned and stretched to the target by a rotation that is a constant."""
    e, q = m.stop_gradient(unit(x, 1e-6)), m.stop_gradient(unit(target, 1e-6))
    w = unit(e + q)
    along = 2.0 * (q * m.sum(e * x, -1, keepdims=True) - w * m.sum(w * x, -1, keepdims=True))
    squares = [m.sum(m.square(t), -1, keepdims=True) for t in (target, x)]
    stretch = m.sqrt(squares[0]) / m.maximum(m.sqrt(squares[1]), 1e-6)
    return (x + along) * m.stop_gradient(stretch)


@passing(OORD, needs=(CODES,))
def vq_st(x: Tensor, codebook: Draw) -> Tensor:
    """The nearest code; the gradient passes to x, and a loss trains the codes."""
    return nearest(x, codebook)


@learned(
    "Huh et al. 2023, Straightening out the straight-through estimator",
    nearest,
    needs=(CODES,),
    traps="the codes get nothing in the package, the straight-through step comes first",
)
def vq_sync(x: Tensor, codebook: Draw, nu: NonNegative = 0.2) -> Tensor:
    """The nearest code; x gets (1 + nu) dy."""
    return m.ones_like(x) * (1.0 + nu)


@soft(FIFTY, nearest, needs=(CODES,))
def vq_rotation(x: Tensor, codebook: Draw) -> Tensor:
    """The nearest code; the gradient is rotated back by the rotation that takes x to it."""
    return rotated(x, m.stop_gradient(nearest(x, codebook)))


@soft(
    FIFTY,
    lambda target: m.identity(target),
    needs=(shapes(x="... features", target="... features"),),
)
def vq_rotate_to(x: Tensor, target: Draw) -> Tensor:
    """A target; the gradient is rotated back by the rotation that takes x to it."""
    return rotated(x, target)


@soft(
    "Yu et al. 2022, Vector-quantized image modeling with improved VQGAN",
    lambda x, codebook: nearest(unit(x), unit(codebook)),
    needs=(CODES,),
)
def vq_cosine(x: Tensor, codebook: Draw) -> Tensor:
    """The code with the smallest angle, on the sphere; the gradient is that of x / norm(x)."""
    return unit(x)


@formula(OORD, traps="means, not sums", needs=(CODES,))
def vq_commitment(x: Tensor, codebook: Draw, commitment: NonNegative = 1.0) -> Tensor:
    """A loss that keeps x close to its code: the mean of (x - code)**2."""
    return commitment * m.mean(m.square(x - m.stop_gradient(nearest(x, codebook))))


@formula(
    OORD,
    traps="the weights are on the other side than the paper's beta; means, not sums",
    needs=(CODES,),
)
def vq_learned_loss(
    x: Tensor, codebook: Tensor, commitment: NonNegative = 1.0, pull: NonNegative = 1.0
) -> Tensor:
    """A loss that pulls x and its code towards each other."""
    code = nearest(x, codebook)
    to_code = m.mean(m.square(x - m.stop_gradient(code)))
    to_x = m.mean(m.square(m.stop_gradient(x) - code))
    total = commitment * to_code + pull * to_x
    return total - m.stop_gradient(pull * to_x)


SIM = "Zhu et al. 2024, Addressing representation collapse with one linear layer (SimVQ)"


def _projected(matrix: Tensor, codebook: Tensor) -> Tensor:
    return m.matmul(codebook, m.swapaxes(matrix, -1, -2))


@soft(
    SIM,
    lambda x, matrix, codebook: nearest(x, _projected(matrix, codebook)),
    traps="where x is 0 the package's value is 0 and not the code",
    needs=(PROJECTED,),
)
def sim_vq(x: Tensor, matrix: Draw, codebook: Draw, rotation: bool = True) -> Tensor:
    """The nearest code of a transformed codebook; gradients as in `vq_rotation` or `vq_st`."""
    code = m.stop_gradient(nearest(x, _projected(matrix, codebook)))
    return rotated(x, code) if rotation else passed(code, x)


@formula(SIM, needs=(PROJECTED,))
def sim_vq_loss(
    x: Tensor, matrix: Tensor, codebook: Draw, commitment: NonNegative = 0.25
) -> Tensor:
    """A loss that trains the matrix and pulls x towards its code."""
    code = nearest(x, _projected(matrix, codebook))
    to_code = m.mean(m.square(x - m.stop_gradient(code)))
    return m.mean(m.square(m.stop_gradient(x) - code)) + commitment * to_code


@soft(
    "DiVeQ 2025, Differentiable vector quantization using the reparameterization trick",
    lambda x, target, noise, variance: _along(x, target, noise, variance),
    traps="the value is not a code but near one",
    needs=(shapes(x="... n", target="... n", noise="... n"),),
)
def diveq(x: Tensor, target: Tensor, noise: Draw, variance: NonNegative = 1e-2) -> Tensor:
    """x, moved by its distance to a target in a random direction; both are learned."""
    return _along(x, target, noise, variance)


def _along(x: Tensor, target: Tensor, noise: Tensor, variance: float | Tensor) -> Tensor:
    way = m.stop_gradient(unit(target - x + m.sqrt(m.as_tensor(variance, x.dtype)) * noise))
    far = m.sqrt(m.sum(m.square(target - x), -1, keepdims=True))
    return x + far * way


# --- implicit codes ---------------------------------------------------------------------------

Activation = Literal["identity", "tanh"]


def _lookup_free(x: Tensor, activation: str, clamp: float | Tensor | None) -> Tensor:
    if clamp is not None:
        x = m.tanh(x / clamp) * clamp
    return m.tanh(x) if activation == "tanh" else x


YU = "Yu et al. 2024, Language model beats diffusion: tokenizer is key to visual generation"


@soft(
    YU,
    lambda x, scale: m.where(x > 0, scale, -scale) + 0.0 * x,
    traps="without a training flag the package has no gradient",
)
def lfq(
    x: Tensor,
    scale: Positive = 1.0,
    activation: Activation = "identity",
    clamp: Positive | None = None,
) -> Tensor:
    """scale times the sign of x (that of 0 is -1); the gradient is that of x, or of a clamp."""
    return _lookup_free(x, activation, clamp)


@soft(
    "Zhao, Xiong, Kraehenbuehl 2024, Image and video tokenization with binary spherical "
    "quantization",
    lambda x, scale: m.where(x > 0, 1.0, -1.0) * scale / float(m.length(x)) ** 0.5,
)
def bsq(x: Tensor, scale: Positive = 1.0) -> Tensor:
    """The nearest corner of a cube in the sphere; the gradient is that of x / norm(x)."""
    return unit(x)


def _bounded(x: Tensor, levels: Sequence[int], hard: bool, epsilon: float | Tensor) -> Tensor:
    """x between the first and the last level, of L levels within (L - 1) / 2 of the middle."""
    n = _vector(x, [float(level) for level in levels])
    half = (n - 1.0) * (1.0 + epsilon) / 2.0
    offset = _vector(x, [0.5 - 0.5 * (level % 2) for level in levels])
    if hard:
        u = x + offset / half
        return m.where(u > 1, 1.0, m.where(u < -1, -1.0, u)) * half - offset
    return m.tanh(x + m.arctanh(offset / half)) * half - offset


def _vector(x: Tensor, values: list[float]) -> Tensor:
    return m.as_tensor(values, x.dtype)


def _symmetric(x: Tensor, levels: Sequence[int], hard: bool) -> tuple[Tensor, Tensor]:
    n = _vector(x, [level - 1.0 for level in levels])
    inner = m.where(x > 1, 1.0, m.where(x < -1, -1.0, x)) if hard else m.tanh(x)
    return n, n * (inner + 1.0) / 2.0


def _fsq(
    x: Tensor,
    levels: Sequence[int],
    symmetric: bool,
    hard: bool,
    epsilon: float | Tensor,
    exact: bool,
) -> Tensor:
    """The codes, or what they are rounded from."""
    if symmetric:
        n, place = _symmetric(x, levels, hard)
        return 2.0 * (m.floor(place + 0.5) if exact else place) / n - 1.0
    place = _bounded(x, levels, hard, epsilon)
    return (m.rint(place) if exact else place) / _vector(x, [float(level // 2) for level in levels])


@soft(
    f"{MENTZER}; symmetric: Parker et al. 2024, Scaling transformers for low-bitrate speech coding",
    lambda x, levels, symmetric, hard, epsilon: _fsq(x, levels, symmetric, hard, epsilon, True),
    needs=(LEVELS,),
)
def fsq(
    x: Tensor,
    levels: Levels,
    symmetric: bool = False,
    hard: bool = False,
    epsilon: NonNegative = 1e-3,
) -> Tensor:
    """Each feature bounded by a tanh and rounded to a number of levels; gradients pass rounding."""
    return _fsq(x, levels, symmetric, hard, epsilon, False)


@passing(
    "Hsu et al. 2023, Disentanglement via latent quantization",
    needs=(
        Need(
            "there is a level for each feature of x along the axis",
            lambda x, levels, axis: length(x, axis) in (len(levels), inf),
        ),
    ),
)
def latent_quantise(x: Tensor, levels: Levels, axis: Axis = -1) -> Tensor:
    """Each feature, along an axis, rounded to the nearest of its values; the gradient passes."""
    x, ys = m.moveaxis(x, axis, -1), []
    for i, n in enumerate(levels):
        values = [k / (n - n % 2) - 0.5 for k in range(n)]
        ys.append(nearest(x[..., i : i + 1], _vector(x, values)[:, None]))
    return m.moveaxis(m.concat(ys, axis=-1), -1, axis)


ZEGHIDOUR = "Zeghidour et al. 2021, SoundStream: an end-to-end neural audio codec"


def _residual(x: Tensor, layers: int, coded: Callable[[int, Tensor], Tensor]) -> Tensor:
    """The sum of what each layer makes of what those before left of x."""
    left, total = x, m.zeros_like(x)
    for i in range(layers):
        code = coded(i, left)
        total = total + code
        left = left - m.stop_gradient(code) if i + 1 < layers else left
    return total


@formula(
    ZEGHIDOUR,
    traps="dx = layers * dy: each residual keeps the path to x (around=False)",
    needs=(shapes(x="* features", codebooks="layers codes features"),),
)
def residual_vq(x: Tensor, codebooks: Draw, around: bool = True) -> Tensor:
    """The sum of the nearest codes of each residual; around: one straight-through step for all."""
    layers = m.length(codebooks, 0)
    total = _residual(x, layers, lambda i, left: passed(nearest(left, codebooks[i]), left))
    return passed(total, x) if around else total


@formula(ZEGHIDOUR, needs=(LEVELS,))
def residual_fsq(x: Tensor, levels: Levels, layers: Layers = 2) -> Tensor:
    """Finite scalar quantisation of the residual of a clamped x, each layer at a finer scale."""

    def coded(i: int, left: Tensor) -> Tensor:
        scale = _vector(x, [float(level) ** -i for level in levels])
        place, code = [
            _fsq(left / scale, levels, False, True, 0.0, exact) for exact in (False, True)
        ]
        return passed(code, place) * scale

    clamp = _vector(x, [1.0 + 1.0 / (level - 1) for level in levels])
    return _residual(m.tanh(x / clamp) * clamp, layers, coded)


@formula(ZEGHIDOUR)
def residual_lfq(x: Tensor, layers: Layers = 2) -> Tensor:
    """Lookup-free quantisation of the residual, each layer at half the scale."""
    return _residual(
        x, layers, lambda i, left: passed(m.where(left > 0, 2.0**-i, -(2.0**-i)), left)
    )


@formula(
    SIM,
    needs=(
        shapes(x="* features", codebooks="layers codes inner", matrices="layers features inner"),
    ),
)
def residual_sim_vq(x: Tensor, codebooks: Draw, matrices: Draw, rotation: bool = True) -> Tensor:
    """SimVQ of the residual, layer by layer."""

    def coded(i: int, left: Tensor) -> Tensor:
        code = m.stop_gradient(nearest(left, _projected(matrices[i], codebooks[i])))
        return rotated(left, code) if rotation else passed(code, left)

    return _residual(x, m.length(codebooks, 0), coded)


def _hot_bits(bits: Tensor) -> Tensor:
    count = m.length(bits)
    place = m.sum(bits * m.as_tensor([2**i for i in range(count)], bits.dtype), -1)
    return m.one_hot(place, 2**count)


@soft(
    "Fleuret 2025, The free transformer",
    lambda x, drawn: m.cast(_hot_bits(drawn), x.dtype),
    needs=(shapes(x="... bits", drawn="... bits"),),
)
def binary_mapper(x: Tensor, drawn: Draw) -> Tensor:
    """The one-hot vector of a number of random bits; backward, the product of probabilities."""
    count = m.length(x)
    y = m.ones_like(x[..., :1])
    for i in range(count):
        p = m.sigmoid(x[..., i : i + 1])
        y = m.concat([y * (1.0 - p), y * p], axis=-1)
    return y


__all__ = ["binary_mapper", "bsq", "diveq", "fsq", "latent_quantise", "lfq", "residual_fsq"]
__all__ += ["residual_lfq", "residual_sim_vq", "residual_vq", "sim_vq", "sim_vq_loss"]
__all__ += ["vq_commitment", "vq_cosine", "vq_learned_loss", "vq_rotate_to", "vq_rotation"]
__all__ += ["vq_st", "vq_sync"]
