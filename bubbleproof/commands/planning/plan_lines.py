"""The lines that a plan prints by default: the verdict first, then what it rests on.

A line whose facts are not there is left out. A bound names the set of schedules that it holds for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bubbleproof.commands.output import counted
from bubbleproof.commands.planning.plan_answer import MORE, PlanTable
from bubbleproof.costs.utilisation import utilisation
from bubbleproof.facts import Fact
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners import NoPlanFound, Plan
from bubbleproof.planners.cluster_planned import (
    ESTIMATED,
    NOT_COUNTED,
    ClusterPlan,
    DeploymentRow,
    SolvedDeployment,
)
from bubbleproof.planners.cluster_results import (
    UNIT,
    AnyClusterPlan,
    days_text,
    estimate_error,
    fits_text,
    memory_of,
    no_room,
    own_text,
    tokens_per_second,
)
from bubbleproof.planners.configuration_words import (
    OUTCOMES,
    amount_of,
    deployment_parts,
    difference,
    digits,
    fullest,
    in_words,
    more,
    shape_parts,
    shape_text,
)
from bubbleproof.planners.deployment_times import DeploymentTimes
from bubbleproof.planners.jitter import AnyPlan, Timed
from bubbleproof.planners.outcome import Ground, Outcome
from bubbleproof.planners.plan_facts import DeploymentPlan, NoDeploymentPlan
from bubbleproof.planners.plan_results import noise_text
from bubbleproof.report.amounts import time
from bubbleproof.solvers import Status
from bubbleproof.verify import Verdict

NEXT = 3  # alternatives that are named
BEST = {Status.OPTIMAL: "OPTIMAL", Status.FEASIBLE: "BEST"}
NONE = {Status.INFEASIBLE: "DOES NOT FIT", Status.UNKNOWN: "NO ANSWER"}


def cluster_lines(
    found: DeploymentPlan | NoDeploymentPlan, beside: Iterable[Fact] = ()
) -> list[str]:
    """What is said of deployments."""
    file, counts = found.file, _counts(row.status for row in found.rows)
    own = [] if found.yours is None else [f"yours    {own_text(file, found.yours, found)}"]
    changes = [f"what if  {one.text(found)}" for one in found.what_if]
    if isinstance(found, NoDeploymentPlan):
        nearest = [] if found.status is not Status.INFEASIBLE else found.nearest[:1]
        repair = [f"use cards of {no_room(one)}" for one in nearest]
        why = found.statement.partition(": ")[2] + _left_open(found)
        told = [f"{NONE[found.status]}  {'; '.join([why, *repair])}"]
        told += [f"fits     {fits_text(found.fits)}"] if found.fits else []
        return [*told, *own, *changes, counts]
    shares = [f"time     {time_text(found.times[0])}"] if found.times else []
    by = f" {ESTIMATED}"
    return [
        f"{_verdict(found.status, found.plan.verdict)}  {deployment_text(found)}",
        " · ".join([iteration_text(file, found), *days_text(file, found, found.tokens)]),
        f"memory   {memory_of(file, found)}",
        _bound(found.value, found.lower_bound, UNIT, found.bounded, runs=found.orders, by=by),
        *own,
        *_next(_nearest(file, found)),
        *shares,
        *_told(beside),
        *changes,
        counts,
    ]


def _left_open(found: AnyClusterPlan) -> str:
    """How many deployments an answer leaves open that has none, as a clause; else nothing."""
    left = [row for row in found.rows if row.status is Outcome.UNKNOWN]
    late = sum(row.reason == NOT_COUNTED for row in left)
    told = f"; {len(left):,} of {len(found.rows):,} deployments are open" if left else ""
    return f"{told}, {late:,} of them not estimated" if late else told


def deployment_text(found: ClusterPlan) -> str:
    """The winner's configuration."""
    return in_words(deployment_parts(found.winner.combination, found.plan.winner.candidate))


def iteration_text(file: ClusterFile, found: ClusterPlan) -> str:
    """How long an iteration of it takes, what that is in tokens and of the cards' rate, and how far
    off it may be for which software."""
    training, tokens = file.training, tokens_per_second(file, found.value)
    mfu = f"MFU {100 * utilisation(training, found.value):.1f} %"
    rate = f"{float(f'{tokens:.3g}'):,.0f} tokens/s"
    error, software = estimate_error(file).told, training.cluster.runs.name
    return f"{time(found.value, UNIT)}/iteration · {rate} · {mfu} · {error} · {software}"


def time_text(of: DeploymentTimes) -> str:
    """What the iteration is spent on, the most first."""
    named = dict(of.parts.named)
    named["optimizer and gradient sync"] = named.pop("gradients") + named.pop("optimizer")
    shares = sorted(named.items(), key=lambda each: -each[1])
    told = [(name, 100 * took / of.parts.iteration) for name, took in shares if took]
    return ", ".join(f"{name} {digits(share)} %" for name, share in told)


