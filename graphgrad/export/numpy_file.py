"""A compiled function as a Python file that needs NumPy alone."""

from __future__ import annotations

import ast
import builtins
import hashlib
import keyword
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..base.errors import ExportError, counted
from ..base.kinds import is_bfloat16
from ..compiled import CompiledFunction
from ..files.atomic import write_atomically
from ..files.weights import write_npz
from ..ir.build import apply, build
from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ir.op import Op, Types
from ..ir.program import Program
from ..ir.types import Array, TensorType, tensor_type
from ..lower.equated import equated, words
from ..lower.widen import widen
from ..ops.base import Constant, Full
from ..ops.control import Cond, Scan, While
from ..ops.per_example import PerExample
from ..ops.python_function import PyFunction
from ..ops.random.keys import draws_keys
from ..ops.sources import Placeholder
from . import runtime
from .calling import arguments, input_names, is_operator, kernel_of
from .layout import docstring, wrapped
from .literals import array_text, dtype_name, literal
from .naming import (
    OWN_NAMES,
    base_name,
    check_dtype,
    comment_of,
    identifier,
    key_text,
    snake,
    sorted_keys,
    tuple_text,
)
from .open_lengths import FileLengths, names_read
from .specialise import Helpers, Specialised, specialised
from .syntax import Clash, Refused, has_own_names, parsed, substituted

__all__ = ["export_numpy"]

SMALL = 16
"""Elements; larger arrays go into the file beside."""

RUNS = "/runs"
"""The key of a state under which runs are counted: no variable can have this name."""


