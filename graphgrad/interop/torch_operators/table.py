"""Every operator of ATen that has a form, and why core ones have none."""

from __future__ import annotations

from typing import Any

from ..opened import Form
from . import backwards, indices, layers, numbers, products, random, shapes

__all__ = ["LEFT_OUT", "TABLE", "form_of", "name_of"]

TABLE: dict[str, Form] = {
    **numbers.FORMS,
    **shapes.FORMS,
    **indices.FORMS,
    **products.FORMS,
    **layers.FORMS,
    **random.FORMS,
    **backwards.FORMS,
}

LEFT_OUT: dict[str, str] = {
    "nonzero": "has a length that is only known at run time",
    "masked_select": "has a length that is only known at run time",
    "unique_dim": "has a length that is only known at run time",
    "_unique2": "has a length that is only known at run time",
    "bincount": "has a length that is only known at run time",
    "_local_scalar_dense": "reads a number while the program is traced: .item(), or an if of it",
    "multilabel_margin_loss_forward": "has other values where torch decomposes it: "
    "gg.nn.multilabel_margin_loss has those of torch",
    "_embedding_bag": "has bags of computed lengths",
    "linalg_eig": "scales its vectors otherwise",
    "_native_batch_norm_legit": "writes; torch.export gives its functional form",
    "resize_": "writes; torch.export gives its functional form",
    "sym_is_contiguous": "asks where in memory a tensor is",
    "sym_storage_offset": "asks where in memory a tensor is",
    "sym_stride.int": "asks where in memory a tensor is",
    "graphgrad::order": "is a function of graphgrad: build its graph in this one",
    "atan2.out": "writes; torch.export gives its functional form",
}


def name_of(target: Any) -> str:
    """An operator's name as in the table, `add.Tensor`; those of others with their namespace."""
    name = str(getattr(target, "_name", None) or getattr(target, "__name__", target))
    return name.removeprefix("aten::").removesuffix(".default")


def form_of(target: Any) -> Form | None:
    """The form of an operator: of the overload, or of all."""
    name = name_of(target)
    return TABLE.get(name) or TABLE.get(name.split(".")[0])
