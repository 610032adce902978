"""PipeMesh's buffer queue (section IV-B): sequences, shares and costs of a queue of q microbatches.

Symbols: P ranks, M chunks per rank, B microbatches, D replicas, psi parameters of a rank; C_fwd and
C_bwd ticks of a pass without recomputation, C_DP ticks to gather or reduce all of a chunk, R = S
the lengths of the sequences e and d. For each q:

    e       e_1 = q, the other B - q as equal as can be in ceil((B-q)/q) operations
    d       where B C_bwd >= S C_DP: B/S each, as equal as can be, every parameter ZeRO-2 or 3;
            else d_S is the least with d_S C_bwd >= C_DP, the other B - d_S as equal as can be
    psi_g   the parameters whose gradients are sharded: all of them, or as many as B_Z2 backwards of
            the shortest dequeue hide (D_g = 0)
    psi_p   those that are sharded themselves (ZeRO-3, where M > 4): as many as the backwards that
            B_Z2 leaves hide (D_p^bwd = 0)

B_Z2 = ceil(C_DP / C_bwd) and B_Z3^bwd = min d - B_Z2, or in the other case B_Z2 = min d; B_Z3^fwd =
ceil(C_DP^p / C_fwd). So Eq. 3 to 5 are 0 and T_DP_crit(q) is Eq. 2 alone. M_sum(q) is the sum of
the optimizer's, gradients', parameters' and activations' bytes; a pass that stores o bytes is
stored (M-1) e_1 + 2(P-1) + 1 times on the first rank.

Where the paper is silent: of a B that S does not divide the larger parts come first; q counts from
P (section III-B) to B; a d_S that leaves less than one microbatch for each other dequeue is cut
back to what leaves one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from bubbleproof.papers.pipemesh.pipemesh_formulas import (
    bubble_ticks,
    equal_parts,
    gradient_bytes,
    message_ticks,
    optimizer_bytes,
    optimizer_ticks,
    parameter_bytes,
    planned_enqueues,
    warm_up_forwards,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNumbers:
    """What the planner counts with; ticks of one chunk, ``message`` those of one message (C_PP).

    ``own_shard``: whether gathered parameters take room for a device's own shard again, as printed.
    """

    num_ranks: int
    num_chunks: int
    num_microbatches: int
    replicas: int
    parameters: int
    forward: int
    backward: int
    communication: int
    message: int = 0
    own_shard: bool = True

    @property
    def queues(self) -> range:
        """Every q."""
        return range(min(self.num_ranks, self.num_microbatches), self.num_microbatches + 1)

    @property
    def passes(self) -> int:
        """j = M B + P - 1: how often a tick of every chunk's pass counts (Eq. 8)."""
        return self.num_chunks * self.num_microbatches + self.num_ranks - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The plan for one q; ``gradients`` and ``sharded`` are psi_g / psi and psi_p / psi.

    ``buckets`` are (B_Z2, B_Z3^fwd, B_Z3^bwd).
    """

    mesh: QueueNumbers
    size: int
    enqueue: tuple[int, ...]
    dequeue: tuple[int, ...]
    gradients: Fraction
    sharded: Fraction
    buckets: tuple[int, int, int]

    @property
    def exposed_ticks(self) -> int:
        """T_DP_crit(q): Eq. 2; the shares make Eq. 3 to 5 vanish."""
        mesh = self.mesh
        return optimizer_ticks(
            mesh.num_chunks,
            self.enqueue,
            self.dequeue,
            (mesh.communication, mesh.communication),
            (mesh.forward, mesh.backward),
        )

    @property
    def stored_passes(self) -> int:
        """Activations of a chunk that the first rank holds at most (section IV-A)."""
        return warm_up_forwards(self.mesh.num_ranks, self.mesh.num_chunks, self.size, 0) + 1

    @property
    def state_bytes(self) -> Fraction:
        """M_o + M_g + M_p."""
        mesh = self.mesh
        each = optimizer_bytes(mesh.replicas)
        each += gradient_bytes(mesh.num_chunks, mesh.replicas, self.gradients)
        each += parameter_bytes(
            mesh.num_chunks, mesh.replicas, self.sharded, own_shard=mesh.own_shard
        )
        return each * mesh.parameters

    def total_bytes(self, stored: int) -> Fraction:
        """M_sum(q) where each pass stores so many bytes."""
        return self.state_bytes + self.stored_passes * stored

    def most_stored(self, budget: int, *, is_below: bool) -> int:
        """The most bytes a pass may store for M_sum(q) to be below the budget, or at most that."""
        room = (budget - self.state_bytes) / self.stored_passes
        return ceil(room) - 1 if is_below else floor(room)

    def iteration_ticks(self, recomputed: int) -> int:
        """T_iter of Eq. 1, where every chunk's backward recomputes so many ticks."""
        mesh = self.mesh
        each = mesh.forward + mesh.backward + recomputed
        work = mesh.num_chunks * mesh.num_microbatches * each
        waits = bubble_ticks(mesh.num_ranks, each) + message_ticks(mesh.num_ranks, mesh.message)
        return work + waits + self.exposed_ticks


def planned_queue(mesh: QueueNumbers, size: int) -> Queue:
    """The sequences and the sharding for a queue of so many microbatches."""
    enqueue = planned_enqueues(size, mesh.num_microbatches)
    count, late = len(enqueue), mesh.communication
    is_hidden = mesh.num_microbatches * mesh.backward >= count * late
    if is_hidden:
        dequeue = equal_parts(mesh.num_microbatches, count)
        reducing = -(-late // max(1, mesh.backward))
        gathering = max(0, min(dequeue) - reducing)
        gradients = Fraction(1)
        sharded = _hidden_share(mesh, gathering) if mesh.num_chunks > 4 else Fraction(0)
    else:
        last = min(-(-late // max(1, mesh.backward)), mesh.num_microbatches - count + 1)
        others = equal_parts(mesh.num_microbatches - last, count - 1)
        dequeue = (*others, last) if others else (mesh.num_microbatches,)
        reducing, gathering = min(others, default=0), 0
        gradients = _hidden_share(mesh, reducing) if others else Fraction(1)
        sharded = Fraction(0)
    front = -(-(late * sharded) // max(1, mesh.forward))
    return Queue(
        mesh=mesh,
        size=size,
        enqueue=enqueue,
        dequeue=dequeue,
        gradients=gradients,
        sharded=sharded,
        buckets=(reducing, int(front), gathering),
    )


def _hidden_share(mesh: QueueNumbers, backwards: int) -> Fraction:
    """The greatest share of a chunk's communication that so many backwards hide."""
    if not mesh.communication:
        return Fraction(1)
    return min(Fraction(1), Fraction(backwards * mesh.backward, mesh.communication))
