"""Values and gradients of the vocabulary against NumPy's, SciPy's and torch's.

    python tools/vocabulary/differential.py [--variants 4] [--only WORD] [--backend llvm]
                                            [--plain] [--part 1/4] [-v]

Every call of numpy_calls.py and special_calls.py is made with arrays of several types and shapes:
those that its table says, and variants that are drawn for it (dtypes of every kind, alone and
mixed; no elements; one long axis; a stack). One program for each is run over five memory layouts,
which are one case each. The value is the peer's. The gradient of a random weighting of the outputs
is torch's, or that of central differences of the peer's value along a random direction. What the
peer itself refuses is no case.

    right    value, shape, dtype and gradient are the peer's, and the inputs are as they were
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import graphgrad as gg

sys.path.insert(0, str(Path(__file__).parent))
from numpy_calls import BINARY, UNARY
from numpy_calls import calls as numpy_calls
from special_calls import LINALG, TORCH, special_calls

LAYOUTS = ("C", "F", "strided", "negative", "broadcast")
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
IN_SCIPY = ("int32", "int64", "uint32", "float32", "float64", "complex64", "complex128")
"""SciPy makes float32 of float16 and of small integers; graphgrad makes float16 and float64."""
SHAPES = ("of the table", "drawn", "empty", "long", "stacked")
FLOATS = set("ABVWSPUGTNX")
"""The arrays of floating numbers, by name."""

HALVES = ("linalg.cholesky", "linalg.eigh", "linalg.eigvalsh", "linalg.pinv", "linalg.cho_solve")
"""Functions that read one triangle: their gradient is that along symmetric directions."""

NOT_OF = {
    "softmax": "u",  # SciPy's differences of unsigned integers wrap around
    "fft.hfft": "float16",  # NumPy rounds to half precision what it computes in single
    "fft.irfft": "float16",
}
"""Functions, by the end of their name, and how those dtypes begin of which the peer's is no answer
to compare with."""

LEFT_OUT = {
    "linalg.eig": "always complex here",
    "linalg.eigvals": "always complex here",
    "roots": "always complex here, and zeros in front are an error",
    "empty_like": "holds anything",
    "geomspace": "keeps float32 here",
    "polygamma": "keeps float32 here",
    "sph_harm_y": "keeps float32 here",
    "wofz": "keeps float32 here",
    "isfortran": "NumPy asks for the memory of an array",
}
"""Functions whose answer is another one on purpose."""

KEEPS = ("expn", "factorial", "hyp2f1")
"""Functions that keep float32 here; SciPy makes float64 of it, by a number beside it."""

UNSTABLE = ("np.argsort", "np.argpartition", "np.take_along_axis", "np.unique_values")
"""Calls whose answer NumPy leaves open where elements are equal."""

SHORTENED = ("polydiv", "polymul", "polyfit")
"""Functions with a vector in their result whose length NumPy makes depend on values: it leaves out
zeros in front, and sums of squares where the rank is not full."""

TIED = ("np.partition", "np.median", "np.nanmedian")
"""Calls whose kinks at equal elements two sides do not show: the one in the middle stays there."""

DIGITS = {"float16": 4e-3, "float32": 3e-5, "complex64": 3e-5}
"""How near numbers of these dtypes are to be, of the largest; all others 1e-10."""


@dataclass
class Case:
    """One call with arrays of certain types, which five layouts share."""

    name: str
    call: str
    peer: str
    given: dict[str, np.ndarray]

    def __str__(self) -> str:
        types = ", ".join(f"{n}: {a.dtype}{list(a.shape)}" for n, a in self.given.items())
        return f"{self.call}   {types}"


@dataclass
class Tally:
    """What became of the cases."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    gradients: Counter[str] = field(default_factory=Counter)


