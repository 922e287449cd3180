"""Which part of an array lies on which device of a mesh, and arrays put there.

A layout changes no value of the program but for the order of sums: XLA divides the program as its
inputs are divided, and puts in what the devices tell each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...base.errors import DeviceError, GraphError, ShapeError, did_you_mean
from ...base.processes import join
from ...ir.node import Node, Tensor
from ...ops.sources import Variable
from .processes import JaxProcesses, gather_lengths

__all__ = ["MeshLayout", "Placed"]

_spec: Any = PartitionSpec  # these have no annotations
_of_local: Any = jax.make_array_from_process_local_data


class MeshLayout:
    """What `mesh` and `shardings` of `compile` say, checked.

    mesh    its devices, on axes along which XLA divides on its own
    specs   for each tensor that was named, the mesh axes along which each of its axes is divided
    several whether the devices are those of several processes
    """

    def __init__(self, mesh: Mesh | None, shardings: Mapping[Tensor, Any]) -> None:
        if not isinstance(shardings, Mapping):
            raise TypeError(
                "shardings is {tensor: jax.sharding.PartitionSpec or NamedSharding}, got "
                f"{type(shardings).__name__}"
            )
        given = _mesh(mesh, shardings)
        self.mesh = Mesh(given.devices, given.axis_names)  # of automatic axes
        self.specs = {t: self._spec(t, given, one) for t, one in shardings.items()}
        self.several = len({d.process_index for d in given.devices.flat}) > 1
        if self.several:
            join(JaxProcesses())

    def _spec(self, t: Tensor, mesh: Mesh, one: Any) -> PartitionSpec:
        if not isinstance(t, Tensor):
            raise GraphError(f"shardings are of tensors, got {t!r}")
        if isinstance(one, NamedSharding):
            if one.mesh != mesh and one.mesh != self.mesh:
                raise DeviceError(
                    f"{t.name} is on another mesh than the other arrays: {one.mesh} and {mesh}; "
                    "all arrays of a program are on one"
                )
            one = one.spec
        if not isinstance(one, PartitionSpec):
            raise TypeError(
                f"the sharding of {t.name} is a jax.sharding.PartitionSpec or NamedSharding, got "
                f"{one!r}"
            )
        self._check(t, one)
        return one

    def _check(self, t: Tensor, spec: PartitionSpec) -> None:
        if len(spec) > len(t.shape):
            raise ShapeError(
                f"{_said(t, spec)} divides {len(spec)} axes, and it has {len(t.shape)}"
            )
        used: set[str] = set()
        for name in (name for part in spec for name in _names(part)):
            if name not in self.mesh.shape:
                known = ", ".join(map(repr, self.mesh.shape))
                hint = did_you_mean(str(name), list(self.mesh.shape), f"There are {known}.")
                raise DeviceError(f"{_said(t, spec)}: the mesh has no axis {name!r}. {hint}")
            if name in used:
                raise DeviceError(f"{_said(t, spec)} divides along {name!r} twice")
            used.add(name)
        self.check_lengths(t, spec, t.shape)

    def check_lengths(self, t: Tensor, spec: PartitionSpec, shape: Sequence[Any]) -> None:
        """ShapeError where a length, as far as it is known, is not divisible."""
        for axis, part in enumerate(spec):
            parts = prod(self.mesh.shape[name] for name in _names(part))
            length = shape[axis]
            if isinstance(length, int) and length % parts:
                raise ShapeError(
                    f"{_said(t, spec)}: axis {axis} has the length {length}, which is not "
                    f"divisible by the {parts} devices that it is divided among.\n"
                    "Pad it, or divide along another axis"
                )

    def sharding(self, t: Tensor) -> NamedSharding:
        """Where the parts of a tensor's value lie; all of it everywhere, unless it was named."""
        return NamedSharding(self.mesh, self.specs.get(t, _spec()))


