"""Forms of random numbers: draws of the graph, of the distributions that torch means."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.node import Tensor
from ..opened import Form, gg
from .numbers import to

__all__ = ["FORMS"]


def _dropout(x: Tensor, p: float, train: Any = True, **_: Any) -> Any:
    if not train or p == 0:
        return x
    return gg.nn.dropout(x, p) if p < 1 else x * 0.0


def _native_dropout(x: Tensor, p: float, train: Any = True, **_: Any) -> Any:
    """The numbers, and which were kept."""
    if train is False or p == 0:
        return x, gg.ones(x.shape, "bool")
    kept = gg.random.bernoulli(x.shape, 1 - p)
    return x * to(kept, x.dtype) * (1 / (1 - p) if p < 1 else 0.0), kept


def _drawn(name: str) -> Form:
    def call(size: Any, *_: Any, out: Any, **__: Any) -> Any:
        return getattr(gg.random, name)(tuple(size), dtype=out)

    return call


def _drawn_like(name: str) -> Form:
    return lambda x, *_, out, **__: getattr(gg.random, name)(tuple(x.shape), dtype=out)


def _integers(low: Any, high: Any, size: Any, *, out: Any, **_: Any) -> Any:
    return to(gg.random.integers(low, high, tuple(size)), out)


def _normal(x: Any, mean: Any = 0.0, std: Any = 1.0, *, out: Any, **_: Any) -> Any:
    return gg.random.normal(tuple(x.shape), mean, std, dtype=out)


def _uniform(x: Any, low: Any = 0.0, high: Any = 1.0, *, out: Any, **_: Any) -> Any:
    return gg.random.uniform(tuple(x.shape), low, high, dtype=out)


def _bernoulli(x: Any, *p: Any, out: Any, **_: Any) -> Any:
    return to(gg.random.bernoulli(tuple(x.shape), p[0] if p and p[0] is not None else x), out)


def _exponential(x: Any, rate: float = 1.0, *, out: Any, **_: Any) -> Any:
    return gg.random.exponential(tuple(x.shape), 1 / rate, dtype=out)


def _permutation(n: Any, *, out: Any, **_: Any) -> Any:
    return to(gg.random.permutation(n), out)


def _multinomial(p: Any, count: int, replacement: bool = False, **_: Any) -> Any:
    """Categories by their weights; without replacement by the largest of perturbed logarithms
    [Vieira 2014, "Gumbel-max trick and weighted reservoir sampling"]."""
    shape = (count, *p.shape) if replacement else tuple(p.shape)
    noise = -gg.log(-gg.log(gg.random.uniform(shape, np.finfo(p.dtype).tiny, dtype=p.dtype)))
    scores = gg.log(gg.stop_gradient(p)) + noise
    if replacement:
        return gg.moveaxis(gg.argmax(scores, axis=-1), 0, -1)
    return gg.topk(scores, count, axis=-1)[1]


FORMS: dict[str, Form] = {
    "dropout": _dropout,
    "native_dropout": _native_dropout,
    "rand": _drawn("uniform"),
    "randn": _drawn("normal"),
    "rand_like": _drawn_like("uniform"),
    "randn_like": _drawn_like("normal"),
    "randint.low": _integers,
    "randint": lambda high, size, *, out, **_: _integers(0, high, size, out=out),
    "randint_like": lambda x, high, *, out, **_: _integers(0, high, x.shape, out=out),
    "randint_like.low_dtype": lambda x, lo, hi, *, out, **_: _integers(lo, hi, x.shape, out=out),
    "randperm": _permutation,
    "normal_functional": _normal,
    "uniform": _uniform,
    "bernoulli": _bernoulli,
    "exponential": _exponential,
    "multinomial": _multinomial,
}