def arrays(rng: np.random.Generator, shapes: str) -> dict[str, np.ndarray]:
    """What the calls name, of the shapes that their table says, or of others."""
    m, n, k = (2, 3, 4) if shapes in ("of the table", "stacked") else rng.integers(1, 6, size=3)
    m, n = (0 if shapes == "empty" else m), (1031 if shapes == "long" else n)
    s = rng.normal(size=(n, n)) if n < 100 else np.eye(n)
    x, v = rng.normal(size=(m, n)), rng.normal(size=n)
    x[: min(m, 1), n // 2] = v[n // 2] = np.nan
    made = {
        "A": rng.normal(size=(m, n)),
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
        "Z": rng.normal(size=(m, n)) + 1j * rng.normal(size=(m, n)),
        "T": rng.normal(size=(m, n, k)),
    }
    if shapes == "stacked":
        turns = [np.roll(np.arange(3), i) for i in range(2)]
        made = {
            n: np.stack([a[..., t] if a.shape[-1:] == (3,) and n != "S" else a for t in turns])
            for n, a in made.items()
        }
    return made


def of_dtype(name: str, a: np.ndarray, dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Numbers of that dtype that fit the role of the array: positive ones stay so."""
    kind = np.dtype(dtype).kind
    if name in "NX" and kind not in "fc":
        return a
    if kind == "c":
        turned = 1j * rng.normal(size=a.shape)
        if name == "S":
            turned = 0.3 * (turned - np.swapaxes(turned, -1, -2))
        return (a + turned).astype(dtype)
    if kind == "f":
        return a.astype(dtype)
    if kind == "b":
        return a > 0.5
    whole = np.rint(a) if name == "S" else np.rint(3 * a)
    return (np.abs(whole) + (name in "PG") if kind == "u" or name in "PG" else whole).astype(dtype)


def laid_out(a: np.ndarray, layout: str) -> np.ndarray:
    """The array in that layout; of "broadcast" the first row, again and again."""
    if layout == "F":
        return np.array(a, order="F")
    if layout == "strided":
        wide = np.zeros([2 * d + 1 for d in a.shape], a.dtype)
        view = wide[(..., *(slice(1, None, 2) for _ in a.shape))]
        view[...] = a
        return view
    if layout == "negative":
        turned = (..., *(slice(None, None, -1) for _ in a.shape))
        return np.array(a[turned], order="C")[turned]
    if layout == "broadcast" and a.ndim and a.size:
        return np.broadcast_to(a[:1], a.shape)
    return np.array(a, order="C")


def table() -> list[tuple[str, str, str]]:
    """(name, call, peer) of all calls."""
    return [
        *((n, f"np.{c}", "np") for n, cs in numpy_calls().items() for c in cs),
        *((n, f"sp.{c}", "sp") for n, cs in special_calls().items() for c in cs),
        *((n, c, "torch") for n, cs in TORCH.items() for c in cs),
        *((n, c, "scipy") for n, cs in LINALG.items() for c in cs),
    ]


ELEMENTWISE = {entry.partition(":")[0] for entry in (UNARY + BINARY).split()}


def cases(variants: int, only: str = "", part: tuple[int, int] = (0, 1)) -> Iterator[Case]:
    """All of them: each call as the table says, and in variants."""
    for place, (name, call, peer) in enumerate(table()):
        if not re.search(only, call) or name in LEFT_OUT or place % part[1] != part[0]:
            continue
        names = sorted(set(re.findall(r"\b[A-Z]\b", call)))
        more = 3 * variants if name in ELEMENTWISE else variants
        for number in range(1 + more):
            rng = np.random.default_rng([number, zlib.crc32(call.encode())])
            odds = (0.4, 0.4, 0.1, 0.1, 0) if peer == "torch" else (0.3, 0.3, 0.1, 0.1, 0.2)
            shapes = SHAPES[rng.choice(5, p=odds)] if number else SHAPES[0]
            given = {n: a for n, a in arrays(rng, shapes).items() if n in names}
            if number and peer != "torch":
                dtypes = DTYPES if peer == "np" else IN_SCIPY
                for end, start in NOT_OF.items():
                    if name.endswith(end):
                        dtypes = tuple([d for d in dtypes if not d.startswith(start)])
                given = retyped(given, rng, dtypes)
            elif number and rng.random() < 0.4:
                given = {n: _single(a) for n, a in given.items()}
            if number and name in ELEMENTWISE and rng.random() < 0.15:
                given = {n: a.ravel()[0] * np.ones((), a.dtype) if a.size else a
                         for n, a in given.items()}  # fmt: skip
            yield Case(name, call, peer, given)


def retyped(
    given: dict[str, np.ndarray], rng: np.random.Generator, dtypes: Sequence[str]
) -> dict[str, np.ndarray]:
    """The arrays of other dtypes: one for all, or for each its own."""
    one, mixed = dtypes[rng.integers(len(dtypes))], rng.random() < 0.4
    if rng.random() < 0.3:
        one = ("float32", "complex128")[rng.integers(2)]
    made = {}
    for n, a in given.items():
        dtype = dtypes[rng.integers(len(dtypes))] if mixed else one
        whole = n in "IJK" and np.dtype(dtype).kind in "iu"
        made[n] = of_dtype(n, a, dtype, rng) if n in FLOATS else a.astype(dtype) if whole else a
    return made


def _single(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) if a.dtype == np.float64 else a


def parts(found: Any) -> list[Any]:
    """The arrays in what a function returned."""
    if isinstance(found, tuple | list):
        return [p for item in found for p in parts(item)]
    return [found]


def check(case: Case, tally: Tally, backend: str = "numpy", optimize: bool = True) -> None:
    """Count the five cases of one call."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            wanted = parts(of_peer(case, case.given))
        except Exception:  # what the peer refuses is no case
            wanted = [None]
        if not all(isinstance(w, np.ndarray | np.generic | int | float) for w in wanted):
            tally.counts["none"] += 1
            return
        for layout, (became, why) in _compared(case, wanted, backend, optimize, tally).items():
            tally.counts[became] += 1
            if became == "wrong":
                tally.wrong.append(f"{case} [{layout}]\n      {why}")
            elif became == "refused":
                tally.refused[str(case)] = why


def of_peer(case: Case, given: dict[str, Any]) -> Any:
    """What the peer makes of these arrays."""
    if case.peer == "torch":
        return [f.detach().numpy() for f in parts(_in_torch(case, _torches(given)))]
    call, names = case.call, {"np": np, **given}
    if case.peer == "sp":
        import scipy.special

        names["sp"] = scipy.special
    elif case.peer == "scipy":
        import scipy.linalg

        names["scipy"], call = scipy, _theirs()[call]
    found = eval(call, names)
    single = all(a.dtype == np.float32 for a in given.values())
    return found.astype(np.float32) if case.name in KEEPS and single else found


def _compared(
    case: Case, wanted: list[Any], backend: str, optimize: bool, tally: Tally
) -> dict[str, tuple[str, str]]:
    with gg.Graph():
        tensors = {n: gg.placeholder(a.shape, a.dtype, name=n) for n, a in case.given.items()}
        try:
            found = parts(eval(case.call, {"np": np, "sp": gg.special, "gg": gg, **tensors}))
            wanted = lengthened(case, wanted, found)
            if why := _types_differ(found, wanted, case.peer):
                return dict.fromkeys(LAYOUTS, ("wrong", why))
            run, weights, xs = _compiled(found, tensors, wanted, backend, optimize)
        except gg.GraphGradError as error:
            return dict.fromkeys(LAYOUTS, ("refused", str(error).splitlines()[0]))
        except Exception as error:
            return dict.fromkeys(LAYOUTS, ("wrong", f"{type(error).__name__}: {error}"))
    return {
        layout: _run(case, layout, run, found, weights, xs, tally) for layout in LAYOUTS
    }  # fmt: skip


def lengthened(case: Case, wanted: list[Any], found: list[Any]) -> list[Any]:
    """What is wanted, its vectors with as many zeros in front as graphgrad's have."""
    if case.name not in SHORTENED:
        return wanted
    pairs = zip(wanted, found, strict=True)
    return [np.pad(w, (f.shape[0], 0))[-f.shape[0] :] if np.ndim(w) == 1 else w for w, f in pairs]


def _types_differ(found: list[Any], wanted: list[Any], peer: str) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} outputs for {len(wanted)}"
    for f, w in zip(found, map(np.asarray, wanted), strict=True):
        if not isinstance(f, gg.Tensor):
            continue
        shaped = not f.type.static or tuple(f.shape) == w.shape
        if peer == "torch":  # promotes otherwise; and has shapes of its own for no elements
            if w.size and not shaped:
                return f"{f!r} for {w.shape}"
        elif not shaped or f.dtype != w.dtype:
            return f"{f!r} for {w.dtype}{w.shape}"
    return ""


def _compiled(
    found: list[Any], tensors: dict[str, gg.Tensor], wanted: list[Any], backend: str, optimize: bool
) -> tuple[Any, dict[int, np.ndarray], list[str]]:
    """A function of arrays to outputs and gradients; the weights by place; who has a gradient."""
    rng = np.random.default_rng(7)
    weights = {
        i: _weights(rng, w) if f.type.static else np.ones(())
        for i, (f, w) in enumerate(zip(found, wanted, strict=True))
        if isinstance(f, gg.Tensor) and f.dtype.kind in "fc"
    }
    xs = {n: t for n, t in tensors.items() if t.dtype.kind in "fc"} if weights else {}
    ys = [f for f in found if isinstance(f, gg.Tensor)]
    seeds = [
        w.astype(found[i].dtype.name) if found[i].type.static else gg.ones_like(found[i])
        for i, w in weights.items()
    ]
    dxs = gg.gradients([found[i] for i in weights], list(xs.values()), seeds) if xs else []
    asked = [n for n, d in zip(xs, dxs, strict=True) if d is not None]
    fn = gg.compile(
        list(tensors.values()),
        [*ys, *(d for d in dxs if d is not None)],
        backend=backend,
        optimize=optimize,
    )
    return fn, weights, asked


def _run(
    case: Case,
    layout: str,
    run: Any,
    found: list[Any],
    weights: dict[int, np.ndarray],
    xs: list[str],
    tally: Tally,
) -> tuple[str, str]:
    given = {n: laid_out(a, layout) for n, a in case.given.items()}
    if case.name in HALVES or layout == "broadcast":
        given = {n: laid_out(a, "F") if n == "S" else given[n] for n, a in case.given.items()}
    before = {n: np.array(a) for n, a in given.items()}
    try:
        wanted = parts(of_peer(case, given))
    except Exception:  # of such numbers the peer has no value
        return "none", ""
    try:
        values = list(run(*given.values()))
    except gg.GraphGradError as error:
        return "refused", str(error).splitlines()[0]
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}".splitlines()[0]
    for n, a in given.items():
        if a.tobytes() != before[n].tobytes():
            return "wrong", f"{n} was written to"
    told, kinds = iter(values), {a.dtype.kind for a in given.values()}
    outputs = [next(told) if isinstance(f, gg.Tensor) else f for f in found]
    tied = "f" not in kinds or any(len(np.unique(a)) < a.size for a in given.values())
    if case.call.startswith(UNSTABLE) and tied:
        return "right", ""
    wanted = lengthened(case, wanted, outputs)
    for f, w in zip(outputs, wanted, strict=True):
        if why := _differ(np.asarray(f), np.asarray(w), case):
            return "wrong", why
    gradients = dict(zip(xs, told, strict=True))
    return _gradients(case, layout, given, weights, gradients, wanted, tally)


