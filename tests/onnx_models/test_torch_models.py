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
