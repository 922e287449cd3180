"""Sparse dictionaries: activations that jump, and the largest of them."""

from __future__ import annotations

from math import prod

from ...ir.node import Tensor
from . import maths as m
from .needs import Need, length
from .row import Count, Positive, Size
from .rows import learned

FAMILY = "dictionaries"
JUMP = "Rajamanoharan et al. 2024, Jumping ahead: improving reconstruction fidelity with JumpReLU"


def _rect(u: Tensor) -> Tensor:
    return m.where(m.abs(u) < 0.5, 1.0, 0.0)


@learned(
    JUMP,
    lambda x, threshold: m.where(x > threshold, x, 0.0),
    traps="the rectangle is open at both ends; the package sums over axis 0 alone",
)
def jump_relu(
    x: Tensor, threshold: Tensor, bandwidth: Positive = 1e-3, to_input: bool = False
) -> tuple[Tensor, ...]:
    """x above a learned threshold, otherwise 0."""
    jump = threshold / bandwidth * _rect((x - threshold) / bandwidth)
    passes = m.where(x > threshold, 1.0, 0.0)
    return passes + jump if to_input else passes, -jump


@learned(JUMP, lambda x, threshold: m.where(x > threshold, 1.0, 0.0))
def jump_step(
    x: Tensor, threshold: Tensor, bandwidth: Positive = 1e-3, to_input: bool = False
) -> tuple[Tensor, ...]:
    """1 above a learned threshold, otherwise 0: for the number of active units."""
    jump = _rect((x - threshold) / bandwidth) / bandwidth
    return jump if to_input else m.zeros_like(jump), -jump


def _largest(x: Tensor, k: int) -> Tensor:
    """Where the k largest of the last axis are, as ones."""
    places = m.topk(x, k)[1]
    return m.cast(m.sum(m.one_hot(places, m.length(x)), -2), x.dtype)


@learned(
    "Gao et al. 2024, Scaling and evaluating sparse autoencoders",
    lambda x, k: m.where(x > 0, x, 0.0) * _largest(x, k),
    traps="which of equals counts",
)
def topk_relu(x: Tensor, k: Count) -> Tensor:
    """The k largest elements of the last axis, if positive; otherwise 0."""
    return m.where(x > 0, 1.0, 0.0) * _largest(x, k)


def _largest_of_all(x: Tensor, k: float) -> Tensor:
    count = int(k * (m.count(x) // m.length(x)))
    return m.reshape(_largest(m.reshape(x, (-1,)), count), x.shape)


@learned(
    "Bussmann, Leask, Nanda 2024, BatchTopK sparse autoencoders",
    lambda x, k: m.where(x > 0, x, 0.0) * _largest_of_all(x, k),
    traps="not local in the batch: it changes under vmap and micro-batches",
    needs=(
        Need(
            "k is at least one for the whole batch",
            lambda x, k: k * prod(length(x, i) for i in range(x.ndim - 1)) >= 1,
        ),
    ),
)
def batch_topk_relu(x: Tensor, k: Size) -> Tensor:
    """The k largest elements per example, chosen over the whole batch, if positive; otherwise 0."""
    return m.where(x > 0, 1.0, 0.0) * _largest_of_all(x, k)


__all__ = ["batch_topk_relu", "jump_relu", "jump_step", "topk_relu"]
