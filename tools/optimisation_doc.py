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
HEAD = """# Optimization passes and rewrites

`compile` optimizes a program after differentiation, so no rewrite can affect an override.
`compile(..., optimize=False)` runs every node as it was built. `f.explain()` lists the rewrites
that were applied and how often. `compile(..., watch=lambda name, program: ...)` shows the program
after every pass, and `verify=True` checks its invariants. This page is written by
`python tools/optimisation_doc.py --write`.

Every rewrite has one of three levels:

- **exact**: the same bits. (All NaNs are considered equal.)
- **rounding**: the last bits may change. The result is at least as accurate as before. NaN,
  infinities and the signs of zeros do not change, unless a sum overflows in one order of its terms
  and not in another.
- **fast**: any form that is equal for real numbers. Only with `compile(..., fast_math=True)`.

So without `fast_math`, an infinity never becomes a finite number. `log(1 + exp(x))` still overflows
(it becomes `log1p(exp(x))`, which is accurate for small `exp(x)`); use `gg.nn.softplus` for a
stable form. Several rules add 0.0 to keep the sign of a zero: this turns -0.0 into 0.0 and has no
other effect.

Impure nodes (`py_function`, variables) are never merged, folded or moved. If a program recomputes
values to save memory (`gg.rules.checkpoint`), matrix products are not joined, since that would keep
more values alive.

## The passes

1. **drop unread**, and at the end **drop unread again**: remove values of loops that are computed,
   stored, carried or read but not needed.
2. **store runs**: values that the gradient of a loop would recompute in each iteration are stored
   as rows by the forward loop, unless they are element-wise arithmetic.
3. **optimise bodies**: apply the following passes to the bodies of control flow, inner bodies
   first.
4. **leave loops**: move computations out of loops. Nodes that depend only on loop constants, and
   products of rows that exist before the loop, move in front of it. Products that are only stacked
   or summed move behind it, as one product. Rows that exist before the loop are not passed through
   it. This pass is skipped for programs that recompute values to save memory, and for more than
   64 MB of rows.
5. **stand alone**: remove the nodes that would have computed a fed tensor.
6. **simplify**: one walk in topological order. At every node it removes identities, folds
   constants, applies the rules below until none matches, and merges equal nodes. It does the same
   with the nodes that a rule builds. A rule looks only at a node and its predecessors, which are
   already simplified, so one walk is enough.
7. **join products**: replace many small matrix products by few large ones if the copies cost less
   than they save (`optimise/passes/matrices.py` has the limits), and simplify the changed nodes
   again. Other nodes keep their order.

All passes are iterative and take linear time in the number of nodes.

## Convolutions

With LLVM, these convolutions use Winograd's algorithm F(2 x 2, 3 x 3) (Lavin and Gray, "Fast
algorithms for convolutional neural networks", 2016), forward and for the gradients of the image and
of the filters: float32, windows of 3 x 3, strides and dilation 1, one group, at least 16 input and
16 output channels (32 for the gradient of the filters), and at least 64 tiles of 2 x 2 outputs in
the batch (8 if the filters are constants). It takes 16 products where the definition takes 36.

- The error of an output is proportional to the norm of its window times that of its filter. By the
  definition, it is proportional to the sum of the magnitudes of their products, which is smaller
  where large pixels meet small weights. For random numbers the error is 1.1 to 1.7 times that of
  the definition.
- An output whose window is zero is exactly 0, and no output depends on pixels outside its window.
  The gradient of the filters has neither property: the error of dw[k, l, c, o] is proportional to
  the norm of channel c of the whole image times that of channel o of dz, so it can be about 1e-7 of
  these where the definition gives 0, and a large pixel at the border reaches taps that never meet
  it.
- The transform halves filters: where these are below 1e-38 (subnormal), it loses bits that the
  definition keeps.
- float16, bfloat16 and windows of three axes consist of such convolutions and use it too.
- If an output is infinite or NaN, the outputs near it are computed by the definition: infinities
  and NaN are as without it, except where a sum overflows in one order of its terms and not in
  another. Where all outputs are, this takes up to 9 times as long.
- `compile(..., exact=True)` always uses the definition. The NumPy and JAX backends do not use the
  algorithm.

## Rejected rewrites

- `x @ w1, x @ w2` as one product with concatenated matrices: the matrices would be copied in every
  run.
- `x @ w + h @ u` as one product: it took 0.9 to 1.5 times as long as two products, for the shapes
  of recurrent networks and even without the time to concatenate `w` and `u`.
- `one_hot(i) @ w` as a gather: the results differ if `w` is infinite or a label is out of range.
- `sqrt(x * x + y * y)` as `hypot`: it would turn an infinity into a number, and is slower.
- Moving transposes and reshapes across element-wise nodes: a view costs nothing, and a view between
  two element-wise nodes would prevent their fusion.
"""
SECTIONS = {
    "By the passes themselves": None,
    "Numbers": catalogue.ALGEBRA,
    "Transposes, reshapes, broadcasts": (*reshapes.RESHAPING, *broadcasts.BROADCASTING),
    "Slices, concatenations, pieces padded with zeros": (
        *slices.SLICES,
        *joins.JOINS,
        *unslices.UNSLICES,
    ),
    "Sums and other reductions": sums.SUMS,
    "Einsums": contractions.CONTRACTIONS,
    "Known shapes": known.KNOWN_SHAPES,
    "More accurate forms": stable.STABLE,
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
        parts.append(f"\n## {title}\n\n| rewrite | description | level |\n|---|---|---|\n")
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
