"""As much of `tf.contrib.graph_editor`, which TensorFlow 2 does not have, as records need.

Ops are copied with `Graph.create_op` and rewired with the private calls that it used itself.
"""


class Info:
    """What stands for what in a copy."""

    def __init__(self, ops):
        self._transformed_ops = ops

    def transformed(self, of):
        """The copy of an op or tensor."""
        if hasattr(of, "outputs"):
            return self._transformed_ops[of]
        return self._transformed_ops[of.op].outputs[of.value_index]


def sgv(ops):
    """A view of some ops: the ops, in the order of their birth."""
    ops = list(ops)
    order = {op: i for i, op in enumerate(ops[0].graph.get_operations())}
    return sorted(ops, key=order.__getitem__)


def copy_with_input_replacements(view, replacements):
    """Copies of ops, which read copies, replacements or what the ops read."""
    copies = {}

    def stands_for(t):
        if t in replacements:
            return replacements[t]
        return copies[t.op].outputs[t.value_index] if t.op in copies else t

    for op in view:
        copies[op] = op.graph.create_op(
            op.type,
            [stands_for(t) for t in op.inputs],
            [t.dtype.base_dtype for t in op.outputs],
            name=op.name,
            attrs=dict(op.node_def.attr),
        )
    return list(copies.values()), Info(copies)


def reroute_ts(new, old, can_modify):
    """Let ops that read old tensors read new ones."""
    stands = dict(zip(old, new))
    for op in can_modify:
        for i, t in enumerate(list(op.inputs)):
            if t in stands:
                op._update_input(i, stands[t])


def add_control_inputs(op, others):
    """Let an op wait for others."""
    op._add_control_inputs(list(others))


def get_backward_walk_ops(seeds, inclusive=True, within_ops=None, stop_at_ts=()):
    """All ops that lead to the seeds, not beyond some tensors."""
    stops = set(stop_at_ts)
    return _walk(
        seeds, inclusive, within_ops, lambda op: [t.op for t in op.inputs if t not in stops]
    )


def get_forward_walk_ops(seeds, inclusive=True, within_ops=None):
    """All ops that the seeds lead to."""
    return _walk(
        seeds, inclusive, within_ops, lambda op: [c for t in op.outputs for c in t.consumers()]
    )


def _walk(seeds, inclusive, within, following):
    seen, stack = [], list(seeds)
    while stack:
        op = stack.pop()
        if op not in seen and (within is None or op in within):
            seen.append(op)
            stack.extend(following(op))
    return seen if inclusive else [op for op in seen if op not in seeds]
