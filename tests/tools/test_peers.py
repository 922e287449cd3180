"""graphgrad as a peer of a benchmark harness, the command that runs one, and its tables."""

import importlib.util
import json
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

BENCH = Path(__file__).parents[2] / "tools" / "bench"

HARNESS = """
import argparse, json, os, sys
parser = argparse.ArgumentParser()
for name in ("workloads", "peers", "rounds", "secs", "out", "variants"):
    parser.add_argument("--" + name)
parser.add_argument("--pin", action="store_true")
parser.add_argument("--cold", action="store_true")
options = parser.parse_args()
if os.environ.get("FAIL"):
    sys.exit("no such thing")
assert os.environ["BENCH_PYTHON_GRAPHGRAD"] == os.environ["BENCH_PYTHON_GRAPHGRAD_NUMPY"]
assert os.path.isfile(os.path.join(os.environ["BENCH_PEERS"], "graphgrad.py"))
seconds = 0.001 * (1 + options.pin + 2 * options.cold)
record = {
    "setup": {"ok": 1, "cold_cpu_s": 10 * seconds, "rss_base_mb": 10},
    "agree": {"ok": not os.environ.get("WRONG")},
    "median_s": seconds,
    "cpu_s": seconds,
}
peers = dict.fromkeys(options.peers.split(","), record)
json.dump({options.workloads: {"std": peers}}, open(options.out, "w"))
"""


def load(name):
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tables = load("tables")


@pytest.fixture(params=["graphgrad", "graphgrad_numpy"])
def peer(request, monkeypatch):
    """A peer, beside what the harness has of its base class."""
    ops = types.ModuleType("ops")
    ops.Ops = object
    monkeypatch.setitem(sys.modules, "ops", ops)
    return load(request.param).Peer()


def square(ops, tensors):
    return ops.sum(tensors["x"] @ tensors["w"] * tensors["x"])


def workload(fn, kind, **more):
    rng = np.random.default_rng(0)
    inputs = {"x": rng.normal(size=(3, 2)), "w": rng.normal(size=(2, 2))}
    return {"inputs": inputs, "state": ["w"], "wrt": ["w"], "kind": kind, "fn": fn, **more}


def truth(inputs):
    """The value and the gradient with respect to w of `square`."""
    x, w = inputs["x"], inputs["w"]
    return np.sum(x @ w * x), x.T @ x


def test_a_gradient_is_that_of_numpy(peer):
    given = workload(square, "grad")
    times = peer.build(given)
    assert set(times) == {"graph", "compile", "first"}
    loss, grads = peer.results()
    expected, dw = truth(given["inputs"])
    np.testing.assert_allclose(loss, expected)
    np.testing.assert_allclose(grads["w"], dw)


def test_a_training_step_moves_the_parameter_once_a_run(peer):
    given = workload(square, "train", lr=0.5)
    peer.build(given)
    expected, dw = truth(given["inputs"])
    loss, params = peer.results()
    np.testing.assert_allclose(loss, expected)
    np.testing.assert_allclose(params["w"], given["inputs"]["w"] - 0.5 * dw)
    peer.run()
    np.testing.assert_allclose(peer.results()[1]["w"], given["inputs"]["w"] - dw)


def test_a_call_has_no_gradients(peer):
    given = workload(lambda ops, t: t["x"] + 1.0, "call")
    peer.build(given)
    found, grads = peer.results()
    np.testing.assert_array_equal(found, given["inputs"]["x"] + 1.0)
    assert grads == {}


def test_a_hessian_vector_product(peer):
    vector = np.ones((2, 2))
    given = workload(lambda ops, t: ops.sum(t["w"] ** 3.0), "hvp", vec={"w": vector})
    peer.build(given)
    along, found = peer.results()
    w = given["inputs"]["w"]
    np.testing.assert_allclose(along, np.sum(3 * w**2))
    np.testing.assert_allclose(found["w"], 6 * w * vector)


def test_a_custom_gradient_is_an_override(peer):
    def fn(ops, t):
        act = ops.custom("Thrice", lambda ops, x: ops.exp(x), lambda ops, dy, x, y: 3.0 * dy * y)
        return ops.sum(act(t["w"]))

    given = workload(fn, "grad")
    peer.build(given)
    np.testing.assert_allclose(peer.results()[1]["w"], 3 * np.exp(given["inputs"]["w"]))
    assert [r.name for r in peer.graph.regions] == ["Thrice"]
    gg.unregister_gradient("Thrice")


