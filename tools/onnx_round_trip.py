"""ONNX's own tests, loaded, exported again and run in onnxruntime: how many are right.

    python tools/onnx_round_trip.py [--kind node|simple|pytorch-converted|pytorch-operator]
                                    [--only PART]

What `load` refuses is left out: tools/onnx_tests.py counts that. Needs onnx and onnxruntime.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx_tests import array_of, cases_of, difference, loaded

import graphgrad as gg


def tried(case: Any, path: Path) -> tuple[str, str]:
    """(right, wrong, refused, not loaded or not run, why) of a test."""
    inputs, wanted = case.data_sets[0]
    given = zip(case.model.graph.input, map(array_of, inputs), strict=False)
    feeds = {said.name: array for said, array in given}
    try:
        model = loaded(case.model, feeds)
    except Exception as error:
        return "not loaded", str(error)
    f = gg.compile(list(model.inputs.values()), list(model.outputs.values()), backend="numpy")
    try:
        gg.onnx.export(f, path, dtype="float64")
    except gg.ExportError as error:
        return "refused", str(error)
    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [given.name for given in session.get_inputs()]
        arrays = [feeds[name] for name in model.inputs]
        found = session.run(None, dict(zip(names, arrays, strict=True)))
    except Exception as error:  # a kernel that it lacks, or a dtype that its arrays have not
        return "not run", str(error).splitlines()[0]
    for got, right in zip(found, wanted, strict=True):
        if why := difference(np.asarray(got), array_of(right), case):
            return "wrong", why
    return "right", ""


def main() -> None:
    """The counts, and what is not right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="node")
    parser.add_argument("--only", default="", metavar="PART")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in cases_of(options.kind):
            if options.only in case.name:
                kind, why = tried(case, Path(folder) / "model.onnx")
                counts[kind] += 1
                if kind in ("wrong", "refused", "not run"):
                    print(f"{kind} {case.name}: {why:.200}")
    print(dict(counts))


if __name__ == "__main__":
    main()
