"""The closed forms of T-Pipe, T-Recomp and T-Offload, as printed and as they hold.

Symbols: p ranks (the paper's PP), m microbatches, two chunks per rank; one unit of time is the
forward of one chunk on one rank (T_unit = T_fwd / 2p), a backward takes 2; one unit of memory is
m_a / 2p. Everything is exact: whole units or ``Fraction``. A name that begins with ``printed_`` is
the paper's where ours differs; its docstring says how. Sources are the appendices of the T-Pipe
paper.

Generators of schedules do not ask here: what they need of these they count for themselves, so that
a schedule's measures and these formulas share nothing.
"""

from __future__ import annotations

from fractions import Fraction

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


def deep_peak(p: int) -> int:
    """Appendix A: most activations of chunk 2 alive on rank 0, ceil((3p-2)/6)."""
    return ceil_div(3 * p - 2, 6)


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


offer(__name__)
