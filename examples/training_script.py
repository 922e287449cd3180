"""A training script, twice: with a session, and as one function; with a rule in the model.

Two classes of points, told apart by neurons that fire or do not: a step function, whose own
gradient is zero everywhere. The straight-through rule lets it learn.
"""

import numpy as np

import graphgrad as gg

rng = np.random.default_rng(0)
points = rng.normal(size=(512, 2))
inside = (np.linalg.norm(points, axis=1) < 1.1).astype(float)


def parameters():
    """Variables of a layer of neurons that fire or do not, and of one that weighs them."""
    w = gg.variable(gg.initializers.normal((2, 32), seed=1), name="w")
    b = gg.variable(np.ones(32), name="b")
    v = gg.variable(gg.initializers.normal(32, seed=2, std=0.1), name="v")
    c = gg.variable(0.0, name="c")
    return w, b, v, c


def mean_loss(x, y, w, b, v, c):
    """The sigmoid cross-entropy of what the network says."""
    h = x @ w + b
    with gg.override_gradient(gg.rules.ste(window=2.0)):
        fires = gg.heaviside(h, 1.0)
    return gg.mean(gg.nn.binary_cross_entropy_with_logits(fires @ v + c, y))


schedule = gg.optimizers.warmup(20, gg.optimizers.cosine_decay(0.03, 480))
batches = gg.training.batches((points, inside), 32, seed=0, epochs=30)

with gg.Graph("classes") as graph:
    x, y = gg.placeholder(("N", 2), name="x"), gg.placeholder(("N",), name="y")
    loss = mean_loss(x, y, *parameters())
    train = gg.optimizers.Adam(schedule).minimize(loss)
    plain = gg.optimizers.Adam(schedule).minimize(loss, overrides="none")


def trained(step):
    """The loss after training with what is fetched for a step."""
    with gg.Session(graph, fresh=True) as session:
        for some, wanted in gg.training.progress(batches):
            session.run([loss, step], {x: some, y: wanted})
        return float(session.run(loss, {x: points, y: inside}))


with_rule, without = trained(train), trained(plain)
print(f"with the rule {with_rule:.3f}, without {without:.3f}")
assert with_rule < without - 0.05

with gg.Graph() as there:
    variables = parameters()


@gg.function(graph=there)
def step(x, y):
    """The same step as a function of arrays, with gradients of at most norm 1."""
    loss = mean_loss(x, y, *variables)
    grads = gg.optimizers.clip_by_norm(gg.gradients(loss, variables), 1.0)
    for variable, grad in zip(variables, grads, strict=True):
        gg.assign(variable, variable - 0.1 * grad)
    return loss


losses = [float(step(*batch)) for batch in batches]
print(f"as a function {np.mean(losses[:16]):.3f} -> {np.mean(losses[-16:]):.3f}")
assert np.mean(losses[-16:]) < np.mean(losses[:16])
