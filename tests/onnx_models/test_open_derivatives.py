"""Derivatives of models with open axes: at every size what they are with known lengths."""

import re

import numpy as np
import pytest

import graphgrad as gg

from .making import onnx, stored
from .test_differentiate import near, run

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
SHAPES = {"w": (4, 2, 3, 2), "g": (4, 1, 3, 2), "d": (2, 3, 3, 2), "v": (3, 2, 3, 3)}
SHAPES |= {"u": (2, 3, 2, 2)}
WEIGHTS = {n: RNG.normal(size=shape).astype("float32") for n, shape in SHAPES.items()}
SIZES = [(6, 7), (5, 4), (9, 8), (3, 10)]
CASES = {
    "same": 'h = Conv <auto_pad = "SAME_UPPER", strides = [2, 3]> (x, w)',
    "same of one": 'h = Conv <auto_pad = "SAME_UPPER", dilations = [2, 1]> (x, w)',
    "same below": 'h = Conv <auto_pad = "SAME_LOWER", strides = [2, 3]> (x, w)',
    "uneven": "h = Conv <pads = [1, 0, 2, 1], strides = [2, 3]> (x, w)",
    "groups": "h = Conv <group = 2, pads = [1, 0, 2, 1], strides = [2, 1]> (x, g)",
    "groups, same": 'h = Conv <group = 2, auto_pad = "SAME_UPPER", strides = [2, 2]> (x, g)',
    "transposed": "h = ConvTranspose <strides = [2, 3], pads = [1, 0, 0, 1]> (x, d)",
    "transposed, same": 'h = ConvTranspose <strides = [2, 2], auto_pad = "SAME_UPPER"> (x, d)',
    "max": 'h = MaxPool <kernel_shape = [3, 2], auto_pad = "SAME_UPPER", strides = [2, 2]> (x)',
    "max, ceil": "h = MaxPool <kernel_shape = [2, 2], ceil_mode = 1, strides = [2, 3]> (x)",
    "max, apart": "h = MaxPool <kernel_shape = [2, 2], dilations = [2, 1]> (x)",
    "mean": 'h = AveragePool <kernel_shape = [3, 2], auto_pad = "SAME_UPPER"> (x)',
    "mean, ceil": "h = AveragePool <kernel_shape = [2, 2], ceil_mode = 1, strides = [2, 2]> (x)",
    "mean, borders": "h = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
    "two": """a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, v) b = Tanh(a)
        h = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (b, u)""",
    "resize": 'h = Resize <mode = "linear"> (x, , {1., 1., 1.5, 0.5})',
    "like": """p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) s = Shape(x)
        r = Resize <mode = "cubic"> (p, , , s) h = Add(x, r)""",
    "tile": "h = Tile(x, {1, 2, 1, 3})",
    "expand": "s = Shape(x) m = ReduceMean <keepdims = 1> (x, {2}) e = Expand(m, s) h = Mul(e, x)",
    "rows": "r = Reshape(x, {0, -1, 1, 1}) h = CumSum(r, {=1})",
    "elements": """s = Shape(x) z = ConstantOfShape <value = int64[1] {1}> (s)
        h = GatherElements <axis = 3> (x, z)""",
    "sorted": """n = Shape <start = 3> (x) a, i = TopK <axis = 3> (x, n) h = CumSum(a, {=3})""",
    "pixels": """c = Concat <axis = 1> (x, x) h = DepthToSpace <blocksize = 2> (c)""",
    "norm": "h = MeanVarianceNormalization(x)",
}


def model_of_text(text):
    """The model of a case, in which {1, 2} is a vector and {=1} a number."""
    for one in ("{=1}", "{=3}"):
        text = text.replace(one, f"place{one[2]}")
    head = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[N, 2, H, W] x) => (float[a, b, c, e] y)'
    )
    vectors = re.findall(r"[(,] *(\{[\d., -]+\})", text)
    for i, vector in enumerate(dict.fromkeys(vectors)):
        kind = "float" if "." in vector else "int64"
        made = f"k{i} = Constant <value = {kind}[{vector.count(',') + 1}] {vector}> ()"
        text = f"{made} {text.replace(vector, f'k{i}')}"
    proto = onnx.parser.parse_model(f"{head} {{ {text} y = Tanh(h) }}")
    read = {name for node in proto.graph.node for name in node.input}
    places = {f"place{i}": np.array(i) for i in (1, 3)}
    known = {**WEIGHTS, **places}
    proto.graph.initializer.extend(stored(n, a) for n, a in known.items() if n in read)
    return proto


FIRST = ("groups, same", "max, ceil")
LATER = [pytest.param(name, marks=pytest.mark.ci) for name in CASES if name not in FIRST]


@pytest.mark.parametrize("name", [*FIRST, *LATER])
def test_open_lengths_are_those_of_the_run(name, tmp_path):
    proto = model_of_text(CASES[name])
    weights = [t.name for t in proto.graph.initializer if t.name in WEIGHTS]
    for kind in ("gradient", "jvp", "hvp"):
        options = {"wrt": ["x", *weights], "kind": kind}
        opened = gg.onnx.differentiate(proto, path=tmp_path / "d.onnx", **options)
        for high, wide in SIZES:
            shape = (2, 2, high, wide)
            known = gg.onnx.differentiate(proto, shapes={"x": shape}, **options)
            given = {n: shape if n.endswith("x") else SHAPES[n[10:]] for n in opened.inputs}
            feeds = {n: RNG.normal(size=s).astype("float32") for n, s in given.items()}
            found = run(tmp_path / "d.onnx", feeds)
            for value, expected in zip(found.values(), known(*feeds.values()), strict=True):
                near(value, expected)
