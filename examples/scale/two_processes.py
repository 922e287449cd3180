"""Two processes, each with 2 devices and its own half of every batch.

    python examples/scale/two_processes.py

This command starts both, on this machine. On a cluster each machine runs the same program with the
address of the first one and a number of its own.
"""

import os
import socket
import subprocess
import sys
import time

COUNT = 2


def work(address, index):
    """What each process runs."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"  # before JAX starts
    import jax
    from jax.sharding import PartitionSpec
    from network import compare, train

    import graphgrad as gg

    gg.distributed.start(address, num_processes=COUNT, process_id=index)
    mesh = jax.make_mesh((2 * COUNT,), ("all",))
    assert gg.distributed.process_count() == COUNT

    def shardings(net):
        whole = {net["pixels"]: PartitionSpec("all"), net["labels"]: PartitionSpec("all")}
        return whole | {net["w0"]: PartitionSpec(None, "all")}

    def feed(step, pixels, labels):
        """This process's share; a program that trains would load no more than that."""
        own = slice(index * len(pixels) // COUNT, (index + 1) * len(pixels) // COUNT)
        return gg.distributed.from_local(step, pixels[own], labels[own])

    compare(f"process {index} of {COUNT}", lambda **how: train(shardings, mesh, feed=feed, **how))


def start():
    """Both processes, until they are done or one has failed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, __file__, address]
    running = [subprocess.Popen([*command, str(i)]) for i in range(COUNT)]
    while None in (ended := [p.poll() for p in running]) and not any(ended):
        time.sleep(0.1)
    for process in running:  # where one has failed, the other would wait for it
        process.kill()
    sys.exit(any(ended))


if len(sys.argv) == 1:
    start()
work(sys.argv[1], int(sys.argv[2]))
