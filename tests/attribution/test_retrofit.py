"""Models of torch and scikit-learn, explained as captum and zennit do: tools/onnx_retrofit.py."""

from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytestmark = pytest.mark.ci
NEEDS = ("onnx", "torch", "captum", "zennit", "skl2onnx")


@pytest.fixture(scope="module")
def tool():
    for name in NEEDS:
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    path = Path(__file__).parents[2] / "tools" / "onnx_retrofit.py"
    spec = spec_from_file_location("onnx_retrofit", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "equal"), [("CNN", 6), ("scikit-learn", 5), ("LSTM", 3)])
def test_cells_are_equal_or_undefined_with_a_reason(tool, name, equal):
    found = tool.cells(name)
    cells = list(found.values())
    assert [c for c in cells if c.difference is None and not c.why] == []
    numbers = [c.difference for c in cells if c.difference is not None]
    assert max(numbers) <= tool.LEAST
    assert len(numbers) == equal
    promised = {how: c.rest for (_, how), c in found.items() if how in ("lrp", "deeplift")}
    assert max(map(abs, promised.values())) < 1e-9
