"""How the judge does on every mutation operator; ``python -m proofs_tests.verify.mutation_report``.

Per operator: how many mutants there were, how many the plain checker calls invalid, how many of
those ``verify.check`` caught by a rule the operator names, how many are still valid, and how many
of those ``verify.check`` accepted. ``disagreements`` counts mutants on which the sets of broken
rules differ.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from bubbleproof.theory.families import families
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify import check
from proofs_tests.cases import Case, all_family_cases, hand_built, overlapped
from proofs_tests.verify.mutations import OPERATORS, Mutant, Operator, mutants
from proofs_tests.verify.plain import broken_rules
from proofs_tests.verify.tables import Specimen

RANKS, MICROBATCHES = (2, 3, 4), (2, 3, 5)
TOTAL_CASES, EACH = 30, 2
COLUMNS = ("mutants", "invalid", "caught", "valid", "accepted", "disagreements")

Judge = Callable[[Problem, Schedule], set[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Counts by (operator, column), mutants by (operator, family), and the first disagreements.

    ``needed`` holds the (operator, family) pairs that must have yielded mutants.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    families: Counter[tuple[str, str]] = field(default_factory=Counter)
    needed: set[tuple[str, str]] = field(default_factory=set)
    examples: list[str] = field(default_factory=list)

    def total(self, column: str) -> int:
        return sum(self.counts[operator.name, column] for operator in OPERATORS)

    def __str__(self) -> str:
        lines = [f"{'operator':<28}" + "".join(f"{c:>14}" for c in COLUMNS)]
        for operator in OPERATORS:
            cells = "".join(f"{self.counts[operator.name, c]:>14}" for c in COLUMNS)
            lines.append(f"{operator.name:<28}{cells}")
        lines.append(f"{'total':<28}" + "".join(f"{self.total(c):>14}" for c in COLUMNS))
        return "\n".join([*lines, *self.examples])


def judged(problem: Problem, schedule: Schedule) -> set[str]:
    """The names of the rules that ``verify.check`` finds broken."""
    return {rule.name for rule in check(problem, schedule).broken}


def cases() -> dict[str, list[Case]]:
    """Cases by family, and the two hand-built ones; about ``TOTAL_CASES`` in all."""
    per_family = max(2, TOTAL_CASES // len(families()))
    by_family = all_family_cases(RANKS, MICROBATCHES, per_family=per_family)
    return {**by_family, "hand-built": [hand_built()], "overlapped": [overlapped()]}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """A mutant of a family's case, and the rules that it breaks by the plain checker."""

    operator: Operator
    family: str
    case: str
    problem: Problem
    schedule: Schedule
    expected: set[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trials:
    """Mutants to judge, and the (operator, family) pairs that must be among them."""

    needed: set[tuple[str, str]]
    made: list[Trial]

    @classmethod
    def of(cls, chosen: dict[str, list[Case]], each: int) -> Trials:
        """``each`` mutants by every operator of every case."""
        needed: set[tuple[str, str]] = set()
        made = []
        for family, members in chosen.items():
            for case in members:
                specimen = Specimen.of(case.problem, case.schedule)
                needed.update((o.name, family) for o in OPERATORS if o.needs(specimen))
                made += [
                    _trial(mutant, family, case.name)
                    for mutant in mutants(specimen, seed=case.name, each=each)
                ]
        return cls(needed=needed, made=made)


def _trial(mutant: Mutant, family: str, case: str) -> Trial:
    problem, schedule = mutant.specimen.problem, mutant.specimen.schedule()
    return Trial(
        operator=mutant.operator,
        family=family,
        case=case,
        problem=problem,
        schedule=schedule,
        expected=broken_rules(problem, schedule),
    )


def mutation_report(trials: Trials, judge: Judge = judged) -> Report:
    """Compare ``judge`` with the plain checker on every mutant."""
    report = Report(needed=trials.needed)
    for trial in trials.made:
        report.families[trial.operator.name, trial.family] += 1
        _count(report, trial, judge)
    return report


def _count(report: Report, trial: Trial, judge: Judge) -> None:
    operator, expected = trial.operator, trial.expected
    found = judge(trial.problem, trial.schedule)
    seen = {"mutants", "invalid" if expected else "valid"}
    if expected and found & operator.rules:
        seen.add("caught")
    if not expected and not found:
        seen.add("accepted")
    if found != expected:
        seen.add("disagreements")
        if len(report.examples) < 10:
            told = f"{found} instead of {expected}"
            report.examples.append(f"{operator.name} on {trial.case}: {told}")
    report.counts.update((operator.name, column) for column in seen)


if __name__ == "__main__":
    sys.stdout.write(f"{mutation_report(Trials.of(cases(), EACH))}\n")
