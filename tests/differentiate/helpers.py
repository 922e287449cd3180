"""What the tests of the contract share: a fresh graph, values, rules to put on things, counting."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.verify import verify_graph
from graphgrad.ops.python_function import py_function


@pytest.fixture(autouse=True)
def graph() -> Iterator[gg.Graph]:
    """A graph of its own for each test; what it has become obeys the invariants of graphs."""
    with gg.Graph() as g:
        yield g
    if len(g) < 5_000:
        verify_graph(g)


def values(tensors: Any, feeds: Mapping[gg.Tensor, Any] | None = None) -> Any:
    """The values of a nesting of tensors, any tensor fed: numbers for 0-d ones, else arrays."""
    given = {t: np.asarray(v, t.dtype) for t, v in (feeds or {}).items()}
    leaves = gg.base.tree.flatten(tensors)
    found = gg.evaluate(leaves, given)
    for t, array in zip(leaves, found, strict=True):
        assert t.dtype == array.dtype, f"{t!r} got {array.dtype}"
    return gg.base.tree.unflatten(tensors, [_number(a) if a.ndim == 0 else a for a in found])


def _number(a: Any) -> float | complex:
    return complex(a) if a.dtype.kind == "c" else float(a)


def value(tensor: gg.Tensor, feeds: Mapping[gg.Tensor, Any] | None = None) -> Any:
    """The value of one tensor."""
    return values([tensor], feeds)[0]


def scaled(k: float) -> Callable[..., Any]:
    """A rule: k times the default."""

    def times(site: Any, *dys: Any) -> Any:
        return tuple(k * dx for dx in site.default(*dys))

    return times


def default(site: Any, *dys: Any) -> Any:
    """A rule: the default."""
    return site.default(*dys)


class Spy:
    """A rule that notes its calls. Without a function it gives the default."""

    def __init__(self, fn: Callable[..., Any] = default) -> None:
        self.fn = fn
        self.sites: list[Any] = []
        self.dys: list[tuple[Any, ...]] = []

    __name__ = "spy"

    def __call__(self, site: Any, *dys: Any) -> Any:
        self.sites.append(site)
        self.dys.append(dys)
        return self.fn(site, *dys)

    @property
    def calls(self) -> int:
        return len(self.sites)


def hidden(site: Any, op_type: str) -> gg.Tensor:
    """The output of the one node of that type inside a site."""
    (node,) = (n for n in site.nodes if n.type == op_type)
    return node.outputs[0]


def impure(x: gg.Tensor, f: Callable[[Any], Any], vjp: Any = None) -> gg.Tensor:
    """f of x as an op with effects, of x's type."""
    return py_function(f, [x], [(x.shape, x.dtype)], vjp=vjp)


def calls_of(action: Callable[[], object]) -> int:
    """How many Python calls an action makes: its cost, without a clock."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    gc.disable()  # or the finalizers of others would be counted
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def message_of(error: BaseException) -> str:
    """What a user reads: the message and its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])
