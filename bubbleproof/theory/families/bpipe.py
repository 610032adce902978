"""BPipe: 1F1B whose early ranks park activations on late ones, at most ceil((p+2)/2) on any rank.

Rank s < (p-1)/2 evicts to rank p-1-s and loads back in time. The pair holds p+1 activations of 1F1B
at most and one more, which lies on both ranks while it moves: mu_opt = ceil((p+2)/2) each. The
order of computations is 1F1B's; so is the makespan where two transfers fit the time of a forward
and a backward, 2t <= tF + tB (``claims.bpipe`` measures it). A transfer takes t = tF ticks unless
``balanced`` is told otherwise.

The acceptor needs no waits: by its own order it holds at most s+1 of its own, and by the order of
the link never more than (p-s) - mu_opt + 1 of its evictor's, p + 2 - mu_opt in all.

Source: Kim et al., "BPipe" (ICML 2023) sections 3.2 to 3.4. Legal range: any p, m. Peak on rank r:
at most mu_opt, transfers in flight counted on both ends; min(p-r, m) where the pair moves nothing.
"""

from __future__ import annotations

from bubbleproof.theory.families.bpipe_balancing import BalancedFamily
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward


class BPipe(BalancedFamily):
    """1F1B with activation balancing between rank s and rank p-1-s."""

    name = "bpipe"
    title = "BPipe"
    source = "BPipe (ICML 2023) sections 3.2 to 3.4"
    base = OneForwardOneBackward()

    def objective(self, p: int, m: int, v: int = 1) -> int:
        """mu_opt = ceil((p+2)/2) (section 3.3); one chunk per rank."""
        del m, v
        return -(-(p + 2) // 2)
