"""The gallery of rules: a page for each, with a plot of what it does and its place in a graph.

A file says what it was drawn of, so that what has not changed is not drawn again.
"""

import hashlib
from io import StringIO
from typing import NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import graphgrad as gg

from . import mathml, sliders
from .shown import PURPOSES, ones, score, wave

HEAD = """
.. meta::
   :keywords: surrogate, gradient, clipping, clip, straight-through, ste, guided, backprop, fixed,
       point, lrp, quantization, reversal, stop, checkpoint, spiking

Each rule of the library has a page with a program, a plot and a graph.

- The plot has the function in grey, and what comes back for a gradient of 1 (or what the title
  says): dashed without the rule, orange with it. Where x is a few numbers there are bars.
- A slider, where a parameter is a number, redraws both curves for other values of it; the others
  keep theirs.
- In the graph a dashed box is what was marked, and a filled one the rule that stands for its
  gradient. A click shows it in full size.

:doc:`The table of all rules </rules>` has parameters and contracts,
:doc:`this tutorial </_made/tutorials/plot_3_shape_of_a_rule>` draws a rule of your own.
"""
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "graphgrad", "font.size": 8}
ARRIVES = {ones: "", wave: ", where cos 2x arrives", score: ", where y arrives"}


def write(folder):
    """Draw what has changed into a folder; {name of a page: text} of the overview and the rules."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = gg.rules.library()
    pages = {}
    text = ["Rule gallery", "=" * 12, HEAD]
    for (title, told), rows in PURPOSES.items():
        text += [title, "-" * len(title), "", told.replace("`", "``"), "", *toctree(rows)]
        text += [".. container:: rules", ""]
        for name, shown in rows.items():
            draw(folder, name, shown)
            text += card(entries[name])
            pages[f"gallery/{name}"] = "\n".join(page(entries[name], shown, (title, rows)))
    return {"gallery": "\n".join(text), **pages}


def toctree(rows):
    """The pages of rules, which the menu lists below the gallery."""
    return [".. toctree::", "    :hidden:", "", *(f"    gallery/{name}" for name in rows), ""]


def card(entry):
    """A rule in the overview: its plot, its name and what it does."""
    name = entry.name
    return [
        *("    .. container:: card", ""),
        *(f"        .. image:: gallery/{name}-plot.svg", f"            :alt: {name}"),
        *(f"            :target: gallery/{name}.html", ""),
        *(f"        :doc:`{name} <gallery/{name}>`: {plain(entry.summary)}", ""),
    ]


def page(entry, shown, purpose):
    """The page of a rule."""
    name = entry.name
    title, rows = purpose
    others = ", ".join(f":doc:`{other} <{other}>`" for other in rows if other != name)
    return [
        *(".. meta::", f"   :keywords: gradient, rule, {name.replace('_', ' ')}", ""),
        *(f".. _rule-{name}:", "", name, "=" * len(name), ""),
        *(f"{plain(entry.summary)} *{plain(entry.source)}.*", ""),
        *(*written(entry.formula), ""),
        *(".. code-block:: python", "", *(f"    {line}" for line in shown.whole.split("\n")), ""),
        *(".. container:: rule", ""),
        *image(f"{name}-plot.svg", f"What {name} does to a gradient"),
        *image(f"{name}-graph.svg", f"Where {name} stands in a graph"),
        *(f"        :target: ../../_images/{name}-graph.svg", ""),
        *sliders.written(name, shown, both_curves),
        *(f"Parameters and errors: :py:func:`graphgrad.rules.{name}`.", ""),
        *([f"{title}: {others}.", ""] if others else []),
    ]


def written(formula):
    """A formula as MathML, or as code where it has no such form."""
    text = formula.removeprefix("dx = dy * slope, slope = ")
    made = mathml.formula(text)
    if made is None:
        return [f"``{formula.replace('`', '')}``"]
    slope = "dx is dy times" if text != formula else ""
    return [*([slope, ""] if slope else []), ".. raw:: html", "", f"    {made}"]


def image(file, alt):
    """A picture in the container."""
    return ["", f"    .. image:: {file}", f"        :alt: {alt}"]


def plain(text):
    """Prose of a docstring, whose backticks mark code."""
    return text.replace("*", r"\*").replace("|", r"\|").replace("`", "``")


def draw(folder, name, shown):
    """The two files of a rule."""
    with gg.Graph():
        made = built(name, shown)
        found = values(made, shown)
        picture = [made.y, made.dx if made.dy is None else gg.gradients(made.y, made.x)]
        keep(folder / f"{name}-graph.svg", gg.to_dot(picture), lambda: gg.to_svg(picture))
    key = f"{name}{shown}{[array.tolist() for array in found]}"
    keep(folder / f"{name}-plot.svg", key, lambda: plot(name, shown, *found))


class Built(NamedTuple):
    """What a program made: y of x, its gradients with the rule and without for the dy that arrives.

    Without a dy the rule was asked for an answer, and dx is that.
    """

    x: gg.Tensor
    dy: gg.Tensor | None
    y: gg.Tensor
    dx: gg.Tensor
    default: gg.Tensor


def built(name, shown):
    """What a program makes, in the current graph."""
    names = {"gg": gg, "np": np}
    exec(compile(shown.whole, f"{name}.py", "exec"), names)
    x, y, dx = names["x"], names["y"], names.get("dx")
    dy = gg.placeholder(y.shape, y.dtype, name="dy") if dx is None else None
    default = gg.gradients(y, x, dy, overrides="none", unconnected="zero")
    if dx is None:
        dx = gg.gradients(y, x, dy, unconnected="zero")
    return Built(x, dy, y, dx, default)


def values(made, shown):
    """The arrays of y, of its gradient with the rule, and without."""
    y = gg.compile(made.x, made.y, backend="numpy")(shown.x)
    inputs, arrays = [made.x], [shown.x]
    if made.dy is not None:
        inputs, arrays = [made.x, made.dy], [shown.x, shown.dy(shown.x, y)]
    return [y, *gg.compile(inputs, [made.dx, made.default], backend="numpy")(*arrays)]


def both_curves(shown):
    """The arrays of y and of its gradient with the rule."""
    with gg.Graph():
        return values(built("slider", shown), shown)[:2]


def keep(path, made_of, draw):
    """Write what is drawn, unless the file is of the same."""
    mark = f"<!-- of {hashlib.sha256(made_of.encode()).hexdigest()[:16]} -->"
    if not path.is_file() or mark not in path.read_text(encoding="utf-8"):
        path.write_text(f"{draw().rstrip()}\n{mark}\n", encoding="utf-8")


def plot(name, shown, y, dx, default):
    """A curve or bars, as SVG."""
    with rc_context(SETTINGS):
        figure = Figure((4, 2.8), layout="constrained")
        axis = figure.subplots()
        axis.axhline(0, color="0.85", linewidth=0.8)
        if shown.x.size > sliders.FEW:
            curves(axis, shown.x.ravel(), y.ravel(), dx.ravel(), default.ravel())
        else:
            names = shown.parts or [f"{x:g}" for x in shown.x.ravel()]
            bars(axis, names, dx.ravel(), default.ravel())
        axis.set_title(f"{name}{ARRIVES[shown.dy]}")
        axis.set_xlabel("" if shown.parts else "x")
        axis.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def curves(axis, x, y, dx, default):
    """y and its gradients over x."""
    axis.plot(x, y, color="0.7", label="y")
    axis.plot(x, dx, color="C1", label="dx with the rule")
    axis.plot(x, default, "--", color="C0", label="dx without")


def bars(axis, names, dx, default):
    """The elements of the gradients beside each other, with their numbers."""
    for shift, values, colour, label in (
        (-0.2, default, "C0", "dx without"),
        (0.2, dx, "C1", "dx with the rule"),
    ):
        heights = np.nan_to_num(values, posinf=0.0, neginf=0.0)
        drawn = axis.bar(np.arange(len(values)) + shift, heights, 0.38, color=colour, label=label)
        axis.bar_label(drawn, [f"{value:.2g}" for value in values], fontsize=6)
    axis.set_xticks(range(len(names)), names)
    axis.margins(y=0.15)
