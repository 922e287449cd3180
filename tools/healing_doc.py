"""docs/healing.md: the table of everything that `gg.heal` rewrites.

python tools/healing_doc.py            print it
python tools/healing_doc.py --write    write the document
"""

import argparse
from pathlib import Path

import graphgrad  # noqa: F401  (the ops have to be known)
from graphgrad.healing.identity import KINDS
from graphgrad.healing.table import IDENTITIES

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "healing.md"
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
print(healed)  # the line, what was written, what it is now, why, and from where that is known
```

`gg.compile(x, y, heal=True)` and `gg.function(heal=True)` do the same where nothing was
differentiated yet, `python -m graphgrad heal FILE` says what would be rewritten, `gg.lint` calls it
a "naive form", and `gg.debug.blame` adds what is healable. This page is written by `python
tools/healing_doc.py --write`.

With feeds, `gg.heal(ys, at={x: array})` runs the graph in 800 digits beside float64 (it needs
mpmath), and rewrites only what loses two digits or more there. `gg.extend.identity` takes in an
identity of yours, once it is shown to hold by sampling in 1000 digits.

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
- Sums are not regrouped: (x + C) - C is what it is.

At 0 the slope of x log(x) is infinite; none flows there. A norm has the gradient 0 at 0, the
subgradient of least norm.

Each identity is tested against the naive form in 800 digits, values and gradients, in float64,
float32 and bfloat16: nearer to the truth somewhere, and worse nowhere by more than 4 last bits, or,
where an argument of exp is rounded, as many as that is large. The series around 0 end where float64
does.
"""
TITLES = {
    "peephole": "Another formula",
    "regimes": "Several formulas, each where it is accurate",
    "scaling": "The same of x / s, with the scale held fixed",
    "closed form": "A derivative of its own",
}


def document():
    """The whole page."""
    parts = [HEAD]
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
    else:
        print(document(), end="")