def test_a_checkpoint_computes_its_inside_again(peer):
    def fn(ops, t):
        return ops.sum(ops.checkpoint(lambda ops, w: ops.tanh(ops.tanh(w)))(t["w"]))

    given = workload(fn, "grad")
    peer.build(given)
    inner = np.tanh(given["inputs"]["w"])
    expected = (1 - np.tanh(inner) ** 2) * (1 - inner**2)
    np.testing.assert_allclose(peer.results()[1]["w"], expected)
    assert sum(n.type == "Tanh" for n in peer.compiled.program.nodes) > 2


def test_building_alone_is_timed_and_checked(peer):
    given = workload(square, "build")
    times = peer.w1(given)
    assert set(times) == {"build", "grad", "compile", "first_run"}
    loss, grads = peer.out
    expected, dw = truth(given["inputs"])
    np.testing.assert_allclose(loss, expected)
    np.testing.assert_allclose(grads["w"], dw)


@pytest.mark.parametrize("name", ["gelu", "softmax", "sigmoid", "relu"])
def test_activations_are_the_package_s_own(peer, name):
    given = workload(lambda ops, t: ops.sum(getattr(ops, name)(t["w"])), "grad")
    peer.build(given)
    types = {n.type for n in peer.graph.nodes}
    assert types & {"Tanh", "Softmax", "Sigmoid", "Relu"}


def test_images(peer):
    rng = np.random.default_rng(0)
    inputs = {"x": rng.normal(size=(1, 4, 4, 1)), "w": rng.normal(size=(3, 3, 1, 2))}
    given = workload(lambda ops, t: ops.sum(ops.maxpool2(ops.conv2d(t["x"], t["w"]))), "grad")
    peer.build({**given, "inputs": inputs})
    assert peer.results()[1]["w"].shape == (3, 3, 1, 2)


def record(seconds, ok=True, **more):
    return {"setup": {"ok": 1, **more}, "agree": {"ok": ok}, "cpu_s": seconds}


def test_the_best_peer_is_the_quickest_that_agrees():
    results = {"pinned": {"W4": {"std": {"graphgrad": record(0.002), "jax": record(0.001, False)}}}}
    results["pinned"]["W4"]["std"]["tf1"] = record(0.004)
    (table,) = tables.pages(tables.figures(results))
    assert table.splitlines()[2:] == [
        "|  | graphgrad | best peer | ratio | TF1 |",
        "| --- | --- | --- | --- | --- |",
        "| W4 std | 2 | TF1 | **0.50** | 4 |",
    ]


def test_another_backend_is_no_peer():
    records = {"graphgrad": record(0.002), "graphgrad_numpy": record(0.001), "jax": record(0.004)}
    (table,) = tables.pages(tables.figures({"pinned": {"W4": {"std": records}}}))
    assert "| W4 std | 2 | JAX | **0.50** | 1 | 4 |" in table


def test_a_peer_that_failed_has_a_dash():
    records = {"graphgrad": record(0.002), "jax": {"hello": {"ok": 0, "err": "died"}}}
    results = {"pinned": {"W4": {"std": records}, "W7": {"std": {"jax": record(1)}}}}
    (table,) = tables.pages(tables.figures(results))
    assert "| W4 std | 2 | - | - | - |" in table
    assert "| W7 std | - | JAX | - | 1000 |" in table


def test_w1_and_w9_have_tables_of_their_own():
    built = {"graphgrad": {"setup": {"ok": 1}, "us_node": {"build": 2.0, "grad": 6.0}}}
    built["jax"] = {"setup": {"ok": 1}, "us_node": {"build_plus_grad": 240.0, "build": 1.0}}
    memory = {"graphgrad": {**record(None, rss_base_mb=50), "mem": {"ok": 1, "peak_mb": 150}}}
    found = {"pinned": {"W1": {"chain": built}, "W9": {"plain": memory}}}
    nodes, peak = tables.pages(tables.figures(found))
    assert "| W1 chain | 8 | JAX | **0.03** | 240 |" in nodes
    assert "| W9 plain | 100 | - | - |" in peak


