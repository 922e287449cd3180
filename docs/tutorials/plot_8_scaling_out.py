"""
Scaling out
===========

This tutorial runs a graph with a rule on batches, within a memory limit, in several threads, and
on several devices. The rule stays where it is.

.. meta::
   :keywords: vmap, batch, devices, memory, checkpoint
"""

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

# %%
# Many examples
# -------------
#
# ``gg.vmap`` turns a function of one example into a function of a batch, and the rule applies to
# each example: here the gradient of each example is clipped to norm 1, not that of the batch.


def one(x):
    with gg.override_gradient(gg.rules.clip_norm(1.0)):
        y = gg.sum(x**2)
    return gg.gradients(y, x)


with gg.Graph():
    batch = gg.placeholder(("N", 3), name="batch")
    f = gg.compile(batch, gg.vmap(one)(batch))
norms = np.linalg.norm(f(np.array([[3.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.1, 0.0, 0.0]])), axis=1)
print(norms)
np.testing.assert_allclose(norms, [1.0, 1.0, 0.2])

# %%
# Little memory
# -------------
#
# Gradients store values of the forward pass. ``memory=`` is a limit in bytes: values that do not
# fit are recomputed. The result is the same.


def deep():
    with gg.Graph():
        x = gg.placeholder((1000,), name="x")

        def step(carry, _):
            with gg.override_gradient(gg.rules.clip_value(0.5)):
                carry = gg.sin(carry * 1.5)
            return carry, None

        last, _ = gg.scan(step, x, length=200)
        return x, gg.gradients(gg.sum(last), x)


x, dx = deep()
at = np.linspace(0, 1, 1000)
free = gg.compile(x, dx, backend="numpy")
tight = gg.compile(x, dx, backend="numpy", memory=400_000)
wanted = free(at)
np.testing.assert_array_equal(tight(at), wanted)

used = [free.peak_bytes, tight.peak_bytes]
plt.figure(figsize=(4, 2.4))
plt.bar(["no limit", "memory=400_000"], [u / 1000 for u in used])
plt.ylabel("kB in a run")
plt.tight_layout()
print(used)
assert used[1] <= 400_000 < used[0]

# %%
# Several threads
# ---------------
#
# You can call a compiled function from many threads at the same time. A large call also uses
# several threads; ``num_threads=`` sets the maximum.

one_thread = gg.compile(x, dx, backend="numpy", num_threads=1)
np.testing.assert_array_equal(one_thread(at), wanted)

# %%
# Several devices and processes
# -----------------------------
#
# With JAX, ``gg.compile(..., backend="jax", mesh=mesh, shardings={tensor: PartitionSpec})`` shards
# arrays over devices, and ``graphgrad.distributed`` over processes. See :doc:`Many devices, many
# processes </scale>` for examples and measurements.
