"""Convolutions with their gradients on the LLVM backend beside the NumPy backend and PyTorch.

    python tools/costs/convolutions.py [--rounds 9] [--only dilat]

CPU milliseconds of a call, both gradients included, on one thread, float32; all take turns,
medians. graphgrad has channels last and PyTorch first, each as it likes best. What is compared
agrees to 1e-3 of the largest number of a result.
"""

import argparse
import os
import statistics
import time
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import graphgrad as gg

RNG = np.random.default_rng(0)


class Case(NamedTuple):
    """x: (N, ..., C); w: (..., C / groups, out), of conv_transpose if transposed."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    stride: int = 1
    dilation: int = 1
    groups: int = 1
    transposed: bool = False


CASES = {
    "plain, 8 x 28 x 28 x 64": Case((8, 28, 28, 64), (3, 3, 64, 64)),
    "dilated by 2, 8 x 28 x 28 x 64": Case((8, 28, 28, 64), (3, 3, 64, 64), dilation=2),
    "dilated by 4, 1-d, 8 x 512 x 64": Case((8, 512, 64), (3, 64, 64), dilation=4),
    "dilated by 2, with stride 2": Case((8, 28, 28, 64), (3, 3, 64, 64), stride=2, dilation=2),
    "4 groups, 8 x 28 x 28 x 64": Case((8, 28, 28, 64), (3, 3, 16, 64), groups=4),
    "32 groups (ResNeXt), 4 x 28 x 28 x 256": Case((4, 28, 28, 256), (3, 3, 8, 256), groups=32),
    "4 groups, with stride 2": Case((8, 28, 28, 64), (3, 3, 16, 64), stride=2, groups=4),
    "by channel, 8 x 28 x 28 x 64": Case((8, 28, 28, 64), (3, 3, 1, 64), groups=64),
    "by channel, twice, 8 x 28 x 28 x 32": Case((8, 28, 28, 32), (3, 3, 1, 64), groups=32),
    "by channel, stride 2": Case((8, 28, 28, 64), (3, 3, 1, 64), stride=2, groups=64),
    "3-d, 2 x 12 x 12 x 12 x 32": Case((2, 12, 12, 12, 32), (3, 3, 3, 32, 32)),
    "3-d, 2 groups, dilated": Case((2, 12, 12, 12, 32), (3, 3, 3, 16, 32), groups=2, dilation=2),
    "transposed, stride 2, 8 x 14 x 14 x 64": Case(
        (8, 14, 14, 64), (4, 4, 64, 64), stride=2, transposed=True
    ),
    "transposed, stride 2, 4 groups": Case(
        (8, 14, 14, 64), (4, 4, 16, 64), stride=2, groups=4, transposed=True
    ),
}


def ours(case, x, w, backend):
    """A call of ours."""
    make = gg.nn.conv_transpose if case.transposed else gg.nn.conv
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in (x, w)]
        padding = case.dilation if not case.transposed else 1
        z = make(*xs, case.stride, padding, "NHWC", case.dilation, case.groups)
        y = gg.sum(z * z)
        run = gg.compile(xs, [y, *gg.gradients(y, xs)], backend=backend, num_threads=1)
    return lambda: run(x, w)


def torchs(case, x, w):
    """A call of PyTorch's, and what makes its results comparable."""
    rank = x.ndim - 2
    name = f"conv{'_transpose' if case.transposed else ''}{rank}d"
    fn = getattr(torch.nn.functional, name)
    last = (rank + 1, rank)
    a = torch.tensor(np.ascontiguousarray(np.moveaxis(x, -1, 1)), requires_grad=True)
    order = (*last, *range(rank))
    b = torch.tensor(np.ascontiguousarray(w.transpose(order)), requires_grad=True)
    padding = case.dilation if not case.transposed else 1
    given = {"stride": case.stride, "padding": padding, "dilation": case.dilation}

    def run():
        z = fn(a, b, groups=case.groups, **given)
        y = (z * z).sum()
        da, db = torch.autograd.grad(y, [a, b])
        back = (*range(2, rank + 2), 1, 0)
        return y.detach(), da.movedim(1, -1), db.permute(back)

    return run


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("| CPU ms | LLVM | NumPy | PyTorch | LLVM / PyTorch |\n|---|---|---|---|---|")
    for name, case in CASES.items():
        if given.only not in name:
            continue
        x, w = (RNG.normal(size=s).astype("float32") for s in case[:2])
        found = {backend: ours(case, x, w, backend) for backend in ("llvm", "numpy")}
        found["torch"] = torchs(case, x, w)
        right = found["numpy"]()
        for who, run in found.items():
            for a, b in zip(run(), right, strict=True):
                off = np.max(np.abs(np.asarray(a) - b))
                assert off <= 1e-3 * np.max(np.abs(b)), (who, name, off)
        times = {k: [] for k in found}
        for _ in range(given.rounds):
            for k, run in found.items():
                began = time.process_time()
                run()
                times[k].append(1e3 * (time.process_time() - began))
        llvm, numpy, other = (statistics.median(times[k]) for k in ("llvm", "numpy", "torch"))
        print(
            f"| {name} | {llvm:.2f} | {numpy:.2f} | {other:.2f} | {llvm / other:.2f} |", flush=True
        )


if __name__ == "__main__":
    main()
