"""How much of the vocabularies of others graphgrad has.

    python tools/vocabulary/count.py [-v]

NumPy: every call of numpy_calls.py is made with tensors, evaluated, and compared with NumPy's own
result. A function is
    whole       every call builds nodes, and their values, shapes and dtypes are NumPy's
    complex     so they are, but the dtype is complex where NumPy's depends on the values
    partly      some calls do; the others are refused by an error of graphgrad's that says why
    refused     all are
    misbehaves  a call has another answer, or fails otherwise
The others, where they are installed: the names that graphgrad has, itself or under its own name.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import graphgrad as gg

sys.path.insert(0, str(Path(__file__).parent))
from numpy_calls import calls
from renamed import PEERS

ORDER = ("whole", "complex", "partly", "refused", "misbehaves")
ALWAYS_COMPLEX = ("linalg.eig", "linalg.eigvals", "roots")
"""NumPy's results of these are real where all elements are; here, as in JAX, always complex."""


def arrays() -> dict[str, Any]:
    """What the calls name."""
    rng = np.random.default_rng(0)
    a, s = rng.normal(size=(2, 3)), rng.normal(size=(3, 3))
    x = a.copy()
    x[0, 1] = np.nan
    return {
        "A": a,
        "B": rng.normal(size=(2, 3)),
        "V": rng.normal(size=3),
        "W": rng.normal(size=3),
        "S": s @ s.T + 3 * np.eye(3),
        "P": rng.uniform(0.5, 2.0, size=(2, 3)),
        "U": rng.uniform(-0.9, 0.9, size=(2, 3)),
        "G": rng.uniform(1.1, 3.0, size=(2, 3)),
        "N": np.array([1.0, np.nan, 1.0]),
        "X": x,
        "I": rng.integers(0, 9, size=(2, 3)),
        "J": np.array([3, 1, 3]),
        "K": np.array([1, 0, 2]),
        "M": np.array([[True, False, True], [True, True, False]]),
        "L": np.array([True, False, True]),
        "Z": a + 1j * rng.normal(size=(2, 3)),
        "T": rng.normal(size=(2, 3, 4)),
    }


