"""A law over all ops: a file that is written computes what the compiled function does, or says why
it cannot be written."""

import runpy

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.build import build

from .cases import CASES, placed

FIRST = {op.type: (name, op, arrays) for name, op, arrays in reversed(CASES)}.values()
SCIPY = """
    BesselI BesselIScaled BesselJ BesselK BesselKScaled BesselY Beta BetaInc BetaIncInv BetaLn
    Binomial BoxCox BoxCox1p Dawson Digamma Entropy ErfInv ErfcInv Erfcx Exp1 ExpIntegral ExpN
    Faddeeva Fresnel Gamma GammaInc GammaIncC GammaIncCInv GammaIncInv GammaLn GammaSign Hyp1F1
    Hyp2F1 KlDivergence LogNdtr MatrixExp MatrixExpDerivative NdtrInv OwensT Pochhammer PolyGamma
    RelativeEntropy SineIntegral Spence Zeta
"""
"""What is refused, as docs/export.md says."""


def check(op, arrays, xs, node, path):
    """One sample."""
    f = gg.compile(xs, list(node.outputs), backend="numpy")
    if op.type in SCIPY.split():
        with pytest.raises(gg.ExportError, match=rf" = {op.type}\(.*: its kernel needs SciPy"):
            gg.export_numpy(f, path)
        return
    gg.export_numpy(f, path)
    found = runpy.run_path(str(path))["f"](*arrays)
    for a, b in zip(found, f(*arrays), strict=True):
        assert type(a) is np.ndarray
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        tolerance = 1e-12 if b.dtype.itemsize > 4 and b.dtype != "complex64" else 1e-5
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("letter", sorted({op.type[0] for _, op, _ in FIRST}))
def test_a_written_file_computes_what_the_compiled_function_does(letter, tmp_path):
    for _, op, arrays in FIRST:
        if op.type[0] == letter:
            check(op, arrays, *placed(op, arrays), tmp_path / "f.py")


@pytest.mark.ci
@pytest.mark.parametrize("letter", sorted({op.type[0] for _, op, _ in FIRST}))
@pytest.mark.parametrize("known", [True, False])
def test_every_sample_computes_the_same_with_known_and_unknown_lengths(letter, known, tmp_path):
    for _, op, arrays in CASES:
        if op.type[0] != letter:
            continue
        if known:
            xs, node = placed(op, arrays)
        else:
            with gg.Graph():
                xs = [gg.placeholder((None,) * a.ndim, a.dtype) for a in arrays]
                try:
                    node = build(op, tuple(xs))
                except gg.ShapeError:
                    continue
        check(op, arrays, xs, node, tmp_path / "f.py")
