"""Flags of the command line: `tf.app.flags`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

__all__ = [
    "FLAGS", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum", "DEFINE_float", "DEFINE_integer",
    "DEFINE_list", "DEFINE_string", "mark_flag_as_required", "run",
]  # fmt: skip


class Flags:
    """The values of flags, read from the command line when the first is asked for."""

    def __init__(self) -> None:
        self.__dict__["_kinds"] = {}
        self.__dict__["_values"] = {}
        self.__dict__["_parsed"] = False

    def _define(self, name: str, default: Any, kind: Callable[[str], Any]) -> None:
        self._kinds[name] = kind
        self._values[name] = default
        self.__dict__["_parsed"] = False

    def __call__(self, argv: Any = None, known_only: bool = False) -> list[str]:
        given = list(sys.argv if argv is None else argv)
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        for name, kind in self._kinds.items():
            alone: dict[str, Any] = {"nargs": "?", "const": True} if kind is _truth else {}
            parser.add_argument(
                f"--{name}", f"-{name}", type=kind, default=None, dest=name, **alone
            )
            if kind is _truth:
                parser.add_argument(f"--no{name}", action="store_false", default=None, dest=name)
        found, rest = parser.parse_known_args(given[1:])
        self._values.update({k: v for k, v in vars(found).items() if v is not None})
        self.__dict__["_parsed"] = True
        return [*given[:1], *rest]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._values:
            raise AttributeError(f"no flag {name!r} is defined")
        if not self._parsed:
            self()
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._values[name] = value

    def __getitem__(self, name: str) -> Any:
        return _Flag(self, name)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Any:
        return iter(self._values)

    @property
    def __flags(self) -> Any:
        return self._values

    def flag_values_dict(self) -> dict[str, Any]:
        """{name: value}."""
        return {n: getattr(self, n) for n in self._values}

    def _parse_flags(self, args: Any = None) -> None:
        self()


class _Flag:
    def __init__(self, flags: Flags, name: str) -> None:
        self.name = name
        self.value = getattr(flags, name)


FLAGS = Flags()


def _truth(text: str) -> bool:
    if text.lower() in ("true", "t", "1", "yes"):
        return True
    if text.lower() in ("false", "f", "0", "no"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def _definer(kind: Callable[[str], Any]) -> Callable[..., None]:
    def define(name: str, default: Any = None, help: str = "", *_: Any, **__: Any) -> None:
        FLAGS._define(name, default, kind)

    define.__doc__ = "Define a flag: its name, its value by default, what it is for."
    return define


DEFINE_string, DEFINE_integer, DEFINE_float = map(_definer, (str, int, float))
DEFINE_bool = DEFINE_boolean = _definer(_truth)
DEFINE_list = _definer(lambda text: text.split(","))


def DEFINE_enum(name: str, default: Any, enum_values: Any, help: str = "", **_: Any) -> None:
    """Define a flag that is one of some words."""
    FLAGS._define(name, default, str)


def mark_flag_as_required(name: str) -> None:
    """Nothing."""


def run(main: Any = None, argv: Any = None) -> None:
    """Read the flags, call main with what is left of the command line, and exit."""
    rest = FLAGS(argv)
    main = main or sys.modules["__main__"].main
    sys.exit(main(rest))
