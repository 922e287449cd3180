"""Values and gradients of the vocabulary against NumPy's, SciPy's, torch's and JAX's.

    python tools/vocabulary/differential.py [--seeds 3] [--only WORD] [--backend llvm] [-v]

Every call of numpy_calls.py and of special_calls.py is made with random arrays: shapes, dtypes and
one of five memory layouts are drawn for each case. The value is NumPy's, SciPy's or torch's; the
gradient of a random weighting of the outputs is JAX's or torch's, or where neither has such a
function that of central differences of the value. What the peer itself refuses is no case.

    right    value, shape, dtype and gradient are the peer's
    refused  an error of graphgrad's that says why
    wrong    anything else
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import graphgrad as gg

sys.path.insert(0, str(Path(__file__).parent))
from numpy_calls import calls as numpy_calls
from special_calls import TORCH, special_calls

LAYOUTS = ("C", "F", "strided", "negative", "broadcast")
TIED = """
sort argsort partition argpartition median quantile percentile nanmedian nanquantile nanpercentile
max min amax amin nanmax nanmin maximum minimum fmax fmin ptp clip unique sort_complex linalg.eig
linalg.eigh linalg.svd linalg.qr linalg.cond linalg.matrix_norm linalg.norm linalg.pinv
linalg.lstsq linalg.svdvals linalg.eigvals linalg.eigvalsh histogram histogram2d histogramdd
histogram_bin_edges corrcoef std nanstd hypot absolute abs sign interp cov unwrap relu leaky_relu
elu max_pool where_first prod nanprod cumprod spacing remainder mod fmod divmod floor_divide roots
linalg.vector_norm cummax cummin
""".split()  # noqa: SIM905
"""Functions with kinks or poles at ties, equal columns or singular matrices: no gradient is
compared where broadcasting makes such."""


HALVES = ("linalg.cholesky", "linalg.eigh", "linalg.eigvalsh", "linalg.pinv")
"""Functions that read one triangle here: JAX's gradient goes to both, half each."""

LEFT_OUT = {
    "linalg.eig": "always complex here",
    "linalg.eigvals": "always complex here",
    "empty_like": "holds anything",
    "geomspace": "keeps float32 here",
    "isfortran": "NumPy asks for the memory of an array",
}
"""Functions whose answer is another one on purpose."""

ZERO_IN_JAX = ("sign",)
"""Functions of complex numbers whose gradient JAX says is 0, and which is not."""


@dataclass
class Case:
    """One call with arrays."""

    name: str
    call: str
    given: dict[str, np.ndarray]
    layout: str
    modules: dict[str, Any]
    ours: dict[str, Any]
    gradient: str = "jax"

    def __str__(self) -> str:
        types = ", ".join(f"{n}: {a.dtype}{list(a.shape)}" for n, a in self.given.items())
        return f"{self.call}   [{self.layout}] {types}"


