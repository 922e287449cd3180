"""Compiled groups: each recipe once for a process, those of a program in a few modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ...ir.op import lasting
from .arrays import DECLARATIONS as ARRAYS
from .call import possible
from .jit import COMPILING, Loaded, host, loaded
from .kernel import DECLARATIONS, NDARRAY, Shared, write_kernel
from .module import Module
from .recipe import Recipe

KEPT = 4096  # kernels, the latest used
MODULE = 5_000  # nodes of a module, from which on the next begins: LLVM is slow with large ones


class Kernel(NamedTuple):
    """A compiled recipe. Its code is in memory as long as `loaded` is."""

    shared: Shared
    loaded: Loaded


_kernels: dict[tuple[Recipe, str], Kernel] = {}


def kernels_of(recipes: Iterable[Recipe], flags: str = "") -> dict[Recipe, Kernel]:
    """The kernels of recipes; those that are not there are compiled together.

    flags: fast-math flags of LLVM.
    """
    wanted = list(dict.fromkeys(recipes))
    with COMPILING:
        kept = {r: _kernels.pop((r, flags), None) for r in wanted}
        made = {}
        for together in _modules([r for r in wanted if kept[r] is None]):
            made.update(_compiled(together, flags))
        found = {r: kernel or made[r] for r, kernel in kept.items()}
        _kernels.update(((r, flags), k) for r, k in found.items() if _may_be_kept(r))
        for old in list(_kernels)[:-KEPT]:
            _kernels.pop(old, None)
    return found


def _may_be_kept(recipe: Recipe) -> bool:
    return all(lasting(member.op) for member in recipe.members)


def _modules(recipes: list[Recipe]) -> Iterator[list[Recipe]]:
    """The recipes in their order, as many at a time as make a module."""
    together: list[Recipe] = []
    nodes = 0
    for recipe in recipes:
        together.append(recipe)
        nodes += len(recipe.members)
        if nodes >= MODULE:
            yield together
            together, nodes = [], 0
    if together:
        yield together


def _compiled(recipes: list[Recipe], flags: str) -> dict[Recipe, Kernel]:
    target = host()
    module = Module(target, flags)
    shared = [write_kernel(recipe, module, f"k{i}") for i, recipe in enumerate(recipes)]
    text = "\n".join([*ARRAYS, *DECLARATIONS, module.text])
    names = [name for s in shared for name in (s.built_in if possible() else s.plain)]
    code = loaded(text, names, {NDARRAY: id(np.ndarray)})
    return {r: Kernel(s, code) for r, s in zip(recipes, shared, strict=True)}
