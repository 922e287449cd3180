"""How far the work has come: bars in a terminal, a line now and then elsewhere."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

Tasks = dict[str, int]
"""Title -> how many ticks make it whole."""


class Ticker(Protocol):
    """What work reports to."""

    def tick(self, title: str, note: str) -> None:
        """One more step of the task with this title is done; note: how it stands."""


def progress(console: Console, tasks: Tasks) -> AbstractContextManager[Ticker]:
    """A ticker for a with-block."""
    return Bars(console, tasks) if console.is_terminal else ProgressLines(console, tasks)


class Bars:
    """A live bar for each task."""

    def __init__(self, console: Console, tasks: Tasks) -> None:
        self._shown = Progress(
            TextColumn("{task.description:<18}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            console=console,
        )
        self._ids: dict[str, TaskID] = {
            title: self._shown.add_task(title, total=total, note="")
            for title, total in tasks.items()
        }

    def tick(self, title: str, note: str) -> None:
        """Move a bar."""
        self._shown.update(self._ids[title], advance=1, note=note)

    def __enter__(self) -> Bars:
        self._shown.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._shown.stop()


class ProgressLines:
    """A line for every quarter of a task."""

    def __init__(self, console: Console, tasks: Tasks) -> None:
        self._console = console
        self._totals = tasks
        self._done = dict.fromkeys(tasks, 0)

    def tick(self, title: str, note: str) -> None:
        """Print a line if this was the last step of a quarter."""
        total = self._totals[title]
        self._done[title] += 1
        done = self._done[title]
        if 4 * done // total > 4 * (done - 1) // total:
            text = f"{title:<18} {100 * done // total:>3}%  {note}"
            self._console.print(text, markup=False, highlight=False)

    def __enter__(self) -> ProgressLines:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass
