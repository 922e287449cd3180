"""What runs many cases in one test: none is left out, and each that is wrong is named."""

import inspect

import pytest

from .each import by_law, crossed, each, every, judge, together


def cases(*numbers):
    return [(f"n-{n}", [n]) for n in numbers]


def odd(n):
    assert n % 2, f"{n} is even"


def test_all_cases_are_tried_and_each_that_is_wrong_is_named():
    tried = []

    def test(n):
        tried.append(n)
        odd(n)

    with pytest.raises(ExceptionGroup, match="2 of 4 cases") as seen:
        judge(cases(1, 2, 3, 4), test)
    assert tried == [1, 2, 3, 4]
    assert [e.__notes__ for e in seen.value.exceptions] == [["case n-2"], ["case n-4"]]


def test_a_single_failure_is_raised_as_it_is():
    with pytest.raises(AssertionError, match="2 is even") as seen:
        judge(cases(1, 2, 3), odd)
    assert seen.value.__notes__ == ["case n-2"]


def test_pytest_fail_is_a_failure_and_an_interrupt_is_none():
    with pytest.raises(BaseExceptionGroup, match="2 of 2 cases"):
        judge(cases(1, 2), lambda n: pytest.fail(f"{n}"))
    with pytest.raises(KeyboardInterrupt):
        judge(cases(1, 2), lambda n: exec("raise KeyboardInterrupt"))


def test_what_is_skipped_hides_no_failure_and_all_skipped_is_a_skip():
    def test(n):
        if n < 3:
            pytest.skip(f"{n} is small")
        odd(n)

    judge(cases(1, 2, 3), test)
    with pytest.raises(AssertionError):
        judge(cases(1, 4, 2), test)
    with pytest.raises(pytest.skip.Exception, match="1 is small"):
        judge(cases(1, 2), test)


def test_cases_are_run_by_the_group_of_their_name_with_fixtures_beside_them():
    seen = []

    @each([("Add-0", 1, 2), ("Sub-0", 3, 4), ("Add-1", 5, 6)])
    def law(a, b, known):
        seen.append((a, b, known))

    (mark,) = law.pytestmark
    name, groups = mark.args
    assert list(inspect.signature(law).parameters) == [name, "known"]
    assert list(mark.kwargs["ids"]) == ["Add", "Sub"]
    for group in groups:
        law(*group.values, known=True)
    assert seen == [(1, 2, True), (5, 6, True), (3, 4, True)]


def test_every_law_is_tried_of_every_case():
    tried = by_law({"odd": odd, "even": len}, [("n-1", 1), ("n-2", 2)])
    assert [(name, *rest) for name, *rest in tried] == [
        ("n-1, odd", odd, 1),
        ("n-1, even", len, 1),
        ("n-2, odd", odd, 2),
        ("n-2, even", len, 2),
    ]


def tried_by(decorate):
    """{id of a test: what its cases are} of a decorator."""

    def test(*arguments):
        pass

    test.__signature__ = inspect.signature(lambda x, y: None)
    (mark,) = decorate(test).pytestmark
    groups = zip(mark.kwargs["ids"], mark.args[1], strict=True)
    return {name: [arguments for _, arguments in group.values[0]] for name, group in groups}


def test_of_a_row_each_nth_is_tried_and_as_many_by_ci_in_turns(monkeypatch):
    def marks(n):
        return [[mark.name for mark in case.marks] for case in every(n, range(6))]

    assert marks(1) == [[]] * 6
    assert marks(3) == [[], ["ci"], ["slow"]] * 2
    monkeypatch.setenv("GRAPHGRAD_SAMPLE", "2:0")
    assert marks(1) == [[], ["ci"]] * 3
    monkeypatch.setenv("GRAPHGRAD_SAMPLE", "2:7")
    assert marks(1) == [["ci"], []] * 3
    assert marks(3) == [["slow"]] * 3 + [[], ["ci"], ["slow"]]


def test_combinations_are_all_there_in_a_test_for_each_of_the_first():
    found = tried_by(crossed(["a", "b"], [1, 2]))
    assert found == {"a": [["a", 1], ["a", 2]], "b": [["b", 1], ["b", 2]]}
    assert tried_by(together([(1, 2), (3, 4)])) == {"all": [[1, 2], [3, 4]]}
