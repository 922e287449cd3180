"""Locks and forks: a child process has one thread, and what another one held stays held for ever.

So either the fork waits for a lock, and the child finds what it guards whole, or the child gets a
new one, where it is held for long and what it guards is in order at any moment.

A thread may take again what it has: a signal handler or a finalizer that comes while a lock is held
would wait for ever for the work that it came in the midst of. So what a lock guards is in order for
who holds it, wherever he calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")


def lock_of_module() -> RLock:
    """A lock that whoever forks the process takes before and releases after, there and here.

    For a module to make once, and to hold shortly. Those made last are taken first: a module's
    before those of the modules that it imports, as a call takes them.
    """
    lock = RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


class OwnLock:
    """The `lock` of one object, a new one in a child process."""

    __slots__ = ("__weakref__", "lock")
    lock: RLock

    def __init__(self) -> None:
        self.renew()
        _own.add(self)

    def renew(self) -> None:
        """A lock that nobody holds."""
        self.lock = RLock()


class Turn(OwnLock):
    """What one thread at a time does. A thread is told where it would wait for itself.

    refusal  what is raised where it is this thread's already, or that of one that waits, maybe by
             way of others, for another turn of this thread
    """

    __slots__ = ("refusal",)

    def __init__(self, refusal: Callable[[], Exception]) -> None:
        self.refusal = refusal
        super().__init__()

    def take(self, work: Callable[..., T], *args: Any) -> T:
        """work(*args), while no other thread works in this turn."""
        me = get_ident()
        me = _acting.get(me, me)
        if me in _at_work:
            return self._take_another(me, work, *args)
        with self.lock:
            return _having(me, (self,), None, work, args)

    def _take_another(self, me: int, work: Callable[..., T], *args: Any) -> T:
        turns, before = _at_work[me], _waiting.get(me)
        try:
            _waiting[me] = self
            if self._would_wait_for(me):
                raise self.refusal()
            with self.lock:
                _waiting.pop(me, None)
                return _having(me, (*turns, self), turns, work, args)
        finally:
            _waiting.pop(me, None)
            if before is not None:
                _waiting[me] = before

    def _would_wait_for(self, me: int) -> bool:
        at: Turn | None = self
        holder: int | None = None
        while at is not None and holder != me:
            holder = next((who for who, turns in [*_at_work.items()] if at in turns), None)
            at = None if holder is None else _waiting.get(holder)
        return holder == me


def _having(
    me: int,
    turns: tuple[Turn, ...],
    before: tuple[Turn, ...] | None,
    work: Callable[..., T],
    args: tuple[Any, ...],
) -> T:
    """work(*args), while a thread has these turns; it has had others before, or None."""
    try:
        try:
            _at_work[me] = turns
            return work(*args)
        finally:
            if before is None:
                _at_work.pop(me, None)
            else:
                _at_work[me] = before
    except BaseException:  # an interrupt of the lines above, maybe
        if before is None:
            _at_work.pop(me, None)
        else:
            _at_work[me] = before
        raise


@contextmanager
def acting_for(other: int) -> Iterator[None]:
    """This thread works while that one waits for it, so the turns of that one are this one's."""
    me = get_ident()
    before = _acting.get(me)
    _acting[me] = other
    try:
        yield
    finally:
        if before is None:
            del _acting[me]
        else:
            _acting[me] = before


_own: WeakSet[OwnLock] = WeakSet()
_acting: dict[int, int] = {}
"""Threads that work for others."""
_at_work: dict[int, tuple[Turn, ...]] = {}
"""Threads that have turns, and which."""
_waiting: dict[int, Turn] = {}
"""Those of them that are about to take another. They are here first, so the last one sees all."""


def _after_fork() -> None:
    me = get_ident()
    _waiting.clear()
    _acting.clear()
    for other in [who for who in _at_work if who != me]:
        del _at_work[other]
    for own in _own:
        own.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
