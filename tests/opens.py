"""A program whose ops have open lengths in their attributes, in bodies too, for what runs it."""

import numpy as np

import graphgrad as gg

LENGTHS = (1, 2, 5)


def placeholders():
    """Inputs with an open length, and one with arithmetic on it."""
    N = gg.Length("N")
    return [
        gg.placeholder((N, 3), name="x"),
        gg.placeholder((2 * N + 1,), name="v"),
        gg.placeholder((4,), name="rows"),
    ]


def arrays(n, seed=0):
    """What they are given where N is n."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, 3)), rng.normal(size=2 * n + 1), rng.normal(size=4)]


def moved(x, v):
    """Of ops that take lengths as such: made, filled, counted, reshaped, cut, padded."""
    N = x.shape[0]
    steps = gg.reshape(gg.arange(N), (N, 1)) * 0.5
    cut = gg.sum(x[: N - 1] * x[1:]) + gg.sum(v[N:] * v[: N + 1])
    return [
        gg.concat([gg.zeros((N, 2)), x * steps], axis=1),
        gg.reshape(gg.concat([x, gg.full((N + 1, 3), 2.0)]), (6 * N + 3,)) * v[:1],
        gg.broadcast_to(gg.mean(x), (N // 2 + 1, N % 2 + 1)),
        gg.sum(x * x) / N + cut,
    ]


def looped(x, rows):
    """Of the same in the bodies of a loop and of a branch."""
    N = x.shape[0]

    def step(carry, row):
        carry = carry + row * gg.ones((N, 3)) * x
        return carry, gg.sum(carry * gg.reshape(gg.arange(N), (N, 1))) / (N + 1)

    last, sums = gg.scan(step, gg.zeros((N, 3)), rows)
    larger = gg.size(x, 0) > 1
    chosen = gg.cond(larger, lambda: gg.sum(x * gg.full((N, 3), 2.0)), lambda: gg.sum(x) * N)
    return [last, sums, chosen]


def total(outputs):
    """A scalar of all of them."""
    return sum(gg.sum(y * y) for y in outputs)


def twice_half(x):
    """As long as x where that is even."""
    half = x[::2]
    return gg.concat([half, half])


EQUATED = {
    "add": lambda x: x + twice_half(x),
    "where": lambda x: gg.where(x > 0, x, 2 * twice_half(x)),
    "contraction": lambda x: gg.einsum("ij,ij->j", x, twice_half(x)),
    "broadcast_to": lambda x: gg.broadcast_to(x, twice_half(x).shape),
    "stack of products": lambda x: x[:, :, None] @ twice_half(x)[:, None, :],
    "scan": lambda x: gg.scan(lambda c, r: (c + x + twice_half(x), c), x, x[:3])[0],
    "cond": lambda x: gg.cond(gg.any(x > 0), lambda: x * twice_half(x), lambda: x),
    "gradient": lambda x: gg.gradients(gg.sum(gg.sin(x + twice_half(x))), x),
}
"""Functions that count N and 2*((N + 1)//2), the lengths of x and twice_half(x), as equal."""

BROADCAST = {
    "the first row": lambda x: x - x[:1] * gg.concat([x, x])[:1],
    "a row of many": lambda x: gg.concat([x, x]) * x[:1],
    "a contraction": lambda x: gg.einsum("ij,ij->j", x, x[:1]),
    "blocks of many": lambda x: x * gg.sum(x[::8], keepdims=True) + x[: (x.shape[0] + 3) // 4],
}
"""Functions in which a length of x is broadcast to another where x has 1 to 4 rows."""
