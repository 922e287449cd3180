"""`onnx MODEL --gradient OF:WRT -o NEW`: a model with derivatives of its outputs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..base.words import visible
from ..onnx.deriving.kinds import KINDS
from ..onnx.differentiating import WEIGHTS, differentiate
from ..onnx.loading.load import opened
from ..onnx.loading.model import OnnxModel
from .derived import check_derivative
from .errors import TargetError

__all__ = ["derivative_arguments", "derive", "derived_kind"]

WHAT = {
    "gradient": "the gradient of the sum of OF",
    "vjp": "the gradient of OF times an input cotangent/OF",
    "jvp": "how OF moves along inputs direction/WRT",
    "hvp": "the Hessian of the sum of OF times inputs direction/WRT",
    "jacobian": "the derivative of each element of OF by each of WRT",
    "hessian": "the second derivatives of the sum of OF",
    "laplacian": "the trace of the Hessian of the sum of OF, for each WRT",
}


WITH_A_KIND = "output order per_example rule shapes opset dtype zero weights".split()  # noqa: SIM905
WITH_A_KIND += "forward no_forward no_provenance fast_masks check".split()  # noqa: SIM905


def derivative_arguments(parser: ArgumentParser) -> None:
    """A kind, what goes with it, and where the new model is written."""
    of_derivatives = parser.add_argument_group(
        "derivatives",
        "Write a model with derivatives as additional outputs. OF is an output or an intermediate "
        "tensor; WRT are inputs, intermediate tensors or weights, separated by commas. Defaults: "
        "the only floating-point output, and all floating-point inputs.",
    )
    kinds = of_derivatives.add_mutually_exclusive_group()
    for kind in KINDS:
        kinds.add_argument(f"--{kind}", nargs="?", const="", metavar="OF:WRT", help=WHAT[kind])
    add = of_derivatives.add_argument
    add("-o", "--output", type=Path, metavar="FILE", help="the file of the new model")
    add("--order", type=int, metavar="N", help="order of the derivative, for --gradient and --vjp")
    add("--per-example", action="store_true", help="for each row of the first axis separately")
    add(
        "--rule",
        action="append",
        default=[],
        metavar="OP=RULE",
        help="the rule for all ops of a type, as Relu=guided; may be given again",
    )
    add(
        "--shapes",
        action="append",
        default=[],
        metavar="INPUT=LENGTHS",
        help="the shape of an input, as x=1,3,h,w; may be given again",
    )
    add("--opset", type=int, metavar="N", help="the version of ONNX's operators, 17 to 21")
    add("--dtype", choices=("float32", "float64"), help="write all floats with this dtype")
    add("--zero", action="store_true", help="zeros, not an error, for missing gradients")
    add("--weights", choices=WEIGHTS, help="external: in a separate file; share: in MODEL")
    forward = of_derivatives.add_mutually_exclusive_group()
    forward.add_argument(
        "--forward", metavar="NAMES", help="only these outputs or intermediate tensors"
    )
    forward.add_argument("--no-forward", action="store_true", help="omit the outputs of MODEL")
    add("--no-provenance", action="store_true", help="omit the origin of each node")
    add(
        "--fast-masks",
        action="store_true",
        help="mask gradients by products with 0: faster, but NaN for infinite gradients",
    )
    add("--names", choices=("/", "_"), default="/", help="_: gradient_of_x, not gradient/x")
    add(
        "--check",
        action="store_true",
        help="run both models in onnxruntime on random inputs, and compare with finite differences",
    )


def derived_kind(options: Namespace) -> str | None:
    """The kind that is asked for; TargetError where only what goes with one is given."""
    kind = next((k for k in KINDS if getattr(options, k) is not None), None)
    alone = [name for name in WITH_A_KIND if getattr(options, name)]
    if kind is None and alone:
        option = "-o" if alone[0] == "output" else f"--{alone[0].replace('_', '-')}"
        raise TargetError(f"{option} needs a derivative: --gradient OF:WRT, --hessian, ...")
    if kind is not None and options.output is None:
        raise TargetError(f"--{kind} writes a new model: say where with -o FILE")
    return kind


def derive(options: Namespace, kind: str) -> int:
    """Write the model, and say what it has; exit code 1 where a check fails, or none was made."""
    of, wrt = _ends(options.file, getattr(options, kind))
    answer = differentiate(
        options.file,
        of,
        wrt,
        kind=kind,
        order=options.order,
        per_example=options.per_example,
        overrides=dict(_pair("--rule", text) for text in options.rule) or None,
        forward=options.forward.split(",") if options.forward else not options.no_forward,
        path=options.output,
        weights=options.weights or "copy",
        opset=options.opset,
        dtype=options.dtype,
        shapes=dict(_shape(text) for text in options.shapes) or None,
        unconnected="zero" if options.zero else "error",
        provenance=not options.no_provenance,
        names=options.names,
        fast_masks=options.fast_masks,
    )
    for row in _rows(answer, options.output):
        print(visible(row))
    if not options.check:
        return 0
    right, rows = check_derivative(options.file, options.output, answer)
    for row in rows:
        print(visible(row))
    return 0 if right else 1


def _rows(answer: OnnxModel, path: Path) -> Iterator[str]:
    for what, tensors in (("input", answer.inputs), ("output", answer.outputs)):
        yield from (f"{what} {name}: {t.type!r}" for name, t in tensors.items())
    yield f"written: {path}, {path.stat().st_size} bytes"


def _ends(path: Path, text: str) -> tuple[str | None, list[str] | None]:
    """The names in OF:WRT, which may have colons themselves: where the model knows them, there."""
    with opened(path) as (model, _):
        graph = model.graph
        known = {name for node in graph.node for name in node.output}
        known.update(each.name for each in (*graph.input, *graph.output, *graph.initializer))
    places = [i for i, letter in enumerate(text) if letter == ":"]
    ways = [(text[:i], text[i + 1 :]) for i in places] + [(text, "")]
    for of, wrt in ways:
        names = wrt.split(",") if wrt else []
        if (not of or of in known) and known.issuperset(names):
            return of or None, names or None
    of, wrt = ways[0]
    return of or None, wrt.split(",") if wrt else None


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise TargetError(f"{option} takes NAME=VALUE, got {text!r}")
    return name, value


def _shape(text: str) -> tuple[str, tuple[Any, ...]]:
    name, lengths = _pair("--shapes", text)
    parts = [part.strip() for part in lengths.strip("()[]").split(",")]
    return name, tuple([int(p) if p.isdecimal() else p for p in parts if p])
