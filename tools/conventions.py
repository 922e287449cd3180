"""What gradients are at ties, kinks, zeros and singular points: graphgrad's beside those of others.

python tools/conventions.py            print what differs from tools/conventions.json
python tools/conventions.py --write    write there what is measured; of what is not installed, what
                                       was measured before stays

The rows are the data: an expression in the functions of `gg`, the point, and how TensorFlow,
PyTorch and JAX say it. "=" is the same in the names of theirs; "" is nothing.
"""

import argparse
import json
from collections import ChainMap
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

import graphgrad as gg

MEASURED = Path(__file__).resolve().parent / "conventions.json"
PEERS = ("tensorflow", "torch", "jax")
INFINITIES = {"inf": np.inf, "nan": np.nan}

ROWS = (
    # --- two numbers, one of which is chosen
    ("maximum(x, y)", "x=1, y=1", "=", "=", "="),
    ("maximum(x, y)", "x=nan, y=1", "=", "=", "="),
    ("minimum(x, y)", "x=1, y=1", "=", "=", "="),
    ("fmax(x, y)", "x=nan, y=1", "", "=", "="),
    ("clip(x, 0, 1)", "x=0", "clip_by_value(x, 0, 1)", "=", "="),
    ("clip(x, 0, 1)", "x=1", "clip_by_value(x, 0, 1)", "=", "="),
    ("where(x > 0, log(x), 0)", "x=-1", "where(x > 0, math.log(x), 0)", "=", "="),
    ("where(x > 0, sqrt(x), 0)", "x=0", "=", "=", "="),
    # --- kinks
    ("abs(x)", "x=0", "=", "=", "="),
    ("abs(x)", "x=0j", "=", "=", "="),
    ("sign(x)", "x=0", "=", "=", "="),
    ("copysign(x, y)", "x=0, y=1", "", "=", "="),
    ("copysign(x, y)", "x=1, y=0", "", "=", "="),
    ("nn.relu(x)", "x=0", "=", "nn.functional.relu(x)", "="),
    ("nn.leaky_relu(x, 0.1)", "x=0", "=", "nn.functional.leaky_relu(x, 0.1)", "="),
    ("nn.elu(x)", "x=0", "=", "nn.functional.elu(x)", "="),
    ("nn.relu6(x)", "x=0", "=", "nn.functional.relu6(x)", "="),
    ("nn.relu6(x)", "x=6", "=", "nn.functional.relu6(x)", "="),
    ("nn.hard_tanh(x)", "x=1", "", "nn.functional.hardtanh(x)", "="),
    ("nn.hard_sigmoid(x)", "x=3", "", "nn.functional.hardsigmoid(x)", "="),
    ("nn.hard_silu(x)", "x=-3", "", "nn.functional.hardswish(x)", "="),
    ("nn.softshrink(x, 0.5)", "x=0.5", "", "nn.functional.softshrink(x, 0.5)", ""),
    ("nn.l1_loss(x, y)", "x=1, y=1", "", "nn.functional.l1_loss(x, y)", ""),
    ("nn.huber_loss(x, y)", "x=1, y=0", "", "nn.functional.huber_loss(x, y)", ""),
    ("angle(x)", "x=0j", "math.angle(x)", "=", "="),
    ("sqrt(x).real", "x=0j", "math.real(sqrt(x))", "=", "="),
    ("nan_to_num(x)", "x=nan", "", "=", "="),
    ("interp(x, [0, 1, 2], [0, 1, 3])", "x=1", "", "", "interp(x, r_[0., 1, 2], r_[0., 1, 3])"),
    # --- steps
    ("floor(x)", "x=1", "=", "=", "="),
    ("round(x)", "x=0.5", "=", "=", "="),
    ("remainder(x, y)", "x=4, y=2", "math.floormod(x, y)", "=", "="),
    ("fmod(x, y)", "x=4, y=2", "", "=", "="),
    ("heaviside(x, 0.5)", "x=0", "", "heaviside(x, tensor(0.5).double())", "="),
    # --- zeros and poles of functions
    ("sqrt(x)", "x=0", "=", "=", "="),
    ("cbrt(x)", "x=0", "", "", "="),
    ("reciprocal(x)", "x=0", "math.reciprocal(x)", "=", "="),
    ("log(x)", "x=0", "math.log(x)", "=", "="),
    ("log1p(x)", "x=-1", "math.log1p(x)", "=", "="),
    ("power(x, y)", "x=0, y=0", "pow(x, y)", "pow(x, y)", "="),
    ("power(x, y)", "x=0, y=1", "pow(x, y)", "pow(x, y)", "="),
    ("power(x, y)", "x=0, y=2", "pow(x, y)", "pow(x, y)", "="),
    ("power(x, y)", "x=0, y=0.5", "pow(x, y)", "pow(x, y)", "="),
    ("power(x, y)", "x=0, y=-1", "pow(x, y)", "pow(x, y)", "="),
    ("power(x, y)", "x=-2, y=2", "pow(x, y)", "pow(x, y)", "="),
    ("hypot(x, y)", "x=0, y=0", "", "=", "="),
    ("arctan2(x, y)", "x=0, y=0", "atan2(x, y)", "=", "="),
    ("arcsin(x)", "x=1", "asin(x)", "=", "="),
    ("arccos(x)", "x=1", "acos(x)", "=", "="),
    ("arccosh(x)", "x=1", "acosh(x)", "=", "="),
    ("arctanh(x)", "x=1", "atanh(x)", "=", "="),
    ("sinc(x)", "x=0", "", "=", "="),
    ("logaddexp(x, y)", "x=-inf, y=-inf", "", "=", "="),
    ("special.xlogy(x, y)", "x=0, y=0", "math.xlogy(x, y)", "=", "scipy.special.xlogy(x, y)"),
    ("special.entr(x)", "x=0", "", "=", "scipy.special.entr(x)"),
    ("special.erfinv(x)", "x=1", "math.erfinv(x)", "=", "scipy.special.erfinv(x)"),
    ("special.gammaln(x)", "x=0", "math.lgamma(x)", "=", "scipy.special.gammaln(x)"),
    ("special.logit(x)", "x=1", "", "=", "scipy.special.logit(x)"),
    ("nn.softplus(x)", "x=1000", "=", "nn.functional.softplus(x)", "="),
    # --- reductions
    ("max(x)", "x=[1, 1, 0]", "reduce_max(x)", "=", "="),
    ("max(x, 0)", "x=[1, 1, 0]", "reduce_max(x, 0)", "max(x, 0)[0]", "="),
    ("min(x)", "x=[nan, 1]", "reduce_min(x)", "=", "="),
    ("prod(x)", "x=[0, 2]", "reduce_prod(x)", "=", "="),
    ("prod(x)", "x=[0, 0, 3]", "reduce_prod(x)", "=", "="),
    ("cumulative_prod(x)", "x=[0, 2]", "math.cumprod(x)", "cumprod(x, 0)", "cumprod(x)"),
    ("cummax(x)", "x=[1, 1]", "", "cummax(x, 0)[0]", "lax.cummax(x)"),
    ("std(x)", "x=[1, 1]", "math.reduce_std(x)", "std(x, correction=0)", "="),
    ("var(x, correction=1)", "x=[1]", "", "=", "var(x, ddof=1)"),
    ("logsumexp(x)", "x=[-inf, -inf]", "reduce_logsumexp(x)", "logsumexp(x, 0)", "nn.logsumexp(x)"),
    ("logsumexp(x)", "x=[inf, 0]", "reduce_logsumexp(x)", "logsumexp(x, 0)", "nn.logsumexp(x)"),
    ("nn.softmax(x)[0]", "x=[-inf, -inf]", "=", "nn.functional.softmax(x, 0)[0]", "="),
    ("median(x)", "x=[1, 1, 2]", "", "=", "="),
    ("quantile(x, 0.5)", "x=[1, 2]", "", "=", "="),
    ("nansum(x)", "x=[nan, 1]", "", "=", "="),
    ("sort(x)[0]", "x=[1, 1]", "=", "sort(x)[0][0]", "="),
    ("topk(x, 1)[0]", "x=[1, 1]", "math.top_k(x, 1)[0]", "=", "lax.top_k(x, 1)[0]"),
    (
        "nn.max_pool(reshape(x, (1, 2, 2, 1)), 2)",
        "x=[1, 1, 0, 1]",
        "nn.max_pool2d(reshape(x, (1, 2, 2, 1)), 2, 2, 'VALID')",
        "nn.functional.max_pool2d(reshape(x, (1, 1, 2, 2)), 2)",
        "lax.reduce_window(reshape(x, (2, 2)), -inf, lax.max, (2, 2), (2, 2), 'VALID')",
    ),
    (
        "nn.embedding_bag([[0, 1]], x, 'max')",
        "x=[[1], [1]]",
        "",
        "nn.functional.embedding_bag(tensor([[0, 1]]), x, mode='max')",
        "",
    ),
    ("nanmax(x)", "x=[nan, 1, 1]", "", "", "="),
    ("ptp(x)", "x=[1, 1]", "", "", "="),
    ("unique_values(x)", "x=[1, 1]", "", "unique(x)", "unique(x)"),
    # --- norms and matrices
    ("linalg.norm(x)", "x=[0, 0]", "norm(x)", "=", "="),
    ("linalg.norm(x, ord=1)", "x=[0, 1]", "norm(x, ord=1)", "=", "="),
    ("linalg.norm(x, ord=inf)", "x=[1, -1]", "norm(x, ord=inf)", "=", "="),
    ("linalg.norm(x, ord='nuc')", "x=[[0, 0], [0, 0]]", "", "=", "="),
    ("linalg.norm(x, ord=2)", "x=[[1, 0], [0, 1]]", "", "=", "="),
    ("linalg.vector_norm(x, ord=3)", "x=[0, 0]", "", "=", "="),
    (
        "nn.cosine_similarity(x, y)",
        "x=[0, 0], y=[1, 0]",
        "",
        "nn.functional.cosine_similarity(x, y, 0)",
        "",
    ),
    ("linalg.det(x)", "x=[[1, 2], [2, 4]]", "=", "=", "="),
    ("linalg.det(x)", "x=[[0, 0], [0, 0]]", "=", "=", "="),
    ("linalg.slogdet(x)[1]", "x=[[1, 2], [2, 4]]", "=", "=", "="),
    ("linalg.inv(x)", "x=[[1, 2], [2, 4]]", "=", "=", "="),
    ("linalg.pinv(x)", "x=[[0, 0], [0, 0]]", "=", "=", "="),
    ("linalg.eigvalsh(x)", "x=[[1, 0], [0, 1]]", "=", "=", "="),
    ("linalg.eigh(x)[1]", "x=[[1, 0], [0, 1]]", "=", "=", "="),
    ("linalg.svdvals(x)", "x=[[1, 0], [0, 1]]", "linalg.svd(x, False, False)", "=", "="),
    ("linalg.svdvals(x)", "x=[[0, 0], [0, 0]]", "linalg.svd(x, False, False)", "=", "="),
    ("linalg.svd(x)[0]", "x=[[1, 0], [0, 1]]", "linalg.svd(x)[1]", "=", "="),
    ("linalg.cholesky(x)", "x=[[1, 1], [1, 1]]", "=", "=", "="),
    ("linalg.qr(x)[1]", "x=[[1, 2], [0, 0]]", "=", "=", "="),  # singular whatever LAPACK rounds
    ("linalg.solve(x, eye(2))", "x=[[1, 2], [2, 4]]", "", "linalg.solve(x, eye(2).double())", "="),
)  # fmt: skip


