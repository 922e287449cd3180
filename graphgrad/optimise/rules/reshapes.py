"""Transposes and reshapes: joined, cancelled, and taken into matrix products.

Neither moves across an element-wise node: a view is free, and one between two element-wise nodes
would keep them from being one loop. Every rewrite here keeps every bit.
"""

from __future__ import annotations

from itertools import pairwise

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ops.contract.products import MatMul
from ...ops.shape.reshaping import ExpandDims, Reshape, Squeeze, Transpose
from ..build import beside, instead
from ..facts import ints, settled_shape
from ..rule import NodeOf, RewriteRule, rule


def is_reshape(op: type[Op]) -> bool:
    """Whether nodes of an op class reshape what they read."""
    return op.memory.reshapes


# --- transposes --------------------------------------------------------------------------------


@rule(Transpose)
def transpose_to_the_same(node: NodeOf[Transpose]) -> Tensor | None:
    """x with its axes in the order they have -> x"""
    axes = node.op.axes
    return node.inputs[0] if axes == tuple(range(len(axes))) else None


@rule(Transpose)
def transpose_of_ones(node: NodeOf[Transpose]) -> Tensor | None:
    """x transposed, where only axes of length 1 move -> x reshaped"""
    (x,), (y,) = node.inputs, node.outputs
    moved = [a for a in node.op.axes if x.shape[a] != 1]
    still = x.type.static and all(a < b for a, b in pairwise(moved))
    return instead(node, Reshape(ints(y.shape)), x) if still else None


@rule(Transpose, of=Transpose)
def transpose_of_transpose(node: NodeOf[Transpose], inner: NodeOf[Transpose]) -> Tensor | None:
    """x with its axes permuted twice -> once, or not at all"""
    first, second = inner.op.axes, node.op.axes
    return instead(node, Transpose(tuple([first[a] for a in second])), *inner.inputs)


@rule(MatMul, over=Transpose)
def matmul_of_transpose(node: NodeOf[MatMul]) -> Tensor | None:
    """x^T @ y, x @ y^T -> the product that reads its operand so"""
    flags = [node.op.transpose_a, node.op.transpose_b]
    stack_by_matrix = node.inputs[0].ndim > 2 and node.inputs[1].ndim == 2
    for i, t in enumerate(node.inputs):
        op = t.node.op
        if type(op) is not Transpose or (i == 0 and stack_by_matrix):
            continue  # the rows of a stack are one matrix, but not if read so
        *rest, a, b = op.axes
        if a < b:
            continue
        order = (*rest, b, a)
        flags[i] = not flags[i]
        inputs = list(node.inputs)
        (inputs[i],) = t.node.inputs
        if order != tuple(range(len(order))):
            inputs[i] = beside(node, Transpose(order), inputs[i])
        return instead(node, MatMul(*flags), *inputs)
    return None


# --- reshapes ----------------------------------------------------------------------------------


@rule(fits=is_reshape)
def reshape_to_the_same(node: Node) -> Tensor | None:
    """x reshaped to its own shape -> x"""
    (x,), (y,) = node.inputs, node.outputs
    return x if x.type is y.type and x.type.static else None


@rule(Squeeze, of=ExpandDims)
def squeeze_of_expand_dims(node: NodeOf[Squeeze], inner: NodeOf[ExpandDims]) -> Tensor | None:
    """axes put in and taken out -> x"""
    (x,) = inner.inputs
    return x if inner.op.axes == node.op.axes and settled_shape(x) else None


@rule(ExpandDims, of=Squeeze)
def expand_dims_of_squeeze(node: NodeOf[ExpandDims], inner: NodeOf[Squeeze]) -> Tensor | None:
    """axes of length 1 taken out and put back -> x"""
    (x,) = inner.inputs
    return x if inner.op.axes == node.op.axes and settled_shape(x) else None


@rule(fits=is_reshape, of=is_reshape)
def reshape_of_reshape(node: Node, inner: Node) -> Tensor | None:
    """x reshaped twice -> once, or not at all"""
    (x,), (y,) = inner.inputs, node.outputs
    if not (y.type.static and x.type.static):
        return None  # the first may be an error when run
    return instead(node, Reshape(ints(y.shape)), x)


RESHAPING: tuple[RewriteRule, ...] = (
    transpose_to_the_same,
    transpose_of_ones,
    transpose_of_transpose,
    matmul_of_transpose,
    reshape_to_the_same,
    squeeze_of_expand_dims,
    expand_dims_of_squeeze,
    reshape_of_reshape,
)