def _terms(g: np.ndarray, given: dict[str, np.ndarray]) -> float:
    """How many numbers may be added up in one of a gradient."""
    return max(a.size for a in given.values()) / max(g.size, 1)


def _differ(
    f: np.ndarray, w: np.ndarray, case: Case, digits: float = 1e-10, terms: float = 1
) -> str:
    """What is wrong, as far as rounding allows: that of a sum grows with the root of its terms."""
    if f.shape != w.shape or f.dtype != w.dtype:
        return f"{f.dtype}{f.shape} for {w.dtype}{w.shape}"
    dtypes = [w.dtype.name, *(a.dtype.name for a in case.given.values())]
    tolerance = max(DIGITS.get(d, digits) for d in dtypes)
    if w.dtype.kind not in "fc":
        good = (f == w).all()
    else:
        scale = max(map(_largest, (w, *case.given.values()))) * max(terms, 1) ** 0.5
        good = np.allclose(f, w, rtol=tolerance, atol=tolerance * float(scale), equal_nan=True)
    if not good:
        off = ~np.isclose(f, w, rtol=tolerance, atol=0, equal_nan=True)
        return f"value: {f[off][:4]} for {w[off][:4]}"
    return ""


def _largest(a: np.ndarray) -> float:
    """The largest finite magnitude."""
    wide = _wide(a) if a.dtype.kind in "fc" else a.astype(float)
    return float(np.max(np.abs(wide[np.isfinite(wide)]), initial=0.0))