def test_what_does_not_agree_or_was_not_compared_is_told():
    found = {
        "pinned": {"W4": {"std": {"graphgrad": record(1, False)}}},
        "wall": {"W5": {"T": {"graphgrad": {"setup": {"ok": 1}}}, "U": {"graphgrad": record(1)}}},
    }
    assert tables.disagreements(found) == ["pinned W4/std of graphgrad", "wall W5/T of graphgrad"]


@pytest.mark.parametrize("page", ["", tables.BEGIN, tables.END + tables.BEGIN])
def test_a_page_without_its_marks_is_refused(page):
    with pytest.raises(ValueError, match="peers: begin"):
        tables.between_marks(page, "text")


def command(folder, *arguments, **env):
    harness = folder / "harness"
    harness.mkdir(exist_ok=True)
    (harness / "run.py").write_text(HARNESS)
    where = ["--harness", harness, "--results", folder / "results"]
    return subprocess.run(
        [sys.executable, BENCH / "peers.py", *where, *arguments],
        capture_output=True,
        text=True,
        env={"PATH": "", **env},
    )


@pytest.mark.ci
def test_the_command_measures_and_writes_between_the_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{tables.BEGIN}\nstale\n{tables.END}\nafter\n")
    done = command(tmp_path, "--workloads", "W4", "W10", "--write", page)
    assert done.returncode == 0, done.stderr
    files = {p.name for p in (tmp_path / "results").iterdir()}
    warm = {f"{way}-{workload}.json" for way in ("pinned", "wall") for workload in ("W4", "W10")}
    assert files == warm | {"cold-W4.json"}
    text = page.read_text()
    assert text.startswith(f"before\n{tables.BEGIN}\n")
    assert text.endswith(f"{tables.END}\nafter\n")
    assert "stale" not in text
    assert text.index("| W4 std |") < text.index("| W10 std |")
    assert "Cold start" in text
    again = command(tmp_path, "--measure", "--write", page)
    assert again.returncode == 0, again.stderr
    assert page.read_text() == text


@pytest.mark.ci
def test_a_release_is_kept_and_drawn_beside_those_before(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    folder = tmp_path / "history"
    for release in ("1.0", "1.1"):
        done = command(
            *(tmp_path, "--workloads", "W4", "--measure", "pinned"),
            *("--history", folder, "--release", release),
            MPLCONFIGDIR=matplotlib.get_configdir(),
        )
        assert done.returncode == 0, done.stderr
    kept = json.loads((folder / "1.1.json").read_text())
    assert kept["release"] == "1.1"
    assert {p.name for p in folder.iterdir()} == {"1.0.json", "1.1.json", "ratios.svg"}
    (case,) = kept["figures"].values()
    assert case["W4 std"]["graphgrad"] == 2.0


@pytest.mark.ci
def test_a_wrong_result_is_an_exit_code(tmp_path):
    done = command(tmp_path, "--workloads", "W4", "--measure", "wall", WRONG="1")
    assert done.returncode == 1
    assert "does not agree with the reference: wall W4/std" in done.stderr


@pytest.mark.ci
def test_a_harness_that_fails_or_is_missing(tmp_path):
    done = command(tmp_path, "--workloads", "W4", FAIL="1")
    assert done.returncode == 2
    assert "the harness failed" in done.stderr
    missing = [sys.executable, BENCH / "peers.py", "--results", tmp_path, "--harness", tmp_path]
    assert subprocess.run(missing, capture_output=True).returncode == 2
    empty = [sys.executable, BENCH / "peers.py", "--results", tmp_path / "none", "--measure"]
    assert subprocess.run(empty, capture_output=True).returncode == 2


def test_results_are_kept_by_way_and_workload(tmp_path):
    for name in ("wall-W10", "wall-W2", "pinned-W2"):
        workload = name.partition("-")[2]
        (tmp_path / f"{name}.json").write_text(json.dumps({workload: {}}))
    assert {way: list(found) for way, found in tables.load(tmp_path).items()} == {
        "pinned": ["W2"],
        "wall": ["W2", "W10"],
    }
