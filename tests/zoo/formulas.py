"""Rows without a recorded case: what their papers say, written out."""

from functools import cache

import numpy as np

import graphgrad as gg

X = np.array([-1.3, -0.4, 0.2, 0.9])
U = np.array([0.1, 0.6, 0.8, 0.3])


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def jacobian_of(p, d):
    return p * (d - np.sum(p * d))


D = np.array([1.0, -0.5, 2.0, 0.25])
HOT = np.array([0.0, 1.0, 0.0, 0.0])


def xnor_formula():
    """One number a channel, the last axis, of one row: its scale is |x|."""
    return D * (1.0 + np.abs(X) * (np.abs(X) <= 1))


W = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, -0.25], [2.0, 1.0]])
LOSS = np.array([0.5, -1.0, 2.0, 1.5])


def weighed(b):
    return gg.sum(b * b * gg.constant(LOSS), axis=-1)


def arms():
    one, other = (sigmoid(X) > U) * 1.0, (sigmoid(-X) < U) * 1.0
    return (np.sum(other**2 * LOSS) - np.sum(one**2 * LOSS)) * (U - 0.5)


def disarms():
    b, c = (sigmoid(X) > 1 - U) * 1.0, (sigmoid(X) > U) * 1.0
    return np.sum((b - c) * LOSS) / 2 * (b - c) * sigmoid(np.abs(X))


def at_rest(x):
    """z = tanh(z / 2 + x) for each x."""
    return lambda z: gg.tanh(z / 2 + x)


def rest():
    z = np.zeros(4)
    for _ in range(200):
        z = np.tanh(z / 2 + X)
    return z


def phantoms():
    slope, dz = 1 - rest() ** 2, 0.0
    for _ in range(3):
        dz = 0.5 * dz + 0.5 * slope * (dz / 2 + 1)
    return D * dz


def logit(u):
    return np.log(u) - np.log(1 - u)


def relaxed(control, dcontrol):
    """REBAR and RELAX for LOSS weighed bits; control and its derivative are per logistic sample."""
    p, v = sigmoid(X), 0.7 - U / 2
    bits = (X + logit(U) > 0) * 1.0
    u = np.where(bits > 0, 1 - p + v * p, v * (1 - p))
    z, given = X + logit(U), X + logit(u)
    du = np.where(bits > 0, -1 + v, -v) * p * (1 - p)
    dgiven = 1 + du / (u * (1 - u))
    score = np.sum(bits * bits * LOSS) - np.sum(control(given))
    return score * (bits - p) + dcontrol(z) - dcontrol(given) * dgiven


def of_relaxed_bits(z):
    return 0.8 * sigmoid(2 * z) ** 2 * LOSS


def slope_of_relaxed_bits(z):
    s = sigmoid(2 * z)
    return 0.8 * 2 * s * 2 * s * (1 - s) * LOSS


def adapted():
    """AIMLE of a solver that squares, for two noises, U and -U."""
    strength = 0.5 * np.linalg.norm(X) / np.linalg.norm(D)
    moved = [(X + e + s * strength * D) ** 2 for e in (U, -U) for s in (1, -1)]
    return (moved[0] - moved[1] + moved[2] - moved[3]) / 2 / (2 * strength)


def at_an_event():
    """Of g = sum(x**2) - t and dx/dt = -x."""
    return -2 * X / (-1 - 2 * np.sum(X * X))


def averse():
    """CAGrad of two gradients, D and 2 D + X, the weight by a fine search."""
    g = np.stack([D, 2 * D + X])
    mean = g.mean(0)
    radius = 0.4 * np.linalg.norm(mean)
    low, high = 0.0, 1.0
    for _ in range(60):
        w = np.linspace(low, high, 11)
        rows = np.stack([w, 1 - w], 1) @ g
        best = np.argmin(rows @ mean + radius * np.linalg.norm(rows, axis=1))
        low, high = w[max(best - 1, 0)], w[min(best + 1, 10)]
    way = low * g[0] + (1 - low) * g[1]
    return mean + radius * way / np.linalg.norm(way)


