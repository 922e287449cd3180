"""Laws over the registry: what an op says of its kernel is so."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import graphgrad as gg
from graphgrad.ir.program import Program
from graphgrad.ir.strided import contiguous
from graphgrad.lower.alias import is_view
from graphgrad.lower.decompose import decompose
from graphgrad.ops.control import interpret

from ..each import each
from .cases import CASES, placed
from .test_types import close

WIDE = (0.0, -0.0, 1e-300, -0.5, 0.7, 1.0, -3.0, 40.0, -800.0, np.inf, -np.inf, np.nan)


def run(op, arrays):
    """The outputs of its kernel."""
    with np.errstate(all="ignore"):
        found = op.kernel(np, *arrays)
    return found if isinstance(found, tuple) else (found,)


@each(CASES)
def test_what_it_makes_is_in_its_range(op, arrays):
    least, most = op.value_range
    if (least, most) == (-np.inf, np.inf):
        return
    tried = [arrays]
    if op.elementwise:
        tried += [[np.array(WIDE)] * len(arrays), [np.array(WIDE), *[np.ones(())] * len(arrays)]]
    for xs in tried:
        for y in run(op, xs[: len(arrays)]):
            assert y.dtype.kind != "f" or not ((y < least) | (y > most)).any()
            assert least < 0 or y.dtype.kind != "f" or not np.signbit(y[~np.isnan(y)]).any()


@each(CASES)
def test_its_operands_may_change_places_where_it_says_so(op, arrays):
    if not op.commutes and op.mirror_type is None:
        return
    other = op if op.commutes else gg.op_types()[op.mirror_type]()
    assert op.commutes or other.mirror_type == op.type
    if any(a.dtype.kind == "c" for a in arrays):
        return  # of these the order may change a rounding
    for a, b in zip(run(op, arrays), run(other, arrays[::-1]), strict=True):
        assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())


@each(CASES)
def test_its_negation_is_the_op_that_it_says(op, arrays):
    if op.negated_type is None:
        return
    other = gg.op_types()[op.negated_type]()
    assert other.negated_type == op.type
    for a, b in zip(run(op, arrays), run(other, arrays), strict=True):
        np.testing.assert_array_equal(~a, b)


@each(CASES)
def test_what_it_makes_of_its_own_output(op, arrays):
    if not (op.idempotent or op.involution):
        return
    wide = op.elementwise and arrays[0].dtype.kind == "f"
    for x in [*arrays, *([np.array(WIDE)] if wide else ())]:
        if x.dtype.kind == "c" and op.idempotent:
            continue
        (once,) = run(op, [x])
        (twice,) = run(op, [once])
        wanted = once if op.idempotent else x
        assert (twice.dtype, twice.tobytes()) == (wanted.dtype, wanted.tobytes())
        assert not op.rounds or np.array_equal(once, np.trunc(once), equal_nan=True)


@each(CASES)
def test_elements_stay_in_order_where_it_reshapes(op, arrays):
    if op.reshapes:
        (y,) = run(op, arrays)
        np.testing.assert_array_equal(y.ravel(), arrays[0].ravel())


REDUCED = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}
REDUCED |= {"any": np.any, "all": np.all}


@each(CASES)
def test_it_reduces_with_what_it_says_over_the_axes_it_says(op, arrays):
    if op.reduction is None:
        return
    (x,) = arrays
    (y,) = run(op, arrays)
    wanted = REDUCED[op.reduction](x, axis=op.reduced_axes(x.shape))
    np.testing.assert_allclose(y, np.reshape(wanted, y.shape), rtol=1e-6)


@each(CASES)
def test_its_elements_lie_where_it_says(op, arrays):
    view = op.strided(contiguous(arrays[0].shape), run(op, arrays)[0].shape) if arrays else None
    if view is not None:
        (y,) = run(op, arrays)
        bytes_ = [s * y.itemsize for s in view.strides]
        flat = np.ascontiguousarray(arrays[0]).reshape(-1)[view.offset :]
        np.testing.assert_array_equal(y, as_strided(flat, view.shape, bytes_) if y.size else y)


@each(CASES)
def test_it_does_the_same_where_it_knows_the_shape(op, arrays):
    _, node = placed(op, arrays)
    alone = op.static(tuple([t.type for t in node.inputs]))
    if alone is not None:
        assert [t.type for t in placed(alone, arrays[:1])[1].outputs] == [node.outputs[0].type]
        np.testing.assert_array_equal(run(alone, arrays[:1])[0], run(op, arrays)[0])


@each(CASES)
def test_an_alias_is_a_view(op, arrays):
    _, node = placed(op, arrays)
    if is_view(node):
        for y in run(op, arrays):
            assert y.size == 0 or y.ndim == 0 or np.shares_memory(y, arrays[0])


@each(CASES)
def test_its_parts_compute_what_it_does(op, arrays):
    xs, node = placed(op, arrays)
    parts = decompose(Program(xs, list(node.outputs)))
    for got, want in zip(interpret(parts, np, arrays), run(op, arrays), strict=True):
        close(got, want)


@each(CASES)
def test_its_onnx_form_leads_back_to_it(op, arrays):
    if op.onnx is None:
        return
    if set(op.fields) <= set(op.onnx.attributes.values()):
        assert op.onnx.from_attributes(type(op), op.onnx.to_attributes(op)) is op
        with pytest.raises(gg.GraphGradError, match=f"what strange of ONNX's {op.onnx.name} is"):
            op.onnx.from_attributes(type(op), {"strange": 1})
    else:
        with pytest.raises(gg.GraphGradError, match=f"{op.type}.onnx a form"):
            op.onnx.to_attributes(op)
