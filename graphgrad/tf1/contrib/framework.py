"""`tf.contrib.framework`."""

from __future__ import annotations

from typing import Any

from .. import nest
from ..graph import get_default_graph
from ..training.saver import list_variables, load_checkpoint, load_variable
from ..training.steps import get_global_step, get_or_create_global_step
from ..variables import assign
from .arg_scope import add_arg_scope, arg_scope, current_arg_scope, has_arg_scope
from .slim import get_trainable_variables, get_variables, model_variable, variable

__all__ = [
    "add_arg_scope", "arg_scope", "assign_from_values", "current_arg_scope", "get_global_step",
    "get_name_scope", "get_or_create_global_step", "get_trainable_variables", "get_variables",
    "has_arg_scope", "list_variables", "load_checkpoint", "load_variable", "model_variable", "nest",
    "variable",
]  # fmt: skip


def get_name_scope() -> str:
    """The name that is before those of new ops."""
    return get_default_graph().get_name_scope()


def assign_from_values(var_names_to_values: dict[str, Any]) -> Any:
    """Ops that give variables values, by name."""
    byname = {v.op.name: v for v in get_variables()}
    return [assign(byname[n], value).op for n, value in var_names_to_values.items()], {}
