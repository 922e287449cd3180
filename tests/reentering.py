"""Work, and other work that comes in the midst of it on the same thread.

    python -m tests.reentering BACKEND WAY STRIDE SECONDS

does the work undisturbed, and again while the other comes by a WAY of "line", "signal", "finalizer"
and "collector"; ends with 0 where all results, of both, are those of undisturbed work.

What the collector calls works in a copy of the context: before 3.12 Python collects in the midst of
ContextVar.set, which reads freed memory if another value is set there meanwhile.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
import time
import traceback
from contextlib import contextmanager
from contextvars import copy_context

import numpy as np

import graphgrad as gg

PACKAGE = os.path.dirname(gg.__file__)
LARGE = np.random.default_rng(0).normal(size=(300, 300))
SMALL = LARGE[:4, :3].copy()


def rule(site, *dys):
    """The gradient of the inside, which it asks for, twice."""
    return [2.0 * dx for dx in site.default(*dys)]


def loss(x):
    """Regions in each other, a choice, a loop over examples, and a stamp."""
    with gg.override_gradient(rule):
        y = gg.sin(x) * x
        with gg.override_gradient(rule):
            y = gg.exp(y * 0.1)
    with gg.gradient_override_map({"Tanh": rule}):
        y = gg.tanh(y)
    z = gg.cond(gg.sum(x) > 0, lambda: y * x, lambda: y - x)
    return gg.sum(gg.vmap(lambda row: gg.sum(row * row))(z))


def orders(x):
    """A number and its derivatives."""
    y = loss(x)
    dx = gg.gradients(y, x)
    return [y, dx, gg.gradients(gg.sum(dx * dx), x)]


class Work:
    """What runs, compiles, differentiates and builds."""

    def __init__(self, backend):
        self.backend = backend
        with gg.Graph():
            x = gg.placeholder((300, 300))
            y = gg.sum(gg.tanh(x * 0.5) * x, 0)
            self.blocks = gg.compile(x, [y, gg.exp(x) @ x], backend=backend, num_threads=2)
        with gg.Graph():
            x = gg.placeholder((2, 12, 12, 3))
            y = gg.nn.max_pool(gg.nn.conv(x, np.ones((3, 3, 3, 4))), (2, 2))
            images = [y, gg.gradients(gg.sum(y * y), x)]
            self.images = gg.compile(x, images, backend=backend)
        with gg.Graph():
            x = gg.placeholder((None, 3))
            self.lengths = gg.compile(x, [gg.tanh(x) * 2.0, gg.max(x, 0)], backend=backend)
        with gg.Graph():
            x, w = gg.placeholder((4, 3)), gg.variable(SMALL)
            loop = x
            for _ in range(550):  # a plan of so many steps is not compiled to Python at first
                loop = gg.cumsum(loop, 0) * 0.5
            self.session = gg.Session(x.graph, backend)
            self.fetched = [gg.sum(loop), w * x], {x: SMALL}
        self.length = 1

    def runs(self, scale=1.0):
        """All of one's own functions."""
        found = self.blocks(LARGE * scale)
        found += self.images(LARGE[:24, :36].reshape(2, 12, 12, 3) * scale)
        self.length = self.length % 40 + 1  # others than came last: it plans
        again = np.repeat(SMALL[:1] * scale, self.length, 0)
        rows, most = self.lengths(again)
        return [*found, rows[0], most, *self.session.run(*self.fetched)]

    def derivatives(self, scale=1.0):
        """A graph built, differentiated and compiled."""
        with gg.Graph():
            x = gg.placeholder((4, 3))
            return gg.compile(x, orders(x * scale), backend=self.backend)(SMALL)

    def forward(self, scale=1.0):
        """And by another door, with a session."""
        with gg.Graph() as g, gg.Session(g, self.backend) as session:
            x, w = gg.placeholder((4, 3)), gg.variable(SMALL)
            dx = gg.jvp(gg.sum(gg.cos(x) * w), x, x * scale)
            session.run(gg.assign(w, w * 2.0))
            return session.run([dx, w], {x: SMALL})


class Other:
    """Work that comes in the midst: each time the next, and never in the midst of itself."""

    def __init__(self, work):
        self.calls = [
            lambda: work.blocks(LARGE[::-1] * 3.0),
            lambda: work.images(LARGE[24:48, :36].reshape(2, 12, 12, 3)),
            lambda: work.runs(0.25),
            lambda: work.derivatives(0.25),
            lambda: work.forward(0.25),
        ]
        self.wanted = [call() for call in self.calls]
        self.times, self.busy = 0, False

    def __call__(self, *_):
        if self.busy:
            return
        self.busy = True
        try:
            at = self.times % len(self.calls)
            self.times += 1
            same(self.calls[at](), self.wanted[at])
        finally:
            self.busy = False


def same(found, wanted):
    """Equal to the last bit."""
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


# --- ways -----------------------------------------------------------------------------------------


@contextmanager
def line(other, stride):
    """At every so many lines of graphgrad that run."""
    count = 0

    def lines(frame, event, arg):
        nonlocal count
        count += event == "line"
        if event == "line" and count % stride == 0:
            other()
        return lines

    def calls(frame, event, arg):
        return lines if frame.f_code.co_filename.startswith(PACKAGE) else None

    sys.settrace(calls)
    try:
        yield
    finally:
        sys.settrace(None)


@contextmanager
def by_signal(other, stride):
    """By a timer's signals."""
    before = signal.signal(signal.SIGALRM, other)
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def finalizer(other, stride):
    """By garbage in a circle, whose `__del__` leaves some more behind."""
    going, errors = True, []

    class Garbage:
        def __init__(self):
            self.me = self

        def __del__(self):
            if going:
                Garbage()
                try:
                    copy_context().run(other)
                except BaseException as error:  # Python would print and forget it
                    traceback.print_exc()
                    errors.append(error)

    with often():
        Garbage()
        yield
        going = False
    gc.collect()
    if errors:
        raise errors[0]


@contextmanager
def collector(other, stride):
    """By the collector's callbacks."""
    errors = []

    def callback(phase, info):
        try:
            copy_context().run(other)
        except BaseException as error:
            traceback.print_exc()
            errors.append(error)

    with often():
        gc.callbacks.append(callback)
        try:
            yield
        finally:
            gc.callbacks.remove(callback)
    if errors:
        raise errors[0]


@contextmanager
def often():
    """Collections after a few objects."""
    before = gc.get_threshold()
    gc.set_threshold(300)
    try:
        yield
    finally:
        gc.set_threshold(*before)


WAYS = {"line": line, "signal": by_signal, "finalizer": finalizer, "collector": collector}


def main(backend, way, stride, seconds):
    """Every kind of work, disturbed for so long, at every so many lines."""
    stride, seconds = int(stride), float(seconds)
    work = Work(backend)
    other = Other(work)
    for kind in (work.runs, work.derivatives, work.forward):
        wanted, before, end = kind(), other.times, time.monotonic() + seconds
        kept = []  # more objects than before each time, so that the collector has a reason to come
        patience = end + 120  # where much else runs, the other may be late
        while time.monotonic() < (end if other.times > before else patience):
            kept += [[] for _ in range(10)]
            with WAYS[way](other, stride):
                found = kind()
            same(found, wanted)
        assert other.times > before, f"nothing came in the midst of {kind.__name__}"


if __name__ == "__main__":
    faulthandler.dump_traceback_later(230, exit=True)
    main(*sys.argv[1:])
