"""The folder with the report: a page, the graph, the numbers."""

from __future__ import annotations

import inspect
import io
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

import graphgrad as gg
from graphgrad.inspect.scene.profile import NO_RULE

from . import binary, guidance, model, pictures
from .binary import OVERRIDE, OWN, Outcome
from .checks import Check
from .digits import Digits
from .guidance import Guidance
from .training import Curve, Settings

TEMPLATES = Path(__file__).parent / "templates"


class Results(NamedTuple):
    """All that was found out, and from what."""

    seed: int
    quick: bool
    settings: Settings
    digits: Digits
    comparison: Outcome
    guidance: Guidance
    seconds: float

    @property
    def checks(self) -> list[Check]:
        """Of both experiments."""
        return [*binary.checks(self.comparison), *guidance.checks(self.guidance)]


FILES = ("graph.html", "step.html", "graph.dot", "metrics.json")
"""What stands beside the page."""


def write(folder: Path, results: Results) -> None:
    """Write the files."""
    shown = results.comparison.shown
    _save(folder / "graph.dot", gg.to_dot(shown))
    _save(folder / "metrics.json", json.dumps(metrics(results), indent=2) + "\n")
    _save(
        folder / "graph.html",
        gg.to_html(
            shown[OVERRIDE],
            diff=shown[OWN],
            overlays={"length at the start": results.comparison.lengths},
        ),
    )
    _save(folder / "step.html", _step(results))
    _save(folder / "index.html", _page(results))


def _step(results: Results) -> str:
    """The page of the compiled training step: a slider over its passes, and the time of nodes."""
    comparison = results.comparison
    shown = comparison.shown[OVERRIDE]
    built = gg.Program([], shown)
    times: dict[Any, float] = {}
    for program in (built, *(program for _, program in comparison.steps)):
        times |= gg.Overlay.of_profile(comparison.profile, program).values
    return gg.to_html(
        shown,
        title="training step",
        passes=comparison.steps,
        overlays={"microseconds": gg.Overlay(times, combine="sum")},
    )


def listing(results: Results) -> str:
    """One region and its splice, as gg.print_graph prints them."""
    out = io.StringIO()
    gg.print_graph(results.comparison.splice, file=out)
    return out.getvalue()


def summary(results: Results, gradient: str) -> dict[str, Any]:
    """The row of one gradient in the table of results: means over the starts."""
    curves = results.comparison.curves[gradient]
    tests = [curve.test[-1] for curve in curves]
    return {
        "name": gradient,
        "test": results.comparison.accuracy(gradient),
        "worst": min(tests),
        "best": max(tests),
        "train": float(np.mean([curve.train[-1] for curve in curves])),
        "loss": float(np.mean([curve.loss[-1] for curve in curves])),
        "seconds": sum(curve.seconds for curve in curves),
        "nodes": results.comparison.sizes[gradient],
    }


def metrics(results: Results) -> dict[str, Any]:
    """What goes into metrics.json."""
    comparison = results.comparison
    return {
        "version": gg.__version__,
        "seed": results.seed,
        "quick": results.quick,
        "settings": results.settings._asdict(),
        "seconds": results.seconds,
        "gain": comparison.gain,
        "runs": {
            key: {**summary(results, name), "curves": [_curve(c) for c in comparison.curves[name]]}
            for key, name in (("true", OWN), ("override", OVERRIDE))
        },
        "gradient_norms": {
            name: {"true": own, "override": override}
            for name, (own, override) in comparison.norms.items()
        },
        "slopes": [slope._asdict() for slope in comparison.slopes],
        "nodes": comparison.sizes["forward"],
        "relu_accuracy": results.guidance.accuracy,
        "checks": [check._asdict() for check in results.checks],
        "passed": all(check.holds for check in results.checks),
    }


def _curve(curve: Curve) -> dict[str, Any]:
    return {"loss": curve.loss, "train": curve.train, "test": curve.test}


def costs(results: Results) -> list[dict[str, Any]]:
    """Where the time of a training step goes, as rows: microseconds, and percent of all steps."""
    profile = results.comparison.profile
    whole = sum(step.seconds for step in profile.steps)
    parts = {share.name: share for share in profile.by_direction()}
    parts |= {
        f"of these, {share.name}": share for share in profile.by_rule() if share.name != NO_RULE
    }
    return [
        {
            "name": name,
            "nodes": share.nodes,
            "us": 1e6 * share.seconds,
            "percent": 100 * share.seconds / whole,
        }
        for name, share in parts.items()
    ]


def _page(results: Results) -> str:
    comparison = results.comparison
    return _template("report.html").render(
        version=gg.__version__,
        seed=results.seed,
        quick=results.quick,
        settings=results.settings,
        seconds=results.seconds,
        counts={"train": len(results.digits.train_labels), "test": len(results.digits.test_labels)},
        own={**summary(results, OWN), "style": "own-text"},
        override={**summary(results, OVERRIDE), "style": "over-text"},
        gain=comparison.gain,
        forward_nodes=comparison.sizes["forward"],
        norms=comparison.norms,
        slopes=comparison.slopes,
        checks=results.checks,
        guided_accuracy=results.guidance.accuracy,
        code={
            "mark": inspect.getsource(model.binary_activation),
            "rule": inspect.getsource(model.ste),
            "saliency": inspect.getsource(model.saliency),
        },
        listing=listing(results),
        pictures=_pictures(results),
        path=comparison.path,
        blame=comparison.blame,
        changes=gg.graph_diff(comparison.shown[OWN], comparison.shown[OVERRIDE]),
        costs=costs(results),
        profile=comparison.profile,
        files=FILES,
    )


def _template(name: str) -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["parts"] = _parts
    return environment.get_template(name)


def _pictures(results: Results) -> dict[str, dict[str, str]]:
    curves, guided = results.comparison.curves, results.guidance
    return {
        "accuracy": pictures.curves(curves, "test", "test accuracy"),
        "loss": pictures.curves(curves, "loss", "training loss"),
        "grid": pictures.grid(guided.pixels, guided.maps, upright=False),
        "upright": pictures.grid(guided.pixels, guided.maps, upright=True),
    }


def _parts(line: str) -> list[str]:
    """A line of a listing, and what stands apart at its end."""
    match = re.fullmatch(r"(\s*\S.*?\S)( {2,}\S.*)", line)
    return list(match.groups()) if match else [line]


def _save(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
