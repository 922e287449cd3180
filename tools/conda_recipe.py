"""The recipe for conda-forge, made of pyproject.toml.

    python tools/conda_recipe.py --write          recipe/recipe.yaml, which builds this clone
    python tools/conda_recipe.py --sdist FILE     print the one to submit: of an sdist on PyPI

`rattler-build build --recipe recipe` builds and tests the first. conda-forge takes the second, with
the checksum of the file that was uploaded. The optional dependencies become constraints.
"""

import argparse
import ast
import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "recipe" / "recipe.yaml"
ON_CONDA = {"torch": "pytorch"}
"""Names that differ there."""
CONSTRAINED = ("scipy", "jax", "torch", "bfloat16", "fast", "safetensors", "onnx", "viz")
"""The extras that users choose; the rest is for work on graphgrad."""

TEXT = """\
# Made by tools/conda_recipe.py of pyproject.toml.
context:
  version: "{version}"
  python_min: "{python}"

package:
  name: {name}
  version: ${{{{ version }}}}

source:
{source}

build:
  number: 0
  noarch: python
  script: ${{{{ PYTHON }}}} -m pip install . -vv --no-deps --no-build-isolation

requirements:
  host:
    - python ${{{{ python_min }}}}.*
    - pip
{build}
  run:
    - python >=${{{{ python_min }}}}
{run}
  run_constraints:
{constraints}

tests:
  - python:
      imports:
        - {name}
        - {name}.tf1
      pip_check: true
      python_version:
        - ${{{{ python_min }}}}.*
        - "*"
  - script:
      - python -m {name} doctor

about:
  summary: {description}
  license: {license}
  license_file: {license_file}
"""


def main():
    """Write or print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"{RECIPE.relative_to(ROOT)}")
    parser.add_argument("--sdist", type=Path, help="print the recipe of this file")
    given = parser.parse_args()
    if given.write:
        RECIPE.parent.mkdir(exist_ok=True)
        RECIPE.write_text(recipe(), encoding="utf-8")
    else:
        print(recipe(given.sdist), end="")
    return 0


def recipe(sdist=None):
    """The text, of this clone or of an sdist that PyPI has."""
    meta = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = meta["project"]
    name = project["name"]
    extras = project["optional-dependencies"]
    return TEXT.format(
        name=name,
        version=version(),
        python=project["requires-python"].removeprefix(">="),
        source="  path: .." if sdist is None else from_pypi(name, sdist),
        build=listed(meta["build-system"]["requires"]),
        run=listed(project["dependencies"]),
        constraints=listed(sorted(one for e in CONSTRAINED for one in extras[e])),
        description=json.dumps(project["description"]),
        license=project["license"],
        license_file=project["license-files"][0],
    )


def version():
    """What graphgrad/base/version.py says, without importing it."""
    text = (ROOT / "graphgrad" / "base" / "version.py").read_text(encoding="utf-8")
    return ast.literal_eval(re.search(r"^__version__ = (.*)$", text, re.MULTILINE)[1])


def from_pypi(name, sdist):
    """The address of a file that was uploaded, and its checksum."""
    if sdist.name != f"{name}-{version()}.tar.gz":
        raise SystemExit(f"{sdist} is no sdist of {name} {version()}")
    checksum = hashlib.sha256(sdist.read_bytes()).hexdigest()
    address = f"https://pypi.org/packages/source/{name[0]}/{name}/{name}-${{{{ version }}}}.tar.gz"
    return f"  url: {address}\n  sha256: {checksum}"


def listed(requirements):
    """Requirements of Python as those of conda, one a line."""
    return "\n".join(f"    - {conda(one)}" for one in requirements)


def conda(requirement):
    """`torch>=2.6` as `pytorch >=2.6`."""
    name, bound = re.fullmatch(r"([\w.-]+)(.*)", requirement).groups()
    return f"{ON_CONDA.get(name, name)} {bound}".strip()


if __name__ == "__main__":
    sys.exit(main())
