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

log(1 + exp(x)) is infinite from x = 709.8, sqrt(sum(x * x)) from 1e154, and sin(x) / x has no value
at 0; their gradients are NaN there. `gg.heal` rebuilds such formulas by identities of real
functions, in the same graph, *before* they are differentiated, so that the gradients are those of
the stable form:

```python
x = gg.placeholder(("N",), name="x")
loss = gg.sum(gg.log(1 + gg.exp(x)))
healed = gg.heal(loss)
dx = gg.gradients(healed.ys, x)
print(healed)  # the line, what was written, what it is now, and from where to where it was wrong
healed.write_html("graph.html", panes=True)  # the graph as it was written, and the healed one
```

"""
QUESTIONS = {
    "what would be rewritten": "`print(gg.heal(ys))`, `python -m graphgrad heal model.py:loss`",
    "what of that matters for these numbers": "`gg.heal(ys, at={x: array})`, `heal --feed x=...`",
    "where is each formula right, before and after": (
        '`gg.heal(ys).write_html("healed.html")`, `heal --html healed.html`'
    ),
    "heal, and compile": (
        "`gg.compile(x, ys, heal=True)`, `@gg.function(heal=True)`; an error where something was "
        "differentiated"
    ),
    "what looks naive in this graph": '`gg.lint(graph)`: "naive form", with what to write instead',
    "which step made the NaN, and does anything heal it": (
        "`gg.debug.blame(grads, feeds)`, `gg.debug.nan_guard(ys, feeds)`"
    ),
    "an identity of mine": (
        "`gg.extend.identity(...)`, once it is shown to hold by sampling in 1000 digits"
    ),
}
PAGE = """
The tutorial "Debugging a NaN" goes from a loss that is NaN to the picture of where it was wrong.
With feeds (`at=`) the graph runs in 800 digits beside float64, which needs mpmath, and only what
loses two digits or more there is rewritten; of products by eigenvectors, where values are that near
to each other. Bodies of loops and branches are left alone then, and the table says so. This page is
written by `python tools/healing_doc.py --write`.

## The page

`healed.write_html("healed.html")` writes one file that opens offline, in the manner of Herbie's
report [Panchekha et al. 2015, "Automatically improving accuracy for floating point expressions"]:
for each formula the line, the identity, from where to where it was wrong, and how many digits of
the value and of the gradient are right, before and after, over all exponents, by a run in 800
digits.

![Correct digits of log(sum(exp(x))) as it is written, dashed, and healed](images/healed.svg)

This is the gradient of `log(sum(exp(x)))` along its elements. As it is written it is NaN from 708
on, and below -745. Numbers of both signs are on one axis by their exponents.

## From where, in which dtype

"""
LATER = """
Any spelling of a formula is met: x * x or x**2, a - b or -b + a, with a factor in front or under a
power. Beside the table, the branches of `where` are kept from arguments at which they have no
derivative, where they are not chosen, and products by eigenvectors become functions of their
matrix, whose gradients are right where eigenvalues repeat: `(v * f(w)) @ v.T` with w, v = eigh(x)
is `gg.linalg.matrix_function(x, f)`, and `(u * f(s)) @ vh` with u, s, vh = svd(x) and an odd f is
the block f([[0, x], [x.T, 0]])[:M, M:]. Bodies of loops and branches are healed as all else.

What never changes:

- Nothing happens unasked: `compile` without `heal=True` keeps the bits.
- What has a rule of its own is left alone; the table of `healed` says so. A rule that is chosen or
  marked afterwards counts for what was built anew as it was, and is an error where it is for what
  healing replaced.
- Conditions and steps (`floor`, `sign`) ask about what was written; integers, `stop_gradient` and
  draws are barriers.
- NaN outside of a domain stays, and infinite arguments give what they gave. A limit is filled where
  the function is 0 / 0, 0 times infinity or infinity minus infinity.
- What is healed is not healed again.
- Sums are not regrouped: (x + C) - C is what it is, and 1 - cos((x - y) + z) subtracts y first.

At 0 the slope of x log(x) is infinite; none flows there. A norm has the gradient 0 at 0, the
subgradient of least norm.

Each identity is tested against the naive form in 800 digits, values and gradients, in float64,
float32 and bfloat16: nearer to the truth somewhere, and worse nowhere by more than 4 last bits, or,
where an argument of exp is rounded, as many as that is large. The series around 0 end where float64
does.

## What nothing heals

Where a function itself has no slope, `blame` and `nan_guard` say what to change in the model:

"""
SHOWN = ("log1pexp", "logsumexp", "norm", "tanh", "log_of_length", "sinc")
"""Rows of which the page says from where they are wrong."""
DTYPES = ("float64", "float32", "bfloat16")
TITLES = {
    "peephole": "Another formula",
    "regimes": "Several formulas, each where it is accurate",
    "scaling": "The same of x / s, with the scale held fixed",
    "closed form": "A derivative of its own",
}


def thresholds():
    """From where some formulas are wrong, in three dtypes, by running both forms."""
    yield f"| written | {' | '.join(DTYPES)} |\n|---|---|---|---|\n"
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
        parts.append(f"\n## {TITLES[kind]}\n\n| name | written | now | what is wrong | source |\n")
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
