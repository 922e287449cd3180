"""A law over all ops: a file that is written computes what the compiled function does, or says why
it cannot be written."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.build import build
from graphgrad.ops.special.complex_gammas import ComplexPolyGamma

from .cases import CASES, placed

FIRST = {op.type: (name, op, arrays) for name, op, arrays in reversed(CASES)}.values()
SCIPY = """
    BesselI BesselIOfOrders BesselIScaled BesselIScaledOfOrders BesselJ BesselJOfOrders
    BesselK BesselKOfOrders BesselKScaled BesselKScaledOfOrders BesselY BesselYOfOrders Beta
    BetaInc BetaIncInv BetaLn Binomial BoxCox BoxCox1p ComplexErf ComplexErfc ComplexGamma
    ComplexLogGamma ComplexPolyGamma Dawson Digamma Entropy ErfInv ErfInvSlope ErfcInv
    ErfcInvSlope Erfcx Exp1 ExpIntegral ExpN ExpNOfOrders Faddeeva Fresnel Gamma GammaInc
    GammaIncC GammaIncCInv GammaIncInv GammaLn GammaSign Hyp1F1 Hyp1F1OfOrders Hyp2F1
    Hyp2F1OfOrders KlDivergence LogNdtr MatrixExp MatrixExpDerivative NdtrInv NdtrInvSlope
    OwensT Pochhammer PolyGamma PolyGammaDifference PolyGammaOfOrders RelativeEntropy
    SineIntegral Spence Zeta ZetaOfOrders
"""
"""What is refused, as docs/export.md says."""
REFUSED = {"JaxFunction", *SCIPY.split()}
"""With what is there where JAX is installed."""


def check(op, arrays, xs, node, path):
    """One sample."""
    f = gg.compile(xs, list(node.outputs), backend="numpy")
    if op.type == "JaxFunction":
        with pytest.raises(gg.ExportError, match="JaxFunction"):
            gg.export_numpy(f, path)
        return
    if op.type in SCIPY.split() and op != ComplexPolyGamma(1):  # which is not a function of SciPy's
        with pytest.raises(gg.ExportError, match=rf" = {op.type}\(.*: its kernel needs SciPy"):
            gg.export_numpy(f, path)
        return
    gg.export_numpy(f, path)
    found = runpy.run_path(str(path))["f"](*arrays)
    for a, b in zip(found, f(*arrays), strict=True):
        same(a, b, op)


def same(a, b, op):
    """Type and values."""
    assert type(a) is np.ndarray, op
    assert (a.dtype, a.shape) == (b.dtype, b.shape), op
    tolerance = 1e-12 if b.dtype.itemsize > 4 and b.dtype != "complex64" else 1e-5
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=repr(op))


def test_the_document_names_what_is_refused():
    text = (Path(__file__).parents[2] / "docs" / "export.md").read_text()
    told = text.partition(f"lists these {len(SCIPY.split())} op types:")[2].partition(".\n")[0]
    assert [w.strip() for w in told.split(",")] == SCIPY.split()


def together(samples):
    """One compiled function of many samples, their arrays, and the op of each of its outputs."""
    with gg.Graph():
        inputs, outputs, arrays, ops = [], [], [], []
        for _, op, given in samples:
            xs = [gg.placeholder(a.shape, a.dtype) for a in given]
            made = build(op, tuple(xs)).outputs
            inputs, outputs, arrays = [*inputs, *xs], [*outputs, *made], [*arrays, *given]
            ops += [op] * len(made)
    return gg.compile(inputs, outputs, backend="numpy"), arrays, ops


def test_what_needs_scipy_is_refused_by_name_all_at_once(tmp_path):
    f, _, ops = together(case for case in FIRST if case[1].type in SCIPY.split())
    with pytest.raises(gg.ExportError) as error:
        gg.export_numpy(f, tmp_path / "f.py")
    rows = str(error.value).split("\n")[1:-1]
    assert len(rows) == len(set(ops)) == len(SCIPY.split())
    assert all(row.endswith(": its kernel needs SciPy") for row in rows)


def test_a_written_file_computes_what_the_compiled_function_does(tmp_path):
    f, arrays, ops = together(case for case in FIRST if case[1].type not in REFUSED)
    gg.export_numpy(f, tmp_path / "f.py")
    found = runpy.run_path(str(tmp_path / "f.py"))["f"](*arrays)
    for op, a, b in zip(ops, found, f(*arrays), strict=True):
        same(a, b, op)


@pytest.mark.ci
@pytest.mark.parametrize("letter", sorted({op.type[0] for _, op, _ in FIRST}))
@pytest.mark.parametrize("known", [True, False])
def test_samples_compute_the_same_and_the_first_with_unknown_lengths(letter, known, tmp_path):
    for _, op, arrays in CASES[::2] if known else FIRST:
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
