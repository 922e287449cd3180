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

`gg.rules` offers named overrides as objects. Nothing is registered under a global name. A function
that returns a rule is used wherever a rule can be; one that builds tensors marks what it builds:

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

The [rule gallery](_made/gallery) has a plot and a graph of each.
`gg.rules.library()` lists what follows, `gg.rules.find("spike")` what has a word in it.
*Contract* is what the rule declares itself to be, which
`tests/rules/` checks; *linear* says whether it is linear in the gradients that arrive. `dy` is what
arrives, `d'` a transpose. This page is written by `python tools/rules_doc.py --write`.

| you have | and want | look under |
|---|---|---|
| a step: sign, round, a threshold | the gradient to pass | straight-through |
| a spike | a slope around the threshold | surrogates |
| weights or activations in few bits | steps that learn | quantisation, straight-through |
| the nearest code of a codebook | gradients for what is encoded | vector quantisation |
| an argmax, a sort, a comparison in a loss | a hard value and a soft gradient | soft operators |
| a discrete sample, a router | an estimate through the draw, which is an input | samples |
| a threshold of a sparse dictionary | a gradient for it | dictionaries |
| gradients that are too large or not finite | them kept in bounds | clipping |
| several losses of one tensor | one gradient that serves all | aggregation |
| a combinatorial solver | a gradient of its costs | solvers |
| a sparse softmax, a projection, a transport plan | its true gradient | projections |
| a formula that gives NaN at an edge | the gradient there | stable |
| a score | where it comes from | relevance, saliency |

A row of these families is a function of tensors whose keyword defaults are the rule's parameters.
Where packages differ from the paper or from each other, the paper is the default and a parameter is
the package's way; `gg.rules.library()["xlogy"].traps` says which. 943 cases recorded from thirty
packages are in `tests/zoo`: 930 agree at 1e-6, and the others are named there with what the package
does. Asked again with other inputs, ten packages gave what the rows give in 426 of 430 cases
(`tests/zoo/test_live.py` names the others). Each rule survives each transform, or is refused by
name: [the table](survival.md).
"""
PUBLISHED = """
## Published results

Each program in `examples/papers/` trains or measures in some seconds, prints its numbers and
asserts its margin; the test suite runs them (`pytest tests/rules/test_papers.py`).

| program | what was published | measured, asserted |
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
        lines += ["| name | what it does | gradient | contract | linear | source |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += map(row, sorted(families[family], key=lambda e: e.name))
    return "\n".join(lines) + "\n"


def names():
    """What a name that is not here is here, or why there is no row."""
    lines = ["", "## Other names", "", "| elsewhere | here |", "|---|---|"]
    lines += [f"| {name} | {said} |" for name, said in glossary.ALSO.items()]
    lines += ["", "Without a row:", ""]
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
