"""The closed forms of T-Pipe, T-Recomp and T-Offload, as printed and as they hold.

Symbols: p ranks (the paper's PP), m microbatches, v chunks per rank (2 in the appendices; functions
that take v carry their counting on to more), k of them recomputed; one unit of time is the forward
of one chunk on one rank (T_unit = T_fwd / vp), a backward takes 2; one unit of memory is m_a / vp.
Everything is exact: whole units or ``Fraction``. A name that begins with ``printed_`` is the
paper's where ours differs; its docstring says how. Sources are the appendices of the T-Pipe paper.

Generators of schedules do not ask here: what they need of these they count for themselves, so that
a schedule's measures and these formulas share nothing.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from bubbleproof.papers.formula import offer


def ceil_div(a: int, b: int) -> int:
    """The least integer that is not below a / b, for b > 0."""
    return -(-a // b)


def forward_rounds(p: int) -> int:
    """x: rounds by which chunk 2 follows chunk 1 forwards, ceil((p-3)/6)."""
    return ceil_div(p - 3, 6)


def backward_rounds(p: int) -> int:
    """y: rounds by which chunk 1 follows chunk 2 backwards, ceil((2p-3)/6)."""
    return ceil_div(2 * p - 3, 6)


def forward_interval(p: int) -> int:
    """Appendix A: units on rank 0 between chunk 1's last forward and chunk 2's first."""
    return 3 + 6 * forward_rounds(p) - p


def backward_interval(p: int) -> int:
    """Appendix A: units between chunk 2's backward on rank 0 and chunk 1's on rank p-1."""
    return 3 + 6 * backward_rounds(p) - 2 * p


def deep_life(p: int) -> int:
    """Eq. 1: units from the start of chunk 2's forward on stage 0 to that of its backward there."""
    return 3 * p - 2


def shallow_life(p: int) -> int:
    """Eq. 2: the same of chunk 1: chunk 2's life, both intervals, p forwards and p backwards."""
    return deep_life(p) + forward_interval(p) + backward_interval(p) + 3 * p


def deep_peak(p: int) -> int:
    """Appendix A: most activations of chunk 2 alive on rank 0, ceil((3p-2)/6)."""
    return ceil_div(deep_life(p), 6)


def shallow_peak(p: int) -> int:
    """Appendix A: most activations of chunk 1 alive on rank 0, ceil(2/3 + x + y + p/2)."""
    return ceil_div(4 + 6 * forward_rounds(p) + 6 * backward_rounds(p) + 3 * p, 6)


def joint_peak(p: int) -> int:
    """Most activations alive on rank 0 for m large: the two peaks, which never meet for odd p.

    The paper adds the two; for odd p that is one too many.
    """
    return shallow_peak(p) + deep_peak(p) - p % 2


def tpipe_makespan(p: int, m: int) -> int:
    """Appendix A: 6(m+p-1) units."""
    return 6 * (m + p - 1)


def tpipe_idle_ratio(p: int, m: int) -> Fraction:
    """Appendix A: (p-1)/(m+p-1), as 1F1B's."""
    return Fraction(p - 1, m + p - 1)


def forward_gaps(p: int) -> int:
    """z: units that chunk 2's forwards wait in all when chunk 1 is recomputed, ceil((p-1)/2)."""
    return ceil_div(p - 1, 2)


def recomputing_interval(p: int, rounds: int) -> int:
    """Appendix B: T-Pipe's forward interval less z - x - 1, and 7 for each round of delay."""
    return forward_interval(p) - (forward_gaps(p) - forward_rounds(p) - 1) + 7 * rounds


def least_delay(p: int) -> int:
    """Eq. 3 for p >= 3: the least k that leaves no negative interval.

    The paper says that it is 1 for 8 <= p <= 40; its own constraint gives 0 at p = 10, 11, 12, 16,
    17 and 2 at p = 27, 32, 33, 36 to 39.
    """
    return max(0, ceil_div(-recomputing_interval(p, 0), 7))


def recomputing_life(p: int) -> int:
    """Eq. 4: units of a life of chunk 2's activations, 3p + z - 2."""
    return deep_life(p) + forward_gaps(p)


def deep_blocks(p: int) -> int:
    """Appendix C: ceil(T_life_chunk2 / 7) activations of chunk 2.

    The paper simplifies it to floor(p/2); it is ceil(p/2), first different at p = 1. With a
    life from the end of the forward, as Appendix A defines it, it is floor(p/2).
    """
    return ceil_div(recomputing_life(p), 7)


def trecomp_peak(p: int) -> int:
    """Appendix C: floor(p/2) + 1 activations, the recomputed one included."""
    return p // 2 + 1


def printed_trecomp_makespan(p: int, m: int) -> int:
    """Appendix C: 6p + 7(m-1) units. Below the work 7m at p = 1; an upper bound from p = 2 on."""
    return 6 * p + 7 * (m - 1)


def recomputing_1f1b_makespan(p: int, m: int) -> int:
    """Appendix C: 7(m+p-1) units of 1F1B with half of each backward's forward run again."""
    return 7 * (m + p - 1)


def offload_window(p: int) -> int:
    """Appendix D (5): idle units between chunk 2's last backward and chunk 1's in cool-down."""
    return 2 * (p - backward_rounds(p) - 1)


def reload_window(p: int) -> int:
    """Appendix D (7): idle units between chunk 1's first forward and chunk 2's in warm-up."""
    return p - forward_rounds(p) - 1


def chunk_life(p: int, v: int, chunk: int) -> int:
    """Eq. 1 and 2 for v chunks: units from a chunk's forward on rank 0 to its backward there.

    ``chunk`` counts from 0, the shallowest. Beside Eq. 1's 3p - 2 it waits for the deeper chunks:
    p forwards and 2p backwards of each, rounded up to whole cells of 3 units, and one cell more
    whenever the next one is another chunk's (every v / gcd of so many cells and v).
    """
    deeper = v - 1 - chunk
    forth, back = ceil_div(p, 3), ceil_div(2 * p, 3)
    taken = deeper * gcd(forth, v) // v + deeper * gcd(back, v) // v
    return deep_life(p) + 3 * (deeper * (forth + back) + taken)


def chunk_peak(p: int, v: int, chunk: int) -> int:
    """Appendix A for v chunks: most activations of a chunk alive on rank 0, ceil(life / 3v)."""
    return ceil_div(chunk_life(p, v, chunk), 3 * v)


def kept_limit(v: int, k: int = 0) -> Fraction:
    """Share of m_a that T-Pipe keeps for large p, the k shallowest of v chunks recomputed.

    A chunk lives p (v-chunk)/v rounds for large p. Two chunks: 3/4, and 1/4 where one is recomputed
    (Appendices A and C).
    """
    return Fraction((v - k) * (v - k + 1), 2 * v * v)


def phases_makespan(p: int, m: int, v: int, k: int = 0) -> int:
    """Appendices A and C for v chunks: v p units of warm-up, 3v + k a round, 2v p of cool-down."""
    return 3 * v * p + (3 * v + k) * (m - 1)


offer(__name__)
