"""JumpReLU in a sparse autoencoder that somebody else wrote, in PyTorch: thresholds that learn.

A feature is on where it is above its threshold. Torch has no gradient for a threshold. `retrofit`
opens the module, the comparison and its product become one step, whose rule has one.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

torch = import_module("torch") if find_spec("torch") else None
BANDWIDTH = 0.2


def autoencoder():
    """Somebody's sparse autoencoder."""

    class Sparse(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = torch.nn.Linear(6, 24)
            self.decoder = torch.nn.Linear(24, 6)
            self.threshold = torch.nn.Parameter(torch.full((24,), 0.05))

        def forward(self, x):
            features = self.encoder(x)
            kept = features * (features > self.threshold)
            return self.decoder(kept), kept

    torch.manual_seed(0)
    return Sparse()


def jumps(graph):
    """[Rajamanoharan et al. 2024, "Jumping ahead: improving reconstruction with JumpReLU SAEs"]."""
    form = ("Multiply", "?x", ("Cast", ("Greater", "?x", "?threshold")))
    jump = gg.rules.surrogate(lambda x, t: gg.rules.jump_relu(x, t, bandwidth=BANDWIDTH))
    graph.mark(gg.select.pattern(form), jump)


def trained(model):
    """Of 150 steps: the last error, how many features are on, and how far thresholds moved."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(12, 6))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    start = model.threshold.detach().clone()
    for _ in range(150):
        parts = rng.uniform(size=(64, 12)) * (rng.uniform(size=(64, 12)) < 0.15)
        x = torch.tensor(parts @ directions, dtype=torch.float32)
        y, kept = model(x)
        error = ((y - x) ** 2).mean()
        optimiser.zero_grad()
        (error + 0.02 * kept.clamp(min=0.0).sum(1).mean()).backward()
        optimiser.step()
    moved = (model.threshold.detach() - start).abs().max()
    return float(error.detach()), float((kept > 0).float().sum(1).mean()), float(moved)


if torch is None:
    print("PyTorch is not installed: pip install torch")
else:
    x = torch.ones(64, 6)
    model = autoencoder()
    marked = gg.interop.retrofit(autoencoder(), jumps)
    torch.testing.assert_close(marked(x)[0], model(x)[0])
    for name, net in (("as it is", model), ("JumpReLU", marked)):
        error, on, moved = trained(net)
        print(f"{name}: error {error:.3f}, {on:.1f} features on, thresholds moved by {moved:.3f}")
        assert (moved > 0.01) == (net is marked)
