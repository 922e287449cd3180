"""Models with open axes, loaded as they are: onnxruntime at several sizes, and known lengths.

A case is the text of nodes that read an image x and make y. Of its shape s are the height n, half
of it, and the height as a float; a filter w, and constants: {1, 2} is a vector, {=1} a number.
"""

import re

import numpy as np
import pytest

import graphgrad as gg

from .making import onnx, stored

onnxruntime = pytest.importorskip("onnxruntime")

QUIET = onnxruntime.SessionOptions()
QUIET.log_severity_level = 3
NAMES = ("N, 2, H, W", "?, 2, ?, ?")
SIZES = [(2, 2, 5, 7), (1, 2, 4, 6), (3, 2, 8, 5), (1, 2, 1, 3)]
LONG = [(2, 2, 5, 7), (1, 2, 6, 6), (3, 2, 8, 5), (1, 2, 9, 10)]
EVEN = [(1, 2, 4, 6), (2, 2, 2, 2), (3, 2, 8, 4), (1, 2, 6, 10)]
FILTERS = np.random.default_rng(0).normal(size=(2, 2, 3, 2))
SHAPE = """
    s = Shape(x)
    n = Shape <start = 2, end = 3> (x)
    half = Div(n, {2})
    number = Squeeze(n)
    float = Cast <to = 1> (number)
"""
LARGER = "m = Mul(s, {1, 1, 2, 1}) k = Add(m, {0, 0, 3, 1}) y = Resize <%s> (x, , , k)"
SCALED = "y = Resize <%s> (x, , {1., 1., 1.5, 0.5})"
FLOOR = ', nearest_mode = "floor"'
ASIDE = "widths = Concat <axis = 0> ({0, 0}, half, {1, 0, 0}, half, {2}) y = Pad <%s> (x, widths)"
CHOICE = """
    c = %s
    y = If (c) <then_branch = a () => (float a) {a = %s}, else_branch = b () => (float b) {b = %s}>
"""
SQUEEZE = CHOICE % ("Equal(number, {=1})", "Squeeze(x, {2})", "Identity(x)")
UP = """
    p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
    u = Resize <mode = "nearest"> (p, , {1., 1., 2., 2.})
    y = Add(x, u)
"""


def resizing(mode, places, more=""):
    return f'mode = "{mode}", coordinate_transformation_mode = "{places}"{more}'


