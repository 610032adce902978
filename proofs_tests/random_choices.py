"""Random pipelines whose choices combine: splits, parts of W, moves, recomputation, sharding."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from random import Random

from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.overlaps import Overlap
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import Eviction
from proofs_tests.zeros import zero_or, zeros_or

Sample = tuple[int, int]


def combined(random: Random, *, least: int = 0) -> Pipeline:
    """A small pipeline with any of the choices that go together.

    ``least`` ticks are taken by every computation and transfer: with 1, their moments differ.
    """
    p, m, s = random.randint(1, 4), random.randint(1, 4), random.choice([1, 1, 2])
    placement = random.choice(["loop", "wave", "bidirectional"])
    v = 1 if placement == "bidirectional" else random.randint(1, 2)
    stages, samples = range(p * v), range(m)
    flags = random.choice([False, True, None])
    gemms, duplex = random.choice([1, 1, 2]), random.choice(["full", None])
    activation = tuple(random.choice([0, 1, 2, 2, 2]) for _ in stages)

    plain = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        num_slices=s,
        placement=placement,
        split_backward=tuple(tuple(random.random() < 0.5 for _ in samples) for _ in stages)
        if flags is None
        else flags,
        forward=zeros_or(random, 1, 3, p * v, least),
        backward=zeros_or(random, 1, 3, p * v, least),
        input_backward=zeros_or(random, 1, 2, p * v, least),
        weight_backward=tuple(each * gemms for each in zeros_or(random, 1, 2, p * v, least)),
        activation=activation,
        released_at_input=tuple(random.randint(0, held) for held in activation),
        message=tuple(random.randint(0, 3) for _ in stages),
        latency=random.randint(0, 2),
        bandwidth=random.choice([None, None, 1, 2, Fraction(2, 3)]),
        duplex=random.choice(["half", "full"]),
        links=() if p == 1 else (Link(ranks=(0, p - 1), latency=1, bandwidth=2, duplex=duplex),),
    )
    if gemms > 1:
        rows = tuple((ticks // gemms,) * gemms for ticks in plain.ticks.weight_backward[:, 0])
        plain = plain.with_changes(weight_parts=tuple(tuple(map(int, row)) for row in rows))
    return plain.with_changes(choices=chosen(plain, random, least))


def chosen(plain: Pipeline, random: Random, least: int = 0) -> Choices:
    """The choices of the pipeline with more of them."""
    p, ticks = plain.num_ranks, partial(zero_or, random, zero=least)
    update = "" if plain.is_bidirectional else random.choice(["", "host", "shards"])
    hosted = [g for g in range(plain.num_stages) if random.random() < 0.5]
    doings: dict[str, list[Sample]] = {"none": [], "again": [], "peer": [], "host": []}
    for stage, microbatch in product(range(plain.num_stages), range(plain.num_microbatches)):
        doing = random.choice(list(doings))
        if (doing == "peer" and p == 1) or (doing == "host" and update == "host"):
            doing = "none"
        doings[doing].append((stage, microbatch))
    ranks, slices = plain.rank_grid, range(plain.num_slices)
    held = plain.per_stage.activation.tolist()
    kept = random.randint(0, min([1, *(held[stage] for stage, _ in doings["again"])]))
    return replace(
        plain.choices,
        recompute=Recompute(samples=tuple(doings["again"]), kept=kept) if doings["again"] else None,
        evictions=tuple(
            Eviction(
                stage=g,
                microbatch=j,
                slice=k,
                source=int(ranks[g, j]),
                target=(int(ranks[g, j]) + 1) % p,
                duration=ticks(1, 2),
            )
            for (g, j), k in product(doings["peer"], slices)
        ),
        offloads=tuple(
            ActivationOffload(
                stage=g,
                microbatch=j,
                slice=k,
                offload=ticks(1, 1),
                reload=ticks(2, 2),
            )
            for (g, j), k in product(doings["host"], slices)
        ),
        overlaps=overlapped(plain, random),
        state_offload=StateOffload(
            stages=tuple(hosted),
            offload=ticks(1, 1),
            step=ticks(1, 1),
            reload=ticks(1, 1),
            weight=zero_or(random, 1, 1),
            gradient=zero_or(random, 1, 1),
            state=zero_or(random, 2, 2),
        )
        if update == "host" and hosted
        else None,
        sharding=sharded(plain.num_microbatches, random, least) if update == "shards" else None,
    )


def overlapped(plain: Pipeline, random: Random) -> tuple[Overlap, ...]:
    """At most one pair: a later microbatch's F beside an earlier one's B of the same stage."""
    if plain.num_slices > 1 or plain.split_backward is not False or random.random() < 0.5:
        return ()
    ranks = plain.rank_grid
    return tuple(
        ((0, later), (0, earlier))
        for earlier, later in [(0, plain.num_microbatches - 1)]
        if later > earlier and ranks[0, later] == ranks[0, earlier]
    )


def sharded(m: int, random: Random, least: int = 0) -> Sharding:
    """Collectives of visits of any sizes."""

    def sizes() -> tuple[int, ...] | None:
        cut = random.randint(0, m - 1)
        return None if not cut else (cut, m - cut)

    return Sharding(
        zero=random.randint(1, 3),
        gather=zero_or(random, 2, 2, least),
        reduce=zero_or(random, 3, 3, least),
        parameter=zero_or(random, 1, 1),
        gradient=zero_or(random, 1, 1),
        enqueue=sizes(),
        dequeue=sizes(),
    )
