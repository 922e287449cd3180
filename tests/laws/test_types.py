"""Laws over the registry: what is promised is what is executed, and nobody's arrays change."""

from graphgrad.ir.op import OP_TYPES
from graphgrad.laws import promises

from ..each import each
from .cases import CASES

WITHOUT_SAMPLES = {
    "Placeholder",
    "Constant",
    "Variable",
    "Assign",
    "Residual",
    "Default",
    "Own",
    "Fused",
    "RuleOutput",
    "UndefinedGradient",
    "Cond",
    "Scan",
    "While",
    "RandomKey",
    "PyFunction",
    "PerExample",
    *("MaskPlaces", "Nonzero", "RepeatedPlaces"),  # as long as values say: tests/ops/test_nonzero
    *("RandomLogGamma", "LogGammaSlope"),  # tests/ops/test_random
}


def test_every_op_has_samples():
    sampled = {name.rpartition("-")[0] for name, _, _ in CASES}
    ours = {n for n, c in OP_TYPES.items() if c.__module__.startswith("graphgrad.")}
    assert ours - sampled == WITHOUT_SAMPLES


@each(CASES)
def test_the_executed_type_is_the_promised_type(op, arrays):
    promises.executed_type(op, arrays)


@each(CASES)
def test_layouts_do_not_matter(op, arrays):
    promises.layouts(op, arrays)


@each(CASES)
def test_unknown_lengths_give_the_same_values(op, arrays):
    promises.unknown_lengths(op, arrays)
