"""An IR module: functions, the declarations they need, and helpers that are written once."""

from __future__ import annotations

from collections.abc import Callable

from .text import Text
from .types import Target


class Module:
    """What is compiled at once.

    target  the machine
    flags   fast-math flags of ordinary arithmetic, "" for IEEE rules alone
    """

    def __init__(self, target: Target, flags: str = "") -> None:
        self.target = target
        self.flags = flags
        self._declared: dict[str, str] = {}
        self._functions: dict[str, str] = {}

    def declare(self, name: str, result: str, *args: str) -> None:
        """Make an external function or an intrinsic known."""
        self._declared[name] = f"declare {result} @{name}({', '.join(args)})"

    def add(self, name: str, text: str) -> None:
        """A function's whole text."""
        self._functions[name] = text

    def helper(self, name: str, write: Callable[[Body], str]) -> None:
        """A function that `write` gives the text of, when its name is first heard of."""
        if name not in self._functions:
            self._functions[name] = ""  # it may ask for itself, and for others
            self._functions[name] = write(Body(self))

    @property
    def text(self) -> str:
        """The whole module."""
        return "\n".join([*self._declared.values(), *self._functions.values(), ""])


class Body(Text):
    """The body of a function of a module."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.module = module
        self.pairs: dict[str, str] = {}  # what calls of this block made

    def label(self, name: str) -> None:
        """The start of a block."""
        super().label(name)
        self.pairs.clear()

    def slot(self, kind: str, count: int = 1) -> str:
        """Memory on the stack for values of a type, made when the function is entered."""
        name = f"%{self.new('slot')}"
        self.enter(f"{name} = alloca {kind}, i64 {count}, align 64")
        return name

    def enter(self, line: str) -> None:
        """An instruction before all others that are there."""
        self.lines.insert(0, f"  {line}")
