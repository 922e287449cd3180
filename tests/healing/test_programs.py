"""Whole programs, written naively: healed they are the stable ones; the naive ones are NaN."""

import numpy as np
import pytest

import graphgrad as gg

rng = np.random.default_rng(0)
MASK = np.tril(np.ones((4, 4)))
ROOT3 = 3**0.5


def squares(x, mu):
    return gg.sum((x[:, None, :] - mu[None, :, :]) ** 2, -1)


def mixture(x, mu, logits):
    w = gg.exp(logits) / gg.sum(gg.exp(logits))
    return -gg.sum(gg.log(gg.sum(w * gg.exp(-squares(x, mu) / 2), -1)))


def stable_mixture(x, mu, logits):
    weights = gg.nn.log_softmax(logits)
    return -gg.sum(gg.special.logsumexp(weights - squares(x, mu) / 2, -1))


def autoencoder(logits, t, mean, spread):
    p = 1 / (1 + gg.exp(-logits))
    kl = -0.5 * gg.sum(1 + gg.log(gg.exp(spread)) - mean * mean - gg.exp(spread))
    return kl - gg.sum(t * gg.log(p) + (1 - t) * gg.log(1 - p))


def stable_autoencoder(logits, t, mean, spread):
    kl = -0.5 * gg.sum(1 + spread - mean * mean - gg.exp(spread))
    return kl + gg.sum(gg.nn.softplus(logits) - t * logits)


def scores(q, k):
    return gg.where(MASK > 0, q @ k.T / 8**0.5, -1e30)


def attention(q, k, v):
    e = gg.exp(scores(q, k))
    return gg.sum((e / gg.sum(e, -1, keepdims=True) @ v) ** 2)


def stable_attention(q, k, v):
    return gg.sum((gg.nn.softmax(scores(q, k)) @ v) ** 2)


def matern(x):
    d = gg.sqrt(gg.sum((x[:, None] - x[None]) ** 2, -1))
    return gg.sum((1 + ROOT3 * d) * gg.exp(-ROOT3 * d))


def stable_matern(x):
    d2 = gg.sum((x[:, None] - x[None]) ** 2, -1)
    d = gg.where(d2 > 0, gg.sqrt(gg.where(d2 > 0, d2, 1.0)), 0.0)
    return gg.sum((1 + ROOT3 * d) * gg.exp(-ROOT3 * d))


def filter_step(p, z):
    s = p + 1e-170 * np.eye(2)
    return gg.log(gg.linalg.det(s)) + gg.sum(z * (gg.linalg.inv(s) @ z))


def stable_filter_step(p, z):
    s = p + 1e-170 * np.eye(2)
    return gg.linalg.slogdet(s)[1] + gg.sum(z * gg.linalg.solve(s, z))


PROGRAMS = {
    "a Gaussian mixture": (
        mixture,
        stable_mixture,
        [50 * rng.normal(size=(20, 2)), 40 * rng.normal(size=(3, 2)), rng.normal(size=3)],
    ),
    "an autoencoder": (
        autoencoder,
        stable_autoencoder,
        [
            400 * rng.normal(size=(5, 4)),
            (rng.random((5, 4)) > 0.5) * 1.0,
            rng.normal(size=3),
            rng.normal(size=3),
        ],
    ),
    "attention": (
        attention,
        stable_attention,
        [40 * rng.normal(size=(4, 8)), 40 * rng.normal(size=(4, 8)), rng.normal(size=(4, 8))],
    ),
    "a Matern process": (matern, stable_matern, [rng.normal(size=(5, 2))]),
    "a Kalman filter": (
        filter_step,
        stable_filter_step,
        [1e-170 * np.array([[2.0, 0.1], [0.1, 1.0]]), np.array([1e-80, 2e-80])],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_healed_it_is_the_stable_program(name):
    naive, stable, arrays = PROGRAMS[name]
    with gg.Graph():
        xs = [gg.placeholder(a.shape) for a in arrays]
        y = naive(*xs)
        three = [y, gg.heal(y).ys, stable(*xs)]
        wanted = [[t, *gg.gradients(t, xs, unconnected="zero")] for t in three]
    with np.errstate(all="ignore"):
        before, healed, want = gg.compile(xs, wanted)(*arrays)
    assert not all(np.isfinite(a).all() for a in before)
    for a, b in zip(healed, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max())
