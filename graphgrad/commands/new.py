"""`new`: writes a small project with a rule, its test and a training script."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..base.errors import FileError

RULES = '''"""The rules of {name}: what stands for the gradient of a marked part."""

import graphgrad as gg


@gg.register_gradient("{name}/through_rounding")
def through_rounding(site, dy):
    """dx = dy where |x| <= 1, else 0: as if there were no steps, but an end at both sides."""
    (x,) = site.inputs
    return gg.where(gg.abs(x) <= 1.0, dy, 0.0)


def quantise(x, steps=4):
    """x in steps of 1 / steps, with the rule."""
    with gg.override_gradient("{name}/through_rounding"):
        return gg.round(x * steps) / steps
'''

TEST = '''"""The rule is right, and it counts: python -m pytest"""

import numpy as np
from rules import quantise

import graphgrad as gg


def test_the_rule_stands_for_the_gradient():
    x = gg.constant([0.3, -0.9, 1.7])
    y = quantise(x)
    with_rule, without = gg.gradients(y, x), gg.gradients(y, x, overrides="none")
    np.testing.assert_array_equal(gg.evaluate(y), [0.25, -1.0, 1.75])
    np.testing.assert_array_equal(gg.evaluate(with_rule), [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(gg.evaluate(without), [0.0, 0.0, 0.0])


def test_nothing_looks_like_a_mistake():
    with gg.Graph() as graph:
        x = gg.placeholder((3,))
        gg.gradients(gg.sum(quantise(x)), x)
    assert gg.lint(graph) == []
'''

TRAIN = '''"""A regression whose weights are quantised: python train.py"""

import numpy as np
from rules import quantise

import graphgrad as gg

rng = np.random.default_rng(0)
inputs = rng.normal(size=(256, 3))
targets = inputs @ [0.5, -0.75, 0.25]

with gg.Graph("{name}") as graph:
    x, y = gg.placeholder(("N", 3), name="x"), gg.placeholder(("N",), name="y")
    w = gg.variable(np.zeros(3), name="w")
    loss = gg.mean((x @ quantise(w) - y) ** 2)
    train = gg.optimizers.Adam(0.02).minimize(loss)

with gg.Session(graph) as session:
    batches = gg.training.batches((inputs, targets), 32, seed=0, epochs=12)
    for some, wanted in gg.training.progress(batches, "{name}"):
        session.run(train, {{x: some, y: wanted}})
    print("loss", session.run(loss, {{x: inputs, y: targets}}), "weights", session.run(quantise(w)))
'''

FILES = {"rules.py": RULES, "test_rules.py": TEST, "train.py": TRAIN}


def arguments(parser: ArgumentParser) -> None:
    """Where."""
    parser.add_argument("folder", type=Path, help="the new folder; its name is the project's")


def new(options: Namespace) -> int:
    """Write it; FileError for a name that is none, or a folder that is there."""
    folder: Path = options.folder
    if not folder.name.isidentifier():
        raise FileError(f"{folder.name!r} is not a name for a project: letters, digits and _")
    if folder.exists():
        raise FileError(f"{folder} is there already; nothing was written")
    folder.mkdir(parents=True)
    for file, text in FILES.items():
        (folder / file).write_text(text.format(name=folder.name), encoding="utf-8")
    print(f"{folder}: {', '.join(FILES)}")
    print(f"cd {folder} && python train.py && python -m pytest")
    return 0
