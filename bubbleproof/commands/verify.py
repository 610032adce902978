"""``bubbleproof verify SCHEDULE``: every rule, with the counterexample where one is violated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bubbleproof.commands.inputs import read_schedule_input
from bubbleproof.commands.options.shared_options import VerifyRequest
from bubbleproof.commands.output import (
    print_json,
    print_table,
    print_text,
    rule_rows,
    status_of,
    verdict_to_json,
)
from bubbleproof.commands.pytorch_words import told_of
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.programs.standstill import Standstill
from bubbleproof.theory.pipelines.programs.target_runtimes import runtime_named
from bubbleproof.verify import USUAL, Semantics, Verdict, join
from bubbleproof.verify.every_rule import check_every_rule

if TYPE_CHECKING:  # readers and pages are loaded where they are asked for
    from bubbleproof.report.document import ReplayRow
    from bubbleproof.report.page import ScheduleSection


def run_verify(schedule: list[str], request: VerifyRequest) -> int:
    """Verify one schedule, and perhaps a certificate of how good it is, and print the verdict."""
    problem, certificate = request.problem, request.certificate
    request.leave_out("one schedule", "workers")
    if request.spec:
        from bubbleproof.commands.verify_spec import run_spec

        rules = "--spec, which decides rules 1 to 5 and 8 alone"
        request.leave_out(rules, "comm", "runtime", "certificate", "coq")
        return run_spec(schedule, problem=problem, dialect=request.dialect, json=request.json)
    if request.coq is not None and certificate is None:
        raise ValueError("--coq writes a schedule with its certificate: give --certificate too")
    semantics = asked_semantics(request)
    given = read_schedule_input(schedule, dialect=request.dialect, problem=problem)
    if certificate is None:
        verdict = check_every_rule(given.to_judge, semantics)
        return print_verdict(given.name, verdict, request, told_of(given))
    from bubbleproof.commands.verifying import certified_schedule as certified

    proof = certified.read_proof_of(certificate, given)
    verdict = check_every_rule(given.to_judge, semantics)
    found = certified.distance_of(given, verdict, proof)
    verdict = join([verdict, Verdict(decisions=(found.decision,))])
    if request.coq is not None:
        certified.write_theorem(request.coq, given, verdict, proof)
    told = certified.distance_to_json(found)
    return print_verdict(given.name, verdict, request, found.statement, told)


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
    return tuple(Semantics(name) for name in runtime_named(request.runtime, "--runtime").waits)


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
