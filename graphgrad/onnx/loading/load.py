"""`load`: a model of ONNX as a graph, checked, without running any code of the file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...base.collector import collector_paused
from ...base.errors import FileError, did_you_mean
from ...base.flags import truth
from ...base.kinds import is_inexact
from ...base.length import Length
from ...files.loading import reading
from ...ir.build import build
from ...ir.graph import Graph, restored
from ...ir.node import Tensor
from ...ir.types import Array, as_shape
from ...ops.sources import Variable, placeholder
from ..package import need_onnx, onnx
from .builder import Builder
from .grids import KEY, StoredGrids, learned_names, rule_of_grids
from .model import OnnxModel
from .names import clean, rename
from .own import OwnForms, check_own
from .protobuf import opsets_of, parse_model, read_model
from .shared import check_shared
from .survey import ModelSurvey, functions_of, survey
from .tensors import dtype_of, length_of
from .weights import weights_of

__all__ = ["LoadOptions", "load", "loaded", "opened"]

OLDEST_OPSET = 7
"""Before it operators broadcast in a way of their own: onnx's converter brings them here."""
MODERN = 13


class LoadOptions(NamedTuple):
    """What the caller of `load` asked for."""

    trainable: Any = False
    known: Mapping[str, Any] = MappingProxyType({})
    shapes: Mapping[str, Any] = MappingProxyType({})
    regions: Mapping[str, Any] = MappingProxyType({})
    unroll: bool = False
    forms: Mapping[str, Any] = MappingProxyType({})
    opaque: Mapping[str, Any] = MappingProxyType({})


@restored
@collector_paused
def load(
    path: Any,
    *,
    trainable: bool | Iterable[str] = False,
    known: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Any] | None = None,
    regions: Mapping[str, Any] | None = None,
    unroll: bool = False,
    forms: Mapping[str, Any] | None = None,
    opaque: Mapping[str, Any] | None = None,
) -> OnnxModel:
    """Load an ONNX model as a new graph. No code in the file is run.

    Nodes have the names, scopes and order of the file. Each ONNX operator that corresponds to an op
    becomes one node. Shape computations on known numbers are evaluated while loading. Everything is
    checked before the first node is built, and one error names all operators that cannot be loaded.

    Parameters:
        path: the file, its bytes, or a ModelProto of the package onnx. Weights may be in separate
            files next to it, which are memory-mapped and must not be changed while in use.
        trainable: whether weights become trainable variables: floating-point initializers that
            operators read as filters, matrices, tables, scales, biases and slopes, and vectors that
            are added to or multiplied with the result of such an operator, but not statistics,
            bounds, divisors, masks or literals. `trainable` of the result lists them. Or the names
            of the initializers that become variables, which may be patterns ("layer4.*"). The rest
            are constants.
        known: {name of an input: array} for inputs that are fixed, such as shapes: they become
            constants.
        shapes: {name of an input: shape} instead of that in the file; lengths as for
            gg.placeholder: int, None or a name.
        regions: {name of a local function: rule}; each call of the function is a region whose
            gradient is the rule's. "QuantizeLinear": "lsq_plus", "lsq" or "fake_quantise" makes
            each QuantizeLinear with its DequantizeLinear, and DequantizeLinear of weights, a region
            of that rule, whose weights, scales and zeros are variables where `trainable`.
        unroll: whether to unroll loops and recurrent layers of known length, which LRP and DeepLIFT
            need.
        forms: {"com.acme.Magic": function} for operators that are not supported, or that you want
            to build differently. The function takes the inputs (tensors, or None if omitted) and
            the attributes by name, and returns the output or outputs. Operators of ONNX are named
            without a domain, and local functions with theirs.
        opaque: {"com.acme.Magic": vjp} for operators that are kept as they are: only a runtime that
            implements them can compute them, and exported models contain them. vjp(node, *dys,
            **attributes) returns the gradients of node.inputs (those that are present), given those
            of node.outputs. The file must have the types of their outputs.

    Returns: an OnnxModel: graph, inputs, outputs, and tensors by the names of the file.

    Raises: FileError, which names the file, the node and the reason, for input that is not a model,
    is damaged, leads out of its folder, or contains unsupported operators; GraphGradError without
    the package onnx; UnknownGradientError for a rule that is not registered; OSError of the disk.

    Source: the ONNX specification, "Open Neural Network Exchange Intermediate Representation".

    >>> import onnx
    >>> node = onnx.helper.make_node("Relu", ["x"], ["y"], name="body/relu")
    >>> x, y = (onnx.helper.make_tensor_value_info(n, 1, ["N", 2]) for n in "xy")
    >>> graph = onnx.helper.make_graph([node], "g", [x], [y])
    >>> model = gg.onnx.load(onnx.helper.make_model(graph))
    >>> model.outputs["y"].name, model.outputs["y"].type
    ('body/relu:0', float32[N, 2])
    >>> g = model.graph.mark(gg.select.op("Relu"), gg.rules.guided())
    """
    truth("unroll", unroll)
    need_onnx("gg.onnx.load")
    options = LoadOptions(
        trainable, known or {}, shapes or {}, regions or {}, unroll, forms or {}, opaque or {}
    )
    made = _opened(path, options)
    if not unroll and not isinstance(path, bytes | onnx.ModelProto):
        made._again = partial(_opened, path, options._replace(unroll=True))
    return made


