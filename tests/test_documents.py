"""What the documents say is so."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
clauses = runpy.run_path(str(ROOT / "tools" / "clauses.py"))


def test_the_list_of_tests_by_clause_is_true():
    assert clauses["DOCUMENT"].read_text().endswith(clauses["table"]()), (
        "run python tools/clauses.py --write"
    )


@pytest.mark.parametrize("clause", clauses["clauses"]())
def test_every_clause_has_a_test(clause):
    assert clauses["tests"]().get(clause), f"no test carries the number of {clause}"


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    assert (tmp_path / "ste.dot").read_text().startswith("digraph")
    assert "array" in capsys.readouterr().out


@pytest.mark.parametrize("document", sorted(p.name for p in ROOT.glob("*.md")))
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text()):
        assert (ROOT / target).exists(), target
