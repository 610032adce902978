"""DualPipeV: DualPipe cut in half, so that every stage is on one rank.

Half of DualPipe's ranks hold all stages, folded to a V: rank r of p holds stages r and 2p-1-r
(``wave`` placement, two chunks). Its direction 0 is chunk 0, its direction 1 chunk 1, on the same
microbatches; it runs DualPipe's eight steps (``families.dualpipe``) with q = p-1-r ranks to the
fold, d = r+1 and m - 2p + d pairs in step 4. The last rank, at the fold, runs the first pair apart.

Source: the step list of DeepSeek's published DualPipeV schedule, from the "cut-in-half" of Sea AI
Lab. Published: bubble (PP/2-1)(F&B + B - 3W) and peak PP + 1 activations where PP counts stages,
2p here: (p-1)(F&B + B - 3W) and 2p + 1 chunk activations, F, B and W of one chunk. What it idles is
DualPipe's with h = p-1, and so is the condition on the ticks.
Legal range: any p, any m >= 2p.
"""

from __future__ import annotations

from bubbleproof.theory.families.dualpipe import EightSteps, eight_steps, numbered_actions
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.pipelines.pipeline import Pipeline


class DualPipeV(EightSteps):
    """DualPipe's eight steps on the two chunks of a V."""

    name = "dualpipev"
    title = "DualPipeV"
    source = "DeepSeek's DualPipe, the V form; DeepSeek-V3 technical report section 3.2.1"
    options = frozenset({"v"})
    default_chunks = 2
    placement = "wave"

    def refusal(self, pipeline: Pipeline) -> str | None:
        if pipeline.num_chunks != 2:
            return f"{self.name} has two chunks per rank, got v={pipeline.num_chunks}"
        return super().refusal(pipeline)

    def size_refusal(self, p: int, m: int) -> str | None:
        if m < 2 * p:
            return f"{self.name} needs m of 2p = {2 * p} or more, got m={m}"
        return None

    def orders(self, p: int, m: int) -> list[list[Action]]:
        return [
            numbered_actions(
                eight_steps(p - 1 - rank, rank + 1, m - 2 * p + rank + 1),
                [(rank, 0), (2 * p - 1 - rank, 0)],
            )
            for rank in range(p)
        ]
