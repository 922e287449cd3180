"""The standard library of named overrides: `gg.override_gradient(gg.rules.ste(window=1.0))`.

Most functions return a rule, to be put wherever a rule can be; some build tensors that have one.
`gg.rules.library()` lists them. None is registered under a global name.
"""

from typing import TYPE_CHECKING

from ..base.first_tries import unknown_names
from .alignment import feedback
from .by_sign import lrp_alpha_beta, lrp_flat, lrp_signed_gamma
from .clipping import clip_norm, clip_value, nan_guard
from .entries import Entry, library
from .estimators import black_box, spsa
from .implicit import fixed_point, linear_solve, root
from .propagation import (
    Conservation,
    conservation,
    lrp_epsilon,
    lrp_gamma,
    lrp_pass,
    lrp_product,
    lrp_zbox,
    relevance,
)
from .quantisation import fake_float8, fake_quantise, lsq, lsq_plus, pact
from .recompute import checkpoint, checkpoint_chain
from .reference import deeplift, rescale
from .saliency import deconvnet, guided, redirected
from .scaling import reverse, scale, stop
from .stable import log1pexp, logsumexp, masked, norm
from .straight_through import ste
from .surrogates import atan, fast_sigmoid, surrogate, triangle

__all__ = [
    "Conservation",
    "Entry",
    "atan",
    "black_box",
    "checkpoint",
    "checkpoint_chain",
    "clip_norm",
    "clip_value",
    "conservation",
    "deconvnet",
    "deeplift",
    "fake_float8",
    "fake_quantise",
    "fast_sigmoid",
    "feedback",
    "fixed_point",
    "guided",
    "library",
    "linear_solve",
    "log1pexp",
    "logsumexp",
    "lrp_alpha_beta",
    "lrp_epsilon",
    "lrp_flat",
    "lrp_gamma",
    "lrp_pass",
    "lrp_product",
    "lrp_signed_gamma",
    "lrp_zbox",
    "lsq",
    "lsq_plus",
    "masked",
    "nan_guard",
    "norm",
    "pact",
    "redirected",
    "relevance",
    "rescale",
    "reverse",
    "root",
    "scale",
    "spsa",
    "ste",
    "stop",
    "surrogate",
    "triangle",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)
