"""Compiling from many threads, in forked processes, and while the garbage collector works."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("llvmlite")

from llvmlite.binding import ffi

from graphgrad.execute.llvm.emit import cache, jit
from graphgrad.execute.llvm.kernels import library
from graphgrad.execute.llvm.loops import groups


def function(number):
    """Loops that no other function shares, beside a product."""
    with gg.Graph():
        x, w = gg.placeholder((4, 5)), gg.placeholder((5, 3))
        y = gg.sum(gg.tanh(x) * float(number) + 1.0, axis=0, keepdims=True) @ w
        return gg.compile([x, w], [y, *gg.gradients(gg.sum(y), [x])], backend="llvm")


def right(number, found):
    """Whether these are the function's values of ones."""
    y, dx = found
    t = np.tanh(1.0)
    np.testing.assert_allclose(y, np.full((1, 3), 20 * (t * number + 1.0)), 1e-12)
    np.testing.assert_allclose(dx, np.full((4, 5), 3 * number * (1.0 - t * t)), 1e-12, 1e-12)
    return True


ARRAYS = np.ones((4, 5)), np.ones((5, 3))


def test_threads_that_compile_and_call_at_once():
    shared, done = function(0.5), []

    def work(i):
        for k in range(6):
            number = 1000 + 10 * (k if k % 2 else i * 100 + k)  # some of all threads, some of one
            done.append(right(number, function(number)(*ARRAYS)) and right(0.5, shared(*ARRAYS)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 36


FORK = """
import os, signal, sys, threading
sys.path.insert(0, {root!r})
from graphgrad.execute.llvm.loops import groups
from tests.execute.llvm.test_groups import ARRAYS, function, right

right(1, function(1)(*ARRAYS))
stop = threading.Event()

def work():
    number = 1000
    while not stop.is_set():
        number += 1
        function(number)
        groups._kernels.clear()  # nothing has its code any more

thread = threading.Thread(target=work, daemon=True)
thread.start()
ends = []
for i in range(4):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(not right(2 + i, function(2 + i)(*ARRAYS)))
    ends.append(os.waitpid(child, 0)[1])
stop.set()
thread.join()
assert ends == [0] * 4, ends
"""


@pytest.mark.ci
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_children_compile_though_a_thread_of_the_parent_was_compiling(request):
    """And was done with what it had compiled."""
    script = FORK.format(root=str(request.config.rootpath))
    environment = {**os.environ, "GRAPHGRAD_CACHE": "off"}
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr


@pytest.mark.ci
def test_functions_come_and_go_while_the_garbage_collector_works(monkeypatch):
    """In cycles, with kernels forgotten at once: what still runs has its code."""
    monkeypatch.setattr(groups, "KEPT", 1)
    kept = [function(i) for i in range(3)]
    before = gc.get_threshold()
    gc.set_threshold(200)
    try:
        for number in range(100, 112):
            ring = [function(number)]
            ring.append(ring)
            if number % 3 == 0:
                right(number, ring[0](*ARRAYS))
            gone = weakref.ref(ring[0])
            del ring
            gc.collect()
            assert gone() is None
            assert right(number % 3, kept[number % 3](*ARRAYS))
    finally:
        gc.set_threshold(*before)


SEVEN = "define i32 @seven() {\n ret i32 7\n}\n"


def test_code_outlives_the_linker_that_is_renewed(monkeypatch):
    monkeypatch.setattr(jit, "LINKED", 4)
    before = weakref.ref(jit._linker())
    kept = jit.loaded(SEVEN, ["seven"])
    for _ in range(8):
        jit.loaded(SEVEN, ["seven"])
    gc.collect()
    assert before() is None
    assert ctypes.CFUNCTYPE(ctypes.c_int)(kept.address("seven"))() == 7


@pytest.mark.ci
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no count of pages here")
@pytest.mark.parametrize("act", ["compile", "load"])
def test_code_that_is_gone_leaves_no_memory_behind(act):
    """A linker and passes keep 10 KB of each module, and a context all constants."""
    code = jit.object_code(SEVEN, jit.host())
    numbers = count(1)

    def compile():
        numbered = ", ".join(f"i32 {next(numbers)}" for _ in range(100))
        jit.object_code(f"{SEVEN}@n = global [100 x i32] [{numbered}]\n", jit.host())

    run = {"compile": compile, "load": lambda: jit.Loaded(code, ["seven"])}[act]

    def bytes_after(times):
        for _ in range(times):
            run()
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = bytes_after(50)
    assert bytes_after(200) - before < 200 * 4_000


def test_a_module_is_compiled_to_the_same_code_whatever_came_before_it():
    other = SEVEN.replace("seven", "eight").replace("7", "8")
    calls = "define i32 @twice() {\n %a = call i32 @own()\n %b = add i32 %a, %a\n ret i32 %b\n}\n"
    inlined = "define internal i32 @own() alwaysinline {\n ret i32 7\n}\n" + calls
    texts = [SEVEN, inlined, other]
    before = []
    for text in texts:
        jit._passes.cache_clear()
        before.append(jit.object_code(text, jit.host()))
    for at in (2, 1, 0, 1, 2):
        assert jit.object_code(texts[at], jit.host()) == before[at]


def test_a_function_ends_while_another_thread_is_within_llvm():
    """Its end does not wait for LLVM, so nobody who forks finds it there; the next one unloads."""
    number = 200
    gone, ended = [function(number)], threading.Event()
    groups._kernels.clear()
    before = len(jit._ended)

    def end():
        gone.clear()
        gc.collect()
        ended.set()

    with ffi.lib._lock:
        threading.Thread(target=end, daemon=True).start()
        assert ended.wait(30)
    assert len(jit._ended) > before
    right(number + 1, function(number + 1)(*ARRAYS))
    assert len(jit._ended) == 0


LAST = """
import gc, sys
sys.path.insert(0, {root!r})
from graphgrad.execute.llvm.loops import groups
from tests.execute.llvm.test_groups import ARRAYS, function, right

class Last:
    def __init__(self, number, f):
        self.number, self.f, self.ring = number, f, self

    def __del__(self):
        function(self.number + 100)  # loads, where what ended is unloaded
        seen.append(right(self.number, self.f(*ARRAYS)))

seen = []
gc.disable()
for number in range(300, 312):
    Last(number, function(number))
    groups._kernels.clear()
    gc.collect()
assert len(seen) == 12
"""


@pytest.mark.ci
def test_finalizers_call_functions_that_are_garbage_themselves(request):
    script = LAST.format(root=str(request.config.rootpath))
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_damaged_file_costs_nothing_but_time(tmp_path, monkeypatch):
    right(6, function(6)(*ARRAYS))  # what a process loads once is there
    monkeypatch.setenv("GRAPHGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(groups, "_kernels", {})
    right(7, function(7)(*ARRAYS))
    files = list(tmp_path.rglob("*.o"))
    assert files
    for i, file in enumerate(files):
        whole = file.read_bytes()
        middle = len(whole) // 2
        broken = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        file.write_bytes(broken if i % 2 else whole[:middle])
    groups._kernels.clear()
    right(7, function(7)(*ARRAYS))
    assert all(cache.read(file.stem) is not None for file in files)


PROCESS = """
import sys
sys.path.insert(0, {root!r})
from tests.execute.llvm.test_groups import ARRAYS, function, right

for number in range(5):
    right(number, function(number)(*ARRAYS))
"""


@pytest.mark.ci
def test_processes_that_compile_the_same_at_once(tmp_path, request):
    script = PROCESS.format(root=str(request.config.rootpath))
    environment = {**os.environ, "GRAPHGRAD_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", script]
    running = [subprocess.Popen(command, env=environment) for _ in range(4)]
    assert [p.wait(200) for p in running] == [0] * 4
    assert not list(tmp_path.rglob("*.part"))


def test_code_has_no_tables_for_unwinding(monkeypatch):
    """Loading them would register them with the C runtime."""
    made = []
    compile_it = jit.object_code

    def kept(text, target):
        made.append(compile_it(text, target))
        return made[-1]

    monkeypatch.setenv("GRAPHGRAD_CACHE", "off")
    monkeypatch.setattr(jit, "object_code", kept)
    library._functions.cache_clear()
    with gg.Graph():
        x = gg.placeholder((37, 41), "float32")
        f = gg.compile(x, gg.tanh(gg.sin(x) @ x.T) * 3.25, backend="llvm")
    f(np.ones((37, 41), "float32"))
    assert len(made) >= 1
    assert not any(b".eh_frame" in code for code in made)
