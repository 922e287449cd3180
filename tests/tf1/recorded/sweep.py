"""Every op type at its edges: kinks, ties, both zeros, NaN, infinities, no elements, whole numbers.

TABLE has the calls of each op type, LEFT_OUT says why a type has none. Of a call are recorded its
values, its gradients for fixed weights, and the gradients of those. What raises is recorded with
where it does.
"""

from collections import namedtuple
from importlib import import_module

import numpy as np

from tests.tf1.recorded.running import encoded
from tests.tf1.recorded.saying import inner

Call = namedtuple("Call", ["name", "function", "inputs"])


def f(*values):
    """An array of float32."""
    return np.array(values, "float32")


def i(*values):
    """An array of int32."""
    return np.array(values, "int32")


def ramp(*shape, kind="float32"):
    """Different numbers of both signs."""
    n = int(np.prod(shape))
    return ((np.arange(n) * 7 % max(n, 1) - n / 3) / 4).reshape(shape).astype(kind)


def images(*shape):
    """Images with ties."""
    return (np.arange(int(np.prod(shape))) * 5 % 7).reshape(shape).astype("float32")


KINKS = f(-2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.5)
WILD = f(np.nan, np.inf, -np.inf)
WHOLE = i(-3, -1, 0, 2)
NONE = np.zeros((0,), "float32")
PLANE = np.zeros((0, 3), "float32")


def pairs(values, kind="float32"):
    """All pairs of some values, as two arrays."""
    a, b = np.meshgrid(np.array(values, kind), np.array(values, kind), indexing="ij")
    return a.reshape(-1), b.reshape(-1)


def call(path):
    """The function of that path in TensorFlow: "nn.relu"; in a module that is imported: "a:b"."""

    def function(tf, *args, **kwargs):
        module, _, name = path.rpartition(":")
        found = inner(tf, module) if module else tf
        for part in name.split("."):
            found = getattr(found, part)
        return found(*args, **kwargs)

    return function


def text(tf, word):
    """Text as `get_attr` gives it: TensorFlow 1 took it, TensorFlow 2 checks for text."""
    return word if tf.__name__.startswith("tensorflow") else word.encode()


def raw(op_type, names, **attrs):
    """One op of a type, made of inputs of these names."""

    def function(tf, *args):
        if not tf.__name__.startswith("tensorflow"):
            return import_module(f"{tf.__name__}.create").apply(op_type, *args, **attrs)
        return getattr(tf.raw_ops, op_type)(**dict(zip(names.split(), args, strict=True)), **attrs)

    return function


def unary(path, special=False):
    """The calls of a function of one tensor; special ones are not there in half precision."""
    function = path if callable(path) else call(path)
    return [
        Call("kinks", function, [KINKS]),
        Call("wild", function, [WILD]),
        Call("whole", function, [WHOLE]),
        Call("none", function, [PLANE]),
        Call("double", function, [np.array(0.3)]),
        *([] if special else [Call("half", function, [np.array([0.25, 0.75], "float16")])]),
    ]


VALUES = [-2.0, -1.0, -0.0, 0.0, 1.0, 2.5]


def binary(path, values=VALUES, whole=(-7, -2, 2, 3)):
    """The calls of a function of two tensors, which are broadcast."""
    function = path if callable(path) else call(path)
    return [
        Call("kinks", function, pairs(values)),
        Call("wild", function, pairs([np.nan, np.inf, -np.inf, 0.0, 1.0])),
        Call("whole", function, pairs(whole, "int32")),
        Call("whole by zero", function, [i(1, 2), i(0, 1)]),
        Call("broadcast", function, [ramp(2, 1) + 2.1, ramp(3) + 2.2]),
        Call("none", function, [PLANE, ramp(1, 3)]),
        Call("scalar", function, [np.array(1.5), np.array([0.5, 1.5])]),
        Call("misfit", function, [ramp(2), ramp(3)]),
        Call("mixed", function, [ramp(2), ramp(2, kind="float64")]),
    ]


def logical(path):
    """The calls of a function of truth values."""
    function, (a, b) = call(path), pairs([0, 1], "bool")
    return [Call("all", function, [a, b]), Call("float", function, [f(1.0), f(0.0)])]


def bits(path):
    """The calls of a function of bits."""
    function = call(path)
    return [
        Call("whole", function, [i(-5, 6, 7, 0), i(1, 2, 3, 4)]),
        Call("bytes", function, [np.array([200, 3], "uint8"), np.array([1, 6], "uint8")]),
        Call("float", function, [f(1.0), f(2.0)]),
    ]


def reduction(path):
    """The calls of a reduction."""
    function = call(path)
    ties = f([1.0, 3.0, 3.0], [0.0, 0.0, -2.0])

    def at(axis, keep=False):
        return lambda tf, x: function(tf, x, axis, keepdims=keep)

    return [
        Call("all", at(None), [ties]),
        Call("rows", at(1), [ties]),
        Call("kept", at([-1], True), [ties]),
        Call("both", at([0, 1]), [ties]),
        Call("no axes", at([]), [ties]),
        Call("none", at(0), [PLANE]),
        Call("none within", at(1), [PLANE]),
        Call("whole", at(0), [i([1, 2], [4, -8])]),
        Call("scalar", at(None), [np.float32(2.0)]),
        Call("wild", at(None), [WILD]),
        Call("beyond", at(2), [ties]),
        Call("twice", at([0, 0]), [ties]),
    ]


def truth(path):
    """The calls of a reduction of truth values."""
    function, x = call(path), np.array([[True, False], [True, True]])
    return [
        Call("all", function, [x]),
        Call("rows", lambda tf, x: function(tf, x, 1), [x]),
        Call("none", lambda tf, x: function(tf, x, 0), [np.zeros((0, 2), "bool")]),
        Call("float", function, [f(1.0)]),
        Call("beyond", lambda tf, x: function(tf, x, 3), [x]),
    ]


def place(path):
    """The calls of argmax and argmin."""
    function, ties = call(path), f([1.0, 3.0, 3.0], [0.0, 0.0, -2.0])
    return [
        Call("ties", lambda tf, x: function(tf, x, 1), [ties]),
        Call("columns", lambda tf, x: function(tf, x, -2), [ties]),
        Call("whole", lambda tf, x: function(tf, x, 0, output_type=tf.int32), [i(1, 5, 5)]),
        Call("beyond", lambda tf, x: function(tf, x, 2), [ties]),
        Call("none", lambda tf, x: function(tf, x, 0), [PLANE]),
        Call("none within", lambda tf, x: function(tf, x, 1), [PLANE]),
        Call("wild", lambda tf, x: function(tf, x, 0), [f(1.0, np.nan, np.inf)]),
    ]


def cumulative(path):
    """The calls of cumsum and cumprod."""
    function, x = call(path), f([1.0, 0.0, 3.0], [2.0, -1.0, 0.0])

    def how(axis, **kwargs):
        return lambda tf, x: function(tf, x, axis, **kwargs)

    return [
        Call("rows", how(1), [x]),
        Call("exclusive", how(0, exclusive=True), [x]),
        Call("reverse", how(1, reverse=True), [x]),
        Call("both", how(-1, exclusive=True, reverse=True), [x]),
        Call("beyond", how(2), [x]),
        Call("below", how(-3), [x]),
        Call("whole", how(0), [i(1, 2, 3)]),
        Call("none", how(0), [PLANE]),
        Call("positive", how(0), [np.array([0.5, 2.0, 3.0])]),
    ]


def complex_of(path):
    """The calls of a function of complex numbers."""
    function = call(path)
    z = np.array([1 + 2j, -0.5j, 0, -3], "complex64")
    return [Call("complex", function, [z]), Call("float", function, [f(1.0, -2.0)])]


def transform(path, shape, kind="complex64"):
    """The calls of a Fourier transform."""
    function = call(path)
    x = ramp(*shape).astype(kind)
    if kind == "complex64":
        x = x + 1j * x[..., ::-1] / 2
    return [Call("even", function, [x]), Call("odd", function, [x[..., :-1]])]