CASES = {
    **{
        f"{mode} {places} {i}": (text % resizing(mode, places), SIZES)
        for mode in ("nearest", "linear", "cubic")
        for places in ("half_pixel", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric")
        for i, text in enumerate((LARGER, SCALED))
    },
    **{
        how: (LARGER % resizing("nearest", "asymmetric", f', nearest_mode = "{how}"'), SIZES)
        for how in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    },
    "align_corners": (LARGER % resizing("linear", "align_corners"), SIZES),
    "exclude": (SCALED % resizing("cubic", "half_pixel", ", exclude_outside = 1"), SIZES),
    "coefficient": (LARGER % resizing("cubic", "asymmetric", ", cubic_coeff_a = -0.5"), SIZES),
    "antialias": (SCALED % resizing("linear", "half_pixel", ", antialias = 1"), LONG),
    "region": (
        LARGER.replace("x, , ,", "x, {0., 0., 0.125, 0.25, 1., 1., 0.75, 1.5}, ,")
        % resizing("linear", "tf_crop_and_resize", ", extrapolation_value = -7.0"),
        SIZES,
    ),
    "upsample": ("y = Upsample (x, {1., 1., 2., 1.5})", SIZES, 9),
    "tile": ("r = Concat <axis = 0> (half, {1, 0, 2}) y = Tile(x, r)", SIZES),
    "expand": ("m = ReduceMean <keepdims = 1> (x, {2}) y = Expand(m, s)", SIZES),
    "pad": (ASIDE % 'mode = "constant"', SIZES),
    "edge": (ASIDE % 'mode = "edge"', SIZES),
    "pad of PyTorch": (
        """w0 = Concat <axis = 0> ({1}, half, {0}, half, {0, 0, 0, 0}) w1 = Reshape(w0, {-1, 2})
        w2 = Slice(w1, {-1}, {-9223372036854775807}, {0}, {-1}) w3 = Transpose <perm = [1, 0]> (w2)
        w4 = Reshape(w3, {-1}) y = Pad(x, w4)""",
        SIZES,
    ),
    "slice": ("y = Slice(x, half, {9223372036854775807}, {2})", SIZES),
    "backward": ("y = Slice(x, {-1}, {-4}, {2}, {-1})", SIZES),
    "from before the front": ("y = Slice(x, {-2}, {-4}, {2}, {-1})", SIZES),
    "split": ("a, b = Split <axis = 3, num_outputs = 2> (x) y = Concat <axis = 3> (b, a)", SIZES),
    "split by lengths": (
        """rest = Sub(n, half) parts = Concat <axis = 0> (half, rest)
        a, b = Split <axis = 2> (x, parts) y = Concat <axis = 2> (b, a, b)""",
        SIZES,
    ),
    "nearest ties": (
        "c = Shape <end = 2> (x) k = Concat <axis = 0> (c, {21, 5}) "
        f"y = Resize <{resizing('nearest', 'asymmetric', FLOOR)}> (x, , , k)",
        [(1, 2, 35, 3), (2, 2, 14, 25)],
    ),
    "range": ("r = Range({=1.}, float, {=2.}) y = Neg(r)", SIZES),
    "constant of shape": ("y = ConstantOfShape <value = float[1] {3}> (s)", SIZES),
    "reshape": ("y = Reshape(x, {0, -1})", SIZES),
    "transposed": ("y = ConvTranspose <strides = [2, 1], pads = [1, 0, 0, 0]> (x, w)", SIZES),
    "same": ('y = ConvTranspose <strides = [2, 2], auto_pad = "SAME_LOWER"> (x, w)', SIZES),
    "lower": ('y = Conv <strides = [2, 1], auto_pad = "SAME_LOWER"> (x, w)', SIZES),
    **{
        f"{kind} {named}": (f"y = {kind} <kernel_shape = [3, 2], {attributes}> (x)", LONG)
        for kind in ("AveragePool", "LpPool", "MaxPool")
        for named, attributes in {
            "ceil": "strides = [2, 3], ceil_mode = 1, pads = [1, 0, 1, 0]",
            "dilated": "strides = [2, 1], dilations = [2, 1], ceil_mode = 1",
            "lower": 'strides = [2, 1], auto_pad = "SAME_LOWER"',
        }.items()
    },
    "AveragePool borders": (
        """y = AveragePool <kernel_shape = [3, 2], strides = [3, 2], ceil_mode = 1,
        count_include_pad = 1, pads = [1, 0, 1, 1]> (x)""",
        LONG,
    ),
    "grid": (
        """count = Shape <end = 1> (x) m = Concat <axis = 0> (count, {2, 3})
        t = Reshape({0.9, -0.2, 0.1, 0.2, 0.9, 0.}, {1, 2, 3}) theta = Expand(t, m)
        g = AffineGrid(theta, s) y = GridSample(x, g)""",
        SIZES,
    ),
    "space to depth": ("y = SpaceToDepth <blocksize = 2> (x)", EVEN),
    "depth to space": ("c = Concat <axis = 1> (x, x) y = DepthToSpace <blocksize = 2> (c)", SIZES),
    "eye": ("r = Reshape(x, {0, -1}) y = EyeLike <dtype = 1, k = 1> (r)", SIZES),
    "reverse": (
        """count = Shape <end = 1> (x) ends = ConstantOfShape <value = int64[1] {2}> (count)
        r = Transpose <perm = [2, 0, 1, 3]> (x) y = ReverseSequence(r, ends)""",
        EVEN,
    ),
    "if": (CHOICE % ("Greater(number, {=4})", "Neg(x)", "Exp(x)"), SIZES),
    "squeeze": (SQUEEZE, [(2, 2, 1, 7), (1, 2, 1, 1), (3, 2, 1, 2)]),
    "lengths that may be equal": (UP, EVEN),
}
SMOOTH = [name for name in CASES if name not in ("range", "constant of shape", "eye", "grid")][::2]
RUNS = {
    "H - 1 is no H": (UP, (1, 2, 5, 6), "where H is 5, these are 5 and 4"),
    "2 is no 1": (SQUEEZE, (1, 2, 2, 3), "only length 1 can go"),
    "1 would go": ("y = Squeeze(x)", (1, 2, 2, 3), "would take a length of 1, of axis 0"),
    "7 are no 5": ("y, z = Split <axis = 2> (x, {2, 3})", (1, 2, 7, 3), "has 42 elements"),
}
REFUSED = {
    "antialias": (LARGER % 'antialias = 1, mode = "linear"', "antialias .* from H"),
    "scale": ("y = Resize (x, , {1., 1., 1.7, 1.})", r"scale 1.7\d* .* not a multiple of 1/1024"),
    "output_shape": ("y = ConvTranspose <output_shape = [9, 9]> (x, w)", "it crops H - 7 elements"),
    "fractions": ("y = Range({=0.5}, float, {=1.})", "its step is not an integer"),
    "floats": (
        "c = Mul(float, {=0.5}) y = Range({=0.}, c, {=1.})",
        r"computed from .* run time \(H\)",
    ),
    "below 0": ("p = Sub(s, {1, 2, 8, 4}) y = Pad(x, p, , {2, 3})", "by N - 1, which may be neg"),
    "ranks": (CHOICE % ("Less(n, {4})", "Flatten(x)", "Identity(x)"), "it chooses by H < 4"),
}


def model_of_text(text, dims, opset=20, dtype="float"):
    """The model, in which floats but scales are of a dtype."""
    weights = [stored("w", FILTERS.astype("float32" if dtype == "float" else dtype))]

    def known(match):
        name, numbers = f"k{len(weights)}", match[1].strip("=").split(",")
        array = np.array([float(n) if "." in match[1] else int(n) for n in numbers])
        array = array.astype("float32") if array.dtype == float else array
        weights.append(stored(name, array[0] if match[1][0] == "=" else array))
        return name

    text = SHAPE + text if opset == 20 else text
    nodes = re.sub(r"(?<!\] )\{(=?[-\d., ]+)\}", known, text)
    z = ", float z" if "z =" in nodes else ""
    head = f'<ir_version: 10, opset_import: ["" : {opset}]> g ({dtype}[{dims}] x) => (float y{z})'
    model = onnx.parser.parse_model(f"{head} {{ {nodes} }}")
    model.graph.initializer.extend(weights)
    return model


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_onnxruntime(name):
    """Of one program, at odd, even and small sizes."""
    text, sizes, *opset = CASES[name]
    model = model_of_text(text, NAMES[len(name) % 2], *opset)
    here, there = (
        gg.onnx.load(model),
        onnxruntime.InferenceSession(model.SerializeToString(), QUIET),
    )
    run = gg.compile(here.inputs["x"], here.outputs["y"], backend="numpy")
    for shape in sizes:
        x = np.random.default_rng(1).normal(size=shape).astype("float32")
        (wanted,), found = there.run(None, {"x": x}), run(x)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_scales_are_those_of_float32(mode):
    """10 by 0.7 is 7, and a third of three thirds the first place of the second."""
    how = ', nearest_mode = "floor"' if mode == "nearest" else ""
    places = resizing(mode, "asymmetric", how)
    model = model_of_text(
        f"y = Resize <{places}> (x, , {{1., 1., 0.7, 0.33333334}})", "1, 2, 10, 9"
    )
    x = np.random.default_rng(1).normal(size=(1, 2, 10, 9)).astype("float32")
    session = onnxruntime.InferenceSession(model.SerializeToString(), QUIET)
    (wanted,), found = session.run(None, {"x": x}), gg.onnx.load(model)(x)
    assert found.shape == wanted.shape == (1, 2, 7, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def weighed(model):
    """A program of a weighted sum of y, and its gradient."""
    x, y = model.inputs["x"], model.outputs["y"]
    with model.graph:
        places = gg.cumsum(gg.ones_like(gg.reshape(y, (-1,))))
        total = gg.sum(gg.reshape(y, (-1,)) * gg.cos(1.7 * places))
        return gg.compile(x, [total, gg.gradients(total, x)], backend="numpy")


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_those_of_known_lengths(name):
    """And of differences, in float64."""
    text, sizes, *opset = CASES[name]
    model = model_of_text(text, NAMES[0], *opset, dtype="double")
    run = weighed(gg.onnx.load(model))
    for shape in sizes[:3]:
        x, along = np.random.default_rng(2).normal(size=(2, *shape))
        dx = run(x)[1]
        known = weighed(gg.onnx.load(model, shapes={"x": shape}))(x)[1]
        np.testing.assert_allclose(dx, known, rtol=1e-9, atol=1e-9)
        ahead, behind = (run(x + step * along)[0] for step in (1e-6, -1e-6))
        slope = (ahead - behind) / 2e-6
        np.testing.assert_allclose(slope, np.sum(dx * along), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", RUNS)
def test_lengths_that_do_not_fit_end_a_run(name):
    text, shape, words = RUNS[name]
    model = gg.onnx.load(model_of_text(text, NAMES[0]))
    with pytest.raises(gg.ShapeError, match=words):
        model(np.ones(shape, "float32"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_only_a_run_knows_is_refused(name):
    """With the advice to give the lengths, which helps."""
    text, words = REFUSED[name]
    model = model_of_text(text, NAMES[0])
    with pytest.raises(
        gg.FileError, match=words + r".*Pass the lengths of the inputs with shapes="
    ):
        gg.onnx.load(model)
    gg.onnx.load(model, shapes={"x": (1, 2, 8, 4)})
