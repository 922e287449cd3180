"""PyTorch and graphs in one training: layers with rules in a torch model, and that in a graph.

A model of torch is trained through two layers of graphgrad: one rounds its weights, which is
straight-through in the backward pass; one reverses the gradient. Then the trained model is a node
of a graph, with a rule around it that lets through only what speaks for the score.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

torch = import_module("torch") if find_spec("torch") else None


def rounded_layer():
    """y = x @ round(w), whose weights are trained as if they were not rounded."""
    with gg.Graph():
        x = gg.placeholder(("N", 8), "float32", name="x")
        w = gg.variable(torch.randn(8, 4).numpy(), name="w")
        with gg.override_gradient(gg.rules.ste()):
            rounded = gg.round(2.0 * w) / 2.0
        return gg.interop.to_torch(gg.compile(x, x @ rounded))


def reversal(strength):
    """y = x, dx = -strength * dy."""
    with gg.Graph():
        x = gg.placeholder(("N", 4), "float32")
        with gg.override_gradient(lambda site, dy: -strength * dy):
            y = gg.identity(x)
        return gg.interop.to_torch(gg.compile(x, y))


def train(x, wanted, side):
    nn, f = torch.nn, torch.nn.functional
    features = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), rounded_layer())
    task, domain = nn.Linear(4, 1), nn.Sequential(reversal(0.3), nn.Linear(4, 1))
    parts = nn.ModuleList([features, task, domain])
    optimiser = torch.optim.Adam(parts.parameters(), 0.03)
    losses = []
    for _ in range(60):
        h = features(x)
        loss = f.mse_loss(task(h), wanted)
        told = f.binary_cross_entropy_with_logits(domain(h), side)
        optimiser.zero_grad()
        (loss + told).backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    print(f"loss of the task {losses[0]:.3f} -> {losses[-1]:.3f}")
    assert losses[-1] < 0.8 * losses[0]
    return nn.Sequential(features, task).requires_grad_(False).eval()


def explain(model, x):
    with gg.Graph():
        image = gg.placeholder(("N", 6), "float32", name="image")
        with gg.override_gradient(lambda site, dy: [gg.nn.relu(d) for d in site.default(dy)]):
            score = gg.interop.from_torch(model, gg.tanh(image), parameters="constants")
        plain = gg.gradients(score, image, overrides="none")
        look = gg.compile(image, [score, gg.gradients(score, image), plain])
    score, guided, plain = look(x.numpy())
    np.testing.assert_allclose(score, model(torch.tanh(x)).numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(guided, np.maximum(plain, 0.0), rtol=1e-5)
    print(f"{np.mean(guided > 0):.0%} of the gradient speaks for the score, the rest is cut off")


if torch is None:
    print("PyTorch is not installed: pip install 'graphgrad[torch]'")
else:
    torch.manual_seed(0)
    x = torch.randn(64, 6)
    explain(train(x, (x[:, :1] * x[:, 1:2]).tanh(), (x[:, 2:3] > 0).float()), x)
