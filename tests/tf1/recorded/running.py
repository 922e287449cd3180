"""Runs cases and says where their results differ from the records.

A case is a function `case_name(tf, np)` that returns a dict. It runs in a graph of its own. Its
record is JSON: an array is `{dtype: nested list}`, a number, string, list or dict is itself, an
error is its class and what its message says.
"""

import json
import re
import warnings
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import numpy as np

from tests.tf1.recorded import cases
from tests.tf1.recorded.saying import Raised

HERE = Path(__file__).parent
GROUPS = sorted(module.name for module in iter_modules(cases.__path__))
LEGACY = HERE.parents[2] / "examples" / "legacy"
EXAMPLES = sorted(path.stem for path in LEGACY.glob("*.py"))
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]\d+)?")
DTYPE = re.compile(r"bool|(u?int|float|complex)\d+|object|<U\d+|\|S\d+")
TOLERANCES = {"float16": (1e-2, 1e-3), "float32": (3e-5, 1e-5)}  # of the largest element


def cases_of(group):
    """{name: case} of the functions `case_...` in one module of cases."""
    module = import_module(f"{cases.__name__}.{group}")
    found = {name: f for name, f in vars(module).items() if name.startswith("case_")}
    return {name.removeprefix("case_"): f for name, f in found.items()}


def result_of(case, tf):
    """What a case returns in a graph of its own, as its record would be written."""
    with warnings.catch_warnings(), tf.Graph().as_default():
        warnings.simplefilter("ignore")
        tf.set_random_seed(1)
        return encoded(case(tf, np))


def records_of(group):
    """{name: record} of a group."""
    return json.loads((HERE / "records" / f"{group}.json").read_text())


def write_records(group, records):
    """Write the records of a group, one line a case."""
    lines = [f"{json.dumps(name)}: {json.dumps(record)}" for name, record in records.items()]
    (HERE / "records" / f"{group}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def printed_by(example):
    """What an example printed under TensorFlow."""
    return (HERE / "examples" / f"{example}.txt").read_text()


def write_printed(example, text):
    """Record what an example prints."""
    (HERE / "examples" / f"{example}.txt").write_text(text)


def same_figures(record, text):
    """Whether two texts say the same, but for the last digits of their numbers."""
    a, b = (np.array(NUMBER.findall(t), float) for t in (record, text))
    same_words = NUMBER.sub("", record) == NUMBER.sub("", text)
    return same_words and a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=2e-4)


def encoded(value):
    """A result as JSON can say it."""
    match value:
        case np.generic():
            return {str(value.dtype): _numbers(np.asarray(value))}
        case None | bool() | str() | int() | float():
            return value
        case bytes():
            return {"bytes": value.decode("latin1")}
        case dict():
            return {str(k): encoded(v) for k, v in value.items()}
        case Raised():
            return {"raised": value.classes, "says": value.says}
        case np.ndarray():
            return {str(value.dtype): _numbers(value)}
        case list() | tuple():
            return [encoded(v) for v in value]
    raise TypeError(f"a case returned a {type(value).__name__}: {value!r}")


def _numbers(array):
    """The elements as nested lists, floats with as many digits as their dtype has."""
    if array.dtype.kind == "f":
        array = array.astype(str).astype("float64")
    if array.dtype.kind in "SOU":
        decode = np.vectorize(lambda v: v.decode("latin1") if isinstance(v, bytes) else str(v))
        array = decode(array) if array.size else array.astype(str)
    return array.tolist()


def is_error(record):
    """Whether this is the record of an error."""
    return isinstance(record, dict) and record.keys() == {"raised", "says"}


def differences(record, result, at=""):
    """Where a result is not what was recorded, one line each."""
    if is_error(record):
        return _differences_of_errors(record, result, at)
    if type(record) is not type(result):
        return [f"{at}: {record!r} was recorded, got {result!r}"]
    if isinstance(record, dict) and (dtype := _dtype(record)):
        return _differences_of_arrays(dtype, record, result, at)
    if isinstance(record, dict):
        missing = [
            f"{at}.{k}: one has it, the other has not" for k in record.keys() ^ result.keys()
        ]
        return missing + [
            line
            for k in record.keys() & result.keys()
            for line in differences(record[k], result[k], f"{at}.{k}")
        ]
    if isinstance(record, list) and len(record) == len(result):
        pairs = enumerate(zip(record, result))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{at}[{i}]")]
    return [] if record == result else [f"{at}: {record!r} was recorded, got {result!r}"]


def _dtype(record):
    """The dtype of a recorded array, else None."""
    (key, *others) = record or [""]
    return key if not others and DTYPE.fullmatch(key) else None


def _differences_of_arrays(dtype, record, result, at):
    if list(record) != list(result):
        return [f"{at}: {record} was recorded, got {result}"]
    ((_, a),), ((_, b),) = record.items(), result.items()
    rtol, atol = TOLERANCES.get(dtype, (1e-9, 1e-11))
    a, b = np.array(a), np.array(b)
    if a.dtype.kind == "f" and a.size:
        atol *= max(1.0, np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
    same = a.shape == b.shape and (
        np.allclose(a, b, rtol, atol, equal_nan=True) if a.dtype.kind in "fc" else (a == b).all()
    )
    return [] if same else [f"{at}: {dtype} {a.tolist()} was recorded, got {b.tolist()}"]


def _differences_of_errors(record, result, at):
    """An error may be of a subclass, and has to say what the recorded one says."""
    name = record["raised"][0]
    if not is_error(result):
        return [f"{at}: {name} was recorded, got {result!r}"]
    if name not in result["raised"]:
        return [f"{at}: {name} was recorded, got {result['raised'][0]}"]
    return [
        f"{at}: the message has {keyword!r}: {said}, recorded; not so here"
        for keyword, said in record["says"].items()
        if said and not result["says"][keyword]
    ]
