"""BPipe on interleaved 1F1B: v chunks per rank, at most pv+1 activations on any rank.

Interleaved 1F1B holds mu(s) = n(v-1) + 2(p-s-1) + 1 activations on rank s, with n the microbatches
of its first group (p where p divides m, as in the paper); rank s and rank p-1-s hold 2n(v-1) + 2p
together, and one more while it moves: mu_opt = n(v-1) + p + 1, which is pv + 1 for n = p.

Source: Kim et al., "BPipe" (ICML 2023) Appendix A. Legal range: any p, m, v. Peak on rank r:
at most mu_opt activations of a chunk, transfers in flight counted on both ends.
"""

from __future__ import annotations

from bubbleproof.theory.families.bpipe_balancing import BalancedFamily
from bubbleproof.theory.families.interleaved import DepthFirst, group_sizes


class BPipeInterleaved(BalancedFamily):
    """Interleaved 1F1B with activation balancing between rank s and rank p-1-s."""

    name = "bpipe-interleaved"
    title = "BPipe on interleaved 1F1B"
    source = "BPipe (ICML 2023) Appendix A"
    options = frozenset({"v"})
    default_chunks = 2
    base = DepthFirst()

    def objective(self, p: int, m: int, v: int = 1) -> int:
        """mu_opt = n(v-1) + p + 1, which is Appendix A's pv + 1 where p divides m."""
        return int(group_sizes(p, m)[0]) * (v - 1) + p + 1
