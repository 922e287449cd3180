"""A law over all ops: what is written for ONNX computes what the compiled function does, in
onnxruntime and in ONNX's own reference, or says why it cannot be written."""

from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.build import build
from graphgrad.lower.narrow import narrow

from .cases import CASES

reference = pytest.importorskip("onnx.reference")
ort = pytest.importorskip("onnxruntime")

REFUSED = """
    BesselI BesselIOfOrders BesselIScaled BesselIScaledOfOrders BesselJ BesselJOfOrders
    BesselK BesselKOfOrders BesselKScaled BesselKScaledOfOrders BesselY BesselYOfOrders
    BetaInc BetaIncInv ExpNOfOrders Fresnel GammaInc GammaIncC GammaIncCInv GammaIncInv
    Hyp1F1 Hyp1F1OfOrders Hyp2F1 Hyp2F1OfOrders OwensT PolyGammaOfOrders SineIntegral
"""
"""What is refused for want of a form, as docs/onnx.md says."""

HOST = "JaxFunction"
DOUBLE = "BinCount NormalPoint NormalQuantile RandomBinomial RandomPoisson"
"""What calls Python, and what there is in float64 alone."""

NEED_LENGTHS = """
    AvgPoolGrad BandedRecurrence Cholesky CholeskyGrad Cofactors CofactorsGrad Conv2D
    Conv2DBackpropFilter Conv2DBackpropInput Convolve Coupling Det DiagonalGrad EigenvaluesH
    Eigh FoldIn Inverse LeastSquares LexSort LogBandedRecurrence LuFactor MatrixExp
    MatrixExpDerivative MaxPool MaxPoolGrad MaxPoolGradGrad Permutation PseudoInverse Qr
    Quarter RandomBits RandomIntegers RandomNormal RandomPermutation RandomUniform SLogDet
    SingularValues Solve SolveTriangular Svd Unconvolve
"""
"""What has a form, or one for all attributes, for known lengths alone."""

IN_REFERENCE = "AvgPoolGrad Conv2DBackpropInput MaxPoolGrad RandomIntegers"
"""What the reference evaluator has no kernel for where there are no elements."""


def is_complex(op, arrays):
    """Whether a sample, or what it makes, has no dtype in ONNX."""
    made = op.infer(*[gg.constant(a).type for a in arrays])
    return any(t.dtype.kind == "c" for t in (*arrays, *made))


def writable(but="", each=None):
    """The samples that can be written as float32, of each op type the first so many."""
    left_out = f"{REFUSED} {HOST} {DOUBLE} {but}".split()
    rest = [case for case in CASES if case[1].type not in left_out]
    if each is not None:
        rest = [case for case in rest if int(case[0].rpartition("-")[2]) < each]
    return [(name, op, arrays) for name, op, arrays in rest if not is_complex(op, arrays)]


def first_of_each(cases):
    """One sample of each op type: the first, for which others often differ in shape alone."""
    return list({op.type: (name, op, arrays) for name, op, arrays in reversed(cases)}.values())


def placed(cases, known):
    """(names of outputs, inputs, outputs, arrays) of samples in one graph."""
    inputs, outputs, arrays, names = [], [], [], []
    for name, op, given in cases:
        shapes = [a.shape if known else (None,) * a.ndim for a in given]
        named = [(s, a.dtype, f"{name}.{i}") for i, (s, a) in enumerate(zip(shapes, given))]
        try:
            made = build(op, tuple([gg.placeholder(*each) for each in named])).outputs
        except gg.ShapeError:
            if known:
                raise
            continue
        inputs, outputs, arrays = (
            [*inputs, *made[0].node.inputs],
            [*outputs, *made],
            [*arrays, *given],
        )
        names += [name] * len(made)
    return names, inputs, outputs, arrays


