"""Model state: the bytes of weights, gradients and optimizer state, as the shapes have them.

What a rank and its host hold as a pass ends. As one begins there are no gradients but those that a
member has shards of, and before the first STEP no optimizer state: what stays from one step to the
next is weights and optimizer state. (Accumulated gradients stay from pass to
pass of a step.) With w the bytes of a stage's parameters
(``footprint.weight_bytes``), t its parameter tensors,

                           weights    gradients   optimizer
    on its rank            w          w           sgd 0, momentum w, adam 2 w + 4 t
    updated by the host    2 w        0           the same, all of it on the host: master weights
                                                  and the copy that comes up next
    sharded, on a member   its shards of weights and of reduced gradients, whole weights of levels
                           1 and 2, whole gradients of level 1; moments of its shards, with adam
                           4 bytes per level

Of somebody's own stage with frozen parameters, w of the last two columns and t leave these out.

Weights of float16 have masters in float32, which are optimizer state as moments are: with 2 w for
them, sgd has 2 w, momentum 4 w, adam 6 w + 4 t.

Adam keeps a counter of steps for each tensor that it steps, a float32 in torch. A stage on two
ranks has all of this on both. Sums that ranks exchange are gone once their STEP has taken them.
Loads no torch unless stages are sharded.

Birth bytes: what a rank, and its host, hold as they are made, before the first action.

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

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bubbleproof.reference_exec.models.footprint import (
    constant_bytes,
    gradient_bytes,
    input_bytes,
    of_size,
    parameter_tensors,
    target_bytes,
    weight_bytes,
)
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.training import Training

if TYPE_CHECKING:
    from bubbleproof.reference_exec.plans.shard_layout import StageLayout

COUNTER_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBytes:
    """Bytes by what they hold."""

    weights: int = 0
    gradients: int = 0
    optimizer: int = 0

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer

    @property
    def without_optimizer(self) -> int:
        """Of a member that is sharded, what is there from the beginning to the end."""
        return self.weights + self.gradients

    def __add__(self, other: StateBytes) -> StateBytes:
        return StateBytes(
            weights=self.weights + other.weights,
            gradients=self.gradients + other.gradients,
            optimizer=self.optimizer + other.optimizer,
        )

    def __str__(self) -> str:
        return f"{self.weights}+{self.gradients}+{self.optimizer}"


StateAt = tuple[StateBytes, StateBytes]  # on a rank and on its host, at one moment
States = tuple[tuple[StateBytes, ...], tuple[StateBytes, ...]]  # of all processes, of their hosts


def predicted_states(plan: ReplayPlan, skipped: Collection[int] = ()) -> tuple[States, ...]:
    """The model state of each process, and of each process's host, as passes begin and end.

    These moments stand in the order of time, two for each pass. ``skipped`` are the steps that are
    not taken, where losses are scaled.
    """
    taken = [step for step in range(plan.num_passes // plan.accumulated) if step not in skipped]
    first = min(taken, default=plan.num_passes)
    ended = predicted_state(plan)
    found: list[States] = []
    for number in range(plan.num_passes):
        steps, earlier = divmod(number, plan.accumulated)
        begun = _before_steps(ended) if steps <= first else ended
        found.append(begun if earlier else _without_gradients(plan, begun))
        is_stepped = steps > first or (steps == first and earlier == plan.accumulated - 1)
        found.append(ended if is_stepped else begun)
    return tuple(found)


def _before_steps(ended: States) -> States:
    """The state before the first STEP, when an optimizer keeps nothing yet."""
    ranks, hosts = ([replace(each, optimizer=0) for each in states] for states in ended)
    return tuple(ranks), tuple(hosts)


def _without_gradients(plan: ReplayPlan, ended: States) -> States:
    """The state as a pass begins whose gradients are not those of the pass before, too."""
    ranks, hosts = ended
    if plan.is_sharded:
        return ranks, hosts
    return tuple(replace(state, gradients=0) for state in ranks), hosts


def predicted_state(plan: ReplayPlan) -> States:
    """The model state of each process, and of each process's host, as a pass ends."""
    ranks, hosts = [], []
    parallel = plan.parallel if plan.is_sharded else None
    for process in range(plan.num_processes):
        replica, rank = plan.seat(process)
        on_rank, on_host = StateBytes(), StateBytes()
        for stage in plan.stages_of(rank):
            if parallel is not None:
                on_rank += _of_member(plan, parallel.layouts[stage], replica)
            elif stage in plan.hosted:
                own = _of_rank(plan, stage)
                on_host += StateBytes(weights=2 * own.weights, optimizer=own.optimizer)
            else:
                on_rank += _of_rank(plan, stage)
        ranks.append(on_rank)
        hosts.append(on_host)
    return tuple(ranks), tuple(hosts)


def optimizer_bytes(
    training: Training | None, weights: int, tensors: int, *, has_masters: bool = False
) -> int:
    """What torch's optimizer keeps for tensors of so many bytes together.

    With masters that are they, twice as large as the weights, and moments as large as they.
    """
    if training is None:
        return 0
    if has_masters:
        return 2 * weights + optimizer_bytes(training, 2 * weights, tensors)
    if training.optimizer == "sgd":
        return 0
    if training.optimizer == "momentum":
        return weights
    return 2 * weights + COUNTER_BYTES * tensors


def _of_rank(plan: ReplayPlan, stage: int) -> StateBytes:
    weights = weight_bytes(plan.spec, stage)
    gradients = gradient_bytes(plan.spec, stage) if plan.trains else 0
    kept = optimizer_bytes(
        plan.training,
        gradients,
        parameter_tensors(plan.spec, stage),
        has_masters=plan.spec.dtype == "float16",
    )
    return StateBytes(weights=weights, gradients=gradients, optimizer=kept)


def _of_member(plan: ReplayPlan, layout: StageLayout, member: int) -> StateBytes:
    element, shards = plan.spec.element_bytes, layout.shards(member)
    weights, gradients = layout.kept(member)
    return StateBytes(
        weights=element * weights,
        gradients=element * gradients,
        optimizer=optimizer_bytes(plan.training, element * sum(shards), len(shards)),
    )


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
            spec = of_size(plan.spec, microbatch)
            total += plan.num_passes * sum(input_bytes(spec, **each) for each in slices)
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
