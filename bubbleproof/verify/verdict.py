"""Verdicts: what was checked, what holds, and the counterexamples where it does not.

A failed check returns violations; it does not raise. Each ``Violation`` names the rule, the tasks
and the time, and prints the rank x time grid around the offence with the offending cells marked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from bubbleproof.theory.model.measures import Measures


class Rule(Enum):
    """The rules of docs/design.md §3; a rule's value is the sentence it states."""

    COMPLETE = "every required task exactly once, nothing foreign"
    PLACED = "each task on its own resources, at one time"
    DEPENDENCIES = "no task starts before its inputs are there, lags included"
    EXCLUSIVE = "each resource does one task at a time, in the stated order"
    MEMORY = "no store exceeds its capacity"
    COMMUNICATION = "messages match in order and nothing waits for itself"
    DATAFLOW = "each gradient sums every contribution once, each from the right inputs"
    CLAIMS = "claimed numbers equal measured ones"
    CERTIFICATE = "the certificate proves its bound"
    REQUIRED = "the problem has the tasks, dependencies and memory that its pipeline requires"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A counterexample: the ``rule``, the ``tasks`` (text form), the time ``at`` (ticks) or None.

    ``message`` is one sentence; ``picture`` the grid around the offence (may be empty).
    """

    rule: Rule
    tasks: tuple[str, ...]
    at: int | None
    message: str
    picture: str = ""

    def __repr__(self) -> str:
        return f"<Violation of {self.rule.name.lower()}: {self.message}>"

    def __str__(self) -> str:
        return f"{self.message}\n{self.picture}" if self.picture else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule's check found: how often it is violated, and the first few counterexamples.

    ``detail`` names the case where a rule is checked in several (the communication semantics).
    """

    rule: Rule
    count: int
    violations: tuple[Violation, ...]
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.count == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The findings of all rules that were decided, and why others were not.

    ``undecided`` pairs a rule with the reason; ``inapplicable`` a rule that does not speak of such
    a problem with the reason; ``measured`` is there when all tasks have times.
    """

    findings: tuple[Finding, ...]
    undecided: tuple[tuple[Rule, str], ...] = ()
    inapplicable: tuple[tuple[Rule, str], ...] = ()
    measured: Measures | None = None

    @property
    def ok(self) -> bool:
        """Whether every decided rule holds and no rule was left undecided."""
        return all(finding.ok for finding in self.findings) and not self.undecided

    def __repr__(self) -> str:
        broken = [f"{f.rule.name.lower()} {f.count}x" for f in self.findings if not f.ok]
        if broken:
            return f"<Verdict: violated, {', '.join(broken)}>"
        state = "undecided" if self.undecided else "holds"
        measured = "" if self.measured is None else f", makespan {self.measured.makespan}"
        return f"<Verdict: {state}{measured}>"

    @property
    def violations(self) -> tuple[Violation, ...]:
        return tuple(v for finding in self.findings for v in finding.violations)

    @property
    def broken(self) -> tuple[Rule, ...]:
        """The violated rules, in the order checked."""
        return tuple(dict.fromkeys(f.rule for f in self.findings if not f.ok))

    def __str__(self) -> str:
        lines = []
        for finding in self.findings:
            name = finding.rule.name.lower() + (f" ({finding.detail})" if finding.detail else "")
            state = "holds" if finding.ok else f"VIOLATED {finding.count}x"
            lines.append(f"{name:<28} {state:<12} {finding.rule.value}")
        lines += [f"{rule.name.lower():<28} undecided    {why}" for rule, why in self.undecided]
        lines += [f"{rule.name.lower():<28} inapplicable {why}" for rule, why in self.inapplicable]
        lines += [f"\n{violation}" for violation in self.violations]
        return "\n".join(lines)


def join(verdicts: Iterable[Verdict]) -> Verdict:
    """All findings of several verdicts; the first measurement there is."""
    parts = list(verdicts)
    measured = next((part.measured for part in parts if part.measured is not None), None)
    return Verdict(
        findings=tuple(f for part in parts for f in part.findings),
        undecided=tuple(dict.fromkeys(u for part in parts for u in part.undecided)),
        inapplicable=tuple(dict.fromkeys(u for part in parts for u in part.inapplicable)),
        measured=measured,
    )
