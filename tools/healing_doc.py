"""docs/healing.md: the table of everything that `gg.heal` rewrites.

python tools/healing_doc.py            print it
python tools/healing_doc.py --write    write the document
"""

import argparse
from pathlib import Path

import graphgrad  # noqa: F401  (the ops have to be known)
from graphgrad.healing.accuracy import Axis
from graphgrad.healing.advice import ADVICE
from graphgrad.healing.chart import chart
from graphgrad.healing.identity import KINDS
from graphgrad.healing.measuring import curves_of, forms_of_identity, named, worst_first, wrong_in
from graphgrad.healing.table import IDENTITIES
from graphgrad.ir.types import as_dtype

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "healing.md"
PICTURE = DOCUMENT.parent / "images" / "healed.svg"
HEAD = """# Stable forms

`gg.heal` rewrites formulas that overflow, cancel or become NaN in a stable form, *before* they are
differentiated, so that you get the gradients of the stable form. For example, log(1 + exp(x))
overflows at x = 709.8, sqrt(sum(x * x)) overflows at 1e154, and sin(x) / x has no value at 0, and
their gradients are wrong or NaN there. The rewrites use identities that hold for real numbers.

```python
import graphgrad as gg

x = gg.placeholder(("N",), name="x")
loss = gg.sum(gg.log(1 + gg.exp(x)))
healed = gg.heal(loss)
dx = gg.gradients(healed.ys, x)
print(healed)  # for each rewrite: the line, the old and the new form, where the old one was wrong
healed.write_html("graph.html", panes=True)  # the original graph beside the healed one
```

"""
QUESTIONS = {
    "What would be rewritten?": "`print(gg.heal(ys))`, `python -m graphgrad heal model.py:loss`",
    "Which rewrites matter for these inputs?": "`gg.heal(ys, at={x: array})`, `heal --feed x=...`",
    "Where is each formula accurate, before and after?": (
        '`gg.heal(ys).write_html("healed.html")`, `heal --html healed.html`'
    ),
    "How do I compile the healed form?": (
        "`gg.compile(x, ys, heal=True)`, `@gg.function(heal=True)`; an error if `ys` contain "
        "gradients, since healing comes before differentiation"
    ),
    "Which formulas in this graph are naive?": (
        '`gg.lint(graph)` reports each "naive form" and what to write instead'
    ),
    "Which step produced the NaN, and can it be healed?": (
        "`gg.debug.blame(grads, feeds)`, `gg.debug.nan_guard(ys, feeds)`"
    ),
    "How do I add an identity?": (
        "`gg.extend.identity(...)`, which first checks the identity on samples in 1000 digits"
    ),
}
PAGE = """
The tutorial "Debugging a NaN" starts from a loss that is NaN and ends with a plot of the inputs for
which it was wrong. With feeds (`at=`), the graph runs once in float64 and once in 800 digits, which
needs mpmath. Then only formulas that lose at least two digits for these feeds are rewritten, and
products of eigenvectors only if two eigenvalues are that close. Bodies of loops and branches are
not rewritten in this case, and the table says so. This page is written by
`python tools/healing_doc.py --write`.

## The report

`healed.write_html("healed.html")` writes a report as one file that works offline, similar to
Herbie's [Panchekha et al. 2015, "Automatically improving accuracy for floating point
expressions"]. For each formula it shows the line, the identity and the interval in which the
formula was wrong. A plot shows the number of correct digits of the value and of the gradient,
before and after, for inputs of all magnitudes; the reference is computed in 800 digits.

![Correct digits of log(sum(exp(x))), before healing (dashed) and after](images/healed.svg)

The plot shows the gradient of `log(sum(exp(x)))` with respect to its elements. Before healing it is
NaN above 708 and below -745. The horizontal axis has negative and positive numbers, spaced by
exponent.

## Where naive formulas fail, by dtype

"""
LATER = """
A formula is found in any spelling: x * x or x**2, a - b or -b + a, with a factor in front or inside
a power. Two rewrites are not in the tables. A branch of `where` is not evaluated at arguments for
which it is not selected and has no derivative. Products with eigenvectors become functions of the
matrix, whose gradients are right even for repeated eigenvalues: `(v * f(w)) @ v.T` with
w, v = eigh(x) becomes `gg.linalg.matrix_function(x, f)`, and `(u * f(s)) @ vh` with
u, s, vh = svd(x) and an odd f becomes the block f([[0, x], [x.T, 0]])[:M, M:]. The bodies of loops
and branches are healed like the rest of the graph.

What healing does not change:

- Healing is opt-in: `compile` without `heal=True` gives the same bits as before.
- A formula that has its own rule is left alone, and the table of `healed` says so. You can still
  mark or choose a rule after healing. The rule applies to nodes that were copied unchanged. If it
  is for a formula that healing replaced, you get an error.
- Conditions and steps (`floor`, `sign`) are computed from the original formula. Formulas are not
  matched across integers, `stop_gradient` and random draws.
- Outside a function's domain the result stays NaN, and infinite arguments give the same results as
  before. At a point where the naive form is 0 / 0, 0 times infinity or infinity minus infinity, you
  get the limit.
- A healed formula is not healed again.
- Sums are not reordered: (x + C) - C stays as it is, and 1 - cos((x - y) + z) subtracts y first.

The slope of x log(x) at 0 is infinite, so no gradient flows there. The gradient of a norm at 0 is
0, the subgradient of least norm.

Each identity is tested against the naive form in 800 digits, for values and gradients, in float64,
float32 and bfloat16. It has to be closer to the exact result somewhere, and nowhere worse by more
than 4 units in the last place. For a rounded argument of exp, the bound is the argument's magnitude
instead. A series around 0 ends at the precision of float64.

## What cannot be healed

If the function itself has no finite derivative, `blame` and `nan_guard` suggest a change to the
model:

"""
SHOWN = ("log1pexp", "logsumexp", "norm", "tanh", "log_of_length", "sinc")
"""Rows for which the page says where they are wrong."""
DTYPES = ("float64", "float32", "bfloat16")
TITLES = {
    "peephole": "Rewritten as one formula",
    "regimes": "Rewritten piecewise",
    "scaling": "Rewritten with scaled inputs, x / s for a constant s",
    "closed form": "Given a derivative in closed form",
}


