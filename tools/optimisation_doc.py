"""docs/optimisation.md: the table of everything that the passes rewrite.

python tools/optimisation_doc.py            print it
python tools/optimisation_doc.py --write    write the document
"""

import argparse
from pathlib import Path

import graphgrad  # noqa: F401  (the ops have to be known)
from graphgrad.optimise.pipeline import OTHERS
from graphgrad.optimise.rules import (
    broadcasts,
    catalogue,
    contractions,
    joins,
    known,
    reshapes,
    slices,
    stable,
    sums,
    unslices,
)

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "optimisation.md"
HEAD = """# What the passes rewrite

`compile` optimises a program, which is past differentiation: no rewrite can disturb an override.
`compile(..., optimize=False)` runs every node as it was built; `f.explain()` says which rewrites
fired and how often; `compile(..., watch=lambda name, program: ...)` shows the program after every
pass, and `verify=True` checks its invariants there. This page is written by `python
tools/optimisation_doc.py --write`.

Every rewrite has one of three levels:

- **exact**: the same bits, where any NaN is as good as any other.
- **rounding**: other last bits. The result is as accurate as before or more; NaN, infinities and
  the signs of zeros are where they were, unless a sum overflows on the way in one order of its
  terms and not in the other.
- **fast**: whatever is equal for real numbers. Only with `compile(..., fast_math=True)`.

So without `fast_math` an infinity never becomes a number: `log(1 + exp(x))` overflows as written
(and becomes `log1p(exp(x))`, which is accurate for small `exp(x)`); write `gg.nn.softplus` for a
form that does not. Several rules add 0.0 where that keeps the sign of a zero that the program as
written would have had: it turns -0.0 into 0.0 and changes nothing else.

Nothing impure (`py_function`, variables) is merged, folded or moved. In a program that recomputes
to save memory (`gg.rules.checkpoint`) no matrix products are joined, since that keeps more alive.

## The passes

1. **drop unread**, and last **drop unread again**: loops make, keep, carry and read only what
   somebody needs.
2. **store runs**: what the gradient of a loop would compute again of each run is kept in rows by
   the loop itself, unless it is an element-wise step of arithmetic.
3. **optimise bodies**: the bodies of control flow, inner ones first, each by the passes that
   follow.
4. **leave loops**: what depends on constants of a loop, or is a product of rows that exist before
   it, comes before it, products that only rows or sums are made of come behind it, as one, and rows
   that exist before it do not pass through it. Not in a program that recomputes to save memory,
   nor for more than 64 MB of rows.
5. **stand alone**: tensors that are fed lose what would have computed them.
6. **simplify**: one walk, inputs first. At every node identities go, constants fold, the rules
   below apply until none does, and equal nodes merge; so does every node that a rule makes. A
   rule looks at a node and at what is before it, which is settled already, so the walk is made
   once.
7. **join products**: many small matrix products as few large ones, where the copies cost less
   than what they save (`optimise/passes/matrices.py` has the limits), and what this changes
   simplified again. The nodes keep their order otherwise.

All are linear in the number of nodes and iterative.

## What was decided against

- `x @ w1, x @ w2` as one product of joined matrices: the matrices would be copied in every run.
- `x @ w + h @ u` as one product: it took 0.9 to 1.5 of the time of two, for shapes of recurrent
  steps and with `w` and `u` joined before, for free.
- `one_hot(i) @ w` as a gather: it differs where `w` is infinite, and where a label is out of range.
- `sqrt(x * x + y * y)` as `hypot`: it turns an infinity into a number, and is slower.
- Transposes and reshapes moved across element-wise nodes: a view is free, and one between two
  element-wise nodes would keep them from being one loop.
"""
SECTIONS = {
    "By the passes themselves": None,
    "Numbers": catalogue.ALGEBRA,
    "Transposes, reshapes, broadcasts": (*reshapes.RESHAPING, *broadcasts.BROADCASTING),
    "Slices, joins, pieces put into zeros": (*slices.SLICES, *joins.JOINS, *unslices.UNSLICES),
    "Sums and other reductions": sums.SUMS,
    "Einsums": contractions.CONTRACTIONS,
    "Shapes that are known": known.KNOWN_SHAPES,
    "Forms that lose fewer digits": stable.STABLE,
    "With fast_math=True": catalogue.FASTER,
}


def rows(rules):
    """(name, algebra, level) of each."""
    if rules is None:
        return [(name, what, level) for name, (what, level) in OTHERS.items()]
    return [(r.name, r.__doc__.partition("\n")[0], r.level) for r in rules]


def document():
    """The whole page."""
    parts = [HEAD]
    for title, rules in SECTIONS.items():
        parts.append(f"\n## {title}\n\n| rewrite | what | level |\n|---|---|---|\n")
        for name, what, level in rows(rules):
            shown = what.replace("|", "\\|").replace("*", "\\*")
            parts.append(f"| `{name}` | {shown} | {level} |\n")
    return "".join(parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        DOCUMENT.write_text(document())
    else:
        print(document(), end="")
