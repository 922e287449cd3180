"""Functions of which only values are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.domains import FROM_ONE, INTEGER, POSITIVE
from ..base.errors import DTypeError, ExecutionError, counted, did_you_mean
from ..base.flags import function
from ..base.position import of_function, show
from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops import random
from ..ops.base import NO_GRAD, TensorLike, as_tensor, cast
from ..ops.demands import within
from ..ops.elementwise.complex_parts import real
from ..ops.elementwise.logic import where
from ..ops.python_function import py_function
from ..regions.contracts import Contract
from ..regions.rules import Rule
from ..regions.scopes import override_gradient
from .entries import entry, rule
from .sites import total

FAMILY = "black box"
SPSA_OPTIONS = ("step", "samples", "seed")


@entry(FAMILY, "estimator")
def spsa(f: Callable[..., Any], step: float = 1e-3, samples: int = 1, seed: Any = 0) -> Rule:
    """A gradient estimated from values of f at points in random directions from the inputs.

    dx = mean over samples of s * <dy, f(xs + step * s) - f(xs - step * s)> / (2 * step), each
    element of s is -1 or 1
    [Spall 1992, "Multivariate stochastic approximation using a simultaneous perturbation gradient
    approximation"].

    Parameters:
        f: a function of the site's inputs that builds what stands for its outputs.
        step: how far from the inputs, a finite number > 0.
        samples: how many directions, an int >= 1.
        seed: an int, or an integer tensor that changes from step to step.

    Returns: a rule for any site.

    >>> x = gg.constant(3.0)
    >>> dx = gg.gradients(gg.sign(x), x, overrides={"Sign": gg.rules.spsa(gg.square)})
    >>> round(float(gg.evaluate(dx)), 6)
    6.0
    """
    function("f", f)
    POSITIVE("step", step)
    FROM_ONE("samples", samples)
    seed = within(INTEGER, "seed", seed)
    seed = seed if isinstance(seed, Tensor) else int(seed)

    def spsa(site: Site, *dys: Tensor) -> Any:
        dxs: list[Any] = [NO_GRAD] * len(site.inputs)
        for k in range(samples):
            signs = _signs(site.inputs, seed, k)
            change = _change(f, site.inputs, signs, step, dys) / samples
            for i, s in signs.items():
                dx = s * cast(change, s.dtype)
                dxs[i] = dx if dxs[i] is NO_GRAD else dxs[i] + dx
        return dxs

    return rule(spsa, f=f, step=step, samples=samples)


def _signs(xs: Sequence[Tensor], seed: Any, k: int) -> dict[int, Tensor]:
    """One random direction: for each floating input a tensor of -1 and 1."""
    if any(x.type.complex for x in xs):
        raise DTypeError(
            "spsa() perturbs real numbers, and one of the inputs is complex: pass its real and "
            "imaginary parts"
        )
    return {
        i: cast(
            where(random.bernoulli(x, seed=seed * 7919 + (k * len(xs) + i)), 1.0, -1.0), x.dtype
        )
        for i, x in enumerate(xs)
        if x.type.differentiable
    }


def _change(
    f: Callable[..., Any],
    xs: Sequence[Tensor],
    signs: dict[int, Tensor],
    step: float,
    dys: Sequence[Tensor],
) -> Tensor:
    """How fast <dy, f> changes in a direction."""
    ahead, behind = [
        _listed(f(*[x + side * signs[i] if i in signs else x for i, x in enumerate(xs)]))
        for side in (step, -step)
    ]
    parts = [
        real(total(dy * (a - b))) / (2 * step)
        for dy, a, b in zip(dys, ahead, behind, strict=True)
        if dy is not None
    ]
    return sum(parts[1:], parts[0])


def _listed(ys: Any) -> list[Tensor]:
    return list(ys) if isinstance(ys, tuple | list) else [ys]


@entry(FAMILY, "estimator")
def black_box(
    f: Callable[..., Any],
    inputs: Sequence[TensorLike],
    out_types: Sequence[Any],
    adjoint: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    """A Python function of arrays, with an adjoint function or, by default, the rule `spsa`.

    dxs = adjoint(*arrays, *dys), or what `spsa` gives
    [Spall 1992, "Multivariate stochastic approximation using a simultaneous perturbation gradient
    approximation"].

    Parameters:
        f, inputs, out_types: as for gg.py_function.
        adjoint: returns one array for each floating input, in a list or tuple (one alone may do
            without), of its shape and dtype.
        **options: without an adjoint, those of `spsa`: step, samples, seed.

    Returns: a tensor for one output, else a tuple.

    Raises: the errors of gg.py_function; TypeError for an unknown option, or one beside an adjoint,
    which nothing would read; RegionError if no input or no output is floating. A run raises
    ExecutionError where f or the adjoint returns something else than promised.

    >>> x = gg.constant(3.0)
    >>> square = lambda x: np.asarray(x * x)
    >>> y = gg.rules.black_box(square, [x], [((), "float64")], lambda x, dy: 2 * x * dy)
    >>> gg.evaluate([y, gg.gradients(y, x)])
    [array(9.), array(6.)]
    """
    for name in options:
        if adjoint is not None:
            raise TypeError(
                f"black_box() with an adjoint takes no option, got {name!r}. For a gradient that "
                "can itself be differentiated, give gg.py_function a vjp= that builds nodes."
            )
        if name not in SPSA_OPTIONS:
            near = did_you_mean(name, SPSA_OPTIONS, f"It has {', '.join(SPSA_OPTIONS)}.")
            raise TypeError(f"black_box() has no option {name!r}. {near}")
    tensors = [as_tensor(x) for x in inputs]

    def called(*xs: Tensor) -> Any:
        return py_function(f, xs, out_types)

    chosen = spsa(called, **options) if adjoint is None else _given(adjoint)
    with override_gradient(chosen, inputs=tensors) as region:
        ys = py_function(f, tensors, out_types, vjp=chosen.fn)
        region.declare(outputs=ys)
    return ys


def _given(adjoint: Callable[..., Any]) -> Rule:
    def black_box(site: Site, *dys: Tensor) -> Any:
        wanted = [x for x in site.inputs if x.type.differentiable]
        seeds = [dy for dy in dys if dy is not None]
        types = [(x.shape, x.dtype) for x in wanted]
        made = py_function(_OneEach(adjoint, wanted), [*site.inputs, *seeds], types)
        dxs = iter(_listed(made))
        return [next(dxs) if x.type.differentiable else NO_GRAD for x in site.inputs]

    return rule(black_box, Contract("exact"), adjoint=adjoint)


class _OneEach:
    """An adjoint whose gradients are counted; one alone may come as it is or in a list.

    A list of entries of the rank of the one input is a list of gradients, any other an array.
    """

    def __init__(self, adjoint: Callable[..., Any], wanted: Sequence[Tensor]) -> None:
        self.__wrapped__ = adjoint
        self.__name__ = str(getattr(adjoint, "__name__", type(adjoint).__name__))
        self.rank = wanted[0].ndim
        self.names = [x.name for x in wanted]

    def __call__(self, *arrays: Any) -> Any:
        made = self.__wrapped__(*arrays)
        listed = isinstance(made, tuple | list)
        alone = len(self.names) == 1
        if alone and not (listed and all(np.ndim(dx) == self.rank for dx in made)):
            return made
        if not listed or len(made) != len(self.names):
            raise ExecutionError(
                f"the adjoint {self.__name__!r} ({show(of_function(self))}) of a black box "
                f"returned {counted(len(made) if listed else 1, 'gradient')} for "
                f"{counted(len(self.names), 'floating input')}: {', '.join(self.names)}"
            )
        return made[0] if alone else made