def pooled(path, rank=4):
    """The calls of a pooling."""
    function = call(path)
    x = images(1, 3, 3, 2) if rank == 4 else images(1, 2, 3, 3, 1)
    one, window = [1] * rank, [1, *[2] * (rank - 2), 1]

    def how(k, s, padding, **kwargs):
        return lambda tf, x: function(tf, x, k, s, padding, **kwargs)

    def as_bytes(tf, x):
        form = text(tf, "NHWC" if rank == 4 else "NDHWC")
        return function(tf, x, window, window, text(tf, "SAME"), data_format=form)

    return [
        Call("valid", how(window, one, "VALID"), [x]),
        Call("same", how(window, window, "SAME"), [x]),
        Call("bytes", as_bytes, [x]),
        Call("none", how(window, one, "VALID"), [x[:0]]),
        Call("wide", how([1, *[5] * (rank - 2), 1], one, "VALID"), [x]),
        Call("bad padding", how(window, one, "FULL"), [x]),
        Call("wild", how(window, one, "VALID"), [np.where(x == 3, np.inf, x)]),
    ]


def convolved(path, x, filters, rank=4):
    """The calls of a convolution."""
    function = call(path)
    one, two = [1] * rank, [1, *[2] * (rank - 2), 1]

    def how(s, padding, **kwargs):
        return lambda tf, x, w: function(tf, x, w, s, padding, **kwargs)

    def as_bytes(tf, x, w):
        form = text(tf, "NHWC" if rank == 4 else "NDHWC")
        return function(tf, x, w, one, text(tf, "SAME"), data_format=form)

    return [
        Call("valid", how(one, "VALID"), [x, filters]),
        Call("same", how(two, "SAME"), [x, filters]),
        Call("bytes", as_bytes, [x, filters]),
        *([Call("none", how(one, "SAME"), [x[:0], filters])] if path == "nn.conv2d" else []),
        Call("channels", how(one, "SAME"), [np.concatenate([x, x[..., :1]], -1), filters]),
        Call("wide", how(one, "VALID"), [x[:, :1], filters]),
    ]


SQUARE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]])
LOWER = np.tril(SQUARE)


def matrix(function, x=SQUARE):
    """The calls of a function of square matrices."""
    function = function if callable(function) else call(function)
    return [
        Call("one", function, [x]),
        Call("stack", function, [np.stack([x, x + np.eye(3)])]),
        Call("oblong", function, [x[:2]]),
        Call("singular", function, [np.zeros((2, 2))]),
    ]


def drawn(function, *inputs):
    """The calls of a random op: shapes and types are recorded, and which gradients there are."""

    def shapes(tf, *args):
        y = function(tf, *args)
        return y * 0 if y.dtype.is_integer else 0.0 * (y - tf.stop_gradient(y))

    return [Call("shape", shapes, list(inputs))]


TABLE = {}
for _name, _path in {
    "Abs": "abs", "Neg": "negative", "Sign": "sign", "Round": "round", "Rint": "rint",
    "Floor": "floor", "Ceil": "ceil", "Square": "square", "Sqrt": "sqrt", "Rsqrt": "rsqrt",
    "Exp": "exp", "Expm1": "expm1", "Log": "log", "Log1p": "log1p", "Sin": "sin", "Cos": "cos",
    "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh",
    "Tanh": "tanh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Sigmoid": "sigmoid",
    "Erf": "erf", "Erfc": "erfc", "Lgamma": "lgamma", "Digamma": "digamma",
    "Reciprocal": "reciprocal", "Erfinv": "math.erfinv", "Ndtri": "math.ndtri",
    "BesselI0e": "math.bessel_i0e", "BesselI1e": "math.bessel_i1e", "IsNan": "is_nan",
    "IsInf": "is_inf", "IsFinite": "is_finite", "Relu": "nn.relu", "Relu6": "nn.relu6",
    "Elu": "nn.elu", "Selu": "nn.selu", "Softplus": "nn.softplus", "Softsign": "nn.softsign",
    "Identity": "identity", "StopGradient": "stop_gradient", "ZerosLike": raw("ZerosLike", "x"),
    "OnesLike": raw("OnesLike", "x"), "L2Loss": "nn.l2_loss", "Snapshot": raw("Snapshot", "input"),
    "Inv": raw("Inv", "x"),
}.items():  # fmt: skip
    TABLE[_name] = unary(_path, _name in ("Rint", "Lgamma", "Digamma", "Erfinv", "Ndtri"))
TABLE["Invert"] = [
    Call(c, call("bitwise.invert"), [x]) for c, x in (("whole", WHOLE), ("float", KINKS))
]
TABLE["Relu6"].append(Call("top", call("nn.relu6"), [f(5.5, 6.0, 6.5)]))
TABLE["LeakyRelu"] = [
    *unary("nn.leaky_relu"),
    Call("slope", lambda tf, x: tf.nn.leaky_relu(x, alpha=1.5), [KINKS]),
]
for _name, _path in {
    "AddV2": "add", "Sub": "subtract", "Mul": "multiply", "RealDiv": "truediv",
    "FloorDiv": "floordiv", "TruncateDiv": "truncatediv", "FloorMod": "floormod", "Pow": "pow",
    "TruncateMod": "truncatemod", "Maximum": "maximum", "Minimum": "minimum", "Atan2": "atan2",
    "DivNoNan": "div_no_nan", "SquaredDifference": "squared_difference", "Xlogy": "math.xlogy",
    "Xdivy": "math.xdivy", "NextAfter": "math.nextafter", "Equal": "equal",
    "NotEqual": "not_equal", "Less": "less", "LessEqual": "less_equal", "Greater": "greater",
    "GreaterEqual": "greater_equal", "Add": raw("Add", "x y"), "Div": raw("Div", "x y"),
    "Mod": raw("Mod", "x y"), "MulNoNan": raw("MulNoNan", "x y"),
}.items():  # fmt: skip
    TABLE[_name] = binary(_path)
TABLE["Igamma"] = binary("igamma", [0.5, 1.0, 2.5])
TABLE["Igammac"] = binary("igammac", [0.5, 1.0, 2.5])
TABLE["Zeta"] = binary("zeta", [1.5, 2.0, 3.5])
TABLE["Polygamma"] = [
    Call("whole orders", call("polygamma"), [f(0.0, 1.0, 2.0), f(0.5, 1.5, 2.5)]),
    Call("one order", lambda tf, x: tf.polygamma(tf.constant(1.0), x), [f(0.5, 1.5, 2.5)]),
]
TABLE["LogicalAnd"], TABLE["LogicalOr"] = logical("logical_and"), logical("logical_or")
TABLE["LogicalNot"] = [
    Call("all", call("logical_not"), [np.array([True, False])]),
    Call("float", call("logical_not"), [f(1.0)]),
]
for _name, _path in {
    "BitwiseAnd": "bitwise.bitwise_and", "BitwiseOr": "bitwise.bitwise_or",
    "BitwiseXor": "bitwise.bitwise_xor", "LeftShift": "bitwise.left_shift",
    "RightShift": "bitwise.right_shift",
}.items():  # fmt: skip
    TABLE[_name] = bits(_path)
for _name in ("Sum", "Mean", "Max", "Min", "Prod"):
    TABLE[_name] = reduction(f"reduce_{_name.lower()}")
TABLE["Prod"].append(Call("zeros", call("reduce_prod"), [f(0.0, 3.0, 0.0)]))
TABLE["All"], TABLE["Any"] = truth("reduce_all"), truth("reduce_any")
TABLE["ArgMax"], TABLE["ArgMin"] = place("argmax"), place("argmin")
TABLE["Cumsum"], TABLE["Cumprod"] = cumulative("cumsum"), cumulative("cumprod")
for _name in ("Real", "Imag", "Conj"):
    TABLE[_name] = complex_of(_name.lower())
