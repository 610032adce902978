"""Small random pipelines with something left open: recomputation, evictions, off-loads."""

from __future__ import annotations

from random import Random

from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.zeros import zeros_or

Open = tuple[Pipeline, AllowedChoices]


def random_open(random: Random, *, most_ranks: int = 4, most_stages: int = 8) -> Open:
    """A pipeline of up to 4 ranks and 3 microbatches, and what is allowed of it.

    Much of it takes no time, or no room.
    """
    p, m = random.randint(2, most_ranks), random.randint(1, 3)
    v = random.randint(1, max(1, min(2, most_stages // p)))
    stages, activation = range(p * v), zeros_or(random, 2, 4, p * v)
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        placement=random.choice(["loop", "wave"]),
        split_backward=random.choice([False, True]),
        forward=zeros_or(random, 1, 2, p * v),
        backward=zeros_or(random, 1, 3, p * v),
        input_backward=zeros_or(random, 1, 2, p * v),
        weight_backward=zeros_or(random, 1, 2, p * v),
        activation=activation,
        released_at_input=tuple(random.choice([0, 0, min(1, held)]) for held in activation),
        static=tuple(random.randint(0, 2) for _ in stages),
        capacity=tuple(random.choice([None, *[random.randint(2, 9)] * 5]) for _ in range(p)),
        latency=random.randint(0, 1),
        message=random.choice([0, 0, 2]),
        bandwidth=2,
    )
    return pipeline, random_allowed(random, pipeline)


def random_allowed(random: Random, pipeline: Pipeline, times: int = 1) -> AllowedChoices:
    """One, two or all three kinds; what is divided among chunks are multiples of ``times``."""
    p, stages = pipeline.num_ranks, range(pipeline.num_stages)
    kinds = random.choice(["r", "e", "o", "e", "re", "eo", "ro", "reo"] if p > 1 else ["r", "o"])

    def some() -> tuple[int, ...]:
        return tuple(sorted(random.sample(stages, random.randint(1, min(2, len(stages))))))

    again = some()
    least = min([times, *(int(pipeline.per_stage.activation[stage]) for stage in again)])
    sources = random.sample(range(p), random.randint(1, min(2, p)))
    return AllowedChoices(
        recompute=AllowedRecompute(
            stages=again,
            kept=times * random.randint(0, least // times),
            duration=random.choice([None, 0, times]),
            per_microbatch=random.random() < 0.3,
        )
        if "r" in kinds
        else None,
        evict=AllowedEvictions(
            pairs=tuple((s, (s + random.randint(1, p - 1)) % p) for s in sources),
            duration=times * random.randint(0, 2),
        )
        if "e" in kinds
        else None,
        offload=AllowedOffloads(
            stages=some(),
            offload=times * random.randint(0, 1),
            reload=times * random.randint(0, 2),
            host_capacity=random.choice([None, 0, 2, 4]),
        )
        if "o" in kinds
        else None,
    )
