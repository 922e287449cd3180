"""Modules that load when they are first used, so that `import graphgrad` stays quick."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


class LazyModule:
    """Stands for a module, which is imported when an attribute of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        member = getattr(import_module(self._name), attribute)
        setattr(self, attribute, member)
        return member


class LazyMethod:
    """Stands for a method of a class, until the module that puts it in place is imported.

    That is when the method is first asked for.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        import_module(self._module)
        return getattr(owner if instance is None else instance, self._name)


def lazy_module(name: str) -> Any:
    """What stands for the module of that name; None if its top package is not installed.

    Nothing is imported to find out: not even the package that the module is in.
    """
    return None if find_spec(name.partition(".")[0]) is None else LazyModule(name)
