"""docs/trust.md says what is measured: a sample is measured again."""

import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytest.importorskip("mpmath")
TOOL = runpy.run_path(str(ROOT / "tools" / "trust_doc.py"))
PAGE = TOOL["DOCUMENT"].read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE))
COLUMNS = [(backend, dtype) for backend in TOOL["BACKENDS"] for dtype in TOOL["DTYPES"]]
BACKENDS = [b for b in ("numpy", "llvm") if b == "numpy" or find_spec("llvmlite")]


def test_every_op_that_is_tried_has_a_row():
    assert set(ROWS) == set(TOOL["FUNCTIONS"]) | set(TOOL["OF_SCIPY"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["Divide", "Reciprocal", "SoftSign", "Square"])
def test_errors_are_no_larger_than_it_says(name, backend):
    cells = ROWS[name].split(" | ")
    for dtype in TOOL["DTYPES"]:
        said = map(float, cells[COLUMNS.index((backend, dtype))].split(" / "))
        for worst, most in zip(TOOL["worsts"](name, dtype, backend), said, strict=True):
            assert worst <= most + 0.5


def test_it_says_which_versions_are_supported():
    assert TOOL["supported"]() in PAGE


def test_an_override_costs_no_step():
    assert TOOL["steps"](True) == TOOL["steps"](False)
    assert f"compile to {TOOL['steps'](True)} steps" in " ".join(PAGE.split())
