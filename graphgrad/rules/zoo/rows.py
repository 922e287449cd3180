"""Rows: a published gradient as a function of tensors, from which all else follows.

    @slope("Fang et al. 2021, ...")
    def atan(x: Tensor, alpha: Positive = 2.0) -> Tensor:
        \"\"\"For spikes: the derivative of an arc tangent that rises from 0 to 1.\"\"\"
        return (alpha / 2) / (1 + m.square(pi * alpha * x / 2))

A decorator says what the function gives:

slope     the slope of a function of one input       the row returns a rule
smooth    what is differentiated instead             the row returns a rule
gate      a gradient, changed                        the row returns a rule
pull      the gradients of the inputs                the row returns a rule
through   the weights that errors go back through    the row returns a rule
passing   a value; the gradient passes to x          the row builds the value
soft      what is differentiated instead of a value  the row builds the value
learned   the slopes in several inputs of a value    the row builds the value
pulled    the gradients of the inputs of a value     the row builds the value
formula   the value, whose gradient is its own       the row builds it
together  several gradients of several tensors       the row builds identities
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

from ...base.domains import FROM_ONE
from ...base.errors import GradientError, counted
from ...base.position import caller, show
from ...differentiate.gradients import gradients
from ...differentiate.site import Site
from ...ir.node import Tensor
from ...ops.base import DEFAULT, NO_GRAD, as_tensor, cast, like
from ...ops.create.creation import zeros_like
from ...ops.shape.reshaping import sum_to
from ...ops.sources import identity, stop_gradient
from ...regions.contracts import Contract, surrogate_of
from ...regions.rules import Rule
from ...regions.scopes import override_gradient
from ..sites import alike, changed, layer, only, real_numbers, reduced, stands_on
from .row import BUILDS, SEVERAL, Count, Fn, Naming, RowNotes, ZooRow

P = ParamSpec("P")
R = TypeVar("R")
Gradient = Callable[[ZooRow, Site, tuple[Any, ...], dict[str, Any]], Any]
"""(row, site, what arrives, parameters) -> one entry per input."""

SOFT = "dxs = the gradient of y at xs, y = "
GIVEN = "dxs = "


# --- rows that return rules -------------------------------------------------------------------


def slope(
    source: str, *, of: Fn | None = None, real: bool = True, **said: Unpack[RowNotes]
) -> Callable[[Callable[Concatenate[Tensor, P], Any]], Callable[P, Rule]]:
    """A slope: dx = dy * fn(x); of: the function of x whose derivative it is, if it is one's.

    real: whether x has to be of real numbers.
    """

    def gradient(row: ZooRow, site: Site, dys: tuple[Any, ...], given: dict[str, Any]) -> Any:
        x, _ = alike(site)
        if real:
            real_numbers(site, x)
        return only(site, x, dys[0] * like(row.fn(x, **given), x))

    form = "dx = dy * slope, slope = "
    return _on_sites(form, gradient, "surrogate" if of else "policy", source, said, of=of)


def smooth(
    source: str, **said: Unpack[RowNotes]
) -> Callable[[Callable[Concatenate[Tensor, P], Any]], Callable[P, Rule]]:
    """The derivative of fn(inputs) in place of the site's."""
    return _on_sites(SOFT, _of_soft, "surrogate", source, said, of=True)


def gate(
    source: str, **said: Unpack[RowNotes]
) -> Callable[[Callable[Concatenate[Tensor, P], Any]], Callable[P, Rule]]:
    """A change of the gradient d without the rule: dx = fn(d)."""

    def gradient(row: ZooRow, site: Site, dys: tuple[Any, ...], given: dict[str, Any]) -> Any:
        return changed(site, dys, lambda d: row.fn(d, **given))

    return _on_sites("dx = ", gradient, "policy", source, said, linear=False)


def pull(
    source: str, *, linear: bool = True, contract: str = "policy", **said: Unpack[RowNotes]
) -> Callable[[Callable[Concatenate[Tensor, Tensor, P], Any]], Callable[P, Rule]]:
    """The gradients of the inputs: dxs = fn(dy, inputs)."""

    def gradient(row: ZooRow, site: Site, dys: tuple[Any, ...], given: dict[str, Any]) -> Any:
        places = len(row.operands)
        stands_on(site, row.said.get("on", ()))
        if places == 1:
            x = reduced(site, given["axis"]) if row.said.get("reduces") else alike(site)[0]
            return only(site, x, row.fn(dys[0], x, **given))
        if len(site.inputs) != places:
            raise GradientError(
                f"it is for a site of {counted(places, 'input')}, got {len(site.inputs)}"
            )
        return _as_inputs(row, site.inputs, row.fn(dys[0], *site.inputs, **given))

    return _on_sites(GIVEN, gradient, contract, source, said, linear=linear, first=1)


