"""The words in every picture: short types, values, attributes, and titles of boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kinds
from ...base.errors import GraphGradError
from ...base.position import Position, show, source_line
from ...ir.node import Node, Region, RuleCall, rule_name
from ...ir.region_tree import sites_at
from ...ir.types import DType, TensorType
from ...ops.control import Scan, While
from ...regions.rules import BuiltinRule, Rule, as_rule, find_rule
from .escape import shortened as shortened
from .escape import visible as visible

_LONG_TYPE, _LONG_LENGTH = 30, 14
_HIDDEN = ("shape", "dtype", "value", "initial")
_KINDS = {
    "Placeholder": "input",
    "Variable": "variable",
    "Constant": "constant",
}


def site_of(origin: Node | RuleCall) -> Node | Region:
    """What was differentiated where a node of this origin came to be."""
    return origin.site if isinstance(origin, RuleCall) else origin


def kind_of(node: Node) -> str:
    """ "input", "variable", "constant" or "op"."""
    return _KINDS.get(node.type, "op")


def is_private(node: Node) -> bool:
    """Whether it is a constant that a rule or a gradient made for itself."""
    return node.origin is not None and kind_of(node) == "constant"


def is_number(node: Node) -> bool:
    """Whether it is a constant without a name that is one number."""
    return kind_of(node) == "constant" and node._name is None and not node.outputs[0].type.shape


def short_dtype(dtype: DType) -> str:
    """`f32`, `i64`, `c128`, `bool`, `bf16`."""
    if kinds.is_bfloat16(dtype):
        return "bf16"
    kind = kinds.kind_of(dtype)
    return "bool" if kind == "b" else f"{kind}{dtype.itemsize * 8}"


def short_type(type: TensorType) -> str:
    """`f32[64,N]`; an unknown length is `?`, a long name shortened."""
    dims = ",".join("?" if d is None else shortened(str(d), 30) for d in type.shape)
    return f"{short_dtype(type.dtype)}[{dims}]"


def brief_type(type: TensorType) -> str:
    """`f32[...,16,N]`: of a type that is long, long lengths are left out."""
    text = short_type(type)
    if len(text) <= _LONG_TYPE:
        return text
    brief = [d if isinstance(d, int) or len(str(d)) <= _LONG_LENGTH else "..." for d in type.shape]
    dims = ",".join("?" if d is None else str(d) for d in brief)
    return f"{short_dtype(type.dtype)}[{dims}]"


def short_name(node: Node) -> str:
    """The name, without the scope where the node is derived."""
    return node.name if node.origin is None else node.name.rpartition("/")[2]


def local_name(node: Node) -> str:
    """The name without the scope."""
    if node.origin is not None:
        return node.name.rpartition("/")[2]
    return node.name.removeprefix(node.scope) or node.name


def how_often(node: Node) -> str:
    """`x 200`, `x N`, `x ?` of a loop over rows, `while Less_4`; '' of anything else."""
    op = node.op
    if isinstance(op, Scan):
        runs = op.runs_of([t.type for t in node.inputs])
        words = f"x {'?' if runs is None else shortened(str(runs), 30)}"
        return f"{words}, from the last" if op.reverse else words
    if isinstance(op, While):
        words = f"while {shortened(local_name(op.bodies[0].outputs[0].node), 30)}"
        return words if op.max_trips is None else f"{words}, at most {op.max_trips} x"
    return ""


def short_attrs(node: Node, limit: int = 30) -> str:
    """The attributes that say more than the types do; '' where they are long."""
    if often := how_often(node):
        return often
    if "key" in node.attrs and isinstance(node.attrs["key"], tuple):
        return shortened(index_text(node.attrs["key"]), limit)
    defaults = type(node.op)._defaults
    shown = [
        f"{k}={v!r}"
        for k, v in node.attrs.items()
        if not (k in _HIDDEN and not isinstance(v, int | float))
        and not (k in defaults and defaults[k] == v and type(defaults[k]) is type(v))
    ]
    text = ", ".join(shown)
    return text if len(text) <= limit else ""


def index_text(key: tuple[Any, ...]) -> str:
    """`[:, 0]`, `[1:, None, at]` of a key as slices and picks have it: `at` is an index array."""
    return f"[{', '.join(map(_index_text, key))}]"


def _index_text(item: Any) -> str:
    if not isinstance(item, tuple):
        return str(item)
    start, stop, step = ("" if part is None else str(part) for part in item)
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


def value_of(node: Node) -> str:
    """A constant's value where it is small, else its type."""
    value = np.asarray(node.attrs["value"])
    if value.ndim == 0:  # as short as its own dtype allows: 1e-05, not 9.999999747378752e-06
        return str(value[()])
    return str(value.tolist()) if value.size <= 4 else short_type(node.outputs[0].type)


