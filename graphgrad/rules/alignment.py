"""Learning with errors that do not come back through the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.domains import ANY, INTEGER, NON_NEGATIVE
from ..base.errors import ShapeError
from ..base.flags import function
from ..differentiate.gradients import gradients
from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops import random
from ..ops.base import DEFAULT, TensorLike, cast
from ..ops.demands import within
from ..ops.sources import identity
from ..regions.rules import Rule
from .entries import entry, rule
from .sites import layer, number

FAMILY = "alignment"


@entry(FAMILY, "policy")
def feedback(
    weights: TensorLike | None = None, seed: TensorLike | None = None, std: float | None = None
) -> Rule:
    """For a layer: errors are sent back through fixed weights, random if none are given.

    dx = dy @ weights; the layer's own weights and bias get their gradient
    [Lillicrap et al. 2016, "Random synaptic feedback weights support error backpropagation for deep
    learning"].

    Parameters:
        weights: a matrix (outputs, inputs), or for a convolution a filter like its own; None:
            normally distributed ones.
        seed: of what is drawn, an int or a scalar integer tensor; None: 0.
        std: the standard deviation of what is drawn, a finite number >= 0; None: 1 / sqrt(outputs).

    Returns: a rule for x @ w, where x is (..., inputs) and w (inputs, outputs), with or without a
    bias.

    Raises: TypeError for a seed or std beside weights, which would not be read; GradientError at a
    site that is not a layer; ShapeError if weights must be drawn for
    input that is not a matrix of known lengths.

    >>> x, w = gg.constant([[1.0, 2.0]]), gg.constant([[1.0], [1.0]])
    >>> rule = gg.rules.feedback(np.array([[5.0, 6.0]]))
    >>> gg.evaluate(gg.gradients(x @ w, [x, w], overrides={"MatMul": rule}))
    [array([[5., 6.]]), array([[1.],
           [2.]])]
    """
    if weights is not None:
        within(ANY, "weights", weights)
        if seed is not None or std is not None:
            raise TypeError("seed and std are for weights that are drawn, not beside weights=")
    elif seed is None:
        seed = 0
    within(INTEGER, "seed", 0 if seed is None else seed)
    NON_NEGATIVE.if_given("std", std)

    def feedback(site: Site, dy: Tensor) -> Any:
        part = layer(site)
        if part.node.type != "MatMul" and weights is not None:
            x, back = identity(part.x), number(weights, part.x)
            dx = gradients(part.applied(x, back, None), x, dy, overrides={})
            return [dx if t is part.x else DEFAULT for t in site.inputs]
        back = _drawn(part.w, seed, std) if weights is None else number(weights, part.x)
        return [dy @ back if t is part.x else DEFAULT for t in site.inputs]

    return rule(feedback, seed=seed, std=std)


def _drawn(w: Tensor, seed: Any, std: float | None) -> Tensor:
    if w.ndim != 2 or not w.type.static:
        raise ShapeError(
            f"fixed feedback weights are drawn for a matrix of known lengths, got {w.type!r} "
            f"({w.where}); give weights="
        )
    inputs, outputs = w.shape
    assert isinstance(outputs, int)
    spread = outputs**-0.5 if std is None else std
    return random.normal((outputs, inputs), 0.0, spread, seed=seed, dtype=w.dtype)


@entry(FAMILY, "policy", linear=False)
def target_prop(inverse: Callable[[Tensor], Tensor]) -> Rule:
    """For a layer: its input gets the difference between an inverse's values at two targets.

    dx = inverse(y) - inverse(y - dy); what else the layer reads gets its own gradient, of half the
    squared distance of y to its target y - dy
    [Lee et al. 2015, "Difference target propagation"].

    Parameters: inverse: a function of y that builds what x would be.

    Returns: a rule for a site of one output, whose first input is x.

    Raises: TypeError if inverse is not a function; GradientError where it gives another shape.

    >>> x, w = gg.constant([[1.0, 2.0]]), gg.constant([[2.0], [1.0]])
    >>> rule = gg.rules.target_prop(lambda y: y * [[0.5, 0.0]])
    >>> gg.evaluate(gg.gradients(x @ w, [x, w], overrides={"MatMul": rule}))
    [array([[0.5, 0. ]]), array([[1.],
           [2.]])]
    """
    function("inverse", inverse)

    def target_prop(site: Site, dy: Tensor) -> Any:
        (y,) = site.outputs
        dx = inverse(y) - inverse(y - dy)
        return [cast(dx, site.inputs[0].dtype), *[DEFAULT] * (len(site.inputs) - 1)]

    return rule(target_prop, inverse=inverse)
