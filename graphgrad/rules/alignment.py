"""Learning with errors that do not come back through the weights."""

from __future__ import annotations

from typing import Any

from ..differentiate.site import Site
from ..ir.errors import ShapeError
from ..ir.node import Tensor
from ..ops import random
from ..ops.base import DEFAULT, TensorLike
from ..regions.rules import Rule
from .entries import entry, rule
from .sites import layer, number

FAMILY = "alignment"


@entry(FAMILY, "policy")
def feedback(weights: TensorLike | None = None, seed: int = 0, std: float | None = None) -> Rule:
    """For a dense layer: errors go back through fixed weights, drawn at random if none are given.

    dx = dy @ weights; the layer's own weights and bias get their gradient
    [Lillicrap et al. 2016, "Random synaptic feedback weights support error backpropagation for deep
    learning"].

    Parameters:
        weights: a matrix (outputs, inputs); None: normally distributed ones.
        seed: of what is drawn.
        std: the standard deviation of what is drawn, 1 / sqrt(outputs) by default.

    Returns: a rule for x @ w, where x is (..., inputs) and w (inputs, outputs), with or without a
    bias.

    Raises: GradientError at a site that is no layer; ShapeError where weights are to be drawn for
    what is no matrix of known lengths.

    >>> x, w = gg.constant([[1.0, 2.0]]), gg.constant([[1.0], [1.0]])
    >>> rule = gg.rules.feedback(np.array([[5.0, 6.0]]))
    >>> gg.evaluate(gg.gradients(x @ w, [x, w], overrides={"MatMul": rule}))
    [array([[5., 6.]]), array([[1.],
           [2.]])]
    """

    def feedback(site: Site, dy: Tensor) -> Any:
        part = layer(site)
        back = _drawn(part.w, seed, std) if weights is None else number(weights, part.x)
        return [dy @ back if t is part.x else DEFAULT for t in site.inputs]

    return rule(feedback, seed=seed if weights is None else None, std=std)


def _drawn(w: Tensor, seed: int, std: float | None) -> Tensor:
    if w.ndim != 2 or not w.type.static:
        raise ShapeError(
            f"fixed feedback weights are drawn for a matrix of known lengths, got {w.type!r} "
            f"({w.where}); give weights="
        )
    inputs, outputs = w.shape
    assert isinstance(outputs, int)
    spread = outputs**-0.5 if std is None else std
    return random.normal((outputs, inputs), 0.0, spread, seed=seed, dtype=w.dtype)