TABLE["ComplexAbs"] = complex_of("abs")[:1]
TABLE["Complex"] = [
    Call("float", call("complex"), [f(1.0, 2.0), f(-1.0, 0.0)]),
    Call("broadcast", call("complex"), [ramp(2, 1), ramp(3)]),
    Call("whole", call("complex"), [i(1), i(2)]),
]
TABLE["Softmax"], TABLE["LogSoftmax"] = (
    [
        Call("rows", call(p), [ramp(2, 3)]),
        Call("columns", lambda tf, x, p=p: call(p)(tf, x, 0), [ramp(2, 3)]),
        Call("wild", call(p), [f([np.inf, 0.0], [-np.inf, 0.0], [np.nan, 1.0])]),
        Call("great", call(p), [f(1e4, 0.0, -1e4)]),
        Call("none", call(p), [PLANE]),
        Call("none within", call(p), [PLANE.T]),
        Call("scalar", call(p), [np.float32(1.0)]),
        Call("whole", call(p), [i(1, 2)]),
        Call("beyond", lambda tf, x, p=p: call(p)(tf, x, 2), [ramp(2, 3)]),
    ]
    for p in ("nn.softmax", "nn.log_softmax")
)
TABLE["MatMul"] = [
    Call(
        f"{ta:d}{tb:d}",
        lambda tf, a, b, ta=ta, tb=tb: tf.matmul(a, b, transpose_a=ta, transpose_b=tb),
        [ramp(2, 3).T if ta else ramp(2, 3), ramp(4, 3) if tb else ramp(3, 4)],
    )
    for ta in (False, True)
    for tb in (False, True)
] + [
    Call("none", call("matmul"), [PLANE, ramp(3, 2)]),
    Call("none within", call("matmul"), [PLANE.T, PLANE]),
    Call("whole", call("matmul"), [i([1, 2]), i([3], [4])]),
    Call("misfit", call("matmul"), [ramp(2, 3), ramp(2, 3)]),
    Call("vector", call("matmul"), [ramp(2, 3), ramp(3)]),
    Call("complex", call("matmul"), [ramp(2, 2) + 1j * ramp(2, 2), (ramp(2, 2) - 1j).T]),
]
TABLE["BatchMatMulV2"] = [
    Call("stack", call("matmul"), [ramp(2, 2, 3), ramp(2, 3, 2)]),
    Call("broadcast", call("matmul"), [ramp(2, 2, 3), ramp(3, 2)]),
    Call("adjoint", lambda tf, a, b: tf.matmul(a, b, adjoint_b=True), [ramp(2, 2, 3)] * 2),
    Call("none", call("matmul"), [ramp(0, 2, 3), ramp(0, 3, 2)]),
]
TABLE["BatchMatMul"] = [
    Call("stack", raw("BatchMatMul", "x y", adj_x=False, adj_y=True), [ramp(2, 2, 3)] * 2)
]
TABLE["Cast"] = [
    Call(f"{kind} from {x.dtype}", lambda tf, x, kind=kind: tf.cast(x, kind), [x])
    for kind in ("float64", "float32", "int32", "bool", "complex64", "uint8")
    for x in (f(-1.5, 0.0, 2.5), i(-1, 0, 300), np.array([True, False]))
] + [Call("complex", lambda tf, x: tf.cast(x, "float32"), [np.array([1 + 2j], "complex64")])]
TABLE["AddN"] = [
    Call("three", lambda tf, *xs: tf.add_n(list(xs)), [f(1.0, 2.0), f(3.0, 4.0), f(5.0, 6.0)]),
    Call("none", lambda tf, *xs: tf.add_n(list(xs)), [NONE, NONE]),
    Call("whole", lambda tf, *xs: tf.add_n(list(xs)), [WHOLE, WHOLE]),
    Call("misfit", lambda tf, *xs: tf.add_n(list(xs)), [ramp(2), ramp(3)]),
    Call("broadcast", lambda tf, *xs: tf.add_n(list(xs)), [ramp(2), ramp(1)]),
]
TABLE["UnsortedSegmentSum"] = [
    Call("gaps", lambda tf, x: tf.unsorted_segment_sum(x, [2, 0, 2], 4), [ramp(3, 2)]),
    Call("negative", lambda tf, x: tf.unsorted_segment_sum(x, [2, -1, 2], 4), [ramp(3, 2)]),
    Call("beyond", lambda tf, x: tf.unsorted_segment_sum(x, [2, 4, 2], 4), [ramp(3, 2)]),
    Call("none", lambda tf, x: tf.unsorted_segment_sum(x, np.zeros(0, "int32"), 2), [PLANE]),
]
for _name in ("SegmentSum", "SegmentMean"):
    _f = call("segment_sum" if _name == "SegmentSum" else "segment_mean")
    TABLE[_name] = [
        Call("gaps", lambda tf, x, f=_f: f(tf, x, [0, 2, 2]), [ramp(3, 2)]),
        Call("unsorted", lambda tf, x, f=_f: f(tf, x, [2, 0, 2]), [ramp(3, 2)]),
        Call("short", lambda tf, x, f=_f: f(tf, x, [0, 1]), [ramp(3, 2)]),
        Call("none", lambda tf, x, f=_f: f(tf, x, np.zeros(0, "int32")), [PLANE]),
    ]
TABLE["Cross"] = [
    Call("rows", call("cross"), [ramp(2, 3), ramp(2, 3)[::-1]]),
    Call("short", call("cross"), [ramp(2, 2), ramp(2, 2)]),
]
TABLE["Bincount"] = [
    Call("counts", lambda tf, x: tf.bincount(x), [i(1, 1, 3)]),
    Call("weights", lambda tf, w: tf.bincount([0, 2, 2], weights=w), [f(1.0, 2.0, 3.0)]),
    Call("length", lambda tf, x: tf.bincount(x, minlength=3, maxlength=3), [i(1, 5)]),
    Call("negative", lambda tf, x: tf.bincount(x), [i(1, -1)]),
    Call("none", lambda tf, x: tf.bincount(x), [np.zeros(0, "int32")]),
]
TABLE["Einsum"] = [
    Call("product", lambda tf, a, b: tf.einsum("ij,jk->ik", a, b), [ramp(2, 3), ramp(3, 2)]),
    Call("trace", lambda tf, a: tf.einsum("ii->", a), [ramp(3, 3)]),
    Call("outer", lambda tf, a, b: tf.einsum("i,j->ji", a, b), [ramp(2), ramp(3)]),
    Call("misfit", lambda tf, a, b: tf.einsum("ij,jk->ik", a, b), [ramp(2, 3), ramp(2, 3)]),
]
for _name, _args, _more in (
    ("ReluGrad", "gradients features", {}), ("Relu6Grad", "gradients features", {}),
    ("EluGrad", "gradients outputs", {}), ("SeluGrad", "gradients outputs", {}),
    ("SoftplusGrad", "gradients features", {}), ("SigmoidGrad", "y dy", {}),
    ("TanhGrad", "y dy", {}), ("SqrtGrad", "y dy", {}),
    ("LeakyReluGrad", "gradients features", {"alpha": 0.25}),
):  # fmt: skip
    TABLE[_name] = [
        Call("kinks", raw(_name, _args, **_more), pairs([-1.0, 0.0, 0.5, 6.0])),
        Call("none", raw(_name, _args, **_more), [NONE, NONE]),
    ]

# shapes and places

