"""A layer of Keras whose gradient is a rule: rounding, straight-through in the backward pass.

`to_torch` gives a module of torch. On the torch backend of Keras a layer calls it as it calls any
operation, in `fit` too, and its weights are the layer's own.
"""

import os
from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

os.environ.setdefault("KERAS_BACKEND", "torch")
THERE = find_spec("keras") and find_spec("torch") and os.environ["KERAS_BACKEND"] == "torch"
keras = import_module("keras") if THERE else None


def rounded_product(rule):
    """(x, w) -> x @ round(2 w) / 2, with a rule on the rounding."""
    with gg.Graph():
        x = gg.placeholder(("N", "K"), "float32", name="x")
        w = gg.placeholder(("K", "M"), "float32", name="w")
        with gg.override_gradient(rule):
            rounded = gg.round(2.0 * w) / 2.0
        return gg.interop.to_torch(gg.compile([x, w], x @ rounded))


def layer(rule):
    product = rounded_product(rule)

    class Rounded(keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1], 1), initializer="glorot_uniform", name="w")

        def compute_output_shape(self, shape):
            return (*shape[:-1], 1)

        def call(self, x):
            return product(x, self.w.value)

    return Rounded()


def trained(rule):
    """The losses of a model with the layer."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Dense(8, activation="tanh"), layer(rule)])
    model.compile(keras.optimizers.Adam(0.03), "mse")
    x = np.random.default_rng(0).normal(size=(128, 4)).astype("float32")
    y = np.tanh(x[:, :1] * x[:, 1:2])
    start = [w.copy() for w in (model(x), model.layers[1].get_weights())[1]]
    losses = model.fit(x, y, epochs=30, verbose=0).history["loss"]
    return losses, not np.array_equal(start[0], model.layers[1].get_weights()[0])


if keras is None:
    print("Keras with its torch backend is not installed: pip install keras torch")
else:
    losses, moved = trained(gg.rules.ste())
    print(f"straight-through: loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    assert losses[-1] < 0.7 * losses[0]
    assert moved
    losses, moved = trained(lambda site, dy: [d * 0.0 for d in site.default(dy)])
    print(f"by its own gradient, which is zero: {losses[0]:.3f} -> {losses[-1]:.3f}, weights stay")
    assert not moved