def _gradients(
    case: Case,
    layout: str,
    given: dict[str, np.ndarray],
    weights: dict[int, np.ndarray],
    gradients: dict[str, np.ndarray],
    wanted: list[Any],
    tally: Tally,
) -> tuple[str, str]:
    if not gradients or any(np.isnan(np.asarray(wanted[i])).any() for i in weights):
        return "right", ""
    for n, g in gradients.items():
        if g.shape != given[n].shape or g.dtype != given[n].dtype:
            return "wrong", f"gradient of {n}: {g.dtype}{g.shape} for {given[n].shape}"
    if case.peer == "torch":
        if layout == "broadcast":  # ties and equal columns
            return "right", ""
        try:
            expected = _torch_gradient(case, given, weights, list(gradients))
        except RuntimeError:  # torch has none
            return "right", ""
        tally.gradients["torch"] += 1
        for n, e in expected.items():
            g, e = gradients[n], e.astype(gradients[n].dtype)
            if n == "S" and case.name in HALVES:
                g, e = g + np.conj(g.mT), e + np.conj(e.mT)
            if why := _differ(g, e, case, 1e-7, _terms(g, given)):
                return "wrong", f"gradient of {n}: {why}"
        return "right", ""
    for n, g in gradients.items():
        if not g.size:
            continue
        if layout == "broadcast" and case.call.startswith(TIED):
            continue
        became, why = _along(case, given, weights, n, g)
        tally.gradients[became] += 1
        if became == "wrong":
            return "wrong", why
    return "right", ""