class Lines:
    """Source positions as text, each resolved once."""

    def __init__(self) -> None:
        self._shown: dict[Position, str] = {}
        self._source: dict[Position, str] = {}

    def __call__(self, position: Position | None) -> str:
        """`train.py:14`; '' where there is none."""
        if position is None:
            return ""
        line = self._shown.get(position)
        if line is None:
            line = self._shown[position] = show(position)
        return line

    def source(self, position: Position | None) -> str:
        """The text of the user's line; '' where it cannot be read."""
        if position is None:
            return ""
        text = self._source.get(position)
        if text is None:
            text = self._source[position] = source_line(position)
        return text

    def why(self, node: Node) -> str:
        """The user's line, or what the node was derived from."""
        origin = node.origin
        if origin is None:
            return self(node.position)
        if isinstance(origin, RuleCall):
            line = f", {self(node.position)}" if node.position is not None else ""
            return f"rule {origin.rule!r} for {site_name(origin)}{line}"
        return f"grad of {short_name(origin)}"


def about(node: Node, lines: Lines) -> list[str]:
    """Everything about a node, in rows."""
    rows = [node.name, repr(node.op), f"at {lines(node.position) or node.where}"]
    if source := lines.source(node.position):
        rows.append(source)
    rows += [f"{t.name}: {t.type!r}" for t in node.outputs]
    if node.region is not None:
        rows.append(f"in {node.region!r}")
    if node.stamp is not None:
        rows.append(f"gradient override {stamp_name(node)!r}")
    if sites := sites_on(node):
        rows.append(f"in the site of tensors {sites}")
    if isinstance(node.origin, RuleCall):
        rows.append(f"built by {node.origin!r}")
    return rows


def site_name(call: RuleCall) -> str:
    """`#0` for a region, what a group was named as, the node's name for a node."""
    if not isinstance(call.site, Region):
        return short_name(call.site)
    return f"#{call.site.index}" if call.site.group is None else call.site.name


def stamp_name(node: Node) -> str:
    """The name of the rule that an op-type map put on a node."""
    return rule_name(node.stamp)


def sites_on(node: Node) -> str:
    """`"clip" #0` of each site of tensors that a node makes a tensor of; "" where there is none."""
    sites = dict.fromkeys(site for t in node.outputs for site in sites_at(t))
    return ", ".join(f'"{shortened(site.name, 60)}" #{site.index}' for site in sites)


def region_title(region: Region) -> str:
    """`override "ste" #0 (train.py:14)`."""
    word = "override" if region.kind == "scope" else region.kind
    where = f" ({show(region.position)})" if region.position else ""
    return f'{word} "{shortened(region.name, 60)}" #{region.index}{where}'


def call_title(call: RuleCall) -> str:
    """`spliced "ste" for #0 (grads.py:3)`."""
    rule = rule_of(call)
    where = f" ({rule.where})" if rule is not None and rule.position else ""
    if isinstance(rule, BuiltinRule):
        where = " (own gradient of the op type)"
    name, site = shortened(call.rule, 60), shortened(site_name(call), 40)
    return f'spliced "{name}" for {site}{where}'


def rule_of(call: RuleCall) -> Rule | None:
    """The rule that a call was of; None where it is not to be found any more."""
    site = call.site
    for reference in (site.rule if isinstance(site, Region) else site.stamp, call.rule):
        try:
            rule = find_rule(reference) if isinstance(reference, str) else as_rule(reference)
        except GraphGradError:
            continue
        if rule.name == call.rule:
            return rule
    return None
