"""The optimizers, with the formulas of TensorFlow 1's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..control_flow import group
from ..create import apply, constant, convert_to_tensor
from ..graph import Tensor
from ..initializers import constant_initializer, ones_initializer
from ..variables import assign
from . import update_types as _update_types  # noqa: F401
from .optimizer import Optimizer

__all__ = [
    "AdadeltaOptimizer", "AdagradOptimizer", "AdamOptimizer", "FtrlOptimizer",
    "GradientDescentOptimizer", "MomentumOptimizer", "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
]  # fmt: skip


class Parametrised(Optimizer):
    """An optimizer whose parameters are numbers, tensors, or functions that give them."""

    def _tensors(self, **parameters: Any) -> None:
        """Keep each parameter as a tensor under its name, with an underscore and _t."""
        for name, value in parameters.items():
            setattr(self, f"_{name}_t", convert_to_tensor(self._call_if_callable(value), name=name))

    def _of(self, name: str, var: Any) -> Tensor:
        """A parameter in the type of a variable."""
        t: Tensor = getattr(self, f"_{name}_t")
        kind = var.dtype.base_dtype
        return t if t.dtype.base_dtype is kind else apply("Cast", t, DstT=kind)


class GradientDescentOptimizer(Parametrised):
    """v -= lr g."""

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _prepare(self) -> None:
        self._tensors(learning_rate=self._learning_rate)
        self._learning_rate_tensor = getattr(self, "_learning_rate_t")  # noqa: B009

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        lr = self._of("learning_rate", var)
        return apply("ApplyGradientDescent", var._ref(), lr, grad).op


class MomentumOptimizer(Parametrised):
    """a = momentum a + g; v -= lr a, or with use_nesterov v -= lr (g + momentum a)."""

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._momentum = learning_rate, momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._tensors(learning_rate=self._learning_rate, momentum=self._momentum)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        slot = self.get_slot(var, "momentum")
        return apply(
            "ApplyMomentum", var._ref(), slot._ref(), self._of("learning_rate", var), grad,
            self._of("momentum", var), use_nesterov=self._use_nesterov,
        ).op  # fmt: skip


class AdamOptimizer(Parametrised):
    """m, s: means of g and g^2; v -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(s) + eps)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon

    def _get_beta_accumulators(self) -> Any:
        graph = self._first.graph
        return (
            self._get_non_slot_variable("beta1_power", graph),
            self._get_non_slot_variable("beta2_power", graph),
        )

    def _create_slots(self, var_list: Any) -> None:
        self._first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(self._beta1, "beta1_power", self._first)
        self._create_non_slot_variable(self._beta2, "beta2_power", self._first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self) -> None:
        self._tensors(
            learning_rate=self._lr, beta1=self._beta1, beta2=self._beta2, epsilon=self._epsilon
        )

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        powers = [p.value() for p in self._get_beta_accumulators()]
        kind = var.dtype.base_dtype
        powers = [p if p.dtype is kind else apply("Cast", p, DstT=kind) for p in powers]
        slots = [self.get_slot(var, n)._ref() for n in ("m", "v")]
        numbers = [self._of(n, var) for n in ("learning_rate", "beta1", "beta2", "epsilon")]
        return apply("ApplyAdam", var._ref(), *slots, *powers, *numbers, grad).op

    def _finish(self, update_ops: Any, name_scope: str) -> Any:
        powers = self._get_beta_accumulators()
        with powers[0].graph.control_dependencies(update_ops):
            moved = [
                assign(p, apply("Mul", p.value(), getattr(self, f"_{n}_t"), name="mul")).op
                for p, n in zip(powers, ("beta1", "beta2"), strict=True)
            ]
        return group(*update_ops, *moved, name=name_scope)


class RMSPropOptimizer(Parametrised):
    """s = decay s + (1 - decay) g^2, starting at 1; v -= lr g / sqrt(s + eps), with momentum."""

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._decay = learning_rate, decay
        self._momentum, self._epsilon, self._centered = momentum, epsilon, centered

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._get_or_make_slot_with_initializer(
                v, ones_initializer(), v.get_shape(), v.dtype.base_dtype, "rms", self._name
            )
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._tensors(learning_rate=self._learning_rate, decay=self._decay,
                      momentum=self._momentum, epsilon=self._epsilon)  # fmt: skip

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        names = ("mg", "rms", "momentum") if self._centered else ("rms", "momentum")
        slots = [self.get_slot(var, n)._ref() for n in names]
        numbers = [self._of(n, var) for n in ("learning_rate", "decay", "momentum", "epsilon")]
        type = "ApplyCenteredRMSProp" if self._centered else "ApplyRMSProp"
        return apply(type, var._ref(), *slots, *numbers, grad).op


class AdagradOptimizer(Parametrised):
    """a += g^2; v -= lr g / sqrt(a)."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate, self._start = learning_rate, initial_accumulator_value

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            kind = v.dtype.base_dtype
            start = constant_initializer(self._start, dtype=kind)
            self._get_or_make_slot_with_initializer(
                v, start, v.get_shape(), kind, "accumulator", self._name
            )

    def _prepare(self) -> None:
        self._tensors(learning_rate=self._learning_rate)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        slot = self.get_slot(var, "accumulator")
        return apply(
            "ApplyAdagrad", var._ref(), slot._ref(), self._of("learning_rate", var), grad
        ).op


class AdadeltaOptimizer(Parametrised):
    """Steps of the size of earlier steps: v -= lr sqrt(u + eps) / sqrt(a + eps) g."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._rho, self._epsilon = learning_rate, rho, epsilon

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)

    def _prepare(self) -> None:
        self._tensors(lr=self._lr, rho=self._rho, epsilon=self._epsilon)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        slots = [self.get_slot(var, n)._ref() for n in ("accum", "accum_update")]
        numbers = [self._of(n, var) for n in ("lr", "rho", "epsilon")]
        return apply("ApplyAdadelta", var._ref(), *slots, *numbers, grad).op


class FtrlOptimizer(Parametrised):
    """Follow the regularised leader."""

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        **_: Any,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._power = learning_rate, learning_rate_power
        self._start = initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            full = np.full(v.get_shape().as_list(), self._start)
            self._get_or_make_slot(v, constant(full, v.dtype.base_dtype), "accum", self._name)
            self._zeros_slot(v, "linear", self._name)

    def _prepare(self) -> None:
        self._tensors(learning_rate=self._learning_rate, l1=self._l1, l2=self._l2,
                      power=self._power)  # fmt: skip

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        slots = [self.get_slot(var, n)._ref() for n in ("accum", "linear")]
        numbers = [self._of(n, var) for n in ("learning_rate", "l1", "l2", "power")]
        return apply("ApplyFtrl", var._ref(), *slots, grad, *numbers).op


class ProximalGradientDescentOptimizer(Parametrised):
    """Gradient descent with l1 and l2 in closed form."""

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _prepare(self) -> None:
        self._tensors(learning_rate=self._learning_rate, l1=self._l1, l2=self._l2)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        numbers = [self._of(n, var) for n in ("learning_rate", "l1", "l2")]
        return apply("ApplyProximalGradientDescent", var._ref(), *numbers, grad).op
