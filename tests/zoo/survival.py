"""Which rules of the library survive which journeys: what is declared, and what is found.

H  the value and the gradients are there as recorded
E  an error says why not
-  the rule gives an answer, of which there is no gradient to take elsewhere
"""

from functools import cache

import numpy as np

import graphgrad as gg

from . import adapter
from .cases import deviation, differences, recorded
from .formulas import formulas
from .journeys import JOURNEYS, as_onnx, on_jax

EVERY = {**JOURNEYS, "ONNX": as_onnx, "JAX": on_jax}
TAKEN = ("cond", "scan", "copy", "import", "pickle", "file")
"""Journeys on which the gradient is taken at the end."""


class Noting:
    """gg.rules, of which it is noted what was used."""

    def __init__(self, used):
        self.used = used

    def __getattr__(self, name):
        self.used.append(name)
        return getattr(gg.rules, name)


@cache
def shown():
    """A case and its build for each rule of the library that has one."""
    found, first = {}, {}
    for name, case in [*recorded().items(), *formulas().items()]:
        finite = all(np.isfinite(a).all() for a in [*case["y"], *case["grads"].values()])
        if adapter.build_of(case) and finite and not deviation(name):
            first.setdefault(name.rpartition("/")[0], case)
    for case in first.values():
        build = adapter.build_of(case)
        used = [case["rule"]] if "build" in case else []
        adapter.R = Noting(used)
        try:
            with gg.Graph():
                adapter.graph_of(build, case)
        finally:
            adapter.R = gg.rules
        for rule in dict.fromkeys(used):
            found.setdefault(rule, (build, case))
    return found


def outcome(rule, journey):
    """What is found: H, or E where it is refused; else what differs."""
    build, case = shown()[rule]
    try:
        with np.errstate(all="ignore"):
            ys, grads = EVERY[journey](build, case)
    except gg.GraphGradError as error:
        return f"E {error}"
    return "H" if not (wrong := differences(ys, grads, case)) else f"differs in {wrong}"


ELSEWHERE = {"black_box", "checkpoint", "checkpoint_chain", "conservation", "lrp_product"}
ELSEWHERE |= {"relevance", "spsa"}
"""What is not a row, and is tried in tests/rules."""
RULES = sorted(gg.rules.library().keys() - ELSEWHERE)
ANSWERS = ("deep_shap", "deeplift", "epsilon_", "lrp_gamma")
PYTHON = ("fixed_point", "jacobian_free", "linear_solve", "phantom", "root")
"""What calls Python in its solver is not put into files, and its body not pickled by itself."""
NO_KERNEL = ("arctan2", "log1pexp", "safe_arcsin")
"""ONNX Runtime lacks a kernel in float64."""
ROUNDED = {("fake_quantise_tokens", "JAX")}
"""XLA divides where x * (1 / step) is written, and ties fall to the other side."""


def declared(rule, journey):
    """What has to be found; R: it is rounded otherwise at a tie."""
    if rule.startswith(ANSWERS) and journey in TAKEN:
        return "-"
    if rule in PYTHON and journey in ("NumPy", "pickle", "file", "ONNX"):
        return "E"
    if rule in NO_KERNEL and journey == "ONNX":
        return "E"
    return "R" if (rule, journey) in ROUNDED else "H"


def table():
    """The letters of each rule, three rules a line."""
    cells = [f"{rule:<29}{''.join(declared(rule, journey) for journey in EVERY)}" for rule in RULES]
    lines = ["  ".join(cells[i : i + 3]) for i in range(0, len(cells), 3)]
    return "\n".join(lines)


def page():
    """The section of docs/survival.md."""
    letters = "".join(declared(rule, journey) for rule in RULES for journey in EVERY)
    return PAGE.format(
        rules=len(RULES),
        journeys=len(EVERY),
        legend=", ".join(EVERY),
        table=table(),
        **{name: letters.count(letter) for name, letter in zip("HENR", "HE-R", strict=True)},
    )


PAGE = """
## Each rule of the library

{rules} rules of `gg.rules`, each compared with a recorded case or with the formula of its paper,
for {journeys} transforms and exports, in this order: {legend}.

- **H** ({H} cells): value and gradient agree with the recorded ones to 1e-6.
- **E** ({E} cells): an error names the reason: Python code in a solver, or a kernel that ONNX
  Runtime does not have in float64.
- **-** ({N} cells): not applicable, because the result is a relevance, which is not differentiated.
- **R** ({R} cells): XLA rounds a tie differently.

```
{table}
```
"""
