"""Mutants: one line of the core changed at a time, and whether the tests near it see the change.

python tools/mutate.py --count 300 --seed 1 --jobs 2
python tools/mutate.py --only differentiate/sweep.py   those of one file, or of a line: sweep.py:48
python tools/mutate.py --again FILE                    those that an earlier run printed into FILE
python tools/mutate.py --sources graphgrad/files --tests tests/files --marks "not slow and not ci"

The last one takes minutes, since most of the time goes into running each test once: name the tests
that cover the sources. A survivor of some of the tests may be killed by others: try it with all.

Nothing is written to the checkout. The tests are collected once, by one process, which then runs
each test once to see which lines it executes and how long it takes. A mutant is a fork of that
process in which one function has other code; it runs the tests that execute the mutated line,
fastest first, until one fails or the budget is spent. A test that hangs kills its mutant.
Caches of functions of the sources are emptied before each test that is watched, and for each
mutant. Compiled code is not kept on disk, unless GRAPHGRAD_CACHE names a folder.

A survivor is a missing test, or no change of behaviour at all: read each.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import multiprocessing
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [f"graphgrad/{name}" for name in ("differentiate", "regions", "ir", "lower")]
SOURCES += ["graphgrad/optimise", "graphgrad/files"]
TESTS = [f"tests/{name}" for name in ("differentiate", "regions", "ir", "lower", "rules")]
TESTS += [f"tests/{name}" for name in ("optimise", "files", "survival", "fuzz")]
TESTS += [f"tests/execute/test_{name}.py" for name in ("planned", "numpy_backend", "arena")]
TESTS += [f"tests/execute/test_{name}.py" for name in ("jax_processes", "jax_state")]
TESTS += ["tests/laws/test_vmap.py", "tests/onnx_models/test_load.py", "tests/ops/test_bfloat16.py"]
TESTS += ["tests/laws/test_backends.py", "tests/commands/test_files.py"]
TESTS += ["tests/execute/test_compiled_loops.py"]
TESTS += ["tests/inspect/test_summary.py", "tests/test_compile.py"]
CACHED = type(cache(len))
MEMORY = 4 << 30  # bytes that a mutant may take beyond what is there

# --- what is changed -----------------------------------------------------------------------------

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
SKIPPED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.FunctionDef, ast.ClassDef, ast.Lambda)
"""In these nothing is changed by what looks at the function around: texts, and other functions."""


@dataclass(frozen=True)
class Spot:
    """A place in a syntax tree: a field of a node, or an item of a field that is a list."""

    parent: ast.AST
    name: str
    index: int | None

    @property
    def node(self) -> Any:
        """What is there."""
        found = getattr(self.parent, self.name)
        return found if self.index is None else found[self.index]

    def put(self, node: ast.AST) -> None:
        """Have another node here."""
        if self.index is None:
            setattr(self.parent, self.name, node)
        else:
            getattr(self.parent, self.name)[self.index] = node


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    path       of the file, from the root
    line       where what is changed begins, and
    column     where in it
    statement  where the statement begins that it is in
    text       what stands there, and what the mutant has
    spot       where it is in the tree
    new        what is put there
    """

    path: str
    line: int
    column: int
    statement: int
    text: str
    tree: ast.Module = field(repr=False)
    spot: Spot = field(repr=False)
    new: ast.AST = field(repr=False)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.text}"

    def code(self) -> CodeType:
        """The module with the change."""
        old = self.spot.node
        self.spot.put(ast.fix_missing_locations(ast.copy_location(_beside(self.new, old), old)))
        try:
            return compile(self.tree, os.path.abspath(self.path), "exec")
        finally:
            self.spot.put(old)


def _beside(new: ast.AST, old: ast.AST) -> ast.AST:
    """The new node, with the old one where it is never run: functions keep their closures."""
    yes = ast.Constant(True)
    if isinstance(new, ast.expr) and isinstance(old, ast.expr):
        return ast.IfExp(yes, new, old)
    if isinstance(new, ast.stmt) and isinstance(old, ast.stmt):
        return ast.If(yes, [new], [old])
    return new


def files_of(sources: Iterable[str]) -> list[Path]:
    """The files that are meant: those named, and those in a folder however deep."""
    roots = [Path(s) for s in sources]
    return sorted(p for root in roots for p in ([root] if root.is_file() else root.rglob("*.py")))


