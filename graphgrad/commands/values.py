"""`run`: the values of what a function built, for arrays given on the command line."""

from __future__ import annotations

import ast
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import debug
from ..compile import compile
from ..ir.errors import GraphError
from ..ir.node import Tensor
from .target import Target, TargetError, add_target, load

SUMMARY = "compute the outputs, for arrays given by name"


def arguments(parser: ArgumentParser) -> None:
    """TARGET, feeds and how to run."""
    add_target(parser)
    parser.add_argument(
        "--feed",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an array for a tensor: a Python literal, or @FILE.npy; may be given again",
    )
    parser.add_argument(
        "--random",
        type=int,
        metavar="SEED",
        help="normally distributed arrays for placeholders that are fed nothing",
    )
    parser.add_argument("--backend", default="auto", help="which backend runs it")
    parser.add_argument(
        "--guard", action="store_true", help="stop at the first NaN or inf, and say who made it"
    )


def run(options: Namespace) -> int:
    """Print each output, by name; exit code 1 where --guard finds something."""
    target = load(options.target)
    feeds = dict(_feed(target, text) for text in options.feed)
    if options.random is not None:
        feeds |= _random(target, feeds, options.random)
    if options.guard:
        try:
            values = debug.nan_guard(target.outputs, feeds)
        except debug.NotFiniteError as error:
            print(error)
            return 1
    else:
        f = compile(list(feeds), target.outputs, backend=options.backend)
        values = f(*feeds.values())
    for t, value in zip(target.outputs, values, strict=True):
        shown = np.array2string(np.asarray(value), threshold=20, edgeitems=3, prefix="  ")
        print(f"{t.name}: {t.type!r}\n  {shown}")
    return 0


def _feed(target: Target, text: str) -> tuple[Tensor, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise TargetError(f"--feed takes NAME=VALUE, got {text!r}")
    t = _tensor(target, name)
    if value.startswith("@"):
        try:
            return t, np.load(value[1:], allow_pickle=False)
        except (OSError, ValueError) as error:
            raise TargetError(f"--feed {name}: cannot read {value[1:]!r}: {error}") from error
    try:
        return t, ast.literal_eval(value)
    except (ValueError, SyntaxError) as error:
        raise TargetError(
            f"--feed {name}: {value!r} is no number or list; a file is @FILE.npy"
        ) from error


def _tensor(target: Target, name: str) -> Tensor:
    try:
        return target.graph.tensor(name)
    except GraphError:
        return target.graph.tensor(f"{name}:0")


def _random(target: Target, fed: dict[Tensor, Any], seed: int) -> dict[Tensor, Any]:
    rng = np.random.default_rng(seed)
    lengths: dict[str, int] = {}
    found: dict[Tensor, Any] = {}
    for node in target.graph.nodes:
        if node.type == "Placeholder" and node.outputs[0] not in fed:
            t = node.outputs[0]
            shape = _shape(t.shape, lengths)
            if t.dtype.kind == "b":
                found[t] = rng.random(shape) < 0.5
            elif t.dtype.kind in "iu":
                found[t] = np.zeros(shape, t.dtype)
            else:
                found[t] = rng.normal(size=shape).astype(t.dtype)
    return found


def _shape(shape: Sequence[Any], lengths: dict[str, int]) -> tuple[int, ...]:
    """Unknown lengths become 3."""
    return tuple([d if isinstance(d, int) else lengths.setdefault(str(d), 3) for d in shape])
