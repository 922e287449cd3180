"""The folder with the report: a page, the graph, the numbers."""

from __future__ import annotations

import inspect
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import graphgrad as gg
from graphgrad.inspect.svg import RenderError

from . import binary, guidance, model, pictures
from .binary import OVERRIDE, OWN, Comparison
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
    comparison: Comparison
    guidance: Guidance
    seconds: float

    @property
    def checks(self) -> list[Check]:
        """Of both experiments."""
        return [*binary.checks(self.comparison), *guidance.checks(self.guidance)]


def write(folder: Path, results: Results) -> str:
    """Write the files. Returns why there is no picture of the graph, or ''."""
    dot = gg.to_dot(results.comparison.shown)
    svg, why = _svg(results.comparison.shown)
    files = ["graph.dot", *(["graph.svg"] if svg else []), "metrics.json"]
    _save(folder / "graph.dot", dot)
    _save(folder / "metrics.json", json.dumps(metrics(results), indent=2) + "\n")
    if svg:
        _save(folder / "graph.svg", svg)
    else:
        (folder / "graph.svg").unlink(missing_ok=True)  # of an earlier report
    _save(folder / "index.html", _page(results, dot, svg, why, files))
    return why


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


def _svg(shown: Any) -> tuple[str, str]:
    try:
        return gg.to_svg(shown), ""
    except RenderError as error:
        return "", str(error).partition("\n")[0]


def _page(results: Results, dot: str, svg: str, why: str, files: list[str]) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    comparison, guided = results.comparison, results.guidance
    return environment.get_template("report.html").render(
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
        guided_accuracy=guided.accuracy,
        code={
            "mark": inspect.getsource(model.binary_activation),
            "rule": inspect.getsource(model.ste),
            "saliency": inspect.getsource(model.saliency),
        },
        listing=listing(results),
        pictures={
            "accuracy": pictures.curves(comparison.curves, "test", "test accuracy"),
            "loss": pictures.curves(comparison.curves, "loss", "training loss"),
            "grid": pictures.grid(guided.pixels, guided.maps, upright=False),
            "upright": pictures.grid(guided.pixels, guided.maps, upright=True),
        },
        dot=dot,
        svg=Markup(svg[svg.index("<svg") :]) if svg else "",
        why=why,
        files=files,
    )


def _save(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