def averse_of(x):
    one, other = gg.rules.jd_cagrad(x, 2, c=0.4)
    return one + other * 2.0 + gg.stop_gradient(other) * other / gg.constant(D)


def transport(x, rows, columns):
    """A plan of given sums, by Sinkhorn's iterations."""
    plan = np.exp(x.reshape(2, 2))
    for _ in range(400):
        plan *= np.array(rows)[:, None] / plan.sum(1, keepdims=True)
        plan *= np.array(columns) / plan.sum(0)
    return plan


def changes(f):
    """The gradient at X of f, which D weighs, by differences."""
    step, weighs = 1e-5, D.reshape(2, 2)
    ends = [[np.sum(weighs * f(X + s * step * e)) for s in (1, -1)] for e in np.eye(4)]
    return np.array([(a - b) / (2 * step) for a, b in ends])


BY_FORMULA = {
    "sinkhorn": (
        lambda x: gg.rules.sinkhorn(gg.reshape(x, (2, 2)), [0.3, 0.7], [0.6, 0.4]),
        lambda: changes(lambda x: transport(x, [0.3, 0.7], [0.6, 0.4])),
    ),
    "project_birkhoff": (
        lambda x: gg.rules.project_birkhoff(gg.reshape(x, (2, 2))),
        lambda: changes(lambda x: transport(x, [1.0, 1.0], [1.0, 1.0])),
    ),
    "xlogy": (lambda x: gg.rules.xlogy(x, 1.5 + X), lambda: D * np.log(1.5 + X)),
    "xdivy": (lambda x: gg.rules.xdivy(x, 1.5 + X), lambda: D / (1.5 + X)),
    "hypot": (lambda x: gg.rules.hypot(x, U), lambda: D * X / np.hypot(X, U)),
    "logaddexp": (lambda x: gg.rules.logaddexp(x, U), lambda: D * sigmoid(X - U)),
    "fake_quantise": (
        lambda x: gg.rules.fake_quantise(x, -1.0, 0.5, bits=3),
        lambda: D * ((X >= -1) & (X <= 0.5)),
    ),
    "fake_float8": (lambda x: gg.rules.fake_float8(x, 1.0), lambda: D),
    "lsq_plus": (lambda x: gg.rules.lsq_plus(x, 0.25, bits=3), lambda: D * (np.abs(X) < 0.8)),
    "pact": (lambda x: gg.rules.pact(x, 0.8, bits=2), lambda: D * ((X >= 0) & (X < 0.8))),
    "stop": (lambda x: x + on(x, "stop", gg.sin), lambda: D),
    "surrogate": (lambda x: surrogate_of_square(x), lambda: 2 * D * X),
    "rescale": (
        lambda x: on(x, "rescale", gg.square, reference_x=0.0, reference_y=0.0),
        lambda: D * X,
    ),
    "target_prop": (
        lambda x: on(x, "target_prop", gg.exp, inverse=gg.tanh),
        lambda: np.tanh(np.exp(X)) - np.tanh(np.exp(X) - D),
    ),
    "epsilon_alpha2_beta1_flat": (
        lambda x: gg.reshape(
            on(x[None], "epsilon_alpha2_beta1_flat", lambda x: x @ W, epsilon=0.0), (-1,)
        ),
        lambda: np.full(4, D[:2].sum() / 4),
    ),
    "mpd_agl": (
        lambda x: on(x, "mpd_agl", gg.sign, gain=0.4, tau=0.5),
        lambda: D * (np.abs(X) < 0.4 * 1.25**0.5) / (0.8 * 1.25**0.5),
    ),
    "rebar": (
        lambda x: gg.rules.rebar(x, U, 0.7 - U / 2, weighed, 0.5, 0.8),
        lambda: relaxed(of_relaxed_bits, slope_of_relaxed_bits),
    ),
    "relax": (
        lambda x: gg.rules.relax(
            x, U, 0.7 - U / 2, weighed, lambda z: gg.sum(gg.sin(z) * LOSS, axis=-1)
        ),
        lambda: relaxed(lambda z: np.sin(z) * LOSS, lambda z: np.cos(z) * LOSS),
    ),
    "aimle": (lambda x: gg.rules.aimle(x, np.stack([U, -U]), gg.square, 1.0, 0.5), adapted),
    "event_time": (
        lambda x: gg.rules.event_time(x, 3.0, lambda t, x: gg.sum(x * x, -1) - t, lambda t, x: -x),
        at_an_event,
    ),
    "jd_cagrad": (averse_of, averse),
    "sign_symmetry": (
        lambda x: gg.reshape(on(x[None], "sign_symmetry", lambda x: x @ W, scale=0.5), (-1,)),
        lambda: 0.5 * np.sign(W) @ D[:2],
    ),
    "pattern_attribution": (
        lambda x: gg.reshape(
            on(x[None], "pattern_attribution", lambda x: x @ W, patterns=W), (-1,)
        ),
        lambda: W * W @ D[:2],
    ),
    "soft_edge": (
        lambda x: on(x, "soft_edge", lambda x: gg.heaviside(x, 1.0), sigma=0.3),
        lambda: (
            D * 2 * np.abs(X) / 0.3 * sigmoid(X * np.abs(X) / 0.3) * sigmoid(-X * np.abs(X) / 0.3)
        ),
    ),
    "mesh_edge": (
        lambda x: on(x, "mesh_edge", lambda x: gg.heaviside(x, 1.0)),
        lambda: np.where((X >= 0) == (D > 0), D / (np.abs(X) + 1e-4), 0),
    ),
    "arm": (lambda x: gg.rules.arm(x, U, weighed), arms),
    "disarm": (lambda x: gg.rules.disarm(x, U, weighed), disarms),
    "bundled": (
        lambda x: gg.rules.bundled(x, np.stack([U, -U]), gg.square, 0.5),
        lambda: D * 2 * X,
    ),
    "jacobian_free": (
        lambda x: gg.rules.jacobian_free(np.zeros(4), at_rest(x)),
        lambda: D * (1 - rest() ** 2),
    ),
    "phantom": (lambda x: gg.rules.phantom(np.zeros(4), at_rest(x), 3), phantoms),
    "shake": (lambda x: gg.rules.shake(x, U, 0.3, 0.6), lambda: 0.6 * D),
    "bernoulli_st": (
        lambda x: gg.rules.bernoulli_st(x, (U < 0.5) * 1.0, 2.0),
        lambda: D * 2 * sigmoid(2 * X) * sigmoid(-2 * X),
    ),
    "adaround": (lambda x: gg.rules.adaround(x, np.zeros(4)), lambda: D),
    "clamp_inward": (
        lambda x: on(x, "clamp_inward", lambda x: gg.clip(x, 0.0, 0.5)),
        lambda: np.where(((X < 0) & (D > 0)) | ((X > 0.5) & (D < 0)), 0, D),
    ),
    "dithered": (
        lambda x: on(x, "dithered", gg.identity, step=0.5),
        lambda: 0.5 * np.floor(D / 0.5 + 0.5),
    ),
    "dorefa_gradient": (
        lambda x: on(x, "dorefa_gradient", gg.identity, bits=2),
        lambda: 4 * (np.rint((D / 4 + 0.5) * 3) / 3 - 0.5),
    ),
    "dsq": (
        lambda x: on(x, "dsq", gg.rint, k=3.0),
        lambda: D * 3 / (2 * np.tanh(1.5)) * (1 - np.tanh(3 * (X - np.floor(X) - 0.5)) ** 2),
    ),
    "ede": (lambda x: on(x, "ede", gg.sign, t=2.0, k=0.5), lambda: D * (1 - np.tanh(2 * X) ** 2)),
    "ewgs": (
        lambda x: on(x, "ewgs", gg.rint, delta=0.3),
        lambda: D * (1 + 0.3 * np.sign(D) * (X - np.rint(X))),
    ),
    "gapped_st": (
        lambda x: gg.rules.gapped_st(x, HOT, 1.0),
        lambda: jacobian_of(
            softmax(np.where(HOT > 0, X.max(), X - np.maximum(X + 1 - X.max(), 0) * (1 - HOT))), D
        ),
    ),
    "grad_dropout": (
        lambda x: on(x, "grad_dropout", gg.identity, uniform=U, rate=0.2),
        lambda: np.where(U < 0.2, 0, D) / 0.8,
    ),
    "gradient_noise": (lambda x: on(x, "gradient_noise", gg.identity, noise=U), lambda: D + U),
    "hard_concrete": (lambda x: gg.rules.hard_concrete(x, U), lambda: hard_concrete()),
    "low_precision": (
        lambda x: on(x, "low_precision", gg.identity, bits=3),
        lambda: 4 / 7 * np.rint(D / (4 / 7)),
    ),
    "meprop": (lambda x: on(x, "meprop", gg.identity, k=2), lambda: np.where(np.abs(D) >= 1, D, 0)),
    "noise_quant": (lambda x: gg.rules.noise_quant(x, U), lambda: D),
    "power_of_two": (lambda x: gg.rules.power_of_two(x), lambda: D),
    "qil": (
        lambda x: gg.rules.qil(x, 0.6, 0.25),
        lambda: np.where((np.abs(X) >= 0.35) & (np.abs(X) <= 0.85), 2 * D, 0),
    ),
    "rectgrad": (
        lambda x: on(x, "rectgrad", gg.nn.relu, threshold=0.1),
        lambda: np.where(X * D > 0.1, D, 0),
    ),
    "redirected": (
        lambda x: on(x, "redirected", gg.nn.relu),
        lambda: np.where(X > 0, D, np.minimum(D, 0)),
    ),
    "reste": (
        lambda x: on(x, "reste", gg.sign, p=2.0),
        lambda: D * np.maximum(np.abs(X), 0.1) ** -0.5 / 2,
    ),
    "stochastic_round": (lambda x: gg.rules.stochastic_round(x, U, 0.5), lambda: D),
    "stochastic_spike": (
        lambda x: gg.rules.stochastic_spike(x, U),
        lambda: np.where(X > 0, D, D * (U - 0.5) * 0.2),
    ),
    "tqt": (
        lambda x: gg.rules.tqt(x, 0.0, 2),
        lambda: np.where((np.rint(2 * X) >= -2) & (np.rint(2 * X) <= 1), D, 0),
    ),
    "ttq": (
        lambda x: gg.rules.ttq(x, 2.0, 3.0),
        lambda: D * np.where(X > 0.05, 2.0, np.where(X < -0.05, 3.0, 1.0)),
    ),
    "xnor": (lambda x: gg.rules.xnor(x), xnor_formula),
    "nan_guard": (lambda x: on(x, "nan_guard", gg.identity, limit=1.5), lambda: D),
}
"""Rows without a recorded case: (what they build of x, its gradient for D)."""


def on(x, rule, f, **given):
    """A rule on a function."""
    with gg.override_gradient(getattr(gg.rules, rule)(**given)):
        return f(x)


def surrogate_of_square(x):
    with gg.override_gradient(gg.rules.surrogate(gg.square)):
        return gg.sign(x)


def hard_concrete():
    s = sigmoid((X + np.log(U) - np.log(1 - U)) / (2 / 3))
    wide = 1.2 * s - 0.1
    return np.where((wide > 0) & (wide < 1), D * 1.2 * s * (1 - s) * 1.5, 0)


def _case(name, build, formula):
    with gg.Graph():
        y = gg.evaluate(build(gg.constant(X)))
    return {
        "id": f"formula/{name}/0",
        "rule": name,
        "build": lambda t, p, case: build(t["x"]),
        "params": {},
        "inputs": {"x": X},
        "dy": [D.reshape(y.shape) if y.size == 4 else D[: y.size].reshape(y.shape)],
        "y": [y],
        "grads": {"x": formula()},
    }


@cache
def formulas():
    """These as cases are: what y is, they are asked for."""
    with np.errstate(all="ignore"):
        return {f"formula/{n}/0": _case(n, *made) for n, made in BY_FORMULA.items()}
