"""An ODE solved by a loop, differentiated in two ways: through its steps, and by its adjoint.

The adjoint is a rule around the whole loop: it solves the equation backward in time beside that of
the gradient, so that no step has to be kept [Chen et al. 2018, "Neural ordinary differential
equations"]. The two agree as far as the solver is exact.
"""

import numpy as np

import graphgrad as gg

STEPS, END = 200, 2.0


def rk4(f, y, length):
    """Classical Runge-Kutta steps over a list of states, all of one length in time."""
    h = length / STEPS

    def moved(state, slope, by):
        return [s + by * d for s, d in zip(state, slope)]

    def step(state, _):
        k1 = f(state)
        k2 = f(moved(state, k1, h / 2))
        k3 = f(moved(state, k2, h / 2))
        k4 = f(moved(state, k3, h))
        slopes = [(a + 2.0 * b + 2.0 * c + d) / 6.0 for a, b, c, d in zip(k1, k2, k3, k4)]
        return moved(state, slopes, h), None

    return gg.scan(step, y, length=STEPS)[0]


def field(y, w):
    return gg.tanh(w @ y) - 0.1 * y


def plain(y, w):
    return rk4(lambda state: [field(state[0], w)], [y], END)[0]


@gg.custom_gradient
def solved(y, w):
    end = plain(y, w)

    def adjoint(d_end):
        def back(state):
            y, a, _ = state
            slope = field(y, w)
            dy, dw = gg.gradients(slope, [y, w], grad_ys=[a], stop_gradients=[y, w])
            return [-slope, dy, dw]

        _, dy, dw = rk4(back, [end, d_end, gg.zeros_like(w)], END)
        return dy, dw

    return end, adjoint


with gg.Graph():
    y, w = gg.placeholder((3,), name="y"), gg.placeholder((3, 3), name="w")
    found = [gg.gradients(gg.sum(solve(y, w) ** 2), [y, w]) for solve in (plain, solved)]
    f = gg.compile([y, w], found)

rng = np.random.default_rng(0)
(dy, dw), (dy_adjoint, dw_adjoint) = f(rng.normal(size=3), rng.normal(size=(3, 3)))
print("through the steps:", dy)
print("by the adjoint:   ", dy_adjoint)
np.testing.assert_allclose(dy_adjoint, dy, rtol=1e-5)
np.testing.assert_allclose(dw_adjoint, dw, rtol=1e-5, atol=1e-8)
