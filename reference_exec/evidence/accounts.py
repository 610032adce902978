"""Accounts: the bytes that ranks and their hosts were measured to hold, beside the predicted ones.

At every action of every pass (``passes_of``), at their peaks, as ranks are made (``births``), and
what of weights, gradients and optimizer state is there as each pass begins and ends.
"""

from __future__ import annotations

from bubbleproof.reference_exec.evidence.replay_record import NOTHING, RankComparison, StateMoment
from bubbleproof.reference_exec.plans.prepared import PreparedReplay
from bubbleproof.reference_exec.runtime.rank import RankResult
from bubbleproof.reference_exec.runtime.trace import RankTrace, Samples, TraceRow

ComparisonPair = tuple[RankComparison[int], RankComparison[int]]  # on ranks, on their hosts


def peaks_of(ready: PreparedReplay, results: list[RankResult]) -> ComparisonPair:
    """The most that ranks and their hosts held; a host's own from its beginning on."""
    plan = ready.plan
    counted = results if plan.counts_bytes else []
    here = tuple(max(result.live_bytes, default=0) for result in counted)
    hosts = counted if ready.predicted_hosts else []
    there = tuple(max(result.born_bytes[1], *result.host_live_bytes) for result in hosts)
    return (
        RankComparison(here, ready.predicted * plan.num_replicas),
        RankComparison(there, ready.predicted_hosts * plan.num_replicas),
    )


def births(ready: PreparedReplay, results: list[RankResult]) -> ComparisonPair:
    """What ranks and their hosts held as they were made."""
    if not ready.plan.counts_bytes:
        return NOTHING, NOTHING
    here, there = ready.births
    return (
        RankComparison(tuple(result.born_bytes[0] for result in results), here),
        RankComparison(tuple(result.born_bytes[1] for result in results), there),
    )


def state_moments(ready: PreparedReplay, results: list[RankResult]) -> list[StateMoment]:
    """The model state as each pass begins and as it ends, in the order of time."""
    moments = []
    for number, (on_ranks, on_hosts) in enumerate(ready.states):
        step, is_end = divmod(number, 2)
        found = [result.states[number] for result in results]
        moment = StateMoment(
            name=f"{'ends' if is_end else 'begins'} pass {step}",
            on_ranks=RankComparison(tuple(here for here, _ in found), on_ranks),
            on_hosts=RankComparison(tuple(there for _, there in found), on_hosts),
        )
        moments.append(moment)
    return moments


def passes_of(
    ready: PreparedReplay, results: list[RankResult]
) -> tuple[tuple[RankTrace, ...], ...]:
    """What each process did in each pass; times count from the first action of any in the pass."""
    if not results:
        return ()
    found = []
    for step in range(ready.plan.num_passes):
        origin = min((row.begin for r in results for row in r.passes[step]), default=0)
        traces = (_trace(ready, n, r, step, origin) for n, r in enumerate(results))
        found.append(tuple(traces))
    return tuple(found)


def _trace(
    ready: PreparedReplay, process: int, result: RankResult, step: int, origin: int
) -> RankTrace:
    plan, rows = ready.plan, result.passes[step]
    _, rank = plan.seat(process)
    predicted = ready.live_bytes[rank] if ready.live_bytes else ()
    on_host = ready.host_bytes[rank] if ready.host_bytes else ()
    return RankTrace(
        name=plan.name(process),
        actions=tuple(plan.order(process)),
        begin=tuple(row.begin - origin for row in rows),
        waited=tuple(row.waited for row in rows),
        end=tuple(row.end - origin for row in rows),
        live_bytes=_samples(rows, result.live_bytes),
        predicted=predicted,
        host_live_bytes=_samples(rows, result.host_live_bytes) if on_host else (),
        host_predicted=tuple(
            (level,) * len(held) for level, held in zip(on_host, predicted, strict=False)
        ),
    )


def _samples(rows: tuple[TraceRow, ...], held: tuple[int, ...]) -> tuple[Samples, ...]:
    """What was held at each sample of each action."""
    return tuple(held[row.first_sample :][: row.num_samples] for row in rows)
