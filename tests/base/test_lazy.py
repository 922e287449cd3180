"""Modules that load when they are first used."""

import sys

import pytest

from graphgrad.base.lazy import lazy_module


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `slowly` with a module `slowly.inner`, which note that they were imported."""
    folder = tmp_path / "slowly"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "inner.py").write_text("answers = []\ndef answer():\n    return len(answers)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "slowly"
    for name in [n for n in sys.modules if n.partition(".")[0] == "slowly"]:
        del sys.modules[name]


def test_nothing_is_imported_before_an_attribute_is_asked_for(package):
    module = lazy_module("slowly.inner")
    assert package not in sys.modules
    assert module.answer() == 0
    assert "slowly.inner" in sys.modules


def test_what_was_found_is_kept(package):
    module = lazy_module("slowly.inner")
    assert "answer" not in vars(module)
    found = module.answer
    assert vars(module)["answer"] is found is module.answer


def test_an_attribute_that_is_missing_is_an_AttributeError_of_the_module(package):
    module = lazy_module("slowly.inner")
    with pytest.raises(AttributeError, match=r"'slowly.inner' has no attribute 'question'"):
        module.question()
    assert not hasattr(module, "question")


def test_what_is_not_installed_is_None():
    assert lazy_module("surely_not_installed.anywhere") is None
