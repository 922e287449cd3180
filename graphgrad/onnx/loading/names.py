"""Names of a file as names of nodes: scopes and order stay."""

from __future__ import annotations

import ast
from typing import Any

from ...ir.node import Tensor
from ...ir.op import OP_TYPES
from .protobuf import metadata_of

TORCH_SCOPES = "pkg.torch.onnx.name_scopes"
"""Where torch.onnx says in which modules a node was made."""


def clean(name: str) -> str:
    """A name that a node may have: "/conv1/Conv_0" is conv1/Conv__0, for Conv_0 is the first
    unnamed node of a type Conv.
    """
    parts = [part for part in name.split("/") if part]
    if not parts:
        return ""
    base, line, number = parts[-1].rpartition("_")
    if base in OP_TYPES and number.isdecimal():
        parts[-1] = f"{base}{line}_{number}"
    return "/".join(parts)


def path_of(node: Any) -> str:
    """The name of a node with its scopes: its own, or that of its first output."""
    own = clean(node.name) or clean(next((name for name in node.output if name), ""))
    own = own or node.op_type.lower()
    if "/" in own:
        return own
    return "/".join([*_modules(node), own])


def _modules(node: Any) -> list[str]:
    """The modules of torch around a node: the last of ["", "encoder", "encoder.0", "linear_3"]
    that is not the node itself.
    """
    said = metadata_of(node).get(TORCH_SCOPES)
    if not said or len(said) > 10_000:
        return []
    try:
        scopes = ast.literal_eval(said)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    if not isinstance(scopes, list) or not all(isinstance(s, str) for s in scopes):
        return []
    around = [s for s in scopes[:-1] if s]
    return [part for part in around[-1].split(".") if part] if around else []


def rename(t: Tensor, path: str) -> None:
    """Give a node that was just built its name, scopes included."""
    node = t.node
    assert node.graph is not None
    scope, slash, name = path.rpartition("/")
    node.scope = scope + slash
    node._name = node.graph.claim_name(node.scope, name, node)
