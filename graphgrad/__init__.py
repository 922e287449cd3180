"""graphgrad: a graph-mode compiler that rewrites gradient subgraphs.

Build a static dataflow graph, mark parts of it with `with override_gradient("name"):`, differentiate
it symbolically, and run forward and backward. A rule is applied exactly where it was put, at every
order and through every transform, or an error says why not.
"""

from .compile import CompiledFunction, compile, evaluate
from .differentiate import control as _control
from .differentiate.custom import custom_gradient, grad_pass_through
from .differentiate.gradients import gradients
from .inspect.dot import to_dot, write_dot
from .inspect.svg import to_svg
from .inspect.text import print_graph
from .ir.errors import *  # noqa: F403
from .ir.graph import Graph, default_graph, name_scope, reset_default_graph
from .ir.node import Node, Region, Tensor
from .ir.op import Op, op_types
from .ir.program import Program
from .ir.state import State
from .ops import linalg, nn, random, special
from .ops import methods as _methods
from .ops.arithmetic import *  # noqa: F403
from .ops.base import DEFAULT, NO_GRAD, cast, constant, is_zero
from .ops.control import cond
from .ops.creation import *  # noqa: F403
from .ops.cumulative import *  # noqa: F403
from .ops.exponential import *  # noqa: F403
from .ops.indexing import *  # noqa: F403
from .ops.joining import *  # noqa: F403
from .ops.linalg import diagonal, dot, einsum, inner, matmul, outer, tensordot, trace, vecdot
from .ops.logic import *  # noqa: F403
from .ops.padding import *  # noqa: F403
from .ops.python_function import py_function
from .ops.reductions import *  # noqa: F403
from .ops.shaping import *  # noqa: F403
from .ops.sorting import *  # noqa: F403
from .ops.sources import (
    assign,
    identity,
    placeholder,
    stop_gradient,
    undefined_gradient,
    variable,
    zero_gradient,
)
from .ops.trigonometry import *  # noqa: F403
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
from .session import Session

__version__ = "0.1.0"
