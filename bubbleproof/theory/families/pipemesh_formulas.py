"""The cost model of PipeMesh: section IV-A, as printed, and what has to be added to it.

Symbols: P pipeline stages (ranks; counted from 1 as i in the paper, from 0 as ``rank`` here), M
chunks per rank, B microbatches, e and d the enqueue and dequeue sequences, R and S their lengths;
``forward`` and ``backward`` ticks of one pass (C_comp^fwd, C_comp^bwd), their sum C_comp; ``link``
ticks of one message (C_PP); ``whole`` ticks of all parameters or gradients of a chunk on the NIC
(C_DP), ``part`` of its sharded ones (C_DP^g, C_DP^p). Bytes are per parameter psi of the device,
with D replicas, and exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def exposed(communication: int, computation: int) -> int:
    """H(C, C') of equation (2): what computation does not cover, max(0, C - C')."""
    return max(0, communication - computation)


def warm_up_forwards(p: int, num_chunks: int, buffer: int, rank: int) -> int:
    """Forwards in a row before the first backward: (M-1) q + 2(P-i) + 1 with P - i = p - 1 - rank.

    The paper writes e_1 for q; ``pipemesh_order.buffer_size`` says when that is too few. At most
    the M B there are, which the paper leaves out. Each holds one activation: M_a.
    """
    return (num_chunks - 1) * buffer + 2 * (p - 1 - rank) + 1


def bubble_ticks(p: int, ticks: int) -> int:
    """T_bubble = (P-1) C_comp, where every element of e and d is at least P."""
    return (p - 1) * ticks


def message_ticks(p: int, link: int) -> int:
    """T_PP = 2(P-1) C_PP. The paper asks for C_PP < C_comp^fwd; elements of 2P are needed too."""
    return 2 * (p - 1) * link


def optimizer_ticks(
    num_chunks: int, e: Sequence[int], d: Sequence[int], whole: int, forward: int, backward: int
) -> int:
    """Equation (2): the first chunk's gather and reduction, and what e_1 and d_S do not hide.

    (The sentence before it says that the reductions hide behind e_1 forwards and the gathers
    behind d_S backwards; it is the other way round, which leaves the sum as it is.)
    """
    return 2 * whole + (num_chunks - 1) * (
        exposed(whole, e[0] * forward) + exposed(whole, d[-1] * backward)
    )


def gradient_ticks(num_chunks: int, operations: int, part: int, passes: int, backward: int) -> int:
    """Equation (3): (S-1) M H(C_DP^g, B_Z2 C_bwd); the passes are those of the *next* visit."""
    return (operations - 1) * num_chunks * exposed(part, passes * backward)


def forward_parameter_ticks(
    num_chunks: int, operations: int, part: int, passes: int, forward: int
) -> int:
    """Equation (4): (R-1) M H(C_DP^p, B_Z3^fwd C_fwd)."""
    return (operations - 1) * num_chunks * exposed(part, passes * forward)


def backward_parameter_ticks(
    num_chunks: int, operations: int, part: int, passes: int, backward: int
) -> int:
    """Equation (5): (S M - 1) H(C_DP^p, B_Z3^bwd C_bwd)."""
    return (operations * num_chunks - 1) * exposed(part, passes * backward)


def least_iteration(p: int, num_chunks: int, m: int, ticks: int, link: int, whole: int) -> int:
    """The paper's lower bound: (M B + P - 1) C_comp + T_PP + 2 C_DP."""
    return (num_chunks * m + p - 1) * ticks + message_ticks(p, link) + 2 * whole


def optimizer_bytes(replicas: int) -> Fraction:
    """M_o / psi = 12/D."""
    return Fraction(12, replicas)


def gradient_bytes(num_chunks: int, replicas: int, share: Fraction) -> Fraction:
    """M_g / psi = 2(1 - share) + (2/D + 4/M) share, with share = psi_g / psi."""
    return 2 * (1 - share) + (Fraction(2, replicas) + Fraction(4, num_chunks)) * share


def parameter_bytes(num_chunks: int, replicas: int, share: Fraction) -> Fraction:
    """M_p / psi = 2(1 - share) + (2/D + 8/M) share, with share = psi_p / psi.

    The paper enables ZeRO-3 where M > 4; it saves memory where 1/D + 4/M < 1.
    """
    return 2 * (1 - share) + (Fraction(2, replicas) + Fraction(8, num_chunks)) * share


def planned_enqueues(buffer: int, m: int) -> tuple[int, ...]:
    """Section IV-B: e_1 = q, the other B - q as equal as can be in ceil((B-q)/q) operations.

    An element may fall below P, which section III-B forbids: q = P = 2, B = 3 gives (2, 1).
    """
    rest = m - buffer
    if rest <= 0:
        return (m,)
    count = -(-rest // buffer)
    return (buffer, *(rest // count + (k < rest % count) for k in range(count)))
