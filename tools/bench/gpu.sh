#!/usr/bin/env bash
# The JAX backend on an accelerator: its laws, then training steps beside bare JAX, as a table.
#
#   tools/bench/gpu.sh HARNESS RESULTS [PYTHON]
#
# HARNESS: a folder with the run.py that peers.py runs. RESULTS: a folder for laws.txt, steps.json
# and gpu.md. PYTHON: one with graphgrad, JAX and pytest. It takes ten minutes at most. On a machine
# without an accelerator it runs on JAX's CPU.
set -euo pipefail
harness=$(realpath "$1")
mkdir -p "$2"
results=$(realpath "$2")
python=$(realpath -s "${3:-$(command -v python3)}")
cd "$(dirname "$0")/../.."
export XLA_PYTHON_CLIENT_PREALLOCATE=false
device=$("$python" -c 'import jax; d = jax.devices()[0]; print(d.device_kind, "JAX", jax.__version__)')
echo "== laws on $device"
laws=0
timeout 330 "$python" -m pytest -n 2 -k jax tests/laws/test_backends.py tests/differentiate/test_against_jax.py \
  >"$results/laws.txt" 2>&1 || laws=$?
tail -n 1 "$results/laws.txt"
echo "== steps of W4, W6, W7"
BENCH_PEERS=$PWD/tools/bench timeout 240 "$python" "$harness/run.py" --workloads W4,W6,W7 \
  --peers jax,graphgrad_jax --rounds 5 --secs 0.5 --out "$results/steps.json"
"$python" - "$results" "$device" <<'END'
import json, pathlib, sys

folder, device = pathlib.Path(sys.argv[1]), sys.argv[2]
lines = [f"On {device}; milliseconds a step, medians; laws: see laws.txt.", ""]
lines += ["| workload | JAX | graphgrad on JAX | ratio | agrees |", "|---|---|---|---|---|"]
for workload, variants in json.loads((folder / "steps.json").read_text()).items():
    for variant, peers in variants.items():
        bare, ours = (peers[p]["median_s"] * 1e3 for p in ("jax", "graphgrad_jax"))
        agrees = peers["graphgrad_jax"]["agree"]["ok"]
        row = [f"{workload} {variant}", f"{bare:.2f}", f"{ours:.2f}", f"{ours / bare:.2f}", agrees]
        lines.append(f"| {' | '.join(map(str, row))} |")
(folder / "gpu.md").write_text("\n".join(lines) + "\n")
print(*lines, sep="\n")
END
exit "$laws"
