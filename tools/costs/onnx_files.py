"""How fast the files of ONNX are that are written here: `python tools/costs/onnx_files.py`.

    python tools/costs/onnx_files.py [NAME ...] [--keep FOLDER] [--beside FOLDER] [--fast-masks]
        [--profile]

Models of PyTorch, exported with open axes; each is loaded and written again (forward), and
differentiated by its input (gradient). CPU time over that of one run, or two, of the file of
PyTorch, in onnxruntime on one thread: medians of ratios of runs that take turns. --beside: files
that --keep left of another version take turns with them. --profile: microseconds by operator.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

import graphgrad as gg

ROUNDS = 60


def perceptron():
    """SiLU."""
    layers = [nn.Linear(128, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 1)]
    return nn.Sequential(*layers)


class Block(nn.Module):
    """Attention in four heads, and two layers with GELU, each behind a LayerNorm."""

    def __init__(self, width=96, heads=4):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.three, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        """y."""
        n, t, width = x.shape
        parts = self.three(self.before(x)).chunk(3, -1)
        q, k, v = (
            part.reshape(n, t, self.heads, width // self.heads).transpose(1, 2) for part in parts
        )
        scores = q @ k.transpose(2, 3) / (width // self.heads) ** 0.5
        mixed = torch.softmax(scores, -1) @ v
        x = x + self.back(mixed.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.wide(self.between(x))))


class Transformer(nn.Module):
    """Two blocks."""

    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.Sequential(Block(), Block()), nn.Linear(96, 10)

    def forward(self, x):
        """y."""
        return self.head(self.blocks(x).mean(1))


def rectified():
    """Layers with ReLU."""
    layers = [nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)]
    return nn.Sequential(*layers)


def rectified_images():
    """Convolutions with ReLU and ReLU6, strides for pools."""
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1)),
        *(nn.Flatten(), nn.Linear(32, 10)),
    )


def images():
    """HardSwish, depthwise filters and a pool."""
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.Hardswish()),
        *(nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Hardswish(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
        *(nn.Flatten(), nn.Linear(32, 10)),
    )


def denoiser():
    """GroupNorm and SiLU, as diffusion models have them."""
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU()),
        *(nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU()),
        nn.Conv2d(16, 3, 3, padding=1),
    )


class Potential(nn.Module):
    """The energy of atoms by their distances."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, positions):
        """y."""
        gaps = positions[:, None] - positions[None]
        far = ((gaps * gaps).sum(-1) + 1e-3).sqrt()
        near = torch.exp(-((far[..., None] - torch.linspace(0, 4, 8)) ** 2))
        return self.net(near.sum(1)).sum()


MODELS = {
    "perceptron": (perceptron, (64, 128), {0: "N"}),
    "transformer": (Transformer, (8, 32, 96), {0: "N"}),
    "images": (images, (4, 3, 32, 32), {0: "N", 2: "H", 3: "W"}),
    "images_fixed": (images, (4, 3, 32, 32), {0: "N"}),
    "rectified": (rectified, (64, 128), {0: "N"}),
    "rectified_images": (rectified_images, (4, 3, 32, 32), {0: "N", 2: "H", 3: "W"}),
    "denoiser": (denoiser, (2, 3, 32, 32), {0: "N"}),
    "potential": (Potential, (48, 3), {0: "atoms"}),
    "gelu": (nn.GELU, (256, 512), {0: "N"}),
}
"""{name: (what makes it, shape of x, its open axes)}"""


def written(name, folder, fast_masks):
    """Write the three files; x, and the gradient that PyTorch has."""
    make, shape, axes = MODELS[name]
    torch.manual_seed(0)
    model, x = make().eval(), torch.randn(shape)
    own = folder / f"{name}.onnx"
    torch.onnx.export(
        model,
        (x,),
        str(own),
        input_names=["x"],
        output_names=["y"],
        dynamic_axes={"x": axes},
        dynamo=False,
        opset_version=20,
    )
    gg.onnx.export(gg.onnx.load(own).compile(backend="numpy"), folder / f"{name}.forward.onnx")
    gg.onnx.differentiate(own, path=folder / f"{name}.gradient.onnx", fast_masks=fast_masks)
    leaf = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(leaf).sum(), leaf)
    return x.numpy(), slope.numpy()


def session(path, **options):
    """One thread."""
    how = onnxruntime.SessionOptions()
    how.intra_op_num_threads = how.inter_op_num_threads = 1
    how.log_severity_level = 3
    for key, value in options.items():
        setattr(how, key, value)
    return onnxruntime.InferenceSession(str(path), how)


def turns(runs):
    """Seconds of each run, round by round."""
    for run in runs:
        run()
    rows = []
    for _ in range(ROUNDS):
        row = []
        for run in runs:
            start = time.thread_time()
            run()
            row.append(time.thread_time() - start)
        rows.append(row)
    return rows


def profiled(path, x, folder):
    """Print microseconds of a run, by operator."""
    traced = session(path, enable_profiling=True, profile_file_prefix=str(folder / "profile"))
    for _ in range(ROUNDS):
        traced.run(None, {"x": x})
    events = json.loads(Path(traced.end_profiling()).read_text())
    spent, calls = Counter(), Counter()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("kernel_time"):
            spent[event["args"]["op_name"]] += event["dur"] / ROUNDS
            calls[event["args"]["op_name"]] += 1 / ROUNDS
    print(f"  {path.name}: {sum(spent.values()):.0f} us")
    for operator, us in spent.most_common(16):
        print(f"    {operator:22} {us:7.0f} us, {calls[operator]:.0f} times")


def measured(name, folder, others, options):
    """Print a row for each version of the files."""
    x, expected = written(name, folder, options.fast_masks)
    feeds, kinds = {"x": x}, ("forward", "gradient")
    versions = {"": folder, **{f", of {other.name}": other for other in others}}
    found = {(v, k): session(at / f"{name}.{k}.onnx") for v, at in versions.items() for k in kinds}
    every = [session(folder / f"{name}.onnx"), *found.values()]
    rows = turns([lambda s=s: s.run(None, feeds) for s in every])
    ratio = {key: statistics.median(r[i] / r[0] for r in rows) for i, key in enumerate(found, 1)}
    own = statistics.median(row[0] for row in rows)
    for version in versions:
        (got,) = found[version, "gradient"].run(["gradient/x"], feeds)
        worst = abs(got - expected).max() / max(1, abs(expected).max())
        print(
            f"{name + version:28} forward {ratio[version, 'forward']:.2f} of {1e3 * own:.2f} ms, "
            f"gradient {ratio[version, 'gradient'] / 2:.2f} of two, error {worst:.0e}"
        )
    if options.profile:
        for kind in ("onnx", "forward.onnx", "gradient.onnx"):
            profiled(folder / f"{name}.{kind}", x, folder)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--beside", type=Path, action="append", default=[])
    parser.add_argument("--fast-masks", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        os.makedirs(folder, exist_ok=True)
        for name in options.names or MODELS:
            measured(name, folder, options.beside, options)


if __name__ == "__main__":
    main()
