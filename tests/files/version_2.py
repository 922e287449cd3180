"""What wrote version_2.gg, once: `python -m tests.files.version_2`. It is kept to be read.

Version 2 has lengths in attributes of ops, and what is assumed of them.
"""

from pathlib import Path

import numpy as np

import graphgrad as gg

HERE = Path(__file__).parent
FEEDS = [np.array([[0.5, -1.0], [2.0, 0.25], [1.0, 1.5]]), np.arange(7.0)]


def program():
    """Lengths wherever a file can hold them."""
    with gg.Graph("version 2") as graph:
        x = gg.placeholder(("N", None), name="x")
        y = gg.placeholder(("2*N + 1",), name="y")
        rows, columns = x.shape
        gg.assume(rows >= 1, columns < 5)
        with gg.override_gradient(lambda site, dy: dy * site.inputs[0].shape[0]):
            z = gg.sin(x)
        padded = gg.concat([z, gg.zeros((rows, 2 * columns))], axis=1)
        last, _ = gg.scan(
            lambda carry, row: (carry + gg.sum(row) * gg.ones(rows), None),
            gg.arange(rows, dtype="float64"),
            padded,
        )
        loss = gg.sum(last * y[1 : rows + 1]) / rows + gg.sum(gg.reshape(y[1:], (rows, 2)) * 0.5)
        dx, dy = gg.gradients(loss, [x, y])
    return graph, [x, y], {"loss": loss, "dx": dx, "dy": dy}


if __name__ == "__main__":
    graph, inputs, outputs = program()
    found = gg.compile(inputs, outputs)(*FEEDS)
    graph, inputs, outputs = program()
    metadata = {"made": "to be read for ever", "found": found}
    gg.save(HERE / "version_2.gg", graph, {"step": (inputs, outputs)}, metadata)
