"""What a file says once and refers to by place: types, ops, source files, arrays."""

from __future__ import annotations

import json
from functools import cache
from pathlib import PurePath
from typing import Any

from ..base.errors import FileError
from ..base.lazy import lazy_module
from ..base.length import Length
from ..ir.op import OP_TYPES, Op
from ..ir.types import Array, TensorType, as_shape, tensor_type
from ..ops.base import Constant
from ..ops.python_function import function_named, name_of_function
from ..ops.sources import Variable
from .arrays import ArrayPool, StoredArrays
from .values import Unwritten, read, written

OURS = __name__.partition(".")[0]
_metadata: Any = lazy_module("importlib.metadata")


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def text_of(value: Any) -> str:
    """The one form of a piece of JSON."""
    return _encode(value)


def entry(table: Any, at: Any, what: str) -> Any:
    """What stands at a place of a list; FileError where there is no such place."""
    if type(at) is not int or not 0 <= at < len(table):
        raise FileError(f"there is no {what} {at!r:.40}; there are {len(table)}")
    return table[at]


class Tables:
    """The tables of a file that is written."""

    def __init__(self, *, full_paths: bool = False) -> None:
        self.arrays = ArrayPool()
        self.types: list[Any] = []
        self.ops: list[Any] = []
        self.files: list[str] = []
        self.packages: dict[str, list[str]] = {}
        self.functions: set[str] = set()
        self.needs: set[str] = set()
        self._full_paths = full_paths
        self._types: dict[TensorType, int] = {}
        self._ops: dict[Op, int] = {}
        self._rows: dict[str, int] = {}
        self._files: dict[str, int] = {}

    def array(self, array: Array) -> Any:
        """What stands for an array."""
        return self.arrays.written(array)

    def type_place(self, type: TensorType) -> int:
        """The place of a type."""
        place = self._types.get(type)
        if place is None:
            place = self._types[type] = len(self.types)
            shape = [str(d) if isinstance(d, Length) else d for d in type.shape]
            self.types.append([type.dtype.name, shape])
        return place

    def function(self, fn: Any) -> str | None:
        """The name that a Python function is registered under."""
        name = name_of_function(fn)
        if name is not None:
            self.functions.add(name)
        return name

    def op(self, op: Op) -> int:
        """The place of an op: equal ops share one, but for variables."""
        place = self._ops.get(op)
        if place is None:
            row = self.row(type(op), op.attrs)
            if isinstance(op, Variable):
                place = len(self.ops)
            else:
                place = self._rows.setdefault(text_of(row), len(self.ops))
            if place == len(self.ops):
                self.ops.append(row)
            self._ops[op] = place
        return place

    def row(self, cls: type[Op], attrs: dict[str, Any]) -> list[Any]:
        """Type, revision and attributes of an op."""
        if OP_TYPES.get(cls.type) is not cls:
            raise Unwritten(f"an op of {cls!r:.80}, which is not the op type {cls.type!r}")
        if not cls.__module__.startswith(f"{OURS}."):
            self.packages[cls.type] = _package(cls.__module__)
        return [cls.type, cls.revision, {k: written(v, self) for k, v in attrs.items()}]

    def line(self, position: tuple[str, int] | None) -> Any:
        """A place in a source file: its number, and the line."""
        if position is None:
            return None
        name, line = position
        file = self._files.get(name)
        if file is None:
            shown = name if self._full_paths else "/".join(PurePath(name).parts[-2:])
            if shown not in self.files:
                self.files.append(shown)
            file = self._files[name] = self.files.index(shown)
        return [file, line]


@cache
def _package(module: str) -> list[str]:
    """Distribution and version of a module that is not graphgrad's; "" where it has none."""
    top = module.partition(".")[0]
    names = _metadata.packages_distributions().get(top, [])
    return [top, *((names[0], _metadata.version(names[0])) if names else ("", ""))]


class StoredTables:
    """The tables of a file that is read."""

    def __init__(
        self, document: dict[str, Any], arrays: StoredArrays, functions: dict[str, Any]
    ) -> None:
        self.packages: dict[str, list[str]] = document["packages"]
        self.files: list[str] = document["files"]
        self._arrays = arrays
        self._functions = functions
        self.types: list[TensorType] = []
        for name, shape in document["types"]:
            if not isinstance(name, str):
                raise FileError(f"{name!r:.40} is not a dtype")
            self.types.append(tensor_type(as_shape(tuple(shape)), name))
        self.ops: list[Op] = []
        for row in document["ops"]:
            self.ops.append(self._op(row))

    def array(self, kind: str, said: Any) -> Array:
        """The array that is written so."""
        return self._arrays.read(kind, said)

    def type_at(self, at: Any) -> TensorType:
        """The type at a place."""
        stored: TensorType = entry(self.types, at, "type")
        return stored

    def op(self, at: Any) -> Op:
        """The op at a place, which was read before."""
        op: Op = entry(self.ops, at, "op")
        return op

    def function(self, name: Any) -> Any:
        """The function that was given or registered under a name, or what says that none is."""
        if not isinstance(name, str):
            raise FileError(f"{name!r:.40} is not a name of a function")
        return self._functions.get(name) or function_named(name)

    def position(self, said: Any) -> tuple[str, int] | None:
        """A place in a source file."""
        if said is None:
            return None
        at, line = said
        name = entry(self.files, at, "source file")
        if not isinstance(name, str) or type(line) is not int:
            raise FileError(f"{said!r:.40} is not a line of a file")
        return name, line

    def op_class(self, name: Any, revision: Any) -> type[Op]:
        """The class of an op type; FileError where it is not here, or older than the file."""
        cls = OP_TYPES.get(name) if isinstance(name, str) else None
        if cls is None:
            module, distribution, wrote = self.packages.get(name, ("", "", ""))
            who = f"{distribution} {wrote}".strip() or module
            hint = (
                f"It belongs to {who}: import {module} first, since loading a file imports nothing"
                if who
                else "The file may have been written by a newer graphgrad"
            )
            raise FileError(f"there is no op type {name!r:.60} here. {hint}")
        if type(revision) is not int or revision > cls.revision:
            raise FileError(
                f"{name} is of revision {revision!r:.20}, but only revisions up to {cls.revision} "
                "are known here: the file was written by a newer version"
            )
        return cls

    def _op(self, row: Any) -> Op:
        name, revision, said = row
        cls = self.op_class(name, revision)
        try:
            return _made(cls, revision, self.attrs(said, cls))
        except Exception as error:
            raise FileError(f"op {len(self.ops)}, {name}: {error}") from error

    def attrs(self, said: dict[str, Any], cls: type[Op]) -> dict[str, Any]:
        """Attributes by name, of an op of this class."""
        self._arrays.any_size = issubclass(cls, Constant | Variable)  # which do not look into them
        return {name: read(value, self) for name, value in said.items()}


def _made(cls: type[Op], revision: int, attrs: dict[str, Any]) -> Op:
    """An op of a revision, which it may have to be translated from."""
    return cls(**attrs) if revision == cls.revision else cls.from_revision(revision, attrs)