TABLE["Reshape"] = [
    Call("free", lambda tf, x: tf.reshape(x, [3, -1]), [ramp(2, 3)]),
    Call("none", lambda tf, x: tf.reshape(x, [-1, 3]), [PLANE]),
    Call("misfit", lambda tf, x: tf.reshape(x, [4]), [ramp(2, 3)]),
    Call("scalar", lambda tf, x: tf.reshape(x, []), [ramp(1)]),
    Call("negative", lambda tf, x: tf.reshape(x, [-2, 3]), [ramp(2, 3)]),
]
TABLE["Transpose"] = [
    Call("reversed", lambda tf, x: tf.transpose(x), [ramp(1, 2, 3)]),
    Call("order", lambda tf, x: tf.transpose(x, [1, 2, 0]), [ramp(1, 2, 3)]),
    Call("twice", lambda tf, x: tf.transpose(x, [1, 1, 0]), [ramp(1, 2, 3)]),
    Call("beyond", lambda tf, x: tf.transpose(x, [1, 3, 0]), [ramp(1, 2, 3)]),
    Call("short", lambda tf, x: tf.transpose(x, [1, 0]), [ramp(1, 2, 3)]),
]
TABLE["ExpandDims"] = [
    Call(str(axis), lambda tf, x, axis=axis: tf.expand_dims(x, axis), [ramp(2, 3)])
    for axis in (0, 2, -1, -3, 3, -4)
]
TABLE["Squeeze"] = [
    Call(str(axis), lambda tf, x, axis=axis: tf.squeeze(x, axis), [ramp(1, 2, 1)])
    for axis in (None, 0, -1, [0, 2], 1, 3, -4)
]
TABLE["ConcatV2"] = [
    Call("rows", lambda tf, *xs: tf.concat(list(xs), 0), [ramp(1, 2), ramp(2, 2)]),
    Call("columns", lambda tf, *xs: tf.concat(list(xs), -1), [ramp(2, 1), ramp(2, 2)]),
    Call("none", lambda tf, *xs: tf.concat(list(xs), 0), [PLANE, ramp(2, 3)]),
    Call("beyond", lambda tf, *xs: tf.concat(list(xs), 2), [ramp(2, 1), ramp(2, 2)]),
    Call("misfit", lambda tf, *xs: tf.concat(list(xs), 0), [ramp(2, 1), ramp(2, 2)]),
    Call("scalars", lambda tf, *xs: tf.concat(list(xs), 0), [np.float32(1), np.float32(2)]),
]
TABLE["Concat"] = [
    Call("rows", lambda tf, a, b: raw("Concat", "concat_dim values")(tf, 0, [a, b]), [ramp(2)] * 2)
]
TABLE["Pack"] = [
    Call(str(axis), lambda tf, *xs, axis=axis: tf.stack(list(xs), axis), [ramp(2), ramp(2) + 1])
    for axis in (0, 1, -1, 2, -3)
] + [Call("misfit", lambda tf, *xs: tf.stack(list(xs)), [ramp(2), ramp(3)])]
TABLE["Unpack"] = [
    Call(str(axis), lambda tf, x, axis=axis: tf.unstack(x, axis=axis), [ramp(2, 2)])
    for axis in (0, 1, -2, 2, -3)
] + [Call("wrong number", lambda tf, x: tf.unstack(x, 3), [ramp(2, 2)])]
TABLE["Split"] = [
    Call("rows", lambda tf, x: tf.split(x, 2), [ramp(4, 2)]),
    Call("columns", lambda tf, x: tf.split(x, 2, -1), [ramp(1, 4)]),
    Call("uneven", lambda tf, x: tf.split(x, 3), [ramp(4, 2)]),
    Call("beyond", lambda tf, x: tf.split(x, 2, 2), [ramp(4, 2)]),
    Call("below", lambda tf, x: tf.split(x, 2, -3), [ramp(4, 2)]),
]
TABLE["SplitV"] = [
    Call("rows", lambda tf, x: tf.split(x, [1, 3]), [ramp(4, 2)]),
    Call("rest", lambda tf, x: tf.split(x, [1, -1], 1), [ramp(1, 4)]),
    Call("none", lambda tf, x: tf.split(x, [0, 4]), [ramp(4, 2)]),
    Call("too few", lambda tf, x: tf.split(x, [1, 2]), [ramp(4, 2)]),
    Call("too many", lambda tf, x: tf.split(x, [1, 4]), [ramp(4, 2)]),
    Call("two rests", lambda tf, x: tf.split(x, [-1, -1]), [ramp(4, 2)]),
    Call("beyond", lambda tf, x: tf.split(x, [1, 3], 2), [ramp(4, 2)]),
]
TABLE["StridedSlice"] = [
    Call(name, lambda tf, x, key=key: x[key], [ramp(3, 4)])
    for name, key in {
        "row": 1, "last": -1, "rows": slice(1, 3), "steps": (slice(None), slice(None, None, 2)),
        "backward": slice(None, None, -1), "back from": slice(2, 0, -1), "wide": slice(-9, 9),
        "new": (None, 1, ...), "ellipsis": (..., 1), "nothing": slice(2, 1),
        "beyond": 3, "below": -4, "too many": (0, 0, 0), "two": (1, slice(1, -1)),
    }.items()
]  # fmt: skip
TABLE["Slice"] = [
    Call(str((b, s)), lambda tf, x, b=b, s=s: tf.slice(x, b, s), [ramp(3, 4)])
    for b, s in (
        ([0, 1], [2, 2]), ([1, 0], [-1, 3]), ([3, 0], [0, 4]), ([2, 0], [2, 1]), ([-1, 0], [1, 1]),
        ([4, 0], [-1, 1]), ([0], [1]),
    )
]  # fmt: skip
TABLE["GatherV2"] = [
    Call("rows", lambda tf, x: tf.gather(x, [2, 0, 2]), [ramp(3, 2)]),
    Call("columns", lambda tf, x: tf.gather(x, [[1], [0]], axis=-1), [ramp(3, 2)]),
    Call("one", lambda tf, x: tf.gather(x, 1, axis=0), [ramp(3, 2)]),
    Call("none", lambda tf, x: tf.gather(x, np.zeros(0, "int32")), [ramp(3, 2)]),
    Call("beyond", lambda tf, x: tf.gather(x, [3]), [ramp(3, 2)]),
    Call("negative", lambda tf, x: tf.gather(x, [-1]), [ramp(3, 2)]),
    Call("axis beyond", lambda tf, x: tf.gather(x, [0], axis=2), [ramp(3, 2)]),
    Call("axis below", lambda tf, x: tf.gather(x, [0], axis=-3), [ramp(3, 2)]),
] + [
    Call(
        f"batch {batch} of {axis}",
        lambda tf, x, at=at, axis=axis, batch=batch: tf.gather(x, at, axis=axis, batch_dims=batch),
        [ramp(2, 2, 3)],
    )
    for at, axis, batch in (
        ([[1], [0]], 1, 1), ([[2, 1], [0, 0]], 2, 1), ([[0, 1], [1, 0]], -1, 1),
        ([[2, 0], [1, 1]], 2, 2), ([[[1], [0]], [[0], [2]]], 2, -1),
        ([[0, 1], [1, 0]], 2, 3),
    )
]  # fmt: skip
TABLE["Gather"] = [
    Call(str(at), lambda tf, x, at=at: raw("Gather", "params indices")(tf, x, at), [ramp(3, 2)])
    for at in ([2, 0, 2], [3])
]
TABLE["GatherNd"] = [
    Call("elements", lambda tf, x: tf.gather_nd(x, [[0, 1], [2, 0]]), [ramp(3, 2)]),
    Call("rows", lambda tf, x: tf.gather_nd(x, [[2], [2]]), [ramp(3, 2)]),
    Call("all", lambda tf, x: tf.gather_nd(x, np.zeros((2, 0), "int32")), [ramp(3, 2)]),
    Call("beyond", lambda tf, x: tf.gather_nd(x, [[0, 2]]), [ramp(3, 2)]),
    Call("negative", lambda tf, x: tf.gather_nd(x, [[-1]]), [ramp(3, 2)]),
    Call("too many", lambda tf, x: tf.gather_nd(x, [[0, 0, 0]]), [ramp(3, 2)]),
]
TABLE["ScatterNd"] = [
    Call("twice", lambda tf, u: tf.scatter_nd([[1], [3], [1]], u, [5]), [f(1.0, 2.0, 3.0)]),
    Call("rows", lambda tf, u: tf.scatter_nd([[1], [0]], u, [3, 2]), [ramp(2, 2)]),
    Call("beyond", lambda tf, u: tf.scatter_nd([[5]], u, [5]), [f(1.0)]),
    Call("negative", lambda tf, u: tf.scatter_nd([[-1]], u, [5]), [f(1.0)]),
]
for _name in ("TensorScatterAdd", "TensorScatterUpdate"):
    _f = call("tensor_scatter_add" if _name[-1] == "d" else "tensor_scatter_update")
    TABLE[_name] = [
        Call("places", lambda tf, x, u, f=_f: f(tf, x, [[1], [3]], u), [ramp(5), f(9.0, 8.0)]),
        Call("rows", lambda tf, x, u, f=_f: f(tf, x, [[1], [0]], u), [ramp(3, 2), ramp(2, 2)]),
        Call("beyond", lambda tf, x, u, f=_f: f(tf, x, [[5]], u), [ramp(5), f(1.0)]),
        Call("negative", lambda tf, x, u, f=_f: f(tf, x, [[-1]], u), [ramp(5), f(1.0)]),
    ]
