"""A public function builds no node that nobody reads, whose output it does not return.

Such a node would be one more output of every region around it, and the region's rule would get a
gradient of it (S9). The examples of docstrings are the programs.
"""

import dataclasses
import doctest
import sys

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.node import Tensor
from tests.test_docstrings import FOUND, lacking

HOLDS = {
    "At": "keeps the tensor for the method that comes after [key]",
    "vmap": "the function of its example builds a loss, and reads its gradient alone",
}
"""Examples that build what nobody reads, and why that is right."""


def tensors_in(o):
    """The tensors in what a function returned."""
    if isinstance(o, Tensor):
        return {o}
    if isinstance(o, dict):
        parts = o.values()
    elif isinstance(o, list | tuple | set):
        parts = o
    elif dataclasses.is_dataclass(o) and hasattr(o, "__dict__"):
        parts = vars(o).values()
    else:
        return set()
    return set().union(*map(tensors_in, list(parts)))


def unread(test):
    """The nodes that an example's calls built, nobody reads and no call returned.

    Not those that a pass derives from others, whose unread parts a later pass drops.
    """
    returned = set()

    def note(frame, event, value):
        if event == "return" and any(
            f is not None and f.f_code.co_filename.startswith("<doctest")
            for f in (frame, frame.f_back)
        ):
            returned.update(tensors_in(value))

    gg.reset_default_graph()
    graph, failed, registered = gg.default_graph(), [], set(gg.registered_gradients())
    test.globs = {"gg": gg, "np": np}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    sys.setprofile(note)
    try:
        runner.run(test, out=failed.append, clear_globs=False)
    finally:
        sys.setprofile(None)
        for name in set(gg.registered_gradients()) - registered:
            gg.unregister_gradient(name)
    assert not failed
    read = {t for n in graph.nodes for t in n.inputs} | returned | tensors_in(test.globs)
    given = ("Placeholder", "Variable")
    kept = [n for n in graph.nodes if n.origin is None and n.op.type not in given]
    return [n.op.type for n in kept if not read.intersection(n.outputs)]


@pytest.mark.parametrize("module", sorted(FOUND))
def test_S09_a_function_builds_no_node_that_nobody_reads(module):
    if lacks := lacking(module):
        pytest.skip(f"no {lacks}")
    with np.printoptions(precision=8, suppress=False, threshold=1000, linewidth=75):
        found = {
            test.name: nodes
            for o in FOUND[module].values()
            for test in doctest.DocTestFinder().find(o)
            if test.examples and test.name not in HOLDS and (nodes := unread(test))
        }
    assert found == {}