class Placed:
    """A layout for one program.

    inputs      shardings of what is given and read, in order
    written     those of what is written
    everywhere  that of what every device has
    """

    def __init__(
        self,
        layout: MeshLayout,
        given: Sequence[Tensor],
        read: Sequence[Node],
        written: Sequence[Node],
    ) -> None:
        _check_known(layout, given, [*read, *written])
        self.layout = layout
        self.everywhere = NamedSharding(layout.mesh, _spec())
        self._tensors = [*given, *(v.outputs[0] for v in read)]
        variables = {v: self._of_variable(v) for v in dict.fromkeys([*read, *written])}
        self.inputs = [*map(layout.sharding, given), *(variables[v] for v in read)]
        self.written = [variables[v] for v in written]
        self.several = layout.several

    def _of_variable(self, v: Node) -> NamedSharding:
        """Its own; where none was said, that of the parameter for which an optimiser has it."""
        t = v.outputs[0]
        parameter = None if t in self.layout.specs else _parameter(v, self.layout.specs)
        return self.layout.sharding(t if parameter is None else parameter)

    def put(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays where they belong; those that are there stay as they are."""
        rows = [*zip(self._tensors, self.inputs, arrays, strict=True)]
        if any(getattr(array, "sharding", None) != sharding for _, sharding, array in rows):
            self._check_same_lengths([array.shape for array in arrays])
        return [self._put(t, sharding, array) for t, sharding, array in rows]

    def _check_same_lengths(
        self, shapes: Sequence[tuple[int, ...]], parts: Sequence[tuple[int, ...]] | None = None
    ) -> None:
        """ShapeError, in every process, where the processes give an array unequal shapes.

        Each would run a program of other shapes, and all would get wrong numbers.

        shapes  of the whole arrays, as this process has them
        parts   of what this process gave, for the message; the same as shapes by default
        """
        if not self.several or all(t.type.static for t in self._tensors[: len(shapes)]):
            return
        given = shapes if parts is None else parts
        rows = gather_lengths(
            [n for pair in zip(shapes, given, strict=True) for s in pair for n in s]
        )
        start = 0
        for t, shape in zip(self._tensors, shapes, strict=False):
            middle, end = start + len(shape), start + 2 * len(shape)
            whole, part, start = rows[:, start:middle], rows[:, middle:end], end
            if (whole != whole[0]).any():
                counts = [f"\n  process {i}: {tuple(row.tolist())}" for i, row in enumerate(part)]
                raise ShapeError(
                    f"the processes give {t.node.name!r} ({t.type!r}, built at {t.where}) unequal "
                    f"shapes:{''.join(counts)}\n"
                    "Each has to give the same number of rows for each of its devices: drop the "
                    "incomplete batch, or pad it and give the added rows weight 0."
                )

    def _put(self, t: Tensor, sharding: NamedSharding, array: Any) -> Any:
        if getattr(array, "sharding", None) == sharding:
            return array
        self.layout.check_lengths(t, sharding.spec, array.shape)
        return self._to(sharding, array)

    def _to(self, sharding: NamedSharding, array: Any) -> Any:
        if self.several and not isinstance(array, jax.Array):  # the whole array, in each process
            return jax.make_array_from_callback(array.shape, sharding, lambda part: array[part])
        return jax.device_put(array, sharding)

    def from_local(self, arrays: Sequence[Any]) -> list[Any]:
        """Arrays of which each process gives the part that is its devices' own."""
        whole = [_of_local(s, a) for s, a in zip(self.inputs, arrays, strict=False)]
        self._check_same_lengths([y.shape for y in whole], [a.shape for a in arrays])
        return whole

    def lines(self) -> Iterator[str]:
        """What has to be the same in all processes."""
        for t, sharding in zip(self._tensors, self.inputs, strict=True):
            yield f"{t.node.name}: {t.type!r} divided {sharding.spec}"

    def anywhere(self, array: Any) -> Any:
        """An array that every device has."""
        return self._to(self.everywhere, array)

    def notes(self) -> Iterator[str]:
        """The mesh, and what is divided."""
        axes = ", ".join(f"{name}={size}" for name, size in self.layout.mesh.shape.items())
        yield f"mesh: {axes}; {self.layout.mesh.devices.size} devices"
        rows = zip(self._tensors, self.inputs, strict=True)
        divided = [f"{t.node.name} {s.spec}" for t, s in rows if any(map(_names, s.spec))]
        yield f"divided: {', '.join(divided)}" if divided else "every device has all of every array"


def _mesh(mesh: Any, shardings: Mapping[Tensor, Any]) -> Mesh:
    """The mesh that was given, or that of the shardings."""
    if mesh is None:
        known = [s.mesh for s in shardings.values() if isinstance(s, NamedSharding)]
        if not known:
            raise DeviceError(
                "shardings= needs mesh=, a jax.sharding.Mesh such as jax.make_mesh((8,), "
                "('data',)), or NamedShardings, which carry their own mesh"
            )
        mesh = known[0]
    if not isinstance(mesh, Mesh):
        raise TypeError(f"mesh is a jax.sharding.Mesh, got {mesh!r:.80}")
    return mesh


def _check_known(layout: MeshLayout, given: Sequence[Tensor], variables: Sequence[Node]) -> None:
    """GraphError for a tensor that nobody gives. One layout may name variables that only some of
    the functions use that share it."""
    inputs = set(given)
    graphs = {t.node.graph for t in given} | {v.graph for v in variables}
    for t in layout.specs:
        if t in inputs or (type(t.node.op) is Variable and t.node.graph in graphs):
            continue
        raise GraphError(
            f"shardings name {t.name} ({t.type!r}, built at {t.where}), which is neither an input "
            "of this function nor a variable of its graph; name inputs and variables"
        )


def _parameter(slot: Node, named: Mapping[Tensor, Any]) -> Tensor | None:
    """The parameter of an optimiser's slot, if it was named and has the slot's shape.

    A slot is called `<name of the parameter>/<what it is>`, in the name scope of the optimiser.
    """
    if not slot.op.attrs["slot"]:
        return None
    known = {t.node.name: t for t in named if t.node.graph is slot.graph}
    parts = slot.name.split("/")[:-1]
    for at in range(len(parts)):
        parameter = known.get("/".join(parts[at:]))
        if parameter is not None and parameter.shape == slot.outputs[0].shape:
            return parameter
    return None


def _names(part: Any) -> tuple[Any, ...]:
    """The mesh axes along which one axis is divided."""
    if part is None or part is PartitionSpec.UNCONSTRAINED:
        return ()
    return part if isinstance(part, tuple) else (part,)


def _said(t: Tensor, spec: PartitionSpec) -> str:
    return f"{spec} for {t.name} ({t.type!r}, built at {t.where})"
