"""The gradient of relu reads its output: nothing else changes."""

from collections import Counter

import numpy as np

import graphgrad as gg
from graphgrad.ops.base import apply as node
from graphgrad.ops.nn.activations import RELU_GRAD
from graphgrad.optimise.passes.relu import ReluGrads
from graphgrad.optimise.pipeline import optimise
from graphgrad.optimise.rewrite import settle

from .helpers import check_bits, program, verified


def told(p):
    fired = Counter()
    return verified(settle(p, ReluGrads(fired))), fired


def test_the_gradient_reads_the_output():
    p = program(lambda x, dy: [gg.nn.relu(x), node(RELU_GRAD, dy, x)], x=(9,), dy=(9,))
    after, fired = told(p)
    assert fired == {"relu_grad_of_output": 1}
    relu, grad = after.nodes
    assert grad.inputs[1] is relu.outputs[0]
    check_bits(p, after, np.random.default_rng(0))


def test_without_the_output_it_stays():
    p = program(lambda x, dy: [gg.nn.relu(-x), node(RELU_GRAD, dy, x)], x=(9,), dy=(9,))
    after, fired = told(p)
    assert after is p
    assert not fired


def test_in_a_network_no_sum_is_kept_for_the_way_back():
    def build(x, w, b):
        h = gg.nn.relu(x @ w + b)
        return gg.gradients(gg.sum(h * h), [w, b])

    after, _ = optimise(program(build, x=(4, 3), w=(3, 2), b=(2,)), verify=True)
    (grad,) = [n for n in after.nodes if n.type == "ReluGrad"]
    assert grad.inputs[1].node.type == "Relu"