def export_numpy(
    f: CompiledFunction, path: str | os.PathLike[str], *, name: str | None = None
) -> None:
    """Write a Python file that computes what a compiled function does, and needs NumPy alone.

    Overridden gradients are in it, as all else: it has the program that `f` runs, line by line,
    under the names that its tensors have, with the lines of the model as comments. The kernels are
    those of the NumPy backend, for what is known of their inputs. Arrays of more than 16 elements
    are in a file beside, `step.arrays.npz` for `step.py`; another file of that name is an
    ImportError there. What it computes agrees with `f` to rounding:
    LLVM and JAX have other functions for some ops.

    A function that reads no variable becomes `step(x, y)`. One that reads variables becomes
    `step(x, y, state=STATE)`: STATE is {name: array} with the values that they have now. One that
    writes variables, or draws random numbers without a seed, becomes `step(x, y, state)`, and
    returns the outputs and the next state, which starts from `STATE` too; `state["/runs"]` counts
    the runs for random numbers. No input is written to, and no output shares memory with one.

    Parameters:
        f: what `compile` returned.
        path: of the file, ending in `.py`; it and the file beside replace what is there. The bytes
            depend on nothing but the program and the values.
        name: that of the function; None: that of the file.

    Returns: nothing.

    Raises: ExportError that lists every node whose kernel needs more than NumPy (SciPy, a Python
    function of the user), with where it was built; nothing is written then. TypeError for an
    unknown kind of function; ValueError for a path or name that Python cannot import.

    >>> import tempfile, runpy
    >>> x = gg.placeholder((), name="x")
    >>> f = gg.compile(x, gg.gradients(x**3, x))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gg.export_numpy(f, f"{folder}/slope.py")
    ...     runpy.run_path(f"{folder}/slope.py")["slope"](2.0)
    array(12.)
    """
    if not isinstance(f, CompiledFunction):
        raise TypeError(f"export_numpy() takes what gg.compile returns, got {f!r}")
    path = Path(path)
    name = path.stem if name is None else name
    if path.suffix != ".py" or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(
            "a module needs a file that ends in .py and a name that is an identifier, got "
            f"{path.name!r}, name={name!r}"
        )
    file, text = _written(f, name)
    if file.arrays:
        beside = path.with_suffix(BESIDE)
        write_atomically(beside, lambda out: write_npz(out, file.arrays))
        with open(beside, "rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        text = text.replace(f'!= "{UNKNOWN}"', f'!= "{digest}"', 1)
    write_atomically(path, lambda out: write_bytes(out, text))


def _written(f: CompiledFunction, name: str) -> tuple[NumpyFile, str]:
    """The file and its text, with names of lengths that mean nothing else in any kernel."""
    taken: set[str] = set()
    while True:
        file = NumpyFile(f, name, taken)
        try:
            return file, file.text()
        except Clash as clash:
            taken |= clash.names


def write_bytes(out: IO[bytes], text: str) -> None:
    """The text, as bytes."""
    out.write(text.encode())


BESIDE = ".arrays.npz"
UNKNOWN = 64 * "0"
"""Stands for the digest of the file beside, until that is written."""

LOADING = f"""
_beside = pathlib.Path(__file__).with_suffix({BESIDE!r})
with open(_beside, "rb") as _file:
    _digest = hashlib.file_digest(_file, "sha256").hexdigest()
if _digest != "{UNKNOWN}":
    raise ImportError(f"{{_beside}} is not the file that was written with {{__file__}}")
with np.load(_beside) as _file:
    ARRAYS = dict(_file)
"""


class NumpyFile:
    """The text of one file, and the arrays beside it.

    arrays  name -> array, for the .npz
    refused  what cannot be written: lines of the error
    lengths  the open ones
    needs    function of a kernel -> the lengths that it is given
    """

    def __init__(self, f: CompiledFunction, name: str, taken: Iterable[str] = ()) -> None:
        self.f = f
        self.name = name
        self.arrays: dict[str, Array] = {}
        self.refused: dict[str, None] = {}
        self._numbers: dict[str, int] = {}
        self._names = {*dir(builtins), *keyword.kwlist, *OWN_NAMES, name}
        self._inputs = {t: self.fresh(identifier(t.node.name)) for t in f.inputs}
        self._names.update(taken)
        self.lengths = FileLengths(f.program.inputs, self.fresh)
        self.given = frozenset(f.inputs)
        self._constants: list[str] = []
        self._kept: dict[Any, str] = {}
        self._bodies: list[str] = []
        self._made: dict[Any, Specialised | str] = {}
        self.needs: dict[str, list[str]] = {}
        self._helpers = Helpers(self.fresh, self.keep, self.constant, self.lengths.words)

    def text(self) -> str:
        """All of the file; ExportError."""
        main = self._main()
        state = self._state_text()
        if self.refused:
            rows = "".join(f"\n  {row}" for row in self.refused)
            raise ExportError(
                f"{counted(len(self.refused), 'op')} cannot be written for NumPy alone:{rows}\n"
                "Compute these outside, and feed them; or use ops that need neither SciPy nor "
                "Python functions of your own."
            )
        parts = [self._head(), *self._constants_text(), *state, main, *self._bodies]
        return wrapped("\n\n\n".join([*parts, *self._helpers.texts.values()]) + "\n")

    def fresh(self, base: str) -> str:
        """A name that nothing in the file has yet."""
        name = base
        while name in self._names:
            self._numbers[base] = self._numbers.get(base, 1) + 1
            name = f"{base}_{self._numbers[base]}"
        self._names.add(name)
        return name

    def keep(self, hint: str, array: Array) -> str:
        """What stands for an array: a name of the module, or a member of ARRAYS."""
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self._kept:
            name = identifier(hint).upper()
            self._kept[key] = self.constant(name, self._array_text(self.fresh(name), array))
        return self._kept[key]

    def constant(self, hint: str, text: str) -> str:
        """The name of a constant of the module."""
        name = self.fresh(identifier(hint).upper())
        self._constants.append(f"{name} = {text}")
        return name

    def _array_text(self, name: str, array: Array) -> str:
        """An expression for an array, or its place in the file beside."""
        check_dtype(array.dtype)
        text = array_text(array, SMALL)
        if text is None:
            while name in self.arrays:  # a variable may have any name
                name += "_"
            self.arrays[name] = array
            text = f"ARRAYS[{literal(name)}]"
        return text

    # --- the parts ------------------------------------------------------------------------------

    def _head(self) -> str:
        lines = [f'"""{self.name}, written by graphgrad.export_numpy. It needs NumPy alone.']
        groups = {"Inputs": [t.node for t in self.f.inputs], "Variables": self._variables()}
        for what, nodes in groups.items():
            rows = [f"    {n.name}: {n.outputs[0].type!r}" for n in nodes]
            lines += ["", f"{what}:", *rows] if rows else []
        lines += ['"""', ""]
        loading = ["hashlib", "pathlib"] if self.arrays else []
        modules = sorted({*self._helpers.modules, *loading})
        lines += [*(f"import {m}" for m in modules), *([""] if modules else [])]
        return "\n".join([*lines, "import numpy as np"]).replace("\\", "\\\\")

    def _constants_text(self) -> list[str]:
        rows = [*([LOADING.strip()] if self.arrays else []), *self._constants]
        return ["\n".join(rows)] if rows else []

    def _variables(self) -> list[Node]:
        """Those that are read or written."""
        return list(dict.fromkeys((*self.f._access.read, *self.f._access.written)))

    def _state_text(self) -> list[str]:
        f, rows = self.f, []
        for v, value in zip(
            self._variables(), f._access.state.read(self._variables()), strict=True
        ):
            rows.append(f"    {literal(v.name)}: {self._value_of(v, value)},")
        if f._access.counted:
            rows.append(f"    {literal(RUNS)}: {f._access.state.runs},")
        return ["\n".join(["STATE = {", *rows, "}"])] if rows else []

    def _value_of(self, v: Node, value: Array) -> str:
        try:
            return self._array_text(v.name, value)
        except Refused as error:
            self.refuse(v, error)
            return "None"

    def _main(self) -> str:
        f, program = self.f, _widened(self.f.program)
        named = dict(self._inputs)
        params = list(named.values())
        lines = ["    lengths = {}"] if f.inputs or f._access.read else []
        for t in program.inputs:
            self._check(t)
        for t, name in named.items():
            lines.append(f"    {name} = {self._given(t.node.name, name, t)}")
        for v, t in zip(f._access.read, program.inputs[len(f.inputs) :], strict=True):
            name = named[t] = self.fresh(identifier(v.name))
            lines.append(f"    {name} = {self._given(v.name, f'state[{literal(v.name)}]', t)}")
        if f._access.counted:
            lines.append(f"    run = state[{literal(RUNS)}]")
        if self._variables() or f._access.counted:
            params.append("state" if f._access.changes else "state=STATE")
        body = FunctionText(self, program, named)
        listing = body.lines()
        lines += self._lengths_text(listing, {t: (t.node.name, named[t]) for t in program.inputs})
        lines += listing
        results = body.owned(program.outputs)
        count = len(program.outputs) - len(f._access.written)
        expression = self._tree(f.outputs, iter(results[:count]))
        if f._access.changes:
            new = [f"{literal(v.name)}: {r}" for v, r in zip(f._access.written, results[count:])]
            new += [f"{literal(RUNS)}: run + 1"] * f._access.counted
            rows = [f"        {row}," for row in ("**state", *new)]
            lines += ["", "    new_state = {", *rows, "    }"]
            expression = f"{expression}, new_state"
        head = ['@np.errstate(all="ignore")', f"def {self.name}({', '.join(params)}):"]
        return "\n".join([*head, *lines, f"    return {expression}"])

    def _check(self, t: Tensor) -> None:
        try:
            check_dtype(t.dtype)
        except Refused as error:
            self.refuse(t.node, error)

    def _given(self, label: str, value: str, t: Tensor) -> str:
        given = self._helpers.verbatim(runtime.given)
        shape = self.lengths.promised(t)
        return f"{given}({literal(label)}, {value}, {dtype_name(t.dtype)}, {shape}, lengths)"

    def _lengths_text(
        self, listing: Sequence[str], labels: Mapping[Tensor, tuple[str, str]]
    ) -> list[str]:
        """What open lengths are, of those that are read; checks of what is known of them."""
        stated = self.f._request.feeds.assumptions
        checks = list(self.lengths.assumed(stated))
        read = names_read("\n".join(["if True:", "    pass", *listing])) | names_read(
            "\n".join(checks)
        )
        steps = self.lengths.lines(read, labels, lambda n: self._helpers.verbatim(vars(runtime)[n]))
        return [f"    {line}" for line in (*steps, *checks)]

    def row_type(self, promise: TensorType) -> str:
        """The dtype and shape of a row; lengths that are not known are 0."""
        return f"({dtype_name(promise.dtype)}, {self.lengths.shape_text(promise.shape)})"

    def _tree(self, tree: Any, results: Any) -> str:
        """The structure of the outputs."""
        if tree is None:
            return "None"
        if isinstance(tree, dict):
            rows = {k: self._tree(tree[k], results) for k in sorted_keys(tree)}
            return "{" + ", ".join(f"{key_text(k)}: {rows[k]}" for k in tree) + "}"
        if not isinstance(tree, list | tuple):
            return str(next(results))
        parts = [self._tree(child, results) for child in tree]
        if hasattr(tree, "_fields"):
            return f"{self._record(type(tree))}({', '.join(parts)})"
        if isinstance(tree, list):
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"

    def _record(self, cls: Any) -> str:
        if cls not in self._kept:
            self._helpers.modules.add("collections")
            name = self._kept[cls] = self.fresh(cls.__name__)
            made = f"collections.namedtuple({literal(name)}, {literal(cls._fields)})"
            self._constants.append(f"{name} = {made}")
        return self._kept[cls]

    # --- nodes ----------------------------------------------------------------------------------

    def function(self, base: str, program: Program) -> str:
        """A function that runs a body, and is given what that takes."""
        name, first = self.function_of(base, program)
        if not first:
            return name
        self._helpers.modules.add("functools")
        return f"functools.partial({', '.join([name, *first])})"

    def function_of(self, base: str, program: Program) -> tuple[str, list[str]]:
        """The name of a function that runs a body, and what it is given first."""
        program = _widened(program)
        name = self.fresh(f"_{base}")
        named = {t: self.fresh(identifier(t.node.name)) for t in program.inputs}
        block = FunctionText(self, program, named)
        lines = block.lines()
        results = "".join(f"{block.values[t]}, " for t in program.outputs)
        rows = [*lines, f"    return ({results.rstrip()})"]
        read = names_read("\n".join(["def f():", *rows])) & self.lengths.words
        first = [*(["run"] if draws_keys(program) else []), *sorted(read)]
        params = ", ".join([*first, *named.values()])
        self._bodies.append("\n".join([f"def {name}({params}):", *rows]))
        return name, first

    def kernel(self, node: Node) -> Specialised | str:
        """What a node's kernel is: an expression, or the name of a function; Refused."""
        if isinstance(node.op, PyFunction):
            raise Refused("it calls a Python function")
        types = tuple(t.type for t in node.inputs)
        key = (node.op, types)
        cached = self._made.get(key)
        if cached is None:
            cached = self._made[key] = self._specialised(node.op, types)
        return cached

    def _specialised(self, op: Op, types: Types) -> Specialised | str:
        known = self.lengths.known_when_run(op)
        made = specialised(kernel_of(op), arguments(known, types), self._helpers)
        expression = made.expression
        if expression is not None and not has_own_names(expression):
            return made
        doc = docstring((type(op).__doc__ or "").split("\n\n")[0])
        if made.runs:
            made.params.insert(0, "run")
        name = self._helpers.define("_" + snake(op.type), made, doc)
        self.needs[name] = [f"{length}={length}" for length in made.lengths]
        return name

    def refuse(self, node: Node, error: Refused) -> None:
        self.refused[f"{node.name} = {node.op!r}, built at {node.where}: {error}"] = None


def _widened(program: Program) -> Program:
    """With float16 added up in float32; what has bfloat16 is refused, as it was built."""
    tensors = [t for n in program.nodes for t in (*n.inputs, *n.outputs)]
    return program if any(is_bfloat16(t.dtype) for t in tensors) else widen(program)


class FunctionText:
    """The lines of one function: those of a program, or of a body in it.

    values  tensor -> its name, or an expression
    """

    def __init__(self, file: NumpyFile, program: Program, values: dict[Tensor, str]) -> None:
        self.file = file
        self.program = program
        self.values = dict(values)
        self._weak: dict[Tensor, str] = {}
        self._owned: set[Tensor] = set()
        self._last = ""

    def lines(self) -> list[str]:
        """A line for each node, with where it is from above."""
        listing: list[str] = []
        for node in self.program.nodes:
            try:
                lines = [*self._equal_lengths(node), *self._node(node)]
            except Refused as error:
                self.file.refuse(node, error)
                for t in node.outputs:
                    self.values[t] = "None"
                continue
            comment = comment_of(node)
            if lines and comment != self._last:
                listing += ["", *([f"    # {comment}"] if comment else [])]
                self._last = comment
            listing += [f"    {line}" for line in lines]
        return listing

    def _equal_lengths(self, node: Node) -> list[str]:
        """Checks of the lengths that a node counts as equal, where the inputs tell them."""
        file = self.file
        rows = []
        for pair in equated(node.op, [t.type for t in node.inputs]):
            if (pair.a.names | pair.b.names) <= file.lengths.names.keys():
                check = file._helpers.verbatim(runtime.equal_lengths)
                said = literal(f"{node.name}, built at {node.where}: {words(pair)}")
                rows.append(f"{check}({said}, {', '.join(map(file.lengths.text, pair))})")
        return rows

    def owned(self, tensors: Iterable[Tensor]) -> list[str]:
        """Expressions for arrays that are the caller's own."""
        seen: set[Tensor] = set()
        expressions = []
        for t in tensors:
            fresh = t in self._owned and t not in seen
            seen.add(t)
            value = self.values[t]
            expressions.append(value if fresh and t.ndim else f"np.{'as' * fresh}array({value})")
        return expressions

    def _node(self, node: Node) -> list[str]:
        op = node.op
        for t in node.outputs:
            check_dtype(t.dtype)
        if isinstance(op, Constant):
            return self._constant(node, op.value)
        if isinstance(op, Full) and not node.outputs[0].shape:
            return self._constant(node, np.array(op.value, op.dtype))
        if isinstance(op, Cond):
            return self._cond(node, op)
        if isinstance(op, Scan):
            return self._scan(node, op)
        if isinstance(op, While):
            return self._while(node, op)
        if isinstance(op, PerExample):
            return self._per_example(node, op)
        return self._applied(node)

    def _constant(self, node: Node, value: Array) -> list[str]:
        (t,) = node.outputs
        if value.ndim == 0:
            self.values[t] = literal(value[()])
            if value.dtype.kind in "fi" and np.isfinite(value):
                self._weak[t] = self.values[t].partition("(")[2][:-1]
            return []
        self.values[t] = self.file.keep(base_name(node), value)
        return []

    def _applied(self, node: Node) -> list[str]:
        made = self.file.kernel(node)
        if isinstance(made, str):
            runs = ["run"] if node.type == "RandomKey" else []
            args = [*runs, *map(self._array, node.inputs), *self.file.needs[made]]
            return self._set(node, f"{made}({', '.join(args)})")
        expression = made.expression
        assert expression is not None
        places = input_names(node.op, len(node.inputs))
        names = {
            n: self._operand(t, node, expression) for n, t in zip(places, node.inputs, strict=True)
        }
        parts = {n: parsed(text) for n, text in names.items()}
        text = ast.unparse(substituted(expression, parts))
        if isinstance(expression, ast.Name):  # it hands on what it is given
            self.values[node.outputs[0]] = text
            return []
        return self._set(node, text)

    def _array(self, t: Tensor) -> str:
        """What a function is given: an array, where NumPy may have made a number."""
        value = self.values[t]
        return value if t.ndim or t in self.file.given else f"np.asarray({value})"

    def _operand(self, t: Tensor, node: Node, expression: ast.expr) -> str:
        """A value in an expression; `2.0` for `np.float64(2.0)` where both are the same."""
        others = [o for o in node.inputs if o not in self._weak]
        alike = bool(others) and all(o.dtype == t.dtype for o in others)
        weak = t in self._weak and alike and is_operator(expression)
        return self._weak[t] if weak else self.values[t]

    def _set(self, node: Node, expression: str) -> list[str]:
        names = self._named(node)
        if not node.op.memory.view:
            self._owned.update(node.outputs)
        return [f"{', '.join(names)} = {expression}"]

    def _named(self, node: Node) -> list[str]:
        base = base_name(node)
        for t in node.outputs:
            self.values[t] = self.file.fresh(base)
        return [self.values[t] for t in node.outputs]

    # --- control flow ---------------------------------------------------------------------------

    def _cond(self, node: Node, op: Cond) -> list[str]:
        pred, *rest = [self.values[t] for t in node.inputs]
        base = base_name(node)
        calls = []
        for program, reads, which in zip(op.programs, op.reads, op.body_names, strict=True):
            body, first = self.file.function_of(f"{base}_{which}", program)
            calls.append(f"{body}({', '.join([*first, *(rest[i] for i in reads)])})")
        names = "".join(f"{n}, " for n in self._named(node)).rstrip()
        return [
            f"if {pred}:",
            f"    {names} = {calls[0]}",
            "else:",
            f"    {names} = {calls[1]}",
        ]

    def _scan(self, node: Node, op: Scan) -> list[str]:
        (body,) = op.programs
        carries, stacks, constants = op.parts([self.values[t] for t in node.inputs])
        made = [self.file.row_type(t.type) for t in body.outputs[op.carries :]]
        taken = [self.file.row_type(body.inputs[i].type) for i in op.history]
        loop = [
            self.file.lengths.text(op.length),
            literal(op.reverse),
            literal(op.history),
            tuple_text(made),
            tuple_text(taken),
        ]
        name = self.file.function(f"{base_name(node)}_body", body)
        return self._loop(node, runtime.scan, [name], carries, stacks, constants, loop)

    def _while(self, node: Node, op: While) -> list[str]:
        values = [self.values[t] for t in node.inputs]
        names = [
            self.file.function(f"{base_name(node)}_{which}", program)
            for which, program in zip(op.body_names, op.programs, strict=True)
        ]
        taken = [self.file.row_type(op.programs[1].inputs[i].type) for i in op.history]
        loop = [literal(op.max_trips), literal(op.history), tuple_text(taken), literal(op.at)]
        carries, constants = values[: op.carries], values[op.carries :]
        return self._loop(node, runtime.while_loop, names, carries, None, constants, loop)

    def _per_example(self, node: Node, op: PerExample) -> list[str]:
        types = [t.type for t in node.inputs]
        one = [of_one(t) if b else t for t, b in zip(types, op.batched, strict=True)]
        body = self.file.function(f"{base_name(node)}_body", alone(op.op, one, node))
        rows = [self.file.row_type(of_one(t.type)) for t in node.outputs]
        name = self.file._helpers.verbatim(runtime.per_example)
        values = tuple_text([self.values[t] for t in node.inputs])
        names = "".join(f"{n}, " for n in self._named(node)).rstrip()
        return [f"{names} = {name}({body}, {values}, {literal(op.batched)}, {tuple_text(rows)})"]

    def _loop(
        self,
        node: Node,
        function: Any,
        bodies: Sequence[str],
        carries: Sequence[str],
        stacks: Sequence[str] | None,
        constants: Sequence[str],
        loop: Sequence[str],
    ) -> list[str]:
        name = self.file._helpers.verbatim(function)
        given = [carries, *([] if stacks is None else [stacks]), constants, loop]
        call = f"{name}({', '.join([*bodies, *map(tuple_text, given)])})"
        names = "".join(f"{n}, " for n in self._named(node)).rstrip()
        return [f"{names} = {call}"]


def of_one(batch: TensorType) -> TensorType:
    return tensor_type(batch.shape[1:], batch.dtype)


def alone(op: Op, types: Sequence[TensorType], node: Node) -> Program:
    """The program of one application of an op, with the line of a node."""
    with Graph():
        xs = [apply(Placeholder(t.shape, t.dtype)) for t in types]
        made = build(op, tuple(xs))
    made.position = node.position
    return Program(xs, made.outputs)
