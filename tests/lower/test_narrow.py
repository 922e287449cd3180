"""Programs of double precision as programs of single precision."""

import numpy as np

import graphgrad as gg
from graphgrad.lower.narrow import narrow


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
