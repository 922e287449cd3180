"""The table of gradients: one namespace of op types and of names given by programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .position import caller, show

__all__ = ["NoGradient", "NotDifferentiable", "RegisterGradient"]


class Registry:
    """Names and what is registered for them; `_registry[name]["type"]` can be read and replaced."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._registry: dict[str, dict[str, Any]] = {}

    def register(self, candidate: Any, name: str | None = None) -> None:
        """Register a value. Raises KeyError for a name that is taken."""
        name = name or candidate.__name__
        if name in self._registry:
            raise KeyError(
                f"Registering two {self._name} with name {name!r}! (Previous registration was in "
                f"{self._registry[name]['location']})"
            )
        self._registry[name] = {"type": candidate, "location": show(caller())}

    def list(self) -> list[str]:
        """All names."""
        return list(self._registry)

    def lookup(self, name: Any) -> Any:
        """What is registered. Raises LookupError for a name that is not."""
        name = name.decode() if isinstance(name, bytes) else name
        if name not in self._registry:
            raise LookupError(f"{self._name} registry has no entry for: {name}")
        return self._registry[name]["type"]


gradient_registry = Registry("gradient")


class RegisterGradient:
    """A decorator: `@tf.RegisterGradient("name")` of a function of an op and gradients."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        gradient_registry.register(f, self._op_type)
        return f


def NotDifferentiable(op_type: str) -> None:
    """Ops of the type have no gradient: None goes to their inputs."""
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    gradient_registry.register(None, op_type)


NoGradient = NotDifferentiable


NOT_DIFFERENTIABLE = (
    "Assert", "Assign", "AssignAdd", "AssignSub", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "BroadcastGradientArgs", "Equal", "FakeQuantWithMinMaxVarsGradient", "Greater", "GreaterEqual",
    "Invert", "InvertPermutation", "LeftShift", "Less", "LessEqual", "LinSpace", "LogicalAnd",
    "LogicalNot", "LogicalOr", "LogicalXor", "MergeSummary", "Multinomial", "NotEqual", "OneHot",
    "OnesLike", "PyFunc", "PyFuncStateless", "RandomShuffle", "RandomStandardNormal",
    "RandomUniform", "Range", "Rank", "RightShift", "ScalarSummary", "Shape", "Size",
    "StopGradient", "TensorArraySizeV3", "TensorArrayV3", "TruncatedNormal", "ZerosLike",
)  # fmt: skip
"""Op types that TensorFlow registers as not differentiable."""

NOT_REGISTERED = frozenset((
    "All", "Any", "ApplyAdadelta", "ApplyAdagrad", "ApplyAdam", "ApplyCenteredRMSProp", "ApplyFtrl",
    "ApplyGradientDescent", "ApplyMomentum", "ApplyProximalGradientDescent", "ApplyRMSProp",
    "Bincount", "BroadcastArgs", "IRFFT3D", "InTopKV2", "IsFinite", "IsInf", "IsNan", "Mod",
    "RFFT3D", "RandomPoissonV2", "RandomUniformInt", "Snapshot", "TruncateMod",
))  # fmt: skip
"""Op types of which TensorFlow's table says nothing: a gradient through them is a LookupError."""

for _type in NOT_DIFFERENTIABLE:
    NotDifferentiable(_type)


def get_gradient_function(op: Any) -> Any:
    """The gradient of an op: of the name that a map gave it, else of its type; None without inputs.

    Raises LookupError where nothing is registered.
    """
    if not op.inputs:
        return None
    own = getattr(op, "_gradient_function", None)
    if own is not None:
        return own
    return gradient_registry.lookup(op.attrs.get("_gradient_op_type") or op.type)
