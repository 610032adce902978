"""The result of a plan for people and for programs: its candidates, ranked, and why each lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from bubbleproof.facts import Fact, keyed, labelled
from bubbleproof.formats.plans.bundle_json import candidate_to_json
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners import CandidateResult, NoPlanFound, Plan, SolvedCandidate
from bubbleproof.planners.configuration_words import OUTCOMES, shape_text
from bubbleproof.planners.jitter import AnyPlan, Timed, jitter_seconds
from bubbleproof.planners.planned import TicksAndMemory, front_of
from bubbleproof.report.amounts import Scale, ticks, time
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.choices_aloud import listed_choices
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from bubbleproof.theory.pipelines.shapes.space_scope import scope_of, scope_text

COLUMNS = ("candidate", "makespan", "bound", "peak", "expected", "95 %", "status", "why")
MOST_SHOWN = 40  # candidates in a table for people
WITH_HOSTS = "takes, hosts and NICs included"
NOISE = "with timing noise"


def ranked(file: ProblemFile, found: AnyPlan, timed: Timed) -> tuple[CandidateResult, ...]:
    """The candidates as the file wants them listed."""
    if file.rank_by == "nominal":
        return found.ranked()

    def place(one: SolvedCandidate) -> float:
        spans = timed.get(str(one.candidate))
        return float("inf") if spans is None else float(getattr(spans, file.rank_by))

    return found.ranked(place)


def candidate_rows(
    file: ProblemFile, found: AnyPlan, timed: Timed, most: int | None = MOST_SHOWN
) -> list[tuple[str, ...]]:
    """The table's rows, ranked: all, or the first of them (``most``).

    Parameters
    ----------
    most
        Rows that are shown; None: all.
    """
    shown = ranked(file, found, timed)[:most]
    rows = [_row(file, found, one, timed) for one in shown]
    if len(shown) < len(found.judged):
        rows.append((f"and {len(found.judged) - len(shown)} more", *[""] * 7))
    return rows


def _row(file: ProblemFile, found: AnyPlan, one: CandidateResult, timed: Timed) -> tuple[str, ...]:
    spans, value, peak = timed.get(str(one.candidate)), "", ""
    if isinstance(one, SolvedCandidate):
        scale = Scale.of(file.pipeline.memory_unit, one.peak_memory)
        value, peak = f"{one.value:,}", scale.amount(one.peak_memory)
    is_plan = isinstance(found, Plan) and one is found.winner
    return (
        shape_text(one.candidate),
        value,
        "" if one.bound in (0, NEVER) else f"{one.bound:,}",
        peak,
        "" if spans is None else f"{spans.expected:,.0f}",
        "" if spans is None else f"{spans.p95:,.0f}",
        OUTCOMES[one.status],
        "the plan" if is_plan else str(one.reason),
    )


def plan_facts(file: ProblemFile, found: AnyPlan, timed: Timed) -> list[Fact]:
    """What to run and how good it is; or why nothing, and what would do."""
    plan, unit = found if isinstance(found, Plan) else None, file.pipeline.unit
    least = found.least_capacity if isinstance(found, NoPlanFound) else None
    bound, value = _bound(found.lower_bound), value_of(found)
    facts = [
        *keyed(name=file.name, status=found.status.name),
        Fact(key="statement", label="status", value=found.statement),
        *keyed(objective=file.objective, value=value, lower_bound=bound),
        *keyed(lower_bound_of=found.bounded, choices=dict(scope_of(found.space))),
        *keyed(believed=list(found.believed)),
        *keyed(winner=None if plan is None else winner_to_json(plan.winner)),
        *keyed(candidates=candidates_to_json(file, found, timed), ranked_by=file.rank_by),
        *keyed(pareto=front_to_json(found.solved), least_capacity=least),
        *keyed(verified=plan is not None and plan.verdict.ok, reason=found.reason),
    ]
    if least is not None:
        told = Scale.of(file.pipeline.memory_unit, least).amount(least)
        facts.append(Fact(label="fits with", value=f"{told} on each rank"))
    if plan is not None:
        text = bound_text(plan.value, plan.lower_bound, unit, plan.bounded)
        facts += shape_facts(file, plan)
        facts += labelled({"lower bound": text, "choices": scope_text(plan.space)})
        facts += schedule_facts(file, plan, timed)
    return [*facts, took(found.seconds)]


def took(seconds: float) -> Fact:
    """How long it was looked for.

    Parameters
    ----------
    seconds
        How long.
    """
    told = f"{seconds:.2f} s"
    return Fact(key="seconds", label="time", value=round(seconds, 3), told=told)


def shape_facts(file: ProblemFile, found: Plan) -> Iterator[Fact]:
    """What to run of a pipeline, and what it takes."""
    takes = WITH_HOSTS if found.winner.has_more else "makespan"
    run = shape_text(found.winner.candidate)
    return labelled({"pipeline": run, takes: ticks(found.value, file.pipeline.unit)})


def schedule_facts(file: ProblemFile, found: Plan, timed: Timed) -> Iterator[Fact]:
    """The winner's schedule: who found it, what is chosen in it, and its time with noise."""
    chosen = listed_choices(found.winner.pipeline.choices)
    told = {"found by": found.winner.origin}
    told |= {name: str(value) for name, value in chosen.items() if value}
    told[NOISE] = noise_text(file, found, timed)
    if str(found.winner.candidate) in timed:
        first = ranked(file, found, timed)[0]
        if first is not found.winner:
            told[f"shortest by {file.rank_by}"] = shape_text(first.candidate)
    told["verified"] = "every rule holds" if found.verdict.ok else "violated"
    return labelled(told)


def noise_text(file: ProblemFile, found: Plan, timed: Timed) -> str:
    """How long the winner is where durations spread, or why that is not known."""
    spans = timed.get(str(found.winner.candidate))
    if spans is None:
        needed = jitter_seconds(len(found.winner.schedule), file.spread)
        return f"not sampled: that takes about {needed:.0f} s, more than was left"
    unit = file.pipeline.unit
    expected, p95 = (time(round(value), unit) for value in (spans.expected, spans.p95))
    return f"{expected} expected, 95 % within {p95}"


def value_of(found: AnyPlan) -> int | None:
    """What the plan takes; None where there is none."""
    return found.value if isinstance(found, Plan) else None


def bound_text(value: int, lower_bound: int, unit: str, bounded: str) -> str:
    """The bound, what it is of, and how far the plan is above it.

    Parameters
    ----------
    value, lower_bound
        Ticks of the plan, and of the bound.
    unit
        That of a tick, for people.
    bounded
        What the bound is of.
    """
    above, bound = value - lower_bound, f"{ticks(lower_bound, unit)} ({bounded})"
    if not above or not lower_bound:
        return bound
    return f"{bound}; the plan is {100 * above / lower_bound:.2g} % above it"


def front_to_json(solved: Iterable[TicksAndMemory]) -> list[dict[str, int]]:
    """Those that no other beats in ticks and in peak memory."""
    return [{"value": one.value, "peak_memory": one.peak_memory} for one in front_of(solved)]


def candidates_to_json(file: ProblemFile, found: AnyPlan, timed: Timed) -> list[dict[str, object]]:
    """Every candidate for programs, ranked."""
    return [_to_json(one, timed) for one in ranked(file, found, timed)]


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
