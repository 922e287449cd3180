"""Relevance propagation written out with loops: what tests of gg.rules.relevance compare with.

Without stabilisers. Each function takes what a layer read and the relevance of what it made, and
returns the relevance of what it read, and what its bias keeps.
"""

import numpy as np


def dense(x, w, b, r):
    """z = x @ w + b for one row: R_j = sum_k x_j w_jk R_k / z_k."""
    found, kept = np.zeros_like(x), 0.0
    for k in range(w.shape[1]):
        z = sum(x[j] * w[j, k] for j in range(len(x))) + b[k]
        for j in range(len(x)):
            found[j] += x[j] * w[j, k] * r[k] / z
        kept += b[k] * r[k] / z
    return found, kept


def rows(x, w, b, r):
    """dense, for each row."""
    pairs = [dense(x[i], w, b, r[i]) for i in range(len(x))]
    return np.array([p[0] for p in pairs]), sum(p[1] for p in pairs)


def conv(x, w, b, r):
    """z = the valid convolution of an image (H, W, C) with (h, w, C, K), plus b."""
    found, kept = np.zeros_like(x), 0.0
    h, v = w.shape[:2]
    for i in range(r.shape[0]):
        for j in range(r.shape[1]):
            for k in range(r.shape[2]):
                parts = x[i : i + h, j : j + v] * w[..., k]
                z = parts.sum() + b[k]
                found[i : i + h, j : j + v] += parts * r[i, j, k] / z
                kept += b[k] * r[i, j, k] / z
    return found, kept


def pool(x, r, most):
    """2 x 2 pooling of an image (H, W, C): the largest takes all, or each its part of the mean."""
    found = np.zeros_like(x)
    for i in range(r.shape[0]):
        for j in range(r.shape[1]):
            for k in range(r.shape[2]):
                window = x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2, k]
                share = window == window.max() if most else window / window.sum()
                found[2 * i : 2 * i + 2, 2 * j : 2 * j + 2, k] += share * r[i, j, k]
    return found


def affine(x, scale, offset, r):
    """z = x * scale + offset, element by element."""
    z = x * scale + offset
    return x * scale * r / z, (np.broadcast_to(offset, z.shape) * r / z).sum()


def plus(x, y, r):
    """z = x + y: a residual connection."""
    return x * r / (x + y), y * r / (x + y)


def layer_norm(x, scale, offset, epsilon, r):
    """(x - mean) / s * scale + offset, with s as a constant, for each row."""
    found, kept = np.zeros_like(x), 0.0
    n = x.shape[1]
    for i in range(len(x)):
        centred = x[i] - x[i].mean()
        s = np.sqrt((centred**2).mean() + epsilon)
        inner, bias = affine(centred, scale / s, offset, r[i])
        kept += bias
        for k in range(n):
            for j in range(n):
                found[i, j] += x[i, j] * ((j == k) - 1 / n) * inner[k] / centred[k]
    return found, kept


def heads_mixed(a, v, r):
    """z = a @ v for each head, with the attention weights a (heads, T, T) as constants."""
    found = np.zeros_like(v)
    for h in range(a.shape[0]):
        for i in range(a.shape[1]):
            for d in range(v.shape[2]):
                z = sum(a[h, i, j] * v[h, j, d] for j in range(a.shape[2]))
                for j in range(a.shape[2]):
                    found[h, j, d] += a[h, i, j] * v[h, j, d] * r[h, i, d] / z
    return found