def thresholds():
    """Where some formulas are wrong, in three dtypes, by running both forms."""
    yield f"| formula | {' | '.join(DTYPES)} |\n|---|---|---|---|\n"
    for name in SHOWN:
        identity = named(name)
        cells = [identity.written]
        for dtype in DTYPES:
            cells.append(str(worst_first(wrong_in(identity, as_dtype(dtype)))[0]))
        shown = [c.replace("|", "\\|").replace("*", "\\*") for c in cells]
        yield f"| {' | '.join(shown)} |\n"


def advice():
    """What to change where nothing heals."""
    for text, types in by_text(ADVICE).items():
        shown = ", ".join(f"`{t}`" for t in types)
        yield f"- {shown}: {text}.\n"


def by_text(table):
    """{text: the keys that have it}."""
    made = {}
    for key, text in table.items():
        made.setdefault(text, []).append(key)
    return made


def picture():
    """The chart of the log-sum-exp, with the colours of a page of its own."""
    (along,) = curves_of(forms_of_identity(named("logsumexp")))
    drawn = chart(along.curve, 1, Axis("float64"), "Correct digits of log(sum(exp(x)))", ())
    style = (
        "text{font:11px sans-serif;fill:#5b6675}.number{text-anchor:middle}.digits{text-anchor:end}"
        ".grid{stroke:#dde2e9;fill:none}.tick{stroke:#5b6675}.wrong{fill:#b3261e;fill-opacity:.07}"
        ".gap{fill:#1f5fa8;fill-opacity:.1}.before{fill:none;stroke:#b3261e;stroke-width:1.6;"
        "stroke-dasharray:5 3}.after{fill:none;stroke:#1f5fa8;stroke-width:2.4}"
    )
    ground = '<rect width="560" height="190" fill="#ffffff"/>'
    opened = drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    head, _, rest = opened.partition(">")
    return f"{head}><style>{style}</style>{ground}{rest}\n"


def document():
    """The whole page."""
    questions = [f"| {asked} | {call} |\n" for asked, call in QUESTIONS.items()]
    parts = [HEAD, "| question | call |\n|---|---|\n", *questions, PAGE, *thresholds(), LATER]
    parts += advice()
    for kind in KINDS:
        parts.append(f"\n## {TITLES[kind]}\n\n| name | before | after | problem | source |\n")
        parts.append("|---|---|---|---|---|\n")
        for i in IDENTITIES:
            if i.kind == kind:
                cells = [f"`{i.name}`", i.written, i.now, i.wrong, i.source]
                shown = [c.replace("|", "\\|").replace("*", "\\*") for c in cells]
                parts.append(f"| {' | '.join(shown)} |\n")
    return "".join(parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        DOCUMENT.write_text(document())
        PICTURE.write_text(picture())
    else:
        print(document(), end="")