class Entry(NamedTuple):
    """A row with what was measured: graphgrad's gradients, and those of each peer."""

    expression: str
    at: str
    gradients: tuple[str, ...]


def numbers(at):
    """The point: arrays of doubles, or complex ones, by name."""
    written = eval(f"dict({at})", dict(INFINITIES))
    return {n: np.asarray(v, np.result_type(np.asarray(v), "float64")) for n, v in written.items()}


class Names(dict):
    """What an expression may name: that of a library's modules, the first that has it."""

    def __init__(self, *modules):
        self.modules = modules

    def __missing__(self, name):
        for module in self.modules:
            if hasattr(module, name):
                return getattr(module, name)
        raise KeyError(name)


def value(expression, variables, *modules):
    """What the expression is, in the names of these modules."""
    return eval(expression, {}, ChainMap({**INFINITIES, **variables}, Names(*modules)))


def of_graphgrad(expression, at):
    """graphgrad's gradients."""
    point = numbers(at)
    with gg.Graph():
        xs = {n: gg.placeholder(a.shape, a.dtype) for n, a in point.items()}
        dxs = gg.gradients(gg.sum(value(expression, xs, gg)), list(xs.values()))
        return gg.compile(list(xs.values()), dxs, backend="numpy")(*point.values())


def of_tensorflow(expression, at):
    """TensorFlow's."""
    import tensorflow as tf

    xs = {n: tf.constant(a) for n, a in numbers(at).items()}
    with tf.GradientTape() as tape:
        tape.watch(list(xs.values()))
        y = tf.reduce_sum(value(expression, xs, tf))
    return tape.gradient(y, list(xs.values()))


