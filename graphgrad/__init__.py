"""graphgrad: a graph-mode compiler that rewrites gradient subgraphs.

Build a static dataflow graph, mark parts of it with `with override_gradient("name"):`,
differentiate it symbolically, and run forward and backward. A rule is applied exactly where it was
put, at every order and through every transform, or an error says why not.
"""

import builtins as _builtins

from . import debug, extend, initializers, linalg, nn, optimizers, random, rules, special
from . import notebook as _notebook
from .checks.explain import Explanation, PathOf, SiteUse, explain
from .checks.gradient import check_gradient
from .checks.lint import lint
from .checks.report import Finding, Report
from .compiled import CompiledFunction, evaluate
from .compiled import compile as compile
from .differentiate.control import choice as _choice
from .differentiate.control import loops as _loops
from .differentiate.custom import custom_gradient, grad_pass_through
from .differentiate.derivatives import hessian, hvp, jacobian, value_and_grad, vjp
from .differentiate.forward.jvp import jvp
from .differentiate.gradients import gradients
from .differentiate.site import Site, is_zero
from .differentiate.travel import pickles as _pickles
from .differentiate.travel.importing import import_graph
from .differentiate.vmap.vmap import vmap
from .execute.backend import MissingBackendError, UnknownBackendError
from .functions import Function, function
from .inspect.diff import Difference, graph_diff
from .inspect.dot import to_dot, write_dot
from .inspect.html import to_html, write_html
from .inspect.mermaid import to_mermaid
from .inspect.overlay import Overlay
from .inspect.passes import PassRecord
from .inspect.profile import Profile, Share
from .inspect.summary import Summary, summary
from .inspect.svg import RenderError, to_pdf, to_png, to_svg, write_picture
from .inspect.tensorboard import TensorBoardError, write_tensorboard
from .inspect.text import graph_text, print_graph
from .ir import flat as _flat
from .ir.errors import (
    DTypeError,
    DuplicateGradientError,
    ExecutionError,
    GradientError,
    GraphError,
    GraphFormatError,
    GraphGradError,
    PerformanceWarning,
    RegionError,
    ScopeError,
    ShapeError,
    StateError,
    SymbolicError,
    UnknownGradientError,
)
from .ir.graph import Graph, default_graph, name_scope, reset_default_graph
from .ir.node import Node, Region, Tensor
from .ir.op import Op, op_types
from .ir.program import Program
from .ir.state import State
from .ops import methods as _methods
from .ops.arithmetic import abs as abs
from .ops.arithmetic import (
    absolute,
    add,
    ceil,
    clip,
    conj,
    conjugate,
    copysign,
    deg2rad,
    degrees,
    divide,
    fabs,
    float_power,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    heaviside,
    hypot,
    imag,
    isclose,
    maximum,
    minimum,
    mod,
    multiply,
    nan_to_num,
    negative,
    nextafter,
    positive,
    power,
    rad2deg,
    radians,
    real,
    reciprocal,
    remainder,
    rint,
    sign,
    square,
    subtract,
    true_divide,
    trunc,
)
from .ops.arithmetic import divmod as divmod
from .ops.arithmetic import pow as pow
from .ops.arithmetic import round as round
from .ops.base import DEFAULT, NO_GRAD, TensorLike, cast, constant
from .ops.control import cond, fori_loop, scan, switch, while_loop
from .ops.control import map as map
from .ops.creation import (
    arange,
    asarray,
    diag,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from .ops.cumulative import cumprod, cumsum, cumulative_prod, cumulative_sum
from .ops.diagonal import diagonal, trace
from .ops.differences import diff
from .ops.einsum import einsum
from .ops.exponential import (
    cbrt,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    sqrt,
)
from .ops.indexing import add_at, getitem, scatter_add, take
from .ops.joining import concat, concatenate, split, stack, unstack
from .ops.logic import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    signbit,
    where,
)
from .ops.nn.classes import one_hot
from .ops.padding import flip, pad, repeat, roll, tile
from .ops.products import (
    dot,
    inner,
    matmul,
    matvec,
    multi_dot,
    outer,
    tensordot,
    vdot,
    vecdot,
    vecmat,
)
from .ops.python_function import py_function
from .ops.reductions import all as all
from .ops.reductions import any as any
from .ops.reductions import (
    argmax,
    argmin,
    count_nonzero,
    logsumexp,
    mean,
    nanmean,
    nansum,
    prod,
    std,
    var,
)
from .ops.reductions import max as max
from .ops.reductions import min as min
from .ops.reductions import sum as sum
from .ops.shaping import (
    broadcast_arrays,
    broadcast_like,
    broadcast_to,
    expand_dims,
    flatten,
    matrix_transpose,
    moveaxis,
    permute_dims,
    ravel,
    reshape,
    reshape_like,
    squeeze,
    sum_to,
    swapaxes,
    transpose,
)
from .ops.sorting import argsort, sort, take_along_axis, topk
from .ops.sources import (
    assign,
    identity,
    placeholder,
    stop_gradient,
    undefined_gradient,
    variable,
    zero_gradient,
)
from .ops.trigonometry import (
    acos,
    acosh,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)
