"""Gradients of ONNX's node tests against differences, in float64.

    python tools/onnx_gradients.py [--only PART] [--tier A|B|X]

Each test's model is made float64, loaded, and differentiated in a random direction at a point near
its inputs: <dy, J v> by the gradient, and by differences. A test counts as *stepwise* where no
gradient is asked for: where outputs or inputs are no floating numbers, or the gradient is none.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from typing import Any

import numpy as np
import onnx
from onnx_tests import array_of, cases_of, loaded, tier_of

import graphgrad as gg

FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
STEPS, CLOSE = (1e-6, 1e-8), 1e-5
"""The second is for points that are nearer to a tie than the first."""


def widened(model: Any) -> Any:
    """The model with float64 for float32."""
    wide = onnx.ModelProto.FromString(model.SerializeToString())
    _widen_graph(wide.graph)
    return wide


def _widen_graph(graph: Any) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = DOUBLE
    for stored in graph.initializer:
        _widen_tensor(stored)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                _widen_tensor(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                _widen_graph(attribute.g)
            elif attribute.name in ("to", "dtype") and attribute.i == FLOAT:
                attribute.i = DOUBLE
            elif attribute.name in ("value_float", "value_floats"):
                numbers = attribute.f if attribute.name == "value_float" else attribute.floats
                array = np.array(numbers, "float64")
                attribute.CopyFrom(onnx.helper.make_attribute("value", _stored(array)))


def _stored(array: Any) -> Any:
    return onnx.numpy_helper.from_array(np.asarray(array))


def _widen_tensor(stored: Any) -> None:
    if stored.data_type == FLOAT:
        array = onnx.numpy_helper.to_array(stored).astype("float64")
        stored.CopyFrom(onnx.numpy_helper.from_array(array, stored.name))


def compared(case: Any) -> tuple[str, str]:
    """("agree", ""), ("differ", how) or ("stepwise", why)."""
    inputs, _ = case.data_sets[0]
    feeds = {s.name: array_of(a) for s, a in zip(case.model.graph.input, inputs, strict=False)}
    if any(isinstance(a, list) for a in feeds.values()):
        return "stepwise", "no tensor comes in"
    feeds = {n: a.astype("f8") if a.dtype == np.float32 else a for n, a in feeds.items()}
    model = loaded(widened(case.model), feeds)
    rng = np.random.default_rng(0)
    xs = {n: t for n, t in model.inputs.items() if t.dtype == np.float64}
    ys = [t for t in model.outputs.values() if t.dtype == np.float64]
    if not xs or not ys:
        return "stepwise", "no floating number comes in or goes out"
    if not all(np.isfinite(feeds[n]).all() for n in xs):
        return "stepwise", "inputs are not finite"
    points = {n: off_kinks(feeds[n], rng) for n in xs}
    ways = {n: rng.normal(size=p.shape) for n, p in points.items()}
    with model.graph:
        total = gg.sum(gg.stack([gg.sum(y * seed(y, rng)) for y in ys]))
        dxs = gg.gradients(total, list(xs.values()))
    if all(dx is None for dx in dxs):
        return "stepwise", "the gradient is none"
    kept = {n: dx for n, dx in zip(xs, dxs, strict=True) if dx is not None}
    others = [t for n, t in model.inputs.items() if n not in xs]
    f = gg.compile([*xs.values(), *others], [total, *kept.values()])
    rest = [feeds[n] for n in model.inputs if n not in xs]

    def at(step: float) -> list[Any]:
        moved = [points[n] + step * ways[n] if n in kept else points[n] for n in xs]
        return f(*moved, *rest)

    value, *slopes = at(0)
    if not np.isfinite(value):
        return "stepwise", "its value is not finite"
    by_rule = sum(np.vdot(s, ways[n]) for s, n in zip(slopes, kept, strict=True))
    for step in STEPS:
        by_difference = (at(step)[0] - at(-step)[0]) / (2 * step)
        size = max(abs(by_rule), abs(by_difference), 1e-3)
        if abs(by_rule - by_difference) <= CLOSE * size * (STEPS[0] / step) ** 0.5 + 1e-7:
            return "agree", ""
    return "differ", f"{by_rule:.8g} by the gradient, {by_difference:.8g} by differences"


def off_kinks(x: Any, rng: np.random.Generator) -> Any:
    """A point near x, and not at zero, where many functions have a kink or a pole."""
    return np.where(
        x == 0, 0.05 + 0.01 * rng.random(x.shape), x * (1 + 1e-3 * rng.normal(size=x.shape))
    )


def seed(y: gg.Tensor, rng: np.random.Generator) -> Any:
    """What the elements of an output are weighted by."""
    return rng.normal(size=y.shape) if y.type.static else 1.5


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="PART")
    parser.add_argument("--tier", default="A")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for case in cases_of("node"):
        if tier_of(case) != options.tier or options.only not in case.name:
            continue
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                kind, why = compared(case)
        except gg.FileError:
            kind, why = "refused", ""
        except Exception as error:
            kind, why = "no answer", f"{type(error).__name__}: {error}"
        counts[kind] += 1
        if kind in ("differ", "no answer"):
            print(f"{kind} {case.name.removeprefix('test_')}: {why:.200}")
    print(f"tier {options.tier}: {dict(counts)}")


if __name__ == "__main__":
    main()
