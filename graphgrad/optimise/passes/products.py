"""Many small matrix products as few large ones: the pass."""

from __future__ import annotations

from collections import Counter

from ...ir.node import Node
from ...ir.program import Program
from ..rewrite import Plan, replace
from ..rule import Step
from .matrices import worth_a_look
from .shared_products import products_to_batch, ready_together
from .summed_products import sums_to_join


def join_products(
    program: Program, fired: Counter[str] | None = None, steps: tuple[Step, ...] = ()
) -> Program:
    """Sums of products as one product, and products that share an operand as rows of one.

    steps: what settles the result. fired: counts the products made of many.
    """
    log: Counter[str] = Counter() if fired is None else fired
    if not worth_a_look(program):
        return program
    sums = sums_to_join(program)
    plans: dict[Node, Plan] = {n: plan.made for n, plan in sums.items()}
    taken = {t.node for plan in sums.values() for group in plan.groups for t in group}
    batches = products_to_batch(program, taken)
    plans.update((n, b.plan(n)) for b in batches for n in b.members)
    if not plans:
        return program
    log["summed_products"] += sum(len(plan.groups) for plan in sums.values())
    log["shared_products"] += len(batches)
    return replace(ready_together(program, batches) if batches else program, plans, *steps)
