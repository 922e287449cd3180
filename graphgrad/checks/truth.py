"""The function whose derivative a rule has to be, by its contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.errors import GradientError
from ..base.tree import flatten
from ..ir.graph import Graph
from ..ir.node import Tensor
from ..ir.program import needed
from ..ir.types import Array
from ..ops.base import as_tensor
from ..ops.sources import placeholder
from ..regions.contracts import Contract
from .target import Checked, Evaluator, flat, stopped


class Truth:
    """The site itself, or the function that a surrogate names; and the factor of a scaled rule."""

    def __init__(
        self,
        target: Checked,
        contract: Contract | None,
        held: dict[Tensor, Array],
        rng: np.random.Generator,
    ) -> None:
        self.target = target
        self.of = contract.of if contract and contract.kind == "surrogate" else None
        self.factor = float(contract.of) if contract and contract.kind == "scaled" else 1.0
        self.held, self.rng = held, rng
        places = [i for i, t in enumerate(target.outputs) if t.type.differentiable]
        self._pick: Callable[[list[Array]], list[Array]] = lambda ys: [ys[i] for i in places]
        self._cuts = stopped(needed([*target.inputs, *target.fixed], target.outputs))

    def at(self, point: Sequence[Array]) -> Callable[[list[Array]], Array]:
        """f(inputs) -> all entries of the floating outputs; what is stopped keeps its value."""
        if self.of is not None:
            return self._surrogate(point)
        target = self.target
        cuts = Evaluator(target.inputs, self._cuts, self.held, self.rng)(point)
        run = Evaluator([*target.inputs, *self._cuts], target.outputs, self.held, self.rng)
        return lambda arrays: flat(self._pick(run([*arrays, *cuts])))

    def _surrogate(self, point: Sequence[Array]) -> Callable[[list[Array]], Array]:
        assert self.of is not None
        with Graph("surrogate"):
            pairs = zip(point, self.target.inputs, strict=True)
            xs = [placeholder(p.shape[: p.ndim - t.type.complex], t.dtype) for p, t in pairs]
            ys = [as_tensor(t) for t in flatten(self.of(*xs))]
            run = Evaluator(xs, ys, {}, self.rng)
        if len(ys) != len(self.target.outputs):
            raise GradientError(
                f"f returns {len(ys)} tensors, the site has {len(self.target.outputs)} outputs"
            )
        return lambda arrays: flat(self._pick(run(arrays)))
