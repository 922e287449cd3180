"""The standard library of named overrides: `gg.override_gradient(gg.rules.ste(window=1.0))`.

Most functions return a rule, to be put wherever a rule can be; some build tensors that have one.
`gg.rules.library()` lists them. None is registered under a global name.
"""

from typing import TYPE_CHECKING

from ..base.first_tries import unknown_names
from .alignment import feedback, target_prop
from .by_sign import lrp_alpha_beta, lrp_flat, lrp_signed_gamma
from .composites import (
    epsilon_alpha2_beta1,
    epsilon_alpha2_beta1_flat,
    epsilon_gamma_box,
    epsilon_plus,
    epsilon_plus_flat,
    lrp_wsquare,
    lrp_zplus,
)
from .entries import Entry, find, library
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
from .reference import deep_shap, deeplift, rescale
from .scaling import reverse, scale, stop
from .stable import log1pexp, logsumexp, masked, norm
from .surrogates import surrogate
from .zoo import (
    aggregate,
    attention,
    binary,
    clipping,
    codebooks,
    dictionaries,
    edges,
    grids,
    saliency,
    samples,
    simplex,
    soft,
    solvers,
    spikes,
)
from .zoo.aggregate import *
from .zoo.attention import *
from .zoo.binary import *
from .zoo.clipping import *
from .zoo.codebooks import *
from .zoo.dictionaries import *
from .zoo.edges import *
from .zoo.grids import *
from .zoo.saliency import *
from .zoo.samples import *
from .zoo.simplex import *
from .zoo.soft import *
from .zoo.solvers import *
from .zoo.spikes import *

__all__ = [
    "Conservation",
    "Entry",
    "black_box",
    "checkpoint",
    "checkpoint_chain",
    "conservation",
    "deep_shap",
    "deeplift",
    "epsilon_alpha2_beta1",
    "epsilon_alpha2_beta1_flat",
    "epsilon_gamma_box",
    "epsilon_plus",
    "epsilon_plus_flat",
    "fake_float8",
    "fake_quantise",
    "feedback",
    "find",
    "fixed_point",
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
    "lrp_wsquare",
    "lrp_zbox",
    "lrp_zplus",
    "lsq",
    "lsq_plus",
    "masked",
    "norm",
    "pact",
    "relevance",
    "rescale",
    "reverse",
    "root",
    "scale",
    "spsa",
    "stop",
    "surrogate",
    "target_prop",
]
__all__ += aggregate.__all__
__all__ += attention.__all__
__all__ += binary.__all__
__all__ += clipping.__all__
__all__ += codebooks.__all__
__all__ += dictionaries.__all__
__all__ += edges.__all__
__all__ += grids.__all__
__all__ += saliency.__all__
__all__ += samples.__all__
__all__ += simplex.__all__
__all__ += soft.__all__
__all__ += solvers.__all__
__all__ += spikes.__all__


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)
