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
from bubbleproof.verify.candidates.cases import Cases
from bubbleproof.verify.candidates.certified_distance import CertifiedDistance, certified_distance
from bubbleproof.verify.candidates.chosen import plain_of
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.every_rule import check_every_rule

if TYPE_CHECKING:  # readers and pages are loaded where they are asked for
    from bubbleproof.formats import ScheduleFile
    from bubbleproof.report.page import ScheduleSection
    from bubbleproof.report.table_rows import ReplayRow


def run_verify(schedule: list[str], request: VerifyRequest) -> int:
    """Verify one schedule, and perhaps a certificate of how good it is, and print the verdict."""
    problem, comm, certificate = request.problem, request.comm or (), request.certificate
    if request.spec:
        from bubbleproof.commands.verify_spec import run_spec

        if comm or request.runtime or certificate is not None:
            raise ValueError("--spec decides rules 1 to 5 and 8 alone: no --comm, no --certificate")
        return run_spec(schedule, problem=problem, dialect=request.dialect, json=request.json)
    if request.coq is not None and certificate is None:
        raise ValueError("--coq writes a schedule with its certificate: give --certificate too")
    semantics = asked_semantics(request)
    given = read_schedule_input(schedule, dialect=request.dialect, problem=problem)
    proof = None if certificate is None else _proof(certificate, given)
    verdict = check_every_rule(given.to_judge, semantics)
    if proof is None:
        return print_verdict(given.name, verdict, request, told_of(given))
    found = distance_of(given, verdict, proof)
    verdict = join([verdict, Verdict(decisions=(found.decision,))])
    if request.coq is not None:
        _write_theorem(request.coq, given, verdict, proof)
    return print_verdict(given.name, verdict, request, found.statement, distance_to_json(found))


def _write_theorem(
    target: str, given: ScheduleFile, verdict: Verdict, proof: Certificate | Cases
) -> None:
    """Write ``--coq``'s file. Raises ``ValueError`` for what is no theorem."""
    from bubbleproof.formats.coq.coq_theorem import coq_theorem
    from bubbleproof.formats.files import write_text

    if not verdict.ok:
        raise ValueError(f"--coq writes what holds; {given.name} violates a rule (verify it alone)")
    if isinstance(proof, Cases):
        raise ValueError("--coq writes one certificate, and this is a proof by cases")
    write_text(target, coq_theorem(given.problem, given.timed(), proof))


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


def _proof(certificate: str, given: ScheduleFile) -> Certificate | Cases:
    """What is to show a bound: of the problem, or of what was left open of it."""
    if given.allowed is None or given.pipeline is None:
        from bubbleproof.formats.certificate_json import read_certificate

        return read_certificate(certificate, given.problem)
    from bubbleproof.formats.plans.cases_json import read_proof

    return read_proof(certificate, plain_of(given.pipeline), given.allowed)


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


def distance_of(
    given: ScheduleFile, verdict: Verdict, certificate: Certificate | Cases
) -> CertifiedDistance:
    """How near the schedule is to what the certificate proves."""
    return certified_distance(given.problem, given.pipeline, given.allowed, verdict, certificate)


def distance_to_json(found: CertifiedDistance) -> dict[str, object]:
    """The distance for programs."""
    return {
        "kind": type(found.certificate).__name__.lower(),
        "objective": found.certificate.objective,
        "bound": found.certificate.bound,
        "ok": found.is_proved,
        "value": found.value,
        "gap": found.gap,
        "statement": found.statement,
    }


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
    from bubbleproof.report.page import ScheduleSection
    from bubbleproof.report.table_rows import VerdictRow

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
