"""What TensorFlow 1's graph mode does, recorded from it, case by case."""

from contextlib import nullcontext

import pytest

import graphgrad.tf1 as tf
from tests.each import together
from tests.tf1.recorded.running import GROUPS, cases_of, differences, records_of, result_of

LONG = {"ops", "programs_learning", "programs_vision", "random_graphs"}
MARKED = [pytest.param(g, marks=pytest.mark.ci) if g in LONG else g for g in GROUPS]


@pytest.mark.parametrize("group", MARKED)
def test_does_as_tensorflow_does(group):
    records = records_of(group)
    wrong = [line for name, case in cases_of(group).items() for line in judged(name, case, records)]
    assert not wrong, "\n".join(wrong)


def judged(name, case, records):
    """Where a case differs from its record; an error that it raises is a difference."""
    try:
        return differences(records[name], result_of(case, tf), name)
    except Exception as error:
        return [f"{name}: raises {type(error).__name__}: {error}"]


def test_every_case_is_recorded_and_every_record_has_its_case():
    assert {g: set(records_of(g)) for g in GROUPS} == {g: set(cases_of(g)) for g in GROUPS}


def test_without_maps_the_cases_of_maps_differ(monkeypatch):
    records, cases = records_of("maps"), cases_of("maps")
    monkeypatch.setattr(tf.Graph, "gradient_override_map", lambda graph, types: nullcontext())
    differ = [name for name, case in cases.items() if judged(name, case, records)]
    assert len(differ) > 0.8 * len(cases)


@together(
    [
        ({"y": {"float32": [1.0]}}, {"y": {"float32": [1.001]}}),
        ({"y": {"float32": [1.0]}}, {"y": {"float64": [1.0]}}),
        ({"y": {"float32": [1.0]}}, {"y": {"float32": 1.0}}),
        ({"y": {"float32": [0.0]}}, {"y": None}),
        ({"y": {"int32": [1, 2]}}, {"y": {"int32": [1, 3]}}),
        ({"y": "Mul"}, {"y": "Mul_1"}),
        ({"y": True}, {"y": 1}),
        ({"y": []}, {}),
        ([1, 2], [1, 2, 3]),
        ({"raised": ["ValueError"], "says": {}}, {"float32": 1.0}),
        ({"raised": ["KeyError"], "says": {}}, {"raised": ["ValueError"], "says": {}}),
        ({"raised": ["E"], "says": {"x": True}}, {"raised": ["E"], "says": {"x": False}}),
    ],
)
def test_what_differs_is_found(record, result):
    assert differences(record, record) == []
    assert differences(record, result) != []


def test_a_subclass_and_last_digits_are_no_difference():
    record = {"raised": ["ValueError"], "says": {"x": False}}
    assert differences(record, {"raised": ["ShapeError", "ValueError"], "says": {"x": True}}) == []
    assert differences({"y": {"float32": [1e3, 1.0]}}, {"y": {"float32": [1e3, 1.001]}}) == []
