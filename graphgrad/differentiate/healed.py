"""What `heal` put in the place of what: rules that are chosen afterwards count exactly, or refuse.

What is built anew as it was keeps the choices for what it was built from (`Graph.again`). What
became another formula has no step that a rule for what was written could be for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection

from ..base.errors import RegionError
from ..ir.node import HealedForm, Node, Region, enclosing
from .choices import Choice, by_type
from .levels import Step, built_from


def form_of(step: Step) -> HealedForm | None:
    """What a node stands for since its graph was healed."""
    if step.graph is None or not step.graph.healed or not isinstance(step, Node):
        return None
    forms: list[HealedForm] = step.graph.healed
    at = bisect_right(forms, step.index, key=_first) - 1
    return forms[at] if at >= 0 and step.index < forms[at].end else None


def _first(form: HealedForm) -> int:
    return form.first


def check_not_healed_away(choice: Choice | None, asked: Collection[Step]) -> None:
    """RegionError where a rule is for what healing replaced in what is differentiated.

    asked: the steps that were asked for their gradient.
    """
    if choice is not None and choice.overrides == "none":
        return
    entries = [] if choice is None else choice.entries
    types = {name for entry in entries for name in entry.types}
    steps = {step for entry in entries for step in entry.steps}
    groups = [s.group for s in steps if isinstance(s, Region) and s.group is not None]
    grouped = {t.node for group in groups for t in group.tensors}
    for step in asked:
        form = form_of(step)
        if form is None:
            continue
        assert isinstance(step, Node)
        assert step.graph is not None
        for node in [step.graph.nodes[i] for i in form.of]:
            own = not form.name
            if _marks(node) > (_marks(step) if own else 0):
                raise _refused(f"{node.name} ({node.where}) was marked after", form)
            if node in grouped or (not own and (node in steps or by_type(node, types))):
                raise _refused(f"overrides= chooses for {node.name} ({node.where}) after", form)
        if form.name and built_from(step) is step and by_type(step, types):
            raise _refused(f"overrides= chooses for {step.name} ({step.where}), made by", form)


def _marks(node: Node) -> int:
    """How many marks a node has."""
    return len(enclosing(node.region)) + (node.stamp is not None)


def _refused(what: str, form: HealedForm) -> RegionError:
    now = f"{form.name} stands for it" if form.name else "it is rebuilt"
    return RegionError(
        f"{what} gg.heal, and {now} in what is differentiated: the rule would not apply as "
        "written.\n"
        "Mark before healing (graph.mark, gradient_override_map, override_gradient): heal leaves "
        "alone what is marked; or take the gradients of what was written."
    )
