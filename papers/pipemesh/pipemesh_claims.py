"""PipeMesh's claims: order, time and collectives of its schedules, bytes, and its tables.

Symbols: P ranks, M chunks per rank, B microbatches, e_1 the first enqueue and d_S the last dequeue,
C_comp = tF + tB ticks of a chunk, C_PP of a message, C_DP of a collective, H(a, b) = max(0, a - b).
The paper counts stages i from 1. Sequences are named by their first element and their length (see
``pipemesh_schedules``); "filled": every element is at least P, as section III-B requires. A claim's
source says which algorithm is meant: as printed it does not always end (``alg1.runs``), repaired it
is ``families.pipemesh_order``.

Source: Li et al., "PipeMesh: Achieving Memory-Efficient Computation-Communication Overlap for
Training Large Language Models" (TPDS 2025).
"""

from __future__ import annotations

from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.pipemesh import (
    pipemesh_algorithm,
    pipemesh_deadlock,
    pipemesh_evaluation,
    pipemesh_growth,
    pipemesh_memory,
    pipemesh_planned,
    pipemesh_tables,
    pipemesh_times,
    pipemesh_training,
)

CLAIMS: tuple[PaperClaim, ...] = (
    *pipemesh_algorithm.CLAIMS,
    *pipemesh_deadlock.CLAIMS,
    *pipemesh_planned.CLAIMS,
    *pipemesh_times.CLAIMS,
    *pipemesh_growth.CLAIMS,
    *pipemesh_memory.CLAIMS,
    *pipemesh_tables.CLAIMS,
    *pipemesh_evaluation.CLAIMS,
    *pipemesh_training.CLAIMS,
)