def of_torch(expression, at):
    """PyTorch's."""
    import torch

    xs = {n: torch.tensor(a, requires_grad=True) for n, a in numbers(at).items()}
    y = value(expression, xs, torch).sum()
    if not y.requires_grad:
        return [None] * len(xs)
    found = torch.autograd.grad(y, list(xs.values()), allow_unused=True)
    return [d if d is None else d.resolve_conj() for d in found]


def of_jax(expression, at):
    """JAX's."""
    import jax
    import jax.numpy as jnp
    import jax.scipy.special

    point = numbers(at)
    with jax.enable_x64(True):
        arrays = [jnp.asarray(a) for a in point.values()]

        def summed(*xs):
            return jnp.sum(value(expression, dict(zip(point, xs, strict=True)), jnp, jax))

        return jax.grad(summed, tuple(range(len(arrays))))(*arrays)


MEASURE = {"tensorflow": of_tensorflow, "torch": of_torch, "jax": of_jax}


def shown(measure, expression, at):
    """The gradients as text; "none": there is none, "error": it is refused."""
    if not expression:
        return "-"
    try:
        with np.errstate(all="ignore"):
            found = measure(expression, at)
    except Exception as error:
        if isinstance(error, KeyError | NameError | AttributeError):
            raise  # the row is written wrongly
        return "error"
    if all(d is None for d in found):
        return "none"
    return ", ".join("none" if d is None else text(np.asarray(d)) for d in found)


