"""The plan of a model on a cluster for people and for programs: deployments, and the winner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bubbleproof.costs.times.estimate_errors import EstimateError, error_of
from bubbleproof.costs.utilisation import teraflops, utilisation
from bubbleproof.facts import Fact, keyed, labelled, valued
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners.cluster_planned import (
    ClusterPlan,
    DeploymentRow,
    NearestDeployment,
    NoClusterPlan,
    SolvedDeployment,
)
from bubbleproof.planners.configuration_words import (
    OUTCOMES,
    amount_of,
    deployment_parts,
    digits,
    in_words,
    more,
)
from bubbleproof.planners.deployment_times import DeploymentTimes
from bubbleproof.planners.jitter import Timed
from bubbleproof.planners.memory_parts import MemoryParts, memory_parts
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.own_run import (
    NO_ROOM,
    FittingChange,
    NotLegalRun,
    OwnRun,
    Saving,
    changed,
)
from bubbleproof.planners.plan_results import (
    bound_text,
    candidates_to_json,
    front_to_json,
    schedule_facts,
    shape_facts,
    took,
    winner_to_json,
)
from bubbleproof.planners.restriction import AnyRestriction, Restriction, UnknownRestriction
from bubbleproof.report.amounts import Scale, ticks, time
from bubbleproof.report.plan_page import Corner
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER

COLUMNS = ("deployment", "iteration", "lower bound", "MFU", "peak", "status", "why")
NUMBERS = re.compile(r"[0-9][0-9.,]*")
MOST_SHOWN = 12
UNIT = "us"
SECONDS = 86_400  # of a day
TOKENS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1, ""))
TIME_COLUMNS = (
    "deployment",
    "iteration (ms)",
    "compute",
    "tensor",
    "exchange",
    "bubble",
    "gradient sync",
    "optimizer",
    "would win if",
)
PARTS_EXPLAINED = (
    "milliseconds: compute, the products of the rank that computes longest; tensor and exchange, "
    "what waits for\ntensor groups, and for context, experts and ZeRO 2 and 3, add; bubble, the "
    "rest of the pipeline's makespan;\ngradient sync and optimizer, the step's end."
)
OF_DEPLOYMENT = "any order of this deployment's pipelines that were open"
AnyClusterPlan = ClusterPlan | NoClusterPlan
AnyOwn = OwnRun | NotLegalRun | None


def combination_rows(
    file: ClusterFile, found: AnyClusterPlan, most: int | None = MOST_SHOWN
) -> list[tuple[str, ...]]:
    """The deployments: the shortest iteration first, then the least bound, then what cannot run.

    All, or the first of them (``most``), and how many others there are for each reason, numbers
    aside; of those that do not fit the nearest to it is the example.

    Parameters
    ----------
    most
        Rows that are shown; None: all.
    """
    rows = sorted(found.rows, key=_place)
    shown = [_row(file, row) for row in rows[:most]]
    groups: dict[tuple[Outcome, str], list[DeploymentRow]] = {}
    for row in rows[len(shown) :]:
        groups.setdefault((row.status, NUMBERS.sub("#", row.reason)), []).append(row)
    for (status, _), alike in groups.items():
        one = min(alike, key=lambda row: row.on_card if status is Outcome.INFEASIBLE else 0)
        name = in_words(deployment_parts(one.combination))
        why = f"such as {name}: {one.reason}" if len(alike) > 1 else one.reason
        shown.append((f"and {len(alike)} more", "", "", "", "", OUTCOMES[status], why))
    return shown


def _place(row: DeploymentRow) -> tuple[int, int]:
    if isinstance(row, SolvedDeployment):
        return 0, row.value
    if row.status is Outcome.INFEASIBLE:  # the nearest to fitting first
        return 3, row.on_card or NEVER
    places = {Outcome.UNKNOWN: 1, Outcome.BOUNDED: 2, Outcome.TOO_LARGE: 4}
    return places.get(row.status, 5), row.bound


def _row(file: ClusterFile, row: DeploymentRow) -> tuple[str, ...]:
    value, peak = "", ""
    if isinstance(row, SolvedDeployment):
        value = time(row.value, UNIT)
        peak = Scale.of("bytes", row.peak_memory).amount(row.peak_memory)
    return (
        in_words(deployment_parts(row.combination)),
        value,
        "" if row.bound in (0, NEVER) else time(row.bound, UNIT),
        _utilisation(file, row),
        peak,
        OUTCOMES[row.status],
        row.reason,
    )


def corners_of(found: ClusterPlan) -> list[Corner]:
    """Where each deployment that fits lies between time and memory."""
    return [
        Corner(
            name=str(row.combination),
            ticks=row.value if isinstance(row, SolvedDeployment) else row.bound,
            memory=row.on_card,
            is_found=isinstance(row, SolvedDeployment),
        )
        for row in found.rows
        if row.bound not in (0, NEVER)
    ]


def _utilisation(file: ClusterFile, row: DeploymentRow) -> str:
    """In percent; where there is a bound alone, at most so much."""
    if isinstance(row, SolvedDeployment):
        return f"{100 * utilisation(file.training, row.value):.1f} %"
    if row.bound in (0, NEVER):
        return ""
    return f"<= {100 * utilisation(file.training, row.bound):.1f} %"


def cluster_facts(file: ClusterFile, found: AnyClusterPlan) -> list[Fact]:
    """What became of the deployments: what a plan and what is none have in common."""
    plan = found if isinstance(found, ClusterPlan) else None
    nearest = found.nearest if isinstance(found, NoClusterPlan) else ()
    mfu = 0.0 if plan is None else utilisation(file.training, plan.value)
    facts = [
        *keyed(name=file.name, status=found.status.name),
        Fact(key="statement", label="status", value=found.statement),
        *keyed(objective="iteration", unit=UNIT, lower_bound_of=found.bounded),
        *keyed(lower_bound=None if found.lower_bound == NEVER else found.lower_bound),
        *keyed(candidates=[_to_json(row) for row in sorted(found.rows, key=_place)]),
        *keyed(pareto=front_to_json(found.solved), reason=found.reason),
        *keyed(nearest=found.nearest[0].combination.to_json() if found.nearest else None),
        *keyed(value=None if plan is None else plan.value, winner=None),
        *keyed(mfu=None if plan is None else round(mfu, 4)),
        *keyed(software=file.training.cluster.runs.name),
        *_notes_facts(file),
        *keyed(least_capacity=nearest[0].memory if nearest else None),
        *keyed(verified=plan is not None and plan.plan.verdict.ok),
        took(found.seconds),
        *labelled({"deployments": f"{len(found.rows):,}"}),
    ]
    if plan is None:
        fits = nearest if found.status is Status.INFEASIBLE else ()
        return [*facts, *(Fact(label="fits with", value=no_room(one)) for one in fits)]
    error = estimate_error(file)
    even = [row for row in plan.solved if error.is_even(row.value, plan.value)]
    rate = teraflops(file.training, plan.value)
    bound = bound_text(plan.value, plan.lower_bound, UNIT, plan.bounded)
    told = {
        "run": in_words(deployment_parts(plan.winner.combination)),
        "iteration": ticks(plan.value, UNIT),
        "error": f"{error.told}; even within it: {len(even) - 1} of the others with a schedule",
        "software": file.training.cluster.runs.name,
        "lower bound": bound,
        "optimizer and gradient sync": ticks(plan.step_end, UNIT),
        "model FLOPs per card": f"{rate:.1f} TFLOPS, {100 * mfu:.1f} % of its rate (MFU)",
        "memory": memory_of(file, plan),
    }
    ranks = [{"rank": r, **part.named} for r, part in enumerate(parts_of(file, plan))]
    rough = keyed(memory=ranks, error=error.band, beyond=[*error.beyond])
    return [*facts, *labelled(told), *rough]


def _notes_facts(file: ClusterFile) -> list[Fact]:
    told = "; ".join(file.notes)
    return [Fact(key="notes", label="not counted", told=told, value=[*file.notes])] if told else []


def estimate_error(file: ClusterFile) -> EstimateError:
    """How far the times of a file's deployments may be off."""
    job = file.training
    return error_of(job.model, job.cluster.card, job.cluster.runs, job.cluster.cards)


