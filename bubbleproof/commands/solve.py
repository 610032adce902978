"""``bubbleproof solve PROBLEM``: the best schedule there is, and how good it is."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from bubbleproof.commands.inputs import Posed, read_posed
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    measures_to_json,
    print_json,
    print_table,
    say,
)
from bubbleproof.formats import ScheduleFile, write_schedule
from bubbleproof.solvers import Proof, Result, SolveOptions, Status, solve
from bubbleproof.solvers.choices import solve_choices
from bubbleproof.solvers.options import Goal
from bubbleproof.theory.families import families
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Claim, Program, Schedule
from bubbleproof.verify.certificate import Certificate, OneMachine

EXIT = {
    Status.OPTIMAL: HOLDS,
    Status.FEASIBLE: UNDECIDED,
    Status.INFEASIBLE: BROKEN,
    Status.UNKNOWN: UNDECIDED,
}
DEFAULT_TIME_LIMIT = 60.0


def run_solve(
    path: str,
    *,
    engine: str,
    objective: str | None,
    within: int | None,
    time_limit: float | None,
    seed: int,
    threads: int,
    target: str | None,
    as_json: bool,
) -> int:
    """Solve one problem, print the result, and write the schedule where asked."""
    if target is not None and not target.endswith(".json"):
        raise ValueError(f"the schedule's file must end in .json, got {target!r}")
    posed = read_posed(path)
    options = options_for(
        posed,
        engine=engine,
        objective=objective,
        within=within,
        time_limit=time_limit,
        seed=seed,
        threads=threads,
        quiet=as_json,
    )
    posed, result = solve_posed(posed, options)
    if target is not None and result.schedule is not None:
        write_schedule(target, schedule_file(posed, result))
        if not as_json:
            say(f"wrote {target}")
    if as_json:
        print_json(result_to_json(posed, result))
    else:
        print_table(posed.name, ("quantity", "value"), result_rows(posed, result))
    return EXIT[result.status]


def options_for(
    posed: Posed,
    *,
    engine: str = "auto",
    objective: str | None = None,
    within: int | None = None,
    time_limit: float | None = None,
    seed: int = 1,
    threads: int = 2,
    quiet: bool = False,
) -> SolveOptions:
    """The options of the command line, else those of the problem file, else the defaults."""
    file = posed.file
    in_file = file.time_limit if file is not None else None
    limit = time_limit if time_limit is not None else in_file
    return SolveOptions(
        engine=engine,
        objective=cast(Goal, objective or (file.objective if file else "makespan")),
        within=within,
        time_limit=DEFAULT_TIME_LIMIT if limit is None else limit,
        seed=seed,
        threads=threads,
        progress=None if quiet else _report,
    )


def _report(who: str, value: int | None, bound: int, seconds: float) -> None:
    best = "no schedule yet" if value is None else f"best {value}"
    say(f"{seconds:7.2f} s  {who:<12} {best}, bound {bound}")


def solve_posed(posed: Posed, options: SolveOptions) -> tuple[Posed, Result]:
    """Solve, starting from the published orders that fit the problem's shape.

    Where the file leaves choices open, the problem given back is the one that was chosen.
    """
    starts = [] if posed.pipeline is None else published_programs(posed.pipeline)
    if posed.file is None or posed.file.allowed is None:
        return posed, solve(posed.problem, options, starts)
    found = solve_choices(posed.file.pipeline, posed.file.allowed, options, starts)
    chosen = replace(posed, problem=found.problem, pipeline=found.pipeline, choices=found)
    return chosen, found.result


def published_programs(pipeline: Pipeline) -> list[tuple[str, Program]]:
    """The orders of all families that take the pipeline as it is."""
    return [
        (name, family.program(pipeline))
        for name, family in families().items()
        if family.refusal(pipeline) is None
    ]


def schedule_file(posed: Posed, result: Result) -> ScheduleFile:
    """The solved schedule with its measured numbers as claims, for ``verify`` to confirm."""
    assert result.schedule is not None
    assert result.measured is not None
    claims: dict[str, Claim] = {
        "makespan": result.measured.makespan,
        "idle_ratio": result.measured.idle_ratio,
        "peak_memory": result.measured.peak_memory,
    }
    claimed = Schedule(program=result.schedule.program, start=result.schedule.start, claims=claims)
    pipeline = posed.pipeline if posed.choices is None else None
    return ScheduleFile.of(posed.problem, claimed, pipeline=pipeline, name=posed.name)


def proof_text(posed: Posed, result: Result) -> str:
    """How good the schedule is known to be, in one sentence."""
    if result.objective == "peak":
        return _peak_text(posed, result) or "no bound"
    bound = bound_text(posed, result)
    if result.proof is Proof.ENGINE:
        text = f"optimal {Proof.ENGINE.value}; {bound}"
    elif result.status is Status.OPTIMAL:
        text = f"optimal: {bound}"
    else:
        claim = "" if result.engine_bound is None else f"; engine claims {result.engine_bound}"
        text = f"gap {result.gap} {posed.problem.unit}: {bound}{claim}"
    peak = _peak_text(posed, result)
    return f"{text}; {peak}" if peak else text


def bound_text(posed: Posed, result: Result) -> str:
    """The certified bound and what proves it."""
    problem, certificate = _certified(posed, result)
    if certificate is None:
        return "no bound"
    by = ""
    if isinstance(certificate, OneMachine):
        where = problem.resources[certificate.resource].name
        by = f" by {len(certificate.tasks)} tasks on {where}"
    by += "" if posed.choices is None else " whatever is chosen"
    return f"bound {result.lower_bound}{by}, certificate checked"


def _certified(posed: Posed, result: Result) -> tuple[Problem, Certificate | None]:
    """The certificate, and the problem that it is about."""
    if posed.choices is None:
        return posed.problem, result.certificate
    return posed.choices.floor, posed.choices.floor_certificate


def _peak_text(posed: Posed, result: Result) -> str:
    bound = result.peak_bound
    if bound is None:
        return ""
    return f"no peak below {bound.value} {posed.problem.memory_unit} ({bound.reason})"


def result_rows(posed: Posed, result: Result) -> list[tuple[str, str]]:
    """The result for people."""
    unit = posed.problem.unit
    rows = [("status", result.status.value)]
    if result.reason:
        rows.append(("reason", result.reason))
    if result.measured is not None:
        measured = result.measured
        rows += [
            ("objective", result.objective),
            ("makespan", f"{measured.makespan} {unit}"),
            ("found by", result.origin),
            ("idle_ratio", f"{measured.idle_ratio}"),
            ("idle_over_work", f"{measured.idle_over_work}"),
            ("span_idle", f"{measured.span_idle} {unit}"),
            ("peak_memory", f"{list(measured.peak_memory)} {posed.problem.memory_unit}"),
        ]
    if posed.choices is not None and result.measured is not None:
        rows += [("chosen", line) for line in posed.choices.chosen]
    rows += [("proof", proof_text(posed, result)), ("time", f"{result.seconds:.2f} s")]
    return rows


def result_to_json(posed: Posed, result: Result) -> dict[str, object]:
    """The result for programs."""
    peak = result.peak_bound
    return {
        "name": posed.name,
        "status": result.status.name,
        "statement": result.status.value,
        "objective": result.objective,
        "value": result.value,
        "proof": None if result.proof is None else result.proof.name,
        "reason": result.reason,
        "makespan": result.makespan,
        "peak": result.peak,
        "lower_bound": result.lower_bound,
        "engine_bound": result.engine_bound,
        "peak_bound": None
        if peak is None
        else {"value": peak.value, "proof": peak.proof.name, "reason": peak.reason},
        "gap": result.gap,
        "origin": result.origin,
        "certificate": _certificate_to_json(*_certified(posed, result)),
        "chosen": None if posed.choices is None else list(posed.choices.chosen),
        "measured": None if result.measured is None else measures_to_json(result.measured),
        "seconds": round(result.seconds, 3),
    }


def _certificate_to_json(
    problem: Problem, certificate: Certificate | None
) -> dict[str, object] | None:
    if certificate is None:
        return None
    if isinstance(certificate, OneMachine):
        return {
            "kind": "one-machine",
            "resource": problem.resources[certificate.resource].name,
            "tasks": [problem.label(task) for task in certificate.tasks],
            "bound": certificate.bound,
        }
    return {"kind": type(certificate).__name__.lower(), "bound": certificate.bound}
