"""`import graphgrad` brings what a first graph needs; the rest comes when it is first touched."""

import ast
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import graphgrad as gg

SOURCE = Path(gg.__file__)
AT_ONCE = {"base", "ir", "ops", "regions"}
OTHERS = "networkx scipy llvmlite jax torch onnx ml_dtypes safetensors pygraphviz json zipfile"


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=SOURCE.parents[1],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_type_checkers_see_what_is_imported_on_first_use():
    """The table and the imports for types agree, and the rest of `gg` is imported at once."""
    first_use, at_once = {}, set()
    for statement in ast.parse(SOURCE.read_text()).body:
        if isinstance(statement, ast.If) and "if not" not in ast.unparse(statement):
            for line in statement.body:
                names = [alias.asname or alias.name for alias in line.names]
                first_use.setdefault(line.module, set()).update(names)
        elif isinstance(statement, ast.ImportFrom):
            at_once.update(alias.asname or alias.name for alias in statement.names)
    modules = first_use.pop(None)
    table = {module: set(names.split()) for module, names in gg._FIRST_USE.items()}
    assert first_use == table
    offered = at_once.union(modules, *table.values())
    assert {name for name in offered if not name.startswith("_")} == set(dir(gg))
    assert modules == {name for name in dir(gg) if isinstance(getattr(gg, name), ModuleType)}


def test_import_loads_what_builds_and_marks_a_graph():
    loaded = run("-c", "import graphgrad, sys; print(*sys.modules)").stdout.split()
    own = [name for name in loaded if name.startswith("graphgrad")]
    assert {name.partition(".")[0] for name in loaded} & set(OTHERS.split()) == set()
    assert {name.split(".")[1] for name in own if "." in name} == AT_ONCE
    assert len(own) <= 107
    assert len(loaded) <= 300


@pytest.mark.ci
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_whatever_is_touched_first_is_there(tmp_path):
    """Graphs from files and pickles too, with a rule of graphgrad's own in them."""
    with gg.Graph() as g:
        x = gg.placeholder((1,), name="x")
        gg.identity(gg.rules.checkpoint(gg.exp)(x), name="y")
    gg.save(tmp_path / "graph.gg", g)
    done = run(
        "-m",
        "tests.starting",
        FILE=str(tmp_path / "graph.gg"),
        CHECKPOINTED=pickle.dumps(g).hex(),
    )
    assert (done.returncode, done.stderr) == (0, "")