def tokens_per_second(file: ClusterFile, microseconds: int) -> float:
    """The tokens that are trained on in a second.

    Parameters
    ----------
    microseconds
        Of an iteration.
    """
    return file.training.samples * file.training.deployment.sequence / (microseconds / 1e6)


def no_room(nearest: NearestDeployment) -> str:
    """What would fit: the memory of a card, and the deployment."""
    memory = Scale.of("bytes", nearest.memory).amount(nearest.memory)
    return f"{memory} or more, as {in_words(deployment_parts(nearest.combination))}"


def days_facts(file: ClusterFile, found: ClusterPlan, tokens: float | None) -> list[Fact]:
    """How long so many tokens take, where they are asked for.

    Parameters
    ----------
    tokens
        Of the whole training; None where nobody asks.
    """
    if tokens is None:
        return []
    days = Fact(key="days", label="training", value=round(_days(file, found, tokens), 3))
    return [Fact(key="tokens", value=tokens), replace(days, told=days_text(file, found, tokens)[0])]


def days_text(file: ClusterFile, found: ClusterPlan, tokens: float | None) -> list[str]:
    """The same in words.

    Parameters
    ----------
    tokens
        Of the whole training; None where nobody asks.
    """
    if tokens is None:
        return []
    divisor, letter = next((d, name) for d, name in TOKENS if tokens >= d or d == 1)
    return [f"{digits(_days(file, found, tokens))} days for {tokens / divisor:g}{letter} tokens"]