def compare(cases, path, run, known=True):
    """Each sample, in one model, against the program of float32 that the model is of."""
    with gg.Graph():
        names, inputs, outputs, arrays = placed(cases, known)
    f = gg.compile(inputs, outputs, backend="numpy", optimize=False)
    gg.onnx.export(f, path, dtype="float32")
    program = narrow(f.program)
    own = gg.compile(list(program.inputs), list(program.outputs), backend="numpy", optimize=False)
    fed = [a.astype(t.dtype) for a, t in zip(arrays, program.inputs, strict=True)]
    found = run(path, {t.node.name: a for t, a in zip(inputs, fed, strict=True)})
    wrong = {}
    for name, got, want in zip(names, found, own(*fed), strict=True):
        got, want = np.asarray(got), np.asarray(want)
        if name.startswith(("Eigh-", "Svd-")):  # the signs of vectors may be any
            got, want = np.abs(got), np.abs(want)
        if fault := difference(got, want):
            wrong[name] = fault
    assert wrong == {}


def difference(got, want):
    """What differs: type or values."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    near = np.isclose(got * 1.0, want * 1.0, rtol=3e-5, atol=3e-6, equal_nan=True)
    return "" if near.all() else f"{got[~near][:3]}, not {want[~near][:3]}"


def in_runtime(path, feeds):
    """The outputs by onnxruntime, of the model as it is written."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, ["CPUExecutionProvider"]).run(None, feeds)


def in_reference(path, feeds):
    """The outputs by ONNX's reference evaluator."""
    return reference.ReferenceEvaluator(str(path)).run(None, feeds)


def test_ops_compute_in_onnxruntime_what_they_do_here(tmp_path):
    compare(first_of_each(writable())[::16], tmp_path / "m.onnx", in_runtime)


@pytest.mark.ci
def test_samples_compute_in_onnxruntime_what_they_do_here(tmp_path):
    compare(writable(each=2), tmp_path / "m.onnx", in_runtime)


@pytest.mark.ci
def test_each_sample_computes_the_same_in_the_reference(tmp_path):
    compare(writable(IN_REFERENCE)[::2], tmp_path / "m.onnx", in_reference)


@pytest.mark.ci
def test_each_op_of_unknown_lengths_computes_what_it_does_here(tmp_path):
    compare(writable(NEED_LENGTHS), tmp_path / "m.onnx", in_runtime, known=False)


@pytest.mark.ci
def test_what_has_no_form_is_refused_by_name_all_at_once(tmp_path):
    kinds = f"{REFUSED} {HOST}".split()
    cases = first_of_each([c for c in CASES if c[1].type in kinds])
    with gg.Graph():
        _, inputs, outputs, _ = placed(cases, known=True)
    f = gg.compile(inputs, outputs, backend="numpy", optimize=False)
    with pytest.raises(gg.ExportError) as error:
        gg.onnx.export(f, tmp_path / "m.onnx", dtype="float64")
    rows = str(error.value).split("\n")[1:]
    assert len(rows) == len(kinds) == len(cases)
    assert all(" has no form in ONNX" in row for row in rows)
    assert list(tmp_path.iterdir()) == []


def test_complex_numbers_are_refused(tmp_path):
    z = gg.placeholder((2,), "complex64", name="z")
    with pytest.raises(gg.ExportError, match=r"z = Placeholder.*no operators for complex numbers"):
        gg.onnx.export(gg.compile(z, gg.abs(z)), tmp_path / "m.onnx")


@pytest.mark.ci
def test_what_is_computed_in_float64_alone_is_told(tmp_path):
    cases = first_of_each([c for c in CASES if c[1].type in DOUBLE.split()])
    with gg.Graph():
        names, inputs, outputs, arrays = placed(cases, known=True)
    f = gg.compile(inputs, outputs, backend="numpy", optimize=False)
    with pytest.raises(gg.ExportError, match=r"takes.*float64"):
        gg.onnx.export(f, tmp_path / "m.onnx", dtype="float32")
    gg.onnx.export(f, tmp_path / "m.onnx")
    feeds = {t.node.name: a for t, a in zip(inputs, arrays, strict=True)}
    found = in_runtime(tmp_path / "m.onnx", feeds)
    for name, got, want in zip(names, found, f(*arrays), strict=True):
        assert not difference(np.asarray(got), want), name


def test_the_document_names_what_is_refused():
    text = (Path(__file__).parents[2] / "docs" / "onnx.md").read_text()
    told = text.partition(f"lists these {len(REFUSED.split())} op types:")[2].partition(".\n")[0]
    assert [w.strip() for w in told.split(",")] == REFUSED.split()
