"""A law over all ops: a file of StableHLO computes what the function does, with a length that is
not known in it; or says why not."""

from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.build import build

from ..each import each, initial
from .cases import CASES

jax = pytest.importorskip("jax")
pytest.importorskip("flatbuffers")

HOST = """
    BesselJ BesselK BesselKScaled BesselY Beta BetaInc BetaIncInv BetaLn Binomial BoxCox BoxCox1p
    Dawson ErfcInv ErfcInvSlope Erfcx Exp1 ExpIntegral ExpN Faddeeva Fresnel GammaInc GammaIncC
    GammaIncCInv GammaIncInv Hyp1F1 Hyp2F1 KlDivergence OwensT Pochhammer PolyGamma
    PolyGammaDifference RelativeEntropy SineIntegral Zeta
"""
"""Functions of SciPy that JAX lacks, or has otherwise: they are called on the host."""
LENGTHS = "BroadcastTo Convolve Squeeze Unslice"
"""What has to know the length: it says its result in numbers, or JAX does."""
DOCUMENT = Path(__file__).parents[2] / "docs" / "jax.md"


def samples():
    """[(name of the type, its samples)], of those that have a length from 1 on."""
    found = {}
    for _, op, arrays in CASES:
        if any(a.ndim for a in arrays) and not any(0 in a.shape for a in arrays):
            found.setdefault(op.type, []).append((op, arrays))
    return found.items()


def placings(arrays):
    """Shapes with "n" for a length: the first axis of all that share it, of one alone, or all
    axes of that length."""
    shapes = [a.shape for a in arrays]
    length = next(s[0] for s in shapes if s)
    yield [("n", *s[1:]) if s and s[0] == length else s for s in shapes]
    for i, shape in enumerate(shapes):
        if shape:
            yield [*shapes[:i], ("n", *shape[1:]), *shapes[i + 1 :]]
    yield [tuple("n" if d == length else d for d in s) for s in shapes]


def check(op, arrays, shapes, path):
    """Export, read and run it; ExportError, ShapeError where that cannot be."""
    with gg.Graph():
        xs = [gg.placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
        f = gg.compile(xs, list(build(op, tuple(xs)).outputs), backend="numpy")
    f.export_stablehlo(path)
    with jax.enable_x64(True):
        found, _ = gg.interop.load_stablehlo(path).call(list(arrays))
    for a, b in zip(found, f(*arrays), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        tolerance = 1e-9 if b.dtype.itemsize > 4 and b.dtype != "complex64" else 1e-5
        np.testing.assert_allclose(np.asarray(a), b, rtol=tolerance, atol=tolerance)


@pytest.mark.ci
@each(samples(), initial)
def test_a_type_of_ops_exports_with_a_length_that_is_not_known(cases, tmp_path):
    why = "it needs known lengths"
    for op, arrays in cases:
        for shapes in placings(arrays):
            try:
                check(op, arrays, shapes, tmp_path / "f.zip")
            except gg.ShapeError:
                continue
            except gg.ExportError as error:
                why = str(error)
            else:
                assert op.type not in (HOST + LENGTHS).split()
                return
    if "cannot call the host" in why:
        complex_or_of_orders = op.type.startswith("Complex") or op.type.endswith("OfOrders")
        assert op.type in HOST.split() or complex_or_of_orders
    elif why != "it needs known lengths":
        assert op.type in LENGTHS.split(), why


@pytest.mark.ci
def test_what_runs_along_an_axis_runs_along_one_of_unknown_length(tmp_path):
    """Each of these would be a Python loop over its length, or compare with it."""
    rng = np.random.default_rng(0)
    with gg.Graph():
        x, v = gg.placeholder(("n", 3), name="x"), gg.placeholder(("n",), name="v")
        sums = 1.0 + 0.5 * gg.cumulative_sum(x, axis=0, include_initial=True)
        y = gg.cumulative_prod(sums, axis=0)
        places = [gg.searchsorted(v, [0.1, 2.0, np.nan], side=side) for side in ("left", "right")]
        spikes = gg.cummax(x, 0) - gg.cummin(x > 0, 0).astype("float64")
        total = gg.mean(y * y) + gg.sum(spikes * x)
        f = gg.compile([x, v], [y, total, gg.gradients(total, x), *places])
    f.export_stablehlo(tmp_path / "f.zip")
    call = gg.interop.load_stablehlo(tmp_path / "f.zip").call
    for n in (1, 6):
        given = rng.normal(size=(n, 3)), np.array([-1.0, 0.1, 2.0, 2.0, 3.0, np.nan])[-n:]
        with jax.enable_x64(True):
            found = call(given)[0]
        for a, b in zip(found, f(*given), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_the_document_names_what_is_refused():
    text = " ".join(DOCUMENT.read_text().split())
    assert f"functions of SciPy that JAX does not have: {', '.join(HOST.split())}." in text
    *others, last = LENGTHS.split()
    assert f"{', '.join(others)} and {last} need a length to be known." in text
