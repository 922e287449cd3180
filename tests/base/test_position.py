"""Where in the user's program something was built."""

import dis
import functools
import os
import subprocess
import sys
from pathlib import Path

import graphgrad as gg
from graphgrad.base import position
from graphgrad.base.position import (
    caller,
    full,
    is_library,
    line_of,
    of_function,
    show,
    source_line,
)

PACKAGE = Path(gg.__file__).parent
BUILD = "import graphgrad as gg; print(gg.placeholder((2,)).where)"


def test_files_of_the_package_are_the_librarys_and_its_demo_is_a_user():
    assert is_library(position.__file__)
    assert is_library(str(PACKAGE / "ir" / ".." / "ops" / "math.py"))
    assert not is_library(str(PACKAGE / "demo" / "training.py"))
    assert is_library(str(PACKAGE.parent / "other" / ".." / "graphgrad" / "ops" / "math.py"))
    assert not is_library(str(PACKAGE / "ir" / ".." / "demo" / "training.py"))
    assert not is_library(__file__)
    assert not is_library(str(PACKAGE) + "_of_others/module.py")


def test_names_that_are_no_path_are_the_users_wherever_the_process_stands(monkeypatch):
    monkeypatch.chdir(PACKAGE / "ir")
    monkeypatch.setattr(position, "_library", {})
    assert not any(map(is_library, ["<stdin>", "<string>", "<ipython-input-1>", "cell.py"]))


def test_a_program_that_stands_in_a_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        # -P: getattr of 3.13.0 looks into the first folder of the path, and fails there
        [sys.executable, "-P", "-c", f"import os; os.rmdir({str(gone)!r}); {BUILD}"],
        cwd=gone,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.stdout, done.returncode) == ("<string>:1\n", 0), done.stderr


def test_the_caller_is_the_innermost_frame_of_the_user():
    def helper():
        return caller()

    here = helper()
    assert full(here) == (__file__, helper.__code__.co_firstlineno + 1)
    assert source_line(here) == "return caller()"


def test_the_line_is_that_of_the_call_in_a_function_of_many_lines():
    with gg.Graph():
        first = gg.placeholder(())
        second = gg.tanh(
            first,
        )
    start = test_the_line_is_that_of_the_call_in_a_function_of_many_lines.__code__.co_firstlineno
    assert first.where == f"test_position.py:{start + 2}"
    assert second.where == f"test_position.py:{start + 3}"


def test_every_instruction_has_its_line():
    code = test_files_of_the_package_are_the_librarys_and_its_demo_is_a_user.__code__
    found = [(i.positions.lineno, line_of((code, i.offset))) for i in dis.get_instructions(code)]
    assert len(set(found)) > 3
    assert all(line == said for line, said in found)


def test_what_was_copied_has_a_file_and_a_line():
    assert show(("/somewhere/model.py", 31)) == "model.py:31"
    assert full(("/somewhere/model.py", 31)) == ("/somewhere/model.py", 31)
    assert line_of(("/somewhere/model.py", 31)) == 31
    assert source_line(("/somewhere/model.py", 31)) == ""


def test_nothing_known_is_shown_as_that():
    assert (show(None), full(None), source_line(None)) == ("<unknown>", None, "")


def test_an_offset_beyond_the_code_gives_the_first_line():
    code = test_nothing_known_is_shown_as_that.__code__
    assert line_of((code, 10**6)) == code.co_firstlineno


def test_where_a_function_was_defined():
    def plain():
        """Defined here."""

    @functools.wraps(plain)
    def wrapper():
        """Stands for it."""

    line = plain.__code__.co_firstlineno
    assert show(of_function(plain)) == show(of_function(wrapper)) == f"test_position.py:{line}"
    assert of_function(len) is None
    assert of_function(functools.partial(plain)) is None