def mutants_of(path: str, text: str) -> list[Mutant]:
    """Every mutant of a file, from its top to its end."""
    tree = ast.parse(text)
    found = []
    for function in _functions(tree):
        for spot, statement in _spots(function):
            for new in changes(spot, function):
                line = getattr(spot.node, "lineno", statement)
                what = f"{_shown(spot.node)}  ->  {_shown(new)}"
                column = getattr(spot.node, "col_offset", 0) + 1
                found.append(Mutant(path, line, column, statement, what, tree, spot, new))
    return found


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))


def _spots(function: ast.FunctionDef) -> Iterator[tuple[Spot, int]]:
    """Every place in the body of a function, not in functions inside it, with its statement."""
    stack = [(Spot(function, "body", i), 0) for i in reversed(range(len(function.body)))]
    while stack:
        spot, statement = stack.pop()
        if isinstance(spot.node, SKIPPED):
            continue
        if isinstance(spot.node, ast.stmt):
            statement = spot.node.lineno
        yield spot, statement
        stack.extend((inner, statement) for inner in reversed(list(_inside(spot.node))))


def _inside(node: ast.AST) -> Iterator[Spot]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment", "ctx") or _is_strict(node):
            continue
        if isinstance(value, ast.AST):
            yield Spot(node, name, None)
        elif isinstance(value, list):
            yield from (Spot(node, name, i) for i, v in enumerate(value) if isinstance(v, ast.AST))


def _is_strict(node: ast.AST) -> bool:
    """Whether it is the `strict=` of a zip, which asserts."""
    return isinstance(node, ast.keyword) and node.arg == "strict"


def _shown(node: Any) -> str:
    """The first line of a node."""
    text = ast.unparse(node).strip()
    return text.partition("\n")[0][:100]


def changes(spot: Spot, function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What may stand in place of a node; none of them is the same program for sure."""
    node: Any = spot.node
    if isinstance(node, ast.expr) and _is_condition(spot):
        yield from _other_conditions(node, spot.parent)
    for kind, change in CHANGES:
        if isinstance(node, kind):
            yield from change(node, function)


def _is_condition(spot: Spot) -> bool:
    loops = isinstance(spot.parent, ast.comprehension) and spot.name == "ifs"
    return loops or (
        isinstance(spot.parent, ast.If | ast.While | ast.IfExp) and spot.name == "test"
    )


def _other_conditions(node: ast.expr, parent: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Constant):
        return
    if not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp):
        yield ast.UnaryOp(ast.Not(), node)
    if not isinstance(parent, ast.While):  # it would run for ever
        yield ast.Constant(True)
    yield ast.Constant(False)


def _compare(node: ast.Compare, function: ast.FunctionDef) -> Iterator[ast.AST]:
    for i, op in enumerate(node.ops):
        if type(op) in COMPARED:
            new = copy.copy(node)
            new.ops = [*node.ops[:i], COMPARED[type(op)](), *node.ops[i + 1 :]]
            yield new


def _boolean(node: ast.BoolOp, function: ast.FunctionDef) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    for i in range(len(node.values)):
        rest = node.values[:i] + node.values[i + 1 :]
        yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _negation(node: ast.UnaryOp, function: ast.FunctionDef) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not | ast.USub):
        yield node.operand


def _binary(node: ast.BinOp, function: ast.FunctionDef) -> Iterator[ast.AST]:
    if type(node.op) in COMPUTED and not _is_text(node):
        yield ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right)


def _is_text(node: ast.BinOp) -> bool:
    parts = (node.left, node.right)
    return any(
        isinstance(p, ast.JoinedStr) or (isinstance(p, ast.Constant) and isinstance(p.value, str))
        for p in parts
    )


def _constant(node: ast.Constant, function: ast.FunctionDef) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1 if node.value != 1 else 0)


def _dropped(node: ast.stmt, function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Calls, updates of what is indexed, deletions and sums in place, left out."""
    docstring = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call)
    plain = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Subscript)
    if not docstring and not plain:
        yield ast.Pass()


def _returned(node: ast.Return, function: ast.FunctionDef) -> Iterator[ast.AST]:
    """None instead, or the other truth."""
    promised = "None" if function.returns is None else ast.unparse(function.returns)
    if node.value is None or isinstance(node.value, ast.Constant):
        return
    if "bool" in promised:
        yield ast.Return(ast.UnaryOp(ast.Not(), node.value))
    else:
        yield ast.Return(ast.Constant(None))


