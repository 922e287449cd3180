"""Every primitive of JAX that has a form, and why the others have none."""

from __future__ import annotations

from ..opened import Form
from . import indices, numbers, products, random, shapes

__all__ = ["LEFT_OUT", "TABLE"]

TABLE: dict[str, Form] = {
    **numbers.FORMS,
    **shapes.FORMS,
    **indices.FORMS,
    **products.FORMS,
    **random.FORMS,
}

LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        [
            "all_gather",
            "all_to_all",
            "axis_index",
            "pmax",
            "pmin",
            "ppermute",
            "psum",
            "ragged_all_to_all",
        ],
        "speaks to other devices",
    ),
    **dict.fromkeys(["after_all", "create_token"], "orders effects"),
    **dict.fromkeys(["get", "swap", "empty2"], "is about references"),
    **dict.fromkeys(["reduce", "reduce_window", "select_and_scatter"], "reduces by any function"),
    **dict.fromkeys(["rng_bit_generator", "rng_uniform"], "is XLA's own generator"),
    **dict.fromkeys(["hessenberg", "schur", "tridiagonal"], "has no op"),
    **dict.fromkeys(["random_gamma", "igamma_grad_a"], "has no op"),
    "eig": "gives left vectors too; gg.linalg.eig is of the right ones",
    "custom_vmap_call": "has a rule for batches",
    "custom_lin": "is a part of a derivative",
}
