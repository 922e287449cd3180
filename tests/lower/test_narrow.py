"""Programs of double precision as programs of single precision."""

import numpy as np

import graphgrad as gg
from graphgrad.ir.build import build
from graphgrad.lower.narrow import narrow
from graphgrad.ops.base import Cast
from graphgrad.ops.per_example import PerExample


def test_every_op_computes_in_single_precision_and_integers_stay_what_they_are():
    with gg.Graph():
        i, z = gg.placeholder((3,), "int64"), gg.placeholder((3,), "complex128")
        y = gg.cast(i, "float64") * 2.0 + gg.full((3,), 0.5)
        w = gg.py_function(lambda i: i + 1, [i], [((3,), "int64")])
    plain = gg.Program([i, z], [y, gg.abs(z), w])
    found = narrow(plain)
    assert [n.type for n in found.nodes] == [n.type for n in plain.nodes]  # no casts beside them
    assert {t.dtype for n in found.nodes for t in n.outputs} == {np.dtype(d) for d in ("f4", "i8")}
    assert [t.dtype for t in found.inputs] == [np.dtype("i8"), np.dtype("c8")]
    assert found.outputs[2].node.op is w.node.op


def test_what_a_function_of_python_promises_is_of_single_precision():
    with gg.Graph():
        x = gg.placeholder((3,))
        y = gg.py_function(np.sin, [x], [((3,), "float64")])
    found = narrow(gg.Program([x], [y]))
    (node,) = found.nodes
    assert node.op.out_types == (found.inputs[0].type,)
    assert found.outputs == node.outputs


def test_what_a_node_waits_for_stays():
    with gg.Graph():
        x = gg.placeholder((3,))
        first, late = gg.exp(x), gg.sin(x)
        late.node.controls = (first.node,)
    first, late = narrow(gg.Program([x], [first, late])).nodes
    assert late.controls == (first,)


def test_an_op_that_runs_another_has_that_one_in_single_precision():
    with gg.Graph():
        n = gg.placeholder((2, 3), "int64")
        (y,) = build(PerExample(Cast(np.dtype("float64")), (True,)), (n,)).outputs
    (node,) = narrow(gg.Program([n], [y])).nodes
    assert node.outputs[0].dtype == np.dtype("float32")
