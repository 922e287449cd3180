"""Twelve architectures that were never written for graphgrad, six methods of attribution each.

    python tools/onnx_retrofit.py [--only PART]

Models of random weights, in float64, are made by torch and scikit-learn and loaded from their ONNX
files; `gg.attribute` is compared with captum, zennit, or torch's own autograd. A cell is the largest
difference relative to the largest attribution, or why the method has no meaning there. The last
column says what switching the method's rules off would change. Needs the packages torch, captum,
zennit, scikit-learn, skl2onnx.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from captum.attr import DeepLift, GuidedBackprop, IntegratedGradients, LayerGradCam
from torch import nn
from torch.nn import functional
from zennit.attribution import Gradient
from zennit.canonizers import SequentialMergeBatchNorm
from zennit.composites import EpsilonPlus

import graphgrad as gg

METHODS = ("guided_backprop", "integrated_gradients", "smoothgrad", "grad_cam", "lrp", "deeplift")
LEAST = 1e-6


class Architecture(NamedTuple):
    """A model and what is known of it.

    model     of torch, the reference; made_by writes its ONNX file
    x         examples
    layer     whose map Grad-CAM takes; None: it has none
    lrp       "zennit", or "detached": gradient times input where what LRP holds constant is detached
    target    a place in the output
    """

    model: Any
    x: Any
    layer: Any = None
    lrp: str = "zennit"
    target: Any = 1
    write: Callable[[Any, Any, Path], None] | None = None


def conv(*sizes: int, **options: Any) -> nn.Conv2d:
    """A convolution of 3 places that keeps lengths."""
    return nn.Conv2d(*sizes, 3, padding=1, **options)


class Residual(nn.Module):
    """Two blocks around which their input goes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv(3, 8), nn.BatchNorm2d(8), nn.ReLU())
        self.body = nn.Sequential(conv(8, 8), nn.BatchNorm2d(8), nn.ReLU(), conv(8, 8))
        self.last, self.head = nn.ReLU(), nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        """Logits."""
        h = self.stem(x)
        h = self.last(h + self.body(h))
        return self.head(h.mean((2, 3)))


class UNet(nn.Module):
    """Down, up, and across."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.deep = conv(3, 4), conv(4, 8, stride=2)
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 2, 1)
        self.a, self.b = nn.ReLU(), nn.ReLU()

    def forward(self, x: Any) -> Any:
        """A map of two classes."""
        wide = self.a(self.down(x))
        return self.out(torch.cat([wide, self.up(self.b(self.deep(wide)))], 1))


class Recurrent(nn.Module):
    """A recurrent layer of torch, whose last state is read; detached: LRP's gates are held."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.cell = getattr(nn, kind)(4, 6, batch_first=True)
        self.head = nn.Linear(6, 3)
        self.detached = False

    def forward(self, x: Any) -> Any:
        """Logits."""
        if self.detached:
            return self.head(self.steps(x))
        return self.head(self.cell(x)[0][:, -1])

    def steps(self, x: Any) -> Any:
        """The last state, by a loop in which gates are constants and tanh is a slope."""
        w, r, wb, rb = (getattr(self.cell, n) for n in torch_names)
        h = c = x.new_zeros(len(x), 6)
        for row in x.unbind(1):
            if self.kind == "LSTM":
                i, f, g, o = (row @ w.T + h @ r.T + wb + rb).chunk(4, -1)
                i, f, o = (torch.sigmoid(v).detach() for v in (i, f, o))
                c = f * c + i * passed(torch.tanh, g)
                h = o * passed(torch.tanh, c)
            else:
                (wr, wz, wn), (rr, rz, rn) = (row @ w.T + wb).chunk(3, -1), (h @ r.T + rb).chunk(3, -1)
                reset, z = torch.sigmoid(wr + rr).detach(), torch.sigmoid(wz + rz).detach()
                h = (1 - z) * passed(torch.tanh, wn + reset * rn) + z * h
        return h


torch_names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


def passed(fn: Any, x: Any) -> Any:
    """fn(x) as a constant slope times x: relevance passes."""
    return x * torch.where(x == 0, torch.ones_like(x), fn(x) / x).detach()


class Block(nn.Module):
    """A transformer block whose attention and norms can be held constant, as LRP does."""

    def __init__(self, width: int, activation: Any) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.act, self.softmax = activation, nn.Softmax(-1)
        self.detached = False

    def norm(self, layer: Any, x: Any) -> Any:
        """Its spread is a constant where detached."""
        if not self.detached:
            return layer(x)
        centred = x - x.mean(-1, keepdim=True)
        spread = (centred.pow(2).mean(-1, keepdim=True) + layer.eps).sqrt().detach()
        return centred / spread * layer.weight + layer.bias

    def forward(self, x: Any) -> Any:
        """The same shape."""
        h = self.norm(self.a, x)
        heads = [p(h).unflatten(-1, (2, -1)).transpose(1, 2) for p in (self.q, self.k, self.v)]
        q, k, v = heads
        weights = self.softmax(q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5)
        weights = weights.detach() if self.detached else weights
        x = x + self.o((weights @ v).transpose(1, 2).flatten(-2))
        h = self.up(self.norm(self.b, x))
        return x + self.down(passed(self.act, h) if self.detached else self.act(h))


