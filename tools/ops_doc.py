"""docs/ops.md: every op type with what holds of it, and what gradients are where there is a choice.

python tools/ops_doc.py            print it
python tools/ops_doc.py --write    write the document

All is found out: from what the ops say of themselves, and by trying their samples. It takes SciPy,
llvmlite and JAX, and a machine with FMA.
"""

import argparse
import sys
import types
import warnings
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import jax
import numpy as np

import graphgrad as gg
from graphgrad.execute.llvm.backend import LlvmBackend
from graphgrad.execute.loading import load_backend
from graphgrad.ir.build import build
from graphgrad.ir.onnx import NoOnnxForm
from graphgrad.ir.op import OP_TYPES, Op
from graphgrad.ir.program import Program
from graphgrad.ir.types import tensor_type, type_of_array
from graphgrad.lower.alias import is_view
from graphgrad.lower.decompose import decompose
from graphgrad.onnx.writing.forms import Forms
from graphgrad.onnx.writing.values import OnnxBlock
from graphgrad.ops.base import Cast
from graphgrad.ops.documented import sections

sys.path.insert(0, str(Path(__file__).resolve().parent))
import conventions

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "ops.md"
HEAD = """# Op reference

All op types, by topic; each topic is a file in `graphgrad/ops/`. An op type is the name by which
`gg.gradient_override_map({{"Relu": rule}})` and `graph.select(type="Relu")` find a node. This page
is written by `python tools/ops_doc.py --write`, which tests every entry on the samples of the op.
There are {ops} op types and {functions} public functions that use them.
[The last section](#ties-kinks-zeros-and-singular-points) lists the gradients at ties, kinks and
singular points.

- **built by**: the functions that build the op. If no function builds it, *gradient of* an op or
  *within* a module of graphgrad says where it comes from.
- **types**: the types of its data: bool, int (signed and unsigned), float (16, 32 and 64 bits),
  complex (64 and 128 bits). Functions accept more types than ops, since they cast first.
- **order**: the highest order for which `tests/laws/` compares gradients with finite differences.
  Gradients are built from ops, so higher orders exist too. *linear*: the gradient is constant.
  *zero*: the gradient is zero wherever it is defined. *none*: there is no gradient.
- **vmap**: *whole*: a batch is computed by a few nodes; *loop*: one example at a time.
- **LLVM**: *compiled*: compiled for real numbers, alone or fused with its neighbours; *partly*:
  some forms of the op are compiled; *view*: no computation; *NumPy*: run by NumPy.
- **JAX**: *traced* into XLA; *host*: a host callback; *no*: an error.
- **ONNX**: the ONNX operator, or *several*.

**float16 and bfloat16.** Ops that add 16-bit numbers accumulate in float32 and round once, at the
end, on every backend: sums, means, matrix products, convolutions, pools, norms, cumulative sums,
and accumulated gradients (biases, embeddings, cotangents). All float16 ops except element-wise ones
compute in float32, including ops defined outside graphgrad; an element-wise op rounds its result.
`var`, `std`, `average` and the norms of `gg.nn`, which consist of several ops, use float32
internally. Sums of 32-bit and 64-bit numbers accumulate in their own dtype.

`-` means that there is nothing to test: the op runs other programs, or concerns the graph only.
"""
POINTS = """
## Ties, kinks, zeros and singular points

Where a derivative does not exist, or its formula is 0 / 0, each library chooses a value. The table
has the gradient of the sum of the expression in graphgrad, TensorFlow {tensorflow}, PyTorch
{torch} and JAX {jax}, in float64, as measured by `python tools/conventions.py --write`.
Results that differ from graphgrad's are bold. *none*: no gradient; *error*: the call raises an
error; `-`: the library has no such function.

| expression | at | graphgrad | TensorFlow | PyTorch | JAX |
|---|---|---|---|---|---|
"""
TRIED = {
    "bool": ("bool",),
    "int": ("int8", "int64", "uint8", "uint64"),
    "float": ("float16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
}
LLVM, JAX = LlvmBackend(), load_backend("jax")


# --- who builds what -----------------------------------------------------------------------------


def public_functions():
    """function -> the name that users have for it, of those defined among the ops: its own name,
    where that is public, not an alias."""
    found = {}
    offered = [(f"gg.{n}", getattr(gg, n)) for n in dir(gg)]
    inner = [(n, m) for n, m in offered if isinstance(m, types.ModuleType) and m is not gg.extend]
    for path, module in [("gg", gg), *inner]:
        for attribute in dir(module):
            value = getattr(module, attribute)
            if isinstance(value, types.FunctionType) and is_of_ops(value):
                own = attribute == value.__name__ != found.get(value, "").rpartition(".")[2]
                if value not in found or own:
                    found[value] = f"{path}.{attribute}"
    return found


def is_of_ops(thing):
    """Whether it is defined among the ops."""
    return thing.__module__.startswith("graphgrad.ops.")


def names_in(code):
    """The names that code reads, that of functions within it too."""
    inner = [names_in(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*inner)


def named_in(function, owner=None):
    """(op types, functions among the ops) that a function names; owner: the class that it is of."""
    classes, helpers = set(), []
    for name in sorted(names_in(function.__code__)):
        value = function.__globals__.get(name) or vars(owner or object).get(name)
        cls = value if isinstance(value, type) else type(value)
        if issubclass(cls, Op):
            classes.add(cls)
        elif isinstance(value, types.FunctionType) and is_of_ops(value):
            helpers.append(value)
    return classes, helpers


def built_by(function, near, stop, owner=None):
    """The op types that a function names, and those that helpers of it do.

    near: whether helpers of its own file alone count. stop: functions that answer for themselves.
    owner: the class whose other methods it calls.
    """
    found, seen, left = set(), {function}, [function]
    while left:
        classes, helpers = named_in(left.pop(), owner)
        found |= classes
        fresh = [h for h in helpers if h not in seen and h not in stop]
        seen.update(fresh)
        left += [h for h in fresh if not near or h.__module__ == function.__module__]
    return found


@cache
def makers():
    """op type -> where it comes from, in words: the nearest answer that there is."""
    public = public_functions()
    found = defaultdict(list)
    methods = {m: f"{c}.{m.__name__}" for c, m in public_methods()}
    for functions in (public, methods):
        add(found, ((n, of_its_file(f, named_in(f)[0])) for f, n in functions.items()))
        add(found, ((n, of_its_file(f, built_by(f, True, public))) for f, n in functions.items()))
    add(found, ((n, built_by(f, False, public)) for f, n in public.items()))
    add(found, ((f"gradient of {c.type}", built_by(c.vjp, False, public, c)) for c in ops()))
    add(found, ((f"within `{name}`", named) for name, named in named_by_module()))
    return found


def add(found, answers):
    """The answers for the op types that have none yet."""
    missing = {cls for cls in ops() if cls not in found}
    for name, classes in answers:
        for cls in classes & missing:
            if name != f"gradient of {cls.type}":
                found[cls].append(name)


def of_its_file(function, classes):
    """Those that are in the file of the function."""
    return {c for c in classes if c.__module__ == function.__module__}


def public_methods():
    """(class, method) of the classes among the ops that are no ops: `gg.at(x)[key].set`."""
    for module in sorted({c.__module__ for c in ops()}):
        for name, cls in sorted(vars(import_module(module)).items()):
            if isinstance(cls, type) and cls.__module__ == module and not issubclass(cls, Op):
                for attribute, method in vars(cls).items():
                    if isinstance(method, types.FunctionType) and attribute[0] != "_":
                        yield name, method


def named_by_module():
    """(module, op types that it names) of what differentiates and marks."""
    for found in walk_packages(gg.__path__, "graphgrad."):
        floor = found.name.removeprefix("graphgrad.")
        if floor.startswith(("differentiate.", "regions.", "rules.")):
            values = list(vars(import_module(found.name)).values())
            yield floor, {v if isinstance(v, type) else type(v) for v in values}


# --- what holds of an op -------------------------------------------------------------------------


def ops():
    """The op types of the library, in the order of their files and within them."""
    ours = [c for c in OP_TYPES.values() if is_of_ops(c)]
    order = {c: i for i, c in enumerate(ours)}
    return sorted(ours, key=lambda c: (c.__module__, order[c]))


@cache
def samples(cls):
    """Its samples with arrays."""
    rng = np.random.default_rng(0)
    return [(op, [np.asarray(a) for a in arrays]) for op, arrays in cls.samples(rng)]


def placed(op, arrays):
    """(inputs, node): the op on placeholders, in a graph of its own."""
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        return xs, build(op, tuple(xs))


def takes(cls):
    """The kinds of number that it takes for its data: those inputs that take the most."""
    best = []
    for op, arrays in samples(cls):
        for varied in dict.fromkeys(a.dtype for a in arrays):
            kinds = [
                kind
                for kind, dtypes in TRIED.items()
                if all(computes(op, arrays, varied, d) for d in dtypes)
                or (kind == "float" and computes(op, arrays, varied, "float32"))
            ]
            best = max(best, kinds, key=len)
    return ", ".join(best) if len(best) < len(TRIED) else "all"


def computes(op, arrays, varied, dtype):
    """Whether it does what it promises where the inputs of one dtype have another."""
    given = [converted(a, dtype) if a.dtype == varied else a for a in arrays]
    try:
        promised = op.infer(*[tensor_type(a.shape, a.dtype) for a in given])
        made = op.kernel(np, *given)
    except (gg.GraphGradError, TypeError, ValueError, LookupError, ArithmeticError):
        return False
    made = made if isinstance(made, tuple) else (made,)
    return all(np.asarray(y).dtype == t.dtype for y, t in zip(made, promised, strict=True))


def converted(a, dtype):
    """The same numbers in another dtype, as far as it has them; no index becomes a huge one."""
    return (np.abs(a) if np.dtype(dtype).kind in "bu" else a).astype(dtype)


def order(cls):
    """Up to which order it has gradients, as the laws take them."""
    if not cls.differentiable:
        return "none"
    if cls.traits.stepwise:
        return "zero"
    found = {built_order(op, arrays) for op, arrays in samples(cls) if op.differentiable}
    linear = any(op.linear == "joint" for op, _ in samples(cls))
    best = next((word for word in ("2", "1", "zero", "none") if word in found), "-")
    return f"{best}, linear" if linear and best == "2" else best


def built_order(op, arrays):
    """How often differentiating it goes through, of at most two times."""
    xs, node = placed(op, arrays)
    wrt = [x for i, x in enumerate(xs) if x.type.differentiable and i not in op.derivative.jumps]
    ys = [y for y in node.outputs if y.type.differentiable]
    if not wrt or not ys:
        return "none"
    with xs[0].graph:
        for before in ("none", "1"):
            try:
                squares = [gg.real(y * y) for y in ys]
                ys = [d for d in gg.gradients(squares, wrt) if d is not None]
            except gg.GraphGradError:
                return before
            if not ys:
                return "zero"
    return "2"


def batching(cls):
    """Whether a batch is computed as a whole."""
    looped = []
    for op, arrays in samples(cls):
        if arrays:
            with gg.Graph() as graph:
                xs = [gg.placeholder((3, *a.shape), a.dtype) for a in arrays]
                gg.vmap(lambda *ts, op=op: list(build(op, ts).outputs))(*xs)
                looped.append(any(n.type == "PerExample" for n in graph.nodes))
    return "-" if not looped else "loop" if all(looped) else "partly" if any(looped) else "whole"


def compiled(cls):
    """Whether LLVM code computes it."""
    real = [(op, arrays) for op, arrays in samples(cls) if not has_complex(arrays)]
    if not samples(cls):
        return "-"
    if all(is_view(placed(op, arrays)[1]) for op, arrays in samples(cls)):
        return "view"
    found = [is_compiled(op, arrays) for op, arrays in real]
    return "NumPy" if not any(found) else "compiled" if all(found) else "partly"


def has_complex(arrays):
    """Whether some are complex, for which no code is made."""
    return any(a.dtype.kind == "c" for a in arrays)


def is_compiled(op, arrays):
    """Whether all its parts run as loops or compiled functions, or are views."""
    xs, node = placed(op, arrays)
    nodes = decompose(Program(tuple(xs), node.outputs)).nodes
    inner = [n for n in nodes if n.inputs]
    return bool(inner) and all(is_view(n) or LLVM._compiles(n) for n in inner)


def traced(cls):
    """Whether JAX traces it, with some attributes or others."""
    some = list(dict(samples(cls)).items())[:3]
    found = {trace(op, arrays) for op, arrays in some}
    return next((word for word in ("no", "host", "traced") if word in found), "-")


def trace(op, arrays):
    """What JAX makes of its kernel."""
    with jax.enable_x64(True):
        try:
            made = jax.make_jaxpr(JAX.kernels.of(op))(*arrays)
        except (NotImplementedError, TypeError, ValueError, gg.GraphGradError):
            return "no"
    return "host" if "callback[" in str(made) else "traced"


def in_onnx(cls):
    """The operator of ONNX that it is, or that it takes several."""
    found = {written(op, arrays) for op, arrays in samples(cls) if not has_complex(arrays)}
    if not samples(cls):
        return "-"
    if not found or "no" in found:
        return "no"
    return found.pop() if len(found) == 1 else "several"


def written(op, arrays):
    """The operator of ONNX that a sample is."""
    types = tuple(map(type_of_array, arrays))
    try:
        if any(t.complex for t in op.infer(*types)):
            return "several" if isinstance(op, Cast) else "no"
        calls = Forms(OnnxBlock()).of(op, types).calls
    except NoOnnxForm:
        return "no"
    return calls[0].operator if len(calls) == 1 and not calls[0].domain else "several"


# --- the page ------------------------------------------------------------------------------------


def row(cls):
    """One line of a table."""
    made = makers()[cls]
    shown = [m if " " in m else f"`{m}`" for m in made[:3]]
    cells = [
        f"`{cls.type}`",
        summary(cls),
        ", ".join(shown) + (", ..." if made[3:] else ""),
        takes(cls),
        order(cls),
        batching(cls),
        compiled(cls),
        traced(cls),
        in_onnx(cls),
    ]
    return "| " + " | ".join(escaped(c) for c in cells) + " |"


def summary(cls):
    """The first paragraph of its docstring, of a long one the first sentence; a short gradient."""
    what = " ".join(cls.__doc__.partition("\n\n")[0].partition("Gradient:")[0].split())
    if len(what) > 120:
        what = what.partition(". ")[0].rstrip(".") + "."
    gradient = " ".join(sections(cls).get("Gradient", "none.").split())
    whole = f"{what} Gradient: {gradient}"
    return whole if len(whole) <= 120 and gradient != "none." else what


def escaped(text):
    """As a cell of a table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")


def tables():
    """One table a file."""
    by_file = defaultdict(list)
    for cls in ops():
        by_file[cls.__module__].append(cls)
    named = {name for names in makers().values() for name in names}
    composed = defaultdict(list)
    for function, name in public_functions().items():
        if name not in named:
            composed[function.__module__].append(name)
    for module in sorted({*by_file, *composed}):
        about = import_module(module).__doc__.partition("\n")[0]
        yield f"\n## {module.removeprefix('graphgrad.ops.').replace('.', ', ')}\n\n{about}\n"
        if by_file[module]:
            yield "\n| op type | description | built by | types | order | vmap | LLVM | JAX | "
            yield "ONNX |"
            yield "\n|---|---|---|---|---|---|---|---|---|\n"
            yield from (row(cls) + "\n" for cls in by_file[module])
        if composed[module]:
            names = ", ".join(f"`{n}`" for n in composed[module])
            yield f"\nFunctions that use other ops: {names}.\n"


def document():
    """The whole page."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        head = HEAD.format(ops=len(ops()), functions=len(public_functions()))
        return "".join([head, *tables(), POINTS.format(**conventions.versions()), *points()])


def points():
    """The table of conventions."""
    for entry in conventions.entries():
        mine, *theirs = entry.gradients
        others = [t if t in (mine, "-") else f"**{t}**" for t in theirs]
        cells = [f"`{entry.expression}`", f"`{entry.at}`", mine, *others]
        yield "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        DOCUMENT.write_text(document())
    else:
        print(document(), end="")
