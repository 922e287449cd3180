"""How each op shares the relevance of its output among those of its inputs that carry some.

Four ways. What only moves elements, or chooses among them, moves their relevance with them. What
is linear shares in proportion to the terms. A product of factors that all carry shares among those
that are signals. What maps each element by a function that is zero at zero, or is an established
activation, passes all of it on. Every other op has no way: it is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..differentiate.gradients import gradients
from ..differentiate.site import NodeSite, Site
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.residual import Residual
from ..ops.base import NO_GRAD, ZERO, Constant, Full, apply, is_zero
from ..ops.elementwise.logic import where
from ..ops.elementwise.magnitudes import copysign
from ..ops.per_example import PerExample
from ..ops.reduce.reductions import ReduceSum
from ..ops.shape.reshaping import sum_to
from .ledger import Ledger, flows
from .sites import number

Entries = list[Any]


def usual(book: Ledger, site: NodeSite, dys: Sequence[Tensor | None], epsilon: float) -> Any:
    """The relevance of a node's inputs by the rules for its op; None where there are none."""
    if all(dy is None or is_zero(dy) for dy in dys):
        return [ZERO] * len(site.inputs)
    at, op = book.places(site), bare(site.op)
    if not at:
        return [NO_GRAD] * len(site.inputs)
    if op.derivative.relevance == "moved":
        return moved(book, site, dys, at)
    (dy,) = dys if len(dys) == 1 else (None,)
    if dy is None:
        return None
    if (op.derivative.relevance == "passed" and at == [0]) or _passes(op.type, site, at):
        return _only(site, at[0], sum_to(dy, like=site.inputs[at[0]]))
    if site.op.type == "Softmax":
        return softmax(book, site, dy)
    if op.derivative.relevance == "taylor":
        return taylor(book, site, dy, at, epsilon)
    if op.linear == "each":
        return product(book, site, dy, at, epsilon)
    return linear(book, site, dy, at, epsilon) if is_linear(op, at) else None


def bare(op: Op) -> Op:
    """The op that is applied to every example, or the op itself."""
    while isinstance(op, PerExample):
        op = op.op
    return op


def is_linear(op: Op, at: Sequence[int]) -> bool:
    """Whether an op is known to be linear in these inputs together, while the others stay."""
    if isinstance(op.linear, tuple):
        return set(at) <= set(op.linear)
    return op.linear == "joint" or (op.linear == "each" and len(at) == 1)


def _passes(op_type: str, site: Site, at: list[int]) -> bool:
    """A numerator: the denominator is held constant. A base to a constant positive power."""
    if op_type == "Power":
        exponent = known_value(site.inputs[1])
        return at == [0] and exponent is not None and bool(np.all(exponent > 0))
    return op_type == "Divide" and 0 in at


def known_value(t: Tensor) -> Any:
    """The value of a constant; None: it is not known before the graph runs."""
    op = t.node.op
    return op.value if isinstance(op, Constant | Full) else None


def _only(site: Site, place: int, dx: Any) -> Entries:
    return [dx if i == place else NO_GRAD for i in range(len(site.inputs))]


# --- the ways ---------------------------------------------------------------------------------


def moved(book: Ledger, site: NodeSite, dys: Sequence[Tensor | None], at: list[int]) -> Entries:
    """Relevance goes where the elements come from, ties share; constants keep what is theirs.

    So the largest of a pooling window takes all, and an embedding's rows get what is theirs
    [Montavon et al. 2019, "Layer-wise relevance propagation: an overview"].
    """
    slopes = site.default(*dys)
    shares = [slopes[i] if i in at else NO_GRAD for i in range(len(site.inputs))]
    if not site.op.bodies:  # whose branches note what they keep
        book.keep_rest(dys, shares)
    return shares


def linear(book: Ledger, site: Site, dy: Tensor, at: list[int], epsilon: float) -> Entries:
    """In proportion to the terms of a sum: x * (the gradient of z at R / z), z kept from zero.

    With a bias as one of the terms. A chain of these, such as a convolution, the mean, scale and
    offset of a batch norm, is what one merged layer gives
    [Bach et al. 2015, "On pixel-wise explanations for non-linear classifier decisions by
    layer-wise relevance propagation"; Guillemot et al. 2020, "Breaking batch normalization for
    better explainability of deep neural networks through layer-wise relevance propagation"].
    """
    dz = stabilised(book, site.outputs[0], dy, epsilon)
    terms = bare(site.op).linear if isinstance(site, NodeSite) else "joint"
    places = terms if isinstance(terms, tuple) else range(len(site.inputs))
    slopes = slopes_of(site, dz)
    parts = {i: site.inputs[i] * slopes[i] for i in places if flows(slopes[i])}
    if book.counts:
        for i in parts.keys() - set(at):
            book.keep(book.biases, parts[i])
    return [parts.get(i, ZERO) if i in at else NO_GRAD for i in range(len(site.inputs))]


