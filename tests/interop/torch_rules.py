"""Rules as one writes them into an edited copy of a model of torch, without graphgrad."""

import pytest

torch = pytest.importorskip("torch")


class Guided(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.relu(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return torch.where((x > 0) & (dy > 0), dy, 0.0)
