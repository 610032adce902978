"""Replay plans: everything a rank has to know, checked before the first rank starts.

A plan is a lowered program with the model it trains. A stage is held by one rank or, placed
bidirectionally, by two (``theory.pipelines.placement``); the weights of its replicas start out
equal and their gradients are added in the order of their ranks. What no rank can run is refused by
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bubbleproof.reference_exec.models.footprint import require_stages, ties_of
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import LossScale, Training
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.placement import num_downward

if TYPE_CHECKING:
    from bubbleproof.reference_exec.plans.data_parallel import DataParallel  # loads torch

COMPUTE_KINDS = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.R, Kind.OVERLAP_F_B)
TRANSFER_KINDS = (Kind.EVICT, Kind.LOAD)
HOST_KINDS = (Kind.OFFLOAD, Kind.RELOAD, Kind.STEP)
COLLECTIVE_KINDS = (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD)
TRAINING_KINDS = (Kind.STEP, Kind.REDUCE_GRAD)
Key = tuple[int, int, int]  # (stage, microbatch, slice)


def key_of(action: Action) -> Key:
    """What an action works on: (stage, microbatch, slice)."""
    return action.stage, action.microbatch, action.slice


def label(key: Key, kind: str) -> str:
    """What an action of a kind on it is called."""
    stage, microbatch, slice_ = key
    return f"{stage}{kind}{microbatch}" + (f".{slice_}" if slice_ else "")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayPlan:
    """A lowered program with the model it trains.

    ``program`` has one order per rank. ``stage_ranks`` is the rank of each stage, for downward
    microbatches where ``is_bidirectional``. ``acceptors`` is the rank to which each evicted key
    goes; its EVICT and its LOAD stand twice in the order of both ranks, where the transfer is
    posted and where it is waited for (``transfer_rows``). So do OFFLOAD, STEP and
    RELOAD of a stage that the host updates, or of an activation that it keeps, on one rank, and the
    collectives of ``parallel``, where each rank is a process of every replica. ``hosted`` are the
    stages that the host updates. With a ``training`` the program is run once per step, or as
    often as it accumulates, with the STEPs and exchanges of ``stepping`` in it. ``weight_parts``
    are the parts of W of each stage that cuts it. One that does not ``train`` runs forwards alone,
    without gradients, and holds nothing between them. Unless it ``counts_bytes`` the ranks keep no
    account of what lives when, unless it ``counts_work`` none of what is computed when.
    Raises ``ValueError`` naming the first action that a rank cannot run.
    """

    spec: ModelSpec
    program: Program
    stage_ranks: tuple[int, ...]
    num_microbatches: int
    num_slices: int = 1
    is_bidirectional: bool = False
    acceptors: Mapping[Key, int] = field(default_factory=dict)
    training: Training | None = None
    parallel: DataParallel | None = None
    weight_parts: Mapping[int, int] = field(default_factory=dict)
    hosted: frozenset[int] = frozenset()
    trains: bool = True
    counts_bytes: bool = True
    counts_work: bool = True

    def __post_init__(self) -> None:
        actions = self.program.actions
        of_replicas = (
            {*COLLECTIVE_KINDS} - {Kind.REDUCE_GRAD} if self.training else COLLECTIVE_KINDS
        )
        collective = actions.is_kind(*of_replicas)
        if self.parallel is None and collective.any():
            name = actions.label(int(np.argmax(collective)))
            raise ValueError(f"replay runs collectives on replicas, which this has not; got {name}")
        require_stages(self.spec, self.num_stages)
        self.spec.require_slices(self.num_slices)
        ties = ties_of(self.spec, self.num_stages)
        if ties and self.is_sharded:
            raise ValueError(
                "tied embeddings cannot be sharded: rows of one shard are others of the other "
                "stage's; replay them on whole replicas, without ZeRO levels"
            )
        for ends in ties:
            stages = [stage for stage, _ in ends]
            if self.hosted & {*stages}:
                raise ValueError(
                    f"tied stages ({' and '.join(map(str, stages))}) must step on their ranks, not "
                    "on a host"
                )
            if len({tuple(self.ranks_of(stage)) for stage in stages}) > 1 and self.is_bidirectional:
                raise ValueError(
                    f"tied stages ({' and '.join(map(str, stages))}) must be on the same two ranks "
                    "of a bidirectional schedule; take another schedule, or untie them"
                )

    @property
    def num_stages(self) -> int:
        return len(self.stage_ranks)

    @property
    def num_ranks(self) -> int:
        return max(self.stage_ranks) + 1

    @property
    def num_passes(self) -> int:
        """How often each rank runs its order."""
        return 1 if self.training is None else self.training.num_passes

    @property
    def accumulated(self) -> int:
        """How many passes add up to the gradient of one optimizer step."""
        return 1 if self.training is None else self.training.accumulate

    @property
    def loss_scale(self) -> LossScale | None:
        """The scale of the loss in the first step, None where it is not scaled."""
        return None if self.training is None else self.training.loss_scale

    @property
    def num_replicas(self) -> int:
        return 1 if self.parallel is None else self.parallel.replicas

    @property
    def is_sharded(self) -> bool:
        """Whether each replica keeps a shard of every stage, and steps on it."""
        return self.parallel is not None and self.parallel.is_sharded

    @property
    def num_processes(self) -> int:
        """The ranks of all replicas, numbered replica by replica."""
        return self.num_ranks * self.num_replicas

    @property
    def num_samples(self) -> int:
        """The microbatches of all replicas together, in one pass."""
        return self.num_microbatches * self.num_replicas

    @property
    def batch_samples(self) -> int:
        """The microbatches behind one optimizer step, over which the loss is a mean."""
        return self.num_samples * self.accumulated

    def divisor(self, sample: int) -> float:
        """What the loss of a microbatch of all replicas is divided by: how many there are.

        Where they differ in size, the passes of a step by what this one weighs in one.
        """
        if self.spec.kind != "own":
            return self.batch_samples
        from bubbleproof.reference_exec.models.unequal import loss_shares  # loads torch

        shares = loss_shares(self.spec, self.num_samples)
        return float(self.accumulated / shares[sample]) if shares else self.batch_samples

    def drawn(self, step: int, number: int) -> tuple[int, int]:
        """(pass, microbatch of all replicas there) of a microbatch of a step's whole batch."""
        earlier, sample = divmod(number, self.num_samples)
        return step * self.accumulated + earlier, sample

    def seat(self, process: int) -> tuple[int, int]:
        """(replica, rank) of a process."""
        return divmod(process, self.num_ranks)

    def name(self, process: int) -> str:
        """What a process is called: its rank, and its replica where there are several."""
        replica, rank = self.seat(process)
        return f"rank {rank}" + (f" of replica {replica}" if self.num_replicas > 1 else "")

    def sample(self, replica: int, microbatch: int) -> int:
        """Which microbatch of the whole batch is the ``microbatch``-th of a replica."""
        return replica * self.num_microbatches + microbatch

    def order(self, process: int) -> list[Action]:
        """The actions of the rank of a process, in order."""
        _, rank = self.seat(process)
        return list(self.program.actions.take(self.program.resource == rank))

    def rank_of(self, stage: int, microbatch: int) -> int:
        """The rank that runs a stage for a microbatch."""
        rank = self.stage_ranks[stage]
        is_upward = self.is_bidirectional and microbatch >= num_downward(self.num_microbatches)
        return self.num_ranks - 1 - rank if is_upward else rank

    def stages_of(self, rank: int) -> list[int]:
        """The stages that a rank runs for some microbatch, ascending."""
        microbatches = range(self.num_microbatches)
        return [
            stage
            for stage in range(self.num_stages)
            if any(self.rank_of(stage, j) == rank for j in microbatches)
        ]

    def ranks_of(self, stage: int) -> list[int]:
        """The ranks that run a stage for some microbatch, ascending."""
        return sorted({self.rank_of(stage, j) for j in range(self.num_microbatches)})

    def recomputed(self) -> frozenset[Key]:
        """What is dropped after its F and made again by an R."""
        return self._keys(Kind.R)

    def split(self) -> frozenset[Key]:
        """What has a split backward: an I and a W."""
        return self._keys(Kind.I)

    def offloaded(self) -> frozenset[Key]:
        """What goes to the host after its F and comes back for its backward."""
        return frozenset(key for key in self._keys(Kind.OFFLOAD) if key[0] not in self.hosted)

    def _keys(self, kind: Kind) -> frozenset[Key]:
        actions = self.program.actions
        return frozenset(map(key_of, actions.take(actions.is_kind(kind))))
