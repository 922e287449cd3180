"""Random keys: what x[key], gg.at(x)[key] and their gradients are, beside NumPy.

python -m tests.fuzz.keys --count 20000 --backend numpy
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from typing import Any

import numpy as np

import graphgrad as gg

INTEGERS = ("int8", "uint8", "int16", "int32", "int64", "int64", "uint32", "uint64")
DTYPES = ("float64",) * 5 + ("float32", "complex128", "int32", "bool")
CHANGES = ("set", "add", "subtract", "multiply", "divide", "power", "min", "max")
UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
          "power": np.power, "min": np.minimum, "max": np.maximum}  # fmt: skip
REFUSED = (gg.GraphGradError, IndexError, TypeError)


class Case:
    """An array, a key of some constants and some computed arrays, and NumPy's answers.

    items: the key; where an int is in `computed`, the item is that array, fed when run.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = rng = np.random.default_rng(seed)
        self.shape = tuple(rng.choice([0, 1, 2, 3, 4, 2, 3], rng.integers(6)).tolist())
        self.dtype = rng.choice(DTYPES).item()
        self.x = rng.integers(1, 6, self.shape).astype(self.dtype)
        self.items = self._items()
        self.bare = len(self.items) == 1 and rng.random() < 0.5
        arrays = [i for i, item in enumerate(self.items) if isinstance(item, np.ndarray)]
        self.computed = [i for i in arrays if rng.random() < 0.4]
        self.masked = any(self.items[i].dtype == bool for i in self.computed)
        masks = [np.ndim(i) > 0 and np.asarray(i).dtype == bool for i in self.items]
        self.open = not any(masks) and rng.random() < 0.2
        try:
            self.value: Any = self.x[self.key()]
        except (IndexError, DeprecationWarning) as error:  # the second: NumPy 2.2, of nothing
            self.value = error
        else:
            self.places = np.arange(self.x.size).reshape(self.shape)[self.key()]
            self.change = rng.choice(CHANGES).item()
            self.values = rng.integers(1, 4, self.value.shape).astype(self.dtype)

    def __repr__(self) -> str:
        found = repr(self.value) if self.fails else self.change
        key = f"{self.dtype}{self.shape}[{self.items}]"
        return f"seed {self.seed}: {key}, fed {self.computed}, {found}"

    @property
    def fails(self) -> bool:
        return isinstance(self.value, Exception)

    def key(self, arrays: Any = None) -> Any:
        """The key, with these arrays in place of those that are fed."""
        items = list(self.items)
        for i, array in zip(self.computed, arrays or (), strict=arrays is not None):
            items[i] = array
        return items[0] if self.bare else tuple(items)

    @property
    def fed(self) -> list[Any]:
        return [self.x, *[self.items[i] for i in self.computed]]

    def changed(self, x: Any) -> Any:
        """x with the values put in at the key, one after the other."""
        flat = x.ravel().copy()
        for place, value in zip(self.places.ravel(), self.values.ravel(), strict=True):
            old = flat[place]
            flat[place] = UFUNCS[self.change](old, value) if self.change != "set" else value
        return flat.reshape(x.shape)

    def added(self, updates: Any) -> Any:
        """Zeros with updates added at the key."""
        y = np.zeros(self.shape, self.dtype)
        np.add.at(y, self.key(), updates)
        return y

    # --- the key

    def _items(self) -> list[Any]:
        rng, rank = self.rng, len(self.shape)
        self.common = rng.choice([0, 1, 2, 2, 3], rng.integers(4)).tolist()
        items: list[Any] = []
        axis = 0
        end = rng.integers(rank + 1) if rng.random() < 0.5 else rank
        dots = rng.integers(end + 1) if rng.random() < 0.6 else None
        while axis <= end:
            if axis == dots:
                items.append(Ellipsis)
                axis, dots = axis + int(rng.integers(rank - end + 1)), None
                end = max(end, axis) if rng.random() < 0.3 else rank
                continue
            if rng.random() < 0.15:
                items.append(self._of_no_axis())
                continue
            if axis >= end and rng.random() > 0.02:
                break
            item, used = self._of_axes(min(axis, max(rank - 1, 0)))
            items.append(item)
            axis += used
        return items

    def _of_no_axis(self) -> Any:
        choices = [None, None, True, False, np.bool_(True), np.array(True), np.array(False)]
        return choices[self.rng.integers(len(choices))]

    def _of_axes(self, axis: int) -> tuple[Any, int]:
        rng, lengths = self.rng, self.shape[axis:] or (3,)
        kind = rng.choice(["int", "slice", "array", "array", "mask"])
        if kind == "int":
            return self._int(lengths[0]), 1
        if kind == "slice":
            return slice(*[self._bound(lengths[0]) for _ in "ab"], self._step()), 1
        if kind == "array":
            return self._array(lengths[0]), 1
        axes = min(len(lengths), int(rng.integers(1, 4)))
        wrong = rng.random() < 0.02
        mask = rng.random([n + wrong for n in lengths[:axes]]) < 0.5
        return mask.tolist() if axes == 1 and mask.size and rng.random() < 0.2 else mask, axes

    def _int(self, length: int) -> Any:
        wrong = self.rng.random() < 0.03 or not length
        value = length if wrong else int(self.rng.integers(-length, length))
        kinds = [int, int, np.int64, np.int8, np.array]
        return kinds[self.rng.integers(len(kinds))](value)

    def _bound(self, length: int) -> Any:
        rng = self.rng
        if rng.random() < 0.4:
            return None
        value = int(rng.integers(-length - 2, length + 3))
        return np.int32(value) if rng.random() < 0.2 else value

    def _step(self) -> Any:
        return [None, 1, 2, 3, -1, -2, -3, -100][self.rng.integers(8)]

    def _array(self, length: int) -> Any:
        rng = self.rng
        shape = self.common[int(rng.integers(len(self.common) + 1)) :]
        shape = [1 if rng.random() < 0.2 else n for n in shape]
        if rng.random() < 0.02:
            shape = [*shape, 5]
        dtype = rng.choice(INTEGERS).item()
        low = 0 if dtype.startswith("u") else -length
        high = max(length + (rng.random() < 0.02), low + 1)
        array = rng.integers(low, high, shape).astype(dtype)
        if array.size and dtype == "int64" and rng.random() < 0.2:
            return array.tolist()
        return array