def _jump(node: ast.stmt, function: ast.FunctionDef) -> Iterator[ast.AST]:
    yield ast.Break() if isinstance(node, ast.Continue) else ast.Continue()


def _slice(node: ast.Slice, function: ast.FunctionDef) -> Iterator[ast.AST]:
    if node.lower is not None:
        yield ast.Slice(None, node.upper, node.step)
    if node.upper is not None:
        yield ast.Slice(node.lower, None, node.step)


Change = Callable[[Any, ast.FunctionDef], Iterator[ast.AST]]

CHANGES: list[tuple[Any, Change]] = [
    (ast.Compare, _compare),
    (ast.BoolOp, _boolean),
    (ast.UnaryOp, _negation),
    (ast.BinOp, _binary),
    (ast.Constant, _constant),
    (ast.Expr | ast.Assign | ast.AugAssign | ast.Delete, _dropped),
    (ast.Return, _returned),
    (ast.Continue | ast.Break, _jump),
    (ast.Slice, _slice),
]


def sampled(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """At random, from every file its share and at least one."""
    of_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        of_file[mutant.path].append(mutant)
    rng = random.Random(seed)
    found: list[Mutant] = []
    for here in of_file.values():
        share = min(len(here), -(-count * len(here) // len(mutants)))
        found += sorted(rng.sample(here, share), key=lambda m: m.line)
    return found


# --- putting a mutant in place -------------------------------------------------------------------


def install(mutant: Mutant) -> None:
    """Give the functions of a module the code that they have in the mutant.

    What is run when a module is imported stays as it was.
    """
    fresh = {(c.co_qualname, c.co_firstlineno): c for c in _codes(mutant.code())}
    path = os.path.abspath(mutant.path)
    changed = 0
    gc.unfreeze()  # or what was there before the tests is not among these
    for f in gc.get_objects():
        if type(f) is FunctionType and f.__code__.co_filename == path:
            new = fresh.get((f.__code__.co_qualname, f.__code__.co_firstlineno))
            if new is not None and new != f.__code__:
                f.__code__ = new
                changed += 1
    if not changed:
        raise LookupError(f"no function runs {mutant}")


def caches_of(sources: Iterable[str]) -> list[Any]:
    """The caches of what the modules of these files define."""
    files = {str(p.absolute()) for p in files_of(sources)}
    gc.unfreeze()
    cached: list[Any] = [f for f in gc.get_objects() if type(f) is CACHED]
    return [f for f in cached if getattr(sys.modules.get(f.__module__), "__file__", "") in files]


def _codes(code: CodeType) -> Iterator[CodeType]:
    stack = [code]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(c for c in found.co_consts if isinstance(c, CodeType))


# --- which tests execute what --------------------------------------------------------------------

Lines = set[tuple[str, int]]


class Watch:
    """Which lines of the sources are executed."""

    def __init__(self, sources: Iterable[str]) -> None:
        self.files = {str(p.absolute()) for p in files_of(sources)}
        self.lines: Lines = set()
        self._mine: dict[CodeType, int] = {}

    def start(self) -> Watch:
        """Look on, here and in threads to come."""
        threading.settrace(self._called)
        sys.settrace(self._called)
        return self

    def stop(self) -> None:
        """Look away."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _called(self, frame: Any, event: str, arg: Any) -> Any:
        code = frame.f_code
        calls = self._mine.get(code)
        if calls is None:
            calls = 0 if code.co_filename in self.files else -1
        if calls < 0 or calls > 200:  # what it does it has shown
            self._mine[code] = calls
            return None
        self._mine[code] = calls + 1
        return self._line(frame, event, arg)

    def _line(self, frame: Any, event: str, arg: Any) -> Any:
        at = (frame.f_code.co_filename, frame.f_lineno)
        if at not in self.lines:  # there may be more to come
            self.lines.add(at)
            self._mine[frame.f_code] = 0
        return self._line


@dataclass
class Seen:
    """What a test executes, and for how long; passed: on the code as it is."""

    lines: Lines
    seconds: float
    passed: bool


class Tests:
    """A plugin that runs single tests of a session; `work` gets it when they are collected.

    at_import  looks on until then
    """

    def __init__(self, work: Callable[[Tests], None], at_import: Watch) -> None:
        self.work = work
        self.at_import = at_import
        self.items: dict[str, pytest.Item] = {}
        self.failed = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Work in place of the session."""
        self.at_import.stop()
        self.items = {item.nodeid: item for item in session.items}
        self.work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Learn of a failure, of a fixture too."""
        self.failed = self.failed or report.failed

    def pass_(self, name: str, following: str) -> bool:
        """Run a test, and what follows it before another one; whether it passes."""
        self.failed = False
        item, after = self.items[name], self.items.get(following)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        return not self.failed


def seen_by(tests: Tests, names: Sequence[str], sources: Sequence[str]) -> dict[str, Seen]:
    """What each of these tests executes, with nothing in the caches of those before it."""
    found = {}
    caches = caches_of(sources)
    for name, following in pairwise((*names, "")):
        for cached in caches:
            cached.cache_clear()
        watch = Watch(sources).start()
        began = time.perf_counter()
        passed = tests.pass_(name, following)
        watch.stop()
        found[name] = Seen(watch.lines, time.perf_counter() - began, passed)
    return found


def map_of(tests: Tests, sources: Sequence[str], jobs: int, kept: Path) -> dict[str, Seen]:
    """What every test executes; what the file `kept` knows of the same sources is not run again."""
    digest = sha256()
    for path in files_of(sources):
        digest.update(path.read_bytes())
    known: dict[str, Seen] = {}
    if kept.exists():
        then, found = pickle.loads(kept.read_bytes())
        known = found if then == digest.digest() else {}
    missing = [name for name in tests.items if name not in known]
    parts = [missing[i::jobs] for i in range(jobs)]
    runs = [Run(lambda part=part: seen_by(tests, part, sources)) for part in parts if part]
    for run in runs:
        known.update(run.result(None) or {})
    kept.write_bytes(pickle.dumps((digest.digest(), known)))
    return known


# --- running -------------------------------------------------------------------------------------


class Run:
    """A call in a fork of this process."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.end, end = multiprocessing.Pipe(duplex=False)
        self.pid = os.fork()
        if not self.pid:
            _answer(call, end)
        end.close()

    def result(self, seconds: float | None) -> Any:
        """What the call returned; None where it died or took longer. Raises what it raised."""
        try:
            found = self.end.recv() if self.end.poll(seconds) else None
        except EOFError:
            return None
        finally:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.end.close()
        if isinstance(found, Exception):
            raise found
        return found


def _answer(call: Callable[[], Any], end: Connection) -> None:
    """Send what a call returns or raises, and be gone: no handler of the parent runs here."""
    try:
        os.setpgid(0, 0)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        end.send(call())
    except Exception as error:
        end.send(error)
    finally:
        os._exit(0)


def killer_of(tests: Tests, mutant: Mutant, names: Sequence[str], sources: Sequence[str]) -> str:
    """The first test that fails with a mutant; "" where none does."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    install(mutant)
    for cached in caches_of(sources):
        cached.cache_clear()
    for name, following in pairwise((*names, "")):
        if not tests.pass_(name, following):
            return name
    return ""


def comes_late(mutant: Mutant, at_import: Lines, seen: dict[str, Seen]) -> bool:
    """Whether what it changes is run at import, before there are mutants, and in no test."""
    here = (os.path.abspath(mutant.path), mutant.statement)
    return here in at_import and not near(mutant, seen, 0)


def near(mutant: Mutant, seen: dict[str, Seen], budget: float) -> list[str]:
    """The tests that execute the line of a mutant, fastest first, as far as the budget goes."""
    path, good = os.path.abspath(mutant.path), [(s, name) for name, s in seen.items() if s.passed]
    for line in (mutant.line, mutant.statement):  # the first may have no code of its own
        found = sorted((s.seconds, name) for s, name in good if (path, line) in s.lines)
        if found:
            break
    chosen: list[str] = []
    for seconds, name in found:
        budget -= seconds
        if budget < 0 and chosen:
            break
        chosen.append(name)
    return chosen


def tried(
    tests: Tests, mutants: Sequence[Mutant], seen: dict[str, Seen], options: argparse.Namespace
) -> Iterator[tuple[Mutant, str, int]]:
    """Each mutant with the test that kills it ("": it survives), and how many tests are near.

    A test that fails by itself on the code as it is kills nothing, and is not asked again.
    """
    waiting = list(reversed(mutants))
    running: dict[Any, tuple[Run, float, Mutant, list[str]]] = {}
    alone: dict[str, bool | None] = {"": True}
    while waiting or running:
        while waiting and len(running) < options.jobs:
            mutant = waiting.pop()
            names = near(mutant, seen, options.budget)
            run = Run(lambda m=mutant, n=names: killer_of(tests, m, n, options.sources))
            limit = options.patience + 5 * sum(seen[name].seconds for name in names)
            running[run.end] = run, time.monotonic() + limit, mutant, names
        ready = wait(list(running), timeout=1.0)
        late = [c for c, (_, end, _, _) in running.items() if time.monotonic() > end]
        for connection in {*ready, *late}:
            run, _, mutant, names = running.pop(connection)
            killer = run.result(0)
            if killer is not None and killer not in alone:
                alone[killer] = Run(lambda k=killer: tests.pass_(k, "")).result(options.patience)
            if killer is None or alone[killer]:
                yield mutant, "no answer" if killer is None else killer, len(names)
            else:
                seen[killer].passed = False
                waiting.append(mutant)


def hunt(tests: Tests, options: argparse.Namespace) -> None:
    """Try the mutants that are asked for, and print what there is to know of them."""
    files = files_of(options.sources)
    every = [m for p in files for m in mutants_of(str(p), p.read_text())]
    if options.again:
        lines = Path(options.again).read_text()
        mutants = [m for m in every if f"{m}\n" in lines]
    elif options.only:
        mutants = [m for m in every if options.only in str(m)]
    else:
        mutants = sampled(every, options.count, options.seed)
    print(f"{len(mutants)} mutants of {len(every)} in {len(files)} files", flush=True)
    seen = map_of(tests, options.sources, options.jobs, Path(options.map))
    print(f"{len(tests.items)} tests; not counted, since they fail:", flush=True)
    print(*(f"  {n}" for n, s in seen.items() if not s.passed), sep="\n", flush=True)
    known = {name: seen[name] for name in tests.items if name in seen}
    killed: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    mutants = [m for m in mutants if not comes_late(m, tests.at_import.lines, known)]
    print(f"{len(mutants)} mutants of what is not run at import alone", flush=True)
    for mutant, killer, count in tried(tests, mutants, known, options):
        killed[mutant.path][0] += bool(killer)
        killed[mutant.path][1] += 1
        if not killer:
            print(f"survived {count} tests: {mutant}", flush=True)
        elif options.verbose:
            print(f"killed by {killer}: {mutant}", flush=True)
    for path, (hits, count) in sorted(killed.items()):
        print(f"{path:45} {hits:4} of {count:4}")
    hits, count = (sum(v[i] for v in killed.values()) for i in (0, 1))
    print(f"{'killed':45} {hits:4} of {count:4}  ({100 * hits / max(count, 1):.1f} %)")


def asked() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="how many mutants, about")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of mutants")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests for a mutant")
    parser.add_argument("--only", help="mutants whose line of output has this in it")
    parser.add_argument("--again", help="a file with lines of an earlier output")
    parser.add_argument("--verbose", action="store_true", help="print the killed ones too")
    parser.add_argument("--patience", type=float, default=30.0, help="seconds before it hangs")
    parser.add_argument("--root", default=str(ROOT), help="where sources and tests are")
    parser.add_argument("--sources", nargs="+", default=SOURCES, help="files or folders to change")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files or folders of tests")
    parser.add_argument("--marks", default="not slow and not browser", help="-m of pytest")
    kept = Path(tempfile.gettempdir()) / "graphgrad-mutants.pickle"
    parser.add_argument("--map", default=str(kept), help="where it is kept what tests execute")
    return parser.parse_args()


def main() -> int:
    """Hunt."""
    options = asked()
    os.chdir(options.root)
    sys.path.insert(0, os.getcwd())
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        os.environ.setdefault("GRAPHGRAD_CACHE", "off")
        chosen = ["-o", "addopts=", "-m", options.marks, "-p", "no:cacheprovider"]
        chosen += [
            "-p",
            "no:terminal",
            "-p",
            "no:xdist",
            "-p",
            "no:faulthandler",
            "-s",
            *options.tests,
        ]
        at_import = Watch(options.sources).start()
        plugin = Tests(lambda tests: hunt(tests, options), at_import)
        return int(pytest.main(chosen, plugins=[plugin]))


if __name__ == "__main__":
    sys.exit(main())