def _opened(path: Any, options: LoadOptions) -> OnnxModel:
    with opened(path) as (model, folder):
        return loaded(model, folder, options)


def loaded(model: Any, folder: Path | None, options: LoadOptions) -> OnnxModel:
    """A ModelProto as a graph; FileError for what cannot be loaded."""
    check_shared(model, folder)
    own = OwnForms(options.forms, options.opaque)
    model_survey = survey(model, own.names)
    check_own({"forms": options.forms, "opaque": options.opaque}, model_survey.operators)
    model_survey.check()
    return _Loading(model, folder, model_survey, options, own).load()


@contextmanager
def opened(path: Any) -> Iterator[tuple[Any, Path | None]]:
    """The ModelProto of a file and its folder; what is wrong in the block is wrong with it."""
    if isinstance(path, onnx.ModelProto):
        with reading("the model"):
            yield _modern(path), None
        return
    if isinstance(path, bytes):
        with reading("the model"):
            yield _modern(parse_model(path)), None
        return
    file = Path(os.fspath(path))
    with reading(file):
        yield _modern(read_model(file)), file.parent


def _modern(model: Any) -> Any:
    """A model whose operators broadcast as NumPy does."""
    version = opsets_of(model).get("", OLDEST_OPSET)
    if version >= OLDEST_OPSET:
        return model
    try:
        return onnx.version_converter.convert_version(model, MODERN)
    except Exception as error:
        raise FileError(
            f"its operators are of version {version}, and onnx's converter cannot convert them to "
            f"{MODERN}: {error!s:.300}"
        ) from None


