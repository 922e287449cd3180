"""Compiled functions as programs of XLA in a file, which needs JAX alone, and back."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ..base.errors import ExportError, FileError, ShapeError, did_you_mean
from ..base.kinds import is_bfloat16
from ..base.solving import Axis, solved
from ..base.tree import tree_map
from ..base.words import visible
from ..compiled import CompiledFunction
from ..files.atomic import write_atomically
from ..files.regular import check_regular
from ..files.weights import write_npz
from ..ir.node import Tensor
from ..ir.types import Array, Dim, DType, as_dtype, as_shape, compatible, sized, tensor_type
from ..lower.narrow import narrow_dtype
from .jax_functions import as_jax, calls, number_of_gradients
from .states import is_single, state_tree

__all__ = ["StableHlo", "export_stablehlo", "load_stablehlo"]

FORMAT, VERSION = "graphgrad stablehlo", 1
PLATFORMS = "cpu", "cuda", "rocm", "tpu"
ABOUT, FUNCTION, STATE = MEMBERS = "about.json", "function.bin", "state.npz"

Shapes = Mapping[Any, Sequence[Dim]]


class StableHlo(NamedTuple):
    """What a file of `export_stablehlo` holds.

    call      (inputs, state) -> (outputs, state): a function of JAX arrays, for `jax.jit`,
              `jax.grad` as often as it was exported for, `gg.interop.from_jax`
    state     {name: array}: what it begins with, the values when it was written
    about     types of inputs, outputs and state, and what wrote it

    >>> import tempfile
    >>> x = gg.placeholder((2,), "float32", name="x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gg.compile(x, gg.exp(x)).export_stablehlo(f"{folder}/exp.zip")
    ...     file = gg.interop.load_stablehlo(f"{folder}/exp.zip")
    >>> file.about["inputs"], file.about["outputs"]
    ({'x': 'float32[2]'}, 'float32[2]')
    """

    call: Any
    state: dict[str, Array]
    about: dict[str, Any]


def export_stablehlo(
    f: CompiledFunction,
    path: str | os.PathLike[str],
    gradients: int = 0,
    *,
    platforms: Sequence[str] | None = None,
    shapes: Shapes | None = None,
    dtype: Any = None,
) -> None:
    """Write a file with what a compiled function computes, for XLA: who runs it needs JAX alone.

    It is what `as_jax` returns, as StableHLO by `jax.export`: overridden gradients are in it,
    random numbers too, and the values of the variables as they are now. `load_stablehlo` reads it;
    so do five lines of Python without graphgrad, which docs/jax.md has. Lengths that are not known
    stay open; JAX takes lengths from 1 on.

    Parameters:
        f: that of `f.export_stablehlo`.
        path: of the file, which is a zip file whatever its name; it replaces what is there.
        gradients: how many times JAX may differentiate it, by the rules. Once more is an error of
            JAX. Each adds the program of a derivative.
        platforms: those that it can run on: "cpu", "cuda", "rocm", "tpu"; None: that of this
            process.
        shapes: {input or its name: shape}, for inputs of which more is known: lengths as numbers,
            or as names; what has one name has one length.
        dtype: "float32" for float64 in single precision, complex128 too, as for `as_jax`.

    Returns: nothing.

    Raises: ExportError, with each node and its line, for what calls the host (functions of SciPy
    that JAX lacks, loops that count trips), for what needs a length that is not known, and for
    outputs in a named tuple; ValueError for another platform; GraphError for Python functions;
    ShapeError for shapes that the inputs cannot have; MissingBackendError without JAX or
    flatbuffers; what `as_jax` raises.

    Source: [OpenXLA, StableHLO, "Compatibility"]; [JAX, jax.export].

    >>> import tempfile
    >>> x, w = gg.placeholder(("N",), name="x"), gg.variable(0.6, name="w")
    >>> with gg.override_gradient(lambda site, dy: dy):
    ...     y = gg.round(w)
    >>> f = gg.compile(x, gg.gradients(gg.sum(x * y), w))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     f.export_stablehlo(f"{folder}/slope.zip")
    ...     file = gg.interop.load_stablehlo(f"{folder}/slope.zip")
    >>> with jax.enable_x64(True):
    ...     file.call({"x": np.ones(3)}, file.state)
    (Array(3., dtype=float64), {'w': Array(0.6, dtype=float64)})
    """
    counted, single = number_of_gradients(gradients), is_single(dtype)
    _check_platforms(platforms)
    _check_structure(f.outputs)
    jax_export = calls("export_stablehlo()", ".jax_export")
    fn, kept = as_jax(f, counted, dtype=dtype), state_tree(f, dtype)
    state = {name: a.astype(_narrowest(a.dtype)) if single else a for name, a in kept.items()}
    wanted = _shapes(f.inputs, shapes or {})
    inputs = {
        name_of(t): tensor_type(shape, _narrowest(t.dtype) if single else t.dtype)
        for t, shape in zip(f.inputs, wanted, strict=True)
    }
    made = jax_export.exported(fn, inputs, state, counted, platforms, single)
    about = {
        "format": FORMAT,
        "version": VERSION,
        "inputs": {name: repr(t) for name, t in inputs.items()},
        "outputs": tree_map(lambda t: None if t is None else repr(t.type), f.outputs),
        "state": {name: [str(a.dtype), *a.shape] for name, a in state.items()},
        "gradients": counted,
        **made.about,
    }
    write_atomically(Path(path), lambda file: _write(file, about, made.program, state))


def _narrowest(dtype: DType) -> DType:
    """What JAX makes of a dtype where it has 64-bit types off."""
    wide = dtype.kind in "iu" and dtype.itemsize == 8
    return np.dtype(f"{dtype.name[:-2]}32") if wide else narrow_dtype(dtype)


def _check_structure(outputs: Any) -> None:
    """ExportError for named tuples, whose classes no file holds."""
    if isinstance(outputs, tuple) and hasattr(outputs, "_fields"):
        raise ExportError(
            f"outputs in a {type(outputs).__name__}: a file cannot store a class; compile it with "
            "a dict"
        )
    if isinstance(outputs, dict | list | tuple):
        for part in outputs.values() if isinstance(outputs, dict) else outputs:
            _check_structure(part)


def name_of(t: Tensor) -> str:
    """What an input is called by."""
    return t.name if t.index else t.node.name


def _shapes(tensors: Sequence[Tensor], given: Shapes) -> list[tuple[Dim, ...]]:
    """The shapes of inputs, with what is said of them; ShapeError for what cannot be."""
    said = {_input(tensors, key): as_shape((*shape,)) for key, shape in given.items()}
    axes: list[Axis] = []
    for t, shape in said.items():
        if not compatible(t.type.shape, shape):
            raise ShapeError(f"{t.node.name!r} ({t.type!r}) cannot have shape {shape}")
        for d, n in zip(t.type.shape, shape, strict=True):
            if isinstance(d, int) and d != n:
                raise ShapeError(f"{t.node.name!r} ({t.type!r}) cannot have shape {shape}")
            axes.append((d, n, f"in the shape of {t.node.name!r}"))
    sizes = solved(axes, exact=True)
    return [said.get(t, sized(t.type.shape, sizes)) for t in tensors]


def _input(tensors: Sequence[Tensor], key: Any) -> Tensor:
    for t in tensors:
        if t is key or (isinstance(key, str) and key in (t.name, name_of(t))):
            return t
    names = ", ".join(map(name_of, tensors))
    raise ShapeError(
        f"the keys of shapes= are inputs or their names; no input is {key!r}. There are: {names}"
    )


def _write(file: IO[bytes], about: dict[str, Any], program: bytes, state: dict[str, Array]) -> None:
    """The members, as they are, of one time."""
    values = io.BytesIO()
    write_npz(values, {n: a.view("u2") if is_bfloat16(a.dtype) else a for n, a in state.items()})
    text = json.dumps(about, indent=1).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in zip(MEMBERS, (text, program, values.getvalue()), strict=True):
            archive.writestr(zipfile.ZipInfo(name), data)


def load_stablehlo(path: str | os.PathLike[str]) -> StableHlo:
    """Read what `export_stablehlo` wrote.

    What it computes is run by XLA: load files of those whom you trust.

    Parameters: path: of the file.

    Returns: a StableHlo. Its `call` takes (inputs, state): inputs by name, in a list in order, or
    the only one, of the dtypes that were written; and returns (outputs, state).

    Raises: FileError for input that is not such a file; MissingBackendError without JAX or
    flatbuffers; OSError where it cannot be read. Called, DTypeError where JAX has 64-bit types off
    and the program takes them, and what JAX raises for other types.

    >>> import tempfile
    >>> w = gg.variable([1.0, 2.0], "float32", name="w")
    >>> f = gg.compile([], [], updates={w: 2.0 * w})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     f.export_stablehlo(f"{folder}/step.zip")
    ...     file = gg.interop.load_stablehlo(f"{folder}/step.zip")
    >>> file.call([], file.state)
    ([], {'w': Array([2., 4.], dtype=float32)})
    """
    jax_export = calls("load_stablehlo()", ".jax_export")
    try:
        check_regular(path)
        with zipfile.ZipFile(path) as archive:
            if tuple(archive.namelist()) != MEMBERS:
                raise FileError(f"its members are not {', '.join(MEMBERS)}")
            text, program, values = [archive.read(name) for name in MEMBERS]
        about = _about(json.loads(text))
        state = _state(values, about["state"])
        call = jax_export.loaded(program, list(about["inputs"]), about["64 bits"])
    except OSError:
        raise
    except Exception as error:  # those who read zip files, arrays, programs raise what they like
        raise FileError(f"{visible(os.fspath(path))}: {error}") from error
    return StableHlo(call, state, about)


def _check_platforms(platforms: Sequence[str] | None) -> None:
    if isinstance(platforms, str):
        raise TypeError(f"platforms is a list of names, got {platforms!r}; write [{platforms!r}]")
    for name in platforms or ():
        if name not in PLATFORMS:
            hint = did_you_mean(str(name), PLATFORMS)
            raise ValueError(
                f"platforms are of {', '.join(PLATFORMS)}, got {name!r}. {hint}".rstrip()
            )


def _about(about: Any) -> dict[str, Any]:
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError("it is not a file of export_stablehlo")
    if about.get("version") != VERSION:
        raise FileError(
            f"it has version {about.get('version')!r:.20}, this graphgrad reads version {VERSION}"
        )
    return about


def _state(values: bytes, types: Mapping[str, Sequence[Any]]) -> dict[str, Array]:
    """The arrays by name; those of bfloat16 are stored as words."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(values)) as archive:
        for name, (dtype, *shape) in types.items():
            with archive.open(f"{name}.npy") as data:
                array = np.lib.format.read_array(data, allow_pickle=False)
            wanted = as_dtype(dtype)
            arrays[name] = array.view(wanted) if is_bfloat16(wanted) else array
            if (arrays[name].dtype, [*arrays[name].shape]) != (wanted, shape):
                raise FileError(f"{name}: is {array.dtype}{[*array.shape]}, not {dtype}{shape}")
    return arrays


CompiledFunction.export_stablehlo = export_stablehlo  # type: ignore[method-assign, assignment]
