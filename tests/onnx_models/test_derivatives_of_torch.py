"""Derivatives of models that torch exported with open axes, in onnxruntime, against autograd."""

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("torch")

from .derived import MODELS, SIZES, exported, feeds_of, wanted
from .test_differentiate import KINDS, run

FIRST = ("lennard_jones", "cnn")
LATER = [
    pytest.param(name, marks=pytest.mark.slow if i % 3 else pytest.mark.ci)
    for i, name in enumerate(name for name in MODELS if name not in FIRST)
]


def check(name, folder, kinds, dynamo=False):
    """Each kind, at all sizes, is what autograd computes in float64."""
    model = exported(name, folder / "m.onnx", dynamo)
    for kind in kinds:
        found = gg.onnx.differentiate(folder / "m.onnx", kind=kind, path=folder / "d.onnx")
        for sizes in SIZES:
            feeds = feeds_of(name, sizes, found.inputs, model)
            got = run(folder / "d.onnx", feeds)
            for output, expected in wanted(name, model, kind, feeds).items():
                scale = max(1.0, np.abs(expected).max())
                worst = np.abs(got[output] - expected).max() / scale
                assert worst < 1e-5, (kind, sizes, output, worst)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*FIRST, *LATER])
def test_every_kind_is_that_of_torch(name, tmp_path):
    check(name, tmp_path, KINDS)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["crystal", "strided", "seen", "chosen"])
def test_so_are_gradients_of_what_the_newer_exporter_writes(name, tmp_path):
    pytest.importorskip("onnxscript")
    check(name, tmp_path, ("gradient", "jvp", "hvp"), dynamo=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_so_is_every_kind_of_what_the_newer_exporter_writes(name, tmp_path):
    pytest.importorskip("onnxscript")
    check(name, tmp_path, KINDS, dynamo=True)
