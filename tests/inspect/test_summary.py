"""Counts by op, scope and region; and the operations of every op."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.inspect.scene.flops import flops_of
from graphgrad.ir.op import OP_TYPES, Op

from ..each import together
from .seeing import HOSTILE, hostile, network


def flops(build, *shapes):
    with gg.Graph():
        xs = [gg.placeholder(shape, name=f"x{i}") for i, shape in enumerate(shapes)]
        return flops_of(build(*xs).node, lambda d: d)


def test_operations_by_hand():
    assert flops(lambda x, y: x @ y, (2, 3), (3, 5)) == 2 * 2 * 3 * 5
    assert flops(lambda x, y: x @ y, (7, 2, 3), (3, 5)) == 7 * 2 * 2 * 3 * 5
    assert flops(lambda x, y: gg.einsum("ab,bc->ac", x, y), (2, 3), (3, 5)) == 2 * 2 * 3 * 5
    assert flops(gg.exp, (4, 5)) == 20
    assert flops(lambda x: gg.sum(x, axis=0), (4, 5)) == 20
    assert flops(lambda x: gg.reshape(x, (20,)), (4, 5)) == 0
    image, filters = (2, 8, 8, 3), (3, 3, 3, 16)
    conv = flops(lambda x, w: gg.nn.conv(x, w, padding="SAME"), image, filters)
    assert conv == 2 * (2 * 8 * 8 * 16) * (3 * 3 * 3)
    assert flops(lambda x: gg.nn.max_pool(x, 2), image) == 4 * 2 * 4 * 4 * 3


def test_the_gradient_of_a_convolution_costs_what_it_does():
    with gg.Graph() as g:
        x = gg.placeholder((2, 8, 8, 3), name="x")
        w = gg.placeholder((3, 3, 3, 16), name="w")
        gg.gradients(gg.sum(gg.nn.conv(x, w, padding="SAME")), [x, w])
    found = {n.type: flops_of(n, lambda d: d) for n in g.nodes if n.type.startswith("Conv2D")}
    assert len(found) == 3
    assert len(set(found.values())) == 1


FOREIGN = {"PyFunction", "JaxFunction", "TorchCall", "OnnxOperator"}
"""Code that is not of this library; nobody knows what it costs."""


def test_every_op_type_says_what_it_costs():
    def says(cls):
        return cls.flops is not Op.flops or cls.flop_free or cls.memory.view or cls.elementwise

    own = {name: cls for name, cls in OP_TYPES.items() if cls.__module__.startswith("graphgrad.")}
    unknown = {name for name, cls in own.items() if not says(cls)}
    assert unknown <= FOREIGN | {"Cond", "Scan", "While", "Fused", "ConvolvedLoop", "Default"}


@together([(name,) for name in OP_TYPES])
def test_the_cost_of_every_sample_is_a_number(name):
    for op, arrays in OP_TYPES[name].samples(np.random.default_rng(0)):
        with gg.Graph():
            xs = [gg.placeholder(np.shape(a), np.asarray(a).dtype) for a in arrays]
            node = gg.ir.build.build(op, tuple(xs))
        count = flops_of(node, lambda d: 1 if d is None else d)
        assert name in FOREIGN or (isinstance(count, int) and count >= 0)


def test_bodies_count_together():
    with gg.Graph():
        x = gg.placeholder((10,), name="x")
        y = gg.cond(gg.sum(x) > 0, lambda: gg.exp(x), lambda: gg.exp(gg.tanh(x)))
    assert flops_of(y.node, lambda d: d) == 30


def test_parts_scopes_and_regions():
    found = gg.summary(network(), {"batch": 8})
    assert found.total.exact
    assert found.total.parameters == 32
    assert found.columns["forward"].nodes + found.columns["backward"].nodes == found.total.nodes
    assert found.ops["MatMul"].flops == found.ops["MatMul"].nodes * 2 * 8 * 4 * 4
    assert next(iter(found.ops)) == "MatMul"
    assert set(found.scopes) == {"layer0", "layer1", "loss"}
    (title,) = found.regions
    assert title.startswith('override "ste" #0')
    (rule,) = found.rules
    assert found.rules[rule].nodes == 5
    assert sum(c.flops for c in found.ops.values()) == found.total.flops


def test_scopes_include_inner_ones():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.name_scope("a"), gg.name_scope("b"):
            y = gg.exp(x)
    found = gg.summary(y)
    assert found.scopes["a"].nodes == found.scopes["a/b"].nodes == 1


def test_unknown_lengths_are_said():
    found = gg.summary(network())
    assert not found.total.exact
    assert ">=" in str(found)
    assert ">=" not in str(gg.summary(network(), {None: 8}))


def test_bytes_are_of_what_is_written():
    with gg.Graph():
        x = gg.placeholder((10,), "float32", name="x")
        y = gg.reshape(gg.exp(x), (2, 5))
    assert gg.summary(y).total.bytes == 40


def test_what_is_not_known_is_said():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        y = gg.py_function(lambda a: a, [x], [((3,), "float64")])
    found = gg.summary(y)
    assert found.unknown == ("PyFunction",)
    assert "operations not known: PyFunction" in str(found)
    assert not found.total.exact


def test_as_text_and_as_dict():
    found = gg.summary(network())
    said = found.to_dict()
    assert said["total"]["nodes"] == found.total.nodes
    assert {"columns", "ops", "scopes", "regions", "rules", "unknown", "title", "total"} == set(
        said
    )
    text = str(found)
    assert text.splitlines()[0] == "network"
    assert "by op type" in text
    assert "by spliced rule" in text


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_on_their_row(name):
    text = str(gg.summary(hostile(name)))
    assert all(c.isprintable() for c in text.replace("\n", ""))
