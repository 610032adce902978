"""What a replay's ranks computed, compared with both oracles and with the predicted bytes.

Gradients, losses of every pass and stepped weights must have the bits of the order-matched oracle
(``training_oracle.matched_training``) and lie within rounding (``rounding``) of the ordinary one;
bytes must be those that pipeline and model promised, at every action of every pass, on ranks and on
their hosts, as ranks are made, and as each pass begins and ends.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import torch

from bubbleproof.reference_exec.bits import difference
from bubbleproof.reference_exec.evidence.notes import (
    added_first,
    alike_data,
    unmoved,
    weight_backward,
)
from bubbleproof.reference_exec.evidence.oracle import max_relative_error, with_ties
from bubbleproof.reference_exec.evidence.replay_record import NOTHING, RankComparison, StateMoment
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.evidence.rounding import NOT_NEAR, nearness
from bubbleproof.reference_exec.evidence.training_oracle import (
    matched_training,
    ordinary_training,
)
from bubbleproof.reference_exec.evidence.work_done import (
    RankWorked,
    uncounted_work,
    work_dependence,
)
from bubbleproof.reference_exec.models.footprint import of_size
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import description, given_types
from bubbleproof.reference_exec.models.unequal import loss_shares
from bubbleproof.reference_exec.plans.predicted_work import predicted_work
from bubbleproof.reference_exec.plans.prepared import PreparedReplay
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.state_bytes import StateBytes, predicted_states
from bubbleproof.reference_exec.runtime.compute import Gradients, Losses
from bubbleproof.reference_exec.runtime.device import CPU, Device
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


def compared(
    ready: PreparedReplay,
    results: list[RankResult],
    *,
    seconds: float,
    stopped: str = "",
    device: Device = CPU,
    allocator_peak_bytes: tuple[int, ...] = (),
    semantics_why: str = "",
) -> ReplayReport:
    """Compare the results of all ranks with both oracles, run on ``device``, and the prediction.

    ``allocator_peak_bytes`` are those of the devices that were used, where they keep count;
    ``semantics_why`` says why the program was verified under its semantics;
    ``stopped`` is what ended an unsafe run, which then has no results.
    """
    plan = ready.plan
    losses = Losses()
    for result in results:
        losses |= result.losses
    matched = matched_training(plan, device)
    exact = ordinary_training(plan, matched.course, matched.skipped)
    if matched.skipped:
        ready = replace(ready, states=predicted_states(plan, matched.skipped))
    apart = member_difference(plan, results)
    results = whole_results(plan, results, matched.gradients)
    gradients = with_ties(plan, summed_replicas(results))
    unlike = apart or difference(gradients, matched.gradients, _parameter)
    unlike_losses = difference(losses, matched.losses, partial(_loss, plan))
    unlike_weights = weight_difference(plan, results, matched.weights)
    worked = _worked(plan, results)
    training = plan.training
    *earlier, (_, state, host_state) = state_moments(ready, results)
    born, host_born = births(ready, results)
    of_last = range(plan.num_passes - plan.accumulated, plan.num_passes)
    last = [losses[key].item() for key in sorted(losses) if key[0] in of_last]
    peaks, host_peaks = peaks_of(ready, results)
    near = nearness(plan, gradients, sum(last), exact, matched) if results else NOT_NEAR
    return ReplayReport(
        backend=ready.options.backend,
        semantics=ready.semantics.value,
        semantics_why=semantics_why,
        seed=ready.options.seed,
        model=plan.spec.kind,
        dtype=plan.spec.dtype,
        ranks=plan.num_ranks,
        stages=plan.num_stages,
        microbatches=plan.num_microbatches,
        data_parallel=plan.num_replicas,
        zero="" if plan.parallel is None or not plan.is_sharded else str(plan.parallel.levels),
        state_bytes=RankComparison(*map(_without_optimizer, state)) if plan.is_sharded else NOTHING,
        model_state=state,
        host_model_state=host_state,
        earlier_state=tuple(earlier),
        trains=plan.trains,
        gradients_equal=not unlike,
        gradient_difference=unlike,
        losses_equal=not unlike_losses,
        loss_difference=unlike_losses,
        max_relative_error=near.error,
        tolerance=near.tolerance,
        rounded_to=near.rounded_to,
        smallest_share=near.share,
        loss=sum(last),
        counts_bytes=plan.counts_bytes,
        peak_bytes=peaks,
        host_peak_bytes=host_peaks,
        born_bytes=born,
        host_born_bytes=host_born,
        weights_equal=not unlike_weights,
        weight_difference=unlike_weights,
        max_weight_error=max(exact.drift, max_weight_error(results, exact.weights)),
        optimizer="" if training is None else training.optimizer,
        steps=0 if training is None else training.steps,
        has_barrier=training is not None and training.has_barrier,
        clip=None if training is None else training.clip,
        accumulate=plan.accumulated,
        loss_scale="" if plan.loss_scale is None else str(plan.loss_scale),
        last_scale=matched.scale,
        skipped_steps=matched.skipped,
        num_updated_stages=plan.num_stages if plan.is_sharded else len(plan.hosted),
        live_bytes=tuple(result.live_bytes for result in results),
        seconds=seconds,
        device=device.description,
        allocator_peak_bytes=allocator_peak_bytes,
        torch_version=torch.__version__,
        unsafe=ready.options.unsafe,
        broken_rules=tuple(ready.broken),
        violations=tuple(ready.broken.values()),
        stopped=stopped,
        losses=tuple(last),
        passes=passes_of(ready, results),
        left_bytes=tuple(result.left_bytes for result in results),
        kept_bytes=tuple(result.kept_bytes for result in results),
        written_bytes=tuple(result.written_bytes for result in results),
        data_dependence=data_dependence(plan, results) if plan.spec.kind == "own" else "",
        weight_backward=weight_backward(plan),
        model_notes=model_notes(plan),
        given_types=given_types(plan.spec) if plan.spec.kind == "own" else (),
        alike=(*alike_data(plan), *unmoved(matched)),
        added_first=added_first(plan),
        counts_work=plan.counts_work,
        flops=RankComparison(*zip(*(rank.flops for rank in worked), strict=True))
        if worked
        else NOTHING,
        work=worked,
        work_dependence=work_dependence(plan.spec, worked) if plan.spec.kind == "own" else "",
        not_counted_work=uncounted_work(plan) if plan.counts_work else (),
    )


def model_notes(plan: ReplayPlan) -> tuple[str, ...]:
    """What is not as whoever named the model may believe, and what its microbatches weigh."""
    if plan.spec.kind != "own":
        return ()
    notes, shares = description(plan.spec).notes, loss_shares(plan.spec, plan.num_samples)
    told = f"microbatches weigh {', '.join(map(str, shares))}, as the loss of all together says"
    return (*notes, told) if shares else notes


def _without_optimizer(states: tuple[StateBytes, ...]) -> tuple[int, ...]:
    return tuple(state.without_optimizer for state in states)


def data_dependence(plan: ReplayPlan, results: list[RankResult]) -> str:
    """How a model's saved bytes depend on its data; empty where they do not.

    It names two microbatches of one size of which one stage has saved other bytes.
    """
    saved = {key: size for result in results for key, size in result.saved_bytes.items()}
    first: dict[tuple[int, ModelSpec], tuple[str, int]] = {}
    for (step, stage, microbatch, _), size in sorted(saved.items()):
        name = f"microbatch {microbatch}" + (f" of step {step}" if step else "")
        of = stage, of_size(plan.spec, microbatch)
        earlier, expected = first.setdefault(of, (name, size))
        if size != expected:
            return (
                f"the model's saved bytes depend on its data: stage {stage} saved {expected} of "
                f"{earlier}, {size} of {name}; no schedule's bytes can be predicted with it"
            )
    return ""


def _parameter(key: tuple[int, str]) -> str:
    return "stage {} {}".format(*key)


def _loss(plan: ReplayPlan, key: tuple[int, int, int]) -> str:
    step, microbatch, slice_ = key
    part = f", slice {slice_}," if slice_ else ""
    return f"microbatch {microbatch}{part}" + (f" of pass {step}" if plan.num_passes > 1 else "")


def _worked(plan: ReplayPlan, results: list[RankResult]) -> tuple[RankWorked, ...]:
    """What each process did at each action, beside the prediction."""
    if not plan.counts_work or not results:
        return ()
    predicted = predicted_work(plan)
    return tuple(
        RankWorked(
            name=plan.name(process),
            actions=tuple(plan.order(process)),
            predicted=predicted[plan.seat(process)[1]],
            passes=result.work,
            num_passes=plan.num_passes,
        )
        for process, result in enumerate(results)
    )


def weight_difference(plan: ReplayPlan, results: list[RankResult], expected: Gradients) -> str:
    """What a rank stepped to other bits than expected, or nobody stepped; empty where all is so."""
    stepped: Gradients = {}
    for process, result in enumerate(results):
        own = {key: value for key, value in expected.items() if key in result.updated}
        if told := difference(result.updated, own, _parameter):
            return f"{plan.name(process)}: {told}"
        stepped |= result.updated
    return difference(stepped, expected, _parameter)


def max_weight_error(results: list[RankResult], expected: Gradients) -> float:
    """The largest relative error of any rank's weights, as in ``max_relative_error``.

    0 where none are expected, infinite where one is missing.
    """
    found: Gradients = {}
    for result in results:
        found |= result.updated
    if not found.keys() >= expected.keys():
        return math.inf
    return max_relative_error(found, expected) if expected else 0.0


def summed_replicas(results: list[RankResult]) -> Gradients:
    """The gradients of all ranks; where two hold a stage, the higher's are added to the lower's."""
    total: Gradients = {}
    for result in results:
        for key, gradient in result.gradients.items():
            total[key] = total[key] + gradient if key in total else gradient
    return total


def whole_results(plan: ReplayPlan, results: list[RankResult], like: Gradients) -> list[RankResult]:
    """The results with whole tensors, in the shapes of ``like``, on the first of each group.

    The other members of the group keep none, or, where they are whole, their weights. Results of a
    plan of one replica that is whole are as they were.
    """
    if plan.parallel is None or not results:
        return results
    found = []
    for process, result in enumerate(results):
        replica, rank = plan.seat(process)
        members = results[rank :: plan.num_ranks] if replica == 0 else []
        if plan.is_sharded:
            gradients = _joined([member.gradients for member in members], like)
            updated = _joined([member.updated for member in members], like)
        else:
            gradients, updated = result.gradients if members else {}, result.updated
        found.append(replace(result, gradients=gradients, updated=updated))
    return found


def member_difference(plan: ReplayPlan, results: list[RankResult]) -> str:
    """Where a whole member of a group ended with other gradients than its first; or nothing."""
    if plan.is_sharded:
        return ""
    for process, result in enumerate(results):
        first = results[process % plan.num_ranks].gradients
        if told := difference(result.gradients, first, _parameter):
            return f"on {plan.name(process)} {told}"
    return ""


def _joined(members: list[Gradients], like: Gradients) -> Gradients:
    """Whole tensors from the rows of all members, in their order."""
    if not members:
        return {}
    shared = [key for key in members[0] if all(key in member for member in members)]
    rows = {key: torch.cat([member[key] for member in members]) for key in shared}
    return {key: _shaped(row, like.get(key)) for key, row in rows.items()}


def _shaped(row: torch.Tensor, like: torch.Tensor | None) -> torch.Tensor:
    """A row of all elements in the shape that it should have, if it has as many."""
    return row if like is None or row.numel() != like.numel() else row.view(like.shape)
