"""Convolutional networks as ONNX models with fixed weights, beside onnxruntime.

    python tools/costs/image_models.py [--only resnet18] [--batches 1 8] [--sizes 32 64 224]
        [--rounds 9] [--backend llvm] [--exact]

The networks are those of torchvision, written down here, with random weights. CPU time on one
thread over that of onnxruntime: medians of the ratios of calls that take turns. What is compared
agrees to 1e-4 of the largest output.
"""

import argparse
import io
import math
import os
import statistics
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import onnxruntime
import torch
from torch import nn

import graphgrad as gg

LEAST = 0.05  # seconds of a round


def conv(inputs, outputs, window, stride=1, groups=1, act=nn.ReLU):
    """A convolution with batch norm and an activation."""
    layers = [
        nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([act()] if act else []))


class Residual(nn.Module):
    """The sum of a body and what it takes, or a convolution of that."""

    def __init__(self, body, inputs, outputs, stride, act=True):
        super().__init__()
        same = stride == 1 and inputs == outputs
        self.body, self.act = body, act
        self.beside = nn.Identity() if same else conv(inputs, outputs, 1, stride, act=None)

    def forward(self, x):
        """y."""
        y = self.body(x) + self.beside(x)
        return torch.relu(y) if self.act else y


class Joined(nn.Module):
    """What branches make, side by side."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        """y."""
        return torch.cat([branch(x) for branch in self.branches], 1)


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, width, narrow):
        super().__init__()
        layers = nn.Conv2d(width, narrow, 1), nn.SiLU(), nn.Conv2d(narrow, width, 1), nn.Sigmoid()
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), *layers)

    def forward(self, x):
        """y."""
        return x * self.gate(x)


def head(width):
    """Classes."""
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000)


def stem():
    """The first layers of residual networks."""
    return conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)


def resnet18():
    """Blocks of two convolutions."""
    layers, width = [*stem()], 64
    for outputs, stride in [(64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]:
        body = conv(width, outputs, 3, stride), conv(outputs, outputs, 3, act=None)
        layers.append(Residual(nn.Sequential(*body), width, outputs, stride))
        width = outputs
    body = conv(512, 512, 3), conv(512, 512, 3, act=None)
    return nn.Sequential(*layers, Residual(nn.Sequential(*body), 512, 512, 1), *head(512))


def resnet50():
    """Blocks with a bottleneck."""
    layers, width = [*stem()], 64
    for narrow, first, count in [(64, 1, 3), (128, 2, 4), (256, 2, 6), (512, 2, 3)]:
        for i in range(count):
            stride = 1 if i else first
            body = (
                conv(width, narrow, 1),
                conv(narrow, narrow, 3, stride),
                conv(narrow, 4 * narrow, 1, act=None),
            )
            layers.append(Residual(nn.Sequential(*body), width, 4 * narrow, stride))
            width = 4 * narrow
    return nn.Sequential(*layers, *head(2048))


def squeezenet():
    """Fire: few channels, then two kinds of windows side by side."""

    def plain(inputs, outputs, window, stride=1, padding=0):
        return nn.Sequential(nn.Conv2d(inputs, outputs, window, stride, padding), nn.ReLU())

    def fire(inputs, narrow, wide):
        both = Joined(plain(narrow, wide, 1), plain(narrow, wide, 3, padding=1))
        return nn.Sequential(plain(inputs, narrow, 1), both)

    pool = nn.MaxPool2d(3, 2, ceil_mode=True)
    fires = [fire(64, 16, 64), fire(128, 16, 64), pool, fire(128, 32, 128), fire(256, 32, 128)]
    fires += [pool, fire(256, 48, 192), fire(384, 48, 192), fire(384, 64, 256), fire(512, 64, 256)]
    end = plain(512, 1000, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(plain(3, 64, 3, 2), pool, *fires, *end)


def googlenet():
    """Inception."""

    def inception(inputs, a, b, c, d, e, f):
        pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(inputs, f, 1))
        third = nn.Sequential(conv(inputs, d, 1), conv(d, e, 3))
        second = nn.Sequential(conv(inputs, b, 1), conv(b, c, 3))
        return Joined(conv(inputs, a, 1), second, third, pooled)

    pool = nn.MaxPool2d(3, 2, ceil_mode=True)
    rows = [(192, 64, 96, 128, 16, 32, 32), (256, 128, 128, 192, 32, 96, 64), None]
    rows += [(480, 192, 96, 208, 16, 48, 64), (512, 160, 112, 224, 24, 64, 64)]
    rows += [(512, 128, 128, 256, 24, 64, 64), (512, 112, 144, 288, 32, 64, 64)]
    rows += [(528, 256, 160, 320, 32, 128, 128), None, (832, 256, 160, 320, 32, 128, 128)]
    rows += [(832, 384, 192, 384, 48, 128, 128)]
    begin = conv(3, 64, 7, 2), pool, conv(64, 64, 1), conv(64, 192, 3), pool
    return nn.Sequential(*begin, *[inception(*r) if r else pool for r in rows], *head(1024))


def inverted(rows, act, gated):
    """Blocks that are wide inside, where each channel has a filter of its own."""
    layers, width = [conv(3, 32, 3, 2, act=act)], 32
    for factor, outputs, count, first, window in rows:
        for i in range(count):
            wide, stride = width * factor, 1 if i else first
            body = [conv(width, wide, 1, act=act)] if factor > 1 else []
            body.append(conv(wide, wide, window, stride, wide, act))
            body += [Gate(wide, max(width // 4, 1))] if gated else []
            body = nn.Sequential(*body, conv(wide, outputs, 1, act=None))
            same = stride == 1 and width == outputs
            layers.append(Residual(body, width, outputs, stride, act=False) if same else body)
            width = outputs
    return nn.Sequential(*layers, conv(320, 1280, 1, act=act), *head(1280))


def mobilenet_v2():
    """Inverted residuals."""
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3)]
    return inverted(
        [*rows, (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)], nn.ReLU6, False
    )


def efficientnet_b0():
    """With gates."""
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)]
    return inverted([*rows, (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)], nn.SiLU, True)


def densenet121():
    """Each layer reads all before it."""

    def normed(width):
        return nn.BatchNorm2d(width), nn.ReLU()

    layers, width = [*stem()], 64
    for block, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            narrow = nn.Conv2d(width, 128, 1, bias=False)
            last = nn.Conv2d(128, 32, 3, padding=1, bias=False)
            body = nn.Sequential(*normed(width), narrow, *normed(128), last)
            layers.append(Joined(nn.Identity(), body))
            width += 32
        if block < 3:
            half = nn.Conv2d(width, width // 2, 1, bias=False)
            layers += [*normed(width), half, nn.AvgPool2d(2)]
            width //= 2
    return nn.Sequential(*layers, *normed(width), *head(width))


NETWORKS = [
    resnet18,
    resnet50,
    squeezenet,
    googlenet,
    mobilenet_v2,
    efficientnet_b0,
    densenet121,
]


def exported(make, shape):
    """The model's bytes."""
    torch.manual_seed(0)
    network = make().eval()
    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    file = io.BytesIO()
    torch.onnx.export(network, (torch.randn(shape),), file, dynamo=False, opset_version=17)
    return file.getvalue()


