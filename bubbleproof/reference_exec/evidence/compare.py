"""What a replay's ranks computed, compared with both oracles and with the predicted bytes.

Gradients, losses and stepped weights must have the bits of the order-matched oracle
(``training_oracle.matched_training``) and lie within ``oracle.TOLERANCES`` of the ordinary one;
peak bytes must be those that the schedule promised.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from bubbleproof.reference_exec.evidence.oracle import TOLERANCES, are_equal, max_relative_error
from bubbleproof.reference_exec.evidence.replay_report import NOTHING, Compared, ReplayReport
from bubbleproof.reference_exec.evidence.training_oracle import (
    Ordinary,
    matched_training,
    ordinary_training,
    with_ties,
)
from bubbleproof.reference_exec.plans.prepared import Prepared
from bubbleproof.reference_exec.plans.replay_plan import Plan
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.runtime.compute import Gradients
from bubbleproof.reference_exec.runtime.device import CPU, Device
from bubbleproof.reference_exec.runtime.rank import RankResult
from bubbleproof.reference_exec.runtime.trace import RankTrace


def compared(
    ready: Prepared,
    results: list[RankResult],
    *,
    backend: str,
    seed: int = 0,
    seconds: float,
    stopped: str = "",
    device: Device = CPU,
    allocator_peak_bytes: tuple[int, ...] = (),
) -> ReplayReport:
    """Compare the results of all ranks with both oracles, run on ``device``, and the prediction.

    ``allocator_peak_bytes`` are those of the devices that were used, where they keep count;
    ``stopped`` is what ended an unsafe run, which then has no results.
    """
    plan = ready.plan
    losses: dict[tuple[int, int], torch.Tensor] = {}
    for result in results:
        losses |= result.losses
    matched = matched_training(plan, device)
    exact = ordinary_training(plan, matched.course)
    has_one_sum = members_agree(plan, results)
    results = whole_results(plan, results, matched.gradients)
    gradients = with_ties(plan, summed_replicas(results))
    training = plan.training
    state = Compared(tuple(r.model_state[0] for r in results), ready.model_state[0])
    loss = sum(losses[part].item() for part in sorted(losses))
    on_ranks, on_hosts = ready.predicted[: plan.num_ranks], ready.predicted[plan.num_ranks :]
    hosts = [r for r in results if r.host_live_bytes or plan.hosted] if on_hosts else []
    peaks = tuple(max(r.live_bytes, default=0) for r in results if plan.counts_bytes)
    host_peaks = tuple(max(r.host_live_bytes, default=0) for r in hosts)
    return ReplayReport(
        backend=backend,
        semantics=ready.semantics.value,
        seed=seed,
        model=plan.spec.kind,
        dtype=plan.spec.dtype,
        ranks=plan.num_ranks,
        stages=plan.num_stages,
        microbatches=plan.num_microbatches,
        data_parallel=plan.num_replicas,
        zero="" if plan.parallel is None or not plan.is_sharded else str(plan.parallel.levels),
        state_bytes=Compared(*map(_without_optimizer, state)) if plan.is_sharded else NOTHING,
        model_state=state,
        host_model_state=Compared(tuple(r.model_state[1] for r in results), ready.model_state[1]),
        gradients_equal=has_one_sum and are_equal(gradients, matched.gradients),
        losses_equal=are_equal(losses, matched.losses),
        max_relative_error=_relative_error(gradients, loss, exact) if results else math.inf,
        tolerance=TOLERANCES[plan.spec.dtype],
        loss=loss,
        counts_bytes=plan.counts_bytes,
        peak_bytes=Compared(peaks, on_ranks * plan.num_replicas),
        host_peak_bytes=Compared(host_peaks, on_hosts * plan.num_replicas),
        weights_equal=weights_are_equal(results, matched.weights),
        max_weight_error=max(exact.drift, max_weight_error(results, exact.weights)),
        optimizer="" if training is None else training.optimizer,
        steps=0 if training is None else training.steps,
        has_barrier=training is not None and training.has_barrier,
        num_updated_stages=plan.num_stages if plan.is_sharded else len(plan.hosted),
        live_bytes=tuple(result.live_bytes for result in results),
        seconds=seconds,
        device=device.description,
        allocator_peak_bytes=allocator_peak_bytes,
        torch_version=torch.__version__,
        unsafe=ready.is_unsafe,
        broken_rules=tuple(ready.broken),
        violations=tuple(ready.broken.values()),
        stopped=stopped,
        losses=tuple(losses[part].item() for part in sorted(losses)),
        traces=_traces(ready, results),
        left_bytes=tuple(result.left_bytes for result in results),
        kept_bytes=tuple(result.kept_bytes for result in results),
        data_dependence=data_dependence(results) if plan.spec.kind == "own" else "",
    )


def _without_optimizer(states: tuple[StateBytes, ...]) -> tuple[int, ...]:
    return tuple(state.without_optimizer for state in states)


def data_dependence(results: list[RankResult]) -> str:
    """How a model's saved bytes depend on its data; empty where they do not.

    It names two microbatches of which one stage has saved other bytes.
    """
    saved = {key: size for result in results for key, size in result.saved_bytes.items()}
    first: dict[int, tuple[str, int]] = {}
    for (step, stage, microbatch, _), size in sorted(saved.items()):
        name = f"microbatch {microbatch}" + (f" of step {step}" if step else "")
        earlier, expected = first.setdefault(stage, (name, size))
        if size != expected:
            return (
                f"the model's saved bytes depend on its data: stage {stage} saved {expected} of "
                f"{earlier}, {size} of {name}; no schedule's bytes can be predicted with it"
            )
    return ""


def _relative_error(gradients: Gradients, loss: float, exact: Ordinary) -> float:
    """The larger of the gradients' error and the loss's, relative to the ordinary oracle's."""
    return max(
        max_relative_error(gradients, exact.gradients),
        abs(loss - exact.loss) / max(abs(exact.loss), 1e-300),
    )


