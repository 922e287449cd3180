"""`python -m graphgrad demo`: both experiments, a report, and an exit code."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import binary, digits, guidance, report
from .binary import OVERRIDE, OWN
from .progress import progress
from .report import Results
from .training import Settings

FULL = Settings()
QUICK = Settings(epochs=10, starts=1)


def run(options: Namespace) -> int:
    """Exit code: 0, or 1 if a check failed, or 2 if the report cannot be written."""
    folder: Path = options.out
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"graphgrad demo: cannot make the folder {folder}: {error.strerror}", file=sys.stderr)
        return 2
    console = Console(highlight=False)
    results = experiments(QUICK if options.quick else FULL, options.seed, options.quick, console)
    _show(console, results)
    report.write(folder, results)
    console.print(f"report: {folder / 'index.html'}", markup=False, soft_wrap=True)
    failed = [check.claim for check in results.checks if not check.holds]
    for claim in failed:
        print(f"graphgrad demo: it does not hold that {claim}", file=sys.stderr)
    return 1 if failed else 0


def experiments(settings: Settings, seed: int, quick: bool, console: Console) -> Results:
    """Run both experiments on one split of the digits."""
    started = time.perf_counter()
    data = digits.load(seed)
    counts = f"{len(data.train_labels)} digits to train on, {len(data.test_labels)} to test on"
    console.print(f"graphgrad demo, seed {seed}: {counts}", markup=False)
    runs = settings.epochs * settings.starts
    tasks = {OWN: runs, OVERRIDE: runs, guidance.TITLE: settings.epochs}
    with progress(console, tasks) as ticker:
        compared = binary.compare(data, settings, seed, ticker)
        guided = guidance.guide(data, settings, seed, ticker)
    seconds = time.perf_counter() - started
    return Results(seed, quick, settings, data, compared, guided, seconds)


def _show(console: Console, results: Results) -> None:
    rows = Table("gradient", title="one forward graph, two backward graphs", title_justify="left")
    for heading in ("test accuracy", "training accuracy", "training loss", "seconds"):
        rows.add_column(heading, justify="right")
    for gradient in (OWN, OVERRIDE):
        row = report.summary(results, gradient)
        rows.add_row(
            gradient,
            f"{row['test']:.3f}",
            f"{row['train']:.3f}",
            f"{row['loss']:.3f}",
            f"{row['seconds']:.1f}",
        )
    console.print()
    console.print(rows)
    console.print("\none region and its splice, cut out of the graph", markup=False)
    console.print(report.listing(results), markup=False, soft_wrap=True)
    for check in results.checks:
        mark = "ok  " if check.holds else "FAIL"
        console.print(f"{mark} {check.claim}: {check.found}", markup=False, soft_wrap=True)
    console.print()