def product(
    book: Ledger, site: Site, dy: Tensor, at: list[int], epsilon: float, gated: bool = True
) -> Entries:
    """In proportion to the terms, those of a product in equal parts to the factors that carry.

    gated: a factor that is a gate, an attention weight or one over a denominator gets nothing, if
    another is none of these
    [equal: Achtibat et al. 2024, "AttnLRP: attention-aware layer-wise relevance propagation for
    transformers"; gates: Arras et al. 2017, "Explaining recurrent neural network predictions in
    sentiment analysis"; attention and norms: Ali et al. 2022, "XAI for transformers: better
    explanations through conservative propagation"].
    """
    xs = site.inputs
    held = [i for i in at if gated and len(at) > 1 and is_held(book, xs[i])]
    signals = [i for i in at if i not in held] or at
    part = 1.0 / len(signals)
    if isinstance(site, NodeSite) and site.op.type == "Multiply":
        shares = {i: sum_to(dy, like=xs[i]) for i in signals}
    else:
        slopes = slopes_of(site, stabilised(book, site.outputs[0], dy, epsilon))
        shares = {i: xs[i] * slopes[i] for i in signals if flows(slopes[i])}
    if len(signals) > 1:
        shares = {i: dx * part for i, dx in shares.items()}
    return [shares.get(i, ZERO) if i in signals else NO_GRAD for i in range(len(xs))]


def softmax(book: Ledger, site: NodeSite, dy: Tensor) -> Entries:
    """x * (R - y * sum of R), which is x * (the gradient of y at R / y); nothing where y is 0
    [Achtibat et al. 2024, "AttnLRP: attention-aware layer-wise relevance propagation for
    transformers"].
    """
    (x,), (y,) = site.inputs, site.outputs
    dx = dy - y * apply(ReduceSum((site.op.attrs["axis"],), True), dy)
    shares = [where(y > 0.0, x, 0.0) * dx]
    book.keep_rest([dy], shares)
    return shares


def taylor(book: Ledger, site: Site, dy: Tensor, at: list[int], epsilon: float) -> Entries:
    """x * (the gradient of y at R / y), y kept from zero; what is of no first order is kept."""
    (y,) = site.outputs
    dz = stabilised(book, y, dy, epsilon)
    slopes = slopes_of(site, dz)
    shares = [
        x * slopes[i] if i in at and flows(slopes[i]) else NO_GRAD
        for i, x in enumerate(site.inputs)
    ]
    if book.counts:
        book.keep_rest([dz * y], shares)
    return shares


def slopes_of(site: Site, dz: Tensor) -> Sequence[Any]:
    """The gradients of the inputs, those of a region by the derivatives of what is inside."""
    if isinstance(site, NodeSite):
        return site.default(dz)
    xs = list(dict.fromkeys(x for x in site.inputs if x.type.differentiable))
    dxs = gradients(site.outputs[0], xs, dz, xs, "zero", overrides={})
    by_input = dict(zip(xs, dxs, strict=True))
    return [by_input.pop(x, NO_GRAD) for x in site.inputs]


def stabilised(book: Ledger, z: Tensor, dy: Tensor, epsilon: float) -> Tensor:
    """R / z, with z kept away from zero."""
    away = copysign(number(epsilon, z), z)
    quotient = dy / (z + away)
    if book.counts:
        book.keep(book.stabiliser, quotient * away)
    return quotient


# --- factors that are no signals --------------------------------------------------------------


def is_held(book: Ledger, t: Tensor) -> bool:
    """Whether a factor is a gate or attention weight (0 to 1), or one over a denominator.

    Looks through moves, scaling and shifts by constants: 0.5 * (1 + tanh(x)) is a gate, tanh(x) is
    none. So are numbers that are clipped between 0 and a bound.
    """
    path: list[tuple[Tensor, bool]] = []
    shifted, held = False, None
    while held is None:
        path.append((t, shifted))
        node = t.node
        at = [i for i, x in enumerate(node.inputs) if book.carries(x)]
        if path[-1] in book.held:
            held = book.held[path[-1]]
        elif _is_gate(node, shifted) or _inverse(node, at):
            held = True
        elif len(at) != 1 or not _is_affine(node.op, at):
            held = False
        else:
            shifted = shifted or _shifts(node.op)
            t = node.inputs[at[0]]
    book.held.update(dict.fromkeys(path, held))
    return held


def _is_gate(node: Node, shifted: bool) -> bool:
    """Whether what a node makes is bounded: by zero from below, or where it is shifted at all."""
    least, most = node.op.traits.value_range
    if node.op.type == "Clip":
        low, high = map(known_value, node.inputs[1:])
        least = -np.inf if low is None else np.min(low)
        most = np.inf if high is None else np.max(high)
    return bool(most < np.inf and (least >= 0 or (shifted and least > -np.inf)))


def _is_affine(op: Op, at: Sequence[int]) -> bool:
    """Whether an op moves, scales or shifts each element of the one input that carries."""
    if op.derivative.relevance == "moved" or isinstance(op, Residual):
        return True
    return op.elementwise and is_linear(op, at)


def _shifts(op: Op) -> bool:
    """Whether it adds others to the input that carries."""
    return op.broadcasts and op.linear == "joint" and op.derivative.relevance is None


def _inverse(node: Node, at: list[int]) -> bool:
    """Whether a node makes 1 / x of what carries, or a negative power."""
    if node.op.type == "Power":
        exponent = known_value(node.inputs[1])
        return at == [0] and exponent is not None and bool(np.all(exponent < 0))
    return node.op.type == "Reciprocal" or (node.op.type == "Divide" and at == [1])
