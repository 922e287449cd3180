"""Laws: what an op says of its kernel is so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..base.errors import GraphGradError
from ..base.kinds import is_floating, kind_of
from ..ir.op import OP_TYPES, Op
from ..ir.program import Program
from ..ir.strided import contiguous
from ..lower.alias import is_view
from ..lower.decompose import decompose
from ..ops.control import interpret
from .trying import Arrays, NotTried, close, placed, require, run_kernel

WIDE = np.array((0.0, -0.0, 1e-300, -0.5, 0.7, 1.0, -3.0, 40.0, -800.0, np.inf, -np.inf, np.nan))
REDUCED = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}
REDUCED |= {"any": np.any, "all": np.all}


def _said(fact: Any, what: str) -> None:
    if not fact:
        raise NotTried(f"it declares no {what}")


def _same_bits(a: Any, b: Any, when: str) -> None:
    require((a.dtype, a.tobytes()) == (b.dtype, b.tobytes()), f"{when}: {a} is not {b}")


def value_range(op: Op, arrays: Arrays) -> None:
    """What it makes is in its range, and no -0.0 where that begins at 0."""
    least, most = op.traits.value_range
    _said((least, most) != (-np.inf, np.inf), "its range")
    if not any(is_floating(t.dtype) for t in placed(op, arrays)[1].outputs):
        raise NotTried("a range is of floating numbers")
    tried = [list(arrays)]
    if op.elementwise:
        tried += [[WIDE] * len(arrays), [WIDE, *[np.ones(())] * (len(arrays) - 1)]]
    for xs in tried:
        for y in run_kernel(op, xs):
            if is_floating(y.dtype):
                require(not ((y < least) | (y > most)).any(), f"{y} leaves {op.traits.value_range}")
                signed = least >= 0 and np.signbit(y[~np.isnan(y)]).any()
                require(not signed, f"{y} has -0.0, and its range begins at {least}")


def operands_change_places(op: Op, arrays: Arrays) -> None:
    """x op y is y op x, or y mirror x, bit for bit, where it says so."""
    _said(op.traits.commutes or op.traits.mirror_type, "changed places")
    other = op if op.traits.commutes else _partner(op, "mirror_type")
    if any(kind_of(a.dtype) == "c" for a in arrays):
        raise NotTried("of complex numbers the order may change a rounding")
    for a, b in zip(run_kernel(op, arrays), run_kernel(other, arrays[::-1]), strict=True):
        _same_bits(a, b, "with its operands in the other order")


def negation(op: Op, arrays: Arrays) -> None:
    """not (x op y) is what the op makes that it names."""
    _said(op.traits.negated_type, "its negation")
    other = _partner(op, "negated_type")
    for a, b in zip(run_kernel(op, arrays), run_kernel(other, arrays), strict=True):
        np.testing.assert_array_equal(~a, b)


def _partner(op: Op, fact: str) -> Op:
    """The op that it names there, which names it in turn."""
    other = OP_TYPES[getattr(op.traits, fact)]()
    back = getattr(other.traits, fact)
    require(back == op.type, f"{fact} is {other.type}, whose {fact} is {back}")
    return other


def its_own_output(op: Op, arrays: Arrays) -> None:
    """Of its own output it makes the same (idempotent) or its input (involution), bit for bit."""
    _said(op.traits.idempotent or op.traits.involution, "its own output")
    if kind_of(arrays[0].dtype) == "c" and op.traits.idempotent:
        raise NotTried("of complex numbers the last bits may change")
    wide = op.elementwise and is_floating(arrays[0].dtype)
    for x in [*arrays, *([WIDE] if wide else ())]:
        (once,) = run_kernel(op, [x])
        (twice,) = run_kernel(op, [once])
        _same_bits(twice, once if op.traits.idempotent else x, "applied twice")
        whole = not op.traits.rounds or np.array_equal(once, np.trunc(once), equal_nan=True)
        require(whole, f"{once} are not integers")


def order_of_elements(op: Op, arrays: Arrays) -> None:
    """Elements stay in row-major order where it reshapes."""
    _said(op.memory.reshapes, "their order")
    (y,) = run_kernel(op, arrays)
    np.testing.assert_array_equal(y.ravel(), arrays[0].ravel())


def reduction(op: Op, arrays: Arrays) -> None:
    """It reduces with what it says over the axes that it says."""
    _said(op.traits.reduction, "a reduction")
    assert op.traits.reduction is not None
    (x,) = arrays
    (y,) = run_kernel(op, arrays)
    wanted: Any = REDUCED[op.traits.reduction](x, axis=op.reduced_axes(x.shape))  # type: ignore[operator]
    np.testing.assert_allclose(y, np.reshape(wanted, y.shape), rtol=1e-6)


def strides(op: Op, arrays: Arrays) -> None:
    """Its elements lie in the memory of its input where it says."""
    _said(arrays, "inputs")
    (y, *_) = run_kernel(op, arrays)
    view = op.strided(contiguous(arrays[0].shape), y.shape)
    if view is None or not y.size:
        raise NotTried("it is not a view of elements")
    bytes_ = [s * y.itemsize for s in view.strides]
    flat = np.ascontiguousarray(arrays[0]).reshape(-1)[view.offset :]
    np.testing.assert_array_equal(y, as_strided(flat, view.shape, bytes_))


def where_shapes_are_known(op: Op, arrays: Arrays) -> None:
    """What it does where it knows the shape, it does with its first input alone."""
    _, node = placed(op, arrays)
    alone = op.static(tuple([t.type for t in node.inputs]))
    if alone is None:
        raise NotTried("it takes no shape from an input")
    types = [t.type for t in placed(alone, arrays[:1])[1].outputs]
    require(types == [node.outputs[0].type], f"{alone!r} promises {types}, not as {op!r}")
    np.testing.assert_array_equal(run_kernel(alone, arrays[:1])[0], run_kernel(op, arrays)[0])


def alias(op: Op, arrays: Arrays) -> None:
    """What is said to be a view of the first input is one."""
    looks = [y for y in run_kernel(op, arrays) if y.size and y.ndim]
    if not is_view(placed(op, arrays)[1]) or not looks:
        raise NotTried("it is not a view of elements")
    for y in looks:
        shared = np.shares_memory(y, arrays[0])
        require(shared, "it is said to be a view, but shares no memory with its input")


def parts(op: Op, arrays: Arrays) -> None:
    """What it is taken apart into computes what it does."""
    _said(type(op).decompose is not Op.decompose, "its decomposition")
    xs, node = placed(op, arrays)
    whole = Program(xs, list(node.outputs))
    apart = decompose(whole)
    if apart is whole:
        raise NotTried("it stays whole for these inputs")
    for got, want in zip(interpret(apart, np, arrays), run_kernel(op, arrays), strict=True):
        close(got, want)


def indices(op: Op, arrays: Arrays) -> None:
    """An index from -N to N - 1 is taken, another is an IndexError, of each that it says it has."""
    _said(op.index_inputs, "indices")
    for place, axis in op.index_inputs:
        length = arrays[0].shape[axis]
        for index in (-length - 1, -length, length - 1, length):
            tried = list(arrays)
            tried[place] = np.full_like(arrays[place], index)
            inside = -length <= index < length or not arrays[place].size
            require(_takes(op, tried) == inside, f"index {index} for axis {axis} of {length}")


def _takes(op: Op, arrays: Arrays) -> bool:
    """Whether the kernel raises no IndexError."""
    try:
        run_kernel(op, arrays)
    except IndexError:
        return False
    return True


def onnx_form(op: Op, arrays: Arrays) -> None:
    """Its form in ONNX leads back to it; attributes that have none, or are strange, are errors."""
    _said(op.onnx, "ONNX")
    onnx = op.onnx
    assert onnx is not None
    if set(op.fields) <= set(onnx.attributes.values()):
        back = onnx.from_attributes(type(op), onnx.to_attributes(op))
        require(back is op, f"its ONNX form leads to {back!r}")
        _refused(lambda: onnx.from_attributes(type(op), {"strange": 1}), "strange")
    else:
        _refused(lambda: onnx.to_attributes(op), f"{op.type}.onnx a form")
        require(type(op).to_onnx is not Op.to_onnx, f"{op.type} has no to_onnx for its attributes")


def _refused(what: Any, says: str) -> None:
    """BrokenLaw unless it is a GraphGradError that says so."""
    try:
        what()
    except GraphGradError as error:
        require(says in str(error), f"the error should say {says!r}: {error}")
    else:
        require(False, f"no error says {says!r}")
