"""A rule on a module that somebody else wrote: guided backpropagation, in PyTorch.

`retrofit` opens the module, so that each of its relus is a node that can be marked, and gives back
a module with the same parameters: same numbers, other gradients. The network is not touched.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

torch = import_module("torch") if find_spec("torch") else None


def network():
    """A classifier as its author has it."""
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def guided(graph):
    graph.mark(gg.select.op("Relu"), gg.rules.guided())


def saliency(net, image):
    x = image.clone().requires_grad_()
    net(x)[0, 3].backward()
    return x.grad


def edited():
    """What one does without graphgrad: a copy of the model, in which each relu is replaced."""

    class Guided(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.relu(x)

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return torch.where((x > 0) & (dy > 0), dy, 0.0)

    net = network().eval()
    for layer in net:
        if isinstance(layer, torch.nn.ReLU):
            layer.forward = Guided.apply
    return net


if torch is None:
    print("PyTorch is not installed: pip install torch")
else:
    net = network().eval()
    image = torch.tensor(np.random.default_rng(0).normal(size=(1, 1, 8, 8)), dtype=torch.float32)
    marked = gg.interop.retrofit(net, guided)
    torch.testing.assert_close(marked(image), net(image))
    assert marked[0].weight is net[0].weight

    plain, map_ = saliency(net, image), saliency(marked, image)
    print(f"guided and plain saliency differ by up to {(map_ - plain).abs().max():.3f}")
    assert (map_ - plain).abs().max() > 1e-3
    torch.testing.assert_close(map_, saliency(edited(), image))
    print("the same as in an edited copy of the model")
