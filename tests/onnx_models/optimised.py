"""Small models of PyTorch that onnxruntime's optimisers know."""

import math

import numpy as np
import torch

nn = torch.nn


class Layer(nn.Module):
    """A block of BERT."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.before, self.after = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.heads = heads

    def split(self, x):
        return x.view(*x.shape[:-1], self.heads, x.shape[-1] // self.heads).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        scores = scores if mask is None else scores + mask
        seen = torch.matmul(torch.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous()
        h = self.before(self.o(seen.view(*seen.shape[:-2], x.shape[-1])) + x)
        return self.after(self.narrow(nn.functional.gelu(self.wide(h))) + h)


class Bert(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.e, self.p, self.t = (nn.Embedding(n, width) for n in (20, 12, 2))
        self.n, self.c = nn.LayerNorm(width, 1e-12), nn.Linear(width, 3)
        self.layers = nn.ModuleList([Layer(width) for _ in range(2)])

    def forward(self, ids, kinds, mask):
        hidden = (1.0 - mask[:, None, None, :].to(torch.float32)) * -10000.0
        places = torch.arange(ids.shape[1]).unsqueeze(0).expand_as(ids)
        x = self.n(self.e(ids) + self.p(places) + self.t(kinds))
        for layer in self.layers:
            x = layer(x, hidden)
        return self.c(x)[:, 0]


class Vit(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.patches, self.c = nn.Conv2d(3, width, 4, 4), nn.Linear(width, 3)
        self.token, self.places = (nn.Parameter(torch.randn(1, n, width)) for n in (1, 5))
        self.layers = nn.ModuleList([Layer(width) for _ in range(2)])

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        for layer in self.layers:
            x = layer(x, None)
        return self.c(x[:, 0])


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.LeakyReLU(0.2)),
        *(nn.Conv2d(5, 5, 3, padding=1), nn.Hardsigmoid(), nn.Conv2d(5, 6, 1), nn.ReLU6()),
        *(nn.Flatten(), nn.Linear(96, 7), nn.ReLU(), nn.Linear(7, 3), nn.Sigmoid()),
    )


TEXT = {name: {0: "N", 1: "T"} for name in ("ids", "kinds", "mask")}
FUSED = {
    "bert": (Bert, TEXT),
    "bert_fixed": (Bert, {}),
    "vit": (Vit, {"x": {0: "N"}}),
    "cnn": (cnn, {"x": {0: "N"}}),
}
"""{name: (what makes it, open axes)}: the output is y."""


def feeds_of(name):
    """{input: array}."""
    rng = np.random.default_rng(0)
    if name.startswith("bert"):
        mask = (np.arange(6) < np.array([[6], [4]])).astype("int64")
        return {
            "ids": rng.integers(0, 20, (2, 6)),
            "kinds": rng.integers(0, 2, (2, 6)),
            "mask": mask,
        }
    return {"x": rng.normal(size=(2, 3, 8, 8)).astype("float32")}