class Encoder(nn.Module):
    """Tokens, or patches of an image, through blocks."""

    def __init__(self, image: bool) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, stride=4) if image else None
        self.first = nn.Parameter(torch.randn(1, 1, 8))
        self.places = nn.Parameter(torch.randn(1, 5, 8))
        activations = [nn.GELU(), nn.GELU()] if image else [nn.ReLU(), nn.ReLU()]
        self.blocks = nn.Sequential(*(Block(8, a) for a in activations))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        """Logits."""
        if self.patch is not None:
            tokens = self.patch(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.first.expand(len(x), -1, -1), tokens], 1)
        return self.head(self.blocks(x + self.places)[:, 0])


def scikit_learn() -> Architecture:
    """An MLP of scikit-learn, and the same in torch."""
    from sklearn.neural_network import MLPClassifier
    from skl2onnx import to_onnx

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 5)), rng.integers(0, 3, size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = MLPClassifier((8, 6), max_iter=5, random_state=0).fit(x, y)
    layers: list[Any] = []
    for w, b in zip(made.coefs_, made.intercepts_, strict=True):
        layer = nn.Linear(*w.shape)
        layer.weight.data, layer.bias.data = torch.tensor(w.T), torch.tensor(b)
        layers += [layer, nn.ReLU()]
    model = nn.Sequential(*layers[:-1], nn.Softmax(-1))

    def write(_: Any, x: Any, path: Path) -> None:
        stored = to_onnx(made, x.numpy(), options={"zipmap": False}, target_opset=18)
        path.write_bytes(stored.SerializeToString())

    return Architecture(model, torch.tensor(x[:3]), lrp="softmax", write=write)


def architectures() -> dict[str, Architecture]:
    """All twelve."""
    torch.manual_seed(0)
    image, rows = torch.randn(2, 3, 8, 8), torch.randn(3, 6)
    cnn = nn.Sequential(
        *(conv(3, 6), nn.ReLU(), nn.MaxPool2d(2), conv(6, 8), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(128, 4)),
    )
    vgg = nn.Sequential(
        *(conv(3, 6), nn.ReLU(), conv(6, 6), nn.ReLU(), nn.MaxPool2d(2)),
        *(conv(6, 8), nn.ReLU(), conv(8, 8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4)),
    )
    mobile = nn.Sequential(
        *(conv(3, 8, stride=2), nn.BatchNorm2d(8), nn.ReLU(), conv(8, 8, groups=8)),
        *(nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)),
    )
    mlp = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 7), nn.ReLU(), nn.Linear(7, 4))
    auto = nn.Sequential(
        *(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2), nn.ReLU()),
        *(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 6)),
    )
    residual, unet, steps = Residual(), UNet(), torch.randn(2, 4, 4)
    vit, tokens = Encoder(image=True), torch.randn(2, 5, 8)
    found = {
        "MLP": Architecture(mlp, rows),
        "CNN": Architecture(cnn, image, cnn[3]),
        "ResNet": Architecture(residual, image, residual.body[3]),
        "VGG": Architecture(vgg, image, vgg[7]),
        "MobileNet": Architecture(mobile, image, mobile[6]),
        "U-Net": Architecture(unet, image, unet.out, target=(1, 4, 4)),
        "LSTM": Architecture(Recurrent("LSTM"), steps, lrp="detached"),
        "GRU": Architecture(Recurrent("GRU"), steps, lrp="detached"),
        "transformer": Architecture(Encoder(image=False), tokens, lrp="detached"),
        "ViT": Architecture(vit, image, vit.patch, lrp="detached"),
        "autoencoder": Architecture(auto, rows),
        "scikit-learn MLP": scikit_learn(),
    }
    for architecture in found.values():
        randomise_norms(architecture.model.double().eval())
    return {k: a._replace(x=a.x.double()) for k, a in found.items()}


def randomise_norms(model: Any) -> None:
    """Moments and scales that are not those of a new layer."""
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.3)
            part.running_var.uniform_(0.5, 2)
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(0, 0.3)


# --- references ---------------------------------------------------------------------------------


def reference(name: str, a: Architecture, how: str) -> Any:
    """The attribution by captum, zennit or torch; None: there is none."""
    model, x = a.model, a.x.clone().requires_grad_(True)
    target = a.target
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if how == "guided_backprop":
            return GuidedBackprop(model).attribute(x, target=target)
        if how == "integrated_gradients":
            return IntegratedGradients(model).attribute(x, target=target, n_steps=50)
        if how == "smoothgrad":
            return smooth(model, a.x, target)
        if how == "grad_cam":
            if a.layer is None:
                return None
            return LayerGradCam(model, a.layer).attribute(x, target=target, relu_attributions=True)
        if how == "deeplift":
            return DeepLift(model, eps=1e-7).attribute(x, target=target)
        return relevance(model, x, a)


