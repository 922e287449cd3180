"""Names of TensorFlow's that are not there: an error at their first use says what to write."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader
from typing import Any, NoReturn

__all__ = ["Missing", "import_absent_below", "missing", "say_what_is_missing"]

INSTEAD = {
    "SparseTensor": "dense tensors, with tf.gather and tf.scatter_nd",
    "data": "NumPy arrays, fed by feed_dict",
    "estimator": "tf.Session and a training loop",
    "FIFOQueue": "NumPy arrays, fed by feed_dict",
    "gfile": "Python's own open and pathlib",
    "keras": "tf.layers, or tf.nn with tf.get_variable",
    "saved_model": "tf.train.Saver, and the program that builds the graph",
    "sparse_placeholder": "tf.placeholder of dense tensors",
    "sparse_tensor_dense_matmul": "tf.matmul of dense tensors",
    "read_file": "Python's own open, fed by feed_dict",
    "decode_raw": "numpy.frombuffer, fed by feed_dict",
    "image.decode_jpeg": "Pillow, fed by feed_dict",
    "image.decode_png": "Pillow, fed by feed_dict",
    "ctc_loss": "graphgrad.nn.ctc_loss, in a graph of graphgrad's own",
    "svd": "tf.svd",
}


class Missing:
    """Stands for something that is not there: it can be imported, and used for nothing."""

    def __init__(self, name: str, offered: Any = ()) -> None:
        self.__dict__["_name"] = name
        prefix, dot, last = name.rpartition(".")
        near = get_close_matches(last, offered, n=1, cutoff=0.8)
        self.__dict__["_near"] = [prefix + dot + n for n in near]

    def _fail(self) -> NoReturn:
        name = self.__dict__["_name"]
        last = name.rpartition(".")[2]
        instead = INSTEAD.get(name) or INSTEAD.get(last)
        near = self.__dict__["_near"]
        if instead:
            hint = f" Use {instead}."
        elif near:
            hint = f" Did you mean tf.{near[0]}?"
        else:
            hint = " docs/tf1.md lists what is there, and the native names of graphgrad."
        raise NotImplementedError(f"graphgrad.tf1 has no tf.{name}.{hint}")

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        self._fail()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.__dict__['_name']}.{name}")

    def __instancecheck__(self, other: Any) -> bool:
        return False

    def __iter__(self) -> NoReturn:
        self._fail()

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        """A class of it can be written; making an object of that class is its first use."""
        stands_for = self

        class Stub:
            def __init__(self, *_: Any, **__: Any) -> None:
                stands_for._fail()

        return (Stub,)

    def __repr__(self) -> str:
        return f"<tf.{self.__dict__['_name']}, which is not there>"


class Absent(MetaPathFinder, Loader):
    """Finds modules of TensorFlow's that are not there, so that importing them is not an error yet.

    places  the packages below which it finds them
    """

    places: tuple[str, ...] = ()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """A module below one of the places."""
        if not fullname.startswith(self.places):
            return None
        return spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        """An ordinary one."""
        return None

    def exec_module(self, module: Any) -> None:
        """All its names stand for what is not there."""
        path = module.__name__.partition(".tf1.")[2]
        module.__getattr__ = partial(missing, prefix=f"{path}.")


_absent = Absent()


def import_absent_below(package: str) -> None:
    """Modules below a package that are not there can be imported."""
    if _absent not in sys.meta_path:
        sys.meta_path.append(_absent)
    _absent.places = (*_absent.places, package + ".")


def missing(name: str, prefix: str = "", offered: Any = ()) -> Missing:
    """What stands for a name. Raises AttributeError for names that no module of TensorFlow has."""
    if name.startswith("_"):
        raise AttributeError(f"module 'graphgrad.tf1' has no attribute {prefix + name!r}")
    return Missing(prefix + name, offered)


def say_what_is_missing(home: str, names: Iterable[str]) -> None:
    """Modules of these names below a package, and all below those, do so for what they lack."""
    places = tuple([f"{home}.{name}." for name in names])
    said = set()
    for full, module in sorted(sys.modules.items(), key=lambda m: m[0].count(".")):
        if f"{full}.".startswith(places) and id(module) not in said:
            said.add(id(module))  # by its shortest name
            offered = [n for n in vars(module) if not n.startswith("_")]
            prefix = full.removeprefix(home + ".") + "."
            module.__dict__["__getattr__"] = partial(missing, prefix=prefix, offered=offered)
