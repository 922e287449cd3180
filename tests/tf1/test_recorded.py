"""What TensorFlow 1's graph mode does, recorded from it, case by case."""

import pytest

import graphgrad.tf1 as tf
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
