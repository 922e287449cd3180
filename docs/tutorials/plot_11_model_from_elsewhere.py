"""
A model from elsewhere
======================

*A colleague sends me a trained model in a file, without its code. I want to see which pixels it
uses, quantise its weights, and give it to somebody who has only NumPy.* You need the file and a few
labelled examples. Here the file was written by ``gg.save``. For an ONNX file, start with
``gg.onnx.load``; :doc:`the page on ONNX </onnx>` describes the differences.

.. meta::
   :keywords: load, open, file, onnx, export, attribute, lrp, finetune, quantize, deploy
"""

import runpy
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import graphgrad as gg

folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "digits.gg")
pixels, labels = load_digits(return_X_y=True)
train, train_y = pixels[:1200] / 16, labels[:1200]
test, test_y = pixels[1200:] / 16, labels[1200:]

# %%
# The file
# --------
#
# Your colleague trains a classifier of handwritten digits and saves it. You never see this code.


def colleague():
    rng = np.random.default_rng(0)
    with gg.Graph() as graph:
        x = gg.placeholder(("N", 64), name="x")
        y = gg.placeholder(("N",), "int64", name="y")
        w1 = gg.variable(rng.normal(size=(64, 32)) / 8, name="w1")
        w2 = gg.variable(rng.normal(size=(32, 10)) / 6, name="w2")
        logits = gg.nn.relu(x @ w1) @ w2
        loss = gg.mean(gg.nn.cross_entropy(logits, y))
        updates = gg.optimizers.Adam(0.01).updates([w1, w2], gg.gradients(loss, [w1, w2]))
        step = gg.compile([x, y], loss, updates=updates)
    for _ in range(60):
        step(train, train_y)
    gg.save(path, graph, functions={"logits": ([x], logits), "loss": ([x, y], loss)})


colleague()

# %%
# Open it
# -------
#
# ``gg.load`` runs no code from the file. You get a graph like any other, with its variables and
# named functions.

file = gg.load(path)
model = file.functions["logits"]
print("functions:", list(file.functions))
print("variables:", {v.name: v.shape for v in file.graph.variables})
right = np.mean(np.argmax(model(test), axis=1) == test_y)
print(f"right: {right:.3f}")

# %%
# What does it look at?
# ---------------------
#
# Layer-wise relevance propagation distributes the score of a class over the pixels. It needs the
# graph, not the code that built it.

shown = [int(np.argmax(test_y == digit)) for digit in (0, 3, 6)]
found = gg.attribute(model, test[shown], "lrp", target=test_y[shown].tolist())

fig, axes = plt.subplots(2, 3, figsize=(5, 3.4), layout="constrained")
for column, (image, relevance) in zip(axes.T, zip(test[shown], found.value, strict=True)):
    column[0].imshow(image.reshape(8, 8), cmap="gray_r")
    limit = np.abs(relevance).max()
    column[1].imshow(relevance.reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
for axis in axes.flat:
    axis.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("image")
axes[1, 0].set_ylabel("relevance")

# %%
# Change it
# ---------
#
# ``gg.import_graph`` rebuilds a graph with some of its tensors replaced. Here ``gg.rules.lsq``
# quantises each weight to two bits; its gradient passes through the rounding and also trains the
# step size. Rounding alone costs accuracy; a short training of the rounded model recovers most of
# it.

x, y = file.functions["loss"].inputs
loss = file.functions["loss"].outputs
logits = model.outputs
weights = [v for v in file.graph.variables if v.node.name in ("w1", "w2")]

with gg.Graph() as small:
    on_grid, trained = {}, []
    for v in weights:
        value = file.graph.state[v]
        weight = gg.variable(value, name=v.name.partition(":")[0])
        step = gg.variable(2 * np.abs(value).mean(), name=f"{weight.node.name}_step")
        on_grid[v] = gg.rules.lsq(weight, step, bits=2)
        trained += [weight, step]
    here = gg.import_graph(file.graph, on_grid)
    updates = gg.optimizers.Adam(0.003).updates(trained, gg.gradients(here[loss], trained))
    tune = gg.compile([here[x], here[y]], here[loss], updates=updates)
    small_model = gg.compile(here[x], here[logits])

accuracy = {"original": right}
accuracy["rounded"] = np.mean(np.argmax(small_model(test), axis=1) == test_y)
for _ in range(60):
    tune(train, train_y)
accuracy["tuned on the grid"] = np.mean(np.argmax(small_model(test), axis=1) == test_y)

plt.figure(figsize=(5, 2.2), layout="constrained")
plt.bar_label(plt.barh(list(accuracy), list(accuracy.values())), fmt="%.3f", padding=3)
plt.gca().invert_yaxis()
plt.xlim(0, 1.1)
plt.xlabel("test accuracy")
assert accuracy["tuned on the grid"] > accuracy["rounded"]

# %%
# Export it
# ---------
#
# ``gg.export_numpy`` writes a Python file that needs only NumPy. ``gg.onnx.export`` writes the same
# function for ONNX runtimes; with ``quantised="qdq"`` it has integer weights (:doc:`export
# quantised networks </quantised>`).

gg.export_numpy(small_model, Path(folder.name, "classify.py"))
classify = runpy.run_path(str(Path(folder.name, "classify.py")))["classify"]
np.testing.assert_allclose(classify(test), small_model(test), atol=1e-9)
print(Path(folder.name, "classify.py").read_text().partition("\n\n")[0])
folder.cleanup()
