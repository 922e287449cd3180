"""What a model needs, before a node of it is built: its operators, and those that nothing reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

from ...base.errors import FileError, counted, did_you_mean
from ..package import onnx
from .attributes import subgraphs_of, values_of
from .forms import form_of, forms
from .marks import REGION, RULE
from .protobuf import ONNX, opsets_of

__all__ = ["FunctionKey", "ModelSurvey", "body_of", "domain_of", "full_name", "survey"]

FunctionKey = tuple[str, str, str]
MOST_NODES = 1_000_000
REASONS = {
    "Bernoulli": "it draws random numbers",
    "Multinomial": "it draws random numbers",
    "RandomNormal": "it draws random numbers",
    "RandomNormalLike": "it draws random numbers",
    "RandomUniform": "it draws random numbers",
    "RandomUniformLike": "it draws random numbers",
    "ZipMap": "it makes dicts: convert with options={'zipmap': False}",
    "TreeEnsemble": "trees have no gradient",
    "TreeEnsembleClassifier": "trees have no gradient",
    "TreeEnsembleRegressor": "trees have no gradient",
}
OPTIMISED = "onnxruntime's optimiser made it: differentiate the model before it is optimised"
OWN = "define it with forms={name: function of tensors} or opaque={name: vjp}"
KINDS = {"Sequence": "it works on sequences", "Optional": "it works on optional values"}
KINDS |= {"String": "it works on strings", "Regex": "it works on strings"}


class ModelSurvey(NamedTuple):
    """What a model needs.

    operators  how often each is in it: {"Conv": 3, "ai.onnx.ml.Scaler": 1}, functions opened
    refused    of those, {name: why} for what nothing here reads
    functions  how often each local function is called
    nodes      how many nodes there are, functions opened
    """

    operators: dict[str, int]
    refused: dict[str, str]
    functions: dict[str, int]
    nodes: int

    def check(self) -> None:
        """FileError that names all that is refused, with counts."""
        if not self.refused:
            return
        rows = "".join(
            f"\n  {name}, {counted(self.operators[name], 'time')}: {why}"
            for name, why in self.refused.items()
        )
        raise FileError(f"it has operators that cannot be loaded:{rows}")


class _Walk:
    """Counts nodes, functions opened."""

    def __init__(self, functions: dict[FunctionKey, Any], own: Collection[str]) -> None:
        self.functions = functions
        self.own = own
        self.operators: Counter[str] = Counter()
        self.called: Counter[str] = Counter()
        self.refused: dict[str, str] = {}
        self._sizes: dict[FunctionKey, int] = {}
        self._open: list[FunctionKey] = []

    def nodes(self, nodes: Any, opsets: dict[str, int]) -> int:
        """How many there are, with those of functions and bodies inside of them."""
        total = 0
        for node in nodes:
            own = full_name(domain_of(node), node.op_type) in self.own
            total += 1 if own else 1 + self._function(key_of(node))
            if total > MOST_NODES:
                raise FileError(f"it has more than {MOST_NODES} nodes, functions opened")
            if own or key_of(node) not in self.functions:
                self._operator(node, opsets)
            for body in subgraphs_of(node):
                total += self.nodes(body.node, opsets)
        return total

    def _function(self, key: FunctionKey) -> int:
        function = self.functions.get(key)
        if function is None:
            return 0
        self.called[function.name] += 1
        if key in self._open:
            raise FileError(f"its function {function.name!r:.80} calls itself")
        if key not in self._sizes:
            self._open.append(key)
            if len(self._open) > 100:
                raise FileError("its functions call each other more than 100 deep")
            self._sizes[key] = self.nodes(function.node, opsets_of(function))
            rule = self.functions.get((RULE, *key[1:]))
            if key[0] == REGION and rule is not None:
                self.nodes(rule.node, opsets_of(rule))
            self._open.pop()
        return self._sizes[key]

    def _operator(self, node: Any, opsets: dict[str, int]) -> None:
        domain = domain_of(node)
        name = full_name(domain, node.op_type)
        self.operators[name] += 1
        if name in self.refused:
            return
        if domain not in opsets:
            self.refused[name] = f"the model declares no version of the domain {domain!r:.80}"
        elif name not in self.own and not (
            form_of(domain, node.op_type) or self._opens(node, domain, opsets[domain])
        ):
            self.refused[name] = why_not(domain, node.op_type)

    def _opens(self, node: Any, domain: str, version: int) -> bool:
        """Whether its definition is by operators that are read."""
        schema = schema_of(domain, node.op_type, version)
        if schema is None:
            return False
        if schema.has_context_dependent_function:
            return True
        if not schema.has_function:
            return False
        body = schema.function_body
        inside = {**opsets_of(body)}
        return all(
            form_of(domain_of(n), n.op_type)
            or self._opens(n, domain_of(n), inside.get("", version))
            for n in body.node
        )


def survey(model: Any, own: Collection[str] = ()) -> ModelSurvey:
    """What a model needs; FileError for functions that call themselves, or too many nodes.

    own: operators that are read whatever they are.
    """
    walk = _Walk(functions_of(model), own)
    count = walk.nodes(model.graph.node, opsets_of(model))
    return ModelSurvey(dict(walk.operators), walk.refused, dict(walk.called), count)


def functions_of(model: Any) -> dict[FunctionKey, Any]:
    """The local functions of a model."""
    return {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}


def key_of(node: Any) -> FunctionKey:
    """The function that a node would call."""
    return node.domain, node.op_type, getattr(node, "overload", "")


def full_name(domain: str, name: str) -> str:
    """An operator as it is called among those of all domains."""
    return f"{domain}.{name}" if domain else name


def domain_of(node: Any) -> str:
    """The domain of a node; that of ONNX's own operators is empty."""
    return "" if node.domain in ONNX else str(node.domain)


def why_not(domain: str, name: str) -> str:
    """Why an operator is not read."""
    if domain.startswith("com.microsoft"):
        return OPTIMISED
    if domain and name not in REASONS:
        known = sorted({d for d, _ in forms() if d})
        return (
            f"the domain {domain!r:.80} is not supported; {OWN}"
            if domain not in known
            else "unknown"
        )
    if name in REASONS:
        return REASONS[name]
    kind = next((why for word, why in KINDS.items() if word in name), None)
    names = [other for d, other in forms() if d == ""]
    exists = onnx.defs.has(name)
    return kind or ("it is not supported" if exists else f"unknown. {did_you_mean(name, names)}")


def schema_of(domain: str, name: str, version: int) -> Any:
    """What ONNX says of an operator; None where it says nothing."""
    try:
        return onnx.defs.get_schema(name, version, domain)
    except Exception:  # its own, of whichever of its modules
        return None


def body_of(node: Any, version: int, types: list[Any]) -> tuple[Any, dict[str, Any]]:
    """How ONNX defines an operator for inputs of these types: a FunctionProto, and defaults."""
    schema = schema_of(domain_of(node), node.op_type, version)
    said = [a.default_value for a in schema.attributes.values() if a.default_value.name]
    defaults = values_of(said, {}, None)
    if not schema.has_context_dependent_function:
        return schema.function_body, defaults
    raw = schema.get_context_dependent_function(
        node.SerializeToString(), [t.SerializeToString() for t in types]
    )
    body = onnx.FunctionProto()
    body.ParseFromString(raw)
    return body, defaults