TABLE["OneHot"] = [
    Call("last", lambda tf, x: tf.one_hot(x, 3), [i(0, 2, -1, 5)]),
    Call("first", lambda tf, x: tf.one_hot(x, 3, axis=0), [i(0, 2)]),
    Call("values", lambda tf, a, b: tf.one_hot([1, 0], 2, a, b), [f(5.0)[0], f(-1.0)[0]]),
    Call("whole", lambda tf, x: tf.one_hot(x, 2, dtype=tf.int32), [i([0, 1], [1, 0])]),
    Call("beyond", lambda tf, x: tf.one_hot(x, 3, axis=2), [i(0, 2)]),
    Call("no depth", lambda tf, x: tf.one_hot(x, 0), [i(0, 2)]),
    Call("negative depth", lambda tf, x: tf.one_hot(x, -1), [i(0, 2)]),
]
TABLE["Tile"] = [
    Call(str(n), lambda tf, x, n=n: tf.tile(x, n), [ramp(2, 2)])
    for n in ([2, 1], [1, 3], [0, 2], [1, 1], [2], [-1, 1])
]
TABLE["Pad"] = [
    Call(str(w), lambda tf, x, w=w: tf.pad(x, w), [ramp(2, 2)])
    for w in ([[1, 0], [0, 2]], [[0, 0], [0, 0]], [[1, 1]], [[-1, 0], [0, 0]])
]
TABLE["PadV2"] = [
    Call(
        "filled",
        lambda tf, x, c: tf.pad(x, [[1, 0], [0, 1]], constant_values=c),
        [ramp(2, 2), np.float32(7.0)],
    )
]
TABLE["MirrorPad"] = [
    Call(f"{mode} {w}", lambda tf, x, w=w, mode=mode: tf.pad(x, w, mode), [ramp(2, 3)])
    for mode in ("REFLECT", "SYMMETRIC")
    for w in ([[1, 0], [0, 2]], [[1, 1], [2, 2]], [[2, 0], [0, 0]], [[3, 0], [0, 0]])
]
TABLE["ReverseV2"] = [
    Call(str(a), lambda tf, x, a=a: tf.reverse(x, a), [ramp(2, 3)])
    for a in ([0], [-1, 0], [], [2], [0, 0])
]
TABLE["Roll"] = [
    Call(str((s, a)), lambda tf, x, s=s, a=a: tf.roll(x, s, a), [ramp(2, 3)])
    for s, a in (([1], [0]), ([-4, 1], [1, 0]), ([1, 1], [1, 1]), ([1], [2]))
]
TABLE["Shape"] = [
    Call("known", call("shape"), [ramp(2, 3)]),
    Call(
        "unknown",
        lambda tf, x: tf.shape(tf.placeholder_with_default(x, [None, None]), out_type=tf.int64),
        [ramp(2, 3)],
    ),
]
TABLE["Size"] = [
    Call("unknown", lambda tf, x: tf.size(tf.placeholder_with_default(x, [None, 3])), [PLANE])
]
TABLE["Rank"] = [
    Call("unknown", lambda tf, x: tf.rank(tf.placeholder_with_default(x, None)), [PLANE])
]
TABLE["Range"] = [
    Call(str(args), lambda tf, args=args: tf.range(*args), [])
    for args in ((3,), (1, 6, 2), (3, 0, -1), (0.0, 1.0, 0.25), (3, 0), (0, 3, 0))
] + [Call("tensor", lambda tf, x: tf.range(x), [np.float32(3.0)])]
TABLE["LinSpace"] = [
    Call(
        str(n),
        lambda tf, a, b, n=n: raw("LinSpace", "start stop num")(tf, a, b, n),
        [np.float32(2.0), np.float32(5.0)],
    )
    for n in (5, 1, 0)
]
TABLE["Fill"] = [
    Call("plane", lambda tf, x: tf.fill([2, 3], x), [np.float32(1.5)]),
    Call("none", lambda tf, x: tf.fill([0, 3], x), [np.float32(1.5)]),
    Call("scalar", lambda tf, x: tf.fill([], x), [np.float32(1.5)]),
    Call("vector", lambda tf, x: tf.fill([2], x), [f(1.5)]),
    Call("negative", lambda tf, x: tf.fill([-1], x), [np.float32(1.5)]),
]
TABLE["BroadcastTo"] = [
    Call(str(s), lambda tf, x, s=s: tf.broadcast_to(x, s), [ramp(2, 1)])
    for s in ([2, 3], [2, 2, 1], [2, 1], [3, 3], [2])
]
TABLE["BroadcastArgs"] = [
    Call(
        "two",
        lambda tf, a, b: tf.broadcast_dynamic_shape(
            tf.placeholder_with_default(a, [None]), tf.placeholder_with_default(b, [None])
        ),
        [i(2, 1), i(3)],
    )
]
TABLE["PlaceholderWithDefault"] = [
    Call("default", lambda tf, x: tf.placeholder_with_default(x, [None]), [KINKS])
]
TABLE["EnsureShape"] = [
    Call("fits", lambda tf, x: tf.ensure_shape(x, [None, 3]), [PLANE]),
    Call("misfit", lambda tf, x: tf.ensure_shape(x, [None, 2]), [PLANE]),
    Call(
        "in a run",
        lambda tf, x: tf.ensure_shape(tf.placeholder_with_default(x, [None]), [2]),
        [ramp(3)],
    ),
]
TABLE["IdentityN"] = [
    Call("two", lambda tf, a, b: tf.identity_n([a, b]), [ramp(2), i(1)]),
]
TABLE["PreventGradient"] = [
    Call("one", lambda tf, x: raw("PreventGradient", "input", message=b"no")(tf, x), [ramp(2)])
]
TABLE["CheckNumerics"] = [
    Call(name, lambda tf, x: tf.check_numerics(x, "m"), [x])
    for name, x in {"fine": KINKS, "wild": WILD, "none": NONE}.items()
]
TABLE["Select"] = [
    Call("elements", call("where"), [np.array([True, False]), f(1.0, 2.0), f(np.nan, np.inf)]),
    Call("rows", call("where"), [np.array([True, False]), ramp(2, 2), ramp(2, 2) + 9]),
    Call("scalar", call("where"), [np.array(False), ramp(2), ramp(2) + 9]),
    Call("broadcast", call("where"), [np.array([True, False]), ramp(1), ramp(2)]),
    Call("short", call("where"), [np.array([True]), ramp(2, 2), ramp(2, 2)]),
    Call("none", call("where"), [np.zeros(0, "bool"), NONE, NONE]),
]
TABLE["SelectV2"] = [
    Call("broadcast", call("where_v2"), [np.array([True, False]), ramp(2, 1), ramp(2)]),
    Call("wild", call("where_v2"), [np.array([True, False]), f(1.0, 2.0), f(np.nan, np.inf)]),
    Call("misfit", call("where_v2"), [np.array([True, False]), ramp(3), ramp(2)]),
]
TABLE["Where"] = [
    Call("places", call("where"), [np.array([[True, False], [True, True]])]),
    Call("float", call("where"), [f(0.0, -0.0, np.nan, 2.0)]),
    Call("none", call("where"), [np.zeros((0, 2), "bool")]),
]
for _name in ("Unique", "UniqueWithCounts"):
    _f = call("unique" if _name == "Unique" else "unique_with_counts")
    TABLE[_name] = [
        Call("float", lambda tf, x, f=_f: list(f(tf, x)), [f(2.0, 1.0, 2.0)]),
        Call("whole", lambda tf, x, f=_f: list(f(tf, x, tf.int64)), [i(3, 3, 1)]),
        Call("none", lambda tf, x, f=_f: list(f(tf, x)), [NONE]),
        Call("plane", lambda tf, x, f=_f: list(f(tf, x)), [ramp(2, 2)]),
    ]
