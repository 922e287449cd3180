"""A forked child finds locks free and what they guard whole, whoever held them at the fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref

import pytest

from graphgrad.base import locks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

START = """
import os, signal, sys, threading, time
from graphgrad.base import locks

def child(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            work()
        except BaseException as error:
            print(type(error), error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def busy(work):
    "A thread that does this; it has begun when this returns."
    begun = threading.Event()
    thread = threading.Thread(target=work, args=(begun,), daemon=True)
    thread.start()
    assert begun.wait(60)
    return thread

"""


def passes(script: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", START + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_fork_waits_for_the_lock_of_a_module():
    passes("""
lock, guarded = locks.lock_of_module(), []

def work(begun):
    with lock:
        guarded.append(1)
        begun.set()
        time.sleep(0.2)
        guarded.append(2)

def look():
    with lock:
        assert guarded == [1, 2]

thread = busy(work)
child(look)
thread.join(60)
assert lock.acquire(timeout=60)
""")


def test_who_forks_may_hold_the_lock_of_a_module():
    passes("""
lock = locks.lock_of_module()

def look():
    lock.release()
    assert busy(lambda begun: lock.acquire() and begun.set())

lock.acquire()
child(look)
lock.release()
assert busy(lambda begun: lock.acquire() and begun.set())
""")


def test_locks_of_modules_are_taken_as_calls_take_them():
    """The one made last first; a thread on its way from that to the other is waited for."""
    passes("""
lower = locks.lock_of_module()
upper = locks.lock_of_module()

def work(begun):
    with upper:
        begun.set()
        time.sleep(0.2)
        with lower:
            pass

thread = busy(work)
child(lambda: lower.acquire() and upper.acquire())
thread.join(60)
assert not thread.is_alive()
""")


def test_a_child_has_own_locks_of_its_own():
    passes("""
kept, own = locks.OwnLock(), locks.OwnLock()
kept.lock.acquire()
end = threading.Event()

def work(begun):
    with own.lock:
        begun.set()
        assert end.wait(60)

def look():
    with own.lock, kept.lock:
        held(own.lock)
    child(lambda: own.lock.acquire(blocking=False) or os._exit(2))  # a grandchild too

def held(lock):
    "Another thread cannot have it."
    found = []
    busy(lambda begun: (found.append(lock.acquire(blocking=False)), begun.set()))
    assert found == [False]

thread = busy(work)
child(look)
held(kept.lock)
assert not own.lock.acquire(blocking=False)
end.set()
thread.join(60)
assert own.lock.acquire(timeout=60)
""")


def test_a_thread_may_take_again_what_it_has():
    """In a signal handler or a finalizer: it would wait for itself."""
    own = locks.OwnLock()
    with own.lock, own.lock:
        pass


def test_own_locks_end_with_what_has_them():
    here = [locks.OwnLock() for _ in range(3)]
    assert all(own in locks._own for own in here)
    kept = [weakref.ref(own) for own in here]
    del here
    assert [own() for own in kept] == [None] * 3


class Interrupted:
    """A lock that calls something in the thread that comes to take it, as a signal handler may."""

    def __init__(self, lock, call):
        self.lock, self.call, self.who = lock, call, threading.get_ident()

    def __enter__(self):
        if threading.get_ident() == self.who:
            self.call()
        self.lock.acquire()

    def __exit__(self, *exc):
        self.lock.release()


def test_a_thread_still_waits_for_its_turn_after_a_handler_took_another_one():
    """Who then wants what that thread has is told: neither would ever go on."""
    first, second, third = (locks.Turn(lambda: LookupError("a circle")) for _ in range(3))
    taken, go_on, seen = threading.Event(), threading.Event(), []

    def other():
        taken.set()
        assert go_on.wait(60)
        try:
            first.take(seen.append, "had it")
        except LookupError as error:
            seen.append(str(error))

    def handler():
        third.take(seen.append, "handled")
        go_on.set()
        thread.join(60)
        assert not thread.is_alive()

    thread = threading.Thread(target=lambda: second.take(other), daemon=True)
    thread.start()
    assert taken.wait(60)
    second.lock = Interrupted(second.lock, handler)
    first.take(lambda: second.take(seen.append, "had both"))
    assert seen == ["handled", "a circle", "had both"]
