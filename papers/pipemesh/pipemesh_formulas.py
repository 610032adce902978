"""The cost model of PipeMesh: section IV-A, as printed, and what has to be added to it.

Symbols: P pipeline stages (ranks; counted from 1 as i in the paper, from 0 as ``rank`` here), M
chunks per rank, B microbatches, e and d the enqueue and dequeue sequences, R and S their lengths;
``forward`` and ``backward`` ticks of one pass (C_comp^fwd, C_comp^bwd), their sum C_comp; ``link``
ticks of one message (C_PP); ``whole`` ticks of all parameters or gradients of a chunk on the NIC
(C_DP). What is sharded of them (C_DP^g, C_DP^p) is moved (S-1) M, (R-1) M and S M - 1 times (Eq. 3
to 5), each time but for what the passes beside it hide. Bytes are per parameter psi of the device,
with D replicas, and exact.

Generators of schedules do not ask here: what they need of these they count for themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from bubbleproof.papers.formula import offer

Ticks = tuple[int, int]


def exposed(communication: int, computation: int) -> int:
    """H(C, C') of equation (2): what computation does not cover, max(0, C - C')."""
    return max(0, communication - computation)


def buffer(e: Sequence[int], d: Sequence[int]) -> int:
    """q: the most microbatches in the queue when a dequeue begins, its own enqueued.

    Dequeue j needs the least e_1 + ... + e_i that reaches d_1 + ... + d_j; what was dequeued before
    it has left the queue.
    """
    enqueued, dequeued = list(accumulate(e)), list(accumulate(d))
    needed = [next(end for end in enqueued if end >= last) for last in dequeued]
    return max(end - gone for end, gone in zip(needed, [0, *dequeued[:-1]], strict=True))


def warm_up_forwards(p: int, num_chunks: int, first: int, rank: int) -> int:
    """Algorithm 1, line 2: (M-1) e_1 + 2(P-i) forwards before one and one alternate.

    One more comes before the first backward, and each holds one activation: M_a. Where dequeues run
    ahead of enqueues e_1 is too few, and ``buffer`` stands in its place; there are at most M B,
    which the paper leaves out.
    """
    return (num_chunks - 1) * first + 2 * (p - 1 - rank)


def bubble_ticks(p: int, ticks: int) -> int:
    """T_bubble = (P-1) C_comp, where every element of e and d is at least P."""
    return (p - 1) * ticks


def message_ticks(p: int, link: int) -> int:
    """T_PP = 2(P-1) C_PP. The paper asks for C_PP < C_comp^fwd; elements of 2P are needed too."""
    return 2 * (p - 1) * link


def optimizer_ticks(
    num_chunks: int, e: Sequence[int], d: Sequence[int], whole: Ticks, ticks: Ticks = (1, 2)
) -> int:
    """Equation (2): the first chunk's gather and reduction, and what e_1 and d_S do not hide.

    ``whole`` are the ticks of what hides behind e_1 forwards and behind d_S backwards. (The
    sentence before the equation says that these are the reductions and the gathers; it is the other
    way round, which leaves the sum as it is.)
    """
    (front, back), (forward, backward) = whole, ticks
    late = exposed(front, e[0] * forward) + exposed(back, d[-1] * backward)
    return front + back + (num_chunks - 1) * late


def reductions(num_chunks: int, dequeues: int) -> int:
    """(S-1) M, equation (3): how often gradients are reduced before the last dequeue."""
    return (dequeues - 1) * num_chunks


def forward_gathers(num_chunks: int, enqueues: int) -> int:
    """(R-1) M, equation (4): how often parameters are gathered after the first enqueue."""
    return (enqueues - 1) * num_chunks


def backward_gathers(num_chunks: int, dequeues: int) -> int:
    """S M - 1, equation (5): how often parameters are gathered for backwards."""
    return dequeues * num_chunks - 1


def least_iteration(p: int, num_chunks: int, m: int, ticks: int, link: int, whole: int) -> int:
    """The paper's lower bound: (M B + P - 1) C_comp + T_PP + 2 C_DP."""
    return (num_chunks * m + p - 1) * ticks + message_ticks(p, link) + 2 * whole


def optimizer_bytes(replicas: int) -> Fraction:
    """M_o / psi = 12/D."""
    return Fraction(12, replicas)


def gradient_bytes(num_chunks: int, replicas: int, share: Fraction) -> Fraction:
    """M_g / psi = 2(1 - share) + (2/D + 4/M) share, with share = psi_g / psi."""
    return 2 * (1 - share) + (Fraction(2, replicas) + Fraction(4, num_chunks)) * share


def parameter_bytes(
    num_chunks: int, replicas: int, share: Fraction, *, own_shard: bool = True
) -> Fraction:
    """M_p / psi = 2(1 - share) + (2/D + 8/M) share, with share = psi_p / psi.

    The paper enables ZeRO-3 where M > 4; it saves memory where 1/D + 4/M < 1. Without
    ``own_shard`` what is gathered has no room for the 1/D that the device holds anyway: 8/M becomes
    8/M (1 - 1/D), with which every M_p of Table IV comes out as it is printed.
    """
    gathered = Fraction(8, num_chunks)
    if not own_shard:
        gathered *= 1 - Fraction(1, replicas)
    return 2 * (1 - share) + (Fraction(2, replicas) + gathered) * share


def planned_enqueues(buffer: int, m: int) -> tuple[int, ...]:
    """Section IV-B: e_1 = q, the other B - q as equal as can be in ceil((B-q)/q) operations.

    An element may fall below P, which section III-B forbids: q = P = 2, B = 3 gives (2, 1).
    """
    rest = m - buffer
    if rest <= 0:
        return (m,)
    return (buffer, *equal_parts(rest, -(-rest // buffer)))


def equal_parts(total: int, count: int) -> tuple[int, ...]:
    """The total in so many parts as equal as can be, the larger first.

    >>> equal_parts(10, 4), equal_parts(0, 0)
    ((3, 3, 2, 2), ())
    """
    return tuple(total // count + (k < total % count) for k in range(count)) if count else ()


offer(__name__)
