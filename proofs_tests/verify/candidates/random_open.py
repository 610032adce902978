"""Small random pipelines with something left open: recomputation, evictions, off-loads."""

from __future__ import annotations

from random import Random

from bubbleproof.theory.pipelines.allowed import (
    Allowed,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline

Open = tuple[Pipeline, Allowed]


def random_open(random: Random, *, most_ranks: int = 4, most_stages: int = 8) -> Open:
    """A pipeline of up to 4 ranks and 3 microbatches, and what is allowed of it.

    Every activation is larger than what a recomputed one keeps, so each choice moves something.
    """
    p, m = random.randint(2, most_ranks), random.randint(1, 3)
    v = random.randint(1, max(1, min(2, most_stages // p)))
    stages = range(p * v)
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        placement=random.choice(["loop", "wave"]),
        split_backward=random.choice([False, True]),
        forward=tuple(random.randint(1, 2) for _ in stages),
        backward=tuple(random.randint(1, 3) for _ in stages),
        activation=tuple(random.randint(2, 4) for _ in stages),
        released_at_input=random.choice([0, 0, 1]),
        static=tuple(random.randint(0, 2) for _ in stages),
        capacity=tuple(random.choice([None, *[random.randint(4, 9)] * 5]) for _ in range(p)),
        latency=random.randint(0, 1),
        message=random.choice([0, 0, 2]),
        bandwidth=2,
    )
    return pipeline, random_allowed(random, pipeline)


def random_allowed(random: Random, pipeline: Pipeline) -> Allowed:
    """One, two or all three kinds."""
    kinds = random.choice(["r", "e", "o", "e", "re", "eo", "ro", "reo"])
    p, stages = pipeline.num_ranks, range(pipeline.num_stages)

    def some() -> tuple[int, ...]:
        return tuple(sorted(random.sample(stages, random.randint(1, min(2, len(stages))))))

    sources = random.sample(range(p), random.randint(1, min(2, p)))
    return Allowed(
        recompute=AllowedRecompute(
            stages=some(), kept=random.randint(0, 1), duration=random.choice([None, 1]),
            per_microbatch=random.random() < 0.3,
        ) if "r" in kinds else None,
        evict=AllowedEvictions(
            pairs=tuple((s, (s + random.randint(1, p - 1)) % p) for s in sources),
            duration=random.randint(0, 2),
        ) if "e" in kinds else None,
        offload=AllowedOffloads(
            stages=some(), offload=1, reload=random.randint(0, 2),
            host_capacity=random.choice([None, 2, 4]),
        ) if "o" in kinds else None,
    )  # fmt: skip
