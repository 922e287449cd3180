"""Gradient reversal: identity forward, -strength * dy backward.

Features learn to solve a task and, through the reversal, to be of no use for telling two domains
apart. The strength is a tensor, so that it may follow a schedule.
"""

import numpy as np

import graphgrad as gg


def reversed_gradient(x, strength):
    with gg.override_gradient(lambda site, dy: -strength * dy):
        return gg.identity(x)


with gg.Graph():
    strength = gg.placeholder((), name="strength")
    x = gg.placeholder(("N", 3), name="x")
    w = gg.variable(np.eye(3), name="w")
    features = gg.tanh(x @ w)
    task = gg.sum(features**2)
    domain = gg.sum(gg.exp(reversed_gradient(features, strength)))
    of_task, of_domain, of_both = [gg.gradients(y, w) for y in (task, domain, task + domain)]
    plain = gg.gradients(domain, w, overrides="none")
    f = gg.compile([x, strength], [of_task, of_domain, of_both, plain])

data = np.random.default_rng(0).normal(size=(5, 3))
for k in (0.0, 0.5, 1.0):
    of_task, of_domain, of_both, plain = f(data, k)
    print(f"strength {k}: norm of the domain's gradient {np.linalg.norm(of_domain):.4f}")
    np.testing.assert_allclose(of_domain, -k * plain)
    np.testing.assert_allclose(of_both, of_task - k * plain)