def text(array):
    """`[0.5 0.5]`; matrices row after row."""
    if array.ndim:
        return f"[{' '.join(map(text, array))}]"
    number = array.item()
    if isinstance(number, complex):
        return text(np.asarray(number.real)) if number.imag == 0 else f"{number:.4g}"
    return f"{number + 0.0:.4g}"  # one zero


def own():
    """(expression, at) -> graphgrad's gradients, as they are now."""
    return {(row[0], row[1]): shown(of_graphgrad, row[0], row[1]) for row in ROWS}


@cache
def measured():
    """What was measured: {"versions": {peer: version}, "gradients": {row: [texts]}}."""
    return json.loads(MEASURED.read_text())


def versions():
    """Of whom the measurements are."""
    return measured()["versions"]


def entries():
    """The rows with what was measured."""
    known = measured()["gradients"]
    return [Entry(e, at, tuple(known[f"{e} at {at}"])) for e, at, *_ in ROWS]


def measure_all():
    """What is measured now, where it can be, and what was measured before elsewhere."""
    before = measured() if MEASURED.exists() else {"versions": {}, "gradients": {}}
    mine, found = own(), {}
    installed = [p for p in PEERS if find_spec(p)]
    versions = {p: import_module(p).__version__.partition("+")[0] for p in installed}
    for expression, at, *theirs in ROWS:
        key = f"{expression} at {at}"
        old = before["gradients"].get(key, [""] * 4)
        found[key] = [mine[expression, at]]
        for i, (peer, said) in enumerate(zip(PEERS, theirs, strict=True)):
            said = expression if said == "=" else said
            new = shown(MEASURE[peer], said, at) if peer in installed else old[i + 1]
            found[key].append(new)
    return {"versions": {**before["versions"], **versions}, "gradients": found}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    now = measure_all()
    if write:
        gradients = now["gradients"].items()
        rows = ",\n".join(
            f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in gradients
        )
        named = json.dumps(now["versions"])
        MEASURED.write_text(f'{{"versions": {named}, "gradients": {{\n{rows}\n}}}}\n')
    else:
        for key, found in now["gradients"].items():
            if (before := measured()["gradients"].get(key)) != found:
                print(f"{key}: {before} -> {found}")
