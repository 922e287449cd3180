"""The demo: trains, wins, writes a page that needs nothing else, and says so in its exit code."""

import html
import io
import json
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from rich.console import Console

from graphgrad.__main__ import main
from graphgrad.demo import command, guidance, report
from graphgrad.demo.binary import OVERRIDE, OWN
from graphgrad.demo.progress import progress
from graphgrad.demo.training import Settings

from .inspect.pages import model_in

FILES = ["graph.dot", "graph.html", "index.html", "metrics.json", "step.html"]
SHORT = Settings(hidden=8, epochs=1, starts=2)


def experiments(settings, seed=0):
    return command.experiments(settings, seed, True, Console(file=io.StringIO()))


class Links(HTMLParser):
    """Every address that a page loads or leads to."""

    def __init__(self, page):
        super().__init__()
        self.found, self.tags = [], set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        keys = ("src", "srcset", "href", "xlink:href", "data", "action")
        self.found += [value for key, value in attrs if key in keys]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Folder, exit code and printed text of `demo --quick`."""
    folder = tmp_path_factory.mktemp("demo") / "deep" / "report"
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        code = main(["demo", "--quick", "--out", str(folder)])
        printed = sys.stdout.getvalue()
    finally:
        sys.stdout = out
    return SimpleNamespace(folder=folder, code=code, printed=printed)


@pytest.fixture(scope="module")
def short():
    return experiments(SHORT)


@pytest.mark.ci
def test_the_quick_demo_wins_and_writes_its_files(quick):
    assert quick.code == 0
    assert sorted(p.name for p in quick.folder.iterdir()) == FILES
    metrics = json.loads((quick.folder / "metrics.json").read_text())
    runs = metrics["runs"]
    assert runs["override"]["test"] - runs["true"]["test"] == pytest.approx(metrics["gain"])
    assert metrics["gain"] >= 0.10
    assert runs["override"]["test"] > 0.85
    assert 0.5 < runs["true"]["test"] < 0.75
    assert metrics["relu_accuracy"] > 0.9
    assert metrics["passed"]


@pytest.mark.ci
def test_both_runs_start_from_the_same_values(quick):
    runs = json.loads((quick.folder / "metrics.json").read_text())["runs"]
    curves = [runs[key]["curves"][0] for key in ("true", "override")]
    assert curves[0]["loss"][0] == curves[1]["loss"][0]
    assert curves[0]["loss"][-1] > curves[1]["loss"][-1]


@pytest.mark.ci
def test_the_true_gradient_stops_at_sign_and_agrees_above_it(quick):
    norms = json.loads((quick.folder / "metrics.json").read_text())["gradient_norms"]
    for name in ("W1", "b1", "W2", "b2"):
        assert norms[name]["true"] == 0 < norms[name]["override"]
    for name in ("W3", "b3"):
        assert norms[name]["true"] == norms[name]["override"] > 0


@pytest.mark.ci
def test_slopes_equal_central_differences_where_nothing_is_overridden(quick):
    slopes = json.loads((quick.folder / "metrics.json").read_text())["slopes"]
    *free, below = slopes
    for slope in free:
        assert slope["own"] == pytest.approx(slope["difference"], abs=1e-8)
        assert slope["override"] == pytest.approx(slope["difference"], abs=1e-8)
    assert below["difference"] == below["own"] == 0 != below["override"]


@pytest.mark.ci
def test_what_is_printed_shows_the_region_the_splice_and_the_checks(quick):
    assert 'override "ste" #3 (model.py:' in quick.printed
    assert 'spliced "ste" for #3 (model.py:' in quick.printed
    assert quick.printed.count("\nok   ") == 5
    assert 'override "ste"     100%  test accuracy' in quick.printed


@pytest.mark.ci
def test_the_page_loads_nothing_from_elsewhere(quick):
    page = (quick.folder / "index.html").read_text()
    links = Links(page)
    local = {p.name for p in quick.folder.iterdir()}
    assert [a for a in links.found if not a.startswith("data:image/") and a not in local] == []
    assert "script" not in links.tags
    assert "default-src 'none'" in page


@pytest.mark.ci
def test_the_graph_is_compared_with_and_without_the_override(quick):
    model = model_in((quick.folder / "graph.html").read_text())
    assert model["compare"]
    assert [frame["title"] for frame in model["frames"]] == ["before", "after"]
    assert [overlay["name"] for overlay in model["overlays"]] == ["length at the start"]
    assert len(model["calls"]) == 4
    assert (quick.folder / "graph.dot").read_text().startswith("digraph")
    page = (quick.folder / "index.html").read_text()
    assert '<iframe class="graph" src="graph.html"' in page
    assert "22 nodes come in, 4 go, 36 stay" in " ".join(page.split())


@pytest.mark.ci
def test_the_step_is_shown_pass_by_pass_with_its_times(quick):
    model = model_in((quick.folder / "step.html").read_text())
    titles = [frame["title"] for frame in model["frames"]]
    assert titles[0] == "as built"
    assert "simplify" in titles
    assert len(set(titles)) == len(titles)
    (overlay,) = model["overlays"]
    assert (overlay["name"], overlay["combine"]) == ("microseconds", "sum")
    metrics = json.loads((quick.folder / "metrics.json").read_text())
    assert len(overlay["rows"][0]) > metrics["nodes"]


@pytest.mark.ci
def test_the_page_says_where_the_true_gradient_ends(quick):
    page = html.unescape((quick.folder / "index.html").read_text())
    assert "gg.debug.blame(gradients, feeds)" in page
    assert "killed" in page


@pytest.mark.ci
def test_the_page_follows_the_scheme_of_the_reader(quick):
    page = (quick.folder / "index.html").read_text()
    assert "color-scheme: light dark" in page
    dark = page.count('"(prefers-color-scheme: dark)"')
    assert dark == 3
    assert page.count("and (prefers-color-scheme: dark)") == 1
    assert page.count("data:image/") == 8


@pytest.mark.ci
def test_the_page_says_which_rules_answer_and_what_they_cost(quick):
    page = html.unescape((quick.folder / "index.html").read_text())
    assert page.count("through region 'ste' #") == 3
    assert 'of these, built by "ste"' in page
    assert "a call (median of 300)" in page


@pytest.mark.ci
def test_names_are_escaped(short, tmp_path):
    norms = {**short.comparison.norms, "<script>alert(1)</script>": (0.0, 1.0)}
    report.write(tmp_path, short._replace(comparison=short.comparison._replace(norms=norms)))
    page = (tmp_path / "index.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "script" not in Links(page).tags


@pytest.mark.ci
def test_one_seed_one_result(short):
    again, other = experiments(SHORT), experiments(SHORT, seed=1)
    for gradient in (OWN, OVERRIDE):
        losses = [
            [curve.loss for curve in results.comparison.curves[gradient]]
            for results in (short, again, other)
        ]
        assert losses[0] == losses[1] != losses[2]


def test_maps_differ_only_where_the_rule_does(short):
    maps = short.guidance.maps
    assert list(maps) == list(guidance.RULES)
    assert all(a.shape == (10, 64) for a in maps.values())
    assert (maps["plain"] != maps["guided"]).any()
    assert (maps["guided"] != maps["deconvnet"]).any()
    assert short.guidance.apart == 0


@pytest.mark.ci
def test_the_demo_fails_if_the_override_does_not_win(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "QUICK", SHORT._replace(epochs=0))
    assert main(["demo", "--quick", "--out", str(tmp_path)]) == 1
    assert "does not hold that the override wins" in capsys.readouterr().err
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert (metrics["gain"], metrics["passed"]) == (0, False)


def test_a_folder_that_cannot_be_made_is_said_before_any_work(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--quick", "--out", str(tmp_path / "file")]) == 2
    assert "cannot make the folder" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["sklearn", "matplotlib", "jinja2", "rich"])
@pytest.mark.ci
def test_a_missing_package_is_one_line_that_names_the_extra(package, tmp_path):
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from graphgrad.__main__ import main\n"
        f"sys.exit(main(['demo', '--out', {str(tmp_path / 'out')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert repr(package) in done.stderr
    assert "pip install 'graphgrad[demo]'" in done.stderr
    assert not (tmp_path / "out").exists()


def test_neither_graphgrad_nor_help_loads_the_demo():
    program = (
        "import sys\n"
        "from graphgrad.__main__ import main\n"
        "try: main(['demo', '--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'graphgrad.demo', 'sklearn', 'matplotlib', 'rich'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--quick" in done.stdout


@pytest.mark.parametrize("arguments", [[], ["dance"], ["demo", "--seed", "-1"]])
def test_wrong_arguments_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage: python -m graphgrad" in capsys.readouterr().err


def test_a_terminal_gets_bars_and_anything_else_a_line_a_quarter():
    shown = {}
    for terminal in (True, False):
        file = io.StringIO()
        console = Console(file=file, force_terminal=terminal, width=100)
        with progress(console, {'override "x"': 8}) as ticker:
            for i in range(8):
                ticker.tick('override "x"', f"[note {i}]")
        shown[terminal] = file.getvalue()
    assert "\x1b[" in shown[True]
    assert "[note 7]" in shown[True]
    assert [line.split()[2] for line in shown[False].splitlines()] == ["25%", "50%", "75%", "100%"]
    assert "\x1b[" not in shown[False]
