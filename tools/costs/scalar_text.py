"""An element-wise program as the text of a loop in C, of a loop for numba, or of NumPy calls.

For comparisons (code_generators.py): a program has one input x, and its outputs are arrays in x's
shape and complete sums of such arrays. A softmax of rows has a text of its own.
"""

import numpy as np

SAME = {  # what C and Python write alike
    "Add": "({0} + {1})",
    "Subtract": "({0} - {1})",
    "Multiply": "({0} * {1})",
    "Divide": "({0} / {1})",
    "Negative": "(-{0})",
    "Square": "({0} * {0})",
    "Greater": "({0} > {1})",
    "Equal": "({0} == {1})",
    "BroadcastTo": "{0}",
}
C = {
    "Abs": "fabs{s}({0})",
    "Exp": "exp{s}({0})",
    "Log1p": "log1p{s}({0})",
    "Tanh": "tanh{s}({0})",
    "Sigmoid": "({{ real e = exp{s}(-fabs{s}({0})); ({0} < 0 ? e : 1) / (1 + e); }})",
    "SigmoidSlope": "({{ real e = exp{s}(-fabs{s}({0})); e / ((1 + e) * (1 + e)); }})",
    "Sqrt": "sqrt{s}({0})",
    "Sign": "(real)(({0} > 0) - ({0} < 0))",
    "Maximum": "({0} < {1} ? {1} : {0})",
    "Where": "({0} ? {1} : {2})",
}
NUMPY = {
    "Abs": "np.abs({0})",
    "Exp": "np.exp({0})",
    "Log1p": "np.log1p({0})",
    "Tanh": "np.tanh({0})",
    "Sigmoid": "(np.where({0} < 0, e := np.exp(-np.abs({0})), one) / (one + e))",
    "SigmoidSlope": "((e := np.exp(-np.abs({0}))) / ((one + e) * (one + e)))",
    "Sqrt": "np.sqrt({0})",
    "Sign": "np.sign({0})",
    "Maximum": "np.maximum({0}, {1})",
    "Where": "np.where({0}, {1}, {2})",
}
NUMBA = {
    **NUMPY,
    "Maximum": "({1} if {0} < {1} else {0})",
    "Where": "({1} if {0} else {2})",
    "Sigmoid": "(one / (one + np.exp(-{0})))",
}

C_LOOP = """#include <math.h>
typedef {real} real;
void run(const real *restrict xs, real *restrict ys, real *restrict sums, long n, long columns) {{
    {zeros}
    for (long i = 0; i < n; i++) {{
        const real x = xs[i];
        {lines}
    }}
    {totals}
}}
"""
C_SOFTMAX = """#include <math.h>
typedef {real} real;
void run(const real *restrict xs, real *restrict ys, real *restrict sums, long n, long columns) {{
    for (long r = 0; r < n / columns; r++, xs += columns, ys += columns) {{
        real top = xs[0], all = 0;
        for (long i = 1; i < columns; i++) top = xs[i] > top ? xs[i] : top;
        for (long i = 0; i < columns; i++) {{ ys[i] = exp{s}(xs[i] - top); all += ys[i]; }}
        for (long i = 0; i < columns; i++) ys[i] /= all;
    }}
}}
"""
NUMBA_LOOP = """
def run(xs, ys, sums):
    {zeros}
    for i in range(len(xs)):
        x = xs[i]
        {lines}
    {totals}
"""
NUMBA_SOFTMAX = """
def run(xs, ys, sums):
    for r in range(xs.shape[0]):
        top, all = xs[r, 0], zero
        for i in range(xs.shape[1]):
            top = xs[r, i] if xs[r, i] > top else top
        for i in range(xs.shape[1]):
            e = np.exp(xs[r, i] - top)
            ys[r, i] = e
            all += e
        for i in range(xs.shape[1]):
            ys[r, i] /= all
"""
NUMPY_SOFTMAX = """
def run(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return [e / e.sum(1, keepdims=True)]
"""


