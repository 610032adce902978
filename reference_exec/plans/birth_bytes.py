"""Birth bytes: what a rank, and its host, hold as they are made, before the first action.

    weights     as in ``state_bytes``: whole, a member's shards with the sums of its gradients, or
                on the host (master weights and the copy that comes up)
    constants   masks and angles of the layers (``footprint.constant_bytes``); of a user's model
                whatever a new build of the stage keeps after one forward
    data        inputs where stage 0 is, targets where the last stage is, of all steps: which
                microbatches these are follows from the pipeline, how large they are from the model

There are no gradients yet but those sums, and no optimizer state. All follows from shapes; of a
user's own model from its dry run and its data. Loads no torch but for that model.
"""

from __future__ import annotations

from bubbleproof.reference_exec.models.footprint import constant_bytes, input_bytes, target_bytes
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.state_bytes import predicted_states

BirthBytes = tuple[tuple[int, ...], tuple[int, ...]]  # by process: on the rank, on its host


def predicted_births(plan: ReplayPlan) -> BirthBytes:
    """The bytes that each process, and its host, begins with."""
    ranks, hosts = predicted_states(plan)[0]
    held = [
        state.total + _constants(plan, process) + _data(plan, process)
        for process, state in enumerate(ranks)
    ]
    return tuple(held), tuple(state.total for state in hosts)


def _constants(plan: ReplayPlan, process: int) -> int:
    _, rank = plan.seat(process)
    return sum(constant_bytes(plan.spec, stage) for stage in plan.stages_of(rank))


def _data(plan: ReplayPlan, process: int) -> int:
    """The bytes of the inputs and targets of a process, of all steps."""
    replica, rank = plan.seat(process)
    last, total = plan.num_stages - 1, 0
    slices = [{"slice_index": k, "num_slices": plan.num_slices} for k in range(plan.num_slices)]
    for microbatch in range(plan.num_microbatches):
        if plan.rank_of(0, microbatch) == rank:
            total += plan.num_passes * sum(input_bytes(plan.spec, **each) for each in slices)
        if plan.rank_of(last, microbatch) != rank:
            continue
        if plan.spec.kind == "own":
            total += _own_targets(plan, plan.sample(replica, microbatch))
        else:
            total += plan.num_passes * sum(target_bytes(plan.spec, **each) for each in slices)
    return total


def _own_targets(plan: ReplayPlan, sample: int) -> int:
    """The bytes of a microbatch's targets in a user's model, which gives them; of all steps."""
    from bubbleproof.reference_exec.models.own import own_batch  # loads torch

    return sum(own_batch(plan.spec, sample, step)[1].nbytes for step in range(plan.num_passes))
