"""`check`, `lint`, `explain`: are the rules right, what looks wrong, which rule speaks where."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..checks.explain import explain
from ..checks.gradient import check_gradient
from ..checks.lint import lint
from ..healing.heal import heal
from ..healing.plan import LEFT_ALONE, NOT_RUN
from ..ir.node import Node, Region, Tensor
from ..ir.program import needed
from .errors import TargetError
from .feeding import feed_arguments, feeds_for
from .target import TargetGraph, add_target, ends_of, load


def check_arguments(parser: ArgumentParser) -> None:
    """TARGET, seed, order."""
    add_target(parser)
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of all random numbers (default: 0)"
    )
    parser.add_argument("--order", type=int, choices=(1, 2), default=2, help="(default: 2)")


def check(options: Namespace) -> int:
    """One report for each site with a rule; exit code 1 where one has findings."""
    target = load(options.target)
    sites = _sites(target)
    wrong = 0
    for site in sites:
        report = check_gradient(site, seed=options.seed, order=options.order)
        wrong += not report
        print(report)
    print(f"{len(sites)} rules checked, {wrong} with findings")
    return 1 if wrong else 0


def _sites(target: TargetGraph) -> list[Region | Node]:
    """Regions and stamped nodes of the user's, which have rules."""
    graph = target.graph
    regions: list[Region | Node] = [r for r in graph.regions if r.rule is not None]
    return regions + [n for n in graph.nodes if n.stamp is not None and n.origin is None]


def lint_arguments(parser: ArgumentParser) -> None:
    """TARGET."""
    add_target(parser)


def run_lint(options: Namespace) -> int:
    """One paragraph for each finding; exit code 1 where there are any."""
    findings = lint(load(options.target).graph)
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings" if findings else "nothing found")
    return 1 if findings else 0


def heal_arguments(parser: ArgumentParser) -> None:
    """TARGET, where the page goes, what is fed."""
    add_target(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report of the rewrites")
    parser.add_argument(
        "--panes",
        action="store_true",
        help="with --html: the original graph and the healed one, side by side",
    )
    feed_arguments(parser)


def run_heal(options: Namespace) -> int:
    """The table of what `gg.heal` would rewrite; exit code 1 where it would anything.

    Of a function's outputs, of what was built before gradients. With feeds, only what loses digits
    there; what these tell nothing of counts as found.
    """
    if options.panes and options.html is None:
        raise TargetError("--panes is for the page: give it --html FILE")
    target = load(options.target)
    ys = ends_of(target.graph.nodes if target.is_graph else needed((), target.outputs))
    if not ys:
        print("nothing to heal")
        return 0
    fed = options.feed or options.random is not None
    healed = heal(ys, at=feeds_for(target._replace(outputs=ys), options) if fed else None)
    print(healed)
    if options.html is not None:
        healed.write_html(options.html, panes=options.panes)
        print(f"page: {options.html}")
    said = [site.now for site in healed.sites]
    return 1 if any(now == NOT_RUN or not now.startswith(LEFT_ALONE) for now in said) else 0


def explain_arguments(parser: ArgumentParser) -> None:
    """TARGET, of, to."""
    add_target(parser)
    parser.add_argument("--of", action="append", metavar="NAME", help="tensors ys (the outputs)")
    parser.add_argument(
        "--to", action="append", metavar="NAME", help="tensors xs (floating inputs and variables)"
    )


def run_explain(options: Namespace) -> int:
    """For each x: the sites on its paths, their rules, or why there is none."""
    target = load(options.target)
    graph = target.graph
    ys = [graph.tensor(n) for n in options.of] if options.of else _floating(target.outputs)
    if options.to:
        xs = [graph.tensor(n) for n in options.to]
    else:
        kinds = ("Placeholder", "Variable")
        xs = _floating([n.outputs[0] for n in graph.nodes if n.type in kinds])
    print(explain(ys, xs))
    return 0


def _floating(tensors: list[Tensor]) -> list[Tensor]:
    return [t for t in tensors if t.type.differentiable]
