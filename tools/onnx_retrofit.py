"""Twelve architectures that were never written for graphgrad, six methods of attribution each.

    python tools/onnx_retrofit.py [--only PART]

Models of random weights, in float64, are made by torch and scikit-learn and loaded from their ONNX
files; `gg.attribute` is compared with captum, zennit, or torch's own autograd. A cell is the
largest difference relative to the largest attribution, or why the method has no meaning there;
"rest" is what is left of the score where a method promises that nothing is. Then the composites of
LRP on the VGG, each beside that of zennit. Needs the packages torch, captum,
zennit, scikit-learn, skl2onnx.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from captum.attr import DeepLift, GuidedBackprop, IntegratedGradients, LayerGradCam
from skl2onnx import to_onnx
from sklearn.neural_network import MLPClassifier
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval
from zennit import composites
from zennit.attribution import Gradient
from zennit.layer import Sum

import graphgrad as gg

METHODS = ("guided_backprop", "integrated_gradients", "smoothgrad", "grad_cam", "lrp", "deeplift")
LEAST = 1e-6


class Architecture(NamedTuple):
    """A model and what is known of it.

    model     of torch, the reference; made_by writes its ONNX file
    x         examples
    layer     whose map Grad-CAM takes; None: it has none
    lrp       "zennit", or "detached": gradient times input where what LRP holds is detached
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
        self.sum, self.pool = Sum(), nn.AdaptiveAvgPool2d(1)

    def forward(self, x: Any) -> Any:
        """Logits."""
        h = self.stem(x)
        h = self.last(self.sum(torch.stack([h, self.body(h)], -1)))
        return self.head(self.pool(h).flatten(1))


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
        for t, row in enumerate(x.unbind(1)):
            if self.kind == "LSTM":
                i, f, g, o = (row @ w.T + h @ r.T + wb + rb).chunk(4, -1)
                i, f, o = (torch.sigmoid(v).detach() for v in (i, f, o))
                c = f * c + i * passed(torch.tanh, g)
                h = o * passed(torch.tanh, c)
            else:
                (wr, wz, wn), (rr, rz, rn) = (
                    (row @ w.T + wb).chunk(3, -1),
                    (h @ r.T + rb).chunk(3, -1),
                )
                reset, z = passed(torch.sigmoid, wr + rr), torch.sigmoid(wz + rz).detach()
                reset = reset.detach() if t else reset  # before the first step rn is a bias
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
        *(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4), nn.ReLU()),
        *(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 6)),
    )
    residual, unet, steps = Residual(), UNet(), torch.randn(2, 4, 4)
    vit, tokens = Encoder(image=True), torch.randn(2, 5, 8)
    found = {
        "MLP": Architecture(mlp, rows),
        "CNN": Architecture(cnn, image, cnn[3]),
        "ResNet": Architecture(residual, image, residual.body[3]),
        "VGG": Architecture(vgg, image, vgg[7]),
        "MobileNet": Architecture(mobile, image, mobile[7]),
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


def reference(a: Architecture, how: str) -> Any:
    """The attribution by captum, zennit or torch."""
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
            return LayerGradCam(model, a.layer).attribute(x, target=target)
        if how == "deeplift":
            logits = model[:-1] if a.lrp == "softmax" else model
            return DeepLift(logits, eps=1e-7).attribute(
                x, target=target, return_convergence_delta=True
            )
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
    model = merged(model)
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
    with Gradient(model, composite=composites.EpsilonPlus()) as attributor:
        return attributor(x, seed)[1]


def merged(model: Any) -> Any:
    """A copy with batch norms merged into convolutions, as exporters do.

    zennit's own merging leaves their epsilon, and is 1e-5 off.
    """
    model = deepcopy(model)
    for part in model.modules():
        if isinstance(part, nn.Sequential):
            for i in range(1, len(part)):
                if isinstance(part[i], nn.BatchNorm2d):
                    part[i - 1] = fuse_conv_bn_eval(part[i - 1], part[i])
                    part[i] = nn.Identity()
    return model


# --- cells --------------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "smoothgrad": {"samples": 10, "stdev": 0.1},
    "lrp": {"composite": "epsilon_plus"},
    "grad_cam": {"relu": False},
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
        return gg.onnx.load(path, unroll=True)


def cell(name: str, a: Architecture, model: gg.onnx.OnnxModel, how: str) -> Cell:
    """One architecture, one method."""
    options = dict(OPTIONS.get(how, {}))
    if how == "lrp" and a.lrp == "detached":
        options = {"epsilon": 1e-12}
    asked: Any = model.outputs[[n for n, t in model.outputs.items() if t.dtype.kind == "f"][-1]]
    if how == "deeplift" and a.lrp == "softmax":
        (asked,) = next(n for n in model.graph.nodes if n.type == "Softmax").inputs
    entry = gg.EntryPoint(list(model.inputs.values()), asked)
    try:
        found = gg.attribute(entry, a.x.numpy(), how, target=a.target, **options)
    except gg.GradientError as error:
        return Cell(None, str(error).partition("\n")[0])
    right = reference(a, how)
    rest = None if found.balance is None else found.balance["rest"]
    if how == "deeplift":
        right, left = right
        if left.abs().max() > LEAST:
            return Cell(None, f"captum's own do not add up: {left.abs().max():.0e} is left", rest)
    wanted = right.detach().numpy()
    most = np.abs(wanted).max()
    assert most > 1e-6, f"{name}, {how}: nothing is compared with nothing"
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


BOX = {"low": -3.0, "high": 3.0}
COMPOSITES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "epsilon_plus": (lambda: composites.EpsilonPlus(), {}),
    "epsilon_plus_flat": (lambda: composites.EpsilonPlusFlat(), {}),
    "epsilon_alpha_beta": (lambda: composites.EpsilonAlpha2Beta1(), {}),
    "epsilon_alpha_beta_flat": (lambda: composites.EpsilonAlpha2Beta1Flat(), {}),
    "epsilon_gamma_box": (lambda: composites.EpsilonGammaBox(-3.0, 3.0), BOX),
}


def composite_cells() -> dict[str, Cell]:
    """Each composite of zennit on the VGG."""
    a = architectures()["VGG"]
    model, found = loaded(a), {}
    for name, (make, options) in COMPOSITES.items():
        x = a.x.clone().requires_grad_(True)
        y = a.model(x)
        seed = torch.zeros_like(y)
        seed[:, a.target] = y.detach()[:, a.target]
        with Gradient(a.model, composite=make()) as attributor:
            wanted = attributor(x, seed)[1].detach().numpy()
        got = gg.attribute(model, a.x.numpy(), "lrp", target=a.target, composite=name, **options)
        assert got.balance is not None
        difference = np.abs(got.value - wanted).max() / np.abs(wanted).max()
        found[name] = Cell(float(difference), "", got.balance["rest"])
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
    for name, got in composite_cells().items():
        print(f"{name:39} {got.difference:.1e}  rest {got.rest:.1e}")
    equal = [c for c in found.values() if c.difference is not None and c.difference <= LEAST]
    undefined = [c for c in found.values() if c.difference is None]
    print(f"{len(found)} cells: {len(equal)} equal, {len(undefined)} undefined")


if __name__ == "__main__":
    main()
