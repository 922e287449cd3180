"""What overrides mean, spelled out in plain graphs: the reference of the matrix.

No mark is put on anything here. A site is told by the tensors it reads, the tensors it makes and
a function that gives the gradients of the former from those of the latter. `spelled_gradients`
differentiates the plain pieces between sites, which are ordinary ops, and calls these functions
where a site is met. It is the sentence "the rule answers for what it was put on" as a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import graphgrad as gg


@dataclass
class Place:
    """One site, spelled out.

    inputs   tensors that it reads
    outputs  Identity nodes: what is read outside, kept apart from what the inside computes
    meaning  meaning(*gradients of outputs) -> gradients of inputs, in plain ops
    """

    inputs: Sequence[gg.Tensor]
    outputs: Sequence[gg.Tensor]
    meaning: Callable[..., Sequence[Any]]


@dataclass
class Spelling:
    """The places of a program, in the order in which they were built.

    missing  while a meaning is asked: which of its gradients did not arrive, and are zeros
    """

    places: list[Place] = field(default_factory=list)
    missing: Sequence[int] = ()

    def place(
        self, inputs: Sequence[Any], inside: Sequence[Any], meaning: Callable[..., Sequence[Any]]
    ) -> list[Any]:
        """A further place around what `inside` computes; what is read of it outside."""
        outputs = [gg.identity(t) for t in inside]
        self.places.append(Place(list(inputs), outputs, meaning))
        return outputs

    def gradients(
        self, ys: Sequence[gg.Tensor], xs: Sequence[gg.Tensor], seeds: Sequence[Any] | None = None
    ) -> list[gg.Tensor]:
        """The total gradients of ys with respect to xs, zeros where nothing flows."""
        places = list(self.places)
        doors = [t for place in places for t in place.outputs]
        found: dict[gg.Tensor, gg.Tensor] = {}
        _push(ys, seeds, [*xs, *doors], doors, found)
        for place in reversed(places):
            if not any(y in found for y in place.outputs):
                continue
            self.missing = [i for i, y in enumerate(place.outputs) if y not in found]
            dys = [found.get(y, gg.zeros_like(y)) for y in place.outputs]
            dxs = [gg.broadcast_like(d, x) for d, x in zip(place.meaning(*dys), place.inputs)]
            before = [t for t in doors if t not in set(place.outputs)]
            _push(place.inputs, dxs, [*xs, *before], doors, found)
        return [found.get(x, gg.zeros_like(x)) for x in xs]


def _push(
    ys: Sequence[Any], dys: Any, xs: Sequence[Any], stops: Sequence[Any], found: dict[Any, Any]
) -> None:
    """Add, to what was found for xs, the gradients of ys through plain ops alone."""
    every = list(dict.fromkeys(xs))
    for x, dx in zip(every, gg.gradients(list(ys), every, dys, stop_gradients=list(stops))):
        if dx is not None:
            found[x] = found[x] + dx if x in found else dx
