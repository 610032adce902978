"""A verdict for people, for programs and for pages, and the semantics that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bubbleproof.commands.options.shared_options import VerifyRequest
from bubbleproof.commands.output import (
    print_json,
    print_table,
    print_text,
    rule_rows,
    status_of,
    verdict_to_json,
)
from bubbleproof.frameworks import framework_named
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.programs.standstill import Standstill
from bubbleproof.verify import USUAL, Semantics, Verdict

if TYPE_CHECKING:  # pages are loaded where they are asked for
    from bubbleproof.report.document import ReplayRow
    from bubbleproof.report.page import ScheduleSection


def print_verdict(
    name: str,
    verdict: Verdict,
    request: VerifyRequest,
    sentence: str = "",
    proved: dict[str, object] | None = None,
) -> int:
    """The verdict, how good the schedule is proved to be, and the exit status."""
    if request.json:
        extra: dict[str, object] = {} if proved is None else {"certificate": proved}
        extra |= {"statement": sentence} if sentence and proved is None else {}
        print_json({"name": name, **verdict_to_json(verdict), **extra})
        return status_of(verdict)
    print_table(name, ("rule", "verdict", "statement"), rule_rows(verdict))
    if sentence:
        print_text(sentence)
    for violation in verdict.violations:
        print_text(f"\n{violation}")
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
