"""Values of variables by name, in files that other programs read: safetensors and npz."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..base.errors import DTypeError, FileError, GraphFormatError, GraphGradError
from ..base.kinds import bfloat16, is_bfloat16, kind_of
from ..base.lazy import lazy_module
from ..ir.graph import Graph
from ..ir.state import State
from ..ir.types import Array, as_dtype
from .atomic import write_atomically
from .regular import check_regular

__all__ = ["export_weights", "import_weights", "write_npz"]

Values = dict[str, Array]
_safetensors: Any = lazy_module("safetensors")
_of_numpy: Any = lazy_module("safetensors.numpy")


def export_weights(path: str | os.PathLike[str], state: State | Mapping[str, Any]) -> None:
    """Write all values of a state by name, into a file that other programs read.

    The file is there as a whole or not at all, and has the same bytes for the same values.

    Parameters:
        path: ending in `.safetensors`, which needs the package of this name, or in `.npz`.
        state: a State, such as `graph.state` or `session.state`, or {name: array}.

    Returns: nothing.

    Raises: ValueError for an unsupported suffix; TypeError for an unsupported path or state;
    DTypeError for non-numeric input, and for dtypes that the format does not have; StateError for a
    state that knows no graph; GraphGradError where safetensors is not installed.

    Source: [Hugging Face, safetensors, "Format"]; [NumPy, numpy.lib.format].

    >>> import tempfile
    >>> with gg.Graph() as g, tempfile.TemporaryDirectory() as folder:
    ...     w = gg.variable([1.0, 2.0], name="w")
    ...     gg.export_weights(f"{folder}/weights.npz", g.state)
    ...     gg.import_weights(f"{folder}/weights.npz")
    {'w': array([1., 2.])}
    """
    write, _ = _format(path)
    values = state.as_dict() if isinstance(state, State) else state
    if not isinstance(values, Mapping):
        hint = " Pass graph.state." if isinstance(state, Graph) else ""
        raise TypeError(f"export_weights takes a State or {{name: array}}, got {state!r}.{hint}")
    arrays = {_name(name): _array(name, value) for name, value in values.items()}
    write_atomically(Path(path), lambda file: write(file, arrays))


def import_weights(path: str | os.PathLike[str]) -> Values:
    """The arrays of a file by name, for `state.load`. Nothing in the file is run.

    Parameters: path: of a file in the format that its suffix says, `.safetensors` or `.npz`, by
    whomever it was written.

    Returns: {name: array}, in the order of the file, or of the names.

    Raises: ValueError for an unsupported suffix; GraphFormatError for a file that is broken, or
    holds objects; GraphGradError where safetensors is not installed; OSError where it cannot be
    read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gg.export_weights(f"{folder}/weights.npz", {"w": [1.0, 2.0]})
    ...     gg.import_weights(f"{folder}/weights.npz")
    {'w': array([1., 2.])}
    """
    _, read = _format(path)
    try:
        arrays: Values = read(Path(path))
    except FileError as error:
        raise FileError(f"{os.fspath(path)} cannot be read: {error}") from None
    except (OSError, GraphGradError):
        raise
    except Exception as error:  # the readers of NumPy and safetensors raise what they like
        raise GraphFormatError(f"{os.fspath(path)} cannot be read: {error}") from error
    return arrays


KINDS = {
    "BOOL": "bool",
    **{f"{letter}{8 * n}": f"{letter.lower()}{n}" for letter in "IUF" for n in (1, 2, 4, 8)},
    "C64": "c8",
}
"""The dtypes of safetensors that NumPy has."""


def _write_safetensors(file: IO[bytes], arrays: Values) -> None:
    for name, array in arrays.items():
        if array.dtype.char in "DgG":
            raise DTypeError(f"{name}: safetensors has no {array.dtype}; write an .npz")
    _needed()
    file.write(_of_numpy.save({n: np.asarray(a, order="C") for n, a in arrays.items()}))


def _read_safetensors(path: Path) -> Values:
    arrays: Values = {}
    package = _needed()
    check_regular(path)
    for name, part in sorted(package.deserialize(path.read_bytes())):
        dtype = bfloat16() if part["dtype"] == "BF16" else np.dtype(KINDS[part["dtype"]])
        arrays[name] = np.frombuffer(part["data"], dtype).reshape(part["shape"]).copy()
    return arrays


def _needed() -> Any:
    if _safetensors is None:
        raise GraphGradError(
            "files that end in .safetensors need safetensors: pip install 'graphgrad[safetensors]'"
        )
    return _safetensors


def write_npz(file: IO[bytes], arrays: Values) -> None:
    """As np.savez, for any names."""
    for name, array in arrays.items():
        if is_bfloat16(array.dtype):
            raise DTypeError(f"{name}: .npz has no bfloat16; write .safetensors, or cast it")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _read_npz(path: Path) -> Values:
    """As np.load, which cannot tell `a` from `a.npy`."""
    arrays: Values = {}
    check_regular(path)
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            name = member.removesuffix(".npy")
            if name in arrays:
                raise GraphFormatError(f"{path} has two arrays named {name!r}")
            with archive.open(member) as data:
                arrays[name] = np.lib.format.read_array(data, allow_pickle=False)
    return arrays


FORMATS: dict[str, tuple[Callable[[IO[bytes], Values], None], Callable[[Path], Values]]] = {
    ".safetensors": (_write_safetensors, _read_safetensors),
    ".npz": (write_npz, _read_npz),
}


def _format(path: str | os.PathLike[str]) -> Any:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            "export_weights(path, state) and import_weights(path) take the path of the file first, "
            f"got {path!r}"
        )
    suffix = Path(path).suffix
    if suffix not in FORMATS:
        raise ValueError(f"weights are in files that end in {' or '.join(FORMATS)}, got {path!r}")
    return FORMATS[suffix]


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"values are named by strings, got {name!r}")
    return name


def _array(name: str, value: Any) -> Array:
    array = np.asarray(value)
    if kind_of(array.dtype) not in "biufc":
        raise DTypeError(f"{name}: {array.dtype} is not a dtype of numbers")
    return array.astype(as_dtype(array.dtype), copy=False)
