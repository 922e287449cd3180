"""Locks and forks: a child process has one thread, and what another one held stays held for ever.

So either the fork waits for a lock, and the child finds what it guards whole, or the child gets a
new one, where it is held for long and what it guards is in order at any moment.

A thread may take again what it has: a signal handler or a finalizer that comes while a lock is held
would wait for ever for the work that it came in the midst of. So what a lock guards is in order for
who holds it, wherever he calls.
"""

from __future__ import annotations

import os
from threading import RLock
from weakref import WeakSet


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

    def __init__(self) -> None:
        self.lock = RLock()
        _own.add(self)


_own: WeakSet[OwnLock] = WeakSet()


def _after_fork() -> None:
    for own in _own:
        own.lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
