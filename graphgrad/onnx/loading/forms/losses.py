"""Losses over classes, which are in axis 1."""

from __future__ import annotations

from typing import Any

from ....ir.node import Tensor
from ....ops import nn
from ..call import OperatorCall
from .table import form


@form("NegativeLogLikelihoodLoss")
def _nll(call: OperatorCall) -> Tensor:
    x, target = call.tensor(0), call.tensor(1)
    return nn.nll_loss(x, target, call.optional(2), *_options(call), axis=1)


@form("SoftmaxCrossEntropyLoss")
def _cross_entropy(call: OperatorCall) -> Any:
    x, labels, weight = call.tensor(0), call.tensor(1), call.optional(2)
    ignored, reduction = _options(call)
    log_probs = nn.log_softmax(x, 1)
    return nn.nll_loss(log_probs, labels, weight, ignored, reduction, axis=1), log_probs


def _options(call: OperatorCall) -> tuple[int | None, str]:
    return call.attribute("ignore_index"), call.attribute("reduction", "mean")
