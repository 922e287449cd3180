"""A compiled function as a model of ONNX."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import DTypeError, ExportError, counted
from ..base.flags import truth, truth_if_given
from ..base.tree import flatten, paths, unflatten
from ..compiled import CompiledFunction
from ..files.atomic import write_atomically
from ..ir.graph import restored
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.onnx import NoOnnxForm
from ..ir.program import Program
from ..ir.properties import ModelProperties, properties_of
from ..ir.types import Array, as_dtype
from ..lower.narrow import narrow
from ..lower.widen import widen
from .package import need_onnx
from .quantising.fixed import FixedValues
from .quantising.quantiser import Quantiser, grids_in
from .quantising.wires import prune
from .writing.folding import fold_transposes
from .writing.forms import DOMAIN, Forms, Story
from .writing.kernels import WITHOUT_FLOAT64
from .writing.marks import Marked
from .writing.merging import merge_outputs
from .writing.model import OPSET, BesideWriter, ExternalWeights, check_dtype, made_model
from .writing.older import in_version
from .writing.operators import Operators
from .writing.patterns import FoundOperator, found_in
from .writing.values import OnnxBlock, OnnxCall, OnnxValue
from .writing.whole import patterns_of

__all__ = ["OnnxFile", "Said", "checked_dtype", "export"]

RUNS = "runs"
"""The input that counts the runs, of which draws without a seed make their keys."""

NEXT = "/next"
"""What the name of a variable's new value ends with."""

QDQ = "qdq"
"""The form of integers: between operators of floats, which runtimes make operators of integers."""

OWN = "graphgrad."
"""What the keys of metadata begin with that say how to read what is written here."""

SHORT = 200
"""Characters of what metadata say of an op."""

INSIDE = 1 << 30
"""Bytes of weights that a model may have inside; what has more has a file beside."""


@restored
def export(
    f: CompiledFunction,
    path: str | os.PathLike[str],
    *,
    dtype: Any = None,
    external: bool | None = None,
    marks: bool = False,
    fast_masks: bool = False,
    quantised: str | None = None,
) -> None:
    """Export a compiled function to an ONNX model, including gradients with their rules, and
    updates.

    The model contains the program that `f` runs, in operators of `ai.onnx` (opset 21, IR version
    10); an op that needs several operators is a local function. So any ONNX runtime can run it,
    without automatic differentiation.

    Inputs and outputs have the names of their tensors. A variable that is only read is an
    initializer. A variable that is written is an input `w`, with its current value as the default,
    and an output `w/next`. A function that draws random numbers without a seed has an input `runs`,
    the number of the run, and an output `runs/next`. The metadata of every node say where it was
    built, which node it is the gradient of, and by which rule. Of a graph that was loaded from a
    model, the new one keeps domain, version, description and metadata, and says that graphgrad made
    it.

    Parameters:
        f: what `compile` returned.
        path: of the model.
        dtype: "float32": write every float64 as float32. "float64": keep float64, even if runtimes
            have no kernels for it. None: keep float64 if onnxruntime has kernels for all ops.
        marks: whether to write regions and their rules, for `load`: the program is then written as
            it was built, with a local function for each region, and another one, which is never
            called, for its rule. `f` must not compute gradients; they can be built again after
            loading.
        quantised: "qdq": write tensors quantised by `gg.rules.fake_quantise`, `lsq`, `lsq_plus` and
            `pact` as QuantizeLinear and DequantizeLinear, and weights as integers, so that runtimes
            compute with integers. `f` must be a forward pass in float32. None: write floats.
        external: whether to write weights to a separate file, `model.onnx.data` for `model.onnx`;
            None: if they have more than 1 GiB.
        fast_masks: whether masked derivatives, such as that of ReLU, are products with 0 or 1. This
            is much faster in onnxruntime, but a masked infinite gradient becomes NaN instead of 0.

    Returns: nothing.

    Raises: ExportError that lists every node without an ONNX form, or without an integer form, with
    its line and the reason; nothing is written then. TypeError if f is not a compiled function;
    GraphGradError if the package onnx is not installed.

    Source: [ONNX, "Open Neural Network Exchange Intermediate Representation Specification"].

    >>> import tempfile
    >>> x = gg.placeholder(("N",), "float32", name="x")
    >>> f = gg.compile(x, gg.gradients(gg.sum(gg.tanh(x)), x))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gg.onnx.export(f, f"{folder}/slope.onnx")
    """
    truth_if_given("external", external)
    truth("marks", marks)
    truth("fast_masks", fast_masks)
    if quantised not in (None, QDQ) or (quantised and marks):
        rest = ", and marks=True writes floats" if marks else ""
        raise ExportError(f'quantised is "{QDQ}" or None, got {quantised!r}{rest}')
    need_onnx("gg.onnx.export()")
    if not isinstance(f, CompiledFunction):
        raise TypeError(f"onnx.export() takes what gg.compile returns, got {f!r}")
    path = Path(path)
    file = OnnxFile(f, checked_dtype(dtype), fast_masks=fast_masks)
    if quantised:
        file.write_quantised()
    elif marks:
        file.write_marks()
    else:
        file.write()
    file.save(path, external)