TABLE["TopKV2"] = [
    Call("ties", lambda tf, x: list(tf.nn.top_k(x, 2)), [f([1.0, 3.0, 3.0], [5.0, 5.0, 5.0])]),
    Call("all", lambda tf, x: list(tf.nn.top_k(x, 3)), [f(1.0, 3.0, 2.0)]),
    Call("no k", lambda tf, x: list(tf.nn.top_k(x, 0)), [f(1.0, 3.0, 2.0)]),
    Call("too many", lambda tf, x: list(tf.nn.top_k(x, 4)), [f(1.0, 3.0, 2.0)]),
    Call("scalar", lambda tf, x: list(tf.nn.top_k(x, 1)), [np.float32(1.0)]),
    Call("whole", lambda tf, x: list(tf.nn.top_k(x, 1)), [i(1, 2)]),
]
TABLE["InTopKV2"] = [
    Call(
        "ties",
        lambda tf, x: tf.nn.in_top_k(x, [1, 2, 0, 3], 1),
        [f([1, 3, 3], [1, 2, 3], [np.nan, 1, 2], [1, 2, 3])],
    )
]

# matrices

TABLE["MatrixDiagV3"] = [
    *unary("matrix_diag")[:1],
    Call("stack", call("matrix_diag"), [ramp(2, 2)]),
    Call("none", call("matrix_diag"), [PLANE]),
    Call("scalar", call("matrix_diag"), [np.float32(1.0)]),
    Call("whole", call("matrix_diag"), [WHOLE]),
]
TABLE["MatrixDiag"] = [Call("stack", raw("MatrixDiag", "diagonal"), [ramp(2, 2)])]
TABLE["MatrixDiagPartV3"] = [
    Call("oblong", call("matrix_diag_part"), [ramp(2, 3)]),
    Call("stack", call("matrix_diag_part"), [ramp(2, 3, 2)]),
    Call("vector", call("matrix_diag_part"), [ramp(2)]),
    Call("none", call("matrix_diag_part"), [PLANE]),
]
TABLE["MatrixDiagPart"] = [Call("oblong", raw("MatrixDiagPart", "input"), [ramp(2, 3)])]
TABLE["MatrixSetDiagV3"] = [
    Call("oblong", call("matrix_set_diag"), [ramp(2, 3), ramp(2) + 9]),
    Call("misfit", call("matrix_set_diag"), [ramp(2, 3), ramp(3)]),
]
TABLE["Diag"] = [
    Call("vector", call("diag"), [ramp(3)]),
    Call("plane", call("diag"), [ramp(2, 2)]),
]
TABLE["DiagPart"] = [
    Call("plane", call("diag_part"), [ramp(3, 3)]),
    Call("oblong", call("diag_part"), [ramp(2, 3)]),
]
TABLE["MatrixBandPart"] = [
    Call(str(k), lambda tf, x, k=k: tf.matrix_band_part(x, *k), [ramp(3, 4)])
    for k in ((0, 0), (-1, 0), (1, 2), (0, -1), (9, 0))
]
TABLE["InvertPermutation"] = [
    Call("order", call("invert_permutation"), [i(2, 0, 1)]),
    Call("twice", call("invert_permutation"), [i(2, 2, 1)]),
    Call("beyond", call("invert_permutation"), [i(3, 0, 1)]),
]
TABLE["ReverseSequence"] = [
    Call(
        "columns",
        lambda tf, x: tf.reverse_sequence(x, [1, 3], seq_axis=1, batch_axis=0),
        [ramp(2, 3)],
    ),
    Call(
        "rows",
        lambda tf, x: tf.reverse_sequence(x, [0, 2, 1], seq_axis=0, batch_axis=1),
        [ramp(2, 3, 2)],
    ),
    Call(
        "too long",
        lambda tf, x: tf.reverse_sequence(x, [1, 4], seq_axis=1, batch_axis=0),
        [ramp(2, 3)],
    ),
]
for _name in ("SpaceToDepth", "DepthToSpace"):
    _f = call("space_to_depth" if _name[0] == "S" else "depth_to_space")
    _x = images(1, 2, 4, 1) if _name[0] == "S" else images(1, 1, 2, 8)
    TABLE[_name] = [
        Call("two", lambda tf, x, f=_f: f(tf, x, 2), [_x]),
        Call("misfit", lambda tf, x, f=_f: f(tf, x, 3), [_x]),
    ]
TABLE["DynamicPartition"] = [
    Call("rows", lambda tf, x: tf.dynamic_partition(x, [1, 0, 1], 2), [ramp(3, 2)]),
    Call("empty part", lambda tf, x: tf.dynamic_partition(x, [2, 0, 2], 3), [ramp(3)]),
    Call("beyond", lambda tf, x: tf.dynamic_partition(x, [1, 0, 2], 2), [ramp(3)]),
    Call("negative", lambda tf, x: tf.dynamic_partition(x, [1, 0, -1], 2), [ramp(3)]),
    Call("short", lambda tf, x: tf.dynamic_partition(x, [1, 0], 2), [ramp(3)]),
    Call("elements", lambda tf, x: tf.dynamic_partition(x, [[1, 0], [0, 0]], 2), [ramp(2, 2)]),
]
TABLE["DynamicStitch"] = [
    Call(
        "rows",
        lambda tf, a, b: tf.dynamic_stitch([[0, 2], [1]], [a, b]),
        [ramp(2, 2), ramp(1, 2) + 9],
    ),
    Call("twice", lambda tf, a, b: tf.dynamic_stitch([[0, 1], [1]], [a, b]), [ramp(2), f(9.0)]),
    Call("gap", lambda tf, a: tf.dynamic_stitch([[0, 2]], [a]), [ramp(2)]),
    Call("negative", lambda tf, a: tf.dynamic_stitch([[0, -1]], [a]), [ramp(2)]),
]
TABLE["MatrixInverse"] = [
    *matrix("matrix_inverse"),
    Call("adjoint", lambda tf, x: tf.matrix_inverse(x, adjoint=True), [SQUARE + ramp(3, 3)]),
]
TABLE["MatrixDeterminant"] = matrix("matrix_determinant")
TABLE["LogMatrixDeterminant"] = matrix(lambda tf, x: list(tf.linalg.slogdet(x)), -SQUARE)
TABLE["Cholesky"] = matrix("cholesky")[:3]
TABLE["SelfAdjointEigV2"] = matrix(lambda tf, x: tf.self_adjoint_eig(x)[0])
TABLE["Svd"] = matrix(lambda tf, x: tf.svd(x, compute_uv=False))[:3]
TABLE["Qr"] = matrix(lambda tf, x: tf.abs(tf.qr(x)[1]))[:1]
TABLE["MatrixSolve"] = [
    Call("one", call("matrix_solve"), [SQUARE + ramp(3, 3), ramp(3, 2, kind="float64")]),
    Call(
        "adjoint",
        lambda tf, a, b: tf.matrix_solve(a, b, adjoint=True),
        [SQUARE + ramp(3, 3), ramp(3, 1, kind="float64")],
    ),
    Call("singular", call("matrix_solve"), [np.zeros((2, 2)), np.ones((2, 1))]),
    Call("misfit", call("matrix_solve"), [SQUARE, np.ones((2, 1))]),
]
TABLE["MatrixTriangularSolve"] = [
    Call(
        f"{lower:d}{adjoint:d}",
        lambda tf, a, b, lower=lower, adjoint=adjoint: tf.matrix_triangular_solve(
            a, b, lower=lower, adjoint=adjoint
        ),
        [SQUARE + ramp(3, 3), ramp(3, 2, kind="float64")],
    )
    for lower in (True, False)
    for adjoint in (True, False)
]
for _path, _shape in (("", (2, 4)), ("2d", (2, 4)), ("3d", (2, 2, 4))):
    for _kind in ("fft", "ifft", "rfft", "irfft"):
        _given = "float32" if _kind == "rfft" else "complex64"
        TABLE[_kind.upper() + _path.upper()] = transform(f"signal.{_kind}{_path}", _shape, _given)

