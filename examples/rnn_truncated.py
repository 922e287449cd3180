"""Truncated backpropagation through time as a rule: the loop runs on, gradients stop every k steps.

The rule stands on the carry that a run takes. Forward, nothing changes; backward, it lets through
what flows from run to run but where a new segment begins [Williams and Peng 1990, "An efficient
gradient-based algorithm for on-line training of recurrent network trajectories"].
"""

import numpy as np

import graphgrad as gg

K, STEPS = 4, 12


@gg.register_gradient("examples/truncate")
def truncate(site, dy):
    step = site.inputs[1]
    return gg.where(step % K == 0, gg.zeros_like(dy), dy), gg.NO_GRAD


def rnn(xs, w, truncated):
    def run(carry, x):
        step, h = carry
        if truncated:
            with gg.override_gradient("examples/truncate") as region:
                taken = gg.identity(h)
                region.declare(inputs=[h, step], outputs=[taken])
            h = taken
        return (step + 1, gg.tanh(h @ w + x)), None

    (_, last), _ = gg.scan(run, (0, np.zeros(3)), xs)
    return gg.sum(last)


with gg.Graph():
    xs, w = gg.placeholder((STEPS, 3), name="xs"), gg.placeholder((3, 3), name="w")
    whole, cut = rnn(xs, w, False), rnn(xs, w, True)
    f = gg.compile([xs, w], [whole, cut, gg.gradients(whole, xs), gg.gradients(cut, xs)])

rng = np.random.default_rng(0)
y, y_cut, dx, dx_cut = f(rng.normal(size=(STEPS, 3)), 0.5 * rng.normal(size=(3, 3)))
for name, grads in [("whole", dx), ("truncated", dx_cut)]:
    print(f"{name:>9}:", " ".join(f"{size:.0e}" for size in np.abs(grads).sum(axis=1)))
assert y == y_cut
np.testing.assert_allclose(dx_cut[-K:], dx[-K:])
assert not dx_cut[:-K].any()
assert dx[:-K].any()
