"""Random tensors: other values in each run, the same ones within a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..create import apply, convert_to_tensor, name_scope
from ..dtypes import as_dtype
from ..graph import Tensor, get_default_graph
from .array import _shape_value, shape, slice_
from .math import add, cast, floor, mod, multiply, subtract

__all__ = [
    "multinomial", "random_crop", "random_gamma", "random_normal", "random_poisson",
    "random_shuffle", "random_uniform", "set_random_seed", "truncated_normal",
]  # fmt: skip
Name = str | None


def set_random_seed(seed: int) -> None:
    """Random ops of the default graph are the same in each session from here on."""
    get_default_graph().seed = seed


def get_seed(op_seed: Any) -> tuple[Any, Any]:
    """The two seeds of an op: the graph's, and its own."""
    graph = get_default_graph()
    if graph.seed is not None:
        return graph.seed, graph.version if op_seed is None else op_seed
    return (None, None) if op_seed is None else (87654321, op_seed)


def _seeds(seed: Any) -> dict[str, Any]:
    first, second = get_seed(seed)
    return {"seed": first or 0, "seed2": second or 0}


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = "float32",
    seed: Any = None,
    name: Name = None,
) -> Tensor:
    """Uniform between two bounds; integers need maxval."""
    kind = as_dtype(dtype)
    if maxval is None:
        if kind.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {kind.name}")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        lengths = convert_to_tensor(_shape_value(shape), preferred_dtype="int32", name="shape")
        plain = not isinstance(minval, Tensor) and not isinstance(maxval, Tensor)
        plain = plain and minval == 0 and maxval == 1 and not kind.is_integer
        if plain:
            return apply("RandomUniform", lengths, dtype=kind, **_seeds(seed))
        low = convert_to_tensor(minval, kind, "min")
        high = convert_to_tensor(maxval, kind, "max")
        if kind.is_integer:
            return apply("RandomUniformInt", lengths, low, high, name=scope, **_seeds(seed))
        draws = apply("RandomUniform", lengths, dtype=kind, **_seeds(seed))
        return add(multiply(draws, subtract(high, low, name="sub"), name="mul"), low, name=scope)


def _scaled(type: str, default: str, what: str) -> Callable[..., Tensor]:
    def function(
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = "float32",
        seed: Any = None,
        name: Name = None,
    ) -> Tensor:
        kind = as_dtype(dtype)
        with name_scope(name or default, values=[shape, mean, stddev]) as scope:
            lengths = convert_to_tensor(_shape_value(shape), preferred_dtype="int32", name="shape")
            centre = convert_to_tensor(mean, kind, "mean")
            width = convert_to_tensor(stddev, kind, "stddev")
            draws = apply(type, lengths, dtype=kind, **_seeds(seed))
            return add(multiply(draws, width, name="mul"), centre, name=scope)

    function.__name__ = function.__qualname__ = default
    function.__doc__ = what
    return function


random_normal = _scaled("RandomStandardNormal", "random_normal", "Normal.")
truncated_normal = _scaled(
    "TruncatedNormal", "truncated_normal", "Normal, drawn again beyond two standard deviations."
)


def random_shuffle(value: Any, seed: Any = None, name: Name = None) -> Tensor:
    """The parts along the first axis in a random order."""
    return apply("RandomShuffle", value, name=name, **_seeds(seed))


def random_crop(value: Any, size: Any, seed: Any = None, name: Name = None) -> Tensor:
    """A part of this size, at a random place."""
    with name_scope(name, "random_crop", [value, size]):
        value = convert_to_tensor(value)
        size = convert_to_tensor(_shape_value(size), preferred_dtype="int32")
        room = add(subtract(shape(value), size), 1)
        start = random_uniform(size.shape, maxval=2**31 - 1, dtype="int32", seed=seed)
        return slice_(value, mod(start, room), size)


def multinomial(
    logits: Any, num_samples: Any, seed: Any = None, name: Name = None, output_dtype: Any = None
) -> Tensor:
    """So many numbers for each row, with probabilities softmax(logits)."""
    return apply(
        "Multinomial", logits, num_samples, name=name or "multinomial/Multinomial",
        output_dtype=as_dtype(output_dtype or "int64"), **_seeds(seed),
    )  # fmt: skip


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: Any = None, name: Name = None
) -> Tensor:
    """So many numbers for each row, with probabilities softmax(logits)."""
    return multinomial(logits, num_samples, seed, name, dtype)


def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = "float32",
    seed: Any = None,
    name: Name = None,
) -> Tensor:
    """Gamma, of concentration alpha and rate beta."""
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        alpha = convert_to_tensor(alpha, as_dtype(dtype), "alpha")
        draws: Tensor = apply("RandomGamma", _shape_value(shape), alpha, **_seeds(seed))
        return draws if beta is None else draws / convert_to_tensor(beta, alpha.dtype)


def random_poisson(
    lam: Any, shape: Any, dtype: Any = "float32", seed: Any = None, name: Name = None
) -> Tensor:
    """Poisson, of mean lam."""
    return apply(
        "RandomPoissonV2", _shape_value(shape), lam, name=name, dtype=as_dtype(dtype),
        **_seeds(seed),
    )  # fmt: skip


def bernoulli(probs: Any, shape: Any, dtype: Any, seed: Any = None) -> Tensor:
    """1 with a probability, else 0."""
    return cast(floor(random_uniform(shape, seed=seed) + probs), dtype)
