"""The recipe for conda-forge says what pyproject.toml says."""

import hashlib
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "conda_recipe.py"))


def test_the_recipe_is_made_of_pyproject():
    assert TOOL["RECIPE"].read_text() == TOOL["recipe"](), "run tools/conda_recipe.py --write"


def test_every_dependency_is_in_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    run = TOOL["recipe"]().partition("  run:\n")[2].partition("  run_constraints:")[0]
    assert [line.strip("- ").replace(" ", "") for line in run.split("\n")[1:] if line.strip()] == (
        project["dependencies"]
    )


def test_the_one_to_submit_has_the_checksum_of_the_file(tmp_path):
    sdist = tmp_path / f"graphgrad-{TOOL['version']()}.tar.gz"
    sdist.write_bytes(b"an sdist")
    text = TOOL["recipe"](sdist)
    assert f"sha256: {hashlib.sha256(b'an sdist').hexdigest()}" in text
    assert "path: .." not in text
    with pytest.raises(SystemExit, match="no sdist"):
        TOOL["recipe"](tmp_path / "graphgrad-0.0.1.tar.gz")
