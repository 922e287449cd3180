"""Implicit layers: the solution of an equation, differentiated by the implicit function theorem.

The forward part iterates outside the graph and keeps nothing but the solution. The backward part
solves the adjoint system at the solution, and is made of the same layers, so it can be
differentiated again. What the equation reads of the graph around gets gradients too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.domains import FROM_ONE, NON_NEGATIVE
from ..base.errors import DTypeError, ExecutionError, ShapeError
from ..base.kinds import kind_of
from ..base.position import caller, show
from ..differentiate.gradients import gradients
from ..differentiate.site import Site
from ..ir.graph import current
from ..ir.node import Tensor
from ..ir.program import Program
from ..ir.types import Array, compatible
from ..ops.base import NO_GRAD, TensorLike, as_tensor, build
from ..ops.control import BodyGraph, BodyScope, constants_of, interpret
from ..ops.create.creation import zeros_like
from ..ops.python_function import py_function
from ..ops.sources import Placeholder, identity
from ..regions.scopes import override_gradient
from .entries import entry, rule

FAMILY = "implicit"
Equation = Callable[[Tensor], Tensor]


@entry(FAMILY, "exact")
def fixed_point(
    f: Equation, start: TensorLike, tolerance: float = 1e-12, limit: int = 10_000
) -> Tensor:
    """The fixed point z = f(z), by iteration from a start.

    With u = dy + (df/dz)' u, itself a fixed point, a tensor p that f reads gets dp = (df/dp)' u;
    the start gets nothing
    [Bai, Kolter, Koltun 2019, "Deep equilibrium models"].

    Parameters:
        f: a function of z that returns tensors, of z's shape and dtype; it may read tensors around
            it.
        start: where to begin; floating.
        tolerance: how small a step ends it, relative to 1 + the largest magnitude in z;
            a finite number >= 0.
        limit: how many iterations at most, an int >= 1.

    Returns: a tensor of the shape and dtype of start.

    Raises: ShapeError if f(z) is not like z; RegionError if z is not floating. A run raises
    ExecutionError where it does not converge.

    >>> a = gg.constant(0.5)
    >>> z = gg.rules.fixed_point(lambda z: a * z + 1.0, 0.0)
    >>> [round(float(v), 6) for v in gg.evaluate([z, gg.gradients(z, a)])]
    [2.0, 4.0]
    """
    NON_NEGATIVE("tolerance", tolerance)
    FROM_ONE("limit", limit)
    solver = Iteration(f"fixed_point() at {show(caller())}", tolerance, limit)

    def fixed_point_rule(site: Site, dy: Tensor) -> Any:
        (z,) = site.outputs
        adjoint = fixed_point(lambda u: dy + _pulled(f, z, u), dy, tolerance, limit)
        return [NO_GRAD, *_through(f, z, site.inputs[1:], adjoint)]

    return _solved("fixed_point", fixed_point_rule, solver, as_tensor(start), [f])


@entry(FAMILY, "exact")
def root(f: Equation, start: TensorLike, tolerance: float = 1e-12, limit: int = 100) -> Tensor:
    """The root z of f(z) = 0, by Newton's method from a start.

    With (df/dz)' u = -dy, a tensor p that f reads gets dp = (df/dp)' u; the start gets nothing
    [Krantz and Parks 2002, "The implicit function theorem"; Gould et al. 2016, "On differentiating
    parameterized argmin and argmax problems"].

    The Jacobian is dense: for z of up to some thousand elements.

    Parameters:
        f: a function of z that returns tensors, of z's shape and dtype; it may read tensors around
            it.
        start: where to begin; floating.
        tolerance: how small a step ends it, relative to 1 + the largest magnitude in z;
            a finite number >= 0.
        limit: how many iterations at most, an int >= 1.

    Returns: a tensor of the shape and dtype of start.

    Raises: ShapeError if f(z) is not like z; RegionError if z is not floating. A run raises
    ExecutionError where it does not converge, and numpy.linalg.LinAlgError for a singular Jacobian.

    >>> a = gg.constant(4.0)
    >>> z = gg.rules.root(lambda z: z * z - a, 1.0)
    >>> [round(float(v), 6) for v in gg.evaluate([z, gg.gradients(z, a)])]
    [2.0, 0.25]
    """
    NON_NEGATIVE("tolerance", tolerance)
    FROM_ONE("limit", limit)
    solver = Newton(f"root() at {show(caller())}", tolerance, limit)
    z0 = as_tensor(start)

    def root_rule(site: Site, dy: Tensor) -> Any:
        (z,) = site.outputs
        adjoint = linear_solve(lambda u: _pulled(f, z, u), -dy)
        return [NO_GRAD, *_through(f, z, site.inputs[1:], adjoint)]

    def slope(z: Tensor, u: Tensor) -> Tensor:
        return _pulled(f, z, u)

    return _solved("root", root_rule, solver, z0, [f, slope])


@entry(FAMILY, "exact")
def linear_solve(matvec: Equation, b: TensorLike) -> Tensor:
    """The solution x of matvec(x) = b for a linear matvec; x has the shape of b.

    With matvec' u = dy: db = u, and a tensor p that matvec reads gets dp = -(d matvec(x)/dp)' u
    [Giles 2008, "An extended collection of matrix derivative results for forward and reverse mode
    automatic differentiation"].

    The matrix is dense: for x of up to some thousand elements.

    Parameters:
        matvec: a linear function that returns tensors; it may read tensors around it.
        b: floating, any shape.

    Returns: a tensor of the shape and dtype of b.

    Raises: ShapeError if matvec(x) is not like x; RegionError if b is not floating. A run raises
    numpy.linalg.LinAlgError for a singular matrix.

    >>> a = gg.constant([[2.0, 0.0], [0.0, 4.0]])
    >>> gg.evaluate(gg.rules.linear_solve(lambda x: a @ x, [2.0, 8.0]))
    array([1., 2.])
    """
    solver = Dense(f"linear_solve() at {show(caller())}")

    def linear_solve_rule(site: Site, dy: Tensor) -> Any:
        (x,) = site.outputs
        u = linear_solve(lambda v: _pulled(matvec, zeros_like(dy), v), dy)
        return [u, *_through(matvec, x, site.inputs[1:], -u)]

    return _solved("linear_solve", linear_solve_rule, solver, as_tensor(b), [matvec])


# --- building -----------------------------------------------------------------------------------


def _solved(
    name: str,
    fn: Callable[..., Any],
    solver: Solver,
    first: Tensor,
    equations: Sequence[Callable[..., Tensor]],
) -> Tensor:
    """The solver's result, of the type of `first`, with fn as the gradient of all it reads.

    The first equation is a function of the unknown, a second one of the unknown and a vector.
    """
    outer = current().graph if first.graph is None or not current().implicit else first.graph
    body = BodyGraph(outer, solver.what)
    traced = [_traced(body, e, i + 1, first, solver) for i, e in enumerate(equations)]
    given = [a for args, _ in traced for a in args]
    captures = constants_of(body, [y for _, y in traced], given)
    solver.programs = [Program([*args, *captures], [y]) for args, y in traced]
    reads = tuple(captures.values())
    inputs = [first, *reads]
    fn.__dict__["reads"] = reads  # so a copy of the graph sees that fn holds tensors
    with override_gradient(rule(fn, listed=name), inputs=inputs):
        solution: Tensor = py_function(solver, inputs, [first.type], vjp=fn, name=name)
        return solution


def _traced(
    body: BodyGraph, equation: Callable[..., Tensor], count: int, first: Tensor, solver: Solver
) -> tuple[list[Tensor], Tensor]:
    """The arguments and the value of an equation, in a graph of its own."""
    with BodyScope(body):
        args = [build(Placeholder(first.shape, first.dtype), ()).outputs[0] for _ in range(count)]
        y = as_tensor(equation(*args), first.dtype)
        y = y if y.graph is body else body.adopt(y)
    if y.dtype is not first.dtype or not compatible(y.shape, first.shape):
        raise ShapeError(
            f"{solver.what}: the function returns {y.type!r} for {first.type!r}; it must have the "
            "shape and dtype of its argument"
        )
    return args, y


def _pulled(f: Equation, z: Tensor, u: Tensor) -> Tensor:
    """(df/dz)' u at z."""
    at = identity(z)
    pulled: Tensor = gradients(f(at), at, u, unconnected="zero")
    return pulled


def _through(f: Equation, z: Tensor, params: Sequence[Tensor], u: Tensor) -> list[Any]:
    """(df/dp)' u for each p that f reads, with z held."""
    wanted = [p for p in params if p.type.differentiable]
    dps = iter(gradients(f(z), wanted, u, stop_gradients=[z, *wanted]) if wanted else ())
    return [next(dps) if p.type.differentiable else NO_GRAD for p in params]


# --- solving ------------------------------------------------------------------------------------


class Solver:
    """A function of arrays: of what is solved for (or its start), then of what is read around."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.__name__ = what
        self.programs: list[Program] = []

    def __call__(self, first: Array, /, *params: Array) -> Array:
        """The solution."""
        raise NotImplementedError

    def value(self, i: int, *arrays: Array) -> Array:
        """One of the equations at given arrays."""
        return np.asarray(interpret(self.programs[i], np, arrays)[0])


class Iteration(Solver):
    """z = f(z), until it stands still."""

    def __init__(self, what: str, tolerance: float, limit: int) -> None:
        super().__init__(what)
        self.tolerance = tolerance
        self.limit = limit

    def __call__(self, z: Array, /, *params: Array) -> Array:
        """The solution, from a start."""
        step = np.inf
        for _ in range(self.limit):
            new = self.value(0, z, *params)
            step = _size(new - z)
            z = new
            if step <= self.tolerance * (1 + _size(z)) < np.inf:
                return z
        raise ExecutionError(
            f"{self.what} does not converge: after {self.limit} iterations a step is {step:.3g}. "
            "The function must be a contraction; damp it, or raise limit= or tolerance="
        )


class Newton(Solver):
    """f(z) = 0, by Newton's method with a dense Jacobian."""

    def __init__(self, what: str, tolerance: float, limit: int) -> None:
        super().__init__(what)
        self.tolerance = tolerance
        self.limit = limit

    def __call__(self, z: Array, /, *params: Array) -> Array:
        """The solution, from a start."""
        step = np.inf
        for _ in range(self.limit):
            rows = _rows(z, lambda e, z=z: self.value(1, z, e, *params))  # type: ignore[misc]
            change = np.linalg.solve(rows, self.value(0, z, *params).ravel()).reshape(z.shape)
            z = z - change
            step = _size(change)
            if step <= self.tolerance * (1 + _size(z)) < np.inf:
                return z
        raise ExecutionError(
            f"{self.what} does not converge: after {self.limit} iterations a step is {step:.3g}. "
            "Start nearer to a root, or raise limit= or tolerance="
        )


class Dense(Solver):
    """A x = b, with the matrix found column by column."""

    def __call__(self, b: Array, /, *params: Array) -> Array:
        """The solution for a right-hand side."""
        columns = _rows(b, lambda e: self.value(0, e, *params))
        return np.linalg.solve(columns.T, b.ravel()).reshape(b.shape)


def _rows(like: Array, f: Callable[[Array], Array]) -> Array:
    """f of every unit vector of the shape of an array, as the rows of a matrix."""
    if kind_of(like.dtype) == "c":
        raise DTypeError(
            "root() and linear_solve() solve for real numbers: the derivative along 1 does not "
            "determine that along 1j. Solve for the real and imaginary parts, or use "
            "fixed_point()."
        )
    units = np.eye(like.size, dtype=like.dtype).reshape(like.size, *like.shape)
    return np.array([f(e).ravel() for e in units]).reshape(like.size, like.size)


def _size(x: Array) -> float:
    return float(np.max(np.abs(x), initial=0.0))
