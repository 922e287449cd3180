"""Methods that share a score: relevance by composites of rules, and DeepLIFT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..base.domains import NON_NEGATIVE, Domain
from ..base.errors import GradientError, did_you_mean
from ..compiled import compile
from ..differentiate.travel.importing import import_graph
from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ops.sources import placeholder
from ..regions.rules import Rule
from ..regions.select import select
from ..rules.by_sign import lrp_alpha_beta, lrp_flat, lrp_signed_gamma
from ..rules.propagation import conservation, lrp_epsilon, lrp_zbox
from ..rules.reference import deeplift as deeplift_of
from .explained import Explained
from .found import Found
from .slopes import balance_from, baselines

CONVOLUTIONS = ("Conv2D", "Conv2DBackpropInput")
PRODUCTS = ("MatMul", *CONVOLUTIONS)


class Composite(NamedTuple):
    """Which rule each layer has: the first ones, convolutions, dense ones. None: that of the kind.

    Each is a function of the options of `lrp`.
    """

    convolution: Callable[[dict[str, Any]], Rule]
    first: Callable[[dict[str, Any]], Rule] | None = None


def _epsilon(o: dict[str, Any]) -> Rule:
    return lrp_epsilon(o["epsilon"])


def _plus(o: dict[str, Any]) -> Rule:
    return lrp_alpha_beta(1.0, 0.0, o["stabiliser"])


def _alpha_beta(o: dict[str, Any]) -> Rule:
    return lrp_alpha_beta(o["alpha"], o["alpha"] - 1, o["stabiliser"])


def _gamma(o: dict[str, Any]) -> Rule:
    return lrp_signed_gamma(o["gamma"], o["stabiliser"])


def _flat(o: dict[str, Any]) -> Rule:
    return lrp_flat(o["stabiliser"])


def _box(o: dict[str, Any]) -> Rule:
    return lrp_zbox(o["low"], o["high"], o["stabiliser"])


COMPOSITES = {
    "epsilon": Composite(_epsilon),
    "epsilon_flat": Composite(_epsilon, _flat),
    "epsilon_box": Composite(_epsilon, _box),
    "epsilon_plus": Composite(_plus),
    "epsilon_plus_flat": Composite(_plus, _flat),
    "epsilon_alpha_beta": Composite(_alpha_beta),
    "epsilon_alpha_beta_flat": Composite(_alpha_beta, _flat),
    "epsilon_gamma": Composite(_gamma),
    "epsilon_gamma_box": Composite(_gamma, _box),
}
"""Dense layers have epsilon in all; the name goes on with convolutions, then first layers."""


DEFAULTS = {
    "epsilon": 1e-6,
    "gamma": 0.25,
    "alpha": 2.0,
    "low": 0.0,
    "high": 1.0,
    "stabiliser": 1e-6,
}
"""What the rules of composites read."""

DOMAINS = {
    "epsilon": NON_NEGATIVE,
    "gamma": NON_NEGATIVE,
    "alpha": Domain(1),
    "stabiliser": NON_NEGATIVE,
}

NEAR_THE_BOX = 1e-6
"""How far from a box, in parts of its width, an image may be by rounding."""


class _Options(dict[str, Any]):
    """Options, and which of them are read. Those against division by zero are of all composites."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.read = {"epsilon", "stabiliser"}

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)


def lrp(
    asked: Explained,
    composite: str = "epsilon",
    epsilon: float | None = None,
    gamma: float | None = None,
    alpha: float | None = None,
    low: Any = None,
    high: Any = None,
    stabiliser: float | None = None,
    rules: Any = None,
    unknown: str = "error",
) -> Found:
    """Layer-wise relevance propagation by a composite; `rules` go over it, as for relevance().

    An option that no rule of the composite reads is a TypeError.
    """
    if composite not in COMPOSITES:
        near = did_you_mean(str(composite), COMPOSITES, f"It is one of {', '.join(COMPOSITES)}.")
        raise ValueError(f"composite= names one, got {composite!r}. {near}".rstrip())
    said = {"epsilon": epsilon, "gamma": gamma, "alpha": alpha, "low": low, "high": high}
    said["stabiliser"] = stabiliser
    said = {name: value for name, value in said.items() if value is not None}
    options = _read(composite, said)
    if "high" in options:
        _check_box(asked, options["low"], options["high"])
    chosen = {**_rules_of(asked, COMPOSITES[composite], options), **(rules or {})}
    with asked.graph:
        shares = conservation(asked.score, dict(asked.xs), chosen, unknown, options["epsilon"])
    kept = [shares.biases, shares.stabiliser, shares.rest]
    values, scores, *sums = asked.run([shares.relevance, asked.score, *kept])
    balance = {"score": float(np.sum(scores))}
    balance["attributed"] = float(sum(a.sum() for a in values.values()))
    balance |= dict(zip(("biases", "stabiliser", "rest"), map(float, sums), strict=True))
    return Found(values, balance)


