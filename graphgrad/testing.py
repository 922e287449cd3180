"""Checks of gradient rules for the tests of other packages: `pytest --graphgrad-rules`.

`check_rule` checks that a rule has the properties that it declares, on examples drawn by
Hypothesis; `examples` draws them for tests of your own. With the flag, pytest checks every rule
that is registered when the tests are collected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .base.domains import FROM_ONE
from .base.errors import GradientError
from .base.first_tries import unknown_names
from .base.lazy import lazy_module
from .checks.gradient import check_gradient
from .checks.report import Report
from .ir.node import Tensor
from .ir.types import Array
from .ops.elementwise.arithmetic import add, multiply
from .ops.elementwise.trigonometry import sin, tanh
from .regions.rules import registered_gradients

if TYPE_CHECKING:
    import hypothesis
    from hypothesis import strategies
else:
    hypothesis = lazy_module("hypothesis")
    strategies = lazy_module("hypothesis.strategies")

__all__ = ["Example", "check_rule", "examples", "rules_of_users"]

SHAPES = ((), (3,), (2, 3), (1, 4))
DTYPES = ("float64", "float32")
MOST_INPUTS = 3


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)


class Example(NamedTuple):
    """A function to put a rule on, and arrays to call it with.

    Parameters:
        function: of tensors, in which the rule gets one region.
        arrays: one for each of its parameters, at least one of them floating.

    >>> example = gg.testing.Example(gg.tanh, [np.array([0.5, -1.0])])
    >>> bool(gg.check_gradient(lambda site, dy: dy, *example.flat(), expect="policy"))
    True
    """

    function: Callable[..., Tensor]
    arrays: Sequence[Array]

    def flat(self) -> tuple[Any, ...]:
        """The function and its arrays, as check_gradient takes them behind a rule."""
        return self.function, *self.arrays


def examples(
    inputs: int = 1, shapes: Sequence[tuple[int, ...]] = SHAPES, dtypes: Sequence[str] = DTYPES
) -> strategies.SearchStrategy[Example]:
    """A strategy of Hypothesis: element-wise functions of so many tensors, with arrays for them.

    The arrays are normal draws of a seed, so that none lies on a kink by being a round number.

    Parameters:
        inputs: how many tensors the functions take, an int >= 1.
        shapes: of the arrays, all of one shape.
        dtypes: of the arrays, floating.

    Returns: a SearchStrategy of Example.

    Raises: ImportError without the package hypothesis; ValueError for fewer inputs.

    >>> drawn = gg.testing.examples(inputs=2, shapes=[(3,)])
    >>> hypothesis.find(drawn, lambda example: True).arrays[1].shape
    (3,)
    """
    FROM_ONE("inputs", inputs)
    _needs_hypothesis()
    functions = strategies.sampled_from(_functions(inputs))
    drawn = strategies.builds(
        partial(_drawn, inputs),
        strategies.sampled_from(list(shapes)),
        strategies.sampled_from(list(dtypes)),
        strategies.integers(0, 2**32 - 1),
    )
    return strategies.builds(Example, functions, drawn)


def check_rule(
    rule: Any, on: Any = None, *, expect: Any = None, max_examples: int = 10
) -> list[Report]:
    """Check a rule on examples; an error says what is wrong with it, on the simplest of them.

    On examples of your own the rule is held to what it declares itself to be, as check_gradient
    does. Without, it is put on element-wise functions of as many inputs as it takes. What it means
    there is not known, so it is held to what every rule must be: one gradient for each input, of
    its shape and dtype; missing gradients; the same result for every call; linear where it is
    declared to be; a derivative of its own that is the derivative of what it built.

    Parameters:
        rule: a registered name, a callable fn(site, *dys), or a rule object.
        on: an Example, several, or a strategy of them; None: element-wise functions.
        expect: the contract to check, instead of the one that the rule declares.
        max_examples: how many are drawn of a strategy, an int >= 1.

    Returns: the reports of the examples.

    Raises: GradientError with everything found; ImportError without the package hypothesis where
    examples are drawn.

    >>> half = gg.Rule(lambda site, dy: dy / 2, "half", contract=gg.scaled(0.5))
    >>> example = gg.testing.Example(gg.identity, [np.ones(3)])
    >>> [bool(report) for report in gg.testing.check_rule(half, example)]
    [True]
    """
    FROM_ONE("max_examples", max_examples)
    if on is None:
        on, expect = examples(_inputs_of(rule)), expect or "policy"
    if isinstance(on, Example):
        on = [on]
    reports: list[Report] = []

    def check(example: Example) -> None:
        report = check_gradient(rule, *example.flat(), expect=expect)
        reports.append(report.raise_if_failed())

    if isinstance(on, list | tuple):
        for example in on:
            check(example)
        return reports
    _needs_hypothesis()
    steady = hypothesis.settings(
        max_examples=max_examples,
        deadline=None,
        database=None,
        derandomize=True,
        print_blob=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    drawing: Any = hypothesis.given(on)
    steady(drawing(check))()
    return reports


def rules_of_users() -> list[str]:
    """The registered names whose functions are not graphgrad's own.

    Returns: the names, sorted.

    >>> with gg.temporary_gradient("minus", lambda site, dy: -dy):
    ...     "minus" in gg.testing.rules_of_users()
    True
    """
    return sorted(name for name, fn in registered_gradients().items() if not _is_ours(fn))


def _is_ours(fn: Callable[..., Any]) -> bool:
    module = getattr(fn, "__module__", None) or ""
    return module.partition(".")[0] == "graphgrad"


def _functions(inputs: int) -> list[Callable[..., Tensor]]:
    """Element-wise functions of so many tensors."""
    return [tanh, sin] if inputs == 1 else [_product, _sum_of_sines]


def _product(x: Tensor, *others: Tensor) -> Tensor:
    for y in others:
        x = multiply(x, y)
    return x


def _sum_of_sines(*xs: Tensor) -> Tensor:
    total = sin(xs[0])
    for x in xs[1:]:
        total = add(total, sin(x))
    return total


def _drawn(inputs: int, shape: tuple[int, ...], dtype: str, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=shape), dtype) for _ in range(inputs)]


def _inputs_of(rule: Any) -> int:
    """How many inputs the sites of a rule have: the first number for which it gives gradients."""
    said: list[str] = []
    for inputs in range(1, MOST_INPUTS + 1):
        arrays = _drawn(inputs, (3,), "float64", 0)
        report = check_gradient(rule, _functions(inputs)[0], *arrays, expect="policy", order=1)
        wrong = [f.message for f in report.findings if f.kind == "error"]
        if not wrong:
            return inputs
        said.append(f"of {inputs}: {wrong[0]}")
    raise GradientError(
        f"the rule {rule!r} gives no gradients of an element-wise function, whatever the number of "
        "inputs.\n" + "\n".join(said) + "\nIf it is meant for other sites, give examples of these: "
        "check_rule(rule, gg.testing.Example(function, arrays)), or the hook "
        "pytest_graphgrad_examples."
    )


def _needs_hypothesis() -> None:
    if hypothesis is None:
        raise ImportError("examples are drawn by the package hypothesis: pip install hypothesis")
