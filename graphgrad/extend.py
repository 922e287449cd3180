"""What ops, rewrites and backends outside graphgrad are written with.

    ops       a subclass of `Op` or of a family (`Elementwise`, `Unary`, `Binary`, ...), which says
              what holds of it, in part in groups (`Traits`, `Memory`, `Derivative`); put into a
              graph by `apply` on tensors (`as_tensor`, `promoted`, `binary`, ...); `build` gives
              the node, which has all outputs; `@documented(op)` completes the function's docstring
    rewrites  `@rule(Exp)` makes a function of a node a rewrite; `rewrite(*rules)` is the pass,
              `Program -> Program`, that applies them; `instead` and `beside` make nodes for them,
              `number_of`, `filled` and `array_of` constants; `optimise` runs graphgrad's own
    backends  a subclass of `Backend` with `name` and `compile(program)`, under the entry point
              group "graphgrad.backends"; `compile` returns a function of arrays, or a `Compiled`
              that says what else it can do; `Kernels` has every op's own kernel
    checks    `check_op` tries every law of graphgrad's own ops on one; `verify_graph`,
              `verify_program`

A gradient rule needs nothing of this: it is a function of a `gg.Site` and tensors.
"""

from .execute.backend import Backend, Compiled
from .execute.kernels import ArrayFunction, Kernel, Kernels, one_call_per_node
from .execute.loading import backends, load_backend
from .healing.own import identity
from .ir.build import build
from .ir.facts import Derivative, Memory, Traits
from .ir.onnx import Onnx
from .ir.op import Gradients, Op, Samples, Types, op_types
from .ir.program import Program, Visit, derive
from .ir.strided import Strided
from .ir.types import (
    Array,
    Dim,
    DType,
    Shape,
    TensorType,
    as_dtype,
    as_shape,
    broadcast,
    compatible,
    elements,
    inexact,
    result_dtype,
    tensor_type,
    type_of_array,
)
from .ir.verify import verify_graph, verify_program
from .laws.check_op import OpReport, check_op
from .lower.binding import Binding
from .lower.plan import BodyPlans, Looping, Plan
from .ops.base import (
    DEFAULT,
    NO_GRAD,
    ZERO,
    Binary,
    Comparison,
    Elementwise,
    Marker,
    TensorLike,
    Unary,
    apply,
    as_tensor,
    is_zero,
    like,
    promoted,
    wants,
)
from .ops.batching import Batch
from .ops.documented import documented
from .ops.families import (
    FloatUnary,
    NumberBinary,
    RealBinary,
    RealUnary,
    binary,
    floating_binary,
    floating_unary,
)
from .ops.making import Making
from .ops.shape.reshaping import normal_axis
from .optimise.build import array_of, beside, filled, instead, number_of
from .optimise.pipeline import Change, optimise, run_passes
from .optimise.rewrite import Pass, rewrite
from .optimise.room import Policy
from .optimise.rule import EXACT, FAST, ROUNDING, NodeOf, RewriteRule, rule

__all__ = [
    "DEFAULT",
    "EXACT",
    "FAST",
    "NO_GRAD",
    "ROUNDING",
    "ZERO",
    "Array",
    "ArrayFunction",
    "Backend",
    "Batch",
    "Binary",
    "Binding",
    "BodyPlans",
    "Change",
    "Comparison",
    "Compiled",
    "DType",
    "Derivative",
    "Dim",
    "Elementwise",
    "FloatUnary",
    "Gradients",
    "Kernel",
    "Kernels",
    "Looping",
    "Making",
    "Marker",
    "Memory",
    "NodeOf",
    "NumberBinary",
    "Onnx",
    "Op",
    "OpReport",
    "Pass",
    "Plan",
    "Policy",
    "Program",
    "RealBinary",
    "RealUnary",
    "RewriteRule",
    "Samples",
    "Shape",
    "Strided",
    "TensorLike",
    "TensorType",
    "Traits",
    "Types",
    "Unary",
    "Visit",
    "apply",
    "array_of",
    "as_dtype",
    "as_shape",
    "as_tensor",
    "backends",
    "beside",
    "binary",
    "broadcast",
    "build",
    "check_op",
    "compatible",
    "derive",
    "documented",
    "elements",
    "filled",
    "floating_binary",
    "floating_unary",
    "identity",
    "inexact",
    "instead",
    "is_zero",
    "like",
    "load_backend",
    "normal_axis",
    "number_of",
    "one_call_per_node",
    "op_types",
    "optimise",
    "promoted",
    "result_dtype",
    "rewrite",
    "rule",
    "run_passes",
    "tensor_type",
    "type_of_array",
    "verify_graph",
    "verify_program",
    "wants",
]


def __dir__() -> list[str]:
    return __all__
