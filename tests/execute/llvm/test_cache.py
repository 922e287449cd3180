"""Compiled code on disk: whatever is wrong with a file, the code is made again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm import cache, jit, library

TEXT = """
declare void @Py_IncRef(ptr)
define ptr @first(ptr %self, ptr %args, i64 %count) {
  %a = load ptr, ptr %args
  call void @Py_IncRef(ptr %a)
  ret ptr %a
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHGRAD_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_what_is_written_is_read(folder):
    key = cache.key_of("a", "b")
    assert cache.read(key) is None
    cache.write(key, b"code")
    assert cache.read(key) == b"code"
    assert [p.suffix for p in folder.iterdir()] == [".o"]


def test_keys_tell_parts_apart():
    assert cache.key_of("ab", "c") != cache.key_of("a", "bc")


def test_a_damaged_file_is_none(folder):
    key = cache.key_of("x")
    cache.write(key, b"code" * 100)
    path = folder / f"{key}.o"
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.read(key) is None
    path.write_bytes(b"")
    assert cache.read(key) is None


def test_off(monkeypatch, tmp_path):
    for word in ("off", "", "0"):
        monkeypatch.setenv("GRAPHGRAD_CACHE", word)
        assert cache.folder() is None
        cache.write("k", b"c")
        assert cache.read("k") is None


def test_a_folder_that_cannot_be_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRAPHGRAD_CACHE", str(tmp_path / "file" / "below"))
    cache.write("k", b"c")
    assert cache.read("k") is None


def test_what_was_used_longest_ago_goes_first(folder, monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 300)
    for i in range(3):
        cache.write(f"k{i}", bytes(100))
        os.utime(folder / f"k{i}.o", (i, i))
    left = folder / "of_a_process_that_ended.part"
    left.write_bytes(bytes(100))
    os.utime(left, (0, 0))
    cache.write("k9", bytes(100))
    assert sorted(p.stem for p in folder.iterdir()) == ["k2", "k9"]


def test_code_is_made_once_and_again_where_it_is_damaged(folder, monkeypatch):
    made = []
    compiled = jit.object_code

    def counted(*args):
        made.append(args)
        return compiled(*args)

    monkeypatch.setattr(jit, "object_code", counted)
    for _ in range(2):
        assert library.load(TEXT, ["first"])["first"](7, 8) == 7
    assert len(made) == 1
    (file,) = folder.iterdir()
    file.write_bytes(b"nonsense")
    assert library.load(TEXT, ["first"])["first"]("x") == "x"
    assert len(made) == 2


def test_processes_that_write_at_once(folder):
    program = (
        "from graphgrad.execute.llvm import library\n"
        f"assert library.load({TEXT!r}, ['first'])['first'](7) == 7\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [p.wait(60) for p in running] == [0, 0, 0]
    assert len(list(folder.iterdir())) == 1


def test_functions_outlive_what_made_them(folder):
    first = library.load(TEXT, ["first"])["first"]
    assert [first(i) for i in range(1000)] == list(range(1000))
