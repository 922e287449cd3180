"""What the documents say is so."""

import contextvars
import doctest
import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

ROOT = Path(__file__).resolve().parent.parent
clauses = runpy.run_path(str(ROOT / "tools" / "clauses.py"))


def test_the_list_of_tests_by_clause_is_true():
    assert clauses["DOCUMENT"].read_text().endswith(clauses["table"]()), (
        "run python tools/clauses.py --write"
    )


def test_every_clause_has_a_test():
    found = clauses["tests"]()
    assert [c for c in clauses["clauses"]() if not found.get(c)] == [], "no test carries its number"


def test_the_example_of_the_readme_runs(tmp_path):
    example = blocks("../README.md", "python")[0]
    command = [sys.executable, "-c", example]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (tmp_path / "ste.dot").read_text().startswith("digraph")
    assert "array" in done.stdout


@pytest.mark.usefixtures("own_names")
def test_code_blocks_of_the_site_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for page in ("inspection.md", "howto/coming.md", "howto/tasks.md", "meaning.md"):
        run_blocks(page)


@pytest.mark.ci
@pytest.mark.usefixtures("own_names")
def test_proofs_that_rules_get_lost_elsewhere():
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    run_blocks("lost.md")


@pytest.mark.usefixtures("own_names")
def test_errors_are_as_their_page_shows_them():
    shown = blocks("errors.md", "pycon")
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    failed = []
    for number, block in enumerate(shown):
        gg.reset_default_graph()
        names = {"gg": gg, "np": np}
        test = doctest.DocTestParser().get_doctest(block, names, f"errors.md[{number}]", None, 0)
        runner.run(test, out=failed.append)
    assert "".join(failed) == ""


def test_every_error_has_its_place_in_the_page_of_errors():
    page = (ROOT / "docs" / "errors.md").read_text()
    errors = [n for n in gg.__all__ if n.endswith(("Error", "Warning"))]
    assert [n for n in errors if not re.search(rf"## {n}\n|`(gg\.)?{n}`", page)] == []


def test_every_public_name_has_its_place_in_the_reference(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from building import pages

    placed = [name for _, names in pages.parts() for name in names]
    named = {name for name in gg.__all__ if not inspect.ismodule(getattr(gg, name))}
    assert len(placed) == len(set(placed))
    assert named <= set(placed)
    assert {"nn", "rules", "extend"} <= set(pages.MODULES)


def test_docstrings_are_shown_as_they_are_written(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from building import docstrings

    lines = """Sum of `x`, with |x| * 2_.

    Parameters:
        x, y: any shape,
            broadcast.
        **options: more.

    Returns: z.

    x    a column
    of, y    another

      as it stands

    >>> 1 + 1
    2""".replace("\n    ", "\n").split("\n")
    docstrings.process(None, None, None, None, None, lines)
    assert [line for line in lines if line] == [
        r"Sum of \ ``x``\ , with \|x\| \* 2\_.",
        "**Parameters**",
        "- **x, y**: any shape, broadcast.",
        r"- **\*\*options**: more.",
        "**Returns**",
        "z.",
        "- **x**: a column",
        "- **of, y**: another",
        "::",
        "    as it stands",
        ".. code-block:: pycon",
        "    >>> 1 + 1",
        "    2",
    ]


@pytest.mark.ci
@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/tutorials").glob("*.py")), ids=lambda p: p.stem
)
@pytest.mark.usefixtures("own_names")
def test_tutorial_runs(path, monkeypatch, capsys):
    monkeypatch.setenv("MPLBACKEND", "agg")
    contextvars.copy_context().run(runpy.run_path, str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def run_blocks(page):
    """Run the blocks of Python in a page, one after the other."""
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), names)


def blocks(page, language):
    """The fenced blocks of a page in docs/."""
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", sorted(p.name for p in ROOT.glob("*.md")))
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text()):
        assert (ROOT / target).exists(), target


def test_files_that_the_architecture_names_are_there():
    named = set(
        re.findall(r"`((?:\w+/)*\w+(?:\.py|/))`", (ROOT / "docs/architecture.md").read_text())
    )
    there = [f"/{path.relative_to(ROOT)}" for path in (ROOT / "graphgrad").rglob("*.py")]
    there += [f"{path.rpartition('/')[0]}/" for path in there]
    there += [f"/{path.relative_to(ROOT)}" for path in (ROOT / "tests").glob("*.py")]
    assert [name for name in sorted(named) if not any(p.endswith(f"/{name}") for p in there)] == []
