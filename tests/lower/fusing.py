"""Groups of nodes by what may be in them, for tests of groups and of what runs them."""

import numpy as np

from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.lower.fused import fuse_loops
from graphgrad.lower.loop_ir import Loop


def same_values(plain, other):
    """Both programs compute the same bits from random inputs."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=t.shape).astype(t.dtype) for t in plain.inputs]
    kernels = Kernels(np)
    found, expected = (one_call_per_node(p, kernels)(*arrays) for p in (other, plain))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def fuse(program, fusible, reducible, least=2, free=(), **options):
    """Groups of nodes that are element-wise, and of reductions of what they make.

    free: types of nodes that groups have copies of.
    """

    def loop_of(node):
        of = node.outputs[0] if fusible(node) else node.inputs[0] if reducible(node) else None
        if of is None or not of.type.static or not node.outputs[0].type.static:
            return None
        return Loop(of.shape, of.shape, ends=of is not node.outputs[0])

    return fuse_loops(program, loop_of, lambda n: n.type in free, least=least, **options)
