"""Each rule of the library through each journey, as docs/survival.md has it."""

import importlib.util

import pytest

from ..each import each
from .survival import EVERY, RULES, declared, outcome, shown

CELLS = [
    (f"{journey}, {rule}", rule, journey)
    for journey in EVERY
    for rule in RULES
    if declared(rule, journey) in "HE"
]
NEEDS = {"ONNX": "onnxruntime", "JAX": "jax", "LLVM": "llvmlite"}


def by_journey(name):
    return name.partition(",")[0]


def is_as_declared(rule, journey):
    if journey in NEEDS and not importlib.util.find_spec(NEEDS[journey]):
        pytest.skip(f"no {NEEDS[journey]}")
    assert outcome(rule, journey)[:1] == declared(rule, journey), outcome(rule, journey)


@each([c for i, c in enumerate(CELLS) if i % 29 == 0 and c[2] not in NEEDS], by_journey)
def test_S27_a_rule_survives_a_journey(rule, journey):
    is_as_declared(rule, journey)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:PyFunction has no batching rule:graphgrad.PerformanceWarning")
@each(CELLS, by_journey)
def test_S27_every_rule_survives_every_journey(rule, journey):
    is_as_declared(rule, journey)


@pytest.mark.ci
def test_each_rule_has_a_case():
    assert set(RULES) <= shown().keys()
