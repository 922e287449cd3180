"""`differentiate`: a model of ONNX with derivatives among its outputs."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import ExportError, GradientError, ShapeError, did_you_mean
from ..base.flags import truth
from ..compiled import compile
from ..ir.graph import restored
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.program import needed
from ..ir.undoing import undone_on_error
from ..ops.base import constant
from ..ops.shape.reshaping import broadcast_to
from ..regions.index import bodies_of
from ..regions.rules import is_registered
from ..rules.entries import library
from .deriving.ends import ends_of, named, names_of
from .deriving.kinds import KINDS, DerivativeQuestion
from .deriving.naming import STYLES, AddedNames
from .deriving.shared import SharedWeights
from .deriving.source import SourceModel, source_of
from .exporting import OnnxFile, Said, checked_dtype
from .loading.model import OnnxModel
from .loading.shared import WEIGHTS as WEIGHTS_BESIDE
from .package import need_onnx
from .writing.model import OPSET
from .writing.older import OLDEST_WRITTEN

__all__ = ["differentiate"]

WEIGHTS = ("copy", "external", "share")
BY_ROWS = ("jacobian", "hessian", "laplacian")
SUMMED = ("gradient", "hvp", "hessian", "laplacian")


@restored
def differentiate(
    model: Any,
    of: str | Callable[[dict[str, Tensor]], Tensor] | None = None,
    wrt: str | Iterable[str] | None = None,
    *,
    kind: str = "gradient",
    order: int | None = None,
    per_example: bool = False,
    cotangent: Any = "ones",
    overrides: Mapping[Any, Any] | str | None = None,
    forward: bool | Iterable[str] = True,
    path: str | os.PathLike[str] | None = None,
    weights: str = "copy",
    opset: int | None = None,
    dtype: Any = None,
    shapes: Mapping[str, Any] | None = None,
    known: Mapping[str, Any] | None = None,
    forms: Mapping[str, Any] | None = None,
    opaque: Mapping[str, Any] | None = None,
    unconnected: str = "error",
    provenance: bool = True,
    names: str = "/",
    fast_masks: bool = False,
) -> OnnxModel:
    """Add derivatives of an ONNX model's outputs as additional outputs.

    Inputs and outputs of the model keep their names, order, dtypes and lengths. New inputs and
    outputs get names that are not in the file (with a suffix `__1` if necessary).
    `metadata["graphgrad.derivative"]` records in JSON which derivative was taken of which file, the
    new names, and the rules that were applied.

    Parameters:
        model: a file, its bytes, a ModelProto of the package onnx, or a model from gg.onnx.load; in
            the last case, nodes are added to its graph, and marks in it apply.
        of: the name of an output or of any tensor of the file; None: the only floating-point
            output; or a function of {name: output} that returns a tensor. Placeholders that the
            function creates become inputs, and with forward=True its value is an output with the
            function's name (`value` for a lambda).
        wrt: names of inputs, of tensors inside or of initializers (of a loaded model, of its
            variables); None: all floating inputs.
        kind: what is added, for y called `of` and xs called `wrt`. "gradient": of sum(y), outputs
            gradient/x. "vjp": of sum(y * cotangent), where cotangent/y is an input. "jvp": how y
            moves as all x move along inputs direction/x, an output jvp/y. "hvp": the Hessian of
            sum(y) times the directions, outputs hvp/x. "jacobian": outputs jacobian/y/x, of shape
            y.shape + x.shape. "hessian": of sum(y), outputs hessian/a/b for each pair of xs, of
            shape a.shape + b.shape. "laplacian": its trace for each x, outputs laplacian/x.
        order: for kinds "gradient" and "vjp": the order of the derivative, of which all but the
            last are along inputs direction/x; 2 is "hvp".
        per_example: for a Jacobian, Hessian or Laplacian: compute it for each row of the first
            axis, assuming that rows are independent; shapes have that axis once, in front.
        cotangent: the factor of y before it is summed: "ones", "input" (an input cotangent/y), or
            an array that broadcasts to y.
        overrides: as for gg.gradients; rules of gg.rules that need no arguments can be given by
            name: {"Relu": "guided"}.
        forward: whether to keep the outputs of the model; or the names of tensors to output, which
            may be intermediate tensors.
        path: where the new model is written; None: it is not.
        weights: "copy": in the new model, or next to it if they have more than 1 GiB; "external":
            in a separate file next to it; "share": in the original file, which must be in the same
            folder as `path` and must not change: the new file has their positions and the SHA-256
            of the original, which gg.onnx.load compares.
        opset: the version of ONNX's operators that is written, 17 to 21, None for 21, with weights
            in the model; below 21, local functions are inlined and nodes have no provenance.
        dtype: as for gg.onnx.export.
        shapes, known, forms, opaque: as for gg.onnx.load, of a model that is not loaded. An input
            that is known is none of the new model; operators with forms are written as what the
            functions build, opaque ones as they are.
        unconnected: for tensors without a gradient, "error", or "zero" for zeros.
        provenance: whether the metadata of nodes say where they were built.
        names: "/": as above. "_": identifiers, `gradient_of_x`, `jacobian_of_y_by_x`.
        fast_masks: as for gg.onnx.export.

    Returns: an OnnxModel with the added inputs and outputs behind those that were there.

    Raises: GraphError for a name that the model does not have; DTypeError for integers;
    GradientError if a gradient does not exist, which says where the path ends, and for incompatible
    options; FileError for what cannot be loaded; ExportError for what cannot be written. Nothing is
    written then, and a loaded model is as it was.

    Source: products with the Hessian [Pearlmutter 1994, "Fast exact multiplication by the
    Hessian"].

    >>> import onnx
    >>> node = onnx.helper.make_node("Mul", ["x", "x"], ["y"])
    >>> x, y = (onnx.helper.make_tensor_value_info(n, 1, ["N"]) for n in "xy")
    >>> square = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]))
    >>> model = gg.onnx.differentiate(square, "y", "x")
    >>> list(model.outputs)
    ['y', 'gradient/x']
    >>> model([1.0, 3.0])[1]
    array([2., 6.], dtype=float32)
    """
    need_onnx("gg.onnx.differentiate")
    truth("per_example", per_example)
    truth("provenance", provenance)
    truth("fast_masks", fast_masks)
    degree = _checked(kind, order, per_example, cotangent)
    _one_of("weights", weights, WEIGHTS)
    _one_of("unconnected", unconnected, ("error", "zero"))
    _one_of("names", names, STYLES)
    written_dtype, version = checked_dtype(dtype), _version(opset, weights)
    wanted = names_of(wrt)
    options = {"shapes": shapes, "known": known, "forms": forms, "opaque": opaque}
    source = source_of(model, wanted, options)
    if weights == "share":
        _check_shared(source, path)
    with undone_on_error(list(bodies_of(source.model.graph))):
        outputs = _forward(source, forward)
        with source.model.graph:
            ends = ends_of(source, of, wanted)
            taken = {*source.names, *[t.node.name for t in ends.added]}
            asked = DerivativeQuestion(
                ends,
                AddedNames(names, taken),
                degree,
                per_example,
                _cotangent("input" if kind == "vjp" else cotangent, ends.y),
                _rules_of(overrides),
                unconnected == "zero",
            )
            derived = KINDS[kind](asked)
        if forward and not ends.own:
            outputs[_free(ends.name, source)] = ends.y
        inputs = {_free(t.node.name, source): t for t in ends.added} | asked.inputs
        told = {
            "of": ends.name,
            "wrt": list(ends.xs),
            "kind": kind,
            "order": degree,
            "per_example": per_example,
            "inputs": list(inputs),
            "outputs": list(derived),
            "rules": _rules_on_the_way(derived),
            "source": dict(source.told),
        }
        answer = _with(source, inputs, {**outputs, **derived}, told)
        if path is not None:
            style = FileStyle(written_dtype, weights, provenance, version, fast_masks)
            _write(answer, source, Path(path), style)
        return answer


def _checked(kind: str, order: int | None, per_example: bool, cotangent: Any) -> int:
    """The order; GradientError for options that do not fit each other."""
    _one_of("kind", kind, tuple(KINDS))
    if per_example and kind not in BY_ROWS:
        raise GradientError(
            f"per_example applies to {', '.join(BY_ROWS)}: a {kind} of a sum already has a row "
            "for each example"
        )
    if order is not None and (isinstance(order, bool) or not isinstance(order, int) or order < 1):
        raise GradientError(f"order is an int of at least 1, or None, got {order!r}")
    if order not in (None, 1) and kind not in ("gradient", "vjp"):
        raise GradientError(
            f"order applies to gradients; a {kind} has a fixed order, got order={order}"
        )
    if isinstance(cotangent, str):
        _one_of("cotangent", cotangent, ("ones", "input"))
    if kind not in SUMMED and not (isinstance(cotangent, str) and cotangent == "ones"):
        raise GradientError(f"cotangent applies to {', '.join(SUMMED)}, not to a {kind}")
    return order or 1


def _version(opset: Any, weights: str) -> int:
    """The version of the operators; GradientError for one that is not written."""
    if opset is None or (opset == OPSET and not isinstance(opset, bool)):
        return OPSET
    if isinstance(opset, bool) or opset not in range(OLDEST_WRITTEN, OPSET):
        raise GradientError(f"opset is from {OLDEST_WRITTEN} to {OPSET}, or None, got {opset!r}")
    if weights != "copy":
        raise GradientError(
            f'opset={opset} needs weights="copy": onnx\'s version converter moves the weights'
        )
    return int(opset)


def _forward(source: SourceModel, asked: Any) -> dict[str, Tensor]:
    """The tensors of the model that are outputs, by name."""
    if isinstance(asked, str):
        raise GradientError(f"forward is True, False, or a list of names, got {asked!r}")
    if not isinstance(asked, Iterable):
        return dict(source.model.outputs) if truth("forward", asked) else {}
    return {name: named(source, name, "forward") for name in asked}


def _one_of(what: str, given: Any, known: tuple[str, ...]) -> None:
    if not isinstance(given, str) or given not in known:
        near = did_you_mean(given, known) if isinstance(given, str) else ""
        listed = ", ".join(map(repr, known))
        raise GradientError(f"{what} is one of {listed}, got {given!r}. {near}".rstrip())


def _cotangent(given: Any, y: Tensor) -> Any:
    """A word as it is, an array in the shape of y."""
    if isinstance(given, str):
        return given
    array = constant(np.asarray(given, y.dtype))
    try:
        return broadcast_to(array, y.shape)
    except ShapeError as error:
        raise ShapeError(f"cotangent: of {y.type!r}, {error}") from None


def _rules_of(overrides: Any) -> Any:
    """Overrides with rules of the library made, where they are named."""
    if not isinstance(overrides, Mapping):
        return overrides
    return {site: _rule_of(rule) for site, rule in overrides.items()}


def _rule_of(rule: Any) -> Any:
    entry = library().get(rule) if isinstance(rule, str) and not is_registered(rule) else None
    if entry is None or entry.builds:
        return rule
    try:
        return entry.make()
    except TypeError as error:
        raise GradientError(
            f"gg.rules.{rule} takes arguments, so its name alone is not enough: {error}"
        ) from None


def _free(name: str, source: SourceModel) -> str:
    return AddedNames("/", source.names).new(name)


def _check_shared(source: SourceModel, path: Any) -> None:
    """GradientError unless a new file can name that of the model."""
    if source.path is None or path is None:
        raise GradientError(
            'weights="share" needs a model given by its file name, and a path: '
            f"{'path is None' if path is None else 'this one is loaded, or bytes'}"
        )
    old, new = source.path.resolve(), Path(path).resolve()
    if old.parent != new.parent or old == new:
        raise GradientError(
            f'weights="share": {str(path)!r} must be in the folder of {str(source.path)!r}'
        )


def _rules_on_the_way(outputs: Mapping[str, Tensor]) -> list[dict[str, Any]]:
    """The rules that were called, beside those of the ops, and for how many sites each."""
    sites: defaultdict[str, set[Node | Region]] = defaultdict(set)
    for node in needed([], outputs.values()):
        if isinstance(node.origin, RuleCall):
            sites[node.origin.rule].add(node.origin.site)
    return [{"rule": rule, "sites": len(found)} for rule, found in sorted(sites.items())]


def _with(
    source: SourceModel,
    inputs: Mapping[str, Tensor],
    outputs: dict[str, Tensor],
    told: dict[str, Any],
) -> OnnxModel:
    """The model with more inputs, and these outputs."""
    old = source.model
    return OnnxModel(
        old.graph,
        {**old.inputs, **inputs},
        outputs,
        {**old.tensors, **inputs, **outputs},
        old.operators,
        old.properties._replace(
            metadata={**old.metadata, "graphgrad.derivative": json.dumps(told)}
        ),
        old.trainable,
    )


class FileStyle(NamedTuple):
    """How the file is written: arguments of `differentiate`."""

    dtype: str | None
    weights: str
    provenance: bool
    opset: int
    fast_masks: bool


def _write(answer: OnnxModel, source: SourceModel, path: Path, style: FileStyle) -> None:
    """The model as a file; ExportError."""
    f = compile(list(answer.inputs.values()), list(answer.outputs.values()), backend="numpy")
    if f._access.counted:
        raise ExportError(
            "it draws random numbers without a seed: give the draws a key that is an input, or a "
            "seed"
        )
    variables = {t: name for name, t in source.model.tensors.items() if t.node.type == "Variable"}
    named = {**{t: name for name, t in answer.inputs.items()}, **variables}
    shared = SharedWeights(source.path) if style.weights == "share" and source.path else None
    beside = {} if shared is None else {WEIGHTS_BESIDE: json.dumps(shared.digests)}
    said = Said(
        {t.node: name for t, name in named.items()},
        list(answer.outputs),
        source.notes,
        {**answer.metadata, **beside},
        style.provenance,
    )
    file = OnnxFile(f, style.dtype, said, style.opset, style.fast_masks)
    file.write()
    if shared is not None:
        shared.turn(file.block)
    file.save(path, True if style.weights == "external" else None, shared)
