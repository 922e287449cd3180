"""Laws over the registry: what is promised is what is executed, and nobody's arrays change."""

from importlib.util import find_spec

import pytest

from graphgrad.ir.op import OP_TYPES
from graphgrad.laws import promises

from ..each import by_law, each
from .cases import CASES, first_and_more

LAWS = {
    "executed type": promises.executed_type,
    "layouts": promises.layouts,
    "unknown lengths": promises.unknown_lengths,
}
WITHOUT_SAMPLES = {
    "Placeholder",
    "Constant",
    "Variable",
    "Assign",
    "Residual",
    "Default",
    "Own",
    "Fused",
    "ConvolvedLoop",
    "RuleOutput",
    "UndefinedGradient",
    "Cond",
    "Scan",
    "While",
    "LoopIndex",
    "RandomKey",
    "PyFunction",
    "BinCountOfAll",  # as long as values say: tests/ops/test_histograms
    "TorchCall",  # tests/interop/test_torch_calls
    "OnnxOperator",  # tests/onnx_models/test_own_operators
    "PerExample",
    *("MaskPlaces", "Nonzero", "RepeatedPlaces"),  # as long as values say: tests/ops/test_nonzero
    *("RandomLogGamma", "LogGammaSlope", "WaldNumber"),  # tests/ops/test_random
}
WITHOUT_SAMPLES |= {"JaxFunction"} if find_spec("jax") is None else set()


def test_every_op_has_samples():
    sampled = {name.rpartition("-")[0] for name, _, _ in CASES}
    ours = {n for n, c in OP_TYPES.items() if c.__module__.startswith("graphgrad.")}
    assert ours - sampled == WITHOUT_SAMPLES


FIRST, MORE = first_and_more(CASES)


@each(by_law(LAWS, FIRST))
def test_types_are_as_promised_whatever_the_layouts_and_known_lengths(law, op, arrays):
    law(op, arrays)


@pytest.mark.slow
@each(by_law(LAWS, MORE))
def test_so_they_are_of_more_samples(law, op, arrays):
    law(op, arrays)
