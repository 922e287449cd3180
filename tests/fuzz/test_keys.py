"""Random keys name what they name in NumPy: values, changes, gradients, batches, refusals."""

from importlib.util import find_spec

import pytest

from .keys import check

ONCE = [("numpy", 0, 200), ("llvm", 200, 225)]
OFTEN = [("numpy", 300, 500), ("llvm", 500, 600), ("jax", 600, 650)]


@pytest.mark.parametrize(
    ("backend", "first", "last"),
    [*ONCE, *[pytest.param(*case, marks=pytest.mark.ci) for case in OFTEN]],
)
def test_random_keys_name_what_they_name_in_numpy(backend, first, last):
    if not find_spec({"llvm": "llvmlite"}.get(backend, backend)):
        pytest.skip(f"{backend} is not installed")
    assert check(range(first, last), backend=backend) == []