@dataclass
class Tally:
    """What became of the cases."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    oracles: Counter[str] = field(default_factory=Counter)


def arrays(rng: np.random.Generator, small: bool) -> dict[str, np.ndarray]:
    """What the calls name, of the shapes that their table says, or of others."""
    m, n, k = (2, 3, 4) if small else rng.integers(1, 5, size=3)
    a, s = rng.normal(size=(m, n)), rng.normal(size=(n, n))
    x = rng.normal(size=(m, n))
    x[0, n // 2] = np.nan
    v = rng.normal(size=n)
    v[n // 2] = np.nan
    return {
        "A": a,
        "B": rng.normal(size=(m, n)),
        "V": rng.normal(size=n),
        "W": rng.normal(size=n),
        "S": s @ s.T + 3 * np.eye(n),
        "P": rng.uniform(0.5, 2.0, size=(m, n)),
        "U": rng.uniform(-0.9, 0.9, size=(m, n)),
        "G": rng.uniform(1.1, 3.0, size=(m, n)),
        "N": v,
        "X": x,
        "I": rng.integers(0, 9, size=(m, n)),
        "J": rng.integers(0, 4, size=n),
        "K": rng.permutation(n),
        "M": rng.random(size=(m, n)) < 0.6,
        "L": rng.random(size=n) < 0.6,
        "Z": a + 1j * rng.normal(size=(m, n)),
        "T": rng.normal(size=(m, n, k)),
    }


def laid_out(a: np.ndarray, layout: str) -> np.ndarray:
    """The array in that layout; of "broadcast" the first row, again and again."""
    if layout == "F":
        return np.asfortranarray(a)
    if layout == "strided":
        wide = np.zeros([2 * d + 1 for d in a.shape], a.dtype)
        view = wide[tuple(slice(1, None, 2) for _ in a.shape)]
        view[...] = a
        return view
    if layout == "negative":
        turned = tuple(slice(None, None, -1) for _ in a.shape)
        return np.ascontiguousarray(a[turned])[turned]
    if layout == "broadcast" and a.ndim:
        return np.broadcast_to(a[:1], a.shape)
    return np.ascontiguousarray(a)


def cases(seeds: int, only: str = "") -> Iterator[Case]:
    """All of them."""
    import scipy.special

    table = [
        *((n, c, "np") for n, cs in numpy_calls().items() for c in cs),
        *((n, c, "sp") for n, cs in special_calls().items() for c in cs),
        *((n, c, "torch") for n, cs in TORCH.items() for c in cs),
    ]
    for name, call, kind in table:
        if only not in f"{kind}.{call}" or name in LEFT_OUT:
            continue
        for seed in range(seeds):
            rng = np.random.default_rng([seed, zlib.crc32(call.encode())])
            given = arrays(rng, small=seed % 2 == 0)
            layout = LAYOUTS[rng.integers(len(LAYOUTS))] if seed else "C"
            if rng.random() < 0.25 and kind != "torch" and "Z" not in call:
                given = {n: _single(a) for n, a in given.items()}
            if kind == "np" and rng.random() < 0.2:
                given = {n: _complex(n, a, rng) for n, a in given.items()}
            names = set(re.findall(r"\b[A-Z]\b", call))
            used = {n: laid_out(a, layout if n != "S" or layout != "broadcast" else "F")
                    for n, a in given.items() if n in names}  # fmt: skip
            if kind == "np":
                yield Case(name, f"np.{call}", used, layout, {"np": np}, {"np": np})
            elif kind == "sp":
                theirs = {"sp": scipy.special, "np": np}
                yield Case(name, f"sp.{call}", used, layout, theirs, {"sp": gg.special, "np": np})
            else:
                yield Case(name, call, used, layout, {}, {"gg": gg}, "torch")


def _single(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) if a.dtype == np.float64 else a


def _complex(name: str, a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if a.dtype.kind != "f" or name in "SNX":
        return a
    return (a + 1j * rng.normal(size=a.shape)).astype(np.result_type(a, np.complex64))


def parts(found: Any) -> list[Any]:
    """The arrays in what a function returned."""
    if isinstance(found, tuple | list):
        return [p for item in found for p in parts(item)]
    return [found]


def check(case: Case, tally: Tally, backend: str = "numpy") -> None:
    """Count one case."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        peer: Callable[[dict[str, Any]], Any] = _torch_of if case.gradient == "torch" else _value
        try:
            wanted = peer(case)
        except Exception:  # what the peer refuses is no case
            tally.counts["none"] += 1
            return
        if not all(isinstance(w, np.ndarray | np.generic | int | float) for w in parts(wanted)):
            tally.counts["none"] += 1
            return
        became, why = _compared(case, wanted, backend, tally)
    tally.counts[became] += 1
    if became == "wrong":
        tally.wrong.append(f"{case}\n      {why}")
    elif became == "refused":
        tally.refused[case.call] = why


def _value(case: Case) -> Any:
    return eval(case.call, {**case.modules, **case.given})


