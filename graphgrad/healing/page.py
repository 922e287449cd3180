"""A page about what `heal` rewrote, in the manner of Herbie's report.

[Panchekha, Sanchez-Stern, Wilcox, Tatlock 2015, "Automatically improving accuracy for floating
point expressions"]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..base.position import source_line
from ..base.words import visible
from ..compiled import evaluate
from ..inspect.page.formula_math import Element
from ..inspect.write.html import policy, styles, write_html
from ..ir.node import Node, Tensor
from ..ir.types import Array
from .accuracy import Axis, shown
from .algebra import algebra_math
from .chart import chart
from .heal import Healed, HealedSite, heal
from .many_digits import needed_package
from .measuring import Along, FormPair, curves_of, forms_of_identity, forms_of_site, moving, named
from .plan import LEFT_ALONE

__all__: list[str] = []

CHOICE = "where"
"""What keeps branches apart, by name: where what was written is NaN its own value is the truth."""
MARKS = 40
"""Feeds that are marked on an axis."""


def write_page(path: str | os.PathLike[str], healed: Healed, title: str = "") -> None:
    """Write the page."""
    if healed.sites:
        needed_package("write_html()")
    Path(path).write_text(_page(healed, title), encoding="utf-8", newline="\n")


def write_panes(path: str | os.PathLike[str], healed: Healed, title: str = "") -> None:
    """Write the graph as it was written and the healed one, side by side."""
    lost = {site.node: site.lost for site in healed.sites if site.lost is not None}
    write_html(
        path,
        {"as written": healed.written, "healed": healed.ys},
        title=title or None,
        panes=True,
        overlays={"digits lost": lost} if lost else None,
    )


def _page(healed: Healed, title: str) -> str:
    known: dict[Any, list[Along]] = {}
    sites = [SiteReport(site, healed, known) for site in _outermost(healed.sites)]
    alone = [site for site in healed.sites if site.now.startswith(LEFT_ALONE)]
    title = visible(title) or _title(len(sites))
    style = styles("palette", "healed")
    body = [
        f"<header><h1>{escape(title)}</h1>",
        "<p>How many decimal digits are right, of the value and of the gradient, over all inputs: ",
        '<b class="before">as it was written</b> and <b class="after">as it is now</b>.</p>',
        "</header><main>",
        *(_contents(sites) if len(sites) > 1 else ()),
        *(part for i, site in enumerate(sites) for part in site.html(i)),
        *_left_alone(alone),
        "</main>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en" data-state="ready">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{escape(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n{''.join(body)}\n</body>\n</html>\n"
    )


def _outermost(sites: Sequence[HealedSite]) -> list[HealedSite]:
    """Those that are not step of the formula of another."""
    done = [site for site in sites if not site.now.startswith(LEFT_ALONE)]
    steps = set[Node]()
    for site in done:
        steps |= _within(site) - {site.node}
    return [site for site in done if site.node not in steps]


def _within(site: HealedSite) -> set[Node]:
    ends = {x.node for x in site.inputs}
    found, stack = set[Node](), [site.node]
    while stack:
        node = stack.pop()
        if node not in found and node not in ends:
            found.add(node)
            stack += [t.node for t in node.inputs]
    return found


class SiteReport:
    """What the page says of one site.

    inputs  what the formula is a function of
    forms   what is measured; None where nothing can be
    own     whether that is the formula of the site, not the one of the table
    curves  along each input
    """

    def __init__(self, site: HealedSite, healed: Healed, known: dict[Any, list[Along]]) -> None:
        self.site = site
        self.inputs = moving(site.inputs, set(site.same.values()))
        self.known = _at_feeds(self.inputs, healed)
        self.forms: FormPair | None = forms_of_site(
            site.node.outputs[0],
            self.inputs,
            self.known,
            lambda y: heal(y).ys,
            site.name == CHOICE,
            site.same,
        )
        self.own = self.forms is not None
        dtype = site.node.outputs[0].dtype
        if self.forms is None:
            identity = named(site.name)
            self.forms = forms_of_identity(identity, dtype) if identity else None
        self.curves: list[Along] = []
        if self.forms is not None:
            key = self.forms.key
            self.curves = (
                known[key] if key in known else known.setdefault(key, curves_of(self.forms))
            )
        self.axis = Axis(dtype)

    @property
    def accuracy(self) -> tuple[float, float]:
        """The share of digits that are right over the axis, before and after, in percent."""
        made = []
        for which in (0, 1):
            shares = []
            for along in self.curves:
                curve = along.curve
                digits = (curve.before, curve.after)[which].min(0)
                places = np.round(self.axis.position(curve.xs), 2)
                known = ~np.isnan(digits)
                worst = [digits[known & (places == p)].min() for p in np.unique(places[known])]
                shares.append(float(np.mean(worst)) / self.axis.digits if worst else 0.0)
            made.append(100 * min(shares, default=0.0))
        return made[0], made[1]

    def html(self, number: int) -> Iterator[str]:
        """The article."""
        site = self.site
        yield f'<article id="site{number}"><h2>{formula_html(site.written)}'
        yield '<span class="arrow" aria-label="becomes">\u2192</span>'
        yield f"{formula_html(site.now)}</h2>"
        code = source_line(site.node.position)
        yield f'<p class="line"><span>{escape(visible(site.where))}</span>'
        yield f"<code>{escape(visible(code))}</code></p>" if code else "</p>"
        yield "<dl>"
        yield from _entry("What was wrong", escape(site.wrong) + _digits_lost(site.lost))
        for along in self.curves:
            if along.curve.intervals:
                yield from _entry(
                    f"Along {self.symbol(along)}", _list([str(i) for i in along.curve.intervals])
                )
        yield from _entry(
            "Known by", f"<code>{escape(site.name)}</code> {escape(visible(site.source))}"
        )
        if self.curves:
            yield from _entry("Equal here", escape(self.equality()))
            left = [f"{self.name(a.at)} {i}" for a in self.curves for i in a.curve.left]
            yield from _entry("Still lost", _list(left)) if left else ()
        yield "</dl>"
        for along in self.curves:
            yield from self._figure(along)
        if not self.curves:
            yield '<p class="note">Nothing is drawn: its inputs are not real numbers.</p>'
        elif not self.own:
            yield '<p class="note">Drawn is the formula of the table: the arrays here are too '
            yield "long to be run in many digits.</p>"
        yield "</article>"

    def name(self, at: int) -> str:
        """An input by its name."""
        if self.own:
            return visible(self.inputs[at].name.removesuffix(":0"))
        return "xyz"[at] if at < 3 else f"x{at}"

    def symbol(self, along: Along) -> str:
        """What changes along a curve, as HTML."""
        return f"<i>{escape(self.name(along.at))}</i>"

    def equality(self) -> str:
        """How near the stable form came to the truth."""
        digits = np.concatenate([a.curve.after.reshape(-1) for a in self.curves])
        digits = digits[~np.isnan(digits)]
        exact = all(along.exact for along in self.curves)
        by = "the formula in 800 digits" if exact else "its own value, for want of many digits"
        right = int((digits >= self.axis.digits - 2).sum())
        found = "all" if right == digits.size else f"{right}"
        return (
            f"of {digits.size} values and gradients at numbers of all exponents {found} are "
            f"within two digits of {by}"
        )

    def _figure(self, along: Along) -> Iterator[str]:
        assert self.forms is not None
        name = self.name(along.at)
        marks = self._marks(along.at) if self.own else []
        yield '<figure><div class="pair">'
        for row, what in enumerate(("value", "gradient")):
            label = f"Correct digits of the {what} along {name}"
            drawn = chart(along.curve, row, self.axis, label, marks)
            yield f'<div><h3>{what}</h3><div class="scroll">{drawn}</div></div>'
        yield f"</div><figcaption>{self._caption(along, bool(marks))}</figcaption></figure>"

    def _caption(self, along: Along, marked: bool) -> str:
        assert self.forms is not None
        shape = self.forms.held[along.at].shape
        words = [f"Correct digits along {self.symbol(along)}"]
        if shape:
            element = "t times a fixed array" if along.how == "t" else "t plus a fixed array"
            words.append(f", which is {element} of shape {shape}")
        held = [
            f"<i>{escape(self.name(i))}</i> = {shown(float(a))}" if a.ndim == 0
            else f"<i>{escape(self.name(i))}</i> held"
            for i, a in enumerate(self.forms.held) if i != along.at
        ]  # fmt: skip
        words.append(f", with {', '.join(held)}" if held else "")
        words.append(". Triangles mark the feeds." if marked else ".")
        return "".join(words)

    def _marks(self, at: int) -> list[float]:
        if self.inputs[at] not in self.known:
            return []
        values = np.unique(np.asarray(self.known[self.inputs[at]], float))
        values = values[np.isfinite(values)]
        return [float(v) for v in values[:: max(1, len(values) // MARKS)]]


def _at_feeds(inputs: Sequence[Tensor], healed: Healed) -> dict[Tensor, Array]:
    graphs = {t.node.graph for t in healed.at}
    wanted = [x for x in inputs if x.type.differentiable and x.node.graph in graphs]
    return dict(zip(wanted, evaluate(wanted, healed.at), strict=True))


def _contents(sites: Sequence[SiteReport]) -> Iterator[str]:
    """A row for each site, with how much of the axis is right before and after."""
    yield '<nav><table><thead><tr><th>line</th><th>formula</th><th class="share">right before</th>'
    yield '<th class="share">now</th></tr></thead><tbody>'
    for i, report in enumerate(sites):
        before, after = report.accuracy
        yield f'<tr><td>{escape(visible(report.site.where))}</td><td><a href="#site{i}">'
        yield f"{formula_html(report.site.written)}</a></td>"
        for share, kind in ((before, "before"), (after, "after")):
            yield f'<td class="share"><span class="bar {kind}"><svg viewBox="0 0 100 8" '
            yield f'preserveAspectRatio="none" aria-hidden="true"><path d="M0 0H{share:.1f}V8H0z"/>'
            yield f"</svg>{share:.0f}\u202f%</span></td>"
        yield "</tr>"
    yield "</tbody></table></nav>"


def _left_alone(sites: Sequence[HealedSite]) -> Iterator[str]:
    if not sites:
        return
    yield '<article class="alone"><h2>Left alone</h2><ul>'
    for site in sites:
        where, why = (escape(visible(text)) for text in (site.where, site.now))
        yield f"<li>{formula_html(site.written)} <span>{where}, {why}</span></li>"
    yield "</ul></article>"


def _entry(name: str, text: str) -> Iterator[str]:
    yield f"<dt>{name}</dt><dd>{text}</dd>"


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _digits_lost(lost: float | None) -> str:
    return "" if lost is None else f"; {lost:.0f} digits are lost at the feeds"


def _title(count: int) -> str:
    if not count:
        return "Nothing to heal"
    return f"{count} formula{'' if count == 1 else 's'} made stable"


def formula_html(text: str) -> str:
    """A formula as MathML, and the words after it."""
    element, words = algebra_math(text)
    if element is None:
        return f"<code>{escape(visible(text))}</code>"
    math = f"<math>{_markup(element)}</math>"
    return f"{math}<small>{escape(words)}</small>" if words else math


def _markup(element: Element) -> str:
    name, *children = element
    inside = [escape(c) if isinstance(c, str) else _markup(c) for c in children]
    return f"<{name}>{''.join(inside)}</{name}>"
