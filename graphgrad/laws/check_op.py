"""`check_op`: one op, held to what it says of itself, by every law."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import getsourcefile, getsourcelines
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import (
    GraphGradError,
    MissingBackendError,
    PerformanceWarning,
    counted,
    did_you_mean,
)
from ..checks.report import Finding, Verdict
from ..execute.loading import backends as known_backends
from ..execute.loading import load_backend
from ..ir.graph import restored
from ..ir.op import OP_TYPES, Op
from ..ir.types import type_of_array
from . import batching, facts, gradients, linearity, promises
from .backends import agrees, checked
from .trying import Arrays, NotTried

__all__ = ["LAWS", "OpReport", "check_op"]

Law = Callable[[Op, Arrays], None]

OF_KERNEL: dict[str, Law] = {
    "value_range": facts.value_range,
    "commutes": facts.operands_change_places,
    "negated_type": facts.negation,
    "idempotent or involution": facts.its_own_output,
    "reshapes": facts.order_of_elements,
    "reduction": facts.reduction,
    "strided": facts.strides,
    "static": facts.where_shapes_are_known,
    "view": facts.alias,
    "index_inputs": facts.indices,
    "decompose": facts.parts,
    "onnx": facts.onnx_form,
}
"""Of what an op says of its kernel, by the fact."""

LAWS: dict[str, Law] = {
    "types": promises.executed_type,
    "layouts": promises.layouts,
    "unknown lengths": promises.unknown_lengths,
    "gradient": gradients.differences,
    "second gradient": gradients.second_differences,
    "gradient with unknown lengths": gradients.with_unknown_lengths,
    "linearity": linearity.as_said,
    "adjoint": linearity.adjoint,
    "linear gradient": linearity.by_structure,
    "linear gradient with unknown lengths": partial(linearity.by_structure, known=False),
    "forward mode": linearity.forward_is_reverse,
    "forward mode with unknown lengths": partial(linearity.forward_is_reverse, known=False),
    "vmap in few nodes": batching.few_nodes,
    "vmap of any length": batching.any_number_of_examples,
    "vmap": batching.is_a_loop,
    "vmap in forward mode": batching.forward_is_reverse,
    **OF_KERNEL,
    "checked run": checked,
}
"""What is tried of every sample, by name; and that each backend agrees."""


@dataclass(eq=False)
class OpReport(Verdict):
    """What check_op found about one op.

    op        its type
    samples   how many were tried
    findings  which laws are broken, by which sample; none: the op is what it says
    notes     what was not tried, and why
    checked   the names of the laws that hold for at least one sample, or are broken

    >>> report = gg.extend.check_op("Tanh", backends=["numpy"])
    >>> report.ok, report.samples
    (True, 5)
    """

    op: str
    samples: int
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)

    error = GraphGradError

    def subject(self) -> str:
        """What was checked."""
        return f"{self.op}, {counted(self.samples, 'sample')}"


@restored
def check_op(
    op: Any,
    samples: Iterable[tuple[Op, Sequence[Any]]] | None = None,
    *,
    backends: Sequence[str] | None = None,
    seed: int = 0,
) -> OpReport:
    """Try every law of graphgrad's own ops on an op: is it what it says of itself?

    The laws: what `infer` promises is computed, whatever lengths are known and however arrays lie;
    gradients are differences, to second order; gradients are linear in dy, and the op where it says
    so; forward mode is the transpose of reverse mode; vmap is the loop over examples, in a few
    nodes; what it says of its kernel is so; every backend computes the same. A law that says
    nothing of an op (no gradient, no such fact) is skipped; that its lengths have to be known,
    or that vmap runs it as a loop, is a note.

    Parameters:
        op: an op class, its name, or an op (whose class is meant).
        samples: (op, arrays) pairs to try in place of `op.samples`: few and small.
        backends: names of those to compare with NumPy; None: all that are installed.
        seed: of the samples.

    Returns: an OpReport, which is true where nothing was found.

    Raises: GraphGradError for input that is not an op type, and where there is nothing to try;
    LookupError or ImportError for a backend that is not there.

    >>> class Twice(gg.extend.Unary):
    ...     def kernel(self, xp, x):
    ...         return 2 * x
    ...     def vjp(self, node, dy):
    ...         return (3 * dy,)
    >>> [f.kind for f in gg.extend.check_op(Twice, backends=["numpy"]).findings][:2]
    ['gradient', 'gradient']
    """
    cls = _class_of(op)
    tried = _tried(cls, samples, seed)
    report = OpReport(cls.type, len(tried))
    laws = {**LAWS, **_on_backends(backends, report)}
    line = _line_of(cls)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", PerformanceWarning)
        for name, law in laws.items():
            for each, arrays in tried:
                _judge(report, name, law, each, arrays, line)
    return report


def _class_of(op: Any) -> type[Op]:
    if isinstance(op, Op):
        return type(op)
    if isinstance(op, type) and issubclass(op, Op):
        return op
    if op in OP_TYPES:
        return OP_TYPES[op]
    hint = did_you_mean(op, OP_TYPES) if isinstance(op, str) else ""
    raise GraphGradError(
        f"check_op takes an op class or the name of an op type, got {op!r}. {hint}".rstrip()
    )


def _tried(cls: type[Op], samples: Any, seed: int) -> list[tuple[Op, Arrays]]:
    given = cls.samples(np.random.default_rng(seed)) if samples is None else samples
    pairs: list[tuple[Op, Arrays]] = [(op, [np.asarray(a) for a in arrays]) for op, arrays in given]
    if not pairs:
        raise GraphGradError(
            f"there are no samples of {cls.type}: {cls.__name__}.samples gives no (op, arrays) "
            "pair. Write it, or give pairs as samples=[(op, arrays), ...]."
        )
    return pairs


def _on_backends(names: Sequence[str] | None, report: OpReport) -> dict[str, Law]:
    """A law for each backend; a note for those of all that are not installed."""
    laws: dict[str, Law] = {}
    for name in known_backends() if names is None else names:
        if name == "numpy":
            continue
        try:
            load_backend(name)
        except MissingBackendError as missing:
            if names is not None:
                raise
            report.note(str(missing))
        else:
            laws[f"on {name}"] = partial(agrees, backend=name)
    return laws


def _judge(report: OpReport, name: str, law: Law, op: Op, arrays: Arrays, line: str) -> None:
    try:
        law(op, arrays)
    except NotTried as reason:
        if reason.told:
            report.note(f"{name}: {reason}")
        return
    except Exception as error:
        report.findings.append(Finding(name, _said(op, arrays, error), line))
    if name not in report.checked:
        report.checked.append(name)


def _said(op: Op, arrays: Arrays, error: Exception) -> str:
    types = ", ".join([repr(type_of_array(a)) for a in arrays])
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    notes = "\n".join(getattr(error, "__notes__", ()))
    return f"{op!r} of {types}: {kind}{error}\n{notes}".strip()


def _line_of(cls: type[Op]) -> str:
    """Where its class is written."""
    try:
        return f"{Path(getsourcefile(cls) or '').name}:{getsourcelines(cls)[1]}"
    except (OSError, TypeError):  # typed at a prompt
        return f"{cls.__module__}.{cls.__qualname__}"
