"""ONNX's own tests, loaded and run: how many are right, wrong, refused.

    python tools/onnx_tests.py [--kind node|simple|pytorch-converted|pytorch-operator|light]
                               [--only PART] [--show refused|right]

Numbers that decide about shapes are inputs in many of these tests; they are given by `known=`, as a
user would, when loading says that it needs them. Needs the package onnx.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

import graphgrad as gg

BEYOND = {
    "draws random numbers": (
        "Bernoulli RandomUniformLike RandomNormalLike RandomUniform RandomNormal Multinomial"
    ),
    "strings": "StringConcat StringNormalizer StringSplit RegexFullMatch TfIdfVectorizer",
    "sequences": (
        "SequenceEmpty SequenceInsert SequenceMap SequenceLength SequenceAt SplitToSequence "
        "ConcatFromSequence OptionalHasElement OptionalGetElement"
    ),
    "files of images": "ImageDecoder",
    "preview of training": "Adam Adagrad Momentum",
    "ai.onnx.ml": "LabelEncoder TreeEnsemble ArrayFeatureExtractor Binarizer",
    "control flow": "If Loop Scan",
}
"""Tier X: beyond what a graph of tensors of numbers is, and control flow."""
SHORT = ("FLOAT8", "FLOAT4", "INT4", "INT2", "e4m3", "e5m2", "e2m1", "int4", "int2")
TIER_B = """
AffineGrid Attention BitCast BitShift BlackmanWindow CausalConvWithState CenterCropPad Col2Im
ConvInteger DFT DeformConv Det DynamicQuantizeLinear FlexAttention GRU GridSample GroupNormalization
HammingWindow HannWindow LRN LSTM LinearAttention MatMulInteger MaxUnpool MelWeightMatrix
NonMaxSuppression QLinearConv QLinearMatMul RMSNormalization RNN Resize RoiAlign RotaryEmbedding
STFT TensorScatter Unique Upsample
"""
"""Operators that few models have, or whose forms are long."""


class Outcome(NamedTuple):
    """What became of a test: right, wrong, refused or failed, and why."""

    name: str
    tier: str
    kind: str
    why: str = ""


def tier_of(case: Any) -> str:
    """A: what most models are made of; B: more operators; X: no graph of numbers, or control."""
    ops = {node.op_type for node in case.model.graph.node}
    beyond = {op for names in BEYOND.values() for op in names.split()}
    if ops & beyond or any(part in case.name for part in SHORT):
        return "X"
    name = case.name.removeprefix("test_").replace("_", "")
    more = set(TIER_B.split())
    about = {op for op in more if name.startswith(op.lower())}
    return "B" if ops & more or about else "A"


def tried(case: Any) -> Outcome:
    """Load a test's model, run it on its inputs, compare with its outputs."""
    tier, name = tier_of(case), case.name.removeprefix("test_")
    inputs, wanted = case.data_sets[0]
    given = zip(case.model.graph.input, map(array_of, inputs), strict=False)
    feeds = {said.name: array for said, array in given}
    try:
        model = loaded(case.model, feeds)
    except gg.FileError as error:
        return Outcome(name, tier, "refused", str(error))
    except Exception as error:
        return Outcome(name, tier, "failed", f"{type(error).__name__}: {error}")
    try:
        found = gg.evaluate(
            list(model.outputs.values()), {t: feeds[n] for n, t in model.inputs.items()}
        )
    except Exception as error:
        return Outcome(name, tier, "failed", f"running: {type(error).__name__}: {error}")
    for said, got, right in zip(case.model.graph.output, found, wanted, strict=True):
        why = difference(got, array_of(right), case)
        if why:
            return Outcome(name, tier, "wrong", f"{said.name}: {why}")
    return Outcome(name, tier, "right")


def array_of(given: Any) -> Any:
    """What a test gives for a tensor: an array, or a stored one."""
    if isinstance(given, onnx.TensorProto):
        return onnx.numpy_helper.to_array(given)
    return given if given is None or isinstance(given, list) else np.asarray(given)


def loaded(model: Any, feeds: dict[str, Any]) -> gg.onnx.OnnxModel:
    """The model, with each input as `known` that loading asks for."""
    known: dict[str, Any] = {}
    while True:
        try:
            return gg.onnx.load(model, known=known)
        except gg.FileError as error:
            read = getattr(error.__cause__, "inputs", ())
            asked = [name for name in read if name in feeds and feeds[name].ndim < 2]
            if not set(asked) - set(known):
                raise
            known.update((name, feeds[name]) for name in asked)


def difference(got: Any, right: Any, case: Any) -> str:
    """What differs by more than the test allows, or 2 units in the last place of half a float."""
    wanted = right.dtype
    if got.shape != right.shape or got.dtype != right.dtype:
        return f"{got.dtype}{list(got.shape)} for {right.dtype}{list(right.shape)}"
    if got.dtype.kind == "V":
        got, right = got.astype("float32"), right.astype("float32")
    coarse = {"bfloat16": 2 / 2**7, "float16": 2 / 2**10}.get(str(wanted), 0)
    if np.allclose(got, right, rtol=max(case.rtol, coarse), atol=case.atol, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        return f"differs by {np.nanmax(np.abs(got.astype('f8') - right.astype('f8'))):.3g}"


def cases_of(kind: str) -> list[Any]:
    """The tests of a kind, as the package onnx has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind=kind)
    return found if kind == "node" else [stored(case) for case in found if case.model_dir]


def stored(case: Any) -> Any:
    """A test that lies in a folder, with its model and its first set of data."""
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = sorted(folder.glob("test_data_set_*"))[:1]
    rows = [
        [numbers(path) for path in sorted(where.glob(f"{what}_*.pb"))]
        for where in sets
        for what in ("input", "output")
    ]
    return replace(case, model=model, data_sets=[tuple(rows)])


def numbers(path: Path) -> Any:
    """A stored tensor."""
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="node")
    parser.add_argument("--only", default="", metavar="PART")
    parser.add_argument("--show", action="append", default=[], metavar="KIND")
    options = parser.parse_args()
    found = [tried(case) for case in cases_of(options.kind) if options.only in case.name]
    for row in found:
        if row.kind in options.show or row.kind in ("wrong", "failed"):
            print(f"{row.kind} {row.tier} {row.name}: {row.why:.300}")
    for tier in "ABX":
        counts = Counter(row.kind for row in found if row.tier == tier)
        print(f"tier {tier}: {sum(counts.values())} tests: {dict(counts)}")


if __name__ == "__main__":
    main()
