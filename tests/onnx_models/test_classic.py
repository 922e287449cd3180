"""Support vector machines and imputers, as scikit-learn's models are exported, in onnxruntime."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import FileError

from .making import FLOAT, INT64, info, node, onnx
from .test_differentiate import QUIET, near, onnxruntime, run

ML = "ai.onnx.ml"
X = np.random.default_rng(1).normal(size=(7, 4)).astype("float32")
KERNELS = {
    "LINEAR": [0.0, 0.0, 0.0],
    "POLY": [0.3, 0.5, 3.0],
    "RBF": [0.25, 0.0, 0.0],
    "SIGMOID": [0.2, 0.1, 0.0],
}


def machine(operator, outputs, inputs=("x",), **attributes):
    """A model of one operator."""
    made = node(operator, list(inputs), list(outputs), domain=ML, **attributes)
    outs = [info(name, INT64 if name == "label" else FLOAT, None) for name in outputs]
    graph = onnx.helper.make_graph([made], "g", [info("x", FLOAT, ["N", 4])], outs)
    versions = [onnx.helper.make_opsetid(d, v) for d, v in (("", 17), (ML, 1))]
    return onnx.helper.make_model(graph, opset_imports=versions, ir_version=8)


def regressor(kernel, **more):
    rng = np.random.default_rng(0)
    return machine(
        "SVMRegressor",
        ["y"],
        kernel_type=kernel,
        kernel_params=KERNELS[kernel],
        n_supports=6,
        coefficients=rng.normal(size=6).tolist(),
        support_vectors=(3 + rng.normal(size=24)).tolist(),
        rho=[0.3],
        **more,
    )


def classifier(kernel, counts, probable=False, **more):
    rng = np.random.default_rng(0)
    pairs = len(counts) * (len(counts) - 1) // 2
    more |= {n: (-1 - rng.random(pairs)).tolist() for n in ("prob_a", "prob_b") if probable}
    return machine(
        "SVMClassifier",
        ["label", "y"],
        kernel_type=kernel,
        kernel_params=KERNELS[kernel],
        vectors_per_class=counts,
        coefficients=rng.normal(size=(len(counts) - 1) * sum(counts)).tolist(),
        support_vectors=rng.normal(size=4 * sum(counts)).tolist(),
        rho=(0.1 * rng.normal(size=pairs)).tolist(),
        classlabels_ints=[5, 2, 7, 1][: len(counts)],
        **more,
    )


def check(model, x=X, near_by=1e-5):
    """It is what onnxruntime computes."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), QUIET)
    found = gg.onnx.load(model)(x)
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, session.run(None, {"x": x}), strict=True):
        assert a.dtype == b.dtype
        assert np.abs(a - b).max() < near_by * max(1, np.abs(b).max())


def check_slope(model, path, weights):
    """The gradient of weights * y, in onnxruntime, is what differences of the model say."""

    def of(outputs):
        return gg.sum(outputs["y"] * weights.astype("float32"))

    gg.onnx.differentiate(model, of, "x", path=path)
    dx = run(path, {"x": X})["gradient/x"]
    direction = np.random.default_rng(2).normal(size=X.shape).astype("float32")
    value = gg.onnx.load(model)

    def at(step):
        y = value(X + np.float32(step) * direction)
        y = y[1] if isinstance(y, tuple) else y
        return (y.astype("float64") * weights).sum()

    steps = (3e-1, 1e-1, 3e-2, 1e-2)
    slopes = [(8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h) for h in steps]
    expected = (dx * direction).sum()
    assert abs(expected) > 1e-3
    assert min(abs(slope - expected) for slope in slopes) < 1e-4 * max(1, abs(expected))


@pytest.mark.parametrize("kernel", KERNELS)
def test_regressors_are_those_of_onnxruntime(kernel, tmp_path):
    check(regressor(kernel))
    check(regressor(kernel, one_class=1))
    check_slope(regressor(kernel), tmp_path / "d.onnx", np.ones(1))


def test_a_regressor_without_vectors_is_linear():
    weights = {"coefficients": [0.5, -1.0, 2.0, 0.1], "rho": [0.3], "kernel_params": [0.0] * 3}
    check(machine("SVMRegressor", ["y"], **weights))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [[4, 5], [3, 5, 4], [2, 3, 2, 4]])
def test_classifiers_are_those_of_onnxruntime(kernel, counts, tmp_path):
    model = classifier(kernel, counts)
    check(model)
    check(classifier(kernel, counts, post_transform="LOGISTIC"))
    columns = 2 if len(counts) == 2 else len(counts) * (len(counts) - 1) // 2
    check_slope(model, tmp_path / "d.onnx", np.arange(columns) - 0.3)


@pytest.mark.parametrize("counts", [[4, 5], [3, 5, 4], [2, 3, 2, 4]])
def test_probabilities_are_what_onnxruntime_goes_near(counts, tmp_path):
    model = classifier("RBF", counts, probable=True)
    check(model, near_by=0.005 / len(counts) * 4)
    _, y = gg.onnx.load(model)(X)
    near(y.sum(1), np.ones(len(X)))
    assert ((y > 0) & (y < 1)).all()
    check_slope(model, tmp_path / "d.onnx", np.arange(len(counts)) - 0.3)


@pytest.mark.parametrize(
    ("old", "new"), [(np.nan, [1.0, 2.0, 3.0, 4.0]), (np.nan, [0.5]), (0.0, [1.0, 2.0, 3.0, 4.0])]
)
def test_imputers_are_those_of_onnxruntime(old, new, tmp_path):
    x = X.copy()
    x[::2, 1] = x[0, 3] = old
    model = machine("Imputer", ["y"], replaced_value_float=float(old), imputed_value_floats=new)
    check(model, x)
    gg.onnx.differentiate(model, path=tmp_path / "d.onnx")
    dx = run(tmp_path / "d.onnx", {"x": x})["gradient/x"]
    np.testing.assert_array_equal(dx, np.where(np.isnan(x) | (x == old), 0, 1))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            lambda: regressor("RBF", post_transform="SOFTMAX"),
            "post_transform 'SOFTMAX' is not supported",
        ),
        (
            lambda: classifier("RBF", [4, 5], post_transform="SOFTMAX"),
            "of one score for two classes",
        ),
        (
            lambda: machine("SVMClassifier", ["label", "y"], classlabels_strings=["a"]),
            "are strings",
        ),
        (
            lambda: machine("SVMClassifier", ["label", "y"], classlabels_ints=[1, 2]),
            "vectors for 0",
        ),
    ],
)
def test_what_is_not_read_is_refused(model, said):
    with pytest.raises(FileError, match=said):
        gg.onnx.load(model())
