"""TF1's spelling over graphgrad: `import graphgrad.tf1 as tf` runs programs about gradients."""

from __future__ import annotations

from typing import Any

from . import control_flow as _control_flow
from . import dtypes as _dtypes
from . import errors, nest
from .control_flow import (
    case,
    cond,
    control_dependencies,
    group,
    no_op,
    switch_case,
)
from .control_flow import tuple_ as tuple
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
from .dtypes import bool_ as bool
from .function import (
    Assert,
    Print,
    custom_gradient,
    grad_pass_through,
    numpy_function,
    py_func,
    recompute_grad,
)
from .gradients import AggregationMethod, UnconnectedGradients, gradients
from .graph import Graph, GraphKeys, Operation, Tensor, get_default_graph, reset_default_graph
from .initializers import (
    constant_initializer,
    glorot_normal_initializer,
    glorot_uniform_initializer,
    ones_initializer,
    orthogonal_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    truncated_normal_initializer,
    uniform_unit_scaling_initializer,
    variance_scaling_initializer,
    zeros_initializer,
)
from .ops import array as _array
from .ops import array_grad, array_types, linalg_types, math_grad, math_types, nn_grad, nn_types
from .ops import math as _math
from .ops import nn, random_types
from .ops import random as _random
from .ops.array import *
from .ops.math import *
from .ops.random import *
from .registry import NoGradient, NotDifferentiable, RegisterGradient
from .session import InteractiveSession, Session, get_default_session
from .shapes import Dimension, TensorShape
from .variable_scope import (
    AUTO_REUSE,
    VariableScope,
    get_local_variable,
    get_variable,
    get_variable_scope,
    make_template,
    no_regularizer,
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

_register_derived()