def outcome(call: str, given: dict[str, Any]) -> tuple[str, str]:
    """("whole" | "refused" | "misbehaves", why) of one call."""
    np_and = {"np": np, "lambda": None}
    copies = {n: a.copy() for n, a in given.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            wanted = eval(f"np.{call}", {**np_and, **copies})
        except Exception as error:  # what NumPy refuses says nothing
            return "misbehaves", f"NumPy itself: {error}"
        with gg.Graph():
            tensors = {n: gg.placeholder(a.shape, a.dtype, name=n) for n, a in given.items()}
            try:
                found = eval(f"np.{call}", {**np_and, **tensors})
                feeds = {tensors[n]: a for n, a in given.items()}
                found = evaluated(found, feeds)
            except Exception as error:
                clear = isinstance(error, gg.GraphGradError) or _has_no_attribute(error)
                return ("refused" if clear else "misbehaves"), f"{type(error).__name__}: {error}"
    if call.partition("(")[0] in ALWAYS_COMPLEX and np.iscomplexobj(found):
        kind, why = compared(found, wanted + 0j)
        return ("complex" if kind == "whole" else kind), why
    return compared(found, wanted)


def _has_no_attribute(error: Exception) -> bool:
    """Whether NumPy asked a tensor itself for what only arrays have, as .flags."""
    missing = "'Tensor' object has no attribute "
    return isinstance(error, AttributeError) and str(error).startswith(missing)


def evaluated(found: Any, feeds: dict[Any, Any]) -> Any:
    """Tensors become their values."""
    if isinstance(found, gg.Tensor):
        return gg.evaluate(found, feeds)
    if isinstance(found, tuple | list):
        return [evaluated(item, feeds) for item in found]
    return found


def compared(found: Any, wanted: Any) -> tuple[str, str]:
    """Whether values, shapes and dtypes are those wanted."""
    if isinstance(wanted, tuple | list):
        if not isinstance(found, list | tuple) or len(found) != len(wanted):
            return "misbehaves", f"{found!r} for {wanted!r}"
        parts = [compared(f, w) for f, w in zip(found, wanted, strict=True)]
        return next((p for p in parts if p[0] != "whole"), ("whole", ""))
    if isinstance(wanted, str | bool | np.dtype | type) or wanted is None:
        good = isinstance(wanted, str) or np.all(found == wanted)
        return ("whole", "") if good else ("misbehaves", f"{found!r} for {wanted!r}")
    f, w = np.asarray(found), np.asarray(wanted)
    if (f.shape, f.dtype) != (w.shape, w.dtype):
        return "misbehaves", f"{f.dtype}{f.shape} for {w.dtype}{w.shape}"
    tolerance = 1e-5 if f.dtype in (np.float32, np.complex64) else 1e-9
    if not np.allclose(f, w, rtol=tolerance, atol=tolerance, equal_nan=True):
        return "misbehaves", f"{f} for {w}"
    return "whole", ""


def of_numpy() -> dict[str, tuple[str, list[tuple[str, str, str]]]]:
    """Function -> (its class, what became of each call)."""
    given, found = arrays(), {}
    for name, tried in calls().items():
        results = [(call, *outcome(call, given)) for call in tried]
        kinds = {kind for _, kind, _ in results}
        one = next(iter(kinds)) if len(kinds) == 1 else "partly"
        found[name] = ("misbehaves" if "misbehaves" in kinds else one, results)
    return found


def missing_from_the_table() -> list[str]:
    """Functions of NumPy that dispatch, and their keywords, that no call has."""
    dispatched, table = type(np.sum), calls()
    ignored = {"out", "order", "subok", "like", "casting", "kind", "device", "copy"}
    missing = []
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name in sorted(dir(module)):
            fn = getattr(module, name)
            if name[0] == "_" or not isinstance(fn, (np.ufunc, dispatched)):
                continue
            if prefix + name not in table:
                missing.append(prefix + name)
            elif isinstance(fn, dispatched):
                words = set(re.findall(r"(\w+)=", " ".join(table[prefix + name])))
                for p in _parameters(fn):
                    if p.kind is p.KEYWORD_ONLY and p.name not in words | ignored:
                        missing.append(f"{prefix}{name}({p.name}=)")
    return missing


def _parameters(fn: Any) -> list[inspect.Parameter]:
    """Those of a function; none where it tells none, as functions in C before NumPy 2.4."""
    try:
        return list(inspect.signature(fn).parameters.values())
    except ValueError:
        return []


def names_of(module: Any) -> list[str]:
    """The public functions of a module."""
    found = [n for n in dir(module) if n[0] != "_"]
    made = [(n, getattr(module, n)) for n in found]
    return [n for n, o in made if callable(o) and not inspect.isclass(o)]


def has(name: str, ours: tuple[str, ...], renamed: dict[str, str]) -> bool:
    """Whether graphgrad has a function of that name in one of its modules, or of ours for it."""
    wanted = renamed.get(name)
    if wanted is not None:
        return _found(f"graphgrad.{wanted}")
    return any(_found(f"{module}.{name}") for module in ours)


def _found(dotted: str) -> bool:
    o: Any = gg
    for part in dotted.split(".")[1:]:
        o = getattr(o, part, None)
    return callable(o)


def main(verbose: bool) -> None:
    """Print the tables."""
    results = of_numpy()
    counts = Counter(kind for kind, _ in results.values())
    print(f"numpy: {len(results)} functions: " + ", ".join(f"{counts[k]} {k}" for k in ORDER))
    if missing := missing_from_the_table():
        print("  not in numpy_calls.py: " + " ".join(missing))
    for kind in ORDER[1:]:
        names = [n for n, (k, _) in results.items() if k == kind]
        if names and not verbose:
            print(f"  {kind}: {' '.join(names)}")
        for name in names if verbose else []:
            for call, became, why in results[name][1]:
                if became != "whole":
                    print(f"  {became:10} np.{call}: {why.splitlines()[0][:150] if why else ''}")
    for peer, (ours, renamed, left_out) in PEERS.items():
        try:
            theirs = names_of(importlib.import_module(peer))
        except ImportError:
            print(f"{peer}: not installed")
            continue
        theirs = [n for n in theirs if n not in left_out]
        lacking = [n for n in theirs if not has(n, ours, renamed)]
        print(f"{peer}: {len(theirs) - len(lacking)} of {len(theirs)}")
        print(f"  lacks: {' '.join(lacking)}")


if __name__ == "__main__":
    main("-v" in sys.argv)