class _Loading:
    """One call of `load`."""

    def __init__(
        self,
        model: Any,
        folder: Path | None,
        model_survey: ModelSurvey,
        options: LoadOptions,
        own: OwnForms,
    ) -> None:
        self.model = model
        self.options = options
        self.survey = model_survey
        self.own = own
        self.own.hear(model.graph)
        self.builder = Builder(model, folder, options.regions, options.unroll, own)
        if KEY in options.regions:
            rule = rule_of_grids(options.regions[KEY])
            learned = learned_names(options.trainable)
            self.builder.grids = StoredGrids(model.graph, rule, learned)
        self.inputs: dict[str, Tensor] = {}
        self.trainable: dict[str, str] = {}

    def load(self) -> OnnxModel:
        """The model, built."""
        weights = self.builder.initializers(self.model.graph)
        said = [each for each in self.model.graph.input if each.name not in weights]
        self._check(said, weights)
        self.trainable = self._trainable(weights)
        graph = self.builder.notes.graph = Graph(self.model.graph.name or "onnx")
        with graph:
            for each in said:
                self.builder.names.put(each.name, self._input(each))
            for name, array in weights.items():
                self.builder.names.put(name, self._weight(name, array))
            self.builder.nodes(self.model.graph.node)
            outputs = {each.name: self._output(each.name) for each in self.model.graph.output}
        if self.builder.grids is not None:
            self.trainable |= self.builder.grids.found
        named = self.builder.names.values.items()
        tensors = {name: value for name, value in named if isinstance(value, Tensor)}
        properties = graph.properties = self.builder.notes.properties(self.model)
        return OnnxModel(
            graph,
            self.inputs,
            outputs,
            {**tensors, **outputs},
            self.survey.operators,
            properties,
            self.trainable,
        )

    def _check(self, said: list[Any], weights: Mapping[str, Array]) -> None:
        """FileError for names in the options that the file does not have, and for its inputs."""
        names = [each.name for each in said]
        functions = [KEY, *[f.name for f in functions_of(self.model).values()]]
        given = (
            ("known", self.options.known, names, "input"),
            ("shapes", self.options.shapes, names, "input"),
            ("regions", self.options.regions, functions, "local function"),
        )
        for option, wanted, there, what in given:
            for name in wanted:
                if name not in there:
                    near = did_you_mean(str(name), there, f"It has {', '.join(there) or 'none'}.")
                    raise FileError(f"{option}: it has no {what} {name!r:.80}. {near}".rstrip())
        if not isinstance(self.options.trainable, bool):
            for pattern in self.options.trainable:
                if not any(fnmatchcase(name, pattern) for name in weights):
                    near = did_you_mean(pattern, weights)
                    raise FileError(
                        f"trainable: no weight is called {pattern!r:.80}. {near}".rstrip()
                    )
        for each in said:
            _type_of(each)

    def _input(self, said: Any) -> Any:
        """A placeholder, or the array that it is known to be."""
        dtype, shape = _type_of(said)
        if said.name in self.options.known:
            return np.asarray(self.options.known[said.name]).astype(dtype)
        named = shape or ()
        if said.name in self.options.shapes:
            wanted = as_shape(self.options.shapes[said.name])
            if shape is not None and len(wanted) != len(shape):
                raise FileError(f"shapes: {said.name!r:.80} is {list(shape)}, not {list(wanted)}")
            shape = wanted
        if shape is None:
            raise FileError(f"the shape of {said.name!r:.80} is not given; pass it with shapes=")
        name = clean(said.name) or "x"
        unnamed = [Length(f"{name}.{i}") if d is None else d for i, d in enumerate(shape)]
        t = placeholder(unnamed, dtype)
        pairs = zip(named, t.shape, strict=False)
        self.own.lengths.update((n, length) for n, length in pairs if isinstance(n, str))
        rename(t, name)
        self.inputs[said.name] = t
        return t

    def _weight(self, name: str, array: Array) -> Any:
        """A variable, or the array."""
        if name not in self.trainable:
            return array
        t = build(Variable(array, True, False), ()).outputs[0]
        rename(t, clean(name) or "weight")
        return t

    def _trainable(self, weights: Mapping[str, Array]) -> dict[str, str]:
        """{name of a weight that is a variable: why it is one}."""
        asked = self.options.trainable
        if self.builder.grids is not None:
            weights = {n: a for n, a in weights.items() if n not in self.builder.grids.names}
        if isinstance(asked, bool):
            return weights_of(self.model, weights) if asked else {}
        named = [name for name, array in weights.items() if is_inexact(array.dtype)]
        return {name: "named" for name in named if any(fnmatchcase(name, p) for p in asked)}

    def _output(self, name: str) -> Tensor:
        try:
            return self.builder.as_tensor(self.builder.names.find(name), name)
        except FileError as error:
            raise FileError(f"the output {name!r:.80}: {error}") from None


def _type_of(said: Any) -> tuple[Any, tuple[Any, ...] | None]:
    """dtype and shape of an input; FileError for input that is not a tensor of numbers."""
    what = f"the input {said.name!r:.80}"
    kind = said.type.WhichOneof("value")
    if kind != "tensor_type":
        raise FileError(f"{what} is a {str(kind).removesuffix('_type')}, not a tensor")
    dtype = dtype_of(said.type.tensor_type.elem_type, what)
    if not said.type.tensor_type.HasField("shape"):
        return dtype, None
    return dtype, tuple(map(length_of, said.type.tensor_type.shape.dim))
