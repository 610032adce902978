"""A verdict for people, for programs and for pages, and the semantics that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from bubbleproof.commands.options.shared_options import VerifyRequest
from bubbleproof.commands.output import (
    Answer,
    AnswerLine,
    amounts_text,
    print_answer,
    print_line,
    print_text,
    rule_rows,
    status_of,
)
from bubbleproof.facts import Fact, FactCells
from bubbleproof.report.schedule_measures import measure_facts
from bubbleproof.report.schedule_verdict import ScheduleVerdict
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.programs.standstill import Standstill
from bubbleproof.verify import USUAL, Semantics, Verdict
from bubbleproof.verify.finding import Rule

if TYPE_CHECKING:  # pages are loaded where they are asked for
    from bubbleproof.report.document import ReplayRow
    from bubbleproof.report.page import ScheduleSection


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSchedule(Answer):
    """A verdict on the schedule ``name``, which people know as ``title``.

    ``problem`` has the units of what was measured. ``statement`` says how good the schedule is
    proved to be, or what else there is to say of it, and ``proved`` has the former for programs.
    """

    columns: ClassVar[FactCells] = ("rule", "", "statement", "verdict")
    more: ClassVar[str] = "each rule"
    name: str
    title: str
    verdict: Verdict
    problem: Problem | None = None
    statement: str = ""
    proved: dict[str, object] | None = None

    def facts(self) -> list[Fact]:
        """Every rule, what was measured, and what is proved."""
        found = [Fact(key="name", value=self.name), *ScheduleVerdict.of(self.verdict).facts()]
        if self.problem is not None and (measured := self.verdict.measured) is not None:
            units = self.problem.unit, self.problem.memory_unit
            found += [replace(fact, key="") for fact in measure_facts(measured, *units)]
        if self.proved is not None:
            found.append(Fact(key="certificate", value=self.proved))
        elif self.statement:
            found.append(Fact(key="statement", value=self.statement))
        return found

    def lines(self) -> Iterator[AnswerLine]:
        """Valid or not; no deadlock under what; what is undecided."""
        verdict, measured = self.verdict, ""
        if verdict.measured is not None and self.problem is not None:
            measured = f" \N{MIDDLE DOT} {amounts_text(verdict.measured, self.problem)}"
        yield "", f"{self.title}: {state_of(verdict)}{measured}"
        if free := semantics_of(verdict, ok=True):
            yield "", f"deadlock-free under {free}"
        if self.problem is not None and self.problem.actions.is_kind(Kind.F, Kind.SEND_F).all():
            yield "", "forwards alone: nothing is trained"
        for why, rules in groupby(verdict.undecided, key=lambda each: each[1]):
            yield "", f"not decided: {names_of(rule for rule, _ in rules)} ({why})"
        if self.statement:
            yield "", self.statement


def semantics_of(verdict: Verdict, *, ok: bool) -> str:
    """Those of communication under which messages are right, or are not."""
    return ", ".join(d.detail for d in verdict.decisions if d.ok is ok and d.detail in {*Semantics})


def names_of(rules: Iterable[Rule]) -> str:
    """Rules by their names."""
    return ", ".join(rule.name.lower() for rule in rules)


def state_of(verdict: Verdict) -> str:
    """Valid or not, and by which rules."""
    if verdict.broken:
        name, stopped = Rule.COMMUNICATION.name.lower(), semantics_of(verdict, ok=False)
        under = f"{name} under {stopped}" if semantics_of(verdict, ok=True) else name
        return f"INVALID ({names_of(verdict.broken).replace(name, under)})"
    if verdict.undecided:
        return "UNDECIDED"
    left_out = names_of(rule for rule, _ in verdict.inapplicable)
    return f"VALID (every rule but {left_out})" if left_out else "VALID (every rule)"


def print_verdict(found: JudgedSchedule, request: VerifyRequest) -> int:
    """The answer, each counterexample or the first of each rule, and the exit status."""
    verdict = found.verdict
    print_answer(found, json=request.json, verbose=request.verbose)
    if not request.json:
        first = {each.rule: each for each in reversed(verdict.violations)}
        shown = verdict.violations if request.verbose else [first[rule] for rule in verdict.broken]
        for violation in shown:
            print_text("")
            print_line(violation.message)
            if violation.picture:
                print_text(violation.picture)
        if more := sum(decision.count for decision in verdict.decisions) - len(shown):
            print_text(f"\n{more:,} more violations{'' if request.verbose else '   (-v: more)'}")
    return status_of(verdict)


def parse_semantics(names: Sequence[str]) -> tuple[Semantics, ...]:
    """The named communication semantics; all of them when none is named."""
    known = {semantics.value: semantics for semantics in Semantics}
    for name in names:
        if name not in known:
            raise ValueError(f"--comm must be one of {' '.join(known)}, got {name!r}")
    return tuple(known[name] for name in names) or USUAL


def asked_semantics(request: VerifyRequest) -> tuple[Semantics, ...]:
    """Those that are named, those of the runtime that is named, or the usual ones."""
    if request.runtime is None:
        return parse_semantics(request.comm or ())
    if request.comm:
        raise ValueError("--runtime says what SEND and RECV wait for: no --comm beside it")
    from bubbleproof.frameworks import framework_named

    return tuple(Semantics(name) for name in framework_named(request.runtime, "--runtime").waits)


def section_of(
    name: str,
    problem: Problem,
    schedule: Schedule,
    verdict: Verdict | None,
    *,
    replay: tuple[ReplayRow, ...] = (),
    stopped: Standstill | None = None,
) -> ScheduleSection:
    """The section; ``verdict`` is None where none was reached. A rule's state is one word."""
    from bubbleproof.report.document import VerdictRow
    from bubbleproof.report.page import ScheduleSection

    rows = [] if verdict is None else rule_rows(verdict)
    return ScheduleSection(
        name=name,
        problem=problem,
        schedule=schedule,
        verdicts=tuple(
            VerdictRow(rule, state.split(" ")[0], detail) for rule, state, detail in rows
        ),
        violations=() if verdict is None else tuple(map(str, verdict.violations)),
        replay=replay,
        stopped=stopped,
    )
