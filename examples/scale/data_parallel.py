"""Data parallel: each of 8 devices has a part of the batch and all of the variables.

    python examples/scale/data_parallel.py

XLA adds the gradients of the devices up. The devices are 8 that the CPU pretends to be; on 8 GPUs
leave the first lines out.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"  # before JAX starts

import jax
from jax.sharding import PartitionSpec
from network import compare, train


def shardings(net):
    """Both inputs by their first axis. What is not named is whole on every device."""
    return {net["pixels"]: PartitionSpec("data"), net["labels"]: PartitionSpec("data")}


mesh = jax.make_mesh((8,), ("data",))
assert len(mesh.devices) == 8
compare("8 devices, batch divided", lambda **how: train(shardings, mesh, **how))