def _along(
    case: Case, given: dict[str, np.ndarray], weights: dict[int, np.ndarray], n: str, g: np.ndarray
) -> tuple[str, str]:
    """Whether a gradient is the slope along a random direction, which two steps agree upon."""
    rng = np.random.default_rng(3)
    x = given[n].astype("complex128" if g.dtype.kind == "c" else "float64")
    v = rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else 0)
    if case.name in HALVES and x.ndim >= 2 and x.shape[-1] == x.shape[-2]:
        v = v + np.conj(np.swapaxes(v, -1, -2))
    wide = {k: _wide(a) for k, a in given.items()}

    def loss(h: float) -> float:
        found = parts(of_peer(case, {**wide, n: x + h * v}))
        return float(sum(np.real(np.sum(np.asarray(found[i]) * w)) for i, w in weights.items()))

    try:
        here = loss(0.0)
        sides = [(loss(h) - here) / h for h in (-1e-5, 1e-5)]
        slopes = [sum(sides) / 2, (loss(1e-6) - loss(-1e-6)) / 2e-6]
    except Exception:
        return "unjudged", ""
    if np.isnan(g).any() and case.name in ("std", "nanstd"):
        return "unjudged", ""  # of equal elements, or one
    if 'dtype="float32"' in case.call:
        return "unjudged", ""  # the steps are as small as what the peer rounds off
    size = max(1e-3, abs(slopes[0]), float(np.linalg.norm(np.where(np.isfinite(g), g, 0))))
    kink = abs(sides[0] - sides[1]) > 1e-4 * size
    if kink or not np.isfinite(slopes).all() or abs(slopes[0] - slopes[1]) > 1e-5 * size:
        return "unjudged", ""
    slope = float(np.real(np.sum(g * v)))
    tolerance = max(1e-4, *(30 * DIGITS.get(a.dtype.name, 0) for a in given.values()))
    if abs(slope - slopes[0]) <= tolerance * size:
        return "judged", ""
    return "wrong", f"gradient of {n}: slope {slope} for {slopes}"


