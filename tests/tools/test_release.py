"""What a release holds is compared with what git has."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import graphgrad as gg

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "release.py"))
FILES = {"graphgrad/__init__.py", "graphgrad/py.typed", "tests/test_a.py", "README.md"}
INFO = {"graphgrad-1.dist-info/licenses/LICENSE", "graphgrad-1.dist-info/entry_points.txt"}
WHEEL = {"graphgrad/__init__.py", "graphgrad/py.typed", *INFO}


def test_a_wheel_is_the_package_and_nothing_else():
    wrong = TOOL["wrong_in_wheel"]
    assert wrong(WHEEL, FILES) == []
    assert wrong(WHEEL - {"graphgrad/__init__.py"}, FILES) == ["wheel lacks graphgrad/__init__.py"]
    assert wrong(WHEEL | {"tests/test_a.py"}, FILES) == ["wheel has tests/test_a.py"]
    assert wrong(WHEEL - INFO, FILES) == [
        "wheel lacks licenses/LICENSE",
        "wheel lacks entry_points.txt",
    ]
    assert "wheel lacks graphgrad/py.typed" in wrong(WHEEL - {"graphgrad/py.typed"}, FILES)


def test_an_sdist_is_what_git_has():
    wrong = TOOL["wrong_in_sdist"]
    assert wrong(FILES | {"PKG-INFO"}, FILES) == []
    assert wrong(FILES - {"README.md"} | {"left.pyc"}, FILES) == [
        "sdist lacks README.md",
        "sdist has left.pyc",
    ]


def test_a_wheel_of_the_sdist_has_the_files_of_the_wheel():
    wrong = TOOL["wrong_in_rebuilt"]
    assert wrong(WHEEL, set(WHEEL)) == []
    assert wrong(WHEEL, WHEEL - {"graphgrad/py.typed"} | {"setup.py"}) == [
        "a wheel of the sdist lacks graphgrad/py.typed",
        "a wheel of the sdist has setup.py",
    ]


def test_a_version_of_python_is_found_on_the_path_or_at_pyenv(tmp_path, monkeypatch):
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    kept = tmp_path / "versions" / f"{here}.99" / "bin"
    kept.mkdir(parents=True)
    (kept / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert TOOL["interpreter"](here) == kept / "python"
    with pytest.raises(SystemExit, match=r"no Python 3\.4 "):
        TOOL["interpreter"]("3.4")


def test_the_lowest_versions_are_those_of_pyproject():
    assert [one.partition("==")[0] for one in TOOL["lowest"]()] == ["numpy", "networkx"]
    text = (ROOT / "pyproject.toml").read_text()
    pins = TOOL["lowest"]("test", "scipy")
    assert {"pytest", "llvmlite", "rich", "scipy"} < {one.partition("==")[0] for one in pins}
    assert all(one.replace("==", ">=") in text for one in pins)
    assert f"NumPy ({pins[0].partition('==')[2]} or newer)" in (ROOT / "README.md").read_text()


def test_what_an_index_shows_links_to_no_file(tmp_path, monkeypatch):
    hatchling = SimpleNamespace(MetadataHookInterface=object)  # which only a build has
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", hatchling)
    alone = runpy.run_path(str(ROOT / "tools" / "readme.py"))["standing_alone"]
    (tmp_path / "a.md").touch()
    text = "[of `a`](a.md#top), [b](https://b), `f[0](x)`, ![what\nit is](a.md)"
    assert alone(text, tmp_path) == "of `a`, [b](https://b), `f[0](x)`, *what\nit is.*"
    wrong, readme = TOOL["wrong_in_description"], (ROOT / "README.md").read_text()
    assert "description links to docs/ops.md" in wrong(readme)
    assert wrong(alone(readme, ROOT)) == []


def test_the_version_is_said_once_and_cited():
    assert f"\nversion: {gg.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{gg.__version__}] - " in (ROOT / "CHANGELOG.md").read_text()