def _read(composite: str, said: dict[str, Any]) -> dict[str, Any]:
    """The options that the rules of a composite read, which they check; TypeError for another."""
    options = _Options({**DEFAULTS, **said})
    for name, domain in DOMAINS.items():
        domain(name, options.get(name))
    for make in (_epsilon, *COMPOSITES[composite]):
        if make is not None:
            make(options)
    for name in said:
        if name not in options.read:
            raise TypeError(
                f"lrp by composite={composite!r} has no option {name!r}. "
                f"It reads {', '.join(n for n in DEFAULTS if n in options.read)}."
            )
    return {name: options[name] for name in DEFAULTS if name in options.read}


def _check_box(asked: Explained, low: Any, high: Any) -> None:
    """ValueError for inputs outside of the box that the rule is for."""
    low, high = np.asarray(low), np.asarray(high)
    edge = NEAR_THE_BOX * (high - low)
    for name, x in asked.arrays.items():
        if not np.all((x >= low - edge) & (x <= high + edge)):
            raise ValueError(
                f"low and high must bound the values of each input: {name} ranges from "
                f"{x.min():g} to {x.max():g}, got low={low} and high={high}"
            )


def _rules_of(asked: Explained, composite: Composite, options: dict[str, Any]) -> dict[Any, Rule]:
    """{selection of a layer, its bias with it: rule}."""
    layers = _layers(asked)
    first = _first(asked, layers)
    rules: dict[Any, Rule] = {}
    for node, parts in layers.items():
        make = composite.convolution if node.type in CONVOLUTIONS else _epsilon
        if composite.first is not None and node in first:
            make = composite.first
        if make is not _epsilon or len(parts) > 1:
            rules[select.nodes(*parts)] = make(options)
    return rules


def _layers(asked: Explained) -> dict[Node, list[Node]]:
    """The products of what comes from an input with weights, each with the addition of a bias."""
    carried = _carried(asked)
    layers = {}
    for node in asked.graph.nodes:
        if node.type in PRODUCTS and sum(t.node in carried for t in node.inputs) == 1:
            readers = node.consumers
            adds = [n for n in readers if n.type == "Add" and _is_bias(n, node, carried)]
            layers[node] = [node, adds[0]] if len(readers) == 1 and adds else [node]
    return layers


def _is_bias(add: Node, node: Node, carried: set[Node]) -> bool:
    others = [t for t in add.inputs if t.node is not node]
    same = add.outputs[0].shape == node.outputs[0].shape
    return len(others) == 1 and others[0].node not in carried and same


def _carried(asked: Explained) -> set[Node]:
    """The nodes that read an input, however far above."""
    carried = {t.node for t in asked.xs.values()}
    for node in asked.graph.nodes:
        if any(t.node in carried and t.type.differentiable for t in node.inputs):
            carried.add(node)
    return carried


def _first(asked: Explained, layers: dict[Node, list[Node]]) -> set[Node]:
    """The layers that read an input with no other layer between."""
    below: set[Node] = set()
    first = set()
    carried = _carried(asked)
    for node in asked.graph.nodes:
        if node not in carried:
            continue
        is_below = any(t.node in below or t.node in layers for t in node.inputs)
        if is_below:
            below.add(node)
        elif node in layers:
            first.add(node)
    return first


def deeplift(asked: Explained, baseline: Any = 0.0, unknown: str = "error") -> Found:
    """Contributions to the change from a baseline, by the rescale rule."""
    if len(asked.xs) != 1:
        raise GradientError(f"deeplift takes a model with one floating input, got {list(asked.xs)}")
    starts = baselines(asked, baseline)
    ((name, home),) = asked.xs.items()
    others = {t: a for t, a in asked.fed.items() if t is not home}
    with Graph():
        x = placeholder(asked.arrays[name].shape, home.dtype, name="x")

        def score(x: Tensor) -> Tensor:
            return import_graph(asked.graph, {home: x, **others})[asked.score]

        contributions = deeplift_of(score, x, starts[name], unknown)
        values = {name: compile([x], contributions)(asked.arrays[name])}
    return Found(values, balance_from(asked, values, starts))