def _compared(case: Case, wanted: Any, backend: str, tally: Tally) -> tuple[str, str]:
    with gg.Graph():
        tensors = {n: gg.placeholder(a.shape, a.dtype, name=n) for n, a in case.given.items()}
        try:
            found = parts(eval(case.call, {**case.ours, **tensors}))
            ys = [f for f in found if isinstance(f, gg.Tensor)]
            if not ys:
                return "right", ""
            values = gg.compile(list(tensors.values()), ys, backend=backend)(*case.given.values())
        except gg.GraphGradError as error:
            return "refused", str(error).splitlines()[0]
        except Exception as error:
            return "wrong", f"{type(error).__name__}: {error}".splitlines()[0]
        told = iter(values)
        values = [next(told) if isinstance(f, gg.Tensor) else f for f in found]
        single = any(a.dtype in SINGLE for a in (*case.given.values(), *values))
        if why := _differ(values, parts(wanted), single):
            return "wrong", "value: " + why
        if case.layout == "broadcast" and case.name in TIED:
            return "right", ""
        return _gradients(case, tensors, found, values, single, backend, tally)


SINGLE = (np.dtype("float32"), np.dtype("complex64"))


def _differ(found: list[Any], wanted: list[Any], single: bool) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} outputs for {len(wanted)}"
    for f, w in zip(found, wanted, strict=True):
        f, w = np.asarray(f), np.asarray(w)
        if f.shape != w.shape or f.dtype != w.dtype:
            return f"{f.dtype}{f.shape} for {w.dtype}{w.shape}"
        if not _near(f, w, single):
            return f"{f.ravel()[:6]} for {w.ravel()[:6]}"
    return ""


def _near(f: np.ndarray, w: np.ndarray, single: bool, loose: float = 1.0) -> bool:
    tolerance = loose * (3e-4 if single else 1e-9)
    scale = np.max(np.abs(w[np.isfinite(w)]), initial=1.0) if w.dtype.kind in "fc" else 1.0
    return np.allclose(f, w, rtol=tolerance, atol=tolerance * scale, equal_nan=w.dtype.kind in "fc")


def _gradients(
    case: Case,
    tensors: dict[str, gg.Tensor],
    found: list[Any],
    values: list[Any],
    single: bool,
    backend: str,
    tally: Tally,
) -> tuple[str, str]:
    rng = np.random.default_rng(7)
    xs = {n: t for n, t in tensors.items() if t.dtype.kind in "fc"}
    ys = [
        (f, _weights(rng, v), i)
        for i, (f, v) in enumerate(zip(found, values, strict=True))
        if isinstance(f, gg.Tensor) and f.dtype.kind in "fc" and not np.isnan(v).any()
    ]
    if not xs or not ys:
        return "right", ""
    try:
        dxs = gg.gradients([y for y, _, _ in ys], list(xs.values()), [w for _, w, _ in ys])
        asked = [d for d in dxs if d is not None]
        run = gg.compile(list(tensors.values()), asked, backend=backend)
        computed = iter(run(*case.given.values()))
        got = {
            n: np.zeros_like(case.given[n]) if d is None else next(computed)
            for n, d in zip(xs, dxs, strict=True)
        }
    except gg.GraphGradError as error:
        return "refused", "gradient: " + str(error).splitlines()[0]
    except Exception as error:
        return "wrong", f"gradient: {type(error).__name__}: {error}".splitlines()[0]
    weights = {i: w for _, w, i in ys}
    oracle, expected, loose = _oracle(case, weights, list(xs), single)
    tally.oracles[oracle] += 1
    if expected is None:
        return "right", ""
    for n, g in got.items():
        e = np.asarray(expected[n])
        if case.name in HALVES and e.ndim == 2 and e.shape[0] == e.shape[1]:
            g, e = g + np.conj(g.T), e + np.conj(e.T)
        if not np.isfinite(e).all() and not np.isfinite(g).all():
            continue
        if not _near(g, e.astype(g.dtype), single, loose):
            return "wrong", f"gradient of {n} ({oracle}): {g.ravel()[:6]} for {e.ravel()[:6]}"
    return "right", ""


def _weights(rng: np.random.Generator, value: Any) -> np.ndarray:
    v = np.asarray(value)
    w = rng.normal(size=v.shape)
    return (w + 1j * rng.normal(size=v.shape) if v.dtype.kind == "c" else w).astype(v.dtype)