def pull_two(
    source: str, *, contract: str = "policy", **said: Unpack[RowNotes]
) -> Callable[[Callable[Concatenate[Tensor, Tensor, Tensor, P], Any]], Callable[P, Rule]]:
    """As `pull`, for a site of two inputs."""
    pulled: Any = pull(source, contract=contract, **said)
    return pulled


def through(
    source: str, *, contract: str = "policy", **said: Unpack[RowNotes]
) -> Callable[[Callable[Concatenate[Tensor, P], Any]], Callable[P, Rule]]:
    """Errors go back through a layer by fn(weights); weights and bias get their own gradient."""

    def gradient(row: ZooRow, site: Site, dys: tuple[Any, ...], given: dict[str, Any]) -> Any:
        part = layer(site)
        x, w = identity(part.x), like(row.fn(part.w, **given), part.w)
        dx = gradients(part.applied(x, w, None), x, dys[0], overrides={})
        return [dx if t is part.x else DEFAULT for t in site.inputs]

    return _on_sites("dx = dy through ", gradient, contract, source, said)


def _on_sites(
    form: str,
    gradient: Gradient,
    contract: str,
    source: str,
    said: RowNotes,
    *,
    linear: bool = True,
    of: Any = None,
    first: int = 0,
) -> Callable[[Fn], Any]:
    def decorated(fn: Fn) -> Any:
        row = ZooRow(fn, source, said, form, first, None)

        def make(given: dict[str, Any]) -> Rule:
            _, given = row.split(given)
            made = of if callable(of) else fn if of else None
            return row.rule(_called(gradient, row, given), given, _contract(made, given))

        return row.public(make, contract, linear)

    return decorated


def _called(gradient: Gradient, row: ZooRow, given: dict[str, Any]) -> Fn:
    def of_row(site: Site, *dys: Any) -> Any:
        with Naming(row.name, lambda: repr(site)):
            return gradient(row, site, dys, given)

    return of_row


def _contract(of: Fn | None, given: dict[str, Any]) -> Contract | None:
    if of is None:
        return None

    def smooth(*xs: Tensor) -> Any:
        return of(*xs, **given)

    return surrogate_of(smooth)


# --- rows that build --------------------------------------------------------------------------


