"""Sliders on the pages of rules: the curve of a rule for other values of its parameters.

What is shown is computed when the site is built. A page holds, as JSON, some curves for each
numeric parameter of its row, and docs/_static/sliders.js draws the one that is asked for.
"""

import ast
import json
from dataclasses import replace

import numpy as np

import graphgrad as gg
from graphgrad.rules.zoo.row import domain_of

FEW, POINTS = 10, 80
"""What has no more numbers is drawn as bars; how many points a curve has, at least."""
LADDER = range(-4, 5)
HIGH = 999
"""A curve's numbers are integers from 0 to this, between the ends that the page says."""


def written(name, shown, curves):
    """The container of a page, or nothing; curves gives y and its gradient of a shown program."""
    row = getattr(gg.rules.library()[name], "row", None)
    if row is None or shown.x.size <= FEW:
        return []
    shown = replace(shown, x=shown.x[:: max(1, shown.x.size // POINTS)])
    found = {}
    for parameter, hint in row.hints.items():
        ladder = steps(name, shown, parameter, domain_of(hint))
        drawn = {v: c for v in ladder if (c := tried(curves, varied(name, shown, parameter, v)))}
        if len(drawn) > 1:
            found[parameter] = given(name, shown, parameter), drawn
    return container(shown.x, found) if found else []


def call_in(tree, name):
    """The call of the rule in a program."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return next(n for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == name)


def given(name, shown, parameter):
    """The number that a parameter has in a program, or None."""
    call, own = call_in(ast.parse(shown.program), name), getattr(gg.rules, name).__signature__
    bound = own.bind(*call.args, **{k.arg: k.value for k in call.keywords})
    bound.apply_defaults()
    value = bound.arguments.get(parameter)
    if isinstance(value, ast.AST):
        try:
            value = ast.literal_eval(value)
        except ValueError:  # a tensor, or what names one
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def steps(name, shown, parameter, domain):
    """Values around the one of a program, which lie in a parameter's domain."""
    at = None if domain is None else given(name, shown, parameter)
    if at is None:
        return []
    if domain.whole:
        around = [at + k * max(1, abs(at) // 8) for k in LADDER]
    elif at > 0 and domain.low >= 0:
        around = [at * 2.0 ** (k / 2) for k in LADDER]
    else:
        around = [at + k * max(1.0, abs(at)) / 4 for k in LADDER]
    return [v for v in around if domain.holds(v)]


def varied(name, shown, parameter, value):
    """The program with another value of a parameter."""
    tree = ast.parse(shown.program)
    call = call_in(tree, name)
    own = list(getattr(gg.rules, name).__signature__.parameters)
    place = own.index(parameter)
    if place < len(call.args):
        call.args[place] = ast.Constant(value)
    else:
        call.keywords = [k for k in call.keywords if k.arg != parameter]
        call.keywords.append(ast.keyword(parameter, ast.Constant(value)))
    return replace(shown, program=ast.unparse(tree))


def tried(curves, shown):
    """Two lists of numbers, or None where the row refuses the value."""
    try:
        with np.errstate(all="ignore"):
            return [np.asarray(c, float).ravel() for c in curves(shown)]
    except ValueError:
        return None


def container(x, found):
    """The lines of a page."""
    pairs = [pair for _, drawn in found.values() for pair in drawn.values()]
    low, high = ends(np.concatenate([curve for pair in pairs for curve in pair]))
    told = {
        "x": [float(x.min()), float(x.max())],
        "y": [float(f"{low:.3g}"), float(f"{high:.3g}")],
        "parameters": {
            name: {
                "at": f"{at:.3g}",
                "values": [f"{v:.3g}" for v in drawn],
                "y": once([scaled(y, low, high) for y, _ in drawn.values()]),
                "dx": [scaled(dx, low, high) for _, dx in drawn.values()],
            }
            for name, (at, drawn) in found.items()
        },
    }
    data = json.dumps(told, separators=(",", ":"))
    script = f'<script type="application/json">{data}</script>'
    return [".. raw:: html", "", f'    <div class="sliders">{script}</div>', ""]


def ends(every):
    """Of most of the numbers, the least and the largest."""
    finite = every[np.isfinite(every)]
    low, high = np.percentile(finite, [0.5, 99.5])
    return (low, high) if high > low else (low - 1.0, high + 1.0)


def scaled(curve, low, high):
    """Integers, and None for what is not finite or lies outside."""
    places = (curve - low) / (high - low)
    inside = np.isfinite(places) & (np.abs(places - 0.5) < 1.0)
    return [round(HIGH * p) if i else None for p, i in zip(places, inside, strict=True)]


def once(curves):
    """The curves, or one of them where all are the same."""
    return curves[:1] if all(c == curves[0] for c in curves) else curves