def score(y: Any, target: Any) -> Any:
    """The sum of the number in question over examples."""
    places = target if isinstance(target, tuple) else (target,)
    return y[(slice(None), *places)].sum()


def smooth(model: Any, x: Any, target: Any) -> Any:
    """The mean gradient at the points that gg.attribute takes."""
    rng, total = np.random.default_rng(0), torch.zeros_like(x)
    for _ in range(10):
        noise = rng.normal(scale=0.1, size=x.shape)
        point = (x + torch.tensor(noise)).requires_grad_(True)
        total += torch.autograd.grad(score(model(point), target), point)[0] / 10
    return total


def relevance(model: Any, x: Any, a: Architecture) -> Any:
    """LRP by zennit's composite, or as gradient times input of a model that holds constants."""
    if a.lrp == "detached":
        for part in model.modules():
            if hasattr(part, "detached"):
                part.detached = True
        (dx,) = torch.autograd.grad(score(model(x), a.target), x)
        for part in model.modules():
            if hasattr(part, "detached"):
                part.detached = False
        return x * dx
    canonizers = [SequentialMergeBatchNorm()]
    y = model(x)
    seed = torch.zeros_like(y)
    places = a.target if isinstance(a.target, tuple) else (a.target,)
    key = (slice(None), *places)
    seed[key] = y.detach()[key]
    if a.lrp == "softmax":  # x * (R - y * sum of R) before it, as in AttnLRP
        body = model[:-1]
        z = body(x).detach()
        seed = z * (seed - y.detach() * seed.sum(-1, keepdim=True))
        model = body
    with Gradient(model, composite=EpsilonPlus(epsilon=1e-6, canonizers=canonizers)) as attributor:
        return attributor(x, seed)[1]


# --- cells --------------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "smoothgrad": {"samples": 10, "stdev": 0.1},
    "lrp": {"composite": "epsilon_plus"},
}


class Cell(NamedTuple):
    """The difference, relative to the largest attribution, or why there is none."""

    difference: float | None
    why: str = ""
    rest: float | None = None


def loaded(a: Architecture) -> gg.onnx.OnnxModel:
    """The model from its ONNX file."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.onnx"
        if a.write is None:
            torch.onnx.export(a.model, (a.x,), path, dynamo=False, opset_version=17)
        else:
            a.write(a.model, a.x, path)
        return gg.onnx.load(path)


def cell(name: str, a: Architecture, model: gg.onnx.OnnxModel, how: str) -> Cell:
    """One architecture, one method."""
    options = dict(OPTIONS.get(how, {}))
    if how == "lrp" and a.lrp == "detached":
        options = {"epsilon": 1e-12}
    outputs = [n for n, t in model.outputs.items() if t.dtype.kind == "f"]
    try:
        found = gg.attribute(
            model, a.x.numpy(), how, target=a.target, output=outputs[-1], **options
        )
    except gg.GradientError as error:
        return Cell(None, str(error).partition("\n")[0])
    right = reference(name, a, how)
    if right is None:
        return Cell(None, "captum has no layer for it")
    wanted = right.detach().numpy()
    most = max(np.abs(wanted).max(), 1e-12)
    rest = None if found.balance is None else found.balance["rest"]
    return Cell(float(np.abs(found.value - wanted).max() / most), "", rest)


def cells(part: str = "") -> dict[tuple[str, str], Cell]:
    """All cells of architectures whose name has a part."""
    found = {}
    for name, a in architectures().items():
        if part.lower() not in name.lower():
            continue
        model = loaded(a)
        y = model(a.x.numpy())
        y = y[-1] if isinstance(y, tuple) else y
        np.testing.assert_allclose(y, a.model(a.x).detach().numpy(), rtol=1e-6, atol=1e-8)
        for how in METHODS:
            found[name, how] = cell(name, a, model, how)
    return found


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="PART")
    options = parser.parse_args()
    found = cells(options.only)
    for (name, how), got in found.items():
        shown = got.why[:110] if got.difference is None else f"{got.difference:.1e}"
        rest = "" if got.rest is None else f"  rest {got.rest:.1e}"
        bad = " WRONG" if got.difference is not None and got.difference > LEAST else ""
        print(f"{name:17} {how:21} {shown}{rest}{bad}")
    equal = [c for c in found.values() if c.difference is not None and c.difference <= LEAST]
    undefined = [c for c in found.values() if c.difference is None]
    print(f"{len(found)} cells: {len(equal)} equal, {len(undefined)} undefined")


if __name__ == "__main__":
    main()
