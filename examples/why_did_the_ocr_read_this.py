"""Why did the OCR read this? A recogniser that somebody else trained, asked letter by letter.

The model is the one in the wheel of rapidocr-onnxruntime, a file of ONNX without any gradient. The
line of text is drawn here. Guided backpropagation and LRP say which pixels each letter comes from;
LRP also says where all of the score went.
"""

import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import graphgrad as gg

TEXT, SIZE = "graph", (128, 48)
NEEDED = {"rapidocr_onnxruntime": "rapidocr-onnxruntime", "PIL": "pillow", "onnx": "onnx"}


def drawn():
    """The line of text, as a picture."""
    pictures, fonts = (import_module(f"PIL.{name}") for name in ("ImageDraw", "ImageFont"))
    line = import_module("PIL.Image").new("RGB", SIZE, "white")
    pictures.Draw(line).text((8, 2), TEXT, "black", fonts.load_default(36))
    return line


def recogniser():
    """The model, and its letters: none, those of its metadata, and a space."""
    (folder,) = find_spec("rapidocr_onnxruntime").submodule_search_locations
    path = Path(folder, "models", "ch_PP-OCRv4_rec_infer.onnx")
    model = gg.onnx.load(path, shapes={"x": ("N", 3, *SIZE[::-1])})
    return model, ["", *model.metadata["character"].splitlines(), " "]


def read(logits):
    """[place, letter] of each letter: not none, and another than at the place before."""
    best = logits[0].argmax(1)
    return np.array([(i, b) for i, b in enumerate(best) if b and (i == 0 or best[i - 1] != b)])


def middles(values):
    """Where along the line the pixels lie that count."""
    weights = np.abs(values).sum((1, 2))
    return weights @ np.arange(SIZE[0]) / weights.sum(1)


missing = [name for module, name in NEEDED.items() if find_spec(module) is None]
if missing:
    print(f"this example needs: pip install {' '.join(missing)}")
else:
    image = import_module("PIL.Image")
    line = drawn()
    pixels = (np.asarray(line, "float32")[..., ::-1] / 127.5 - 1).transpose(2, 0, 1)[None]
    model, letters = recogniser()
    (x,), (probabilities,) = model.inputs.values(), model.outputs.values()
    score = gg.compile([x], probabilities.node.inputs[0])  # what the last softmax is of
    places = read(score(pixels))
    text = "".join(letters[letter] for _, letter in places)
    print(f"drawn {TEXT!r}, read {text!r}")
    assert text == TEXT

    batch = np.repeat(pixels, len(places), 0)
    guided = gg.attribute(score, batch, "guided_backprop", target=places)
    shares = gg.attribute(score, batch, "lrp", target=places)
    for letter, *found in zip(text, middles(guided.value), middles(shares.value), strict=True):
        print(f"{letter}: guided backpropagation around pixel {found[0]:.0f}, LRP {found[1]:.0f}")
    assert (np.diff(middles(shares.value)) > 0).all(), "from left to right, as it was read"
    print("of all scores:", {name: round(part, 2) for name, part in shares.balance.items()})
    assert abs(shares.balance["rest"]) < 1e-3 * shares.balance["score"]

    folder = Path(tempfile.mkdtemp())
    sheet = image.new("RGB", (2 * SIZE[0], SIZE[1] * len(text)), "white")
    for i in range(len(text)):
        shares.write_picture(folder / "why.png", i)
        sheet.paste(line, (0, SIZE[1] * i))
        sheet.paste(image.open(folder / "why.png").resize(SIZE), (SIZE[0], SIZE[1] * i))
    sheet.save(folder / "why.png")
    print(f"letter by letter, beside the line: {folder / 'why.png'}")
