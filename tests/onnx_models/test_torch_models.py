"""Models that torch writes: the same values and gradients, names and scopes, unknown batches."""

import warnings

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
nn = torch.nn


class Patches(nn.Module):
    """A small vision transformer, whose shapes an exporter computes from that of the image."""

    def __init__(self):
        super().__init__()
        self.patch, self.first = nn.Conv2d(3, 8, 4, stride=4), nn.Parameter(torch.randn(1, 1, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1), nn.Linear(8, 4)

    def forward(self, x):
        tokens = self.patch(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.first.expand(tokens.shape[0], -1, -1), tokens], 1)
        return self.head(self.encoder(tokens)[:, 0])


class Read(nn.Module):
    """The last state of a recurrent layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0][:, -1]


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2), nn.Hardswish()),
        *(nn.ConvTranspose2d(8, 4, 2, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    )


IMAGE, STEPS = (2, 3, 8, 8), (2, 5, 3)
MODELS = {
    "cnn": (cnn, IMAGE),
    "vit": (Patches, IMAGE),
    "lstm": (lambda: Read(nn.LSTM(3, 4, batch_first=True, bidirectional=True)), STEPS),
    "gru": (lambda: Read(nn.GRU(3, 4, batch_first=True, num_layers=2)), STEPS),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_values_and_gradients_are_those_of_torch(name, tmp_path):
    """With a batch whose length nobody knows while loading."""
    torch.manual_seed(0)
    make, shape = MODELS[name]
    home, x = make().eval().double(), torch.randn(shape, dtype=torch.float64)
    path = tmp_path / "m.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            home, (x,), path, input_names=["x"], dynamic_axes={"x": {0: "N"}}, dynamo=False
        )
    model = gg.onnx.load(path)
    assert model.inputs["x"].shape[0] == "N"
    (y,) = model.outputs.values()
    (dx,) = gg.gradients(gg.sum(y * y), [model.inputs["x"]])
    x = torch.randn((3, *shape[1:]), dtype=torch.float64, requires_grad=True)
    wanted = home(x)
    (slope,) = torch.autograd.grad((wanted * wanted).sum(), x)
    found = gg.evaluate([y, dx], {model.inputs["x"]: x.detach().numpy()})
    np.testing.assert_allclose(found[0], wanted.detach().numpy(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found[1], slope.numpy(), rtol=1e-6, atol=1e-9)
    scopes = {n.name.partition("/")[0] for n in model.graph.nodes if "/" in n.name}
    assert scopes & {"encoder", "layer", "0", "4"}


class Residual(nn.Module):
    """With a convolution on its shortcut, as in a ResNet."""

    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.c2, self.b2 = nn.Conv2d(4, 6, 3, 2, 1, bias=False), nn.BatchNorm2d(6)
        self.short, self.head = nn.Conv2d(4, 6, 1, 2), nn.Linear(6, 2)

    def forward(self, x):
        h = torch.relu(self.b1(self.c1(x)))
        return self.head(torch.relu(self.b2(self.c2(h)) + self.short(h)).mean((2, 3)))


class Bounded(nn.Module):
    """A MobileNet's activations, a slope that is learned, and pixels made small."""

    def __init__(self):
        super().__init__()
        self.conv, self.slope = nn.Conv2d(3, 3, 3, groups=3), nn.PReLU(3)
        self.up, self.scale = nn.ConvTranspose2d(3, 2, 2, 2), nn.Parameter(torch.randn(3, 1, 1))
        self.register_buffer("mean", torch.rand(1, 3, 1, 1))
        self.register_buffer("spread", torch.rand(1, 3, 1, 1) + 1)

    def forward(self, x):
        h = nn.functional.relu6(self.conv((x / 255.0 - self.mean) / self.spread))
        return self.up(self.scale * self.slope(nn.functional.hardswish(h))) * 0.5 + 2.0


class Attention(nn.Module):
    """Words with positions, a mask, and a table of factors that is none of the parameters."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(10, 8), nn.Parameter(torch.randn(1, 5, 8))
        self.first, self.norm = nn.Parameter(torch.randn(1, 1, 8)), nn.LayerNorm(8)
        self.qkv, self.out, self.end = nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 1)
        self.register_buffer("mask", torch.triu(torch.full((6, 6), -torch.inf), 1))
        self.register_buffer("turn", torch.randn(6, 8))

    def forward(self, i):
        h = self.words(i) + self.places
        h = self.norm(torch.cat([self.first.expand(len(h), -1, -1), h], 1))
        q, k, v = self.qkv(h).chunk(3, -1)
        weights = torch.softmax(q * self.turn @ k.transpose(-1, -2) / 8**0.5 + self.mask, -1)
        return self.end(nn.functional.gelu(h + self.out(weights @ v)))


LEARNED = {
    "residual": (Residual, IMAGE),
    "bounded": (Bounded, IMAGE),
    "attention": (Attention, (2, 5)),
    "vit": (Patches, IMAGE),
    "lstm": (lambda: Read(nn.LSTM(3, 4, batch_first=True, bidirectional=True)), STEPS),
    "gru": (lambda: Read(nn.GRU(3, 4, batch_first=True, num_layers=2)), STEPS),
    "norms": (
        lambda: nn.Sequential(
            *(nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 1)), nn.GroupNorm(2, 4)),
            *(nn.InstanceNorm2d(4, affine=True), nn.BatchNorm2d(4), nn.LayerNorm(8)),
        ),
        IMAGE,
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", LEARNED)
def test_what_is_trainable_are_the_parameters_of_torch(name, training, tmp_path):
    """As many numbers; under torch's names where the exporter keeps them. No buffer is one."""
    torch.manual_seed(0)
    make, shape = LEARNED[name]
    model = make()
    for p in model.parameters():  # equal ones would be one initializer
        nn.init.normal_(p)
    x = torch.randint(0, 10, shape) if name == "attention" else torch.randn(shape)
    if training and name != "vit":  # which drops at random
        how = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
    else:
        model.eval()
        how = {"do_constant_folding": False}
    path = str(tmp_path / "m.onnx")
    torch.onnx.export(model, (x,), path, dynamo=False, opset_version=17, **how)
    found = gg.onnx.load(path, trainable=True)
    variables = found.graph.variables.trainable
    wanted = {n: tuple(p.shape) for n, p in model.named_parameters()}
    counts = [
        sum(map(np.prod, shapes)) for shapes in ([v.shape for v in variables], wanted.values())
    ]
    assert counts[0] == counts[1], found.trainable
    assert {n for n in found.trainable if n in dict(model.named_buffers())} == set()
    assert {v.node.name for v in variables} >= wanted.keys() & found.tensors.keys()
    assert len(found.trainable) == len(variables)
