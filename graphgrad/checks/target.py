"""One rule cut out of its surroundings: what it reads, what it makes, and both as functions.

All arrays are real here: those of a complex tensor have its parts on a last axis of length 2. Its
gradients are conjugated, so that the sum of products of parts pairs them with directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..base.errors import GradientError
from ..base.kinds import is_floating, kind_of
from ..base.tree import flatten
from ..compiled import compile
from ..differentiate.gradients import gradients
from ..ir.context import CONTEXT
from ..ir.graph import Graph, GraphScope
from ..ir.node import Node, Region, Tensor, enclosing
from ..ir.program import needed
from ..ir.residual import Residual
from ..ir.types import Array, DType, TensorType
from ..ops.base import array_of, as_tensor, is_zero, real_dtype
from ..ops.elementwise.complex_parts import conj
from ..ops.sources import identity, placeholder, placeholder_of
from ..regions.boundary import boundary_of
from ..regions.contracts import Contract
from ..regions.index import marked_regions
from ..regions.rules import BuiltinRule, Rule, as_rule
from ..regions.scopes import override_gradient

EXACT = Contract("exact")


class Checked:
    """A node or a region with the rule that is checked.

    inputs   what the site reads, each tensor once; xs: those that have a gradient
    outputs  what it makes; ys: those that have a gradient
    fixed    what else it reads: undeclared tensors, which are held constant
    members  the nodes inside
    """

    def __init__(self, site: Node | Region, rule: Any = None) -> None:
        self.site = site
        graph = site.graph
        if graph is None or (isinstance(site, Region) and site.open):
            raise GradientError(f"{site!r} is still open; check its rule after the block")
        self.graph = graph
        self.rule, self.given = _rule_of(site, rule)
        if isinstance(site, Region):
            boundary = boundary_of(site)
            inputs, self.outputs = boundary.inputs, boundary.outputs
            self.members: tuple[Node, ...] = tuple(boundary.members)
            self.fixed = tuple(t for t in boundary.undeclared if t.node.inputs or t.node.op.source)
            around = enclosing(site.parent)
        else:
            inputs, self.outputs, self.members, self.fixed = site.inputs, site.outputs, (site,), ()
            around = enclosing(site.region)
        self.inputs = tuple(dict.fromkeys(inputs))
        self.xs = [t for t in self.inputs if t.type.differentiable]
        self.ys = [t for t in self.outputs if t.type.differentiable]
        self.overrides: dict[Any, Any] = dict.fromkeys(around)
        if rule is not None:
            self.overrides[site] = self.rule

    @property
    def contract(self) -> Contract | None:
        """What the rule declares itself to be; an op's own rule is exact."""
        own = isinstance(self.site, Node) and self.site.stamp is None and self.given is None
        return EXACT if own else self.rule.contract

    @property
    def dtypes(self) -> list[Any]:
        """The floating dtypes of everything that is computed inside."""
        tensors = [*self.inputs, *(t for n in self.members for t in n.outputs)]
        return [t.dtype for t in tensors if t.type.differentiable]

    def holds(self, t: Tensor) -> bool:
        """Whether a tensor is read here as from inside the region: a residual of this site."""
        op = t.node.op
        return (
            isinstance(op, Residual)
            and isinstance(self.site, Region)
            and self.site.contains(op.region)
        )

    @contextmanager
    def building(self) -> Iterator[None]:
        """What is built in the block goes to the site's graph, as derived from the site."""
        with GraphScope(self.graph):
            context = CONTEXT.get()
            context.origin = self.members[-1] if self.members else self.outputs[-1].node
            yield

    def gradients_of(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """A fed tensor for the gradient of each of these."""
        with self.building():
            return [placeholder_of(t.type) for t in tensors]

    def ask(self, ys: Sequence[Tensor], xs: Sequence[Tensor], dys: Sequence[Any]) -> list[Any]:
        """Gradients in isolation, conjugates of complex ones: nothing flows on from the inputs."""
        stops = [t for t in (*self.xs, *self.fixed, *xs) if t.type.differentiable]
        seeds = self._conjugated(dys)
        with GraphScope(self.graph):
            dxs: list[Any] = gradients(
                list(ys),
                list(xs),
                grad_ys=seeds,
                stop_gradients=list(dict.fromkeys(stops)),
                overrides=self.overrides or None,
            )
        return self._conjugated(dxs)

    def _conjugated(self, gradients: Sequence[Any]) -> list[Any]:
        """Complex gradients conjugated, others as they are."""
        with self.building():
            return [
                conj(g) if isinstance(g, Tensor) and g.type.complex and not is_zero(g) else g
                for g in gradients
            ]

    def __repr__(self) -> str:
        kind = "node" if isinstance(self.site, Node) else "region"
        return f"{kind} {self.site.name!r} ({self.site.where})"


def _rule_of(site: Node | Region, rule: Any) -> tuple[Rule, Any]:
    given = rule
    if rule is None:
        rule = site.rule if isinstance(site, Region) else site.stamp
    if rule is None and isinstance(site, Node):
        return BuiltinRule(site.type), given
    return as_rule(rule, lambda: f"named by {site!r}"), given


# --- functions of arrays ----------------------------------------------------------------------


class Evaluator:
    """Tensors as a function of fed tensors; whatever else they need is held at one value."""

    def __init__(
        self,
        fed: Sequence[Tensor],
        wanted: Sequence[Tensor],
        held: dict[Tensor, Array],
        rng: np.random.Generator,
    ) -> None:
        sources = [n.outputs[0] for n in needed([*fed, *held], wanted) if n.type == "Placeholder"]
        for t in sources:
            held[t] = draw(t.type, rng, DOMAINS[0], 3)
        extra = [t for t in held if t not in set(fed)]
        self._held = [held[t] for t in extra]
        self._complex = [(i, t.dtype) for i, t in enumerate([*fed, *extra]) if t.type.complex]
        self._run = compile([*fed, *extra], list(wanted), optimize=False)

    def __call__(self, arrays: Sequence[Any]) -> list[Array]:
        """The values for these arrays."""
        given = [*arrays, *self._held]
        for i, dtype in self._complex:
            given[i] = whole_of(given[i], dtype)
        with np.errstate(all="ignore"):
            return list(map(parts_of, self._run(*given)))


def parts_of(array: Array) -> Array:
    """The real and the imaginary parts of complex numbers on a last axis; others as they are."""
    if kind_of(array.dtype) != "c":
        return array
    return np.stack([array.real, array.imag], axis=-1)


def whole_of(parts: Array, dtype: DType) -> Array:
    """The complex numbers that have these parts."""
    pairs = np.ascontiguousarray(parts, real_dtype(dtype))
    return pairs.view(dtype).reshape(pairs.shape[:-1])


def flat(arrays: Sequence[Array]) -> Array:
    """All entries in one float64 vector."""
    return np.concatenate([np.zeros(0), *[np.ravel(a).astype(np.float64) for a in arrays]])


def stopped(nodes: Sequence[Node]) -> list[Tensor]:
    """The outputs of nodes through which nothing is to flow: constants for a derivative."""
    return [n.outputs[0] for n in nodes if n.op.derivative.withholds and n.stamp is None]


# --- points -----------------------------------------------------------------------------------

DOMAINS = ((-2.0, 2.0), (0.5, 2.0), (-0.9, 0.9), (1.5, 3.0))


def draw(
    type: TensorType, rng: np.random.Generator, domain: tuple[float, float], length: int
) -> Array:
    """A random array of a type; `length` for unknown lengths."""
    shape = tuple(d if isinstance(d, int) else length for d in type.shape)
    if kind_of(type.dtype) == "b":
        return rng.random(shape) < 0.5
    if kind_of(type.dtype) in "iu":
        return rng.integers(0, 2, shape).astype(type.dtype)
    if type.complex:
        shape = (*shape, 2)
    return np.asarray(rng.uniform(*domain, shape)).astype(real_dtype(type.dtype))


def near(value: Array, rng: np.random.Generator) -> Array:
    """A random array near a given one, of its signs; integers stay as they are."""
    if not is_floating(value.dtype):
        return value
    moved = value * rng.uniform(0.7, 1.3, value.shape)
    moved = np.where(value == 0, rng.uniform(-0.1, 0.1, value.shape), moved)
    return np.asarray(moved).astype(value.dtype)


def given_values(target: Checked, values: Any) -> list[Array] | None:
    """The user's values in the order of the inputs: a sequence, or {tensor or name: array}."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        keys = {(k if isinstance(k, Tensor) else target.graph.tensor(k)): k for k in values}
        missing = [t for t in target.inputs if t not in keys]
        if missing:
            raise GradientError(f"values= has nothing for {', '.join(t.name for t in missing)}")
        values = [values[keys[t]] for t in target.inputs]
    values = list(values)
    if len(values) != len(target.inputs):
        rows = ", ".join(f"{t.name}: {t.type!r}" for t in target.inputs)
        raise GradientError(f"values= has {len(values)} arrays for the inputs {rows}")
    given = zip(target.inputs, values, strict=True)
    return [parts_of(array_of(v, t.dtype)) for t, v in given]


# --- functions as targets ---------------------------------------------------------------------


def built(function: Callable[..., Any], arrays: Sequence[Array], rule: Any) -> Checked:
    """The one site that a function builds from arrays like these, in a graph of its own.

    rule: not None puts the whole function into a region with that rule.
    """
    with Graph("check") as graph:
        tensors = [placeholder(a.shape, a.dtype) for a in arrays]
        if rule is None:
            function(*tensors)
            return Checked(_only_site(graph, function))
        with override_gradient(rule, inputs=tensors) as region:
            region.declare(outputs=_results(function(*tensors), region))
        return Checked(region)


def _results(returned: Any, region: Region) -> list[Tensor]:
    """What a function returned, as outputs of the region: built inside, and each only once."""
    results: dict[Tensor, None] = {}
    for t in map(as_tensor, flatten(returned)):
        results[t if t.node.region is region and t not in results else identity(t)] = None
    return list(results)


def _only_site(graph: Graph, function: Any) -> Node | Region:
    """The outermost region that a function opened, or else the node that it stamped."""
    regions = [r for r in marked_regions(graph) if r.parent is None and r.origin is None]
    sites: list[Any] = regions or [n for n in graph.nodes if n.stamp is not None]
    if len(sites) == 1:
        site: Node | Region = sites[0]
        return site
    name = getattr(function, "__name__", repr(function))
    raise GradientError(
        f"check_gradient checks one rule, and {name!r} marks {len(sites)} sites"
        f"{''.join(f'{chr(10)}  {s!r}' for s in sites)}\n"
        "Decorate it with gg.custom_gradient or gg.override, give its rule as rule=, or check "
        "each site by itself."
    )


def as_arrays(arrays: Sequence[Any]) -> list[Array]:
    """Example arrays: floats as float64, complex numbers as complex128, the rest as it is."""
    examples = []
    for a in arrays:
        array = np.asarray(a)
        if kind_of(array.dtype) not in "biufc":
            raise GradientError(f"example arrays hold numbers, got {a!r}")
        wide = {"f": np.float64, "c": np.complex128}.get(kind_of(array.dtype), array.dtype)
        examples.append(array.astype(wide))
    return examples