# --- a program of many cases ---------------------------------------------------------------------


class Checks:
    """Outputs of one program, each with what it should be."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []
        self.feeds: list[Any] = []
        self.outputs: list[Any] = []
        self.wanted: list[tuple[Any, str, Any]] = []

    def expect(self, case: Case, what: str, output: Any, wanted: Any) -> None:
        self.outputs.append(output)
        self.wanted.append((case, what, np.asarray(wanted)))

    def run(self, **options: Any) -> list[str]:
        """What is wrong, in words."""
        found = gg.compile(self.inputs, self.outputs, **options)(*self.feeds)
        wrong = []
        for got, (case, what, wanted) in zip(found, self.wanted, strict=True):
            close = np.allclose(got, wanted, rtol=1e-5) if got.shape == wanted.shape else False
            if not close or got.dtype != wanted.dtype:
                wrong.append(f"{case!r}: {what}: {got!r}, NumPy has {wanted!r}")
        return wrong

    def fed(self, case: Case, arrays: Any) -> list[Any]:
        placeholders = []
        for i, array in enumerate(arrays):
            shape = (None,) * array.ndim if case.open and i == 0 else array.shape
            placeholders.append(gg.placeholder(shape, array.dtype))
        self.inputs += placeholders
        self.feeds += arrays
        return placeholders

    def add(self, case: Case) -> None:
        """The values and gradients of a case that NumPy can do."""
        x, *arrays = self.fed(case, case.fed)
        key = case.key(arrays)
        self.expect(case, "x[key]", y := x[key], case.value)
        self.expect(case, "at.get", gg.at(x)[key].get(), case.value)
        if case.dtype in ("float64", "float32"):
            self._gradients(case, x, key, y)
        if case.dtype == "float64" and not (case.masked and len(case.items) == 1):
            self._change(case, x, key)
        if case.dtype != "bool" and not case.masked and not case.open:
            self._batch(case)

    def _gradients(self, case: Case, x: Any, key: Any, y: Any) -> None:
        squares = (x * x)[key]
        dy = None if None in y.shape else gg.constant(case.values)
        dx = gg.gradients(squares, x, dy)
        weights = np.ones_like(case.values) if dy is None else case.values
        self.expect(case, "dx", dx, case.added(weights) * 2 * case.x)
        self.expect(case, "ddx", gg.gradients(dx, x, unconnected="zero"), case.added(weights) * 2)

    def _change(self, case: Case, x: Any, key: Any) -> None:
        v = self.fed(case, [case.values])[0] if not case.masked else gg.constant(case.values)
        y = getattr(gg.at(x)[key], case.change)(v)
        self.expect(case, case.change, y, case.changed(case.x))
        if case.change not in ("set", "add"):
            return
        weights = np.arange(case.x.size, dtype="float64").reshape(case.shape)
        dx, dv = gg.gradients(gg.sum(y * weights), [x, v], unconnected="zero")
        last = case.places.ravel()[::-1]
        if case.change == "set":
            _, first = np.unique(last, return_index=True)
            counts = np.isin(np.arange(last.size), first)[::-1].reshape(case.places.shape)
        else:
            counts = np.ones(case.places.shape)
        kept = np.ones(case.x.size)
        kept[last] = case.change == "add"
        self.expect(case, f"dx of {case.change}", dx, weights * kept.reshape(case.shape))
        self.expect(case, f"dv of {case.change}", dv, weights[case.key()] * counts)

    def _batch(self, case: Case) -> None:
        """Every example has its own x, and now and then its own arrays: those in reverse."""
        examples = [case.fed, [case.x + 1, *case.fed[1:]]]
        shared = [True] * len(case.computed)
        for i, array in enumerate(case.fed[1:]):
            if array.size and case.seed % 2:
                examples[1][i + 1], shared[i] = array[..., ::-1] if array.ndim else array, False
        fed = [np.stack([e[0] for e in examples])]
        for alone, a, b in zip(shared, examples[0][1:], examples[1][1:], strict=True):
            fed.append(a if alone else np.stack([a, b]))
        axes = (0, *[None if s else 0 for s in shared])
        wanted = [e[0][case.key(e[1:])] for e in examples]
        y = gg.vmap(lambda x, *arrays: x[case.key(arrays)], in_axes=axes)(*self.fed(case, fed))
        self.expect(case, "vmap", y, np.stack(wanted))
        if case.dtype != "float64":
            return

        def dx(x: Any, *arrays: Any) -> Any:
            return gg.gradients((x * x)[case.key(arrays)], x, unconnected="zero")

        sums = []
        for example in examples:
            total = np.zeros(case.shape)
            np.add.at(total, case.key(example[1:]), 1.0)
            sums.append(total * 2 * example[0])
        y = gg.vmap(dx, in_axes=axes)(*self.fed(case, fed))
        self.expect(case, "vmap of dx", y, np.stack(sums))


def refuses(case: Case, **options: Any) -> bool:
    """Whether a key that NumPy refuses is refused, when built or when run."""
    try:
        with gg.Graph():
            checks = Checks()
            x, *arrays = checks.fed(case, case.fed)
            gg.compile(checks.inputs, x[case.key(arrays)], **options)(*checks.feeds)
    except REFUSED:
        return True
    return False


def check(seeds: Any, **options: Any) -> list[str]:
    """What is wrong with the cases of these seeds, in one program."""
    wrong = []
    with gg.Graph():
        checks = Checks()
        for case in map(Case, seeds):
            if case.masked and options.get("backend") == "jax":
                continue
            try:
                if not case.fails:
                    checks.add(case)
                elif options.get("backend") != "jax" and not refuses(case, **options):
                    wrong.append(f"{case!r}: not refused")
            except Exception as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                what = f"{type(error).__name__} at {at.filename}:{at.lineno} {error}"
                wrong.append(f"{case!r}: {what}")
        return wrong + checks.run(**options)


def main() -> int:
    """Run the cases; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--together", type=int, default=50)
    given = parser.parse_args()
    began, count = time.monotonic(), 0
    for first in range(given.seed, given.seed + given.count, given.together):
        try:
            wrong = check(range(first, first + given.together), backend=given.backend)
        except Exception as error:
            wrong = [f"seeds from {first}: {type(error).__name__} {error}"]
        for line in wrong:
            print(line, flush=True)
        count += len(wrong)
    print(f"{count} wrong of {given.count} from {given.seed} on, {time.monotonic() - began:.0f} s")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
