"""Compiled code on disk: whatever is wrong with a file, the code is made again."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256

import pytest

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm.emit import cache, jit
from graphgrad.execute.llvm.kernels import library

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="nothing is kept here")

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
    return tmp_path / "kept" / "graphgrad" / "code"


@pytest.fixture
def made(monkeypatch):
    """Modules that LLVM compiled."""
    found = []
    compiled = jit.object_code

    def counted(*args):
        found.append(compiled(*args))
        return found[-1]

    monkeypatch.setattr(jit, "object_code", counted)
    return found


def written(folder, key="x", code=b"code"):
    """The file of what was written."""
    cache.write(cache.key_of(key), code)
    return folder / f"{cache.key_of(key)}.o"


def kept(key="x"):
    """What is read."""
    return cache.read(cache.key_of(key))


def works():
    """A function from a module, compiled or kept."""
    return library.load(TEXT, ["first"])["first"](7, 8) == 7


def test_what_is_written_is_read(folder):
    key = cache.key_of("a", "b")
    assert cache.read(key) is None
    cache.write(key, b"code")
    assert cache.read(key) == b"code"
    assert [p.name for p in folder.iterdir()] == [f"{key}.o"]


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
        file = written(folder, str(i), bytes(100))
        os.utime(file, (i + 1, i + 1))
    left = folder / f"{cache.key_of('9')}-{16 * '0'}.part"  # of a process that ended
    left.write_bytes(bytes(100))
    os.utime(left, (0, 0))
    last = written(folder, "9", bytes(100))
    assert set(folder.iterdir()) == {file, last}


def test_only_files_of_its_own_are_removed(folder, monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 0)
    written(folder)
    strange = ["mine.o", "mine.part", f"{64 * 'g'}.o", f"{64 * 'a'}.o.bak", f"{64 * 'a'}.part"]
    for name in strange:
        (folder / name).write_bytes(bytes(100))
    (folder.parent.parent / f"{64 * 'a'}.o").write_bytes(bytes(100))
    written(folder, "y")
    assert sorted(p.name for p in folder.iterdir()) == sorted(strange)
    assert (folder.parent.parent / f"{64 * 'a'}.o").exists()


def test_code_is_made_once_and_again_where_it_is_damaged(folder, made):
    assert works()
    assert works()
    assert len(made) == 1
    (file,) = folder.iterdir()
    file.write_bytes(b"nonsense")
    assert works()
    assert len(made) == 2


# --- an entry is what it says ------------------------------------------------------------------

OTHER = TEXT.replace("@first", "@second")


@pytest.mark.parametrize("content", ["no object", "no symbol", "empty"])
def test_what_is_whole_but_cannot_be_loaded_is_made_again(folder, made, content):
    assert works()
    (file,) = folder.iterdir()
    other = jit.object_code(OTHER, jit.host())
    cache.write(file.stem, {"no object": b"x", "no symbol": other, "empty": b""}[content])
    made.clear()
    assert works()
    assert works()
    assert len(made) == 1


def test_what_belongs_to_another_program_is_made_again(folder, made):
    assert works()
    (file,) = folder.iterdir()
    library.load(TEXT.replace("ret ptr %a", "ret ptr %self"), ["first"])
    (other,) = set(folder.iterdir()) - {file}
    other.replace(file)
    made.clear()
    assert works()
    assert len(made) == 1


def test_what_has_the_hash_of_its_content_alone_is_made_again(folder):
    file = written(folder)
    file.write_bytes(sha256(b"code").digest() + b"code")
    assert kept() is None


# --- only what this user alone can have written ------------------------------------------------


def test_folder_and_files_are_the_users_alone(folder):
    file = written(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_made_again(folder, made, mode):
    assert works()
    (file,) = folder.iterdir()
    file.chmod(mode)
    assert works()
    assert works()
    assert len(made) == 2
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_is_not_used(folder, made, mode):
    assert works()
    (file,) = folder.iterdir()
    folder.chmod(mode)
    assert kept() is None
    assert works()
    assert len(made) == 2
    assert list(folder.iterdir()) == [file]
    assert folder.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_somebody_else_owns_is_not_used(folder, monkeypatch, what):
    written(folder)
    real = os.fstat
    monkeypatch.setattr(os, "fstat", lambda handle: _of_another(real(handle), what))
    assert kept() is None


def _of_another(found, what):
    if (what == "folder") is not bool(found.st_mode & 0o040000):
        return found
    values = list(found)
    values[4] += 1  # st_uid
    return os.stat_result(values)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_was_given_to_root_is_not_used(folder, what):
    file = written(folder)
    os.chown(file if what == "file" else folder, 65534, 65534)
    assert kept() is None
    written(folder)
    assert (kept() == b"code") is (what == "file")


def test_a_link_is_not_followed(folder, tmp_path):
    file = written(folder)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert kept() is None
    written(folder)
    assert kept() == b"code"
    assert not file.is_symlink()
    folder.rename(tmp_path / "folder")
    folder.symlink_to(tmp_path / "folder")
    assert kept() is None
    written(folder, "y")
    assert list((tmp_path / "folder").iterdir()) == [tmp_path / "folder" / file.name]


def test_what_is_no_file_holds_nobody_up(folder):
    file = written(folder)
    file.unlink()
    os.mkfifo(file)
    assert kept() is None
    written(folder)
    assert kept() == b"code"
    file.unlink()
    file.mkdir()
    assert kept() is None
    written(folder)
    assert kept() is None
    assert list(folder.iterdir()) == [file]


def test_a_folder_that_is_a_file_is_done_without(folder):
    folder.parent.mkdir(parents=True)
    folder.write_text("")
    written(folder)
    assert kept() is None


@pytest.mark.parametrize("name", ["here", "./here", "~/here"])
def test_a_relative_name_is_warned_of_and_nothing_is_kept(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHGRAD_CACHE", name)
    with pytest.warns(RuntimeWarning, match=f"GRAPHGRAD_CACHE='{name}' is not an absolute path"):
        assert cache.folder() is None
    with pytest.warns(RuntimeWarning):
        written(tmp_path)
    assert not list(tmp_path.iterdir())


def test_relative_names_of_the_system_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.delenv("GRAPHGRAD_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache.folder() == tmp_path / "x" / "graphgrad" / "code"
    for none in ("cache", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", none)
        assert cache.folder() == tmp_path / ".cache" / "graphgrad" / "code"
    monkeypatch.setenv("HOME", "home")
    assert cache.folder() is None


def test_nothing_is_kept_where_nobody_can_tell_whose_a_file_is(folder, monkeypatch):
    monkeypatch.delattr(os, "geteuid")
    written(folder)
    assert kept() is None
    assert not folder.exists()


@pytest.mark.ci
def test_processes_that_write_at_once(folder):
    program = (
        "from graphgrad.execute.llvm.kernels import library\n"
        f"assert library.load({TEXT!r}, ['first'])['first'](7) == 7\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [p.wait(300) for p in running] == [0, 0, 0]
    assert len(list(folder.iterdir())) == 1


def test_functions_outlive_what_made_them(folder):
    first = library.load(TEXT, ["first"])["first"]
    assert [first(i) for i in range(1000)] == list(range(1000))
