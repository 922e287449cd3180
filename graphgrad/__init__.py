"""graphgrad: a graph-mode compiler that rewrites gradient subgraphs.

Build a static dataflow graph, mark parts of it with `with override_gradient("name"):`,
differentiate it symbolically, and run forward and backward. A rule is applied exactly where it was
put, at every order and through every transform, or an error says why not.

What builds and marks a graph is imported here, the rest when a name of it is first used
(`_FIRST_USE`).
"""

import builtins as _builtins
import typing as _typing
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec

from .base.errors import (
    DeviceError,
    DTypeError,
    DuplicateGradientError,
    ExecutionError,
    ExportError,
    FileError,
    GradientError,
    GraphError,
    GraphFormatError,
    GraphGradError,
    MissingBackendError,
    PerformanceWarning,
    RegionError,
    ScopeError,
    ShapeError,
    StateError,
    SymbolicError,
    UnknownBackendError,
    UnknownGradientError,
)
from .base.first_tries import unknown_name as _unknown_name
from .base.kinds import DType as _DType
from .base.kinds import bfloat16 as _bfloat16
from .base.length import Inequality, Length
from .base.version import __version__ as __version__
from .ir.graph import Graph, assume, default_graph, name_scope, reset_default_graph
from .ir.node import Node, Region, Tensor
from .ir.op import Op, op_types
from .ir.program import Program
from .ir.state import State
from .ir.variables import Variables
from .ops.arrays.at import At, AtIndex, at, dynamic_slice, dynamic_update_slice, put_along_axis
from .ops.arrays.nonzero import (
    argwhere,
    compress,
    extract,
    flatnonzero,
    nonzero,
    repeat,
    trim_zeros,
)
from .ops.arrays.taking import take
from .ops.base import DEFAULT, NO_GRAD, TensorLike, cast, constant
from .ops.contract.einsum import einsum
from .ops.contract.products import (
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
from .ops.create.creation import (
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
from .ops.create.diagonal import diagonal, trace
from .ops.dtypes import (
    FloatInfo,
    IntegerInfo,
    astype,
    broadcast_shapes,
    can_cast,
    complex64,
    complex128,
    e,
    finfo,
    float16,
    float32,
    float64,
    from_dlpack,
    iinfo,
    inf,
    int8,
    int16,
    int32,
    int64,
    isdtype,
    nan,
    newaxis,
    pi,
    promote_types,
    result_type,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .ops.dtypes import __array_namespace_info__ as __array_namespace_info__
from .ops.dtypes import bool as bool
from .ops.elementwise.arithmetic import (
    add,
    divide,
    multiply,
    negative,
    positive,
    subtract,
    true_divide,
)
from .ops.elementwise.bounds import clip, fmax, fmin, maximum, minimum, nan_to_num
from .ops.elementwise.complex_parts import conj, conjugate, imag, real
from .ops.elementwise.exponential import (
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
from .ops.elementwise.logic import (
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
from .ops.elementwise.magnitudes import abs as abs
from .ops.elementwise.magnitudes import absolute, copysign, fabs, heaviside, hypot, sign
from .ops.elementwise.powers import float_power, power, reciprocal, square
from .ops.elementwise.powers import pow as pow
from .ops.elementwise.remainders import divmod as divmod
from .ops.elementwise.remainders import floor_divide, fmod, mod, remainder
from .ops.elementwise.rounding import ceil, floor, nextafter, rint, trunc
from .ops.elementwise.rounding import round as round
from .ops.protocols import methods as _methods
from .ops.reduce.cumulative import (
    cumprod,
    cumsum,
    cumulative_logsumexp,
    cumulative_prod,
    cumulative_sum,
)
from .ops.reduce.reductions import all as all
from .ops.reduce.reductions import any as any
from .ops.reduce.reductions import (
    argmax,
    argmin,
    count_nonzero,
    logsumexp,
    mean,
    prod,
    std,
    var,
)
from .ops.reduce.reductions import max as max
from .ops.reduce.reductions import min as min
from .ops.reduce.reductions import sum as sum
from .ops.reduce.sorting import (
    argpartition,
    argsort,
    partition,
    sort,
    sort_complex,
    take_along_axis,
    topk,
)
from .ops.shape.indexing import add_at, getitem, scatter_add
from .ops.shape.joining import concat, concatenate, split, stack, unstack
from .ops.shape.padding import flip, roll, tile
from .ops.shape.reshaping import (
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
from .ops.sources import (
    assign,
    identity,
    placeholder,
    stop_gradient,
    undefined_gradient,
    variable,
    zero_gradient,
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

if _typing.TYPE_CHECKING:
    from . import (
        debug,
        distributed,
        extend,
        fft,
        initializers,
        interop,
        linalg,
        nn,
        onnx,
        optimizers,
        random,
        rules,
        special,
        testing,
        training,
    )
    from .attribution.attribute import Attribution, attribute
    from .checks.explain import Explanation, PathOf, SiteUse, explain
    from .checks.gradient import check_gradient
    from .checks.lint import lint
    from .checks.report import Finding, Report
    from .compiled import CompiledFunction, evaluate
    from .compiled import compile as compile
    from .differentiate.custom import custom_gradient, grad_pass_through
    from .differentiate.derivatives import hessian, hvp, jacobian, value_and_grad, vjp
    from .differentiate.forward.jvp import jvp
    from .differentiate.gradients import gradients
    from .differentiate.site import Site, is_zero
    from .differentiate.travel.importing import import_graph
    from .differentiate.vmap.along import apply_along_axis
    from .differentiate.vmap.vectorize import vectorize
    from .differentiate.vmap.vmap import vmap
    from .export.numpy_file import export_numpy
    from .files.checkpoints import Checkpoint, Checkpoints
    from .files.entries import EntryPoint
    from .files.loading import GraphFile, load
    from .files.saving import save
    from .files.weights import export_weights, import_weights
    from .functions import Function, function
    from .healing.heal import Healed, HealedSite, heal
    from .inspect.diff import Difference, graph_diff
    from .inspect.passes import PassRecord
    from .inspect.scene.limits import Limits
    from .inspect.scene.overlay import Overlay
    from .inspect.scene.profile import LoopTime, Profile, Share
    from .inspect.summary import Summary, summary
    from .inspect.write.dot import to_dot, write_dot
    from .inspect.write.html import to_html, write_html
    from .inspect.write.mermaid import to_mermaid
    from .inspect.write.svg import RenderError, to_pdf, to_png, to_svg, write_picture
    from .inspect.write.tensorboard import TensorBoardError, write_tensorboard
    from .inspect.write.text import graph_text, print_graph
    from .ops.arrays.bits import packbits, unpackbits
    from .ops.arrays.borders import pad
    from .ops.arrays.cases import apply_over_axes, choose, piecewise, where_first
    from .ops.arrays.closeness import allclose, array_equal, array_equiv, isclose
    from .ops.arrays.differences import diff
    from .ops.arrays.grids import (
        diag_indices,
        diag_indices_from,
        fromfunction,
        geomspace,
        indices,
        ix_,
        logspace,
        mask_indices,
        ravel_multi_index,
        tri,
        tril_indices,
        tril_indices_from,
        triu_indices,
        triu_indices_from,
        unravel_index,
        vander,
    )
    from .ops.arrays.histograms import (
        bincount,
        histogram,
        histogram2d,
        histogram_bin_edges,
        histogramdd,
    )
    from .ops.arrays.nan import (
        nanargmax,
        nanargmin,
        nancumprod,
        nancumsum,
        nanmax,
        nanmean,
        nanmin,
        nanprod,
        nanstd,
        nansum,
        nanvar,
    )
    from .ops.arrays.rearranging import diagflat, fliplr, flipud, kron, rollaxis, rot90
    from .ops.arrays.searching import isin, lexsort, searchsorted
    from .ops.arrays.sets import (
        UniqueAllResult,
        UniqueCountsResult,
        UniqueInverseResult,
        intersect1d,
        setdiff1d,
        setxor1d,
        union1d,
        unique,
        unique_all,
        unique_counts,
        unique_inverse,
        unique_values,
    )
    from .ops.arrays.stacking import (
        append,
        array_split,
        atleast_1d,
        atleast_2d,
        atleast_3d,
        block,
        block_diag,
        column_stack,
        delete,
        dsplit,
        dstack,
        hsplit,
        hstack,
        insert,
        resize,
        vsplit,
        vstack,
    )
    from .ops.arrays.statistics import (
        average,
        corrcoef,
        cov,
        median,
        nanmedian,
        nanpercentile,
        nanquantile,
        percentile,
        ptp,
        quantile,
    )
    from .ops.contract.vectors import cross
    from .ops.control import associative_scan, cond, fori_loop, scan, switch, while_loop
    from .ops.control import map as map
    from .ops.elementwise.angles import angle, deg2rad, degrees, rad2deg, radians
    from .ops.elementwise.number_parts import bitwise_count, frexp, gcd, lcm, ldexp, modf, spacing
    from .ops.elementwise.sinc import sinc
    from .ops.elementwise.trigonometry import (
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
    from .ops.nn.classes import one_hot
    from .ops.protocols.aliases import (
        amax,
        amin,
        around,
        array,
        bitwise_not,
        copy,
        invert,
        left_shift,
        right_shift,
    )
    from .ops.protocols.queries import (
        iscomplex,
        iscomplexobj,
        isneginf,
        isposinf,
        isreal,
        isrealobj,
        ndim,
        shape,
        size,
    )
    from .ops.python_function import py_function, register_function
    from .ops.reduce.running_extrema import cummax, cummin
    from .ops.signal.interpolation import digitize, interp
    from .ops.signal.polynomials import (
        poly,
        polyadd,
        polyder,
        polydiv,
        polyfit,
        polyint,
        polymul,
        polysub,
        polyval,
        roots,
    )
    from .ops.signal.signal import convolve, correlate, ediff1d, gradient, trapezoid, unwrap
    from .ops.signal.window_functions import bartlett, blackman, hamming, hanning, kaiser
    from .ops.special.bessel import i0
    from .session import Session

__array_api_version__ = "2024.12"

# fmt: off
__all__ = [  # noqa: RUF022 (by what it is for)
    # modules
    "debug", "distributed", "extend", "fft", "initializers", "interop", "linalg", "nn", "onnx",
    "optimizers", "random", "rules", "special", "testing", "training",
    # graphs
    "Graph", "Inequality", "Length", "Node", "Op", "Program", "Region", "State", "Tensor",
    "TensorLike", "Variables", "assume", "default_graph", "import_graph", "name_scope", "op_types",
    "reset_default_graph",
    # overrides
    "DEFAULT", "NO_GRAD", "Contract", "Group", "RegisterGradient", "Rule", "Selection", "Site",
    "custom_gradient", "get_gradient", "grad_pass_through", "gradient_override_map",
    "is_registered", "is_zero", "override", "override_gradient", "register_gradient",
    "registered_gradients", "scaled", "select", "stop_gradient", "sum_to", "surrogate_of",
    "temporary_gradient", "undefined_gradient", "unregister_gradient", "zero_gradient",
    # derivatives and transforms
    "gradients", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vectorize", "vjp", "vmap",
    "apply_along_axis",
    # running
    "CompiledFunction", "Function", "Session", "evaluate", "function",
    # files
    "Checkpoint", "Checkpoints", "EntryPoint", "GraphFile", "load", "register_function", "save",
    "export_numpy", "export_weights", "import_weights",
    # checking
    "Explanation", "Finding", "PathOf", "Report", "SiteUse", "check_gradient", "explain", "lint",
    # healing
    "Healed", "HealedSite", "heal",
    # attributing
    "Attribution", "attribute",
    # looking
    "Difference", "Limits", "LoopTime", "Overlay", "PassRecord", "Profile", "Share", "Summary",
    "graph_diff", "graph_text", "print_graph", "summary", "to_dot", "to_html", "to_mermaid",
    "to_pdf", "to_png", "to_svg", "write_dot", "write_html", "write_picture", "write_tensorboard",
    # errors
    "DTypeError", "DeviceError", "DuplicateGradientError", "ExecutionError", "ExportError",
    "FileError", "GradientError", "GraphError", "GraphFormatError", "GraphGradError",
    "MissingBackendError", "PerformanceWarning", "RegionError", "RenderError", "ScopeError",
    "ShapeError", "StateError", "SymbolicError", "TensorBoardError", "UnknownBackendError",
    "UnknownGradientError",
    # dtypes and constants
    "FloatInfo", "IntegerInfo", "astype", "broadcast_shapes", "can_cast", "complex64",
    "complex128", "e", "finfo", "float16", "float32", "float64", "iinfo", "inf", "int8", "int16",
    "int32", "int64", "isdtype", "nan", "newaxis", "pi", "promote_types", "result_type", "uint8",
    "uint16", "uint32", "uint64",
    # tensors without inputs, and state
    "arange", "array", "asarray", "assign", "bartlett", "blackman", "constant", "copy", "empty",
    "empty_like", "eye", "from_dlpack", "full", "full_like", "hamming", "hanning", "kaiser",
    "linspace", "meshgrid", "ones", "ones_like", "placeholder", "variable", "zeros", "zeros_like",
    # element by element
    "absolute", "acos", "acosh", "add", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "around", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "cast", "cbrt", "ceil", "clip", "conj", "conjugate",
    "copysign", "cos", "cosh", "deg2rad", "degrees", "divide", "equal", "exp", "exp2", "expm1",
    "fabs", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "gcd",
    "greater", "greater_equal", "heaviside", "hypot", "i0", "identity", "imag", "invert", "isclose",
    "isfinite", "isinf", "isnan", "lcm", "ldexp", "left_shift", "less", "less_equal", "log",
    "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or",
    "logical_xor", "maximum", "minimum", "mod", "modf", "multiply", "nan_to_num", "negative",
    "nextafter", "not_equal", "packbits", "positive", "power", "rad2deg", "radians", "real",
    "reciprocal", "remainder", "right_shift", "rint", "sign", "signbit", "sin", "sinc", "sinh",
    "spacing", "sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc", "unpackbits",
    "where",
    # reductions, statistics, signals and sorting
    "allclose", "amax", "amin", "argmax", "argmin", "argpartition", "argsort", "array_equal",
    "array_equiv", "average", "bincount", "convolve", "corrcoef", "correlate", "count_nonzero",
    "cov", "cummax", "cummin", "cumprod", "cumsum", "cumulative_logsumexp", "cumulative_prod",
    "cumulative_sum", "diff", "digitize", "ediff1d", "gradient", "histogram", "histogram2d",
    "histogram_bin_edges", "histogramdd", "interp", "logsumexp", "mean", "median", "nanargmax",
    "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
    "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "partition",
    "percentile", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul",
    "polysub", "polyval", "prod", "ptp", "quantile", "roots", "sort", "sort_complex", "std", "topk",
    "trapezoid", "unwrap", "var",
    # places and sets
    "UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult", "argwhere", "compress",
    "extract", "flatnonzero", "intersect1d", "isin", "lexsort", "nonzero", "searchsorted",
    "setdiff1d", "setxor1d", "trim_zeros", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
    # products
    "cross", "dot", "einsum", "inner", "matmul", "matvec", "multi_dot", "outer", "tensordot",
    "vdot", "vecdot", "vecmat",
    # shapes and indices
    "At", "AtIndex", "add_at", "append", "apply_over_axes", "array_split", "at", "atleast_1d",
    "atleast_2d", "atleast_3d", "block", "block_diag", "broadcast_arrays", "broadcast_like",
    "broadcast_to", "choose", "column_stack", "concat", "concatenate", "delete", "diag",
    "diag_indices", "diag_indices_from", "diagflat", "diagonal", "dsplit", "dstack",
    "dynamic_slice", "dynamic_update_slice", "expand_dims", "flatten", "flip", "fliplr", "flipud",
    "fromfunction", "geomspace", "getitem", "hsplit", "hstack", "indices", "insert", "iscomplex",
    "iscomplexobj", "isneginf", "isposinf", "isreal", "isrealobj", "ix_", "kron", "logspace",
    "mask_indices", "matrix_transpose", "moveaxis", "ndim", "one_hot", "pad", "permute_dims",
    "piecewise", "put_along_axis", "ravel", "ravel_multi_index", "repeat", "reshape",
    "reshape_like", "resize", "roll", "rollaxis", "rot90", "scatter_add", "shape", "size", "split",
    "squeeze", "stack", "swapaxes", "take", "take_along_axis", "tile", "trace", "transpose", "tri",
    "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices", "triu_indices_from",
    "unravel_index", "unstack", "vander", "vsplit", "vstack", "where_first",
    # control flow, and functions from outside
    "associative_scan", "cond", "fori_loop", "py_function", "scan", "switch", "while_loop",
]
# fmt: on

_FIRST_USE = {
    "attribution.attribute": "Attribution attribute",
    "checks.explain": "Explanation PathOf SiteUse explain",
    "checks.gradient": "check_gradient",
    "checks.lint": "lint",
    "checks.report": "Finding Report",
    "compiled": "CompiledFunction compile evaluate",
    "differentiate.custom": "custom_gradient grad_pass_through",
    "differentiate.derivatives": "hessian hvp jacobian value_and_grad vjp",
    "differentiate.forward.jvp": "jvp",
    "differentiate.gradients": "gradients",
    "differentiate.site": "Site is_zero",
    "differentiate.travel.importing": "import_graph",
    "differentiate.vmap.along": "apply_along_axis",
    "differentiate.vmap.vectorize": "vectorize",
    "differentiate.vmap.vmap": "vmap",
    "export.numpy_file": "export_numpy",
    "files.checkpoints": "Checkpoint Checkpoints",
    "files.entries": "EntryPoint",
    "files.loading": "GraphFile load",
    "files.saving": "save",
    "files.weights": "export_weights import_weights",
    "functions": "Function function",
    "healing.heal": "Healed HealedSite heal",
    "inspect.diff": "Difference graph_diff",
    "inspect.write.dot": "to_dot write_dot",
    "inspect.write.html": "to_html write_html",
    "inspect.write.mermaid": "to_mermaid",
    "inspect.scene.overlay": "Overlay",
    "inspect.passes": "PassRecord",
    "inspect.scene.limits": "Limits",
    "inspect.scene.profile": "LoopTime Profile Share",
    "inspect.summary": "Summary summary",
    "inspect.write.svg": "RenderError to_pdf to_png to_svg write_picture",
    "inspect.write.tensorboard": "TensorBoardError write_tensorboard",
    "inspect.write.text": "graph_text print_graph",
    "ops.protocols.aliases": """
        amax amin around array bitwise_not copy invert left_shift right_shift
    """,
    "ops.elementwise.angles": "angle deg2rad degrees rad2deg radians",
    "ops.arrays.bits": "packbits unpackbits",
    "ops.arrays.borders": "pad",
    "ops.arrays.cases": "apply_over_axes choose piecewise where_first",
    "ops.arrays.closeness": "allclose array_equal array_equiv isclose",
    "ops.control": "associative_scan cond fori_loop map scan switch while_loop",
    "ops.arrays.differences": "diff",
    "ops.arrays.grids": """
        diag_indices diag_indices_from fromfunction geomspace indices ix_ logspace
        mask_indices ravel_multi_index tri tril_indices tril_indices_from triu_indices
        triu_indices_from unravel_index vander
    """,
    "ops.arrays.histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "ops.signal.interpolation": "digitize interp",
    "ops.arrays.nan": """
        nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum
        nanvar
    """,
    "ops.nn.classes": "one_hot",
    "ops.elementwise.number_parts": "bitwise_count frexp gcd lcm ldexp modf spacing",
    "ops.signal.polynomials": """
        poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots
    """,
    "ops.python_function": "py_function register_function",
    "ops.protocols.queries": """
        iscomplex iscomplexobj isneginf isposinf isreal isrealobj ndim shape size
    """,
    "ops.arrays.rearranging": "diagflat fliplr flipud kron rollaxis rot90",
    "ops.reduce.running_extrema": "cummax cummin",
    "ops.arrays.searching": "isin lexsort searchsorted",
    "ops.arrays.sets": """
        UniqueAllResult UniqueCountsResult UniqueInverseResult intersect1d setdiff1d setxor1d
        union1d unique unique_all unique_counts unique_inverse unique_values
    """,
    "ops.signal.signal": "convolve correlate ediff1d gradient trapezoid unwrap",
    "ops.elementwise.sinc": "sinc",
    "ops.special.bessel": "i0",
    "ops.arrays.stacking": """
        append array_split atleast_1d atleast_2d atleast_3d block block_diag column_stack
        delete dsplit dstack hsplit hstack insert resize vsplit vstack
    """,
    "ops.arrays.statistics": """
        average corrcoef cov median nanmedian nanpercentile nanquantile percentile ptp
        quantile
    """,
    "ops.elementwise.trigonometry": """
        acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2
        atanh cos cosh sin sinh tan tanh
    """,
    "ops.contract.vectors": "cross",
    "ops.signal.window_functions": "bartlett blackman hamming hanning kaiser",
    "session": "Session",
}
"""Modules that are imported when a name of theirs is first used: module -> its names here."""

_HOMES = {name: module for module, names in _FIRST_USE.items() for name in names.split()}
_SHADOWING = [n for n in vars(_builtins) if n[0] != "_" and (n in globals() or n in _HOMES)]
"""What is named like a builtin (`abs`, `compile`, `max`, ...): `import *` leaves it out."""


def __dir__() -> list[str]:
    return sorted([*__all__, *_SHADOWING])


bfloat16: _DType
"""A dtype that is there with the package ml_dtypes: the extra bfloat16."""

if not _typing.TYPE_CHECKING:

    def __getattr__(name):
        """A name of `_FIRST_USE`, a module, or bfloat16: DTypeError without ml_dtypes."""
        if name == "bfloat16":
            return _bfloat16()
        if name in _HOMES:
            value = globals()[name] = getattr(_module(_HOMES[name]), name)
            return value
        if not name.startswith("_") and name.isidentifier() and _find_spec(f"{__name__}.{name}"):
            return _module(name)
        raise _unknown_name(__name__, name)

    def _module(name):
        return _import_module(f"{__name__}.{name}")