# networks

TABLE["BiasAdd"] = [
    Call("last", call("nn.bias_add"), [ramp(2, 3), ramp(3)]),
    Call(
        "channels",
        lambda tf, x, b: tf.nn.bias_add(x, b, data_format="NCHW"),
        [ramp(1, 2, 2, 2), ramp(2)],
    ),
    Call("none", call("nn.bias_add"), [PLANE, ramp(3)]),
    Call("misfit", call("nn.bias_add"), [ramp(2, 3), ramp(2)]),
    Call("vector", call("nn.bias_add"), [ramp(3), ramp(3)]),
]
TABLE["Conv2D"] = convolved("nn.conv2d", images(1, 3, 3, 2), ramp(2, 2, 2, 3))
TABLE["DepthwiseConv2dNative"] = convolved(
    "nn.depthwise_conv2d_native", images(1, 3, 3, 2), ramp(2, 2, 2, 2)
)
TABLE["Conv3D"] = convolved("nn.conv3d", images(1, 2, 3, 3, 1), ramp(2, 2, 2, 1, 2), 5)
TABLE["Conv2DBackpropInput"] = [
    Call(
        name,
        lambda tf, w, y, p=p, form=form: tf.nn.conv2d_backprop_input(
            [1, 3, 3, 2], w, y, strides=[1, 1, 1, 1], padding=p, data_format=form
        ),
        [ramp(2, 2, 2, 3), ramp(1, n, n, 3)],
    )
    for name, p, form, n in (("valid", "VALID", "NHWC", 2), ("misfit", "SAME", "NHWC", 2))
]
TABLE["Conv2DBackpropFilter"] = [
    Call(
        "valid",
        lambda tf, x, y: tf.nn.conv2d_backprop_filter(
            x, [2, 2, 2, 3], y, strides=[1, 1, 1, 1], padding="VALID"
        ),
        [images(1, 3, 3, 2), ramp(1, 2, 2, 3)],
    )
]
TABLE["MaxPool"], TABLE["AvgPool"] = pooled("nn.max_pool"), pooled("nn.avg_pool")
TABLE["MaxPool3D"], TABLE["AvgPool3D"] = pooled("nn.max_pool3d", 5), pooled("nn.avg_pool3d", 5)
TABLE["MaxPool"] += [
    Call(
        "depth",
        lambda tf, x: tf.nn.max_pool(x, [1, 1, 1, 2], [1, 1, 1, 2], "SAME"),
        [images(1, 1, 2, 6)],
    ),
    Call(
        "depth that does not fit",
        lambda tf, x: tf.nn.max_pool(x, [1, 1, 1, 2], [1, 1, 1, 1], "SAME"),
        [images(1, 1, 2, 6)],
    ),
    Call(
        "depth and space",
        lambda tf, x: tf.nn.max_pool(x, [1, 2, 2, 2], [1, 1, 1, 2], "SAME"),
        [images(1, 2, 2, 6)],
    ),
]
TABLE["MaxPoolGrad"] = [
    Call(
        "same",
        lambda tf, x, dy: inner(tf, "ops.gen_nn_ops").max_pool_grad(
            x, tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), dy,
            [1, 2, 2, 1], [1, 2, 2, 1], "SAME"
        ),
        [images(1, 3, 3, 1), ramp(1, 2, 2, 1)],
    )
]  # fmt: skip
TABLE["AvgPoolGrad"] = [
    Call(
        "same",
        lambda tf, dy: inner(tf, "ops.gen_nn_ops").avg_pool_grad(
            [1, 3, 3, 1], dy, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"
        ),
        [ramp(1, 2, 2, 1)],
    )
]
TABLE["LRN"] = [
    Call("default", call("nn.lrn"), [images(1, 1, 2, 7)]),
    Call(
        "narrow",
        lambda tf, x: tf.nn.lrn(x, depth_radius=1, bias=2.0, alpha=0.5, beta=0.75),
        [images(1, 1, 2, 4)],
    ),
]
TABLE["ExtractImagePatches"] = [
    Call(
        padding,
        lambda tf, x, padding=padding: tf.extract_image_patches(
            x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], padding
        ),
        [images(1, 2, 3, 2)],
    )
    for padding in ("VALID", "SAME")
]
TABLE["SoftmaxCrossEntropyWithLogits"] = [
    Call(
        "rows",
        lambda tf, x, z: tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x),
        [ramp(2, 3), f([0.2, 0.8, 0.0], [1.0, 0.0, 0.0])],
    ),
    Call(
        "raw",
        lambda tf, x, z: list(raw("SoftmaxCrossEntropyWithLogits", "features labels")(tf, x, z)),
        [ramp(2, 3), f([0.2, 0.8, 0.0], [1.0, 0.0, 0.0])],
    ),
    Call(
        "great",
        lambda tf, x, z: tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x),
        [f([1e4, 0.0]), f([0.0, 1.0])],
    ),
    Call(
        "none",
        lambda tf, x, z: tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x),
        [PLANE, PLANE],
    ),
    Call(
        "misfit",
        lambda tf, x, z: tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x),
        [ramp(2, 3), ramp(2, 2)],
    ),
]
TABLE["SparseSoftmaxCrossEntropyWithLogits"] = [
    Call(
        name,
        lambda tf, x, at=at: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=at, logits=x),
        [ramp(2, 3)],
    )
    for name, at in {"rows": [2, 0], "beyond": [3, 0], "negative": [-1, 0], "short": [1]}.items()
]
TABLE["FusedBatchNormV3"] = [
    Call(
        "training",
        lambda tf, x, s, b: tf.nn.fused_batch_norm(x, s, b)[0],
        [images(2, 2, 2, 2), f(1.0, 2.0), f(0.5, 0.0)],
    ),
    Call(
        "inference",
        lambda tf, x, s, b, m, v: tf.nn.fused_batch_norm(x, s, b, m, v, is_training=False)[0],
        [images(2, 2, 2, 2), f(1.0, 2.0), f(0.5, 0.0), f(3.0, 2.0), f(1.0, 4.0)],
    ),
    Call(
        "moments",
        lambda tf, x, s, b: [tf.stop_gradient(t) for t in tf.nn.fused_batch_norm(x, s, b)],
        [images(2, 2, 2, 2), f(1.0, 2.0), f(0.5, 0.0)],
    ),
]
TABLE["FakeQuantWithMinMaxArgs"] = [
    Call(
        "kinks",
        lambda tf, x: tf.fake_quant_with_min_max_args(x, min=-1.0, max=1.0, num_bits=4),
        [KINKS],
    )
]
TABLE["FakeQuantWithMinMaxVars"] = [
    Call(
        name,
        lambda tf, x, a, b, narrow=narrow: tf.fake_quant_with_min_max_vars(
            x, a, b, num_bits=4, narrow_range=narrow
        ),
        [KINKS, np.float32(-1.0), np.float32(2.0)],
    )
    for name, narrow in {"kinks": False, "narrow": True}.items()
]
TABLE["FakeQuantWithMinMaxVarsGradient"] = [
    Call(
        "kinks",
        lambda tf, g, x, a, b: list(
            raw("FakeQuantWithMinMaxVarsGradient", "gradients inputs min max", num_bits=4,
                narrow_range=False)(tf, g, x, a, b)
        ),
        [ramp(8), KINKS, np.float32(-1.0), np.float32(2.0)],
    )
]  # fmt: skip
for _name in ("ResizeBilinear", "ResizeNearestNeighbor"):
    _f = call("image.resize_bilinear" if _name[6] == "B" else "image.resize_nearest_neighbor")
    TABLE[_name] = [
        Call("up", lambda tf, x, f=_f: f(tf, x, [4, 5]), [images(1, 2, 3, 1)]),
        Call(
            "corners",
            lambda tf, x, f=_f: f(tf, x, [4, 5], align_corners=True),
            [images(1, 2, 3, 1)],
        ),
        Call("down", lambda tf, x, f=_f: f(tf, x, [1, 2]), [images(1, 2, 3, 1)]),
        Call("whole", lambda tf, x, f=_f: f(tf, x, [1, 2]), [i(*range(6)).reshape(1, 2, 3, 1)]),
    ]
