"""The recorded cases: what packages, and formulas of papers, give for inputs and gradients."""

import gzip
import json
from functools import cache
from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "cases.json.gz"
TOLERANCE = 1e-6

DEVIATES = {
    "optimisation/project_birkhoff": "jaxopt stops early, 1e-5 off",
    "optimisation/sinkhorn": "jaxopt stops early, 1e-5 off",
    "spiking/sigmoid_overflow": "snntorch gives NaN far below 0",
    "stable/logcumsumexp": "torch gives NaN where all are -infinity",
    "stable/xlogy/0": "torch gives 0 for a gradient of 0 at a logarithm that is NaN",
    "stable/eigh_trace": "torch gives NaN for eigenvalues that repeat, all over",
    "stable_tf/pow/1": "TensorFlow gives NaN for 0 to a negative power",
    "stable_tf/cumprod_zeros": "TensorFlow gives 0 behind a zero, where the derivative is not",
    "stable_tf/svd_degenerate": "singular values that repeat are no row here",
}
"""Cases, or all of a rule, on which a row and a package differ, and how."""


def _array(d):
    data = [float(v) if isinstance(v, str) else v for v in d["data"]]
    return np.array(data, d["dtype"]).reshape(d["shape"])


@cache
def recorded():
    """All cases, by their names: family/rule/number."""
    cases = {}
    for listed in json.loads(gzip.decompress(FILE.read_bytes())).values():
        for case in listed:
            for part in ("inputs", "grads"):
                case[part] = {name: _array(a) for name, a in case[part].items()}
            for part in ("dy", "y"):
                case[part] = [_array(a) for a in case[part]]
            cases[case["id"]] = case
    return cases


def deviation(name):
    """How a package deviates on a case, if it is known to."""
    return DEVIATES.get(name) or DEVIATES.get(name.rpartition("/")[0])


def differences(ys, grads, case, tolerance=TOLERANCE):
    """The names of what is not as recorded: NaN where NaN, infinity where infinity is."""
    pairs = {f"y{i}": (y, w) for i, (y, w) in enumerate(zip(ys, case["y"], strict=True))}
    pairs |= {name: (grads[name], w) for name, w in case["grads"].items()}
    return [name for name, (g, w) in pairs.items() if not alike(g, w, tolerance)]


def alike(got, want, tolerance=TOLERANCE):
    """Whether two arrays are the same within tolerance * (1 + |want|)."""
    got, want = np.asarray(got, "float64"), np.asarray(want, "float64")
    if got.shape != want.shape:
        return False
    with np.errstate(invalid="ignore"):
        near = np.abs(got - want) <= tolerance * (1 + np.abs(want))
        same = (got == want) | (np.isnan(got) & np.isnan(want))
    return bool(np.all(np.where(np.isfinite(want), near, same)))
