"""The page of lost rules shows what was recorded, and graphgrad's column is what it does today."""

import ast
import importlib
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import graphgrad as gg

FOLDER = Path(__file__).parents[2] / "tools" / "lost"


@pytest.fixture
def lost(monkeypatch):
    """Imports of modules in the folder, which are gone after the test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and FOLDER.samefile(
            Path(sys.modules[name].__file__).parent
        ):
            del sys.modules[name]


def test_the_page_shows_the_outcomes(lost):
    page = lost("page")
    assert page.DOCUMENT.read_text() == page.document(page.outcomes()), (
        "run python tools/lost/prove.py --write in_graphgrad"
    )


def test_the_readme_shows_rows_of_the_page(lost):
    page = lost("page").DOCUMENT
    readme = (FOLDER.parents[1] / "README.md").read_text()
    rows = [
        r for r in readme.partition("is a program that was run")[2].splitlines() if r[:1] == "|"
    ]
    assert len(rows) > 6
    assert set(rows[2:]) <= set(page.read_text().splitlines())


def test_every_framework_answers_every_row(lost):
    rows, page = lost("rows"), lost("page")
    recorded = page.outcomes()
    assert list(recorded) == page.FRAMEWORKS
    for name, column in recorded.items():
        assert list(column["cells"]) == list(rows.ROWS), name
        written = {
            node.name
            for node in ast.parse((FOLDER / f"{name}.py").read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        for key, cell in (column["cells"] | column["more"]).items():
            assert (key in written) == (cell["outcome"] in ("right", "silent", "said")), (name, key)
            assert cell.get("why") or cell["outcome"] in ("right", "said"), (name, key)
            assert "ModuleNotFoundError" not in str(cell.get("got")), (name, key)


def test_graphgrad_does_today_what_its_column_says(lost):
    recorded = lost("page").outcomes()["in_graphgrad"]
    prove, here = lost("prove"), lost("in_graphgrad")
    for key, was in recorded["cells"].items():
        if key == "saved" or (key == "theirs" and find_spec("jax") is None):
            continue  # which take a process, and JAX
        cell = prove.cell(here, key)
        assert cell["outcome"] == was["outcome"] != "silent", (key, cell)
        if cell["outcome"] == "said":
            assert cell["got"] == was["got"], "run python tools/lost/prove.py --write in_graphgrad"


@pytest.mark.ci
@pytest.mark.parametrize("name", ["in_graphgrad", "in_jax"])
def test_the_programs_of_a_framework_come_out_as_recorded(lost, name):
    recorded = lost("page").outcomes()[name]
    found = lost("prove").in_a_process(name)
    if found is None or found["versions"].get("jax") != recorded["versions"].get("jax"):
        pytest.skip("what is installed is not what was recorded")
    needs = {"theirs": "jax", "module": "torch"}
    left_out = {key for key, package in needs.items() if find_spec(package) is None}
    for part in ("cells", "more"):
        now, then = (
            {key: cell["outcome"] for key, cell in each[part].items() if key not in left_out}
            for each in (found, recorded)
        )
        assert now == then


def test_a_rule_that_is_passed_over_is_told(lost):
    prove, here = lost("prove"), lost("in_graphgrad")

    def without():
        return here.asked(lambda x: gg.gradients(here.cubed(x) ** 2, x, overrides="none"))

    assert prove.outcome(without, 384.0) == {"outcome": "silent", "got": 192.0}
    assert prove.outcome(here.first, 384.0)["outcome"] == "right"
    assert prove.outcome(here.first, "an error")["outcome"] == "silent"
    assert prove.outcome(here.shape, "an error")["got"].startswith("GradientError: the gradient ru")
