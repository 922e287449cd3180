"""A model of torch, explained without an edit: exported, loaded, asked what it looks at.

The network tells bright squares in the left half of an image from those in the right half. Where a
method marks nothing or guesses, its picture would be the same for both; here relevance, DeepLIFT
and Grad-CAM find the square, and what they hand out adds up to the score.
"""

import tempfile
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import graphgrad as gg

torch = import_module("torch") if find_spec("torch") else None


def images(rng, count):
    """Noise with a bright square, and whether it is in the right half."""
    x = 0.1 * rng.normal(size=(count, 1, 8, 8)).astype("float32")
    labels = rng.integers(0, 2, size=count)
    for image, label in zip(x, labels, strict=True):
        row, column = rng.integers(0, 6), rng.integers(0, 3) + 4 * label - (label == 1)
        image[0, row : row + 2, column : column + 2] += 1
    return x, labels


def trained(rng):
    """A small convolutional network."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 6, 3, padding=1), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(96, 2)),
    )
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(60):
        x, labels = (torch.tensor(a) for a in images(rng, 64))
        loss = nn.functional.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def main():
    rng = np.random.default_rng(0)
    x, labels = images(rng, 16)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "squares.onnx"
        torch.onnx.export(trained(rng), (torch.tensor(x),), path, dynamo=False)
        model = gg.onnx.load(path)
        right = (model(x).argmax(1) == labels).mean()
        print(f"{model!r}\nright: {right:.0%}")
        square = x[:, :1] > 0.6
        for method in ("gradient", "guided_backprop", "lrp", "deeplift"):
            found = gg.attribute(model, x, method, target=labels)
            inside = np.abs(found.value * square).sum() / np.abs(found.value).sum()
            print(f"{method:16} {inside:4.0%} on the square, {found.balance}")
            if method in ("lrp", "deeplift"):
                assert inside > 0.5
                assert abs(found.balance["rest"]) < 1e-3
        found.write_picture(Path(folder) / "why.png", example=3)
        assert right > 0.9


if torch is None or find_spec("onnx") is None:
    print("torch or onnx is not installed: pip install torch 'graphgrad[onnx]'")
else:
    main()
