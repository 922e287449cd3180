"""One object for a key: the latest are kept, the others as long as anybody holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from .locks import lock_of_module

V = TypeVar("V")
_adding = lock_of_module()


class Interned(Generic[V]):
    """Objects by key, each the only one of its key while it lives.

    get   the object of a key if it is among the latest, else None: a method of a dict, it is quick
    most  how many are kept, whoever else holds them
    """

    def __init__(self, most: int) -> None:
        self._latest: dict[Any, V] = {}
        self._alive: WeakValueDictionary[Any, V] | None = None  # there are many, most of them empty
        self._most = most
        self.get = self._latest.get

    def add(self, key: Any, make: Callable[[], V]) -> V:
        """The object of a key, which is made where there is none."""
        with _adding:
            if self._alive is None:
                self._alive = WeakValueDictionary()
            interned = self._alive.get(key)
            if interned is None:
                interned = self._alive[key] = make()
            if len(self._latest) >= self._most:
                self._latest.clear()
            self._latest[key] = interned
        return interned

    def __len__(self) -> int:
        return 0 if self._alive is None else len(self._alive)