def _wide(a: np.ndarray) -> np.ndarray:
    return a.astype({"f": "float64", "c": "complex128"}.get(a.dtype.kind, a.dtype))


def _weights(rng: np.random.Generator, value: Any) -> np.ndarray:
    v = np.asarray(value)
    w = rng.normal(size=v.shape)
    return w + 1j * rng.normal(size=v.shape) if v.dtype.kind == "c" else w


@cache
def _theirs() -> dict[str, str]:
    """Our call -> the peer's."""
    tables = [pairs for made in (TORCH, LINALG) for pairs in made.values()]
    return {ours: theirs for pairs in tables for ours, theirs in pairs.items()}


def _in_torch(case: Case, given: dict[str, Any]) -> Any:
    import torch

    return eval(_theirs()[case.call], {"torch": torch, "F": torch.nn.functional, **given})


def _torches(given: dict[str, np.ndarray]) -> dict[str, Any]:
    import torch

    return {n: torch.tensor(np.array(a, order="C")) for n, a in given.items()}


def _torch_gradient(
    case: Case, given: dict[str, np.ndarray], weights: dict[int, Any], names: list[str]
) -> dict[str, Any]:
    import torch

    tensors = _torches(given)
    for n in names:
        tensors[n].requires_grad_()
    found = parts(_in_torch(case, tensors))
    loss: Any = sum((found[i] * torch.tensor(w)).sum() for i, w in weights.items())
    loss.backward()
    return {
        n: np.zeros_like(given[n]) if tensors[n].grad is None else tensors[n].grad.numpy()
        for n in names
    }


def main() -> None:
    """Count, and print what is not right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variants", type=int, default=4)
    parser.add_argument("--only", default="", help="a regular expression that the call matches")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--plain", action="store_true", help="not optimised")
    parser.add_argument("--part", default="1/1", help="which part of how many")
    parser.add_argument("-v", action="store_true", help="print what was refused, too")
    options = parser.parse_args()
    tally, shown = Tally(), 0
    part, count = map(int, options.part.split("/"))
    for case in cases(options.variants, options.only, (part - 1, count)):
        check(case, tally, options.backend, not options.plain)
        if len(tally.wrong) > shown:
            print("  wrong  ", tally.wrong[shown], flush=True)
            shown = len(tally.wrong)
        if options.v and str(case) in tally.refused:
            print("  refused", case, "|", tally.refused[str(case)][:150], flush=True)
    kinds = ("right", "refused", "wrong", "none")
    print(", ".join(f"{tally.counts[k]} {k}" for k in kinds), f"({options.backend})")
    print("gradients:", dict(tally.gradients))


if __name__ == "__main__":
    main()
