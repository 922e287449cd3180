"""How far apart rounding alone can bring two computations of one node, or of one graph.

A result is right where it is what slightly other inputs would give (backward stability). So the
inputs of a node are moved by their last bits, and how far its results move is measured: that is
small for a sum of like numbers, and large where they cancel. What is added up in another order
differs by more, the more terms there are: about the square root of their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..base.kinds import is_inexact, kind_of, limits_of
from ..ir.node import Tensor
from ..ir.types import Array
from .running import KERNELS, Evaluation, Ran

SLACK = 16.0
"""Last bits, of inputs and results, in which two honest computations may differ."""
MOVES = 4


def allowed(ran: Ran) -> list[Array]:
    """How far each result of a node may be from what it is, element by element.

    SLACK * sqrt(terms) * (eps |y| + how far y moves where the inputs move by eps), where eps is
    the precision of the dtype. Zero for what is not floating and does not move.
    """
    moved = [np.zeros(np.shape(y)) for y in ran.outputs]
    for outputs in _moves(ran):
        moves = [_unless_lost(y, z) for y, z in zip(ran.outputs, outputs, strict=True)]
        moved = [np.maximum(m, d) for m, d in zip(moved, moves, strict=True)]
    if not ran.node.op.elementwise:  # of many terms: a few moves may cancel by chance
        moved = [np.maximum(m, _typical(m)) for m in moved]
    factor = SLACK * np.sqrt(terms(ran))
    return [factor * (_last_bits(y) + m) for y, m in zip(ran.outputs, moved, strict=True)]


def noise(question: Evaluation) -> dict[Tensor, Array]:
    """How far all values may be from what they are, where every node rounds as it likes.

    Runs the graph again and again, each result moved by its last bits [Parker 1997, "Monte Carlo
    arithmetic"].
    """
    rng = np.random.default_rng(0)
    plain = _run(question, None)
    distances = {t: np.zeros(np.shape(a)) for t, a in plain.items()}
    for _ in range(MOVES):
        for t, array in _run(question, rng).items():
            distances[t] = np.maximum(distances[t], distance(plain[t], array))
    return {
        t: SLACK * (np.maximum(m, _typical(m)) + _last_bits(plain[t])) for t, m in distances.items()
    }


def terms(ran: Ran) -> float:
    """About how many numbers one number of the result is made of; 1 for element-wise ops."""
    if ran.node.op.elementwise:
        return 1.0
    sizes = sorted([max(np.size(a), 1) for a in ran.inputs], reverse=True)
    if not sizes:
        return 1.0
    out = max([1, *(np.size(a) for a in ran.outputs)])
    longest = max([1, *(n for a in ran.inputs for n in np.shape(a))])
    folded = sizes[0] / out
    product = np.sqrt(sizes[0] * sizes[1] / out) if len(sizes) > 1 else 1.0
    return float(max(longest, folded, product))


def distance(a: Array, b: Array) -> Array:
    """|a - b| as float64; 0 where both are the same NaN or infinity, inf where only one is."""
    a, b = np.asarray(a), np.asarray(b)
    wide = np.complex128 if "c" in (kind_of(a.dtype), kind_of(b.dtype)) else np.float64
    with np.errstate(all="ignore"):
        difference = np.asarray(np.abs(a.astype(wide) - b.astype(wide)))
        same = (a == b) | ((a != a) & (b != b))
    if kind_of(a.dtype) in "biu":
        difference = np.maximum(difference, 1.0)  # large integers may be one float64
    return np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference))


def _unless_lost(y: Array, z: Array) -> Array:
    """distance(y, z), but 0 where only the move made a NaN: such a move tells nothing."""
    lost = np.isnan(z) if is_inexact(np.asarray(z).dtype) else False
    return np.where(lost, 0.0, distance(y, z))


def _moves(ran: Ran) -> Iterator[Sequence[Array]]:
    """The results for inputs moved by their last bits: all up, in turns, and at random.

    Constants are exact (an exponent of 2.0 stays that), and so is what an op only compares.
    """
    pairs, jumps = zip(ran.node.inputs, ran.inputs, strict=True), ran.node.op.derivative.jumps
    floating = [i for i, (t, a) in enumerate(pairs) if i not in jumps and _rounds(t, np.asarray(a))]
    if not floating or not ran.node.op.pure:
        return
    rng = np.random.default_rng(0)
    for how in range(MOVES):
        inputs = list(ran.inputs)
        for turn, i in enumerate(floating):
            a = np.asarray(inputs[i])
            signs = np.asarray((1, (-1) ** turn)[how] if how < 2 else _signs(rng, a.shape))
            inputs[i] = _moved(a, signs)
        with np.errstate(all="ignore"):
            made = KERNELS.of(ran.node.op)(*inputs)
        yield made if len(ran.node.outputs) > 1 else (made,)


def _run(question: Evaluation, rng: np.random.Generator | None) -> dict[Tensor, Array]:
    """All values; where rng is given, of a run whose numbers are all moved at random."""
    held = {t: _jittered(t, a, (), 1.0, rng) for t, a in question.given.items()}
    with np.errstate(all="ignore"):
        for node in question.program.nodes:
            inputs = tuple([held[t] for t in node.inputs])
            made = KERNELS.of(node.op)(*inputs)
            outputs = tuple(made) if len(node.outputs) > 1 else (made,)
            spread = np.sqrt(terms(Ran(node, inputs, outputs)))
            for t, array in zip(node.outputs, outputs, strict=True):
                held.setdefault(t, _jittered(t, array, inputs, spread, rng))
    return held


def _jittered(
    t: Tensor,
    array: Array,
    inputs: Sequence[Array],
    spread: float,
    rng: np.random.Generator | None,
) -> Array:
    """The array with its last bits moved, but for numbers that were copied from an input."""
    array = np.asarray(array)
    if rng is None or not _rounds(t, array):
        return array
    moved = _moved(array, _signs(rng, array.shape) * spread)
    for read in inputs:
        if np.asarray(read).dtype == array.dtype:
            moved = np.where(np.isin(array, read), array, moved)
    return moved


def _rounds(t: Tensor, array: Array) -> bool:
    return is_inexact(array.dtype) and t.node.type != "Constant"


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(0, 2, shape) * 2.0 - 1.0


def _moved(a: Array, by: Array) -> Array:
    """a * (1 + by * eps), in the dtype of a."""
    wide = np.complex128 if kind_of(a.dtype) == "c" else np.float64
    moved: Array = np.asarray(a.astype(wide) * (1.0 + by * limits_of(a.dtype).eps))
    return moved.astype(a.dtype)


def _last_bits(a: Array) -> Array:
    """eps |a| where that is finite; 0 for what is not floating."""
    a = np.asarray(a)
    if not is_inexact(a.dtype):
        return np.zeros(a.shape)
    bits = np.abs(a).astype(np.float64) * float(limits_of(a.dtype).eps)
    return np.where(np.isfinite(bits), bits, 0.0)


def _typical(moved: Array) -> float:
    """The root of the mean square of what is finite."""
    finite = moved[np.isfinite(moved)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