def _traces(ready: Prepared, results: list[RankResult]) -> tuple[RankTrace, ...]:
    """What each process did, from the first one's first action on, beside the prediction."""
    origin = min((row.begin for result in results for row in result.rows), default=0)
    traces = []
    for process, result in enumerate(results):
        _, rank = ready.plan.seat(process)
        samples = [result.live_bytes[row.first_sample :][: row.num_samples] for row in result.rows]
        predicted = ready.live_bytes[rank] if ready.live_bytes else ()
        pairs = zip(predicted, samples, strict=True) if predicted else ()
        trace = RankTrace(
            name=ready.plan.name(process),
            actions=tuple(ready.plan.order(process)),
            begin=tuple(row.begin - origin for row in result.rows),
            waited=tuple(row.waited for row in result.rows),
            end=tuple(row.end - origin for row in result.rows),
            live_bytes=tuple(samples),
            predicted=tuple(held[len(held) - len(own) :] for held, own in pairs),
        )
        traces.append(trace)
    return tuple(traces)


def weights_are_equal(results: list[RankResult], expected: Gradients) -> bool:
    """Whether all ranks together stepped what is expected, to the expected bits on each of them."""
    stepped = {key for result in results for key in result.updated}
    return stepped == expected.keys() and all(
        torch.equal(weight, expected[key])
        for result in results
        for key, weight in result.updated.items()
    )


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


def whole_results(plan: Plan, results: list[RankResult], like: Gradients) -> list[RankResult]:
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


def members_agree(plan: Plan, results: list[RankResult]) -> bool:
    """Whether whole members of each group ended with the same gradients, bit for bit."""
    if plan.is_sharded:
        return True
    firsts = results[: plan.num_ranks]
    return all(
        are_equal(result.gradients, firsts[number % plan.num_ranks].gradients)
        for number, result in enumerate(results)
    )


def _joined(members: list[Gradients], like: Gradients) -> Gradients:
    """Whole tensors from the rows of all members, in their order."""
    if not members:
        return {}
    return {
        key: torch.cat([member[key] for member in members]).view(like[key].shape)
        for key in members[0]
    }
