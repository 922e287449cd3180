"""What is differentiated with respect to what: tensors, by the names of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...base.errors import DTypeError, GradientError, GraphError, did_you_mean
from ...ir.node import Tensor
from ...ir.program import needed
from ..loading.model import OnnxModel
from .source import SourceModel

__all__ = ["DerivativeEnds", "ends_of", "named", "names_of"]


class DerivativeEnds(NamedTuple):
    """The ends of a question.

    name   what `of` is called
    y      it
    xs     {name: tensor} it is differentiated by
    added  placeholders that a function `of` made
    own    whether y is in the model: not what a function made
    """

    name: str
    y: Tensor
    xs: dict[str, Tensor]
    added: list[Tensor]
    own: bool


def names_of(wrt: str | Iterable[str] | None) -> list[str]:
    """The names that `wrt` gives; none for None. GradientError for input that is not a name, or
    twice."""
    names = [wrt] if isinstance(wrt, str) else list(wrt or ())
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise GradientError(f"wrt takes names of tensors of the model, got {name!r}")
        if name in names[:i]:
            raise GradientError(f"wrt names {name!r} twice")
    if wrt is not None and not names:
        raise GradientError("wrt is empty; None means all floating inputs")
    return names


def ends_of(source: SourceModel, of: Any, wrt: Sequence[str]) -> DerivativeEnds:
    """The tensors; GraphError for names that the model does not have, DTypeError for integers."""
    model = source.model
    xs = {name: named(source, name, "wrt") for name in wrt} or _floating(model.inputs)
    if not xs:
        raise DTypeError(
            f"no input of the model is floating: {_listed(model.inputs)}. "
            f"{_made_of_integers(model)}".rstrip()
        )
    if callable(of):
        name, y = _called(of, model)
        known = set(model.inputs.values())
        nodes = needed(known, [y])
        added = [node.outputs[0] for node in nodes if node.type == "Placeholder"]
    else:
        name, y, added = *_output(source, of), []
    for what, (label, t) in (("of", (name, y)), *[("wrt", row) for row in xs.items()]):
        if not t.type.differentiable or t.type.complex:
            raise DTypeError(
                f"{what}: {label!r} is {t.type!r}, and only floating tensors have derivatives. "
                f"{_choices(model, what)}"
            )
    return DerivativeEnds(name, y, xs, added, not callable(of))


def _floating(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: t for name, t in tensors.items() if t.type.differentiable}


def _choices(model: OnnxModel, what: str) -> str:
    there = _floating(model.inputs if what == "wrt" else model.outputs)
    kind = "inputs" if what == "wrt" else "outputs"
    return f"Floating {kind}: {', '.join(there) or 'none'}."


def _made_of_integers(model: OnnxModel) -> str:
    """The floating tensors of the file that are made of integer inputs at first: embeddings."""
    moving, found = set(model.inputs.values()), dict[Tensor, None]()
    for node in needed(moving, model.outputs.values()):
        read = moving.intersection(node.inputs)
        if read:
            moving.update(node.outputs)
            if not any(t.type.differentiable for t in read):
                found.update((t, None) for t in node.outputs if t.type.differentiable)
    named = {name: t for name, t in model.tensors.items() if t in found}
    return f"Tensors computed from them may be named in wrt: {_listed(named)}." if named else ""


def _output(source: SourceModel, of: Any) -> tuple[str, Tensor]:
    """The tensor called `of`; for None the only floating output."""
    outputs = source.model.outputs
    if of is None:
        floating = list(_floating(outputs).items())
        if len(floating) != 1:
            raise GradientError(
                f"of must name an output: the model has {len(floating)} floating ones: "
                f"{_listed(outputs)}"
            )
        return floating[0]
    if not isinstance(of, str):
        raise GradientError(f"of is a name, a function of outputs or None, got {of!r}")
    return of, named(source, of, "of")


def _called(of: Callable[..., Any], model: OnnxModel) -> tuple[str, Tensor]:
    y = of(dict(model.outputs))
    if not isinstance(y, Tensor) or y.graph is not model.graph:
        raise GradientError(
            f"of returned {y!r}; it takes {{name: tensor}} of the outputs and returns a tensor "
            "that is computed from them"
        )
    name = getattr(of, "__name__", "")
    return (name if name.isidentifier() else "value"), y


def named(source: SourceModel, name: str, what: str) -> Tensor:
    """The tensor that the file calls so; GraphError. what: the argument that names it."""
    model = source.model
    t = (model.inputs if what == "wrt" else model.outputs).get(name)
    t = model.tensors.get(name) if t is None else t
    if t is not None:
        return t
    if name in source.names:
        raise GraphError(
            f"{what}: {name!r} is known when the model is loaded, as a constant or computed from "
            "shapes, so no gradient flows there"
        )
    near = did_you_mean(name, source.names, _choices(model, what))
    hint = " Weights are variables with gg.onnx.load(..., trainable=True)." if source.given else ""
    raise GraphError(f"{what}: the model has no tensor {name!r}. {near}{hint}")


def _listed(tensors: dict[str, Tensor]) -> str:
    return ", ".join(f"{name}: {t.type!r}" for name, t in tensors.items()) or "none"
