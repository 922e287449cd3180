"""One program on several processes, each with devices of its own: `gg.distributed`.

    gg.distributed.start("10.0.0.1:1234", num_processes=2, process_id=0)
    step = gg.compile([x, y], loss, updates=updates, backend="jax", mesh=mesh, shardings=shardings)
    loss = step(*gg.distributed.from_local(step, my_x, my_y))

Every process runs the same code: it builds the same graph, compiles the same functions and calls
them together. docs/scale.md shows it.
"""

from __future__ import annotations

from typing import Any

from .base.errors import DeviceError, GraphError, MissingBackendError
from .base.lazy import lazy_module
from .base.processes import current, join
from .compiled import CompiledFunction
from .execute.run.feeds import as_array
from .ir.digest import check_same as check_same_lines
from .ir.digest import lines
from .ir.graph import Graph

__all__ = ["check_same", "from_local", "process_count", "process_index", "start"]


def __dir__() -> list[str]:
    return __all__


_jax_processes = lazy_module("graphgrad.execute.jax.processes")


def start(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    **options: Any,
) -> None:
    """Connect this process with the others: `jax.distributed.initialize`, before JAX is used.

    From then on process 0 alone writes files: `gg.save`, `Checkpoints`, `export_weights`, which all
    processes call.

    Parameters:
        coordinator_address: host and port of process 0, "10.0.0.1:1234"; None on clusters that JAX
            knows (Slurm, Open MPI, Cloud TPU).
        num_processes: how many there are; None there.
        process_id: the number of this one, from 0; None there.
        **options: of `jax.distributed.initialize`, such as `local_device_ids`,
            `initialization_timeout`.

    Returns: nothing.

    Raises: MissingBackendError where JAX is not installed; RuntimeError of JAX where it runs
    already, or the others do not come.

    Source: [JAX, "Introduction to multi-controller JAX"].

    >>> gg.distributed.process_index(), gg.distributed.process_count()
    (0, 1)
    """
    try:
        begin = _jax_processes.start
    except ModuleNotFoundError as error:
        raise MissingBackendError(
            "gg.distributed.start needs the package 'jax': pip install 'graphgrad[jax]'"
        ) from error
    where = {
        "coordinator_address": coordinator_address,
        "num_processes": num_processes,
        "process_id": process_id,
    }
    join(begin(**where, **options))


def process_index() -> int:
    """The number of this process, from 0.

    Returns: an int.

    >>> gg.distributed.process_index()
    0
    """
    return current().index


def process_count() -> int:
    """How many processes run the program.

    Returns: an int.

    >>> gg.distributed.process_count()
    1
    """
    return current().count


def check_same(graph: Graph) -> None:
    """Check that all processes have built the same graph, which each of them calls with its own.

    Nodes are compared by name, op, attributes, what they read, and the rules put on them; functions
    by their names. A function that is compiled for a mesh of several processes is compared anyway,
    as it will run.

    Parameters: graph: what was built.

    Returns: nothing.

    Raises: GraphError, in every process, with the first node that differs and what each of them has
    there; GraphError for input that is not a graph.

    >>> x = gg.placeholder((2,))
    >>> gg.distributed.check_same(x.graph)
    """
    if not isinstance(graph, Graph):
        raise GraphError(f"check_same() takes a graph, got {graph!r:.80}; a tensor's is t.graph")
    check_same_lines(lines(graph.nodes), "graphs")


def from_local(function: CompiledFunction, *arrays: Any) -> tuple[Any, ...]:
    """Arguments for a function, of which each process gives the part that its own devices work on.

    An input that is divided along the batch takes the process's own examples; one that is not
    divided takes the whole array, the same in all processes.

    Parameters:
        function: compiled with `mesh=` and `shardings=`.
        *arrays: one for each input, cast as in a call.

    Returns: a tuple of arrays to call it with.

    Raises: DeviceError for a function without a mesh; TypeError for too many or too few arrays;
    DTypeError for one that cannot be cast.

    Source: [JAX, jax.make_array_from_process_local_data].

    >>> x = gg.placeholder((None, 2), name="x")
    >>> f = gg.compile(x, gg.sum(x))
    >>> gg.distributed.from_local(f, [[1.0, 2.0]])
    Traceback (most recent call last):
    graphgrad.base.errors.DeviceError: from_local() is for functions that were compiled with mesh=
    """
    run, inputs = function._executable.run, function.inputs
    if not run.on_mesh:
        raise DeviceError("from_local() is for functions that were compiled with mesh=")
    if len(arrays) != len(inputs):
        raise TypeError(
            f"from_local() takes an array for each of {len(inputs)} inputs, got {len(arrays)}"
        )
    return tuple(run.from_local([as_array(t, a) for t, a in zip(inputs, arrays, strict=True)]))
