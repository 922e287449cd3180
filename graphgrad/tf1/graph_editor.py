"""`tf.contrib.graph_editor`: walks over ops, copies of ops, and other inputs for them."""

from __future__ import annotations

import re
from typing import Any

from .copying import copied
from .graph import Graph, Operation, Tensor, get_default_graph
from .refused import refuses

__all__ = [
    "SubGraphView", "TransformerInfo", "add_control_inputs", "copy", "copy_with_input_replacements",
    "filter_ops", "filter_ts", "filter_ts_from_regex", "get_backward_walk_ops", "get_consuming_ops",
    "get_forward_walk_ops", "get_generating_ops", "get_tensors", "get_walks_intersection_ops",
    "graph_replace", "make_list_of_op", "make_list_of_t", "reroute_inputs", "reroute_ts",
    "select_ops", "select_ts", "sgv",
]  # fmt: skip


class SubGraphView:
    """Some ops of a graph: what they read from outside, and what is read of them outside."""

    def __init__(self, ops: Any = ()) -> None:
        self._ops: list[Operation] = sorted(dict.fromkeys(make_list_of_op(ops)),
                                            key=lambda op: op._id)  # fmt: skip

    @property
    def ops(self) -> list[Operation]:
        """The ops, in the order in which they were made."""
        return list(self._ops)

    @property
    def graph(self) -> Graph:
        """The graph they are in."""
        return self._ops[0].graph

    @property
    def inputs(self) -> list[Tensor]:
        """What they read from outside."""
        inside = set(self._ops)
        return list(dict.fromkeys(t for op in self._ops for t in op.inputs if t.op not in inside))

    @property
    def outputs(self) -> list[Tensor]:
        """What is read of them outside, or by nobody."""
        inside = set(self._ops)
        return [
            t
            for op in self._ops
            for t in op.outputs
            if not t._consumers or any(c not in inside for c in t._consumers)
        ]


class TransformerInfo:
    """What stands for what in a copy."""

    def __init__(self, ops: dict[Operation, Operation], tensors: dict[Tensor, Tensor]) -> None:
        self._transformed_ops = ops
        self._transformed_ts = tensors

    def transformed(self, original: Any, missing_fn: Any = None) -> Any:
        """The copy of an op or tensor, or of a list of them."""
        if isinstance(original, list | tuple):
            return [self.transformed(o, missing_fn) for o in original]
        table: Any = self._transformed_ops if isinstance(original, Operation) else (
            self._transformed_ts)  # fmt: skip
        if original not in table and missing_fn is not None:
            return missing_fn(original)
        return table.get(original)

    def original(self, transformed: Any) -> Any:
        """What an op or tensor is a copy of."""
        tables: tuple[Any, ...] = (self._transformed_ops, self._transformed_ts)
        return next((a for table in tables for a, b in table.items() if b is transformed), None)


def sgv(*args: Any, **kwargs: Any) -> SubGraphView:
    """A view of ops."""
    ops: list[Operation] = []
    for a in args:
        ops += select_ops(a, **kwargs) if isinstance(a, str) else make_list_of_op(a)
    return SubGraphView(ops)


def make_list_of_op(ops: Any, check_graph: bool = True, allow_graph: bool = True,
                    ignore_ts: bool = False) -> list[Operation]:  # fmt: skip
    """Ops as a list: of a graph, a view, a list of ops and tensors."""
    if isinstance(ops, Graph):
        return ops.get_operations()
    if isinstance(ops, SubGraphView):
        return ops.ops
    if isinstance(ops, Operation):
        return [ops]
    if isinstance(ops, Tensor):
        return [ops.op]
    return [o.op if isinstance(o, Tensor) or not isinstance(o, Operation) else o for o in ops]


def make_list_of_t(ts: Any, check_graph: bool = True, allow_graph: bool = True,
                   ignore_ops: bool = False) -> list[Tensor]:  # fmt: skip
    """Tensors as a list."""
    if isinstance(ts, Graph):
        return [t for op in ts.get_operations() for t in op.outputs]
    return [ts] if isinstance(ts, Tensor) else list(ts)


def get_tensors(graph: Graph) -> list[Tensor]:
    """All tensors of a graph."""
    return make_list_of_t(graph)


def get_consuming_ops(ts: Any) -> list[Operation]:
    """The ops that read tensors."""
    return list(dict.fromkeys(c for t in make_list_of_t(ts) for c in t._consumers))


def get_generating_ops(ts: Any) -> list[Operation]:
    """The ops that make tensors."""
    return list(dict.fromkeys(t.op for t in make_list_of_t(ts)))


def _walk(seeds: Any, inclusive: bool, within: Any, stops: Any, step: Any) -> list[Operation]:
    start = make_list_of_op(seeds)
    inside = None if within is None else set(make_list_of_op(within))
    stopped = set(make_list_of_t(stops)) if stops else set()
    seen: dict[Operation, None] = {}
    wave = [op for op in start if inside is None or op in inside]
    while wave:
        following: list[Operation] = []
        for op in wave:
            if op in seen:
                continue
            seen[op] = None
            following += [
                o for o in step(op, stopped) if o not in seen and (inside is None or o in inside)
            ]
        wave = following
    return [op for op in seen if inclusive or op not in start]


def _makers(op: Operation, stopped: set[Tensor]) -> list[Operation]:
    return [t.op for t in op.inputs if t not in stopped]


def _readers(op: Operation, stopped: set[Tensor]) -> list[Operation]:
    return [c for t in op.outputs if t not in stopped for c in t._consumers]