from .regions import marks as _marks
from .regions.contracts import Contract, scaled, surrogate_of
from .regions.rules import (
    RegisterGradient,
    Rule,
    get_gradient,
    is_registered,
    register_gradient,
    registered_gradients,
    temporary_gradient,
    unregister_gradient,
)
from .regions.scopes import gradient_override_map, override, override_gradient
from .regions.select import Group, Selection, select
from .session import Session

__version__ = "0.1.0"

# fmt: off
__all__ = [  # noqa: RUF022 (by what it is for)
    # modules
    "debug", "extend", "initializers", "linalg", "nn", "optimizers", "random", "rules", "special",
    # graphs
    "Graph", "Node", "Op", "Program", "Region", "State", "Tensor", "TensorLike", "default_graph",
    "import_graph", "name_scope", "op_types", "reset_default_graph",
    # overrides
    "DEFAULT", "NO_GRAD", "Contract", "Group", "RegisterGradient", "Rule", "Selection", "Site",
    "custom_gradient", "get_gradient", "grad_pass_through", "gradient_override_map",
    "is_registered", "is_zero", "override", "override_gradient", "register_gradient",
    "registered_gradients", "scaled", "select", "stop_gradient", "sum_to", "surrogate_of",
    "temporary_gradient", "undefined_gradient", "unregister_gradient", "zero_gradient",
    # derivatives and transforms
    "gradients", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp", "vmap",
    # running
    "CompiledFunction", "Function", "Session", "evaluate", "function",
    # checking
    "Explanation", "Finding", "PathOf", "Report", "SiteUse", "check_gradient", "explain", "lint",
    # looking
    "Difference", "Overlay", "PassRecord", "Profile", "Share", "Summary", "graph_diff",
    "graph_text", "print_graph", "summary", "to_dot", "to_html", "to_mermaid", "to_pdf", "to_png",
    "to_svg", "write_dot", "write_html", "write_picture", "write_tensorboard",
    # errors
    "DTypeError", "DuplicateGradientError", "ExecutionError", "GradientError", "GraphError",
    "GraphFormatError", "GraphGradError", "MissingBackendError", "PerformanceWarning",
    "RegionError", "RenderError", "ScopeError", "ShapeError", "StateError", "SymbolicError",
    "TensorBoardError", "UnknownBackendError", "UnknownGradientError",
    # tensors without inputs, and state
    "arange", "asarray", "assign", "constant", "empty", "empty_like", "eye", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "placeholder", "variable", "zeros", "zeros_like",
    # element by element
    "absolute", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "cast", "cbrt", "ceil", "clip", "conj", "conjugate", "copysign", "cos", "cosh", "deg2rad",
    "degrees", "divide", "equal", "exp", "exp2", "expm1", "fabs", "float_power", "floor",
    "floor_divide", "fmax", "fmin", "fmod", "greater", "greater_equal", "heaviside", "hypot",
    "identity", "imag", "isclose", "isfinite", "isinf", "isnan", "less", "less_equal", "log",
    "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "nan_to_num",
    "negative", "nextafter", "not_equal", "positive", "power", "rad2deg", "radians", "real",
    "reciprocal", "remainder", "rint", "sign", "signbit", "sin", "sinh", "sqrt", "square",
    "subtract", "tan", "tanh", "true_divide", "trunc", "where",
    # reductions and sorting
    "argmax", "argmin", "argsort", "count_nonzero", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "diff", "logsumexp", "mean", "nanmean", "nansum", "prod", "sort", "std",
    "topk", "var",
    # products
    "dot", "einsum", "inner", "matmul", "matvec", "multi_dot", "outer", "tensordot", "vdot",
    "vecdot", "vecmat",
    # shapes and indices
    "add_at", "broadcast_arrays", "broadcast_like", "broadcast_to", "concat", "concatenate",
    "diag", "diagonal", "expand_dims", "flatten", "flip", "getitem", "matrix_transpose",
    "moveaxis", "one_hot", "pad", "permute_dims", "ravel", "repeat", "reshape", "reshape_like",
    "roll", "scatter_add", "split", "squeeze", "stack", "swapaxes", "take", "take_along_axis",
    "tile", "trace", "transpose", "tril", "triu", "unstack",
    # control flow, and functions from outside
    "cond", "fori_loop", "py_function", "scan", "switch", "while_loop",
]
# fmt: on

_SHADOWING = [name for name in vars(_builtins) if name[0] != "_" and name in globals()]
"""What is named like a builtin (`abs`, `compile`, `max`, ...): `import *` leaves it out."""


def __dir__() -> list[str]:
    return sorted([*__all__, *_SHADOWING])
