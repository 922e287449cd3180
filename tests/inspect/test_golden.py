"""The DOT text of some graphs, byte for byte. `python -m tests.inspect.test_golden` writes it anew.

Look at what changed before you keep it: these are the pictures that people see.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import graphgrad as gg

from .seeing import log1pexp, marked, nested, network, parsed

GOLDEN = Path(__file__).parent / "golden"


def compared():
    loss, dx, *_ = network()
    with loss.graph:
        plain = gg.gradients(loss, loss.graph.tensor("x:0"), overrides="none")
    return gg.graph_diff([loss, plain], [loss, dx])


def coloured():
    tensors = network()
    ops = [n for n in tensors[0].graph.nodes if n.inputs]
    values = {n: float(i - 4) for i, n in enumerate(ops)}
    return gg.to_dot(tensors, overlay=gg.Overlay(values, "place"), failed=ops[2])


PICTURES = {
    "marked": lambda: gg.to_dot(marked()[0]),
    "second_order": lambda: gg.to_dot(log1pexp(2)),
    "nested": lambda: gg.to_dot(nested()),
    "bypassed": lambda: gg.to_dot(network(), bypassed=True),
    "collapsed": lambda: gg.to_dot(network(), collapse=["layer0", "loss"]),
    "diff": lambda: gg.to_dot(compared()),
    "overlay": coloured,
    "network.mmd": lambda: gg.to_mermaid(network()),
    "network.txt": lambda: gg.graph_text(network()),
    "summary.txt": lambda: str(gg.summary(network(), {"batch": 8})) + "\n",
}


def path_of(name):
    return GOLDEN / (name if "." in name else f"{name}.dot")


@pytest.mark.parametrize("name", PICTURES)
def test_the_text_is_what_it_was(name):
    found = PICTURES[name]()
    assert found == path_of(name).read_text(), "python -m tests.inspect.test_golden, then look"


@pytest.mark.ci
@pytest.mark.parametrize("name", [name for name in PICTURES if "." not in name])
def test_the_text_is_one_that_others_read(name):
    assert parsed(path_of(name).read_text()) is not None


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, picture in PICTURES.items():
        path_of(name).write_text(picture())
