"""Compiled groups: each once for a process, those of a program in a few modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ....ir.op import lasting
from ....lower.loop_ir import LoopGroup
from ..emit.arrays import DECLARATIONS as ARRAYS
from ..emit.call import possible
from ..emit.jit import COMPILING, Loaded, host, loaded
from ..emit.module import Module
from .kernel import DECLARATIONS, NDARRAY, Shared, write_kernel

KEPT = 1024  # kernels, the latest used; a module of them takes some 50 KB
MODULE = 5_000  # nodes of a module, from which on the next begins: LLVM is slow with large ones


class Kernel(NamedTuple):
    """A compiled group. Its code is in memory as long as `loaded` is."""

    shared: Shared
    loaded: Loaded


_kernels: dict[tuple[LoopGroup, str], Kernel] = {}


def kernels_of(groups: Iterable[LoopGroup], flags: str = "") -> dict[LoopGroup, Kernel]:
    """The kernels of groups; those that are not there are compiled together.

    flags: fast-math flags of LLVM.
    """
    wanted = list(dict.fromkeys(groups))
    with COMPILING:
        kept = {g: _kernels.pop((g, flags), None) for g in wanted}
        made = {}
        for together in _modules([g for g in wanted if kept[g] is None]):
            made.update(_compiled(together, flags))
        kernels = {g: kernel or made[g] for g, kernel in kept.items()}
        _kernels.update(((g, flags), k) for g, k in kernels.items() if _may_be_kept(g))
        for old in list(_kernels)[:-KEPT]:
            _kernels.pop(old, None)
    return kernels


def _may_be_kept(group: LoopGroup) -> bool:
    return all(lasting(member.op) for member in group.members)


def _modules(groups: list[LoopGroup]) -> Iterator[list[LoopGroup]]:
    """The groups in their order, as many at a time as make a module."""
    together: list[LoopGroup] = []
    nodes = 0
    for group in groups:
        together.append(group)
        nodes += len(group.members)
        if nodes >= MODULE:
            yield together
            together, nodes = [], 0
    if together:
        yield together


def _compiled(groups: list[LoopGroup], flags: str) -> dict[LoopGroup, Kernel]:
    target = host()
    module = Module(target, flags)
    shared = [write_kernel(group, module, f"k{i}") for i, group in enumerate(groups)]
    text = "\n".join([*ARRAYS, *DECLARATIONS, module.text])
    names = [name for s in shared for name in (*s.plain, *(s.built_in if possible() else ()))]
    code = loaded(text, names, {NDARRAY: id(np.ndarray)})
    return {g: Kernel(s, code) for g, s in zip(groups, shared, strict=True)}
