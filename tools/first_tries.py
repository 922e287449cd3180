"""docs/first_tries.md: what people try first, and what graphgrad says.

python tools/first_tries.py            print it
python tools/first_tries.py --write    write the document

Every row is run: what stands in it is what was said. `tests/test_first_tries.py` holds the document
to it.
"""

import argparse
import math
import re
from pathlib import Path

import numpy as np

import graphgrad as gg
from graphgrad.base.first_tries import FIRST_TRIES

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "first_tries.md"
HEAD = """# Common mistakes

This page lists code that people write out of habit from other libraries, and the error that
graphgrad gives. `x` is a placeholder of two numbers, `loss` a scalar computed from it, and `w` a
variable. `python tools/first_tries.py --write` runs every line and writes this page. The hints for
unknown names are a table in `graphgrad/base/first_tries.py`, and those for keywords are in
`graphgrad/base/keywords.py`. The hint for a keyword is added to the error when it leaves a graph's
block (`with gg.Graph():`); outside a block you see Python's own error.
"""
MODEL = """
x = gg.placeholder((2,), name="x")
loss = gg.sum(x * x)
w = gg.variable([1.0, 2.0], name="w")
"""
MISUSES = {
    "A tensor as a value": """
        float(loss)
        int(loss)
        math.sin(loss)
        bool(loss)
        if loss > 0: pass
        f"{loss:.3f}"
        np.asarray(x)
        loss.item()
        x.tolist()
        [1, 2][gg.argmax(x)]
        x[gg.argmax(x) : gg.argmax(x) + 1]
        [0 for _ in range(gg.argmax(x))]
        gg.zeros(gg.argmax(x))
        gg.reshape(x, (gg.argmax(x), -1))
        max(x, 0)
        import scipy.special; scipy.special.erf(x)
    """,
    "Changing a tensor": """
        x[0] = 1.0
        array = np.zeros(2); array[0] = loss
        x.fill(0.0)
        np.add.at(x, 0, 1.0)
        x.requires_grad = True
        x.shape = (1, 2)
    """,
    "A rule": """
        with gg.override_gradient("ste"): y = gg.sign(x)
        with gg.override_gradient("Relo"): y = gg.sign(x)
        with gg.override_gradient("later/rule"): y = gg.sign(x)
        with gg.override_gradient(gg.rules.ste): y = gg.sign(x)
        with gg.override_gradient(Halved): y = gg.sign(x)
        with gg.override_gradient(3.0): y = gg.sign(x)
        gg.gradients(gg.override(lambda site: 1.0)(gg.exp)(x), x)
        gg.register_gradient(3.0)
        gg.register_gradient("halved")(Halved)
        gg.gradient_override_map({"relu": "ste"}).__enter__()
    """,
    "Running": """
        gg.Session().run(gg.compile(x, loss))
        gg.Session().run(loss)
        gg.Session().run("los")
        gg.evaluate(loss)
        gg.evaluate(loss, {"x": [1.0, 2.0, 3.0]})
        gg.compile(loss, x)
        gg.compile(x, loss)()
        gg.compile(x, loss)([1.0, 2.0, 3.0])
        gg.function(lambda a: a * w)(np.ones(2))
        with gg.Graph(): gg.exp(x) + gg.constant(1.0)
    """,
    "Arguments of other libraries": """
        gg.sum(x, dim=0)
        gg.mean(x, keepdim=True)
        x.sum(reduction_indices=0)
        gg.nn.softmax(x, dim=-1)
        gg.concat([x, x], dim=0)
        gg.stack(tensors=[x, x])
        gg.exp(input=x)
        gg.transpose(x, perm=(0,))
        gg.sum(x, axs=0)
        x.T()
        x.size()
        gg.placeholder("float32", [None, 3])
        gg.zeros(size=(2,))
        gg.variable(initial_value=1.0)
        gg.nn.dropout(x, p=0.5)
        gg.nn.conv(x, w, stride=2)
        gg.random.normal((2,), stddev=0.1)
        gg.optimizers.Adam(lr=1e-3)
        gg.gradients(loss, wrt=[w])
        gg.gradients(loss, w, grad_outputs=loss)
        gg.evaluate(loss, feed_dict={x: np.ones(2)})
        gg.Session(config=None)
        gg.compile(x, loss, backend="numpy", fullgraph=True)
        gg.sum(x, keepdims="no")
    """,
    "Gradients": """
        gg.gradients(loss, [1.0])
        gg.gradients(loss, "x")
        gg.optimizers.SGD(0.1).updates([x], [x])
        gg.optimizers.SGD(0.1).updates([w], gg.gradients(loss, [w]))
    """,
}
"""What is there, and is used as it cannot be."""


class Halved:
    """A rule as a class of objects that are called."""

    def __call__(self, site, dy):
        """Half of what arrives."""
        return dy / 2


def named():
    """The names that are not there, as they are written: in tests of all, in the page of each."""
    written = {"Tensor": "x.", "Optimizer": "gg.optimizers.SGD(0.1).", "Session": "gg.Session()."}
    written |= {"CompiledFunction": "gg.compile(x, loss).", "Graph": "gg.Graph()."}
    for owner, tries in FIRST_TRIES.items():
        start = written.get(owner) or owner.replace("graphgrad", "gg") + "."
        yield owner, [start + name for name in tries if name != "while"]


def said(code):
    """The error that a line of code raises, or None."""
    names = {"gg": gg, "np": np, "math": math, "Halved": Halved}
    try:
        with gg.Graph():
            exec(compile(MODEL, "model.py", "exec"), names)
            exec(compile(code, "train.py", "exec"), names)
    except Exception as error:
        return error
    return None


def row(code):
    """One line of a table; without the near misses that Python itself tells from 3.13 on."""
    error = said(code)
    first = re.sub(r"(keyword argument '\w+')\. Did you mean.*", r"\1", str(error))
    text = "\n".join([first, *getattr(error, "__notes__", [])])
    text = text.replace(repr(Halved), "Halved").replace("\n", "<br>").replace("|", "\\|")
    text = text.replace("__", r"\_\_")
    return f"| `{code}` | {type(error).__name__} | {text} |"


def document():
    """The whole page."""
    parts = [HEAD]
    for title, lines in MISUSES.items():
        parts += [table(title, [line.strip() for line in lines.strip().splitlines()])]
    for owner, lines in named():
        parts += [answers(owner, lines)]
    return "\n".join(parts)


def answers(owner, lines):
    """The names that an owner does not have, those with one answer in one row."""
    alike = {}
    for line in lines:
        alike.setdefault(FIRST_TRIES[owner][line.rpartition(".")[2]], []).append(f"`{line}`")
    head = f"## Names that {owner} does not have\n\n| name | hint |\n|---|---|\n"
    rows = [
        f"| {', '.join(names)} | {text.replace('|', chr(92) + '|')} |"
        for text, names in alike.items()
    ]
    return head + "\n".join(rows) + "\n"


def table(title, lines):
    """A heading and its rows."""
    head = f"## {title}\n\n| code | error | message |\n|---|---|---|\n"
    return head + "\n".join(map(row, lines)) + "\n"


def main():
    """Print or write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        DOCUMENT.write_text(document())
    else:
        print(document())


if __name__ == "__main__":
    main()
