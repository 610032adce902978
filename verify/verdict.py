"""Verdicts: what was checked, what holds, and the counterexamples where it does not.

A failed check returns findings (``verify.finding``); it does not raise. ``verify.explain`` makes of
those that are shown a ``Violation`` each, with a sentence and the rank x time grid around the
offence, the offending cells marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubbleproof.verify.finding import Rule

if TYPE_CHECKING:  # a verdict holds what was measured, and measures nothing
    from bubbleproof.theory.model.measures import Measures

SHOWN = 3  # counterexamples kept per kind of offence; all are counted


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
class RuleDecision:
    """What was decided of a rule: how often it is violated, and the first few counterexamples.

    ``detail`` names the case where a rule is checked in several (the communication semantics).
    """

    rule: Rule
    count: int
    violations: tuple[Violation, ...]
    detail: str = ""

    @classmethod
    def of_sentences(cls, rule: Rule, sentences: Sequence[str]) -> RuleDecision:
        """A rule that is broken once per sentence, of which the first ``SHOWN`` are kept.

        Parameters
        ----------
        sentences
            One for each time that the rule is broken.
        """
        found = [Violation(rule=rule, tasks=(), at=None, message=text) for text in sentences]
        return cls.of(rule, found)

    @classmethod
    def of(cls, rule: Rule, found: Sequence[Violation], detail: str = "") -> RuleDecision:
        """All violations of a rule, of which the first few are kept.

        Parameters
        ----------
        detail
            Which case of the rule, such as a semantics; empty where it has one.
        """
        return cls(rule=rule, count=len(found), violations=tuple(found[:SHOWN]), detail=detail)

    @property
    def ok(self) -> bool:
        return self.count == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was decided of each rule, and why others were not.

    ``undecided`` pairs a rule with the reason; ``inapplicable`` a rule that does not speak of such
    a problem with the reason; ``measured`` is there when all tasks have times.
    """

    decisions: tuple[RuleDecision, ...]
    undecided: tuple[tuple[Rule, str], ...] = ()
    inapplicable: tuple[tuple[Rule, str], ...] = ()
    measured: Measures | None = None

    @property
    def ok(self) -> bool:
        """Whether every decided rule holds and no rule was left undecided."""
        return all(decision.ok for decision in self.decisions) and not self.undecided

    def __repr__(self) -> str:
        broken = [f"{d.rule.name.lower()} {d.count}x" for d in self.decisions if not d.ok]
        if broken:
            return f"<Verdict: violated, {', '.join(broken)}>"
        state = "undecided" if self.undecided else "holds"
        measured = "" if self.measured is None else f", makespan {self.measured.makespan}"
        return f"<Verdict: {state}{measured}>"

    @property
    def violations(self) -> tuple[Violation, ...]:
        return tuple(v for decision in self.decisions for v in decision.violations)

    @property
    def broken(self) -> tuple[Rule, ...]:
        """The violated rules, in the order checked."""
        return tuple(dict.fromkeys(d.rule for d in self.decisions if not d.ok))

    def __str__(self) -> str:
        lines = []
        for decision in self.decisions:
            detail = f" ({decision.detail})" if decision.detail else ""
            state = "holds" if decision.ok else f"VIOLATED {decision.count}x"
            name = decision.rule.name.lower() + detail
            lines.append(f"{name:<28} {state:<12} {decision.rule.value}")
        lines += [f"{rule.name.lower():<28} undecided    {why}" for rule, why in self.undecided]
        lines += [f"{rule.name.lower():<28} inapplicable {why}" for rule, why in self.inapplicable]
        lines += [f"\n{violation}" for violation in self.violations]
        return "\n".join(lines)


def join(verdicts: Iterable[Verdict]) -> Verdict:
    """All decisions of several verdicts; the first measurement there is."""
    parts = list(verdicts)
    measured = next((part.measured for part in parts if part.measured is not None), None)
    return Verdict(
        decisions=tuple(d for part in parts for d in part.decisions),
        undecided=tuple(dict.fromkeys(u for part in parts for u in part.undecided)),
        inapplicable=tuple(dict.fromkeys(u for part in parts for u in part.inapplicable)),
        measured=measured,
    )
