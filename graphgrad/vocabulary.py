"""All op types of graphgrad: imported, it imports every module that defines one."""

from importlib import import_module
from pkgutil import walk_packages

from . import ops
from .differentiate.forward import jvp_rule
from .differentiate.travel import deferred
from .lower import blocks, loop_ir

__all__: list[str] = []

ELSEWHERE = (blocks, deferred, jvp_rule, loop_ir)
"""Modules outside of `ops/` that define op types."""

for _module in walk_packages(ops.__path__, f"{ops.__name__}."):
    import_module(_module.name)
