"""One rule for all gradients of a model that somebody else wrote: clipped by their common norm.

The parameters become a site of tensors: its rule gets all their gradients at once, nothing is built
and no layer knows of it. It is in the graph, so it is in what is exported, and under second order.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

torch = import_module("torch") if find_spec("torch") else None


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def clip(graph):
    graph.mark(gg.select.variables(), gg.rules.clip_global_norm(0.5), together=True)


def slopes(net, x):
    net.zero_grad()
    net(x).square().sum().backward()
    return [p.grad.clone() for p in net.parameters()]


if torch is None:
    w, b = gg.variable(3.0, name="w"), gg.variable(4.0, name="b")
    loss = w * w / 2 + b * b / 2
    clip(loss.graph)
    found = gg.evaluate(gg.gradients(loss, [w, b]))
    print("gradients of length 5 became", found)
    np.testing.assert_allclose(found, [0.3, 0.4])
else:
    net, x = network(), torch.ones(5, 3)
    found = slopes(gg.interop.retrofit(net, clip), x)
    plain = slopes(net, x)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)  # what one does after each backward
    for dp, p in zip(found, net.parameters(), strict=True):
        torch.testing.assert_close(dp, p.grad, atol=1e-5, rtol=1e-4)
    lengths = [float(torch.cat([d.flatten() for d in ds]).norm()) for ds in (plain, found)]
    print("gradients of length {:.3f} became {:.3f}".format(*lengths))
