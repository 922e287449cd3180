"""TF1's spelling over graphgrad: `import graphgrad.tf1 as tf` runs programs about gradients.

docs/tf1.md lists what is there, and what is different from TensorFlow, with reasons. What is called
`tf.name` stands in `__all__` of the module that makes it.
"""

import builtins as _builtins
import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any as _Any

from . import (
    app,
    contrib,
    distributions,
    errors,
    flags,
    gfile,
    graph_util,
    image,
    initializers,
    layers,
    linalg,
    logging,
    losses,
    math,
    nest,
    nn,
    python,
    random,
    signal,
    summary,
    test,
    train,
)
from .checks import *
from .control_flow import *
from .control_flow import tuple_ as tuple
from .create import *
from .default_graph import *
from .derived import register_derived as _register_derived
from .dtypes import *
from .dtypes import bool_ as bool
from .function import *
from .function import print_line as print
from .gradients import AggregationMethod, UnconnectedGradients, gradients
from .graph import *
from .graph_def import *
from .initializers import (
    constant_initializer,
    glorot_normal_initializer,
    glorot_uniform_initializer,
    identity_initializer,
    ones_initializer,
    orthogonal_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    truncated_normal_initializer,
    uniform_unit_scaling_initializer,
    variance_scaling_initializer,
    zeros_initializer,
)
from .installing import *
from .loops import *
from .misc import *
from .missing import missing as _missing
from .missing import say_what_is_missing as _say_what_is_missing
from .ops import array_grad as _array_grad
from .ops import array_types as _array_types
from .ops import linalg_grad as _linalg_grad
from .ops import linalg_types as _linalg_types
from .ops import math_grad as _math_grad
from .ops import math_types as _math_types
from .ops import nn_grad as _nn_grad
from .ops import nn_types as _nn_types
from .ops import random_types as _random_types
from .ops.array import *
from .ops.array import slice_ as slice
from .ops.image import extract_image_patches
from .ops.linalg import (
    cholesky,
    cholesky_solve,
    matrix_determinant,
    matrix_inverse,
    matrix_solve,
    matrix_triangular_solve,
    norm,
    qr,
    self_adjoint_eig,
    self_adjoint_eigvals,
    svd,
)
from .ops.math import *
from .ops.random import *
from .registry import *
from .second_order import hessians
from .session import *
from .shapes import *
from .signal import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
from .tensor_array import *
from .variable_scope import *
from .variables import *

VERSION = __version__ = "1.15.5"
float32_ref, float64_ref, int32_ref = float32._ref, float64._ref, int32._ref
int64_ref, bool_ref = int64._ref, bool._ref
spectral = signal
scalar_summary, histogram_summary = summary.scalar, summary.histogram
image_summary, merge_all_summaries = summary.image, summary.merge_all
merge_summary = summary.merge

_here = _sys.modules[__name__]
bitwise = _ModuleType(f"{__name__}.bitwise", "`tf.bitwise`.")
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"):
    setattr(bitwise, _name, getattr(math, _name))
compat = _ModuleType(f"{__name__}.compat", "`tf.compat`.")
compat.__dict__.update(
    v1=_here,
    as_bytes=lambda s: s.encode() if isinstance(s, str) else s,
    as_str=lambda s: s.decode() if isinstance(s, bytes) else s,
    __path__=[],
)
_sys.modules.update({m.__name__: m for m in (bitwise, compat)})
_sys.modules[f"{__name__}.compat.v1"] = _here
_sys.modules[f"{__name__}.nn.rnn_cell"] = nn.rnn_cell

_SPACES = [
    "app", "bitwise", "compat", "contrib", "distributions", "errors", "flags", "gfile",
    "graph_util", "image", "initializers", "layers", "linalg", "logging", "losses", "math", "nest",
    "nn", "python", "random", "signal", "spectral", "summary", "test", "train",
]  # fmt: skip
_NAMES = [n for n, v in vars(_here).items() if not (n[0] == "_" or isinstance(v, _ModuleType))]
_SHADOWING = [name for name in _NAMES if hasattr(_builtins, name)]
"""What is named like a builtin of Python's: `import *` leaves it out."""

__all__ = sorted(["__version__", *_SPACES, *(n for n in _NAMES if n not in _SHADOWING)])


def __dir__() -> list[str]:
    return sorted([*__all__, *_SHADOWING])


_register_derived()
_say_what_is_missing(__name__, [name for name in _SPACES if name != "compat"])


def __getattr__(name: str) -> _Any:
    """What TensorFlow has and this has not: it says so when it is used."""
    return _missing(name, offered=__all__)
