"""What the documents say is so."""

import contextvars
import importlib
import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import graphgrad as gg
import graphgrad.tf1 as tf

from .test_prose import pages
from .test_public import MADE_BY_GRAPHGRAD, MODULES

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


def test_every_row_of_a_table_has_as_many_cells_as_its_head():
    wrong = []
    for path in pages():
        text = re.sub(r"`[^`\n]*`|\\\|", "_", path.read_text(encoding="utf-8"))
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            head, *rows = table.splitlines()
            wrong += [f"{path}: {row}" for row in rows if row.count("|") != head.count("|")]
    assert not wrong, "\n".join(wrong)


def test_every_error_has_its_place_in_the_page_of_errors():
    page = (ROOT / "docs" / "errors.md").read_text()
    errors = [n for n in gg.__all__ if n.endswith(("Error", "Warning"))]
    assert [n for n in errors if not re.search(rf"## {n}\n|`(gg\.)?{n}`", page)] == []


def test_every_public_name_has_its_place_in_the_reference(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from building import pages

    assert {"graphgrad", *(f"graphgrad.{m}" for m in pages.MODULES)} == set(MODULES)
    texts = pages.reference()
    entry = r"^\.\. auto\w+:: ([\w.]+)|``(graphgrad[\w.]+)``|:py:obj:`([\w.]+)`"
    shown = {"".join(m) for m in re.findall(entry, "\n".join(texts.values()), re.MULTILINE)}
    for name in MODULES:
        module = importlib.import_module(name)
        found = {n: getattr(module, n) for n in module.__all__}
        ways = {n: {f"{name}.{n}", *places(n, o)} for n, o in found.items()}
        assert [n for n in ways if not ways[n] & shown and not inspect.ismodule(found[n])] == []
    rows = set(re.findall(r"^   ([\w.]+)$", texts["api/tf1"], re.MULTILINE))
    assert {n for n in tf.__all__ if callable(getattr(tf, n))} <= rows
    assert {"nn.relu", "train.AdamOptimizer", "contrib.layers.conv2d"} <= rows


def places(name, o):
    """Where else the same is shown: among the names of graphgrad itself."""
    return {f"graphgrad.{name}"} if getattr(gg, name, None) is o else set()


def test_only_classes_that_one_makes_are_shown_with_parameters(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from building.docstrings import signature

    def shown(o):
        return signature(None, "class", "", o, None, "(...)", None) is None

    assert not any(shown(o) for o in MADE_BY_GRAPHGRAD)
    assert all(shown(o) for o in (gg.Graph, gg.Rule, gg.optimizers.Adam, gg.extend.Onnx))


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


def test_a_tutorial_says_what_it_takes(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from building import times

    ran = "**Total running time of the script:** (1 minutes 2.300 seconds)"
    page = times.told(f"Title\n=====\n\nText\n\n{ran}", 610, "end")
    assert page.startswith(
        "Title\n=====\n\n*3 minutes to read, 62 seconds to run;* :ref:`download it <end>`.\n\nText"
    )
    assert times.counted(0.2, "second") == "1 second"
    assert times.number("plot_9_last.py") < times.number("plot_10_next.py")


@pytest.mark.ci
@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/tutorials").glob("*.py")), ids=lambda p: p.stem
)
@pytest.mark.usefixtures("own_names", "own_gradients")
def test_tutorial_runs(path, monkeypatch, capsys):
    monkeypatch.setenv("MPLBACKEND", "agg")
    contextvars.copy_context().run(runpy.run_path, str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


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
