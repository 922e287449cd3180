"""Functions of JAX as programs of XLA in bytes, by `jax.export`, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import flatbuffers  # noqa: F401  jax.export needs it, and says so when it is late
import jax
import jax.export

from ..base.collector import having
from ..base.errors import DTypeError, ExportError, GraphGradError
from ..execute.jax.host import CALLED
from ..ir.node import Node
from ..ir.types import Array, TensorType
from ..ops.foreign.jax_function import symbolic_shapes
from .jax_calls import has_64_bits

__all__ = ["Exported", "exported", "loaded"]

RESERVED = {"max", "min", "mod", "floordiv", "non_negative"}
"""What means something in JAX's own language of lengths."""


_config: Any = jax.config  # these have no annotations
_struct: Any = jax.ShapeDtypeStruct


class Exported(NamedTuple):
    """A function as bytes, and what is to be known of them."""

    program: bytes
    about: dict[str, Any]


def exported(
    fn: Callable[..., Any],
    inputs: Mapping[str, TensorType],
    state: Mapping[str, Array],
    gradients: int,
    platforms: Sequence[str] | None,
    single: bool,
) -> Exported:
    """fn(inputs, state) as bytes, for inputs and a state of these types.

    Raises ExportError for what calls the host, and for what JAX refuses.
    """
    asked: list[Node | None] = []

    def export() -> Any:
        given = dict(zip(inputs, _structs([*inputs.values()]), strict=True))
        held = {name: _struct(a.shape, a.dtype) for name, a in state.items()}
        made = jax.export.export(jax.jit(fn), platforms=platforms)(given, held)
        return made, bytes(made.serialize(vjp_order=gradients))

    try:
        with jax.enable_x64(not single):
            made, data = having(CALLED, asked, _without_folders, export)
    except GraphGradError:
        raise
    except Exception as error:  # of JAX, which has one for every reason
        raise ExportError(_host_calls(asked) if asked else _refusal(error)) from error
    wide = [a for a in (*made.in_avals, *made.out_avals) if a.dtype.name[-2:] in ("64", "28")]
    about = {
        "platforms": [*made.platforms],
        "64 bits": any(a.dtype.name != "complex64" for a in wide),
        "made_by": f"jax {jax.__version__}, calling convention {made.calling_convention_version}",
    }
    return Exported(data, about)


def _without_folders(export: Callable[[], Any]) -> Any:
    """What it exports with the lines of nodes, and no paths of this machine."""
    wanted = {
        "jax_include_full_tracebacks_in_locations": False,
        "jax_hlo_source_file_canonicalization_regex": ".*",
    }
    before = {name: getattr(_config, name) for name in wanted}
    try:
        for name, value in wanted.items():
            _config.update(name, value)
        return export()
    finally:
        for name, value in before.items():
            _config.update(name, value)


def _host_calls(asked: Sequence[Node | None]) -> str:
    nodes = dict.fromkeys(asked)
    rows = "".join(f"\n  {n.name} = {n.op!r}, built at {n.where}" for n in nodes if n is not None)
    return (
        f"a file of StableHLO cannot call the host, as these do:{rows}\n"
        "Compute them outside and feed the results, or use gg.export_numpy."
    )


def _refusal(error: Exception) -> str:
    said = str(error).partition("\n")[0]
    notes = getattr(error, "__notes__", ())
    where = "".join(f"\n{note}" for note in notes if note.startswith("while running"))
    return (
        f"JAX cannot export it: {said}{where}\n"
        "If the error is about an unknown length, give the length, as in shapes={x: (32, 64)}; "
        "lengths of one name, shapes={x: ('n', 64), y: ('n', 8)}, are equal."
    )


def _structs(types: Sequence[TensorType]) -> list[Any]:
    """Types as JAX has them; a length keeps its name, if JAX can have it."""
    shapes, _ = symbolic_shapes(types, _is_reserved)
    return [_struct(shape, t.dtype) for shape, t in zip(shapes, types, strict=True)]


def _is_reserved(name: str) -> bool:
    return name in RESERVED or re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) is None


def loaded(program: bytes, names: Sequence[str], wide: bool) -> Callable[..., Any]:
    """(inputs, state) -> (outputs, state), of such bytes; ValueError for others."""
    function: Any = jax.export.deserialize(bytearray(program))

    def call(inputs: Any = (), state: Mapping[str, Any] | None = None) -> Any:
        """(inputs, state) -> (outputs, state)."""
        if wide and not has_64_bits():
            raise DTypeError(
                "this program takes numbers of 64 bits, and JAX has them off: "
                '_config.update("jax_enable_x64", True), before arrays are made'
            )
        return function.call(_by_name(names, inputs), dict(state or {}))

    return call


def _by_name(names: Sequence[str], inputs: Any) -> dict[str, Any]:
    """Inputs that were given by name, in order, or as the only one."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    given = inputs if isinstance(inputs, list | tuple) else [inputs]
    if len(given) != len(names):
        raise TypeError(f"takes {len(names)} arrays ({', '.join(names)}), got {len(given)}")
    return dict(zip(names, given, strict=True))
