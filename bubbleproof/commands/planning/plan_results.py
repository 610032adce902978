"""The result of a plan for people and for programs: its candidates, ranked, and why each lost."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bubbleproof.formats.plans.bundle_json import candidate_to_json
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners import CandidateResult, NoPlanFound, Plan, SolvedCandidate
from bubbleproof.planners.case_proofs import NEVER
from bubbleproof.planners.jitter import AnyPlan, Jitter, Timed, jitter_seconds
from bubbleproof.planners.planned import TicksAndMemory, front_of
from bubbleproof.report.amounts import Scale, ticks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.choices_aloud import listed_choices
from bubbleproof.theory.pipelines.shapes.space_scope import scope_of, scope_text

COLUMNS = ("candidate", "makespan", "bound", "peak", "expected", "95 %", "status", "why")
MOST_SHOWN = 40  # candidates in a table for people
WITH_HOSTS = "takes, hosts and NICs included"


def ranked(file: ProblemFile, found: AnyPlan, timed: Timed) -> tuple[CandidateResult, ...]:
    """The candidates as the file wants them listed."""
    if file.rank_by == "nominal":
        return found.ranked()

    def place(one: SolvedCandidate) -> float:
        spans = timed.get(str(one.candidate))
        return float("inf") if spans is None else float(getattr(spans, file.rank_by))

    return found.ranked(place)


def candidate_rows(file: ProblemFile, found: AnyPlan, timed: Timed) -> list[tuple[str, ...]]:
    """The table's rows, ranked; where there are many, the first of them."""
    rows = [_row(file, found, one, timed) for one in ranked(file, found, timed)[:MOST_SHOWN]]
    if len(found.judged) > MOST_SHOWN:
        rows.append((f"and {len(found.judged) - MOST_SHOWN} more", *[""] * 7))
    return rows


def _row(file: ProblemFile, found: AnyPlan, one: CandidateResult, timed: Timed) -> tuple[str, ...]:
    spans, value, peak = timed.get(str(one.candidate)), "", ""
    if isinstance(one, SolvedCandidate):
        scale = Scale.of(file.pipeline.memory_unit, one.peak_memory)
        value, peak = f"{one.value:,}", scale.amount(one.peak_memory)
    is_plan = isinstance(found, Plan) and one is found.winner
    return (
        str(one.candidate),
        value,
        "" if one.bound in (0, NEVER) else f"{one.bound:,}",
        peak,
        "" if spans is None else f"{spans.expected:,.0f}",
        "" if spans is None else f"{spans.p95:,.0f}",
        one.status.name,
        "the plan" if is_plan else str(one.reason),
    )


def summary_rows(file: ProblemFile, found: AnyPlan, timed: Timed) -> list[tuple[str, str]]:
    """What to run and how good it is; or why nothing, and what would do."""
    unit, time_row = file.pipeline.unit, ("time", f"{found.seconds:.2f} s")
    rows = [("status", found.statement)]
    if isinstance(found, NoPlanFound):
        if found.least_capacity is not None:
            scale = Scale.of(file.pipeline.memory_unit, found.least_capacity)
            rows.append(("fits with", f"{scale.amount(found.least_capacity)} on each rank"))
        return [*rows, time_row]
    return [
        *rows,
        ("run", str(found.winner.candidate)),
        (WITH_HOSTS if found.winner.has_more else "makespan", ticks(found.value, unit)),
        ("lower bound", bound_text(found.value, found.lower_bound, unit, found.bounded)),
        ("choices", scope_text(found.space)),
        *schedule_rows(file, found, timed),
        time_row,
    ]


def deployed_rows(file: ProblemFile, found: Plan, timed: Timed) -> list[tuple[str, str]]:
    """What to run of a deployment's pipeline; how good it is, is told of the iteration."""
    takes = WITH_HOSTS if found.winner.has_more else "its makespan"
    return [
        ("pipeline's shape", str(found.winner.candidate)),
        (takes, ticks(found.value, file.pipeline.unit)),
        *schedule_rows(file, found, timed),
    ]