def passing(source: str, **said: Unpack[RowNotes]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A value, through which the gradient passes to the first input; the others are drawn."""

    def gradient(row: ZooRow, site: Site, dys: tuple[Any, ...], given: dict[str, Any]) -> Any:
        return _as_inputs(row, site.inputs, dys[0])

    def decorated(fn: Fn) -> Any:
        return _building("dx = dy, y = ", fn, gradient, "policy", True, source, said)(fn)

    return decorated


def soft(
    source: str, value: Fn, *, linear: bool = True, **said: Unpack[RowNotes]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A value whose gradient is that of fn."""
    return _building(SOFT, value, _of_soft, "surrogate", linear, source, said, of=True)


def learned(
    source: str, value: Fn, **said: Unpack[RowNotes]
) -> Callable[[Callable[P, Any]], Callable[P, Tensor]]:
    """A value of several inputs that learn: dx_i = dy * fn(inputs)[i], summed to x_i."""

    def gradient(row: ZooRow, site: Site, dys: tuple[Any, ...], given: dict[str, Any]) -> Any:
        slopes = _listed(row.fn(*site.inputs, **given))
        return _as_inputs(row, site.inputs, [dys[0] * like(s, site.inputs[0]) for s in slopes])

    form = "dxs = dy * slopes, slopes = "
    return _building(form, value, gradient, "policy", True, source, said)


def pulled(
    source: str,
    value: Fn,
    *,
    linear: bool = True,
    contract: str = "policy",
    **said: Unpack[RowNotes],
) -> Callable[[Callable[Concatenate[Any, P], Any]], Callable[P, Any]]:
    """A value whose inputs get fn(dy, inputs)."""

    def gradient(row: ZooRow, site: Site, dys: tuple[Any, ...], given: dict[str, Any]) -> Any:
        seeds = _filled(site, dys)
        dy = seeds[0] if len(seeds) == 1 else tuple(seeds)
        return _as_inputs(row, site.inputs, row.fn(dy, *site.inputs, **given))

    return _building(GIVEN, value, gradient, contract, linear, source, said, first=1)


def formula(source: str, **said: Unpack[RowNotes]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """What fn builds, with its own gradient; what is drawn gets none."""

    def decorated(fn: Fn) -> Any:
        row = ZooRow(fn, source, said, "y = ", 0, BUILDS)

        def make(given: dict[str, Any]) -> Any:
            xs, given = row.split(given)
            halted = [
                stop_gradient(x) if drawn and x.type.differentiable else x
                for x, drawn in zip(xs, row.drawn, strict=False)
            ]
            return _like_made(
                made := fn(*halted, **given), [cast(y, xs[0].dtype) for y in _listed(made)]
            )

        return row.public(make, "exact", linear=True)

    return decorated


def _building(
    form: str,
    value: Fn,
    gradient: Gradient,
    contract: str,
    linear: bool,
    source: str,
    said: RowNotes,
    *,
    of: bool = False,
    first: int = 0,
) -> Callable[[Fn], Any]:
    def decorated(fn: Fn) -> Any:
        row = ZooRow(fn, source, said, form, first, BUILDS)

        def make(given: dict[str, Any]) -> Any:
            xs, given = row.split(given)
            rule = row.rule(
                _called(gradient, row, given), given, _contract(fn if of else None, given)
            )
            with override_gradient(rule, inputs=xs) as region:
                made = _of_names(value, row, xs, given)
                ys = [identity(cast(y, xs[0].dtype)) for y in _listed(made)]
                region.declare(outputs=ys)
            return _like_made(made, ys)

        return row.public(make, contract, linear)

    return decorated


def _of_names(value: Fn, row: ZooRow, xs: Sequence[Tensor], given: dict[str, Any]) -> Any:
    """A value of those of the tensors and parameters that it names."""
    names = dict.fromkeys(row.operands) | given | dict(zip(row.operands, xs, strict=False))
    takes = signature(value).parameters
    if any(p.kind is Parameter.VAR_KEYWORD for p in takes.values()):
        return value(**names)
    return value(**{name: names[name] for name in takes if name in names})


def _listed(made: Any) -> list[Any]:
    return list(made) if isinstance(made, tuple | list) else [made]


def _like_made(made: Any, ys: list[Tensor]) -> Any:
    return tuple(ys) if isinstance(made, tuple) else ys[0]


def _filled(site: Site, dys: Sequence[Tensor | None]) -> list[Tensor]:
    """What arrives, with zeros for nothing."""
    return [zeros_like(y) if d is None else d for d, y in zip(dys, site.outputs, strict=True)]


def _of_soft(row: ZooRow, site: Site, dys: tuple[Any, ...], given: dict[str, Any]) -> list[Any]:
    """The gradient of the row's function at the inputs of a site."""
    drawn = row.drawn if len(site.inputs) <= len(row.drawn) else [False] * len(site.inputs)
    asked = [
        x.type.differentiable and not is_drawn
        for x, is_drawn in zip(site.inputs, drawn, strict=False)
    ]
    xs = [x for x, wanted in zip(site.inputs, asked, strict=True) if wanted]
    ys = zip(_listed(row.fn(*site.inputs, **given)), site.outputs, dys, strict=True)
    seen = [(cast(y, o.dtype), dy) for y, o, dy in ys if dy is not None]
    dxs = iter(gradients([y for y, _ in seen], xs, [dy for _, dy in seen], xs, "zero"))
    return [next(dxs) if wanted else NO_GRAD for wanted in asked]


def _as_inputs(row: ZooRow, xs: Sequence[Tensor], made: Any) -> list[Any]:
    """One gradient for each input that is not drawn, of its shape and dtype."""
    given = iter(_listed(made))
    return [
        NO_GRAD
        if drawn or not x.type.differentiable
        else cast(sum_to(as_tensor(next(given)), like=x), x.dtype)
        for x, drawn in zip(xs, row.drawn, strict=False)
    ]


# --- rows of several tensors ------------------------------------------------------------------


class TogetherRow(ZooRow):
    """A row of several tensors. Without tensors it makes a rule for a site of tensors.

    alone  its parameters, which may then be given by position
    """

    alone: Signature

    def bound(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """What a call gives for each name; without the tensors where it gives none."""
        if "x" in kwargs or not all(isinstance(a, int | float) for a in args):
            return super().bound(args, kwargs)
        try:
            bound = self.alone.bind(*args, **kwargs)
        except TypeError as error:
            said = f"{self.name}(): {error}; it is {self.name}{self.signature}, or {self.name}"
            raise TypeError(f"{said}{self.alone} for a site of tensors") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _returned(self) -> str:
        return "a tuple of tensors; without tensors a rule for graph.mark(..., together=True)"


@overload
def together(
    source: str, *, fan: Literal[True], linear: bool = ..., **said: Unpack[RowNotes]
) -> Callable[
    [Callable[Concatenate[list[Tensor], P], Tensor]],
    Callable[Concatenate[Tensor, int, P], tuple[Tensor, ...]],
]: ...
@overload
def together(
    source: str, *, fan: Literal[False] = ..., linear: bool = ..., **said: Unpack[RowNotes]
) -> Callable[[Fn], Callable[..., tuple[Tensor, ...]]]: ...
def together(
    source: str, *, fan: bool = False, linear: bool = False, **said: Unpack[RowNotes]
) -> Callable[[Fn], Any]:
    """The identity on several tensors, whose gradients are fn(gradients, tensors).

    fan  one tensor is handed out several times, and gets fn(gradients)
    """

    def decorated(fn: Fn) -> Any:
        form = "dx = " if fan else "dxs = "
        row = TogetherRow(fn, source, said, form, 1 if fan else 2, SEVERAL)
        row.alone = _by_position(row.signature)
        own = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in row.signature.parameters.values()]
        row.signature = row.signature.replace(parameters=[*(FANNED if fan else SEPARATE), *own])
        row.hints |= {"x": Tensor, "times": Count, "tensors": Tensor}

        def gradient(row: ZooRow, site: Site, dys: tuple[Any, ...], given: dict[str, Any]) -> Any:
            count = 1 if fan else len(site.outputs)
            xs, drawn = site.inputs[:count], site.inputs[count:]
            extra = given | dict(zip(row.operands, drawn, strict=False))
            ds = _filled(site, dys)
            dxs = [fn(ds, **extra)] if fan else fn(ds, list(xs), **extra)
            dxs = [cast(dx, x.dtype) for dx, x in zip(dxs, xs, strict=True)]
            return [*dxs, *[NO_GRAD] * len(drawn)]

        def on_tensors(site: Site, dys: tuple[Any, ...], given: dict[str, Any]) -> Any:
            xs, ds = site.inputs, _filled(site, dys)
            with Naming(row.name, lambda: repr(site)):
                check(xs, given)
            dxs = [fn(ds, **given) / float(len(xs))] * len(xs) if fan else fn(ds, list(xs), **given)
            return [cast(dx, x.dtype) for dx, x in zip(dxs, xs, strict=True)]

        def check(tensors: Sequence[Tensor], given: dict[str, Any]) -> None:
            if fan:
                _check_tasks(tensors)
            asked = {"tensors": tensors, "x": tensors[0], "times": len(tensors), **given}
            for need in row.needs:
                need.check(asked)

        def check_mark(tensors: Sequence[Tensor], given: dict[str, Any]) -> None:
            with Naming(row.name, lambda: show(caller())):
                check(tensors, given)

        def rule_of(given: dict[str, Any]) -> Rule:
            drawn, parameters = row.split(given)
            known = parameters | dict(zip(row.operands, drawn, strict=False))
            made = row.rule(lambda site, *dys: on_tensors(site, dys, known), known)
            made.on_tensors = lambda tensors: check_mark(tensors, known)
            return made

        def make(given: dict[str, Any]) -> Any:
            if not {"x", "tensors"}.intersection(given):
                return rule_of(given)
            times = FROM_ONE("times", given.pop("times")) if fan else 1
            xs = [as_tensor(t) for t in ((given.pop("x"),) if fan else given.pop("tensors"))]
            if not xs:
                raise TypeError("it takes the tensors whose gradients meet, got none")
            drawn, given = row.split(given, {"tensors": xs, "x": xs[0], "times": times})
            rule = row.rule(_called(gradient, row, given), given)
            with override_gradient(rule, inputs=[*xs, *drawn]) as region:
                ys = [identity(x) for x in xs for _ in range(times)]
                region.declare(outputs=ys)
            return tuple(ys)

        return row.public(make, "policy", linear)

    return decorated


def _by_position(own: Signature) -> Signature:
    given = [p.replace(kind=_EITHER) for p in own.parameters.values()]
    needed = [p for p in given if p.default is Parameter.empty]
    return own.replace(parameters=[*needed, *(p for p in given if p not in needed)])


def _check_tasks(tensors: Sequence[Tensor]) -> None:
    """GradientError where tensors cannot stand for one that is handed to several tasks."""
    if len(tensors) == 1:
        raise GradientError(
            f"it combines the gradients of several tasks, but at {tensors[0].name} "
            f"({tensors[0].where}) only their sum arrives: build it on x and times, which returns "
            "a copy of x for each task, or mark the tensor that each task reads"
        )
    if len({x.shape for x in tensors}) > 1:
        shapes = ", ".join(f"{x.name}: {list(x.shape)}" for x in tensors)
        raise GradientError(
            f"it is for tensors of one shape, copies of one tensor for several tasks, got {shapes}"
        )


_EITHER = Parameter.POSITIONAL_OR_KEYWORD
FANNED = [
    Parameter("x", _EITHER, annotation="TensorLike"),
    Parameter("times", _EITHER, annotation="int"),
]
SEPARATE = [Parameter("tensors", Parameter.VAR_POSITIONAL, annotation="TensorLike")]
