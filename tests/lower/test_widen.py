"""Programs with dtypes of 16 bits, as programs that compute in float32."""

import graphgrad as gg
from graphgrad.ir.program import Program
from graphgrad.lower.widen import widen


def test_what_has_more_bits_is_read_as_it_is():
    with gg.Graph():
        x, at = gg.placeholder((4, 3), "float16"), gg.placeholder((2,), "int64")
        wide = widen(Program([x, at], [gg.scatter_add(x, at, x[:2])]))
    (node,) = [n for n in wide.nodes if n.type == "ScatterAdd"]
    assert [str(t.dtype) for t in node.inputs] == ["float32", "int64", "float32"]
    assert node.inputs[1] is at