def seconds(run, times):
    """CPU time of a call."""
    began = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - began) / times


def beside(model, x, backend, rounds, **options):
    """Milliseconds of both, and the ratio."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    compiled = gg.onnx.load(model).compile(backend=backend, num_threads=1, **options)
    runs = (lambda: compiled(x)), (lambda: session.run(None, {name: x}))
    found, right = (next(iter(r.values())) if isinstance(r := run(), dict) else r for run in runs)
    found, right = np.asarray(found).ravel(), np.asarray(right).ravel()
    assert np.max(np.abs(found - right)) <= 1e-4 * np.max(np.abs(right))
    count = max(1, int(LEAST / seconds(runs[1], 2)))
    pairs = [[seconds(run, count) for run in runs] for _ in range(rounds)]
    ours, theirs = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
    return ours, theirs, statistics.median([a / b for a, b in pairs])


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--sizes", type=int, nargs="*", default=[32, 64, 224])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--backend", default="llvm")
    parser.add_argument("--exact", action="store_true", help="convolutions by their definition")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    columns = [(n, s) for s in given.sizes for n in given.batches]
    print("| |", " | ".join(f"{n} x {s} x {s}" for n, s in columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    ratios = [[] for _ in columns]
    for make in NETWORKS:
        if given.only not in make.__name__:
            continue
        cells = []
        for (n, size), column in zip(columns, ratios, strict=True):
            x = np.random.default_rng(0).normal(size=(n, 3, size, size)).astype("float32")
            model, options = exported(make, x.shape), {"exact": True} if given.exact else {}
            ours, theirs, ratio = beside(model, x, given.backend, given.rounds, **options)
            column.append(ratio)
            cells.append(f"{ours:.2f} / {theirs:.2f}: **{ratio:.2f}**")
        print(f"| {make.__name__} |", " | ".join(cells), "|", flush=True)
    means = [math.exp(statistics.mean(map(math.log, column))) for column in ratios]
    print("| geometric mean |", " | ".join(f"**{mean:.2f}**" for mean in means), "|")


if __name__ == "__main__":
    main()
