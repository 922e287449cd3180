"""graphgrad: a graph-mode compiler that rewrites gradient subgraphs.

Build a static dataflow graph, mark parts of it with `with override_gradient("name"):`,
differentiate it symbolically, and run forward and backward. A rule is applied exactly where it was
put, at every order and through every transform, or an error says why not.
"""

from . import debug as debug
from . import initializers as initializers
from . import notebook as _notebook
from . import optimizers as optimizers
from . import rules as rules
from .checks.explain import *
from .checks.gradient import *
from .checks.lint import *
from .checks.report import *
from .compile import CompiledFunction as CompiledFunction
from .compile import compile as compile
from .compile import evaluate as evaluate
from .differentiate import control as _control
from .differentiate import stored as _stored
from .differentiate.custom import *
from .differentiate.derivatives import *
from .differentiate.forward import *
from .differentiate.gradients import *
from .differentiate.importing import *
from .differentiate.site import is_zero as is_zero
from .differentiate.vmap import *
from .function import function as function
from .inspect.diff import *
from .inspect.dot import *
from .inspect.html import *
from .inspect.mermaid import *
from .inspect.overlay import *
from .inspect.passes import *
from .inspect.summary import *
from .inspect.svg import *
from .inspect.tensorboard import *
from .inspect.text import *
from .ir import flat as _flat
from .ir.errors import *
from .ir.graph import Graph as Graph
from .ir.graph import default_graph as default_graph
from .ir.graph import name_scope as name_scope
from .ir.graph import reset_default_graph as reset_default_graph
from .ir.node import Node as Node
from .ir.node import Region as Region
from .ir.node import Tensor as Tensor
from .ir.op import Op as Op
from .ir.op import op_types as op_types
from .ir.program import Program as Program
from .ir.state import State as State
from .ops import linalg as linalg
from .ops import methods as _methods
from .ops import nn as nn
from .ops import random as random
from .ops import special as special
from .ops.arithmetic import *
from .ops.base import DEFAULT as DEFAULT
from .ops.base import NO_GRAD as NO_GRAD
from .ops.base import cast as cast
from .ops.base import constant as constant
from .ops.control import *
from .ops.creation import *
from .ops.cumulative import *
from .ops.diagonal import diagonal as diagonal
from .ops.diagonal import trace as trace
from .ops.differences import *
from .ops.einsum import einsum as einsum
from .ops.exponential import *
from .ops.indexing import *
from .ops.joining import *
from .ops.logic import *
from .ops.nn import one_hot as one_hot
from .ops.padding import *
from .ops.products import *
from .ops.python_function import *
from .ops.reductions import *
from .ops.shaping import *
from .ops.sorting import *
from .ops.sources import *
from .ops.trigonometry import *
from .regions import marks as _marks
from .regions.contracts import *
from .regions.rules import *
from .regions.scopes import *
from .regions.select.api import *
from .session import Session as Session

__version__ = "0.1.0"
