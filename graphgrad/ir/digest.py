"""What processes compare: a line for each node, the same wherever the same code built it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import numpy as np

from ..base.errors import GraphError
from ..base.processes import current
from .node import Node, Tensor, enclosing, rule_name
from .op import Op
from .program import Program

__all__ = ["check_same", "lines"]

SIZE = 8


def check_same(lines: Iterable[str], what: str) -> None:
    """GraphError where other processes have other lines, with the first that differ.

    All processes have to call it.
    """
    own = list(lines)
    rows = [_digest(line) for line in own]
    gather = current().gather
    if len(set(gather(sha256(b"".join(rows)).digest()))) == 1:
        return
    others = gather(b"".join(rows))
    at = next(i for i in range(0, max(map(len, others)) + 1, SIZE) if _differ(others, i)) // SIZE
    here = own[at] if at < len(own) else "nothing"
    told = [f"process {i}: {said.decode()}" for i, said in enumerate(gather(here[:500].encode()))]
    raise GraphError(
        f"the processes built different {what}. The first difference is in line {at}:\n  "
        + "\n  ".join(told)
        + "\n"
        "Build the same graph in all of them: with the same code and seeds, and without "
        "depending on the order of a set"
    )


def _differ(rows: list[bytes], at: int) -> bool:
    return len({row[at : at + SIZE] for row in rows}) > 1


def _digest(line: str) -> bytes:
    return sha256(line.encode()).digest()[:SIZE]


def lines(nodes: Iterable[Node], outside: Iterable[Tensor] = ()) -> Iterator[str]:
    """What is computed, node by node: names, ops, what they read, types, and the rules put on them.

    outside: tensors that are read and that no node here makes, in order.
    """
    places: dict[Tensor, str] = {t: f"input {i}" for i, t in enumerate(outside)}
    for at, node in enumerate(nodes):
        read = ", ".join(places.get(t, "elsewhere") for t in node.inputs)
        types = ", ".join(repr(t.type) for t in node.outputs)
        marks = "".join(f" in {rule_name(r.rule)!r}" for r in enclosing(node.region))
        stamp = "" if node.stamp is None else f" as {rule_name(node.stamp)}"
        name = "" if node.graph is None else f"{node.name} = "
        yield f"{name}{_op(node.op)}({read}) -> {types}{marks}{stamp}"
        for t in node.outputs:
            places.setdefault(t, f"{at}:{t.index}")


def _op(op: Op) -> str:
    attrs = ", ".join(f"{name}={_said(value)}" for name, value in op.attrs.items())
    return f"{op.type}[{attrs}]"


def _program(program: Program) -> str:
    """A body, as a digest of its lines."""
    digest = sha256()
    for line in lines(program.nodes, program.inputs):
        digest.update(line.encode())
    return digest.hexdigest()[:16]


def _said(value: Any) -> str:
    if isinstance(value, np.ndarray):
        data = sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return f"{value.dtype}{list(value.shape)} {data}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_said, value))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_said(k)}: {_said(v)}' for k, v in value.items())}}}"
    if isinstance(value, Op):
        return _op(value)
    if isinstance(value, Program):
        return _program(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
