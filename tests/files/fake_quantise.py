"""What wrote fake_quantise.gg, once, in 0.2: `python -m tests.files.fake_quantise`.

There `fake_quantise` rounded (x - bottom) / step, which differs from ONNX at halves where the zero
of the grid is odd.
"""

from pathlib import Path

import numpy as np

import graphgrad as gg

HERE = Path(__file__).parent
POINTS = (np.arange(-12.0, 24.0) + 0.5) / 4


def program():
    """The grid -0.75, -0.5, ..., 3: of step 1/4, with its zero at 3."""
    with gg.Graph("0.2") as graph:
        x = gg.placeholder(POINTS.shape, name="x")
        low, high = gg.variable(-0.75, name="low"), gg.variable(3.0, name="high")
        y = gg.rules.fake_quantise(x, low, high, bits=4)
        gradients = gg.gradients(y, [x, low, high])
    return graph, x, [y, *gradients]


if __name__ == "__main__":
    graph, x, outputs = program()
    found = gg.compile(x, outputs)(POINTS)
    graph, x, outputs = program()
    gg.save(HERE / "fake_quantise.gg", graph, {"f": ([x], outputs)}, {"found": found})
