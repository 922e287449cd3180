"""Tensor parallel: 8 devices have parts of the weights, and of what Adam remembers of them.

    python examples/scale/tensor_parallel.py

The first layer is divided by columns and the second by rows, so that only the sum between them
crosses the devices. Two of four groups of devices share the batch, which is data parallel besides.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"  # before JAX starts

import jax
from jax.sharding import PartitionSpec
from network import compare, train


def shardings(net):
    """Weights along "model", inputs along "data"."""
    return {
        net["pixels"]: PartitionSpec("data"),
        net["labels"]: PartitionSpec("data"),
        net["w0"]: PartitionSpec(None, "model"),
        net["b0"]: PartitionSpec("model"),
        net["w1"]: PartitionSpec("model", None),
    }


mesh = jax.make_mesh((2, 4), ("data", "model"))
assert mesh.devices.size == 8
compare("2 x 4 devices, weights and batch divided", lambda **how: train(shardings, mesh, **how))
