"""Laws: one test a group of cases, which tries all of them and names each that is wrong."""

import os
from collections import defaultdict
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import product

import pytest

from graphgrad.laws.trying import NotTried


def type_of(name):
    """The op type in the name of a sample."""
    return name.partition("-")[0]


def initial(name):
    """Its first letter: a group for what takes no time."""
    return name[0]


def grouped(cases, group=type_of):
    """{name of a group: [(name, arguments)]} of (name, *arguments)."""
    groups = defaultdict(list)
    for name, *arguments in cases:
        groups[group(name)].append((name, arguments))
    return groups


def by_law(laws, cases):
    """(name with the law, law, *arguments) of every case: what `each` tries of it in one test."""
    return [
        (f"{name}, {law}", check, *arguments)
        for name, *arguments in cases
        for law, check in laws.items()
    ]


def every(n, values):
    """Parameters of a test: each n-th is tried by default, as many by .ci/run, others if asked.

    GRAPHGRAD_SAMPLE="3:7" tries a third of those: which third, a count of commits may say.
    """
    part, _, which = os.environ.get("GRAPHGRAD_SAMPLE", "1").partition(":")
    first, n = int(which or 0) % int(part) * n, n * int(part)
    marks = {0: (), 1: (pytest.mark.ci,)}
    return [
        pytest.param(v, marks=marks.get((i - first) % n, (pytest.mark.slow,)))
        for i, v in enumerate(values)
    ]


def each(cases, group=type_of, sample=1):
    """Have a test called for each (name, *arguments), in one run of it for each group of names.

    The arguments are its first parameters. What fails is raised after the last case of the group,
    with a note that names the case; several failures as an ExceptionGroup. A run is skipped
    where every case is, and a test that has no case. Of groups, `sample` is the n of `every`.
    """
    groups = grouped(cases, group)
    if not groups:
        return pytest.mark.skip(reason="there is no case here")

    def decorate(test):
        @wraps(test)
        def run(cases, **fixtures):
            judge(cases, lambda *arguments: test(*arguments, **fixtures))

        _, arguments = next(iter(groups.values()))[0]
        fixtures = list(signature(test).parameters.values())[len(arguments) :]
        of_group = Parameter("cases", Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = Signature([of_group, *fixtures])
        return pytest.mark.parametrize("cases", every(sample, groups.values()), ids=groups)(run)

    return decorate


def crossed(first, *others):
    """`each` for every combination of these values: one test for each of the first."""
    cases = [(f"{values[0]}, {values[1:]}", *values) for values in product(first, *others)]
    return each(cases, lambda name: name.partition(", (")[0])


def together(cases):
    """`each` for tuples of arguments, all in one test: for what takes next to no time."""
    return each([(f"of {arguments!r}", *arguments) for arguments in cases], lambda name: "all")


def judge(cases, test):
    """Call a test for each (name, arguments), all of them; raise what fails."""
    wrong, skipped = [], []
    for name, arguments in cases:
        try:
            test(*arguments)
        except (pytest.skip.Exception, NotTried) as reason:
            skipped.append(str(reason))
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"case {name}")
            wrong.append(error)
    if len(wrong) > 1:
        raise BaseExceptionGroup(f"{len(wrong)} of {len(cases)} cases", wrong)
    if wrong:
        raise wrong[0]
    if cases and len(skipped) == len(cases):
        pytest.skip(skipped[0])
