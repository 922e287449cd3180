"""First experiment: one binary network, trained with two gradients of the same forward graph."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

import graphgrad as gg
from graphgrad.inspect.scene.profile import Profile

from .checks import Check, close, distance
from .digits import Digits
from .model import Net, binary_net
from .progress import Ticker
from .training import Curve, Settings, adam, initial_state, train

OWN, OVERRIDE = "true gradient", 'override "ste"'
MARGIN = 0.10
"""By how much the override has to win, in test accuracy."""
EPSILON, TOLERANCE = 1e-5, 1e-7
"""Step of the central differences, and how far a gradient may be from them."""
PROFILED = 300
"""How many times the profiled step runs."""

Grads = dict[str, list[gg.Tensor]]


class Slope(NamedTuple):
    """One weight: the central difference of the loss, and what each backward graph says."""

    weight: str
    difference: float
    own: float
    override: float


class Outcome(NamedTuple):
    """What came of it.

    curves    by gradient, one for each start
    norms     parameter -> (length of its true gradient, and of its overridden one) at the start
    slopes    some weights of the last layer, which has no override, and one of the first
    sizes     nodes of the forward graph, and those that each backward graph adds
    shown     by gradient, the loss and what it gives for each parameter: for pictures
    lengths   length of what either backward graph computes, tensor by tensor, at the start
    splice    one region and the rule spliced for it, cut out of the graph
    path      what gg.explain says of the way from the first weights to the loss
    blame     what gg.debug.blame says of the true gradient at the start
    profile   of a training step's loss and overridden gradients, over one batch
    steps     (pass, program after it) of that step, where the pass changed something
    """

    curves: dict[str, list[Curve]]
    norms: dict[str, tuple[float, float]]
    slopes: list[Slope]
    sizes: dict[str, int]
    shown: dict[str, list[gg.Tensor]]
    lengths: dict[gg.Tensor, float]
    splice: gg.Program
    path: str
    blame: str
    profile: Profile
    steps: list[tuple[str, gg.Program]]

    def accuracy(self, gradient: str) -> float:
        """Test accuracy after training, as the mean over the starts."""
        return float(np.mean([curve.test[-1] for curve in self.curves[gradient]]))

    @property
    def gain(self) -> float:
        """By how much the override wins."""
        return self.accuracy(OVERRIDE) - self.accuracy(OWN)


def compare(digits: Digits, settings: Settings, seed: int, ticker: Ticker) -> Outcome:
    """Build one forward graph and two backward graphs, and train with each from the same starts."""
    with gg.Graph("binary network"):
        net = binary_net(settings.hidden)
        params = list(net.params.values())
        own = gg.gradients(net.loss, params, overrides="none")
        override, (dz, dh) = gg.gradients(net.loss, (params, net.edges))
        z, h = net.edges
        grads = {OWN: own, OVERRIDE: override}
        shown = {name: [net.loss, *tensors] for name, tensors in grads.items()}
        splice = gg.Program([z, dh], [h, dz])
        path = str(gg.explain(net.loss, net.params["W1"]))
        sizes = _sizes(net.loss, grads)
        updates = {name: adam(net, grads[name], digits, settings) for name in grads}

    start = initial_state(net, seed)
    norms, slopes = _norms(net, grads, start, digits), _slopes(net, grads, start, digits)
    lengths = _lengths(net, grads, start, digits)
    blame = str(gg.debug.blame(own, _feeds(net, digits), state=start))
    profile, steps = _profile(net, override, start, digits, settings)
    curves: dict[str, list[Curve]] = {OWN: [], OVERRIDE: []}
    for at in range(seed, seed + settings.starts):
        for name in curves:
            tick = partial(ticker.tick, name)
            state = initial_state(net, at)
            curves[name].append(train(net, updates[name], state, digits, settings, at, tick))
    return Outcome(
        curves, norms, slopes, sizes, shown, lengths, splice, path, blame, profile, steps
    )


def checks(outcome: Outcome) -> list[Check]:
    """What has to hold."""
    won = f"{100 * outcome.gain:+.1f} points (at least {100 * MARGIN:+.0f})"
    free = [s for s in outcome.slopes if s.weight.startswith("W3")]
    furthest = max(max(abs(s.own - s.difference), abs(s.override - s.difference)) for s in free)
    below = [own for name, (own, _) in outcome.norms.items() if not name.endswith("3")]
    above = [pair for name, pair in outcome.norms.items() if name.endswith("3")]
    apart = max(abs(own - override) for own, override in above)
    return [
        Check("the override wins in test accuracy", won, outcome.gain >= MARGIN),
        Check(
            "weights without an override: both gradients equal central differences",
            distance(furthest),
            furthest <= TOLERANCE,
        ),
        Check("below sign, the true gradient is exactly zero", f"{max(below):g}", not any(below)),
        Check("above sign, both backward graphs agree", distance(apart), close(apart)),
    ]


def _sizes(loss: gg.Tensor, grads: Grads) -> dict[str, int]:
    forward = set(gg.Program([], [loss]).nodes)
    sizes = {"forward": len(forward)}
    for name, tensors in grads.items():
        sizes[name] = len(set(gg.Program([], tensors).nodes) - forward)
    return sizes


def _norms(
    net: Net, grads: Grads, state: gg.State, digits: Digits
) -> dict[str, tuple[float, float]]:
    run = gg.compile([net.pixels, net.labels], grads, state=state)
    dxs = run(digits.train_pixels, digits.train_labels)
    lengths = {name: [float(np.linalg.norm(a)) for a in arrays] for name, arrays in dxs.items()}
    pairs = zip(lengths[OWN], lengths[OVERRIDE], strict=True)
    return dict(zip(net.params, pairs, strict=True))


def _feeds(net: Net, digits: Digits) -> dict[gg.Tensor, Any]:
    return {net.pixels: digits.train_pixels, net.labels: digits.train_labels}


def _lengths(net: Net, grads: Grads, state: gg.State, digits: Digits) -> dict[gg.Tensor, float]:
    values = gg.debug.values(grads, _feeds(net, digits), state=state)
    nodes = gg.Program([], [t for tensors in grads.values() for t in tensors]).nodes
    derived = [t for n in nodes if n.origin is not None and n.inputs for t in n.outputs]
    return {t: float(np.linalg.norm(values[t.name])) for t in derived if t.type.differentiable}


def _profile(
    net: Net, grads: list[gg.Tensor], state: gg.State, digits: Digits, settings: Settings
) -> tuple[Profile, list[tuple[str, gg.Program]]]:
    passes = gg.PassRecord()
    run = gg.compile([net.pixels, net.labels], [net.loss, *grads], state=state, watch=passes)
    batch = slice(settings.batch)
    profile = run.profile(digits.train_pixels[batch], digits.train_labels[batch], repeat=PROFILED)
    before: gg.Program | None = None
    steps = []
    for name, program in passes.programs:
        if before is None or program.nodes != before.nodes:
            known = all(isinstance(n, int) for t in program.inputs for n in t.shape)
            steps.append((f"{name}, lengths known" if known else name, program))
        before = program
    return profile, steps


def _slopes(net: Net, grads: Grads, state: gg.State, digits: Digits) -> list[Slope]:
    """Five weights of the last layer, and the one of the first whose override is steepest."""
    data = digits.train_pixels, digits.train_labels
    dxs = gg.compile([net.pixels, net.labels], grads, state=state)(*data)
    arrays = {name: dict(zip(net.params, values, strict=True)) for name, values in dxs.items()}
    steepest = np.where(np.abs(state[net.params["W1"]]) > 1e-3, arrays[OVERRIDE]["W1"], 0.0)
    rows = len(arrays[OWN]["W3"])
    chosen: list[tuple[str, Any]] = [("W3", (7 * i % rows, 2 * i)) for i in range(5)]
    chosen.append(("W1", np.unravel_index(int(np.abs(steepest).argmax()), steepest.shape)))
    return [
        Slope(
            f"{name}[{at[0]}, {at[1]}]",
            _difference(net, name, at, state, data),
            float(arrays[OWN][name][at]),
            float(arrays[OVERRIDE][name][at]),
        )
        for name, at in chosen
    ]


def _difference(net: Net, name: str, at: Any, state: gg.State, data: Any) -> float:
    """(loss with the weight a little larger - a little smaller) / the distance."""
    losses = []
    for shift in (EPSILON, -EPSILON):
        moved = state.copy()
        values = moved[net.params[name]]
        values[at] += shift
        moved[net.params[name]] = values
        loss = gg.compile([net.pixels, net.labels], net.loss, state=moved)(*data)
        losses.append(float(loss))
    return (losses[0] - losses[1]) / (2 * EPSILON)
