"""What is registered in this process, beside the rules of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base.errors import FileError
from ..differentiate.levels import Step
from ..differentiate.travel.pickles import side_by_side
from ..differentiate.travel.stored import StoredRule
from ..differentiate.travel.storing import marks_of, stored_rules
from ..ir.flat import flatten_graph
from ..ir.graph import Graph
from ..ir.node import Node
from ..regions.index import bodies_of
from ..regions.rules import Rule, is_registered
from .columns import ColumnWriter
from .saving import unsettled
from .tables import Tables, text_of


def named_marks(graph: Graph) -> Iterator[tuple[Step, Rule]]:
    """The steps whose rule was put by a name that the file remembers."""
    for each in bodies_of(graph):
        for step, mark in marks_of(each):
            if isinstance(getattr(mark, "fn", None), StoredRule) and mark.fn.named:
                yield step, mark


def answered_by_registry(graph: Graph) -> dict[str, str]:
    """Put what is registered in place of the rules of these names; which they are."""
    registered = [(step, mark) for step, mark in named_marks(graph) if is_registered(mark.name)]
    for step, mark in registered:
        put(step, mark.name)
    return {mark.name: "registry" for _, mark in registered}


def check_registered(graph: Graph) -> None:
    """FileError unless, for every name, what is registered builds what the file has."""
    first: dict[str, tuple[Step, Rule]] = {}
    for step, mark in named_marks(graph):
        first.setdefault(mark.name, (step, mark))
    missing = [name for name in first if not is_registered(name)]
    if missing:
        raise FileError(f"{missing!r:.200} is not registered here, so it cannot be checked")
    for name, (step, mark) in first.items():
        with unsettled(graph):
            saved = _text(graph, step)
            put(step, name)
            try:
                here = _text(graph, step)
            finally:
                put(step, mark)
        if saved != here:
            raise FileError(
                f"the rule {name!r} that is registered here differs from the one in the file.\n"
                f"in the file: {saved[:2000]}\n"
                f"registered here: {here[:2000]}"
            )


def put(step: Step, mark: Any) -> None:
    """Mark a step."""
    if isinstance(step, Node):
        step.stamp = mark
    else:
        step.rule = mark


def _text(graph: Graph, step: Step) -> str:
    """What a file would say of the rule of one step, but for where it was written."""
    rules = stored_rules(graph)
    columns = ColumnWriter(Tables())
    assert step.graph is not None
    home = side_by_side(flatten_graph(step.graph, lambda rule, owner: rules.get(owner, rule)))[0]
    mark = columns.marks.written(rules[step], home)
    rows = _without_lines(columns.marks.rules)
    return text_of([mark, rows, columns.tables.ops, columns.tables.types])


def _without_lines(said: Any) -> Any:
    """What is said of rules, and of the graphs of their traces, but for where it was written."""
    if isinstance(said, dict):
        return {k: _without_lines(v) for k, v in said.items() if k != "line"}
    return [*map(_without_lines, said)] if isinstance(said, list | tuple) else said
