"""
Checkpoints and resuming
========================

*My training is killed now and then. How do I continue as if nothing had happened?* Save the values
of all variables regularly, and let the program look for the newest ones when it starts. You need a
folder, and batches that depend only on the step number.

.. meta::
   :keywords: checkpoint, resume, restore, save, training, interrupt, deterministic
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

# %%
# A program that can start anywhere
# ---------------------------------
#
# ``resume`` loads the values of the newest complete checkpoint, and returns None if there is
# none. The moments of Adam are variables too, so they are saved as well. The number of runs is
# also saved, because draws without a seed, such as those of dropout here, depend on it.

rng = np.random.default_rng(0)
inputs = rng.normal(size=(512, 8))
targets = np.sin(inputs @ rng.normal(size=8))


def train(folder, steps, killed_at=None):
    """The losses of the steps that this process ran, by number."""
    rng = np.random.default_rng(1)
    with gg.Graph() as graph:
        x = gg.placeholder(("N", 8), name="x")
        y = gg.placeholder(("N",), name="y")
        w = gg.variable(rng.normal(size=(8, 32)) / 3, name="w")
        v = gg.variable(rng.normal(size=(32,)) / 6, name="v")
        hidden = gg.nn.dropout(gg.tanh(x @ w), 0.1)
        loss = gg.mean((hidden @ v - y) ** 2)
        updates = gg.optimizers.Adam(0.01).updates([w, v], gg.gradients(loss, [w, v]))
        step = gg.compile([x, y], loss, updates=updates)

    checkpoints = gg.Checkpoints(folder, keep=2)
    found = checkpoints.resume(graph)
    losses = {}
    for i in range(found.step if found else 0, steps):
        if i == killed_at:
            break
        batch = np.random.default_rng(i).choice(512, size=64, replace=False)
        losses[i] = float(step(inputs[batch], targets[batch]))
        if (i + 1) % 50 == 0:
            checkpoints.save(i + 1, graph)
    return losses


# %%
# Killed, and started again
# -------------------------
#
# The second process repeats the steps since the last checkpoint, then continues.

with tempfile.TemporaryDirectory() as folder:
    before = train(folder, 300, killed_at=170)
    after = train(folder, 300)
with tempfile.TemporaryDirectory() as folder:
    whole = train(folder, 300)

print("first process:  steps", min(before), "to", max(before))
print("second process: steps", min(after), "to", max(after))

# %%
# The losses are the same bit for bit: in the steps that ran twice, and up to the end.

assert all(before[i] == after[i] for i in before.keys() & after.keys())
assert {**before, **after} == whole

plt.figure(figsize=(6, 2.8), layout="constrained")
plt.plot(whole.keys(), whole.values(), color="0.8", linewidth=4, label="never killed")
plt.plot(before.keys(), before.values(), color="C0", linewidth=1, label="first process")
plt.plot(after.keys(), after.values(), color="C1", linewidth=1, label="second process")
plt.axvline(150, color="0.5", linestyle=":")
plt.annotate("checkpoint", (152, max(whole.values()) * 0.9), color="0.4")
plt.xlabel("step")
plt.ylabel("loss")
plt.legend()

# %%
# A checkpoint that does not fit
# ------------------------------
#
# A checkpoint stores values under the names of the variables. If the program has changed,
# ``resume`` raises an error that lists every difference, and no value changes.

with tempfile.TemporaryDirectory() as folder:
    with gg.Graph() as old:
        gg.variable(np.zeros((8, 32)), name="w")
    gg.Checkpoints(folder).save(1, old)
    with gg.Graph() as new:
        gg.variable(np.zeros((8, 16)), name="w")
        gg.variable(np.zeros(16), name="b")
    try:
        gg.Checkpoints(folder).resume(new)
    except gg.StateError as error:
        print(str(error).replace(folder, "runs"))
    else:
        raise AssertionError("a checkpoint of another program")

# %%
# To keep the graph too, rules included, save it with ``gg.save``: :doc:`files </files>`.
