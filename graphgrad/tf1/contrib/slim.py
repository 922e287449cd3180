"""`tf.contrib.slim`."""

from __future__ import annotations

from typing import Any

from .. import losses
from ..graph import GraphKeys, get_default_graph
from ..regularizers import l1_regularizer, l2_regularizer
from ..training.steps import get_or_create_global_step
from ..variable_scope import get_variable
from .arg_scope import add_arg_scope, arg_scope
from .layers import (
    avg_pool2d,
    batch_norm,
    conv2d,
    conv2d_transpose,
    dropout,
    flatten,
    fully_connected,
    layer_norm,
    max_pool2d,
    repeat,
    separable_conv2d,
    softmax,
    stack,
    xavier_initializer,
)

__all__ = [
    "add_arg_scope", "arg_scope", "avg_pool2d", "batch_norm", "conv2d", "conv2d_transpose",
    "dropout", "flatten", "fully_connected", "get_model_variables", "get_or_create_global_step",
    "get_trainable_variables", "get_variables", "l1_regularizer", "l2_regularizer", "layer_norm",
    "losses", "max_pool2d", "model_variable", "repeat", "separable_conv2d", "softmax", "stack",
    "variable", "xavier_initializer",
]  # fmt: skip


def get_variables(
    scope: Any = None, suffix: Any = None, collection: str = "variables"
) -> list[Any]:
    """The variables of a scope."""
    found = get_default_graph().get_collection(collection, getattr(scope, "name", scope))
    return [v for v in found if suffix is None or v.op.name.endswith(suffix)]


def get_trainable_variables(scope: Any = None, suffix: Any = None) -> list[Any]:
    """The variables of a scope that are trained."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


get_model_variables = get_variables


@add_arg_scope
def variable(name: str, shape: Any = None, **kwargs: Any) -> Any:
    """`tf.get_variable`."""
    kwargs.pop("device", None)
    return get_variable(name, shape, **kwargs)


model_variable = variable
