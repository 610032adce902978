"""An iteration: the makespan of 1F1B with estimated times, and what follows the last backward.

The pipeline has ``chunks`` stages for each of ``at.pipeline`` ranks, with the times of their layers
(and of the embedding, and the head) and messages that arrive ``latency`` later. Its program is the
family ``1f1b``, of more chunks than one ``interleaved``; its timing is left-shifted (``theory``). A
rank reduces its gradients and updates its weights when its last backward has ended; the iteration
ends with the last rank to do so, and takes a constant more.

Ticks are nanoseconds. With one stage the microbatches of a replica run one after another. What a
layer takes is that of ``cluster_times``, of which plans are made too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_times import cluster_times
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.times.allocated import usual_cut
from bubbleproof.costs.transformer import Transformer
from bubbleproof.theory.families import Family, family
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationPlan:
    """The pipeline of an iteration in nanoseconds, and each rank's step behind it.

    ``stages`` tells each rank's layers, and the milliseconds of one microbatch in them and of the
    step.
    """

    pipeline: Pipeline
    step_ns: tuple[int, ...]
    beside_ns: int
    stages: tuple[Mapping[str, float], ...]

    def milliseconds(self) -> float:
        """The whole iteration."""
        if self.pipeline.num_ranks == 1:  # one microbatch after another
            once = sum(self.pipeline.ticks.forward[:, 0]) + sum(self.pipeline.ticks.backward[:, 0])
            whole = self.pipeline.num_microbatches * int(once) + self.step_ns[0] + self.beside_ns
            return whole / NS_PER_MS
        problem = self.pipeline.problem()
        schedule = self._family.schedule(self.pipeline, problem)
        rank = schedule.program.actions.stage % self.pipeline.num_ranks
        duration = problem.duration[problem.locate(schedule.program.actions)]
        end = schedule.start + duration + np.array(self.step_ns)[rank]
        return float((end.max() + self.beside_ns) / NS_PER_MS)

    @property
    def _family(self) -> Family:
        return family("1f1b" if self.pipeline.num_chunks == 1 else "interleaved")


def iteration_plan(
    model: Transformer,
    at: Deployment,
    cluster: Cluster,
    *,
    microbatches: int,
    chunks: int = 1,
    cut: Cut = (),
) -> IterationPlan:
    """What an iteration of ``microbatches`` a replica takes.

    Parameters
    ----------
    microbatches
        Those of one replica.
    chunks
        Stages of a rank.
    cut
        Layers of each stage, ``at.pipeline * chunks`` of them; without, ``usual_cut``.
    """
    ranks, stages = at.pipeline, at.pipeline * chunks
    cut = cut or usual_cut(model.layers, stages)
    times = cluster_times(model, at, cluster)
    forward, backward = (times.stages(cut, name) for name in ("forward", "backward"))
    steps = times.stages(cut, "step")
    by_rank = [sum(steps[rank::ranks]) for rank in range(ranks)]
    pipeline = Pipeline(
        num_ranks=ranks,
        num_chunks=chunks,
        num_microbatches=microbatches,
        forward=tuple(_ns(value) for value in forward),
        backward=tuple(_ns(value) for value in backward),
        latency=_ns(times.message),
        unit="ns",
        memory_unit="B",
    )
    return IterationPlan(
        pipeline=pipeline,
        step_ns=tuple(_ns(value) for value in by_rank),
        beside_ns=_ns(times.beside),
        stages=tuple(
            {
                "layers": float(sum(cut[rank::ranks])),
                "forward_ms": float(sum(forward[rank::ranks])),
                "backward_ms": float(sum(backward[rank::ranks])),
                "step_ms": by_rank[rank],
            }
            for rank in range(ranks)
        ),
    )


def _ns(milliseconds: float) -> int:
    return max(1, round(milliseconds * NS_PER_MS))
