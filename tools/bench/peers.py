"""graphgrad beside other packages, on a benchmark harness that lies elsewhere; tables for a page.

    python tools/bench/peers.py --harness FOLDER --results FOLDER [--write docs/performance.md]
        [--measure pinned wall cold] [--workloads W4 W7] [--peers jax torch] [--python PATH]
        [--history docs/performance --release NAME]

The harness is a folder with a run.py that runs workloads W1 to W10 for many peers in turn and
writes JSON. This file runs it a workload at a time, in up to three ways, and keeps the JSON in the
results folder as `pinned-W4.json`:

    pinned  one core, CPU time: what counts on a shared machine
    wall    all cores, wall time
    cold    CPU time of a whole process up to the first result, empty caches

What is measured again replaces what was there. With `--measure` and nothing behind it, only the
tables are made. They go to standard output, or with --write between the two marks in that file.
With --history the figures are kept as NAME.json in that folder, and all releases there are drawn
in its ratios.svg, which takes matplotlib.
graphgrad runs in the Python that runs this; --python is one with the other packages.
Exit code: 1 if a result of graphgrad does not agree with the reference, 2 if nothing can run.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import history
import tables

HERE = Path(__file__).resolve().parent
WAYS = {"pinned": ["--pin"], "wall": [], "cold": ["--cold", "--rounds", "0"]}
WORKLOADS = [f"W{i}" for i in range(1, 11)]
COLD = ["W4", "W5", "W6", "W7"]
PACKAGES = {  # what must be installed for a peer
    "graphgrad_numpy": "numpy",
    "tf1": "tensorflow",
    "tf2xla": "tensorflow",
    "jax": "jax",
    "torch": "torch",
    "autograd": "autograd",
    "pytensor": "pytensor",
}
LEFT_OUT = {  # what a peer cannot do, or not in the three minutes that the harness gives it
    "W1": {"tf2xla"},
    "W5": {"jax", "tf2xla", "pytensor"},
    "W6": {"pytensor"},
}
VERSIONS = """
import importlib.metadata, json, platform, sys
found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def versions(python, names):
    """{package: version} of what a Python has of these packages, and its own."""
    command = [str(python), "-c", VERSIONS, *sorted(set(names))]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def environment(python):
    """Where the harness finds the adapters of this folder, and the Python of each."""
    found = dict(os.environ, BENCH_PEERS=str(HERE), BENCH_PYTHON_TF=str(python))
    for adapter in HERE.glob("graphgrad*.py"):
        found[f"BENCH_PYTHON_{adapter.stem.upper()}"] = sys.executable
    return found


def measure(options, way, workload, peers):
    """Run the harness for one workload; its JSON goes to the results folder."""
    chosen = [p for p in peers if p not in LEFT_OUT.get(workload, ())]
    out = options.results / f"{way}-{workload}.json"
    command = [str(options.python), str(options.harness / "run.py"), "--workloads", workload]
    command += ["--peers", ",".join(chosen), "--secs", str(options.secs)]
    command += ["--rounds", str(options.rounds), *WAYS[way]]
    print(f"{way} {workload}: {', '.join(chosen)}", file=sys.stderr, flush=True)
    command += ["--out", str(out.with_suffix(".part"))]
    subprocess.run(command, check=True, env=environment(options.python), stdout=sys.stderr)
    out.with_suffix(".part").replace(out)


def options_of(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--harness", type=Path, help="the folder that holds run.py")
    parser.add_argument("--results", type=Path, required=True, help="where the JSON is kept")
    parser.add_argument("--write", type=Path, help="the page that has the marks")
    parser.add_argument("--measure", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--peers", nargs="+", choices=PACKAGES, default=list(PACKAGES))
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--history", type=Path, help="the folder of a JSON file for each release")
    parser.add_argument("--release", help="which of them to write: a version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=float, default=0.4)
    options = parser.parse_args(arguments)
    if options.measure and not (options.harness and (options.harness / "run.py").is_file()):
        parser.error("to measure, --harness must be a folder with a run.py")
    if (options.history is None) != (options.release is None):
        parser.error("--history and --release go together")
    return options


def main(arguments=None):
    """Measure what is asked for, then make the tables. The exit code."""
    options = options_of(arguments)
    options.results.mkdir(parents=True, exist_ok=True)
    have = versions(options.python, [*PACKAGES.values(), "numpy"])
    peers = ["graphgrad", *(p for p in options.peers if PACKAGES[p] in have)]
    try:
        for way in options.measure:
            for workload in options.workloads:
                if way != "cold" or workload in COLD:
                    measure(options, way, workload, peers)
    except subprocess.CalledProcessError as error:
        print(f"the harness failed: {error}", file=sys.stderr)
        return 2
    found = tables.load(options.results)
    if not found:
        print(f"there are no results in {options.results}", file=sys.stderr)
        return 2
    facts = tables.machine(have, versions(sys.executable, ["numpy", "llvmlite"]))
    figures = tables.figures(found)
    text = "\n\n".join([facts, *tables.pages(figures)])
    if options.history:
        history.keep(options.history, options.release, facts, figures)
        history.draw(options.history)
    if options.write:
        options.write.write_text(tables.between_marks(options.write.read_text(), text))
    else:
        print(text)
    wrong = tables.disagreements(found)
    for name in wrong:
        print(f"graphgrad does not agree with the reference: {name}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
