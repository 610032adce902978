"""Random joint instances, and the numbers of each candidate worked out once more.

Nothing here asks ``theory.pipelines.shapes.shaping``: what a candidate makes of a rank's numbers is
computed on the spot, as ``formats.problem_toml`` tells it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random

from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import Backward, Placement, PlanSpace

Shape = tuple[int, Placement, Backward]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Lists to go through and the numbers of each rank, all of them even: two chunks halve them."""

    chunks: tuple[int, ...]
    placements: tuple[Placement, ...]
    backward: tuple[Backward, ...]
    num_microbatches: int
    forward: tuple[int, ...]
    input_backward: tuple[int, ...]
    weight_backward: tuple[int, ...]
    activation: tuple[int, ...]
    static: tuple[int, ...]
    capacity: int
    latency: int
    message: int
    again: tuple[int, ...] = ()
    kept: int = 0
    evict_ticks: int | None = None
    offloading: tuple[int, ...] = ()
    offload_ticks: int = 0

    @property
    def num_ranks(self) -> int:
        return len(self.forward)

    @property
    def space(self) -> PlanSpace:
        """What a planner is asked."""
        whole = tuple(map(sum, zip(self.input_backward, self.weight_backward, strict=True)))
        return PlanSpace(
            pipeline=Pipeline(
                num_ranks=self.num_ranks,
                num_microbatches=self.num_microbatches,
                forward=self.forward,
                backward=whole,
                input_backward=self.input_backward,
                weight_backward=self.weight_backward,
                activation=self.activation,
                static=self.static,
                capacity=self.capacity,
                latency=self.latency,
                message=self.message,
                bandwidth=2,
            ),
            allowed=self.allowed(1, tuple(range(self.num_ranks))),
            chunks=self.chunks,
            placements=self.placements,
            backward=self.backward,
        )

    def allowed(self, share: int, ranks: tuple[int, ...]) -> AllowedChoices | None:
        """What is open where each rank has ``share`` stages, on the ranks listed."""
        if not self.again and self.evict_ticks is None and not self.offloading:
            return None
        again, offloading = (
            tuple(stage for stage, rank in enumerate(ranks) if rank in those)
            for those in (self.again, self.offloading)
        )
        recompute = AllowedRecompute(stages=again, kept=self.kept // share)
        evict = None
        if self.evict_ticks is not None:
            evict = AllowedEvictions(pairs=((0, 1),), duration=self.evict_ticks // share)
        ticks = self.offload_ticks // share
        offload = AllowedOffloads(stages=offloading, offload=ticks, reload=ticks)
        return AllowedChoices(
            recompute=recompute if self.again else None,
            evict=evict,
            offload=offload if self.offloading else None,
        )

    def pipelines(self) -> Iterator[tuple[Pipeline, AllowedChoices | None]]:
        """Each candidate that has a meaning, with what is open in it."""
        for chunks, placement, backward in product(self.chunks, self.placements, self.backward):
            if placement == "bidirectional" and chunks > 1:
                continue
            ranks = self._ranks(chunks, placement)
            pipeline = self._pipeline(chunks, placement, backward, ranks)
            is_double = placement == "bidirectional"
            yield pipeline, None if is_double else self.allowed(chunks, ranks)

    def _ranks(self, chunks: int, placement: Placement) -> tuple[int, ...]:
        there = [*range(self.num_ranks)]
        back = there[::-1] if placement == "wave" else there
        return tuple(rank for chunk in range(chunks) for rank in (back if chunk % 2 else there))

    def _pipeline(
        self, chunks: int, placement: Placement, backward: Backward, ranks: tuple[int, ...]
    ) -> Pipeline:
        def shares(of_ranks: tuple[int, ...]) -> tuple[int, ...]:
            assert not any(number % chunks for number in of_ranks)
            return tuple(of_ranks[rank] // chunks for rank in ranks)

        split = backward if isinstance(backward, tuple) else (backward == "split",) * self.num_ranks
        parts = shares(self.input_backward), shares(self.weight_backward)
        return Pipeline(
            num_ranks=self.num_ranks,
            num_chunks=chunks,
            num_microbatches=self.num_microbatches,
            placement="bidirectional" if placement == "bidirectional" else ranks,
            forward=shares(self.forward),
            input_backward=parts[0],
            weight_backward=parts[1],
            backward=tuple(map(sum, zip(*parts, strict=True))),
            split_backward=tuple((split[rank],) * self.num_microbatches for rank in ranks),
            activation=shares(self.activation),
            static=self.static + (0,) * (len(ranks) - self.num_ranks),
            capacity=self.capacity,
            latency=self.latency,
            message=self.message,
            bandwidth=2,
        )


def instance(number: int) -> Instance:
    """The instance of that number: 2 to 4 ranks, up to 8 microbatches, up to 3 open stages.

    What is open is either recomputation or, for few microbatches, eviction or both, or beside
    either an off-load to the host: each concrete pipeline has to be solved without any cleverness.
    """
    random = Random(number)
    p = random.choice([2, 2, 2, 3, 4])
    kind = random.choice(["none", "recompute", "recompute", "evict", "both"])
    m = random.randint(2, {2: 8, 3: 4, 4: 3}[p] if kind in ("none", "recompute") else 2)
    is_small = m * p <= 6
    found = Instance(
        chunks=random.choice([(1,), (1, 2), (2,)]) if is_small else (1,),
        placements=random.choice([("loop",), ("loop", "wave"), ("loop", "bidirectional")]),
        backward=random.choice(
            [("whole",), ("whole", "split"), ("split",), ("whole", (True,) + (False,) * (p - 1))]
        )
        if is_small
        else ("whole",),
        num_microbatches=m,
        forward=_even(random, p, 2),
        input_backward=_even(random, p, 2),
        weight_backward=_even(random, p, 2),
        activation=_even(random, p, 2),
        static=tuple(random.randint(0, 2) for _ in range(p)),
        capacity=2 * random.randint(2, 6) + random.randint(0, 2),
        latency=random.randint(0, 2),
        message=random.choice([0, 0, 2]),
    )
    if kind in ("recompute", "both"):
        most = 3 if is_small and kind == "recompute" else 2
        again = random.sample(range(p), random.randint(1, min(p, most)))
        found = replace(found, again=tuple(sorted(again)), kept=random.choice([0, 0, 2]))
    if kind in ("evict", "both"):
        found = replace(found, evict_ticks=random.choice([0, 2, 4]))
    more = Random(f"off-load {number}")  # what was drawn before stays as it was
    if m == 2 and kind != "both" and more.random() < 0.6:
        offloading = (more.randrange(p),)
        found = replace(found, offloading=offloading, offload_ticks=more.choice([2, 2, 4]))
    return found


def _even(random: Random, count: int, most: int) -> tuple[int, ...]:
    return tuple(2 * random.randint(1, most) for _ in range(count))
