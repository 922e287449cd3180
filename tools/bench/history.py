"""What each release took beside other packages: a JSON file for each, and a plot of all."""

import datetime
import json

import tables


def keep(folder, release, facts, figures):
    """Write the figures of a release."""
    folder.mkdir(parents=True, exist_ok=True)
    rounded = {
        title: {case: {p: float(f"{v:.3g}") for p, v in of.items()} for case, of in rows.items()}
        for title, rows in figures.items()
    }
    today = datetime.date.today().isoformat()
    kept = {"release": release, "date": today, "measured": facts, "figures": rounded}
    (folder / f"{release}.json").write_text(json.dumps(kept, indent=1) + "\n")


def releases(folder):
    """The releases of a folder, the oldest first."""
    kept = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return sorted(kept, key=lambda r: r["date"])


def ratios(release):
    """{title: {case: time over that of the quickest other package}}."""
    return {
        title: {
            case: of[tables.OURS] / of[best]
            for case, of in rows.items()
            if tables.OURS in of and (best := tables.best_peer(of))
        }
        for title, rows in release["figures"].items()
    }


def draw(folder):
    """Draw the ratios of all releases: a row for each case, a dot for each release."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "graphgrad"  # equal figures are equal pictures
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    drawn = [(release["release"], ratios(release)) for release in releases(folder)]
    rows = dict.fromkeys(
        (title, case) for _, of in drawn for title, cases in of.items() for case in ("", *cases)
    )
    places = {row: y for y, row in enumerate(rows)}
    figure, axes = pyplot.subplots(figsize=(8, 0.2 * len(rows) + 1), layout="constrained")
    axes.axvline(1, color="#888", linewidth=1)
    for i, (release, of) in enumerate(drawn):
        points = [(r, places[title, c]) for title, cases in of.items() for c, r in cases.items()]
        color = pyplot.get_cmap("viridis")(0.8 * (1 - i / max(1, len(drawn) - 1)))
        xs, ys = [r for r, _ in points], [y for _, y in points]
        axes.plot(xs, ys, "o", markersize=4, color=color, label=release)
    for (title, case), y in places.items():
        if not case:
            axes.text(
                0.01, y, title, transform=axes.get_yaxis_transform(), va="center", weight="bold"
            )
    axes.set_xscale("log")
    ticks = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_xlim(0.05, 12)
    axes.minorticks_off()
    axes.set_xlabel("over the quickest other package: left of 1, graphgrad takes less")
    cases = {y: case for (_, case), y in places.items() if case}
    axes.set_yticks(list(cases), cases.values(), fontsize=8)
    axes.set_ylim(len(rows), -1)
    axes.grid(axis="x", color="#ddd", linewidth=0.5)
    if drawn:
        figure.legend(loc="outside upper right", title="version", ncols=len(drawn))
    figure.savefig(folder / "ratios.svg", metadata={"Date": None})
    pyplot.close(figure)
