"""What a check found, in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ..base.errors import GradientError, GraphGradError
from ..base.words import visible_lines

__all__ = ["Finding", "Report"]


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing that is wrong, or looks it.

    kind        what sort of thing, as one word or two: "truth", "linearity", "dead mark", ...
    message     what is wrong
    line        `model.py:31`: the user's line it is about
    suggestion  what to do
    expected, got, at   the values that differ most, and their position, where there are values

    >>> x = gg.placeholder((2,))
    >>> y = gg.exp(gg.floor(x))
    >>> gg.lint(x.graph)[0].kind
    'zero gradient'
    """

    kind: str
    message: str
    line: str
    suggestion: str = ""
    expected: Any = None
    got: Any = None
    at: tuple[int, ...] | None = None

    def __str__(self) -> str:
        rows = [f"[{self.kind}] {self.line}: {self.message}"]
        if self.expected is not None or self.got is not None:
            at = f"at {list(self.at)}, " if self.at else ""
            rows.append(f"  worst {at}expected {self.expected}, got {self.got}")
        if self.suggestion:
            rows.append(f"  {self.suggestion}")
        return visible_lines("\n".join(rows))


class Verdict:
    """What a report of any check has: it is true where nothing was found."""

    findings: list[Finding]
    notes: list[str]
    checked: list[str]
    error: ClassVar[type[GraphGradError]] = GradientError

    def subject(self) -> str:
        """What was checked."""
        raise NotImplementedError

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def raise_if_failed(self) -> Self:
        """An error (GradientError of a rule) with everything found, or this report itself."""
        if self.findings:
            raise self.error(str(self))
        return self

    def note(self, text: str) -> None:
        """Remember, once, what was not checked."""
        if text not in self.notes:
            self.notes.append(text)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        verdict = "ok" if self.ok else f"{len(self.findings)} finding(s)"
        rows = [f"check of {self.subject()}: {verdict}"]
        rows += [f"checked: {', '.join(self.checked) or 'nothing'}"]
        rows += [str(f) for f in self.findings]
        rows += [f"note: {n}" for n in self.notes]
        return visible_lines("\n".join(rows))


@dataclass(eq=False)
class Report(Verdict):
    """What check_gradient found about one rule.

    site      what was checked, with its line
    rule      the rule, with the line where it was defined
    contract  what it was held to
    findings  what is wrong; none: the rule is what it says
    notes     what was not checked, and why
    checked   the names of the checks that were made

    >>> report = gg.check_gradient(lambda site, dy: 2 * dy, lambda x: 2 * x, np.array([1.0, 3.0]))
    >>> report.ok, report.findings
    (True, [])
    """

    site: str
    rule: str
    contract: str
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)

    def subject(self) -> str:
        """What was checked."""
        return f"{self.rule} for {self.site}, as {self.contract}"
