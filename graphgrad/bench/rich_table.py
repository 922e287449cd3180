"""A table in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable

from .measure import Table


def show(table: Table, cells: list[list[str]]) -> None:
    """Print it, ruled."""
    shown = RichTable(table.title)
    for column in table.columns:
        shown.add_column(column, justify="right")
    for row in cells:
        shown.add_row(*row)
    Console().print(shown)
