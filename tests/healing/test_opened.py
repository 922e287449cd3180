"""Programs of JAX and torch, opened and healed."""

import numpy as np
import pytest

import graphgrad as gg

WANT = ["log1pexp", "norm", "logsumexp"]


def test_a_program_of_jax_is_healed():
    jnp = pytest.importorskip("jax").numpy

    def f(x):
        softplus = jnp.sum(jnp.log(1 + jnp.exp(x)))
        return softplus + jnp.sqrt(jnp.sum(x * x)) - jnp.log(jnp.sum(jnp.exp(x)))

    x = gg.placeholder((3,), dtype="float32")
    made = gg.heal(gg.interop.open_jax(f, x))
    assert [site.name for site in made.sites] == WANT
    assert np.isfinite(gg.compile(x, made.ys)(np.full(3, 95.0, np.float32)))


def test_a_module_of_torch_is_healed():
    torch = pytest.importorskip("torch")

    class Loss(torch.nn.Module):
        def forward(self, x):
            softplus = torch.log(1 + torch.exp(x)).sum()
            return softplus + torch.sqrt((x * x).sum()) - torch.log(torch.exp(x).sum())

    x = gg.placeholder((3,), dtype="float32")
    made = gg.heal(gg.interop.open_torch(Loss(), x))
    assert [site.name for site in made.sites] == WANT
    assert np.isfinite(gg.compile(x, made.ys)(np.full(3, 95.0, np.float32)))