def checked_dtype(dtype: Any) -> str | None:
    """The name of the dtype that floats are written in; ExportError for another."""
    if dtype is None:
        return None
    if as_dtype(dtype) not in (np.dtype("float32"), np.dtype("float64")):
        raise ExportError(f"dtype is float32, float64 or None, got {dtype!r}")
    return as_dtype(dtype).name


class Said(NamedTuple):
    """What a model says beside its program.

    inputs      {placeholder or variable: its name}, of those that are not called as their nodes
    outputs     names of the outputs; none: those that a compiled function says
    notes       {input or output: what the file says of it}
    metadata    of the model
    provenance  whether each node says where it is from
    """

    inputs: Mapping[Node, str] = MappingProxyType({})
    outputs: Sequence[str] = ()
    notes: Mapping[str, str] = MappingProxyType({})
    metadata: Mapping[str, str] = MappingProxyType({})
    provenance: bool = True


def _write_bytes(out: Any, model: Any) -> None:
    out.write(model.SerializeToString(deterministic=True))


class OnnxFile:
    """One model while it is written.

    opset    the version of the operators; fast_masks: as for `export`
    block    the graph
    initial  {input or initializer: its value}
    refused  lines of the error
    """

    def __init__(
        self,
        f: CompiledFunction,
        dtype: str | None,
        said: Said = Said(),  # noqa: B008
        opset: int = OPSET,
        fast_masks: bool = False,
    ) -> None:
        self.f = f
        self.dtype = dtype
        self.said = said
        self.opset = opset
        self.fast_masks = fast_masks
        program = widen(f.program)
        self.program = _narrowed(program) if dtype == "float32" else program
        self.block = OnnxBlock()
        self.forms = Forms(self.block)
        self.initial: dict[str, Array] = {}
        self.properties = properties_of(t.node for t in f._request.results) or ModelProperties()
        own = {k: v for k, v in self.properties.metadata.items() if not k.startswith(OWN)}
        self.metadata = {**own, **said.metadata}
        self.refused: dict[str, None] = {}
        self.marked = Marked(self.forms, story_of, self._refuse)
        self.results: list[str] = []
        self._values: dict[Tensor, OnnxValue] = {}

    def write(self) -> None:
        """The program that runs; ExportError."""
        self._inputs()
        self._named_outputs()
        whole = found_in(self.program, partial(patterns_of, self.opset, self.fast_masks))
        inside = {node for found in whole.values() for node in found.inside}
        for node in self.program.nodes:
            if node in whole:
                self._whole(node, whole[node])
            elif node not in inside:
                self._node(node)
        self._finish()

    def write_marks(self) -> None:
        """What the outputs are, as they were built, with their regions; ExportError."""
        f = self.f
        if f._access.written or f._access.counted or self.dtype == "float32":
            raise ExportError(
                "marks=True writes values as they were built: without updates, without draws that "
                "have no seed, and in the dtypes of the graph"
            )
        variables = [v.outputs[0] for v in f._access.read]
        self.program = Program([*f.inputs, *variables], f._request.results)
        self._inputs()
        self._named_outputs()
        self.marked.write(self.block, self._values, f._request.results, None)
        self._finish()

    def write_quantised(self) -> None:
        """What the outputs are, as it was built, with grids as integers; ExportError."""
        f = self.f
        if f._access.written or f._access.counted:
            raise ExportError(
                "quantised= writes values: without updates, and without draws that have no seed"
            )
        variables = [v.outputs[0] for v in f._access.read]
        program = Program([*f.inputs, *variables], f._request.results)
        derived = next((node for node in program.nodes if node.origin is not None), None)
        if derived is not None:
            raise ExportError(
                f"quantised= writes no gradients, and the outputs need {derived.name}, built at "
                f"{derived.where} of {derived.origin}: compile only the outputs of the network"
            )
        if next(grids_in(program.nodes), None) is None:
            raise ExportError(
                "quantised= writes tensors that are on a grid, but there are none here: put "
                "weights and activations on grids with gg.rules.lsq, lsq_plus, fake_quantise or "
                "pact"
            )
        self.program = _narrowed(program) if self.dtype == "float32" else program
        self.forms.inline = True
        self._inputs()
        self._named_outputs()
        given = self.program.inputs[len(f.inputs) :]
        fixed = FixedValues(self.program, {t: self.initial[self._values[t].name] for t in given})
        quantiser = Quantiser(self.forms, self.block, fixed)
        for node in self.program.nodes:
            self._node(node, quantiser)
        self._finish()
        try:
            quantiser.fit({value.name: t for t, value in self._values.items()})
        except NoOnnxForm as error:
            raise ExportError(f"as integers this cannot be written: {error}") from error
        self.initial = prune(self.block, self.initial)
        names = json.loads(self.metadata["graphgrad.variables"])
        left = {v: name for v, name in names.items() if name in self.initial}
        self.metadata["graphgrad.variables"] = json.dumps(left)

    def _finish(self) -> None:
        if self.refused:
            rows = "".join(f"\n  {row}" for row in self.refused)
            raise ExportError(f"{counted(len(self.refused), 'node')} cannot be written:{rows}")
        self._outputs()
        fold_transposes(self.block)
        merge_outputs(self.block)

    def save(
        self,
        path: Path,
        external: bool | None,
        elsewhere: ExternalWeights | None = None,
    ) -> None:
        """Write what was made; ExportError.

        external: whether weights go into a file beside. elsewhere: what says where they lie
        already.
        """
        total = sum(a.nbytes for a in (*self.initial.values(), *self.block.constants.values()))
        outside = total > INSIDE if external is None else external
        beside = BesideWriter(f"{path.name}.data") if outside and elsewhere is None else None
        functions = {(DOMAIN, name): body for name, body in self.forms.functions.items()}
        functions |= self.marked.functions
        weights = beside if elsewhere is None else elsewhere
        model = made_model(path.stem, self.block, self.initial, functions, self.metadata, weights)
        for each in (*model.graph.input, *model.graph.output):
            each.doc_string = self.said.notes.get(each.name, "")
        known = self.properties
        model.domain, model.model_version, model.doc_string = (
            known.domain,
            known.model_version,
            known.doc,
        )
        model = in_version(model, self.opset)
        if beside is not None:
            write_atomically(path.with_name(beside.name), beside.write)
        write_atomically(path, lambda out: _write_bytes(out, model))

    # --- inputs ---------------------------------------------------------------------------------

    def _inputs(self) -> None:
        f, given = self.f, self.program.inputs
        count = len(f.inputs)
        for t, read in zip(given[:count], f.inputs, strict=True):
            self._given(t, read.node)
        written = set(f._access.written)
        for v, t in zip(f._access.read, given[count:], strict=True):
            (value,) = f._access.state.read([v])
            name = self._given(t, v, v in written)
            self.initial[name] = np.asarray(value).astype(t.dtype, copy=False)
        if f._access.counted:
            self.forms.run = self.block.give(RUNS, as_dtype("int64"), ())
            self.initial[self.forms.run.name] = np.array(f._access.state.runs)
        names = {v.name: self._values[t].name for v, t in zip(f._access.read, given[count:])}
        self.metadata["graphgrad.variables"] = json.dumps(names)

    def _given(self, t: Tensor, node: Node, fed: bool = True) -> str:
        self._allowed(t, node)
        name = self.said.inputs.get(node, node.name)
        value = OnnxValue(self.block.names.fresh(name), t.dtype, t.shape)
        if fed:
            self.block.given.append(value)
        self._values[t] = value
        self.forms.told.tell(value)
        return value.name

    def _allowed(self, t: Tensor, node: Node) -> None:
        try:
            check_dtype(t.dtype)
        except NoOnnxForm as error:
            self._refuse(node, str(error))

    # --- nodes ----------------------------------------------------------------------------------

    def _node(self, node: Node, quantiser: Quantiser | None = None) -> None:
        self.block.doubles.clear()
        try:
            for t in (*node.inputs, *node.outputs):
                check_dtype(t.dtype)
            inputs = [self._values[t] for t in node.inputs]
            if quantiser is None:
                made = self.forms.place(self.block, node.op, inputs, self._story(node))
            else:
                made = quantiser.place(node, inputs, self._story(node))
        except NoOnnxForm as error:
            self._refuse(node, str(error))
            made = tuple([OnnxValue(t.name, t.dtype, t.shape) for t in node.outputs])
        lacking = sorted(self.block.doubles & WITHOUT_FLOAT64)
        if lacking and self.dtype is None:
            self._refuse(
                node,
                f"onnxruntime has no float64 kernel for {' and '.join(lacking)}; export with "
                'dtype="float32", or with dtype="float64" for another runtime',
            )
        for t, value in zip(node.outputs, made, strict=True):
            self._values[t] = OnnxValue(value.name, t.dtype, t.shape)
            if value.name not in self.block.constants:
                self.block.typed.append(self._values[t])

    def _whole(self, node: Node, found: FoundOperator) -> None:
        """An operator that the node is the last of."""
        values = [self._values[t] for t in found.inputs]
        made = self.forms.found(self.block, found, values, self._story(node))
        for t, value in zip([t for t in found.made if t is not None], made, strict=True):
            self._values[t] = OnnxValue(value.name, t.dtype, t.shape)
            self.block.typed.append(self._values[t])

    def _story(self, node: Node) -> Story:
        return story_of(node) if self.said.provenance else Story(node.name)

    def _refuse(self, step: Node | Region, why: str) -> None:
        if isinstance(step, Region):
            self.refused[f"region {step.name!r}, opened at {step.where}: {why}"] = None
        else:
            self.refused[f"{step.name} = {step.op!r}, built at {step.where}: {why}"] = None

    # --- outputs --------------------------------------------------------------------------------

    def _named_outputs(self) -> None:
        """Take their names, before anything inside is called so."""
        f = self.f
        fresh = self.block.names.fresh
        leaves = named_leaves(f.outputs)
        names = self.said.outputs or [name for name, _ in leaves]
        pairs = zip(names, leaves, strict=True)
        tree = [None if t is None else fresh(name) for name, (_, t) in pairs]
        updates = {v.name: fresh(f"{v.name}{NEXT}") for v in f._access.written}
        self.results = [name for name in tree if name is not None] + list(updates.values())
        if f._access.counted:
            self.results.append(fresh(f"{RUNS}{NEXT}"))
        self.metadata["graphgrad.updates"] = json.dumps(updates)
        self.metadata["graphgrad.outputs"] = json.dumps(_plain(unflatten(f.outputs, tree)))

    def _outputs(self) -> None:
        """An Identity for each: an input may be an output, or two outputs one tensor."""
        values = [self._values[t] for t in self.program.outputs]
        if self.f._access.counted:
            assert self.forms.run is not None
            values.append(Operators(self.block, self.forms).Add(self.forms.run, 1))
        for value, name in zip(values, self.results, strict=True):
            self.block.calls.append(OnnxCall("Identity", (value.name,), (name,)))
            self.block.results.append(OnnxValue(name, value.dtype, value.shape))