def _days(file: ClusterFile, found: ClusterPlan, tokens: float) -> float:
    each = file.training.samples * file.training.deployment.sequence
    return tokens / each * found.value / 1e6 / SECONDS


def fits_text(fits: Sequence[FittingChange]) -> str:
    """The changes that fit, each with its iteration."""
    return " · ".join(f"{one.change} ({time(one.iteration, UNIT)})" for one in fits)


def fit_facts(fits: Sequence[FittingChange]) -> list[Fact]:
    """The same as a fact."""
    if not fits:
        return []
    value = [one.to_json() for one in fits]
    return [Fact(key="fits", label="fits as", told=fits_text(fits), value=value)]


def memory_of(file: ClusterFile, found: ClusterPlan) -> str:
    """The fullest card of the winner, beside what it has."""
    peaks = found.plan.winner.measured.peak_memory
    rank = max(range(len(peaks)), key=lambda rank: peaks[rank])
    load = peaks[rank] + found.winner.numbers.beside
    told = f"{amount_of(load, file.training.cluster.memory, 'bytes')} on rank {rank}"
    if not (parts := parts_of(file, found)):
        return told
    named = {name: size for name, size in parts[rank].named.items() if size}
    unit = Scale.of("bytes", file.training.cluster.memory).divisor
    kinds = ", ".join(f"{name} {digits(size / unit)}" for name, size in named.items())
    return f"{told}: {kinds}"


def parts_of(file: ClusterFile, found: ClusterPlan) -> tuple[MemoryParts, ...]:
    """What each rank holds at its fullest, by kind; nothing of a paper's pipeline."""
    winner = found.plan.winner
    if winner.candidate.beside or winner.candidate.layers is None:
        return ()
    cut, peaks = winner.candidate.layers, winner.measured.peak_memory
    return memory_parts(file.training, found.winner, winner.pipeline, cut, peaks)


def winner_facts(deployed: ProblemFile, found: ClusterPlan, timed: Timed) -> list[Fact]:
    """What is said of the winner's pipeline."""
    winner = {**found.winner.combination.to_json(), **winner_to_json(found.plan.winner)}
    return [
        *keyed(winner=winner, makespan=found.plan.value, step_end=found.step_end),
        *keyed(microbatches=found.winner.microbatches),
        *keyed(shapes=candidates_to_json(deployed, found.plan, timed)),
        *shape_facts(deployed, found.plan),
        *schedule_facts(deployed, found.plan, timed),
    ]


def _to_json(row: DeploymentRow) -> dict[str, object]:
    return {
        **row.combination.to_json(),
        "status": row.status.name,
        "value": row.value if isinstance(row, SolvedDeployment) else None,
        "lower_bound": None if row.bound in (0, NEVER) else row.bound,
        "lower_bound_of": OF_DEPLOYMENT,
        "peak_memory": row.peak_memory if isinstance(row, SolvedDeployment) else None,
        "reason": row.reason,
    }


def time_rows(times: Sequence[DeploymentTimes]) -> list[tuple[str, ...]]:
    """A row of each, in milliseconds."""
    best = times[0].parts
    return [
        (
            in_words(deployment_parts(each.row.combination, each.row.candidate)),
            _ms(each.parts.iteration),
            *(_ms(took) for took in each.parts.named.values()),
            "it is" if each.parts is best else each.parts.to_beat(best),
        )
        for each in times
    ]


def _ms(microseconds: int) -> str:
    return f"{microseconds / 1000:,.1f}"


def times_to_json(times: Sequence[DeploymentTimes]) -> list[dict[str, object]]:
    """The same for programs, in microseconds."""
    return [
        {"deployment": each.name, "iteration": each.parts.iteration, **each.parts.named}
        for each in times
    ]


