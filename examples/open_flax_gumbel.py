"""Straight-through Gumbel in a model of flax that somebody else wrote: choices that can be learned.

The router sends each row to one expert, by the largest of its scores and noise. Of an argmax there
is no gradient. `retrofit` opens the model, the choice is marked with the derivative of a softmax.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

THERE = find_spec("jax") and find_spec("flax")
jax = import_module("jax") if THERE else None
TEMPERATURE = 0.5


def router(choose):
    """A model as its author has it, and its parameters; choose: what makes one-hot rows."""
    nn = import_module("flax.linen")

    class Router(nn.Module):
        @nn.compact
        def __call__(self, x, noise):
            chosen = choose(nn.Dense(4)(x) + noise)
            experts = self.param("experts", nn.initializers.normal(1.0), (4, 2))
            return chosen @ experts

    model = Router()
    return model, model.init(jax.random.key(0), jax.numpy.zeros((1, 3)), 0.0)


def hard(scores):
    return jax.nn.one_hot(jax.numpy.argmax(scores, -1), scores.shape[-1])


def by_hand(scores):
    """What one does without graphgrad: edit the model."""
    soft = jax.nn.softmax(scores / TEMPERATURE)
    return hard(scores) + soft - jax.lax.stop_gradient(soft)


def straight_through(graph):
    one_hot = ("Cast", ("Equal", ("Reshape", ("Cast", ("ArgMax", "?scores"))), None))
    softmax = gg.rules.surrogate(lambda scores, *_: gg.nn.softmax(scores / TEMPERATURE))
    graph.mark(gg.select.pattern(one_hot), softmax)


def slopes(model, params, *data):
    def loss(params):
        return jax.numpy.sum(model(params, *data) ** 2)

    return jax.grad(loss)(params)["params"]


if jax is None:
    print("JAX and flax are not installed: pip install flax")
else:
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(8, 3)), rng.gumbel(size=(8, 4))
    data = [x.astype("float32"), noise.astype("float32")]
    model, params = router(hard)
    marked = gg.interop.retrofit(model.apply, straight_through)
    np.testing.assert_allclose(marked(params, *data), model.apply(params, *data), atol=1e-6)

    plain, found = slopes(model.apply, params, *data), slopes(marked, params, *data)
    print(f"slopes of the router: {np.abs(plain['Dense_0']['kernel']).max():.3f} as it is", end="")
    print(f", up to {np.abs(found['Dense_0']['kernel']).max():.3f} straight through")
    assert not np.any(plain["Dense_0"]["kernel"])
    edited = slopes(router(by_hand)[0].apply, params, *data)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(edited), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    print("the same as in an edited copy of the model")