def _narrowed(program: Program) -> Program:
    """The program in float32; ExportError where an op is defined in float64 alone."""
    try:
        return narrow(program)
    except DTypeError as error:
        raise ExportError(f'as dtype="float32" this cannot be computed: {error}') from error


def named_leaves(outputs: Any) -> list[tuple[str, Tensor | None]]:
    """A name for every output: its path in dicts, else the name that the user gave it."""
    leaves = flatten(outputs)
    named: list[tuple[str, Tensor | None]] = []
    for i, (path, t) in enumerate(zip(paths(outputs), leaves, strict=True)):
        given = None if t is None else t.node._name
        keys = re.findall(r"\['(.*?)'\]|\[(.+?)\]", path)
        own = "/".join(a or b for a, b in keys) if "['" in path else given
        named.append((own or ("output" if len(leaves) == 1 else f"output_{i}"), t))
    return named


def _plain(tree: Any) -> Any:
    """A tree for JSON."""
    if isinstance(tree, dict):
        return {str(k): _plain(v) for k, v in tree.items()}
    return [_plain(v) for v in tree] if isinstance(tree, list | tuple) else tree


def story_of(node: Node) -> Story:
    """The name of a node, and where it is from."""
    told = {"graphgrad.op": repr(node.op)[:SHORT], "graphgrad.where": node.where}
    origin = node.origin
    if isinstance(origin, RuleCall):
        told["graphgrad.rule"] = origin.rule
        told["graphgrad.of"] = origin.site.name
    elif origin is not None:
        told["graphgrad.of"] = origin.name
    if node.region is not None:
        told["graphgrad.region"] = node.region.name
    return Story(node.name, told)
