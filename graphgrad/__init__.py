"""graphgrad: a graph-mode compiler that rewrites gradient subgraphs."""

from .differentiate.custom import custom_gradient, grad_pass_through
from .differentiate.gradients import gradients
from .ir import errors
from .ir.errors import *  # noqa: F403
from .ir.graph import Graph, default_graph, name_scope, reset_default_graph
from .ir.node import Node, Region, Tensor
from .ir.program import Program
from .ir.state import State
from .ops import methods as _methods
from .ops.base import DEFAULT, NO_GRAD, cast, constant, is_zero
from .ops.shaping import sum_to
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