def _oracle(
    case: Case, weights: dict[int, Any], names: list[str], single: bool
) -> tuple[str, Any, float]:
    """Whose gradient, by name, and how much looser it is to be compared."""
    if case.gradient == "torch":
        return "torch", _torch_gradient(case, weights, names), 10.0
    complex_ones = any(case.given[n].dtype.kind == "c" for n in names)
    if complex_ones and case.name in ZERO_IN_JAX:
        return "none", None, 1.0
    try:
        return "jax", _jax_gradient(case, weights, names), 10.0
    except Exception:  # JAX has no such function, or not of these arguments
        if single or complex_ones:
            return "none", None, 1.0
        return "differences", _differences(case, weights, names), 1e3


def _jax_gradient(case: Case, weights: dict[int, Any], names: list[str]) -> dict[str, Any]:
    jax, jnp = _jax()
    namespace = {"np": jnp, "sp": jax.scipy.special}

    def loss(floats: dict[str, Any]) -> Any:
        others = {n: jnp.asarray(a) for n, a in case.given.items() if n not in floats}
        found = parts(eval(case.call, {**namespace, **others, **floats}))
        return sum(jnp.real(jnp.sum(found[i] * w)) for i, w in weights.items())

    return jax.grad(loss)({n: jnp.asarray(case.given[n]) for n in names})


@cache
def _jax() -> tuple[Any, Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax, jax.numpy


def _differences(case: Case, weights: dict[int, Any], names: list[str]) -> dict[str, Any]:
    def loss(given: dict[str, np.ndarray]) -> float:
        found = parts(eval(case.call, {**case.modules, **given}))
        return float(sum(np.real(np.sum(found[i] * w)) for i, w in weights.items()))

    made = {}
    for name in names:
        x = np.array(case.given[name])
        g = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[at] = 1e-6
            plus, minus = ({**case.given, name: x + s * step} for s in (1, -1))
            g[at] = (loss(plus) - loss(minus)) / 2e-6
        made[name] = g
    return made


def _in_torch(case: Case, given: dict[str, Any]) -> Any:
    import torch

    theirs = TORCH_CALLS()[case.call]
    return eval(theirs, {"torch": torch, "F": torch.nn.functional, **given})


@cache
def TORCH_CALLS() -> dict[str, str]:
    """Our call -> torch's."""
    return {ours: theirs for pairs in TORCH.values() for ours, theirs in pairs.items()}


def _torch_of(case: Case) -> Any:
    import torch

    given = {n: torch.tensor(np.ascontiguousarray(a)) for n, a in case.given.items()}
    found = _in_torch(case, given)
    if isinstance(found, tuple | list):
        return [f.numpy() for f in found]
    return found.numpy()


def _torch_gradient(case: Case, weights: dict[int, Any], names: list[str]) -> dict[str, Any]:
    import torch

    given = {n: torch.tensor(np.ascontiguousarray(a)) for n, a in case.given.items()}
    for n in names:
        given[n].requires_grad_()
    found = parts(_in_torch(case, given))
    loss = sum((found[i] * torch.tensor(w)).sum() for i, w in weights.items())
    loss.backward()
    return {
        n: np.zeros_like(case.given[n]) if given[n].grad is None else given[n].grad.numpy()
        for n in names
    }


def main() -> None:
    """Count, and print what is not right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("-v", action="store_true", help="print what was refused, too")
    options = parser.parse_args()
    tally, shown = Tally(), 0
    for case in cases(options.seeds, options.only):
        check(case, tally, options.backend)
        if len(tally.wrong) > shown:
            print("  wrong  ", tally.wrong[-1], flush=True)
            shown += 1
    kinds = ("right", "refused", "wrong", "none")
    print(", ".join(f"{tally.counts[k]} {k}" for k in kinds), f"({options.backend})")
    print("gradients by", dict(tally.oracles))
    for call, why in tally.refused.items() if options.v else ():
        print("  refused", call, "|", why[:160])


if __name__ == "__main__":
    main()
