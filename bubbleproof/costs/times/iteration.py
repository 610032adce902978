"""An iteration: the makespan of 1F1B with estimated times, and what follows the last backward.

The pipeline has ``chunks`` stages for each of ``at.pipeline`` ranks, with the times of their layers
(and of the embedding, and the head) and messages that occupy a link for their bytes and arrive
``latency`` later. Its program is the family ``1f1b``, of more chunks than one ``interleaved``; its
timing is left-shifted (``theory``). A rank reduces its gradients and updates its weights when its
last backward has ended; the iteration ends with the last rank to do so, and takes a constant more.

Ticks are nanoseconds. With one stage the microbatches of a replica run one after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.times.kernels import KernelTimes, kernel_times
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.times.step_work import Step, step, step_times
from bubbleproof.costs.times.work import Floats, work
from bubbleproof.costs.transformer import Transformer
from bubbleproof.theory.families import Family, family
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline

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

    def schedule(self) -> Schedule:
        """The left-shifted schedule of 1F1B, interleaved where ranks have several chunks."""
        return self._family.schedule(self.pipeline)

    def milliseconds(self) -> float:
        """The whole iteration."""
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
    *,
    microbatches: int,
    runs: Software,
    constants: Mapping[str, float],
    cards_per_node: int,
    chunks: int = 1,
) -> IterationPlan:
    """What an iteration of ``microbatches`` a replica takes.

    Parameters
    ----------
    microbatches
        Those of one replica.
    constants
        A value for each of the model's constants, by name.
    cards_per_node
        Cards that share a node's links.
    chunks
        Stages of a rank; the layers divide by ``at.pipeline * chunks``.
    """
    once = work(model, at, runs, cards_per_node)
    times = kernel_times(once, constants)
    steps = steps_of(model, at, runs, cards_per_node)
    stages = at.pipeline * chunks
    layers = model.layers // stages
    kinds = [
        [
            (kernel_times(work(kind, at, runs, cards_per_node), constants), count)
            for kind, count in model.between(stage * layers, layers)
        ]
        for stage in range(stages)
    ]
    forward, backward = stage_times(times, kinds)
    beside = model.layers // at.pipeline * (times.forward + times.backward)
    steps_ms = [float(step_times(each, constants, beside)) for each in steps]
    rate = constants["message"]  # GB/s: bytes a nanosecond
    pipeline = Pipeline(
        num_ranks=at.pipeline,
        num_chunks=chunks,
        num_microbatches=microbatches,
        forward=tuple(_ns(value) for value in forward),
        backward=tuple(_ns(value) for value in backward),
        message=round(float(once.message)),
        latency=_ns(times.latency),
        bandwidth=Fraction(rate).limit_denominator(10**6),
        duplex="full",
        unit="ns",
        memory_unit="B",
    )
    return IterationPlan(
        pipeline=pipeline,
        step_ns=tuple(_ns(value) for value in steps_ms),
        beside_ns=_ns(constants["iteration"]),
        stages=tuple(
            {
                "layers": float(model.layers // at.pipeline),
                "forward_ms": float(sum(forward[rank :: at.pipeline])),
                "backward_ms": float(sum(backward[rank :: at.pipeline])),
                "step_ms": steps_ms[rank],
            }
            for rank in range(at.pipeline)
        ),
    )


def stage_times(
    ends: KernelTimes, kinds: Sequence[Sequence[tuple[KernelTimes, int]]]
) -> tuple[list[Floats], list[Floats]]:
    """Forward and backward of each stage, one microbatch: its layers, each kind with how many of
    it there are, and what the ends have more.
    """
    forward = [np.asarray(sum(n * times.forward for times, n in own)) for own in kinds]
    backward = [np.asarray(sum(n * times.backward for times, n in own)) for own in kinds]
    forward[0] = forward[0] + ends.embedding_each_way
    backward[0] = backward[0] + ends.embedding_each_way
    forward[-1] = forward[-1] + ends.head_each_pass
    backward[-1] = backward[-1] + 2 * ends.head_each_pass
    return forward, backward


def ends_of(stages: int) -> list[dict[str, bool]]:
    """Whether a stage is the first, and the last.

    Parameters
    ----------
    stages
        How many stages there are.
    """
    return [{"is_first": stage == 0, "is_last": stage == stages - 1} for stage in range(stages)]


def steps_of(model: Transformer, at: Deployment, runs: Software, cards_per_node: int) -> list[Step]:
    """The step of each stage.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links.
    """
    return [step(model, at, runs, cards_per_node, **ends) for ends in ends_of(at.pipeline)]


def _ns(milliseconds: float | Floats) -> int:
    return max(1, round(float(milliseconds) * NS_PER_MS))
