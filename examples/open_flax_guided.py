"""A rule on a model that somebody else wrote: guided backpropagation through a network of flax.

`retrofit` opens the function, so that each of its relus is a node that can be marked, and gives it
back as a function of JAX: same numbers, other gradients. The network is not touched.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

THERE = find_spec("jax") and find_spec("flax")
jax = import_module("jax") if THERE else None


def network():
    """A classifier as its author has it, and its parameters."""
    nn = import_module("flax.linen")

    class Classifier(nn.Module):
        @nn.compact
        def __call__(self, x):
            for features in (8, 16):
                x = nn.relu(nn.Conv(features, (3, 3))(x))
                x = nn.avg_pool(x, (2, 2), (2, 2))
            return nn.Dense(10)(x.reshape(len(x), -1))

    model = Classifier()
    return model, model.init(jax.random.key(0), jax.numpy.zeros((1, 8, 8, 1)))


def guided(graph):
    graph.mark(gg.select.op("Relu"), gg.rules.guided())


def by_hand(z, dy):
    """What guided backpropagation lets through a relu of z."""
    return jax.numpy.where((z > 0) & (dy > 0), dy, 0.0)


def saliency(predict, params, image):
    return jax.grad(lambda x: predict(params, x)[0, 3])(image)


if jax is None:
    print("JAX and flax are not installed: pip install flax")
else:
    model, params = network()
    image = np.random.default_rng(0).normal(size=(1, 8, 8, 1)).astype("float32")
    marked = gg.interop.retrofit(model.apply, guided)
    np.testing.assert_allclose(marked(params, image), model.apply(params, image), atol=1e-5)

    plain, map_ = saliency(model.apply, params, image), saliency(marked, params, image)
    print(f"guided and plain saliency differ by up to {np.abs(map_ - plain).max():.3f}")
    assert np.abs(map_ - plain).max() > 1e-3
    relu = jax.custom_vjp(jax.nn.relu)
    relu.defvjp(lambda z: (jax.nn.relu(z), z), lambda z, dy: (by_hand(z, dy),))
    flax_nn = import_module("flax.linen")
    original, flax_nn.relu = flax_nn.relu, relu  # what one does without graphgrad: edit the model
    edited = saliency(network()[0].apply, params, image)
    flax_nn.relu = original
    np.testing.assert_allclose(map_, edited, atol=1e-5)
    print("the same as in an edited copy of the model")
