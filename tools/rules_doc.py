"""docs/rules.md: the table of the rule library and of the published results.

python tools/rules_doc.py            print it
python tools/rules_doc.py --write    write the document
"""

import argparse
import ast
import inspect
import re
from pathlib import Path

from graphgrad import rules
from graphgrad.rules.zoo import glossary

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "rules.md"
PAPERS = ROOT / "examples" / "papers"
HEAD = """# The rule library

`gg.rules` has named overrides as Python objects; none is registered under a global name. Most
functions return a rule, which you can use wherever a rule is accepted. The others build tensors
and mark them with the rule:

```python
import graphgrad as gg

with gg.Graph():
    x = gg.placeholder(("N", 2), name="x")
    w = gg.constant([[0.5, -0.2], [0.1, 0.3]])
    with gg.override_gradient(gg.rules.ste(window=1.0)):
        y = gg.sign(x)
    with gg.gradient_override_map({"Relu": gg.rules.guided()}):
        h = gg.nn.relu(y @ w)
    dx = gg.gradients(h, x, overrides={"Relu": gg.rules.deconvnet()})
    z = gg.rules.fixed_point(lambda z: gg.tanh(z @ w + x), x)
```

The [rule gallery](_made/gallery) has a plot and a graph for each rule. In Python,
`gg.rules.library()` returns these tables as a dict and `gg.rules.find("spike")` searches them.

In the tables, *contract* is the property that a rule declares and `tests/rules/` checks, and
*linear* says whether the rule is linear in its cotangents. `dy` is the incoming cotangent, and `d'`
is a transposed derivative. This page is written by `python tools/rules_doc.py --write`.

| you have | you want | look under |
|---|---|---|
| a step function: sign, round, a threshold | to pass gradients through it | straight-through |
| a spiking neuron | a nonzero slope around the threshold | surrogates |
| weights or activations of few bits | to learn the step sizes | quantisation, straight-through |
| the nearest code of a codebook | a gradient for the encoder | vector quantisation |
| an argmax, a sort, a comparison in a loss | a hard value with a soft gradient | soft operators |
| a discrete sample, a router | a gradient estimate (the noise is an input) | samples |
| a sparse dictionary with a threshold | a gradient for the threshold | dictionaries |
| gradients that are too large or not finite | to bound them | clipping |
| several losses of one tensor | one gradient that serves all of them | aggregation |
| a combinatorial solver | a gradient with respect to its costs | solvers |
| a sparse softmax, a projection, a transport plan | its true gradient | projections |
| a formula whose gradient is NaN at a boundary | a finite gradient there | stable |
| a score | the inputs it comes from | relevance, saliency |

Each row is a function whose keyword arguments, with their defaults, are the rule's parameters. If
packages differ from the paper or from each other, the default follows the paper and a parameter
selects the behaviour of a package; `gg.rules.library()["xlogy"].traps` describes the differences.
`tests/zoo` has 943 cases recorded from thirty packages: 930 agree to 1e-6, and the rest are listed
there with the package's result. With new inputs, ten packages agreed in 426 of 430 cases;
`tests/zoo/test_live.py` names the rest. Every rule survives every transform or is refused by name:
see [the survival matrix](survival.md).
"""
PUBLISHED = """
## Published results

Each program in `examples/papers/` reproduces a published result in a few seconds. It prints the
measured numbers and asserts a margin. The test suite runs all of them
(`pytest tests/rules/test_papers.py`).

| program | published result | measured and asserted |
|---|---|---|
"""


def signature(entry):
    """`ste(window=None)`, without annotations."""
    parameters = inspect.signature(entry.make).parameters.values()
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return f"{entry.name}{inspect.Signature(bare)}"


def code(text):
    """Text as code, which may have backticks in it."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def row(entry):
    """One line of a table."""
    cells = [
        f"`{signature(entry)}`",
        f"{entry.summary} {'Builds tensors.' if entry.builds else ''}".rstrip(),
        code(entry.formula),
        entry.contract,
        "yes" if entry.linear else "no",
        f"{entry.source}{f'. *Packages:* {entry.traps}' if getattr(entry, 'traps', '') else ''}",
    ]
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def tables():
    """One table a family."""
    families = {}
    for entry in rules.library().values():
        families.setdefault(entry.family, []).append(entry)
    lines = []
    for family in sorted(families):
        lines += ["", f"## {family.capitalize()}", ""]
        lines += ["| name | description | gradient | contract | linear | source |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += map(row, sorted(families[family], key=lambda e: e.name))
    return "\n".join(lines) + "\n"


def names():
    """What a name that is not here is here, or why there is no row."""
    lines = ["", "## Other names", "", "| name elsewhere | in graphgrad |", "|---|---|"]
    lines += [f"| {name} | {said} |" for name, said in glossary.ALSO.items()]
    lines += ["", "Not included:", ""]
    lines += [f"- {name}: {said}." for name, said in glossary.WITHOUT.items()]
    return "\n".join(lines) + "\n"


def papers():
    """The programs by what their docstrings say: title, source, result."""
    lines = []
    for path in sorted(PAPERS.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text()))
        published, measured = re.split(r"\n\nMeasured: ", text, maxsplit=1)
        cells = [f"`python examples/papers/{path.name}`", published, measured]
        lines.append("| " + " | ".join(" ".join(c.split()) for c in cells) + " |")
    return "\n".join(lines) + "\n"


def document():
    """The whole page."""
    return HEAD + tables() + names() + PUBLISHED + papers()


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        DOCUMENT.write_text(document())
    else:
        print(document())


if __name__ == "__main__":
    main()
