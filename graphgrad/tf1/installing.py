"""`import tensorflow as tf` of old programs, by graphgrad.tf1."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from .missing import missing

__all__ = ["install", "uninstall"]

HOME = __name__.rpartition(".")[0]


class Installed(MetaPathFinder, Loader):
    """Finds `tensorflow` and what is below it; as a context manager, until the end of the block.

    absent  modules that are not there, whose names say so when they are used
    """

    def __init__(self) -> None:
        self.absent: dict[str, ModuleType] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """A module of TensorFlow's."""
        if fullname.partition(".")[0] != "tensorflow":
            return None
        return spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        """An ordinary one, which the one here takes the place of."""
        return None

    def exec_module(self, module: Any) -> None:
        """The module here, under TensorFlow's name."""
        path = module.__name__.partition(".")[2]
        home = f"{HOME}.{path}".rstrip(".")
        try:
            sys.modules[module.__name__] = import_module(home)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{home}.".startswith(f"{error.name}."):
                raise
            module.__getattr__ = partial(missing, prefix=f"{path}.")
            self.absent[path] = module

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, *_: object) -> None:
        uninstall()


_installed = Installed()


def install() -> Installed:
    """From here on, `import tensorflow` and its submodules import graphgrad.tf1.

    Returns: a context manager, which ends it; so does `uninstall()`.

    Raises: RuntimeError if TensorFlow itself is already imported.
    """
    real = sys.modules.get("tensorflow")
    if real is not None and real is not sys.modules[HOME]:
        where = getattr(real, "__file__", None) or "no file"
        raise RuntimeError(
            f"tensorflow is already imported, from {where}: call graphgrad.tf1.install() before "
            "anything imports it, or write `import graphgrad.tf1 as tf`."
        )
    if _installed not in sys.meta_path:
        sys.meta_path.insert(0, _installed)
    return _installed


def uninstall() -> None:
    """`import tensorflow` is as it was before `install()`."""
    if _installed not in sys.meta_path:
        return
    sys.meta_path.remove(_installed)
    for name in [n for n in sys.modules if n.partition(".")[0] == "tensorflow"]:
        del sys.modules[name]
    for path, module in _installed.absent.items():  # importing has put them into their parents
        parent, _, last = f"{HOME}.{path}".rpartition(".")
        if vars(sys.modules.get(parent, module)).get(last) is module:
            delattr(sys.modules[parent], last)
    _installed.absent.clear()