def is_softmax(program):
    """Whether the program is one softmax."""
    return [node.op.type for node in program.nodes] == ["Softmax"]


def c_source(program):
    """`run(x, one array, sums, elements, elements in a row)`, with an array at most."""
    real, s = ("float", "f") if program.inputs[0].dtype == np.float32 else ("double", "")
    if is_softmax(program):
        return C_SOFTMAX.format(real=real, s=s)
    lines, arrays, sums = _nodes(program, C, lambda value: f"(real){float(value).hex()}", s)
    rows = [f"const {'int' if truth else 'real'} {name} = {text};" for name, truth, text in lines]
    rows += [f"ys[i] = {name};" for name in arrays]
    rows += [f"sum{k} += {name};" for k, name in enumerate(sums)]
    return C_LOOP.format(
        real=real,
        zeros="\n    ".join(f"real sum{k} = 0;" for k in range(len(sums))),
        lines="\n        ".join(rows),
        totals="\n    ".join(f"sums[{k}] = sum{k};" for k in range(len(sums))),
    )


def numba_function(program):
    """The Python function `run(x, one array, sums)` to be compiled."""
    number = program.inputs[0].dtype.type
    numbers = {"zero": number(0), "one": number(1)}
    if is_softmax(program):
        return _defined(NUMBA_SOFTMAX, numbers)
    lines, arrays, sums = _nodes(program, NUMBA, lambda value: _named(numbers, value))
    rows = [f"{name} = {text}" for name, _, text in lines]
    rows += [f"ys[i] = {name}" for name in arrays]
    rows += [f"sum{k} += {name}" for k, name in enumerate(sums)]
    source = NUMBA_LOOP.format(
        zeros="; ".join(f"sum{k} = zero" for k in range(len(sums))),
        lines="\n        ".join(rows),
        totals="; ".join(f"sums[{k}] = sum{k}" for k in range(len(sums))),
    )
    return _defined(source, numbers)


def numpy_function(program, dtype=None):
    """`run(x)`: the list of outputs, in the program's dtype, or with constants of another."""
    if is_softmax(program):
        return _defined(NUMPY_SOFTMAX, {})
    number = dtype or program.inputs[0].dtype.type
    numbers = {"one": number(1)}
    lines, arrays, sums = _nodes(program, NUMPY, lambda value: _named(numbers, number(value)))
    rows = [f"    {name} = {text}" for name, _, text in lines]
    found = ", ".join([*arrays, *(f"np.sum({name})" for name in sums)])
    return _defined("\n".join(["def run(x):", *rows, f"    return [{found}]"]), numbers)


def _nodes(program, forms, constant, suffix=""):
    """[(name, is it a truth value, expression)], and the names of arrays and of what is summed."""
    names, lines, sums = {program.inputs[0]: "x"}, [], {}
    for node in program.nodes:
        (y,), operands = node.outputs, [names.get(t) for t in node.inputs]
        kind = node.op.type
        if kind == "Constant":
            names[y] = constant(_number(node.op.value))
        elif kind == "ReduceSum":
            sums[y] = operands[0]
        elif kind != "Placeholder":
            form = " + ".join(["{}"] * len(operands)) if kind == "AddN" else (SAME | forms)[kind]
            names[y] = f"v{len(lines)}"
            lines.append((names[y], y.dtype == bool, form.format(*operands, s=suffix)))
    arrays = [names[t] for t in program.outputs if t not in sums]
    return lines, arrays, [sums[t] for t in program.outputs if t in sums]


def _number(value):
    """The number that every element of a constant is."""
    if (value != value.flat[0]).any():
        raise ValueError("a constant of more than one number has no text here")
    return value.flat[0]


def _named(numbers, value):
    """A global name for a number, so that it keeps its type."""
    name = f"c{len(numbers)}"
    numbers[name] = value
    return name


def _defined(source, names):
    """The function `run` of a source."""
    space = {"np": np, **names}
    exec(source, space)
    return space["run"]