TABLE["ImageProjectiveTransformV2"] = [
    Call("turn", lambda tf, x: tf.contrib.image.rotate(x, 0.3, "BILINEAR"), [images(1, 3, 3, 1)])
]

# random numbers

TABLE["RandomUniform"] = drawn(lambda tf: tf.random_uniform([2, 3]))
TABLE["RandomStandardNormal"] = drawn(lambda tf, m: tf.random_normal([2], m), np.float32(1.0))
TABLE["TruncatedNormal"] = drawn(lambda tf: tf.truncated_normal([0, 3]))
TABLE["RandomUniformInt"] = drawn(
    lambda tf, n: tf.random_uniform([2], 0, n, dtype=tf.int32), np.int32(3)
)
TABLE["RandomShuffle"] = drawn(call("random_shuffle"), ramp(3, 2))
TABLE["Multinomial"] = drawn(lambda tf, x: tf.multinomial(x, 4), ramp(2, 3))
TABLE["RandomGamma"] = drawn(lambda tf, a: tf.random_gamma([3], a), f(1.0, 2.0))
TABLE["RandomPoissonV2"] = drawn(lambda tf, a: tf.random_poisson(a, [3]), f(1.0, 2.0))

# Python and prints

TABLE["PyFunc"] = [Call("double", lambda tf, x: tf.py_func(np.abs, [x], tf.float32), [KINKS])]
TABLE["PyFuncStateless"] = [
    Call("double", lambda tf, x: tf.py_func(np.abs, [x], tf.float32, stateful=False), [KINKS])
]
TABLE["Print"] = [Call("nothing", lambda tf, x: tf.Print(x, [x], first_n=0), [KINKS])]

LEFT_OUT = {
    "state, and training: cases/state.py, cases/training.py": (
        "VariableV2", "Assign", "AssignAdd", "AssignSub", "IsVariableInitialized", "ApplyAdadelta",
        "ApplyAdagrad", "ApplyAdam", "ApplyCenteredRMSProp", "ApplyFtrl", "ApplyGradientDescent",
        "ApplyMomentum", "ApplyProximalGradientDescent", "ApplyRMSProp", "RefIdentity",
        "RefSwitch",
    ),
    "branches and loops: cases/control.py": (
        "Switch", "Merge", "Enter", "Exit", "While", "LoopVariable", "NoOp", "TensorArrayV3",
        "TensorArrayWriteV3", "TensorArrayReadV3", "TensorArrayGatherV3", "TensorArrayScatterV3",
        "TensorArraySizeV3",
    ),
    "no tensor comes out: cases/functions.py": ("Assert", "PrintV2"),
    "of strings: cases/around.py": ("MergeSummary", "ScalarSummary"),
    "graphgrad's own": ("GradientOf", "SumLike", "SpreadLike", "ReportUninitialized"),
    "several ops in TensorFlow": ("LogicalXor", "MatrixExponential"),
    "made by TensorFlow's gradients, and not run here": ("BroadcastGradientArgs",),
}  # fmt: skip
"""Why an op type is not in TABLE."""


class Trial:
    """One call, order by order; `parts` is its record."""

    def __init__(self, tf, call):
        self.tf, self.call, self.parts = tf, call, {}

    def values(self):
        """The results of the call."""
        self.xs = [self.tf.constant(a) for a in self.call.inputs]
        made = self.call.function(self.tf, *self.xs)
        self.ys = list(made) if isinstance(made, list | tuple) else [made]
        return self.ys

    def gradients(self):
        """The gradients of the results for fixed weights."""
        self.seeds = self._weights("values")
        self.dxs = self._dense(self.ys, self.xs, self.seeds)
        return self.dxs

    def second(self):
        """The gradients of the gradients, with respect to the inputs and to the weights."""
        ys = [dx for dx in self.dxs if dx is not None]
        xs = self.xs + [s for s in self.seeds if s is not None]
        return self._dense(ys, xs, self._weights("gradients")) if ys else []

    def _dense(self, ys, xs, dys):
        found = self.tf.gradients(ys, xs, dys)
        return [dx if dx is None else self.tf.convert_to_tensor(dx) for dx in found]

    def _weights(self, stage):
        arrays = [a for a in self.parts[stage] if a is not None]
        return [self.tf.constant(weights(a)) if a.dtype.kind in "fc" else None for a in arrays]


def weights(array):
    """Different weights for the elements of an array."""
    w = ((np.arange(array.size) * 3 % 7 + 1) / 4).reshape(array.shape)
    return (w * (1 - 0.5j) if array.dtype.kind == "c" else w).astype(array.dtype)


STAGES = (Trial.values, Trial.gradients, Trial.second)


def results_of(tf, calls):
    """{name of a call: {stage: arrays, or that it raised}}; each alone where a run fails."""
    with tf.Graph().as_default(), tf.Session() as session:
        trials = alive = [Trial(tf, c) for c in calls]
        for stage in STAGES:
            built = {t: attempt(stage, t) for t in alive}
            alive = [t for t in alive if isinstance(built[t], list)]
            found = attempt(fetched, session, [built[t] for t in alive])
            if not isinstance(found, list) and len(calls) > 1:
                return {k: v for c in calls for k, v in results_of(tf, [c]).items()}
            arrays = (
                dict(zip(alive, found)) if isinstance(found, list) else dict.fromkeys(alive, found)
            )
            for t in built:
                t.parts[stage.__name__] = arrays.get(t, built[t])
            alive = [t for t in alive if isinstance(arrays[t], list)]
    return {t.call.name: {k: plain(v) for k, v in t.parts.items()} for t in trials}


def attempt(function, *args):
    """What a function returns, or that it raised."""
    try:
        return function(*args)
    except Exception as error:
        return "LookupError" if type(error) is LookupError else "raises"


def fetched(session, parts):
    """The values of lists of tensors; what is None stays None."""
    known = iter(session.run([t for part in parts for t in part if t is not None]))
    return [[t if t is None else np.asarray(next(known)) for t in part] for part in parts]


def plain(part):
    """A part of a record as JSON can say it."""
    return [said(a) for a in part] if isinstance(part, list) else part


def said(array):
    """An array of complex numbers as two; one without elements as its dtype and shape."""
    if array is None or (array.size and array.dtype.kind != "c"):
        return encoded(array)
    if array.size:
        return [encoded(array.real), encoded(array.imag)]
    return f"{array.dtype}{list(array.shape)}"
