"""Figures by matplotlib, as data addresses that a page can hold."""

from __future__ import annotations

import base64
import io
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from .binary import OVERRIDE, OWN
from .training import Curve

COLOURS = {OWN: "#b3541e", OVERRIDE: "#1f5fa8"}
INK, FAINT = "#333a45", "#d9dde3"
STYLE: Any = {
    "svg.hashsalt": "graphgrad",
    "font.size": 10,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#edf0f3",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def curves(found: dict[str, list[Curve]], what: str, label: str) -> str:
    """One figure: `what` (a field of Curve) against epochs, thin for each start, bold the mean."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.6, 3.1), layout="constrained")
        axes = figure.add_subplot()
        for name, runs in found.items():
            lines = np.array([getattr(run, what) for run in runs])
            for line in lines if len(lines) > 1 else ():
                axes.plot(line, color=COLOURS[name], alpha=0.25, linewidth=0.8)
            mean = lines.mean(axis=0)
            axes.plot(mean, color=COLOURS[name], linewidth=2.2)
            _label(axes, name, mean, above=what == "loss")
        axes.set_xlabel("epoch")
        axes.set_title(label, loc="left", fontsize=10.5, fontweight="bold")
        axes.tick_params(length=0)
        axes.margins(x=0.01)
        axes.set_ylim(bottom=0)
        if what != "loss":
            axes.set_ylim(0, 1)
            axes.yaxis.set_major_formatter("{x:.0%}")
        return _svg(figure)


def _label(axes: Any, name: str, line: Any, above: bool) -> None:
    """The name on its own line, instead of a legend."""
    last = len(line) - 1
    axes.annotate(
        name,
        (last, line[-1]),
        xytext=(-2, 7 if above else -7),
        textcoords="offset points",
        ha="right",
        va="bottom" if above else "top",
        color=COLOURS[name],
        fontweight="bold",
    )


def grid(pixels: Any, maps: dict[str, Any], upright: bool) -> str:
    """Digits and maps, a kind in each row; upright: a kind in each column, for narrow screens."""
    kinds = {"digit": pixels, **maps}
    with matplotlib.rc_context(STYLE):
        many, few = len(pixels), len(kinds)
        shape = (many, few) if upright else (few, many)
        size = 0.95 * shape[1] + 0.2, 0.95 * shape[0] + 0.3
        tight = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0, hspace=0)
        figure = Figure(figsize=size, layout=tight)
        cells = figure.subplots(*shape)
        for k, (kind, images) in enumerate(kinds.items()):
            for i, image in enumerate(images):
                axes = cells[i, k] if upright else cells[k, i]
                _image(axes, image.reshape(8, 8), kind == "digit")
                if i == 0:
                    _name(axes, kind, upright)
        return _png(figure)


def _image(axes: Any, image: Any, grey: bool) -> None:
    limit = float(np.abs(image).max()) or 1.0
    if grey:
        axes.imshow(image, cmap="Greys")
    else:
        axes.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit)
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set(visible=True, color=FAINT)


def _name(axes: Any, kind: str, upright: bool) -> None:
    if upright:
        axes.set_title(kind, fontsize=10)
    else:
        axes.set_ylabel(kind, fontsize=11)


def _svg(figure: Figure) -> str:
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return _address("image/svg+xml", out.getvalue())


def _png(figure: Figure) -> str:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=160)
    return _address("image/png", out.getvalue())


def _address(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
