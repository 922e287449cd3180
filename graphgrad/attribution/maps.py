"""Grad-CAM: where in a layer of channels and places the score comes from."""

from __future__ import annotations

import numpy as np

from ..differentiate.gradients import gradients
from ..ir.errors import GradientError, did_you_mean
from ..ir.node import Tensor
from .explained import Explained
from .found import Found

LAYERS = ("Conv2D",)


def grad_cam(asked: Explained, layer: str | None = None, relu: bool = True) -> Found:
    """The channels of a layer, weighted by the mean of the derivative over their places.

    layer: a name of a tensor (N, C, H, W); None: what the last convolution makes, its bias added.
    """
    at = _layer(asked, layer)
    with asked.graph:
        (slope,) = gradients(asked.score, [at], unconnected="zero")
    value, dy = asked.run([at, slope])
    places = tuple(range(2, value.ndim))
    found = (value * dy.mean(places, keepdims=True)).sum(1, keepdims=True)
    return Found({at.node.name: np.maximum(found, 0) if relu else found})


def _layer(asked: Explained, name: str | None) -> Tensor:
    if name is not None:
        try:
            at = asked.graph.tensor(name)
        except Exception as error:
            near = did_you_mean(name, (n.name for n in asked.graph.nodes))
            raise GradientError(f"layer= names a tensor, got {name!r}. {near}".rstrip()) from error
        if at.ndim < 3:
            raise GradientError(
                f"Grad-CAM is of a layer with channels and places, (N, C, ...); {name} is "
                f"{at.type!r}"
            )
        return at
    layers = [n for n in asked.graph.nodes if n.type in LAYERS]
    if not layers:
        raise GradientError(
            "Grad-CAM is of a layer with channels and places, and the model has no convolution: it "
            "has no such map. Name one of its tensors (N, C, ...) by layer="
        )
    (at,) = layers[-1].outputs
    biased = [n for n in at.node.consumers if n.type == "Add" and n.outputs[0].shape == at.shape]
    return biased[0].outputs[0] if len(biased) == 1 else at
