"""One pool of threads for the process, over which large work is spread.

Who has work shares it out: the caller works on its own tasks, and idle threads of the pool help.
So a call never waits for a thread to be free, and calls from many threads share one pool.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from itertools import pairwise
from queue import SimpleQueue
from threading import Condition, Lock, RLock, Thread, local

Task = Callable[[int], object]
Range = tuple[int, int]


def available_threads() -> int:
    """How many threads can run at once: the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel(task: Task, count: int, threads: int) -> None:
    """task(0), ..., task(count - 1), each once, in any order, on at most this many threads.

    The caller's thread is one of them; the others see the caller's context variables (np.errstate
    is one). Returns when all tasks are done. Where a task raises, no further ones start, and the
    first error is raised here when those that run have ended. Called by a task, it runs in order
    on the thread of that task.
    """
    if threads < 2 or count < 2 or getattr(_here, "working", False):
        for i in range(count):
            task(i)
        return
    helpers = min(threads, count) - 1
    job = _Job(task, count, helpers)
    try:
        _pool.ask(job, helpers)
        job.work()
    finally:
        job.close()
    if job.error is not None:
        error, job.error = job.error, None  # a thread that comes late may have the job for long
        try:
            raise error
        finally:
            del error  # it holds this frame


def ranges(length: int, parts: int, unit: int = 1) -> list[Range]:
    """At most so many ranges, one at least, from 0 to length; each starts at a multiple of unit."""
    units = -(-length // unit)
    parts = max(min(parts, units), 1)
    return list(pairwise([min(units * i // parts * unit, length) for i in range(parts + 1)]))


def shared_out(task: Callable[..., object], parts: Sequence[Range], threads: int) -> None:
    """task(start, stop) for each of these ranges, as by `parallel`."""
    parallel(lambda i: task(*parts[i]), len(parts), threads)


class _Job:
    """Tasks that several threads take from, and who is at work on them.

    A thread of the pool may come to it late. Nothing but the job itself is there for it then.
    """

    def __init__(self, task: Task, count: int, helpers: int) -> None:
        self.error: BaseException | None = None
        self._task = task
        self._contexts = [copy_context() for _ in range(helpers)]
        self._left = iter(range(count))
        self._changed = Condition(Lock())
        self._helpers = 0
        self._closed = False

    def work(self) -> None:
        """Run tasks until none is left."""
        _here.working = True
        try:
            while True:
                with self._changed:
                    i = next(self._left, None)
                if i is None:
                    break
                self._task(i)
        except BaseException as error:
            self._fail(error)
        finally:
            _here.working = False

    def help(self) -> None:
        """Work for the caller, who waits for the end of it; nothing, where it came too late."""
        with self._changed:
            if self._closed:
                return
            self._helpers += 1
            context = self._contexts.pop()
        context.run(self.work)
        del context  # or it outlives the call, if this thread has to wait once it has told its end
        with self._changed:
            self._helpers -= 1
            self._changed.notify()

    def close(self) -> None:
        """Return when nobody works on this any more, whatever interrupts the waiting."""
        while True:
            try:
                with self._changed:
                    self._closed = True
                    self._changed.wait_for(lambda: not self._helpers)
                break
            except BaseException as error:
                self._fail(error)
        self._task = _done
        self._contexts.clear()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._left = iter(range(0))
            self.error = self.error or error


def _done(i: int) -> None:
    """The task of a job that is closed."""


class _Pool:
    """Threads that wait for jobs. They start when first needed, and end with the process."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[_Job] = SimpleQueue()
        self._starting = RLock()  # a signal handler may come to ask, too
        self._threads = 0

    def ask(self, job: _Job, helpers: int) -> None:
        """Ask this many threads to help with a job."""
        if self._threads < helpers:
            self._start(helpers)
        for _ in range(helpers):
            self._asked.put(job)

    def _start(self, wanted: int) -> None:
        with self._starting:
            while self._threads < wanted:
                thread = Thread(target=self._serve, name="graphgrad", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads to be had: the caller does the work
                    return
                self._threads += 1

    def _serve(self) -> None:
        while True:
            job = self._asked.get()
            job.help()
            del job


_here = local()
_pool = _Pool()


def _after_fork() -> None:
    """A child process has none of the threads, and nobody works in it yet."""
    global _here, _pool
    _here, _pool = local(), _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
