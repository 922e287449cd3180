"""The kinds of derivatives that a model can be given, each as outputs by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...base.errors import GradientError, ShapeError
from ...differentiate.forward.jvp import jvp
from ...differentiate.gradients import gradients
from ...differentiate.site import is_zero
from ...ir.node import Tensor
from ...ops.create.creation import zeros_like
from ...ops.reduce.reductions import sum as sum_of
from ...ops.shape.reshaping import moveaxis, reshape
from ...ops.sources import placeholder
from ..loading.names import clean, rename
from .breaks import why_nothing_flows
from .ends import DerivativeEnds
from .naming import AddedNames
from .seeds import Seeds

__all__ = ["KINDS", "DerivativeQuestion"]

Outputs = dict[str, Tensor]


@dataclass
class DerivativeQuestion:
    """One question to a model, and the inputs that its answer takes.

    cotangent  "ones", "input" or an array: what `of` is multiplied by before it is summed
    inputs     {name: placeholder} beside those of the model
    """

    ends: DerivativeEnds
    names: AddedNames
    order: int
    per_example: bool
    cotangent: Any
    overrides: Any
    zeros: bool
    inputs: dict[str, Tensor] = field(default_factory=dict)

    @property
    def xs(self) -> list[Tensor]:
        """What it is differentiated by."""
        return list(self.ends.xs.values())

    def directions(self) -> list[Tensor]:
        """An input like each x."""
        return [self._input("direction", name, x) for name, x in self.ends.xs.items()]

    def _input(self, kind: str, of: str, like: Tensor) -> Tensor:
        name = self.names.new(kind, of)
        t = placeholder(like.shape, like.dtype)
        rename(t, clean(name))
        self.inputs[name] = t
        return t

    def first(self) -> list[Tensor]:
        """The gradients of the sum of `of` times the cotangent; GradientError."""
        y, seed = self.ends.y, self._seed()
        found = gradients(y, self.xs, seed, unconnected="zero", overrides=self.overrides)
        for (name, x), dx in zip(self.ends.xs.items(), found, strict=True):
            if is_zero(dx) and not self.zeros:
                raise GradientError(
                    f"nothing flows from {self.ends.name!r} to {name!r}: "
                    f'{why_nothing_flows(y, x)}. unconnected="zero" writes zeros'
                )
        return found

    def _seed(self) -> Any:
        if isinstance(self.cotangent, str):
            if self.cotangent == "ones":
                return None
            return self._input("cotangent", self.ends.name, self.ends.y)
        return self.cotangent

    def again(self, firsts: list[Tensor], vs: list[Tensor]) -> list[Tensor]:
        """The gradients of sums of gradients times vs; GradientError where all are 0."""
        flowing = [(g, v) for g, v in zip(firsts, vs, strict=True) if not is_zero(g)]
        found = self._of([g for g, _ in flowing], [v for _, v in flowing])
        if all(map(is_zero, found)):
            self._check_curved()
        return found

    def each(self, y: Tensor, more: Callable[[Tensor, list[Tensor]], list[Tensor]]) -> list[Tensor]:
        """more(seed, gradients) for every seed of y, stacked."""
        seeds = Seeds(y, self.per_example)
        return seeds.stacked(lambda seed: more(seed, self._of([y], [seed])))

    def _of(self, ys: list[Tensor], seeds: list[Tensor] | None) -> list[Tensor]:
        if not ys:
            return [zeros_like(x) for x in self.xs]
        return gradients(ys, self.xs, seeds, unconnected="zero", overrides=self.overrides)

    def check_curved(self, firsts: list[Tensor]) -> None:
        """GradientError where every second derivative is 0 by structure."""
        flowing = [g for g in firsts if not is_zero(g)]
        if all(map(is_zero, self._of(flowing, None))):
            self._check_curved()

    def _check_curved(self) -> None:
        if not self.zeros:
            raise GradientError(
                f"the gradient of {self.ends.name!r} does not change with "
                f"{', '.join(map(repr, self.ends.xs))}: the model is linear there, or piecewise so "
                '(Relu, Abs, MaxPool). unconnected="zero" writes zeros'
            )

    def check_rows(self) -> None:
        """ShapeError where per_example is asked of tensors whose rows are not counted alike."""
        if not self.per_example:
            return
        named = {self.ends.name: self.ends.y, **self.ends.xs}
        first = {name: t.shape[0] if t.ndim else None for name, t in named.items()}
        if None in first.values() or len(set(first.values())) > 1:
            rows = ", ".join(f"{name}: {t.type!r}" for name, t in named.items())
            raise ShapeError(f"per_example needs first axes of one length, got {rows}")


def _gradient(asked: DerivativeQuestion) -> Outputs:
    """dx, after `order` - 1 derivatives along the directions."""
    found, vs = asked.first(), asked.directions() if asked.order > 1 else []
    for _ in range(1, asked.order):
        found = asked.again(found, vs)
    return _named(asked, "gradient", found)


def _hvp(asked: DerivativeQuestion) -> Outputs:
    """H v."""
    return _named(asked, "hvp", asked.again(asked.first(), asked.directions()))


def _named(asked: DerivativeQuestion, kind: str, tensors: list[Tensor]) -> Outputs:
    return {asked.names.new(kind, x): t for x, t in zip(asked.ends.xs, tensors, strict=True)}


def _jvp(asked: DerivativeQuestion) -> Outputs:
    """J v, of all x together."""
    asked.first()
    y, vs = asked.ends.y, asked.directions()
    dy = jvp(y, asked.xs, vs, overrides=asked.overrides)
    return {asked.names.new("jvp", asked.ends.name): dy}


def _jacobian(asked: DerivativeQuestion) -> Outputs:
    """J, by one gradient for each element, or column, of y."""
    asked.first()
    asked.check_rows()
    rows = _rows(asked, asked.ends.y)
    return {
        asked.names.new("jacobian", asked.ends.name, x): t
        for x, t in zip(asked.ends.xs, rows, strict=True)
    }


def _hessian(asked: DerivativeQuestion) -> Outputs:
    """H in blocks, by one gradient for each element, or column, of the gradient."""
    firsts = asked.first()
    asked.check_rows()
    asked.check_curved(firsts)
    return {
        asked.names.new("hessian", a, b): t
        for a, g in zip(asked.ends.xs, firsts, strict=True)
        for b, t in zip(asked.ends.xs, _rows(asked, g), strict=True)
    }


def _rows(asked: DerivativeQuestion, y: Tensor) -> list[Tensor]:
    """dy/dx of every x, in the shape of y and then that of x; of rows, once in front."""
    stacks = asked.each(y, lambda _, dxs: dxs)
    if asked.per_example:
        rows = [moveaxis(t, 0, 1) for t in stacks]
        return [reshape(t, (*y.shape, *x.shape[1:])) for t, x in zip(rows, asked.xs, strict=True)]
    return [reshape(t, (*y.shape, *x.shape)) for t, x in zip(stacks, asked.xs, strict=True)]


def _laplacian(asked: DerivativeQuestion) -> Outputs:
    """The trace of the block of H of each x, without the block."""
    firsts = asked.first()
    asked.check_rows()
    asked.check_curved(firsts)
    traces = []
    for i, g in enumerate(firsts):
        axes = tuple(range(1 if asked.per_example else 0, g.ndim))

        def diagonal(seed: Tensor, dxs: list[Tensor], i: int = i, axes: Any = axes) -> list[Tensor]:
            return [sum_of(dxs[i] * seed, axes)]

        (stacked,) = asked.each(g, diagonal)
        traces.append(sum_of(stacked, 0))
    return _named(asked, "laplacian", traces)


KINDS: Mapping[str, Callable[[DerivativeQuestion], Outputs]] = {
    "gradient": _gradient,
    "vjp": _gradient,
    "jvp": _jvp,
    "hvp": _hvp,
    "jacobian": _jacobian,
    "hessian": _hessian,
    "laplacian": _laplacian,
}
