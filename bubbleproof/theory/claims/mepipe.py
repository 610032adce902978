"""MEPipe's claims: Table 3, SVPP's examples and figures, its memory model, its evaluation's tables.

Sun et al., "MEPipe: Democratizing LLM Training with Memory-Efficient Slice-Level Pipeline
Scheduling on Cost-Effective Accelerators" (EuroSys 2025). The claims are in ``mepipe_table3``,
``mepipe_svpp``, ``mepipe_model`` and ``mepipe_tables``.
"""

from __future__ import annotations

from bubbleproof.theory.claims import (
    mepipe_model,
    mepipe_svpp,
    mepipe_table3,
    mepipe_tables,
)
from bubbleproof.theory.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = (
    *mepipe_table3.CLAIMS,
    *mepipe_svpp.CLAIMS,
    *mepipe_model.CLAIMS,
    *mepipe_tables.CLAIMS,
)
