"""A backward pass that keeps only the largest gradients of each example, and drops the others."""

import numpy as np

import graphgrad as gg


def sparse_matmul(k):
    """A matrix product; backward, of the gradients of each row the k largest."""

    @gg.custom_gradient
    def matmul(x, w):
        def grad(dy):
            _, places = gg.topk(gg.abs(dy), k)
            kept = dy * gg.sum(gg.nn.one_hot(places, w.shape[1]), axis=1)
            return kept @ w.T, x.T @ kept

        return x @ w, grad

    return matmul


KEPT = 2
rng = np.random.default_rng(0)
data, weights, seed = rng.normal(size=(4, 3)), rng.normal(size=(3, 6)), rng.normal(size=(4, 6))

with gg.Graph():
    x, w = gg.placeholder((4, 3), name="x"), gg.placeholder((3, 6), name="w")
    y = sparse_matmul(KEPT)(x, w)
    dx, dw = gg.gradients(y, [x, w], grad_ys=gg.constant(seed))
    found_dx, found_dw = gg.compile([x, w], [dx, dw])(data, weights)

threshold = np.sort(np.abs(seed), axis=1)[:, -KEPT][:, None]
kept = np.where(np.abs(seed) >= threshold, seed, 0)
print("gradients kept:", int((kept != 0).sum()), "of", kept.size)
np.testing.assert_allclose(found_dx, kept @ weights.T)
np.testing.assert_allclose(found_dw, data.T @ kept)