def own_facts(file: ClusterFile, own: AnyOwn, found: AnyClusterPlan) -> list[Fact]:
    """What one's own configuration takes beside the plan, and what to change."""
    if own is None:
        return []
    row = Fact(label="yours", value=own_text(file, own, found))
    if isinstance(own, NotLegalRun):
        is_plan = isinstance(found, ClusterPlan)
        return [row, *(keyed(yours_refused=str(own)) if is_plan else ())]
    if not isinstance(found, ClusterPlan):
        return [row]
    mfu = round(utilisation(file.training, own.iteration), 4)
    value = {**own.to_json(), "mfu": mfu, "change": _changes(own, found)}
    return [replace(row, key="yours", told=own_text(file, own, found), value=value)]


def own_text(file: ClusterFile, own: OwnRun | NotLegalRun, found: AnyClusterPlan) -> str:
    """The same in a line.

    One that is no candidate may be shorter than the plan: nothing is to change then.
    """
    if isinstance(own, NotLegalRun):
        return f"invalid: {str(own).removeprefix('yours ')}"
    name = in_words(deployment_parts(own.combination, own.candidate))
    mfu = f"MFU {100 * utilisation(file.training, own.iteration):.1f} %"
    told = "; ".join([f"{name}: {time(own.iteration, UNIT)}, {mfu}", *own.own.remarks])
    if not own.fits:
        told += f"; {room_text(file, own)}"
    if own.reason and own.reason != NO_ROOM:
        told += f"; outside of what was planned: {own.reason}"
    if own.fits_as:
        told += f"; fits with {fits_text(own.fits_as)}"
    if not isinstance(found, ClusterPlan):
        return told
    changes = ", ".join(_changes(own, found))
    beside = f"{more(own.iteration, found.value)} as the plan"
    if own.iteration != found.value:
        beside = f"{more(own.iteration, found.value)} beside the plan"
    if found.value > own.iteration:
        return f"{told}; {beside}"
    saved = ", ".join(_saved(each) for each in own.savings)
    what = f"change {changes}" + (f"; by itself {saved}" if saved else "")
    same = "it is the plan" if own.iteration == found.value else "the plan has another order of it"
    return f"{told}; {beside}; {what if changes or saved else same}"


def room_text(file: ClusterFile, own: OwnRun) -> str:
    """What it needs of a card that it has not."""
    card = file.training.cluster.memory
    missing = amount_of(own.on_card - card, None, "bytes")
    return f"needs {amount_of(own.on_card, card, 'bytes')} and has no room: {missing} are missing"


def _saved(change: Saving) -> str:
    """A change and what it saves."""
    room = "" if change.fits else ", for which there is no room"
    return f"{change.change} saves {time(change.saves, UNIT)}{room}"


def _changes(own: OwnRun, found: ClusterPlan) -> list[str]:
    """What to change for the plan, where that is no longer."""
    if found.value > own.iteration:
        return []
    return changed(own, found.winner.combination, found.plan.winner.candidate)


def restriction_facts(of: AnyRestriction, best: int) -> list[Fact]:
    """What it costs that the plan is for one framework; ``best`` is the plan's iteration.

    Parameters
    ----------
    best
        Microseconds.
    """
    if of is None:
        return []
    if isinstance(of, UnknownRestriction):
        told = {"planned for": of.framework, "cost of this restriction": f"not known: {of.why}"}
        return list(labelled(told))
    told = {
        "planned for": f"{of.framework}; {of.left_out:,} deployments that it does not run are left "
        "out",
        "cost of this restriction": restriction_cost(of, best),
        "lower bound without it": f"{ticks(of.bound, UNIT)} ({of.bounded})",
    }
    stated = valued(
        "framework",
        name=of.framework,
        left_out=of.left_out,
        unrestricted=of.value,
        run=of.run,
        lower_bound=of.bound,
        lower_bound_of=of.bounded,
    )
    return [*stated, *labelled(told)]


def restriction_cost(of: Restriction, best: int) -> str:
    """The cost that was found, and the most that it may be.

    Parameters
    ----------
    best
        Microseconds of the plan's iteration.
    """

    def less(other: int) -> str:
        return f"{100 * (best - other) / best:.2g} %"

    cost = "nothing that was found"
    if of.value is not None and of.value < best:
        cost = f"{less(of.value)}: {of.value:,} us as {of.run}"
    return f"{cost}; at most {less(of.bound)} less without it"
