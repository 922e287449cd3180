"""The pool: every task once; errors, nesting, forks, context; no thread keeps the process."""

import os
import subprocess
import sys
import threading
import time
import warnings
from contextvars import ContextVar, copy_context
from weakref import ref

import numpy as np
import pytest

from graphgrad.execute.run import threads
from graphgrad.execute.run.threads import available_threads, parallel


@pytest.mark.parametrize("count", [0, 1, 2, 7, 500])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_every_task_runs_once(count, workers):
    done = [0] * count

    def task(i):
        done[i] += 1

    parallel(task, count, workers)
    assert done == [1] * count


def test_tasks_run_on_several_threads_and_on_the_callers():
    meeting = threading.Barrier(3, timeout=60)
    seen = set()

    def task(i):
        meeting.wait()  # passes only if three threads are here at once
        seen.add(threading.current_thread())

    parallel(task, 3, 3)
    assert len(seen) == 3
    assert threading.current_thread() in seen
    assert all(t.daemon for t in seen if t is not threading.current_thread())


def test_one_thread_is_the_callers():
    seen = []
    parallel(lambda i: seen.append((i, threading.current_thread())), 5, 1)
    assert seen == [(i, threading.current_thread()) for i in range(5)]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_reaches_the_caller_and_stops_the_rest(workers):
    started = []

    def task(i):
        started.append(i)
        raise ZeroDivisionError(f"task {i}")

    with pytest.raises(ZeroDivisionError, match="task"):
        parallel(task, 1000, workers)
    assert len(started) <= workers
    parallel(lambda i: None, 10, workers)  # the pool is as good as before


def test_an_error_waits_for_what_runs():
    entered, ended = threading.Event(), []

    def task(i):
        if i == 0:
            entered.wait(60)
            raise ValueError("first")
        entered.set()
        time.sleep(0.05)
        ended.append(i)

    with pytest.raises(ValueError, match="first"):
        parallel(task, 2, 2)
    assert ended == [1]


def test_an_interrupt_while_waiting_waits_too():
    class Interrupt(BaseException):
        pass

    caller, entered, ended = threading.get_ident(), threading.Event(), []

    def task(i):
        if threading.get_ident() == caller:
            entered.wait(60)
            raise Interrupt
        entered.set()
        time.sleep(0.05)
        ended.append(i)

    with pytest.raises(Interrupt):
        parallel(task, 2, 2)
    assert len(ended) == 1


def test_nested_calls_run_where_they_are():
    pairs = []

    def outer(i):
        here = threading.current_thread()
        parallel(lambda j: pairs.append((i, j, threading.current_thread() is here)), 3, 4)

    parallel(outer, 4, 2)
    assert sorted(pairs) == [(i, j, True) for i in range(4) for j in range(3)]


def test_many_callers_share_the_pool():
    totals = [0] * 8

    def call(k):
        for _ in range(50):
            part = [0] * 16

            def task(i, part=part):
                part[i] = i

            parallel(task, 16, 3)
            totals[k] += sum(part)

    callers = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert totals == [50 * 120] * 8


def test_workers_see_the_callers_context():
    variable = ContextVar("variable", default=0)
    variable.set(7)
    meeting = threading.Barrier(2, timeout=60)
    seen = []

    def task(i):
        meeting.wait()
        seen.append(variable.get())
        np.log(np.zeros(3))  # warns, were np.errstate not carried

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        parallel(task, 2, 2)
    assert seen == [7, 7]


def test_no_more_threads_to_be_had(monkeypatch):
    pool = threads._Pool()
    monkeypatch.setattr(threads, "_pool", pool)

    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    done = []
    parallel(done.append, 5, 4)
    assert done == [0, 1, 2, 3, 4]


def test_what_a_thread_comes_to_late_holds_nothing(monkeypatch):
    """Neither what was worked on nor the caller's context."""
    pool = threads._Pool()
    monkeypatch.setattr(threads, "_pool", pool)
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)

    class Thing:
        pass

    variable = ContextVar("variable", default=None)

    def work():
        done, thing = [], Thing()
        variable.set(thing)
        parallel(lambda i: done.append((i, thing)), 5, 4)
        assert [i for i, _ in done] == [0, 1, 2, 3, 4]
        return ref(thing)

    left = copy_context().run(work)
    assert pool._asked.qsize() == 3
    assert left() is None
    for _ in range(3):
        pool._asked.get().help()


def test_a_thread_that_tells_its_end_holds_nothing_any_more():
    """It may have to wait just then, while the caller goes on."""

    class Thing:
        pass

    class Changed(threading.Condition):
        def notify(self, n=1):
            seen.append(left())

    variable = ContextVar("variable", default=None)
    seen = []

    def ask():
        thing = Thing()
        variable.set(thing)
        return threads._Job(lambda i: None, 1, 1), ref(thing)

    job, left = copy_context().run(ask)
    job._changed = Changed(threading.Lock())
    assert left() is not None
    job.help()
    assert seen == [None]


def test_an_error_does_not_stay_with_a_thread_that_comes_late(monkeypatch):
    pool = threads._Pool()
    monkeypatch.setattr(threads, "_pool", pool)
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)

    class Failed(Exception):
        pass

    def task(i):
        raise Failed

    with pytest.raises(Failed) as error:
        parallel(task, 2, 2)
    gone = ref(error.value)
    del error
    assert gone() is None
    assert pool._asked.qsize() == 1


def test_available_threads():
    assert 1 <= available_threads() <= (os.cpu_count() or 1)


SCRIPT = """
import os, sys
from graphgrad.execute.run.threads import parallel

def total(n):
    found = []
    parallel(lambda i: found.append(i), n, 3)
    return sum(found)

assert total(100) == 4950
{rest}
"""
FORK = """
if os.fork() == 0:
    os._exit(total(10) != 45)
assert os.wait()[1] == 0
assert total(10) == 45
"""


def _run(rest):
    code = SCRIPT.format(rest=rest)
    return subprocess.run([sys.executable, "-c", code], timeout=300, capture_output=True, text=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_pool_of_its_own():
    done = _run(FORK)
    assert done.returncode == 0, done.stderr


def test_idle_threads_do_not_keep_the_process():
    done = _run("")
    assert (done.returncode, done.stderr) == (0, "")


def test_calls_at_the_end_of_the_process():
    done = _run("import atexit; atexit.register(lambda: print(total(10)))")
    assert (done.returncode, done.stdout.strip()) == (0, "45")