def _nearest(file: ClusterFile, found: ClusterPlan) -> list[str]:
    """The next deployments that were timed (even: within the error of the plan), what almost fits,
    and what is pruned next."""
    won, card = found.winner.combination, file.training.cluster.memory
    best = deployment_parts(won, found.plan.winner.candidate)

    def name(row: DeploymentRow) -> str:
        if isinstance(row, SolvedDeployment):
            return difference(deployment_parts(row.combination, row.candidate), best)
        return difference(deployment_parts(row.combination), deployment_parts(won))

    timed = sorted((r for r in found.solved if r.combination != won), key=lambda r: r.value)
    error = estimate_error(file)
    even = [", even" * error.is_even(row.value, found.value) for row in timed]
    told = [
        f"{name(row)} ({more(row.value, found.value)}{word})"
        for row, word in zip(timed[: NEXT - 1], even, strict=False)
    ]
    unfit = [r for r in found.rows if r.status is Outcome.INFEASIBLE and r.on_card > card]
    for row in sorted(unfit, key=lambda row: row.on_card)[:1]:
        told.append(f"{name(row)} (needs {amount_of(row.on_card - card, None, 'bytes')} more)")
    pruned = [r for r in found.rows if r.status is Outcome.BOUNDED]
    for row in sorted(pruned, key=lambda row: row.bound)[: NEXT - len(told)]:
        told.append(f"{name(row)} (at least {more(row.bound, found.value)})")
    return told


def problem_lines(
    file: ProblemFile, found: AnyPlan, timed: Timed, beside: Iterable[Fact]
) -> list[str]:
    """What is said of the candidates of one pipeline."""
    unit, memory = file.pipeline.unit, file.pipeline.memory_unit
    counts = _counts(one.status for one in found.judged)
    if not isinstance(found, Plan):
        least = found.least_capacity if isinstance(found, NoPlanFound) else None
        repair = [] if least is None else [f"use {amount_of(least, None, memory)} on each rank"]
        why = found.statement.partition(": ")[2]
        return [f"{NONE[found.status]}  {'; '.join([why, *repair])}", counts]
    winner = found.winner
    others = [
        f"{difference(shape_parts(one.candidate), shape_parts(winner.candidate)) or '1F1B shape'}"
        f" ({more(one.value, found.value)})"
        for one in sorted(found.solved, key=lambda one: one.value)
        if one is not winner and one.reason.ground is not Ground.SAME_PIPELINE
    ]
    takes = f"{time(found.value, unit)}{' with hosts and NICs' if winner.has_more else ''}"
    return [
        f"{_verdict(found.status, found.verdict)}  {shape_text(winner.candidate)}: {takes}",
        f"memory   {fullest(winner.measured.peak_memory, winner.pipeline.problem())}",
        _bound(found.value, found.lower_bound, unit, found.bounded, claimed=found.believed),
        *_next(others[:NEXT]),
        f"noise    {noise_text(file, found, timed)}",
        *_told(beside),
        counts,
    ]


def why_tables(file: ProblemFile, found: AnyPlan) -> list[PlanTable]:
    """Why each candidate is not the plan."""
    rows = [
        (shape_text(one.candidate), OUTCOMES[one.status], str(one.reason))
        for one in found.ranked()
        if not isinstance(found, Plan) or one is not found.winner
    ]
    title, columns = f"{file.name}: why not", ("configuration", "status", "why")
    return [PlanTable(title=title, columns=columns, rows=rows)] if rows else []


def _verdict(status: Status, verdict: Verdict) -> str:
    return f"{BEST[status]:<7}" if verdict.ok else "INVALID"


def _bound(
    value: int,
    bound: int,
    unit: str,
    bounded: str,
    *,
    runs: Sequence[str] = (),
    by: str = "",
    claimed: Sequence[str] = (),
) -> str:
    """How far the value may be above what is possible, and of which set.

    ``runs`` are the orders that a framework has, ``by`` says what the times are, ``claimed`` names
    solvers whose bounds have no certificate.
    """
    if not bound:
        return f"no bound of {bounded}"
    of = f"{bounded} (lower bound {time(bound, unit)}{by})"
    of += f"; best of the orders that the framework runs: {', '.join(runs)}" if runs else ""
    of += f"; uncertified bound of {' and '.join(claimed)}" if claimed else ""
    if bound < value:
        return f"within   {more(value, bound).removeprefix('+')} of {of}"
    return f"{'bound ' if claimed else 'proved'}   shortest of {of}"


def _next(told: Sequence[str]) -> list[str]:
    return [f"next     {' · '.join(told)}"] if told else []


def _told(beside: Iterable[Fact]) -> list[str]:
    """A paper's choice in a line."""
    return [f"paper    {fact.told}" for fact in beside if fact.told and not fact.label]


def _counts(outcomes: Iterable[Outcome]) -> str:
    """How many there are of each outcome that is not a schedule, and what more there is to see."""
    of = Counter(outcomes)
    told = [f"{of[each]:,} {words}" for each, words in OUTCOMES.items() if of[each]]
    return f"{counted(sum(of.values()), 'configuration')}: {', '.join(told)}   {MORE}".replace(
        " does not fit", " do not fit"
    )
