"""MEPipe's claims: Table 3, SVPP's examples and figures, its memory model, its evaluation's tables.

Sun et al., "MEPipe: Democratizing LLM Training with Memory-Efficient Slice-Level Pipeline
Scheduling on Cost-Effective Accelerators" (EuroSys 2025). The claims are in ``mepipe_table3``
and ``mepipe_table3_svpp``, ``mepipe_figures``, ``mepipe_svpp``, ``mepipe_memory``, ``mepipe_model``
(operations and costs), ``mepipe_tables`` (Tables 6 and 7) and ``mepipe_evaluation``.
"""

from __future__ import annotations

from bubbleproof.papers.claims import (
    mepipe_evaluation,
    mepipe_figures,
    mepipe_memory,
    mepipe_model,
    mepipe_svpp,
    mepipe_table3,
    mepipe_table3_svpp,
    mepipe_tables,
)
from bubbleproof.papers.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = (
    *mepipe_table3.CLAIMS,
    *mepipe_table3_svpp.CLAIMS,
    *mepipe_figures.CLAIMS,
    *mepipe_svpp.CLAIMS,
    *mepipe_memory.CLAIMS,
    *mepipe_model.CLAIMS,
    *mepipe_tables.CLAIMS,
    *mepipe_evaluation.CLAIMS,
)
