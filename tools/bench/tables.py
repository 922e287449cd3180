"""From the JSON of a benchmark harness to markdown tables.

Results are {way: {workload: {variant: {peer: record}}}}. A record that failed has no times.
"""

import json
import os
import re
from collections import defaultdict
from pathlib import Path

BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
OURS = "graphgrad"
NAMES = {
    "graphgrad_numpy": "graphgrad on NumPy",
    "tf1": "TF1",
    "tf2xla": "TF-XLA",
    "jax": "JAX",
    "torch": "PyTorch",
    "pytensor": "PyTensor",
}


def load(folder):
    """The results that a folder holds as WAY-WORKLOAD.json."""
    found = defaultdict(dict)
    for path in sorted(Path(folder).glob("*-W*.json"), key=_place):
        way, _, _ = path.stem.partition("-")
        found[way].update(json.loads(path.read_text()))
    return dict(found)


def _place(path):
    way, _, workload = path.stem.partition("-W")
    return way, int(workload)


def cases(results):
    """(workload, variant, {peer: record}) of one way of measuring."""
    for workload, variants in results.items():
        for variant, records in variants.items():
            yield workload, variant, records


def disagreements(found):
    """Where a result of graphgrad is not that of the reference, or there is none."""
    return [
        f"{way} {workload}/{variant} of {peer}"
        for way, results in found.items()
        for workload, variant, records in cases(results)
        for peer, record in records.items()
        if peer.startswith(OURS) and not _right(record, unchecked=False)
    ]


def _right(record, unchecked=True):
    """A record whose results agree. unchecked: what to say of one that only built its graph."""
    return bool(record.get("setup", {}).get("ok")) and record.get("agree", {}).get("ok", unchecked)


def values(records, value):
    """{peer: value} of the peers that ran and agree, quickest first."""
    found = {p: value(r) for p, r in records.items() if _right(r)}
    return dict(sorted(((p, v) for p, v in found.items() if v), key=lambda pair: pair[1]))


def figures(found):
    """{title of a table: {case: {peer: value}}} of what there are results for."""
    made = {
        title: {
            f"{workload} {variant}": values(records, value)
            for workload, variant, records in cases(found.get(way, {}))
        }
        for title, (way, value) in TABLES.items()
    }
    made = {title: {name: v for name, v in rows.items() if v} for title, rows in made.items()}
    return {title: rows for title, rows in made.items() if rows}


def pages(made):
    """Every table of these figures."""
    return [table(title, rows) for title, rows in made.items()]


def table(title, rows):
    """A row for each case: graphgrad, the best peer, the ratio, every peer."""
    peers = list(dict.fromkeys(p for of in rows.values() for p in sorted(of) if p != OURS))
    head = ["", OURS, "best peer", "ratio", *(NAMES.get(p, p) for p in peers)]
    body = [_row(name, of, peers) for name, of in rows.items()]
    return f"**{title}**\n\n" + markdown(head, body)


def best_peer(of):
    """The quickest of the other packages; None: there is none."""
    return min((p for p in of if not p.startswith(OURS)), key=of.get, default=None)


def _row(name, found, peers):
    ours = found.get(OURS)
    best = best_peer(found)
    ratio = f"**{ours / found[best]:.2f}**" if ours and best else "-"
    cells = [_number(found.get(p)) for p in peers]
    return [name, _number(ours), NAMES.get(best, best or "-"), ratio, *cells]


def markdown(head, rows):
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value):
    """Three digits that count."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _ms(seconds):
    return None if seconds is None else seconds * 1e3


def _cold(record):
    return record["setup"]["cold_cpu_s"]


def _per_node(record):
    spent = record.get("us_node", {})
    return spent.get("build_plus_grad") or spent.get("build", 0) + spent.get("grad", 0)


def _peak(record):
    memory = record.get("mem", {})
    return memory.get("ok") and memory["peak_mb"] - record["setup"]["rss_base_mb"]


TABLES = {
    "One call: CPU milliseconds on one core": ("pinned", lambda r: _ms(r.get("cpu_s"))),
    "One call: milliseconds on all cores": ("wall", lambda r: _ms(r.get("median_s"))),
    "Build and differentiate: CPU microseconds a forward node": ("pinned", _per_node),
    "Peak memory of one step: MB beyond the imports": ("pinned", _peak),
    "Cold start: CPU seconds of a process up to its first result": ("cold", _cold),
}
"""Title -> the way of measuring, and the value of a record."""


def machine(peers, ours):
    """One sentence: the processor, and the versions."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    cores = len(os.sched_getaffinity(0))
    listed = [f"{name} {version}" for name, version in peers.items() if name != "python"]
    own = ", ".join(f"{n} {v}" for n, v in ours.items() if n != "python")
    return (
        f"{cpu[1] if cpu else 'A processor'}, {cores} cores; graphgrad on Python {ours['python']} "
        f"with {own}; peers on Python {peers['python']}: {', '.join(listed)}."
    )


def between_marks(page, text):
    """The page with the text between its marks. ValueError where it has not exactly one pair."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"the page must have one line {BEGIN} and, later, one line {END}")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}"
