"""The standard library of named overrides: `gg.override_gradient(gg.rules.ste(window=1.0))`.

Most functions return a rule, to be put wherever a rule can be; some build tensors that have one.
`gg.rules.library()` lists them. None is registered under a global name.
"""

from .alignment import feedback as feedback
from .black_box import black_box as black_box
from .black_box import spsa as spsa
from .clipping import clip_norm as clip_norm
from .clipping import clip_value as clip_value
from .clipping import nan_guard as nan_guard
from .deeplift import deeplift as deeplift
from .deeplift import rescale as rescale
from .implicit import fixed_point as fixed_point
from .implicit import linear_solve as linear_solve
from .implicit import root as root
from .library import Entry as Entry
from .library import library as library
from .quantisation import fake_quantise as fake_quantise
from .quantisation import lsq as lsq
from .quantisation import pact as pact
from .recompute import checkpoint as checkpoint
from .recompute import checkpoint_chain as checkpoint_chain
from .relevance import Conservation as Conservation
from .relevance import conservation as conservation
from .relevance import lrp_epsilon as lrp_epsilon
from .relevance import lrp_gamma as lrp_gamma
from .relevance import lrp_pass as lrp_pass
from .relevance import lrp_product as lrp_product
from .relevance import lrp_zbox as lrp_zbox
from .relevance import relevance as relevance
from .saliency import deconvnet as deconvnet
from .saliency import guided as guided
from .saliency import redirected as redirected
from .scaling import reverse as reverse
from .scaling import scale as scale
from .scaling import stop as stop
from .stable import log1pexp as log1pexp
from .stable import logsumexp as logsumexp
from .stable import masked as masked
from .stable import norm as norm
from .straight_through import ste as ste
from .surrogates import atan as atan
from .surrogates import fast_sigmoid as fast_sigmoid
from .surrogates import surrogate as surrogate
from .surrogates import triangle as triangle