def schedule_rows(file: ProblemFile, found: Plan, timed: Timed) -> list[tuple[str, str]]:
    """The winner's schedule: who found it, what is chosen in it, and how long it is in life."""
    unit = file.pipeline.unit
    rows = [("found by", found.winner.origin)]
    rows += [
        (name, str(value))
        for name, value in listed_choices(found.winner.pipeline.choices).items()
        if value
    ]
    spans = timed.get(str(found.winner.candidate))
    if spans is None:
        needed = jitter_seconds(len(found.winner.schedule), file.spread)
        why = f"not sampled: that takes about {needed:.0f} s, more than was left"
        rows.append(("where durations spread", why))
    else:
        rows.append(("where durations spread", _spans_text(spans, unit)))
        first = ranked(file, found, timed)[0]
        if first is not found.winner:
            rows.append((f"shortest by {file.rank_by}", str(first.candidate)))
    verified = "every rule holds" if found.verdict.ok else "violated"
    return [*rows, ("verified", verified)]


def value_of(found: AnyPlan) -> int | None:
    """What the plan takes; None where there is none."""
    return found.value if isinstance(found, Plan) else None


def bound_text(value: int, lower_bound: int, unit: str, bounded: str) -> str:
    """The bound, what it is of, and how far the plan is above it."""
    above, bound = value - lower_bound, f"{ticks(lower_bound, unit)} ({bounded})"
    if not above or not lower_bound:
        return bound
    return f"{bound}; the plan is {100 * above / lower_bound:.2g} % above it"


def _spans_text(spans: Jitter, unit: str) -> str:
    expected, p95 = (ticks(round(value), unit) for value in (spans.expected, spans.p95))
    return f"{expected} expected, 95 % within {p95}"


def front_to_json(solved: Iterable[TicksAndMemory]) -> list[dict[str, int]]:
    """Those that no other beats in ticks and in peak memory."""
    return [{"value": one.value, "peak_memory": one.peak_memory} for one in front_of(solved)]


def plan_to_json(file: ProblemFile, found: AnyPlan, timed: Timed) -> dict[str, object]:
    """The result for programs."""
    plan = found if isinstance(found, Plan) else None
    return {
        "name": file.name,
        "status": found.status.name,
        "statement": found.statement,
        "objective": file.objective,
        "value": None if plan is None else plan.value,
        "lower_bound": _bound(found.lower_bound),
        "lower_bound_of": found.bounded,
        "choices": dict(scope_of(found.space)),
        "believed": list(found.believed),
        "winner": None if plan is None else winner_to_json(plan.winner),
        "candidates": [_to_json(one, timed) for one in ranked(file, found, timed)],
        "ranked_by": file.rank_by,
        "pareto": front_to_json(found.solved),
        "least_capacity": found.least_capacity if isinstance(found, NoPlanFound) else None,
        "verified": plan is not None and plan.verdict.ok,
        "reason": found.reason,
        "seconds": round(found.seconds, 3),
    }


def _bound(bound: int) -> int | None:
    """None where no schedule fits at all."""
    return None if bound == NEVER else bound


def winner_to_json(winner: SolvedCandidate) -> dict[str, object]:
    """The winner's shape, and what is chosen in it."""
    candidate = candidate_to_json(winner.candidate)
    layers = candidate.pop("layers")
    return {
        **candidate,
        "f": first_forwards(winner.schedule),
        "layers": layers,
        **listed_choices(winner.pipeline.choices),
    }


def _to_json(one: CandidateResult, timed: Timed) -> dict[str, object]:
    spans = timed.get(str(one.candidate))
    solved = one if isinstance(one, SolvedCandidate) else None
    return {
        **candidate_to_json(one.candidate),
        "f": None if solved is None else first_forwards(solved.schedule),
        **listed_choices(Choices() if solved is None else solved.pipeline.choices),
        "status": one.status.name,
        "value": None if solved is None else solved.value,
        "lower_bound": _bound(one.bound),
        "lower_bound_of": "any schedule of this candidate",
        "peak_memory": None if solved is None else solved.peak_memory,
        "expected": None if spans is None else round(spans.expected),
        "p95": None if spans is None else round(spans.p95),
        "reason": str(one.reason),
    }


def first_forwards(schedule: Schedule) -> int:
    """How many forwards rank 0 runs before its first backward."""
    rows = np.flatnonzero(schedule.program.resource == 0)
    kinds = schedule.program.actions.take(rows)
    backward = np.flatnonzero(kinds.is_kind(Kind.B, Kind.I, Kind.OVERLAP_F_B))
    before = len(rows) if not len(backward) else int(backward[0])
    return int(kinds.is_kind(Kind.F)[:before].sum())
