"""Figures by matplotlib, for light and for dark pages, as data addresses that a page can hold."""

from __future__ import annotations

import base64
import io
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from .binary import OVERRIDE, OWN
from .training import Curve


class Scheme(NamedTuple):
    """The colours of figures.

    ink, faint, grid  of text, of frames, of lines across
    runs              of each gradient's curves
    digits, maps      of pixels, from none to full; of gradients, from below zero to above
    """

    ink: str
    faint: str
    grid: str
    runs: dict[str, str]
    digits: Any
    maps: Any


_NIGHT = ("#8fc1f7", "#2f6fb5", "#1b212b", "#b04632", "#ffab94")
SCHEMES = {
    "light": Scheme(
        "#333a45",
        "#d9dde3",
        "#edf0f3",
        {OWN: "#b3541e", OVERRIDE: "#1f5fa8"},
        "Greys",
        "RdBu_r",
    ),
    "dark": Scheme(
        "#c6ced9",
        "#3a424e",
        "#262d37",
        {OWN: "#ee9a63", OVERRIDE: "#7db4f0"},
        "Greys_r",
        LinearSegmentedColormap.from_list("night", _NIGHT),
    ),
}


def _style(scheme: Scheme) -> Any:
    return {
        "svg.hashsalt": "graphgrad",
        "savefig.transparent": True,
        "font.size": 10,
        "axes.edgecolor": scheme.faint,
        "axes.labelcolor": scheme.ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": scheme.grid,
        "text.color": scheme.ink,
        "xtick.color": scheme.ink,
        "ytick.color": scheme.ink,
    }


def curves(series: dict[str, list[Curve]], what: str, label: str) -> dict[str, str]:
    """A figure by scheme: `what` (a field of Curve) against epochs, thin for each start, bold the
    mean."""
    return {name: _curves(series, what, label, scheme) for name, scheme in SCHEMES.items()}


def _curves(series: dict[str, list[Curve]], what: str, label: str, scheme: Scheme) -> str:
    with matplotlib.rc_context(_style(scheme)):
        figure = Figure(figsize=(4.6, 3.1), layout="constrained")
        axes = figure.add_subplot()
        for name, runs in series.items():
            lines = np.array([getattr(run, what) for run in runs])
            for line in lines if len(lines) > 1 else ():
                axes.plot(line, color=scheme.runs[name], alpha=0.25, linewidth=0.8)
            mean = lines.mean(axis=0)
            axes.plot(mean, color=scheme.runs[name], linewidth=2.2)
            _label(axes, name, mean, scheme.runs[name], above=what == "loss")
        axes.set_xlabel("epoch")
        axes.set_title(label, loc="left", fontsize=10.5, fontweight="bold")
        axes.tick_params(length=0)
        axes.margins(x=0.01)
        axes.set_ylim(bottom=0)
        if what != "loss":
            axes.set_ylim(0, 1)
            axes.yaxis.set_major_formatter("{x:.0%}")
        return _svg(figure)


def _label(axes: Any, name: str, line: Any, colour: str, above: bool) -> None:
    """The name on its own line, instead of a legend."""
    last = len(line) - 1
    axes.annotate(
        name,
        (last, line[-1]),
        xytext=(-2, 7 if above else -7),
        textcoords="offset points",
        ha="right",
        va="bottom" if above else "top",
        color=colour,
        fontweight="bold",
    )


def grid(pixels: Any, maps: dict[str, Any], upright: bool) -> dict[str, str]:
    """By scheme, digits and maps, a kind in each row; upright: in each column, for narrow
    screens."""
    kinds = {"digit": pixels, **maps}
    return {name: _grid(kinds, upright, scheme) for name, scheme in SCHEMES.items()}


def _grid(kinds: dict[str, Any], upright: bool, scheme: Scheme) -> str:
    with matplotlib.rc_context(_style(scheme)):
        many, few = len(kinds["digit"]), len(kinds)
        shape = (many, few) if upright else (few, many)
        size = 0.95 * shape[1] + 0.2, 0.95 * shape[0] + 0.3
        tight = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0, hspace=0)
        figure = Figure(figsize=size, layout=tight)
        cells = figure.subplots(*shape)
        for k, (kind, images) in enumerate(kinds.items()):
            for i, image in enumerate(images):
                axes = cells[i, k] if upright else cells[k, i]
                _image(axes, image.reshape(8, 8), kind == "digit", scheme)
                if i == 0:
                    _name(axes, kind, upright)
        return _png(figure)


def _image(axes: Any, image: Any, grey: bool, scheme: Scheme) -> None:
    limit = float(np.abs(image).max()) or 1.0
    if grey:
        axes.imshow(image, cmap=scheme.digits)
    else:
        axes.imshow(image, cmap=scheme.maps, vmin=-limit, vmax=limit)
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set(visible=True, color=scheme.faint)


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