@refuses("control_inputs")
def get_backward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None,
    stop_at_ts: Any = (), control_inputs: bool = False,
) -> list[Operation]:  # fmt: skip
    """All ops that lead to the seeds, not beyond some tensors."""
    found = _walk(seed_ops, inclusive, within_ops, stop_at_ts, _makers)
    return [op for op in found if within_ops_fn is None or within_ops_fn(op)]


@refuses("control_outputs")
def get_forward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None,
    stop_at_ts: Any = (), control_outputs: Any = None,
) -> list[Operation]:  # fmt: skip
    """All ops that the seeds lead to, not beyond some tensors."""
    found = _walk(seed_ops, inclusive, within_ops, stop_at_ts, _readers)
    return [op for op in found if within_ops_fn is None or within_ops_fn(op)]


def get_walks_intersection_ops(
    forward_seed_ops: Any, backward_seed_ops: Any, forward_inclusive: bool = True,
    backward_inclusive: bool = True, within_ops: Any = None, **_: Any,
) -> list[Operation]:  # fmt: skip
    """The ops on both walks."""
    ahead = set(get_forward_walk_ops(forward_seed_ops, forward_inclusive, within_ops))
    behind = get_backward_walk_ops(backward_seed_ops, backward_inclusive, within_ops)
    return [op for op in behind if op in ahead]


def filter_ops(ops: Any, positive_filter: Any) -> list[Operation]:
    """The ops of which a function holds."""
    return [op for op in make_list_of_op(ops) if positive_filter is True or positive_filter(op)]


def filter_ts(ops: Any, positive_filter: Any) -> list[Tensor]:
    """The tensors of ops of which a function holds."""
    keep = positive_filter
    return [t for op in make_list_of_op(ops) for t in op.outputs if keep is True or keep(t)]


def filter_ts_from_regex(ops: Any, regex: Any) -> list[Tensor]:
    """The tensors of ops whose names a pattern finds."""
    pattern = re.compile(regex) if isinstance(regex, str) else regex
    return filter_ts(ops, lambda t: pattern.search(t.name) is not None)


def select_ops(*args: Any, graph: Any = None, **_: Any) -> list[Operation]:
    """The ops whose names patterns find."""
    ops = make_list_of_op(graph or get_default_graph())
    found: list[Operation] = []
    for a in args:
        found += [op for op in ops if re.search(a, op.name)] if isinstance(a, str) else (
            make_list_of_op(a))  # fmt: skip
    return list(dict.fromkeys(found))


def select_ts(*args: Any, graph: Any = None, **_: Any) -> list[Tensor]:
    """The tensors whose names patterns find."""
    ts = get_tensors(graph or get_default_graph())
    return list(dict.fromkeys(t for a in args for t in ts if re.search(a, t.name)))


@refuses("dst_scope", "src_scope", "reuse_dst_scope")
def copy_with_input_replacements(
    sgv: Any, replacement_ts: Any, dst_graph: Any = None, dst_scope: str = "",
    src_scope: str = "", reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:  # fmt: skip
    """Copies of ops, which read copies, replacements, or what the ops read."""
    known = dict(replacement_ts)
    given = set(known)
    ops = copied(make_list_of_op(sgv), known, dst_graph)
    tensors = {t: c for t, c in known.items() if t not in given}
    return SubGraphView(ops.values()), TransformerInfo(ops, tensors)


def copy(sgv: Any, dst_graph: Any = None, dst_scope: str = "", **_: Any) -> Any:
    """Copies of ops."""
    return copy_with_input_replacements(sgv, {}, dst_graph)


@refuses("dst_scope", "src_scope", "reuse_dst_scope")
def graph_replace(
    target_ts: Any, replacement_ts: Any, dst_scope: str = "", src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> Any:  # fmt: skip
    """Targets computed anew, with other tensors in the place of some."""
    single = isinstance(target_ts, Tensor)
    targets = make_list_of_t(target_ts)
    replaced = dict(replacement_ts)
    ahead = set(get_forward_walk_ops([c for t in replaced for c in t._consumers]))
    behind = get_backward_walk_ops([t.op for t in targets], stop_at_ts=list(replaced))
    between = [op for op in behind if op in ahead]
    if not between:
        raise ValueError("Targets and replacements are not connected!")
    _, info = copy_with_input_replacements(between, replaced)
    found = [info.transformed(t) or replaced.get(t, t) for t in targets]
    return found[0] if single else found


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Let ops that read ts1 read ts0; how many inputs were changed."""
    allowed = None if can_modify is None else set(make_list_of_op(can_modify))
    forbidden = set() if cannot_modify is None else set(make_list_of_op(cannot_modify))
    count = 0
    for new, old in zip(make_list_of_t(ts0), make_list_of_t(ts1), strict=True):
        for op in list(old._consumers):
            if (allowed is not None and op not in allowed) or op in forbidden:
                continue
            for i, t in enumerate(op.inputs):
                if t is old:
                    op._update_input(i, new)
                    count += 1
    return count


def reroute_inputs(sgv0: Any, sgv1: Any) -> Any:
    """Let the second ops read what the first read."""
    reroute_ts(sgv0.inputs, sgv1.inputs, can_modify=sgv1.ops)
    return sgv0, sgv1


def add_control_inputs(op: Operation, cops: Any) -> None:
    """Let an op wait for others."""
    op._add_control_inputs(make_list_of_op(cops))
