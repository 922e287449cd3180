"""What the package is like to read: lines, functions, branches, circles, tables by op type.

    python tools/house.py [folder of the package] [--most 20]

Lines are those of code: no docstrings, comments or blank lines. A function's lines are from `def`
to its end, its docstring left out; nested ones count by themselves too. Branches are what can go
two ways: if, elif, a conditional expression, a loop, `except`, `and`, `or`, a filter, a case.
A table by op type is an assignment outside functions, outside `ops/`, whose value names three or
more classes of ops. Circles are groups of modules that import each other, for types included.
"""

import argparse
import ast
import statistics
import tokenize
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[1] / "graphgrad"
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
WAYS = (
    *(ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case),
    *(ast.comprehension, ast.Assert),
)


def main():
    """Print it all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--most", type=int, default=12, help="how many of the longest are listed")
    given = parser.parse_args()
    trees = {path: ast.parse(path.read_text()) for path in sorted(given.root.rglob("*.py"))}
    functions = [
        (
            lines_of(node),
            branches_of(node),
            f"{path.relative_to(given.root)}:{node.lineno} {node.name}",
        )
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTION)
    ]
    lengths = [length for length, _, _ in functions]
    code = {path: code_lines(path, tree) for path, tree in trees.items()}
    print(
        f"files {len(trees)}, lines of code {sum(code.values())}, longest file",
        longest(code, given),
    )
    print(
        f"functions {len(functions)}, median {statistics.median(lengths)}, longest {max(lengths)}"
    )
    print(f"over 50 lines: {sum(n > 50 for n in lengths)}, over 30: {sum(n > 30 for n in lengths)}")
    print(f"branches {sum(ways for _, ways, _ in functions)}")
    known = circles(trees, given.root)
    print(f"circles {len(known)}")
    for circle in known:
        print("   ", *sorted(circle))
    tables = op_tables(trees, given.root)
    print(f"tables by op type outside ops/: {len(tables)}")
    for table in tables:
        print("   ", table)
    for what, place in (("longest", 0), ("most branches", 1)):
        print(f"{what}:")
        for row in sorted(functions, key=lambda f: -f[place])[: given.most]:
            print(f"    {row[0]:4} lines {row[1]:3} branches  {row[2]}")


def docstring_lines(node):
    """How many lines the docstring of a module, class or function takes."""
    first = node.body[0] if node.body else None
    return first.end_lineno - first.lineno + 1 if is_text(first) else 0


def is_text(node):
    """Whether a statement is a string and nothing else."""
    alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return alone and isinstance(node.value.value, str)


def lines_of(function):
    """The lines of a function but for its docstring."""
    return function.end_lineno - function.lineno + 1 - docstring_lines(function)


def branches_of(function):
    """Where a function can go two ways, those inside functions in it not counted."""
    count, pending = 0, list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, FUNCTION):
            continue
        count += isinstance(node, WAYS)
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        count += len(node.ifs) if isinstance(node, ast.comprehension) else 0
        pending += ast.iter_child_nodes(node)
    return count


def code_lines(path, tree):
    """Lines that hold a token of code, without those of docstrings and lone strings."""
    with path.open("rb") as file:
        kinds = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        beside = (*kinds, tokenize.ENCODING, tokenize.ENDMARKER)
        tokens = [t for t in tokenize.tokenize(file.readline) if t.type not in beside]
    held = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(tree):
        if is_text(node):
            held -= set(range(node.lineno, node.end_lineno + 1))
    return len(held)


def longest(code, given):
    """The file with the most lines of code."""
    path = max(code, key=code.get)
    return f"{path.relative_to(given.root)} ({code[path]})"


def imported(path, tree, root):
    """The package's own modules that a module imports, for types included."""
    home = [root.name, *path.relative_to(root).parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + 1] if node.level else []
            module = [*base, *(node.module.split(".") if node.module else [])]
            for name in node.names:
                if module[:1] == [root.name]:
                    yield [*module[1:], name.name]


def circles(trees, root):
    """Groups of modules that import each other, directly or through others."""
    graph = nx.DiGraph()
    for path, tree in trees.items():
        for parts in imported(path, tree, root):
            for length in (len(parts), len(parts) - 1):
                target = root.joinpath(*parts[:length]).with_suffix(".py")
                if length and target in trees and target != path:
                    graph.add_edge(*(p.relative_to(root).as_posix() for p in (path, target)))
                    break
    return [found for found in nx.strongly_connected_components(graph) if len(found) > 1]


def op_classes(trees, root):
    """The names of classes that derive from Op, directly or through others."""
    bases = {
        node.name: [b.id for b in node.bases if isinstance(b, ast.Name)]
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"Op"}
    while more := {n for n, above in bases.items() if found & set(above)} - found:
        found |= more
    return found


def op_tables(trees, root):
    """`file: name, how many op classes`: what a module outside ops/ knows of several op types."""
    ops, found = op_classes(trees, root), []
    for path, tree in trees.items():
        where = path.relative_to(root)
        if where.parts[0] in ("ops", "__init__.py", "extend.py"):
            continue
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                named = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)} & ops
                text = {n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)}
                named |= {t for t in text if isinstance(t, str) and t in ops}
                if len(named) >= 3:
                    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                    found.append(f"{where}:{node.lineno} {ast.unparse(target)} ({len(named)})")
    return found


if __name__ == "__main__":
    main()
