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
LATER = [pytest.param(name, marks=pytest.mark.ci) for name in MODELS if name not in FIRST]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*FIRST, *LATER])
def test_every_kind_is_that_of_torch(name, tmp_path):
    model = exported(name, tmp_path / "m.onnx")
    for kind in KINDS:
        found = gg.onnx.differentiate(tmp_path / "m.onnx", kind=kind, path=tmp_path / "d.onnx")
        for sizes in SIZES:
            feeds = feeds_of(name, sizes, found.inputs, model)
            got = run(tmp_path / "d.onnx", feeds)
            for output, expected in wanted(name, model, kind, feeds).items():
                scale = max(1.0, np.abs(expected).max())
                worst = np.abs(got[output] - expected).max() / scale
                assert worst < 1e-5, (kind, sizes, output, worst)
