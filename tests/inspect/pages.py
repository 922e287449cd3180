"""Graphs to show, and what stands in a page."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np

import graphgrad as gg

HOSTILE = [
    "quote \" and ' and `",
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "<!-- <script> {{data}} ]]>",
    "line\nbreak\r\ttab",
    "bidi \u202e txt \u2066 \u200f",
    "null \x00 esc \x1b[31m",
    "u2028 \u2028 u2029 \u2029",
    "n" * 1000,
    "größe 形 \U0001f600",
    "javascript:alert(1)",
    "__proto__",
]


def ste(site, dy):
    return tuple(gg.sum_to(gg.where(gg.abs(x) <= 1.0, dy, 0.0), like=x) for x in site.inputs)


def marked():
    """Layers under scopes, sign under a region, exp under a stamp; the loss and its gradients."""
    with gg.Graph("marked"):
        x = gg.placeholder(("N", 4), "float32", name="x")
        w = gg.variable(np.ones(4, np.float32), name="w")
        with gg.name_scope("body"), gg.override_gradient(ste):
            s = gg.sign(x * w)
        with (
            gg.name_scope("head"),
            gg.gradient_override_map({"Exp": lambda op, dy: gg.maximum(dy, 0.0)}),
        ):
            e = gg.exp(s)
        loss = gg.sum(e * 2.0)
        return [loss, *gg.gradients([loss], [x, w])]


def plain(shown):
    """The same loss with gradients in which no override has a part."""
    loss = shown[0]
    xs = [loss.graph.tensor(name) for name in ("x", "w")]
    return [loss, *gg.gradients([loss], xs, overrides="none")]


def named(name):
    """A rule with a name."""

    def rule(site, *dys):
        return site.default(*dys)

    rule.__name__ = name
    return rule


def hostile():
    """Everything that can have a name has a hostile one."""
    with gg.Graph(HOSTILE[1]):
        y = x = gg.placeholder((HOSTILE[2], 3), name=HOSTILE[0])
        for name in HOSTILE:
            inner = gg.placeholder((), name=f"{name}.")
            with gg.name_scope(name.replace("/", "|")), gg.override_gradient(named(name)):
                y = gg.tanh(y * inner)
        loss = gg.sum(y)
        return [loss, *gg.gradients([loss], [x])]


def chain(length):
    """A chain of tanh under scopes of fifty, with its gradient."""
    with gg.Graph("chain"):
        x = h = gg.placeholder((4,), name="x")
        for i in range(length):
            with gg.name_scope(f"part{i // 50}"):
                h = gg.tanh(h)
        return [h, *gg.gradients([h], [x])]


def model_in(page):
    """The data of a page."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


def policy_of(page):
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    return dict(part.split(" ", 1) for part in policy.split("; "))


def hash_of(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
