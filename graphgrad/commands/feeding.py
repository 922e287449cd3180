"""Arrays from the command line: `--feed NAME=VALUE`, `--random SEED`."""

from __future__ import annotations

import ast
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import GraphError
from ..base.kinds import kind_of
from ..files.regular import check_regular
from ..ir.node import Tensor
from ..ir.program import needed
from .errors import TargetError
from .target import TargetGraph


def feed_arguments(parser: ArgumentParser) -> None:
    """What is fed."""
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
        help="normally distributed arrays for placeholders without a feed; unknown lengths "
        "become 3",
    )


def feeds_for(target: TargetGraph, options: Namespace) -> dict[Tensor, Any]:
    """What is fed; TargetError where the outputs need more."""
    feeds = dict(_feed(target, text) for text in options.feed)
    if options.random is not None:
        feeds |= _random(target, feeds, options.random)
    missing = [n.outputs[0] for n in needed(feeds, target.outputs) if n.type == "Placeholder"]
    if missing:
        rows = "".join(f"\n  {t.name}: {t.type!r}, built at {t.where}" for t in missing)
        raise TargetError(
            f"the outputs need placeholders that have no feed:{rows}\n"
            "Feed each of them with --feed NAME=VALUE, or all of them with --random SEED."
        )
    return feeds


def _feed(target: TargetGraph, text: str) -> tuple[Tensor, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise TargetError(f"--feed takes NAME=VALUE, got {text!r}")
    t = _tensor(target, name)
    if value.startswith("@"):
        try:
            check_regular(value[1:])
            return t, np.load(value[1:], allow_pickle=False)
        except (OSError, ValueError) as error:
            raise TargetError(f"--feed {name}: cannot read {value[1:]!r}: {error}") from error
    try:
        return t, ast.literal_eval(value)
    except (ValueError, SyntaxError) as error:
        raise TargetError(
            f"--feed {name}: {value!r} is not a number or list; a file is @FILE.npy"
        ) from error


def _tensor(target: TargetGraph, name: str) -> Tensor:
    try:
        return target.graph.tensor(name)
    except GraphError:
        return target.graph.tensor(f"{name}:0")


def _random(target: TargetGraph, fed: dict[Tensor, Any], seed: int) -> dict[Tensor, Any]:
    rng = np.random.default_rng(seed)
    lengths: dict[str, int] = {}
    feeds: dict[Tensor, Any] = {}
    for node in target.graph.nodes:
        if node.type == "Placeholder" and node.outputs[0] not in fed:
            t = node.outputs[0]
            shape = _shape(t.shape, lengths)
            if kind_of(t.dtype) == "b":
                feeds[t] = rng.random(shape) < 0.5
            elif kind_of(t.dtype) in "iu":
                feeds[t] = np.zeros(shape, t.dtype)
            else:
                feeds[t] = rng.normal(size=shape).astype(t.dtype)
    return feeds


def _shape(shape: Sequence[Any], lengths: dict[str, int]) -> tuple[int, ...]:
    """Unknown lengths become 3."""
    return tuple([d if isinstance(d, int) else lengths.setdefault(str(d), 3) for d in shape])
