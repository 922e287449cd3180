"""TF1's spelling over graphgrad: `import graphgrad.tf1 as tf` runs programs about gradients.

docs/tf1.md lists what is there, and what is different from TensorFlow, with reasons.
"""

from __future__ import annotations

import sys as _sys
from types import SimpleNamespace as _SimpleNamespace
from typing import Any as _Any

from . import (
    app,
    contrib,
    distributions,
    errors,
    flags,
    image,
    initializers,
    layers,
    linalg,
    logging,
    losses,
    math,
    nest,
    nn,
    random,
    summary,
    test,
    train,
)
from . import python as python
from .checks import (
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_integer,
    assert_less,
    assert_less_equal,
    assert_non_negative,
    assert_none_equal,
    assert_positive,
    assert_rank,
    assert_rank_at_least,
    assert_scalar,
    assert_type,
    fake_quant_with_min_max_args,
    fake_quant_with_min_max_vars,
)
from .control_flow import (
    case,
    cond,
    control_dependencies,
    group,
    no_op,
    switch_case,
)
from .control_flow import (
    tuple_ as tuple,
)
from .create import (
    constant,
    convert_to_tensor,
    convert_to_tensor_or_indexed_slices,
    name_scope,
    register_tensor_conversion_function,
)
from .derived import register_derived as _register_derived
from .dtypes import (
    DType,
    as_dtype,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .dtypes import (
    bool_ as bool,
)
from .function import (
    Assert,
    Print,
    custom_gradient,
    grad_pass_through,
    numpy_function,
    py_func,
    recompute_grad,
)
from .gradients import (
    AggregationMethod,
    UnconnectedGradients,
    gradients,
)
from .graph import (
    Graph,
    GraphKeys,
    Operation,
    Tensor,
    get_default_graph,
    reset_default_graph,
)
from .graph_def import (
    GraphDef,
    import_graph_def,
)
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
from .loops import (
    foldl,
    foldr,
    map_fn,
    scan,
    while_loop,
)
from .misc import (
    ConfigProto,
    Event,
    GPUOptions,
    GraphOptions,
    HistogramProto,
    IndexedSlices,
    OptimizerOptions,
    RunMetadata,
    RunOptions,
    SparseTensor,
    Summary,
    colocate_with,
    container,
    device,
    get_static_value,
)
from .missing import missing as _missing
from .ops import array_grad as _array_grad
from .ops import array_types as _array_types
from .ops import linalg_types as _linalg_types
from .ops import math_grad as _math_grad
from .ops import math_types as _math_types
from .ops import nn_grad as _nn_grad
from .ops import nn_types as _nn_types
from .ops import random_types as _random_types
from .ops.array import (
    argsort,
    batch_gather,
    boolean_mask,
    broadcast_dynamic_shape,
    broadcast_static_shape,
    broadcast_to,
    check_numerics,
    concat,
    depth_to_space,
    diag,
    diag_part,
    dynamic_partition,
    dynamic_stitch,
    ensure_shape,
    expand_dims,
    eye,
    fill,
    gather,
    gather_nd,
    identity,
    identity_n,
    invert_permutation,
    matrix_band_part,
    matrix_diag,
    matrix_diag_part,
    matrix_set_diag,
    matrix_transpose,
    meshgrid,
    newaxis,
    one_hot,
    ones,
    ones_like,
    pack,
    pad,
    parallel_stack,
    placeholder,
    placeholder_with_default,
    prevent_gradient,
    rank,
    repeat,
    reshape,
    reverse,
    reverse_sequence,
    reverse_v2,
    roll,
    scatter_nd,
    select,
    sequence_mask,
    shape,
    shape_n,
    size,
    sort,
    space_to_depth,
    split,
    squeeze,
    stack,
    stop_gradient,
    strided_slice,
    tensor_scatter_add,
    tensor_scatter_update,
    tile,
    trace,
    transpose,
    unique,
    unique_with_counts,
    unpack,
    unstack,
    where,
    where_v2,
    zeros,
    zeros_like,
)
from .ops.array import slice_ as slice
from .ops.image import (
    extract_image_patches,
)
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
from .ops.math import (
    abs,
    accumulate_n,
    acos,
    acosh,
    add,
    add_n,
    arg_max,
    arg_min,
    argmax,
    argmin,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    batch_matmul,
    bincount,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    cast,
    ceil,
    clip_by_average_norm,
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
    complex,
    conj,
    cos,
    cosh,
    count_nonzero,
    cross,
    cumprod,
    cumsum,
    digamma,
    div,
    div_no_nan,
    divide,
    einsum,
    equal,
    erf,
    erfc,
    erfinv,
    exp,
    expm1,
    floor,
    floor_div,
    floordiv,
    floormod,
    global_norm,
    greater,
    greater_equal,
    igamma,
    igammac,
    imag,
    inv,
    invert,
    is_finite,
    is_inf,
    is_nan,
    lbeta,
    less,
    less_equal,
    lgamma,
    lin_space,
    linspace,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    matmul,
    maximum,
    minimum,
    mod,
    mul,
    multiply,
    ndtri,
    neg,
    negative,
    not_equal,
    polygamma,
    pow,
    range,
    real,
    realdiv,
    reciprocal,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_std,
    reduce_sum,
    reduce_variance,
    rint,
    round,
    rsqrt,
    saturate_cast,
    segment_mean,
    segment_sum,
    sigmoid,
    sign,
    sin,
    sinh,
    sparse_matmul,
    sqrt,
    square,
    squared_difference,
    sub,
    subtract,
    tan,
    tanh,
    tensordot,
    to_bfloat16,
    to_double,
    to_float,
    to_int32,
    to_int64,
    truediv,
    truncatediv,
    truncatemod,
    unsorted_segment_sum,
    xdivy,
    xlogy,
    zeta,
)
from .ops.random import (
    multinomial,
    random_gamma,
    random_normal,
    random_poisson,
    random_shuffle,
    random_uniform,
    set_random_seed,
    truncated_normal,
)
from .registry import (
    NoGradient,
    NotDifferentiable,
    RegisterGradient,
)
from .second_order import (
    hessians,
)
from .session import (
    InteractiveSession,
    Session,
    get_default_session,
)
from .shapes import (
    Dimension,
    TensorShape,
)
from .tensor_array import (
    TensorArray,
)
from .variable_scope import (
    AUTO_REUSE,
    VariableScope,
    get_local_variable,
    get_variable,
    get_variable_scope,
    make_template,
    no_regularizer,
    variable_creator_scope,
    variable_op_scope,
    variable_scope,
)
from .variables import (
    Variable,
    all_variables,
    assign,
    assign_add,
    assign_sub,
    global_variables,
    global_variables_initializer,
    initialize_all_variables,
    initialize_local_variables,
    initialize_variables,
    is_variable_initialized,
    local_variables,
    local_variables_initializer,
    model_variables,
    moving_average_variables,
    report_uninitialized_variables,
    scatter_add,
    scatter_sub,
    scatter_update,
    trainable_variables,
    variables_initializer,
)

__version__ = "1.15.5"
VERSION = __version__
float32_ref, float64_ref, int32_ref = float32._ref, float64._ref, int32._ref
int64_ref, bool_ref = int64._ref, bool._ref


def executing_eagerly() -> _Any:
    """False: a graph is built."""
    return False


def _nothing(*_: _Any, **__: _Any) -> None:
    """Nothing: this is how it is anyway."""


disable_v2_behavior = disable_eager_execution = disable_v2_tensorshape = _nothing
disable_resource_variables = disable_control_flow_v2 = enable_v2_behavior = _nothing


def is_tensor(x: _Any) -> _Any:
    """Whether this is a tensor or variable."""
    return isinstance(x, Tensor) or hasattr(x, "_tensor_of")


def add_to_collection(name: _Any, value: _Any) -> None:
    """Put a value into a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: _Any, value: _Any) -> None:
    """Put a value into several collections of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: _Any, scope: _Any = None) -> _Any:
    """A copy of a collection of the default graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: _Any) -> _Any:
    """A collection of the default graph."""
    return get_default_graph().get_collection_ref(key)


def op_scope(values: _Any, name: _Any, default_name: _Any = None) -> _Any:
    """`name_scope`, with the arguments of TensorFlow 0.x."""
    return name_scope(name, default_name, values)


def finalize() -> None:
    """Nothing can be added to the default graph any more."""
    get_default_graph().finalize()


_register_derived()
_here = _sys.modules[__name__]
compat = _SimpleNamespace(v1=_here, as_bytes=lambda s: s.encode() if isinstance(s, str) else s,
                          as_str=lambda s: s.decode() if isinstance(s, bytes) else s)  # fmt: skip
_sys.modules[f"{__name__}.compat"] = _here
_sys.modules[f"{__name__}.compat.v1"] = _here


def __getattr__(name: str) -> _Any:
    """What TensorFlow has and this has not: it says so when it is used."""
    return _missing(name)
