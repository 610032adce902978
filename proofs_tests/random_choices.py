"""Random pipelines whose choices combine: every kind that ``Choices`` declares has a drawer here.

``combined`` and ``anything`` go through the declarations: a kind of choice or a number of a
pipeline that has no drawer stops them by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.overlaps import Overlap
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.pipeline_statement import PipelineStatement
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.timing import in_order
from bubbleproof.theory.pipelines.transfers import ActionPair, Eviction
from proofs_tests.zeros import zero_or, zeros_or

Sample = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """What a drawer has to know: ``pipeline`` has what was drawn before."""

    random: Random
    pipeline: Pipeline
    least: int = 0  # ticks of every computation and transfer

    def ticks(self, low: int, high: int) -> int:
        return zero_or(self.random, low, high, self.least)

    def some(self, every: float = 0.3) -> list[Sample]:
        """Samples that no choice has taken yet, (stage, microbatch)."""
        made = self.pipeline.choices
        again = made.recompute or Recompute()
        moved: list[Eviction | ActivationOffload] = [*made.evictions, *made.offloads]
        taken = {(one.stage, one.microbatch) for one in moved}
        hosted = made.state_offload.stages if made.state_offload else ()
        samples = product(range(self.pipeline.num_stages), range(self.pipeline.num_microbatches))
        return [
            (g, j)
            for g, j in samples
            if self.random.random() < every
            and not ({g} & {*again.stages, *hosted} or {(g, j)} & {*again.samples, *taken})
        ]


def combined(random: Random, *, least: int = 0, without: tuple[str, ...] = ()) -> Pipeline:
    """A small pipeline with any of the choices that go together, but those named ``without``.

    ``least`` ticks are taken by every computation and transfer: with 1, their moments differ.
    """
    return anything(random, shape_of(random, 4, 4), least=least, without=("capacity", *without))


def shape_of(random: Random, ranks: int, microbatches: int) -> dict[str, Any]:
    """So many at most, of one chunk or two and one slice or two."""
    return {
        "num_ranks": random.randint(1, ranks),
        "num_microbatches": random.randint(1, microbatches),
        "num_chunks": random.randint(1, 2),
        "num_slices": random.choice([1, 1, 2]),
    }


def anything(
    random: Random,
    shape: dict[str, Any],
    *,
    least: int = 0,
    without: tuple[str, ...] = (),
    every: float = 1.0,
) -> Pipeline:
    """A pipeline of the shape with a value of every number and of every kind that is declared.

    ``every`` is the chance of a kind to be drawn at all.
    """
    found = Pipeline(**shape)
    if random.random() < 0.25:
        found = Pipeline(**{**shape, "num_chunks": 1, "placement": "bidirectional"})
    numbers = [f.name for f in fields(PipelineStatement) if f.name not in (*shape, "choices")]
    kinds = [f.name for f in fields(Choices) if every == 1 or random.random() < every]
    for name in without_names([*numbers, *kinds], without):
        value = drawer_of(name)(Draw(random=random, pipeline=found, least=least))
        with suppress(ValueError):  # clashes with what was drawn before
            more = found.with_changes(**{name: value})
            found = found if is_circular(more) else more
    return found


def is_circular(pipeline: Pipeline) -> bool:
    """Whether what is chosen waits for itself; without waits nothing does."""
    if not pipeline.waits:
        return False
    problem = pipeline.problem()
    return in_order(problem.num_tasks, problem.edges.before, problem.edges.after) is None


def without_names(names: list[str], left_out: tuple[str, ...]) -> list[str]:
    """The names, less those left out."""
    return [name for name in names if name not in left_out]


def drawer_of(name: str) -> Callable[[Draw], object]:
    """How values of a field are drawn."""
    assert name in DRAWERS, f"{name} has no drawer in proofs_tests.random_choices.DRAWERS: add one"
    return DRAWERS[name]


def _ticks(low: int, high: int) -> Callable[[Draw], object]:
    return lambda draw: zeros_or(draw.random, low, high, draw.pipeline.num_stages, draw.least)


def _rows(low: int, high: int) -> Callable[[Draw], object]:
    """Numbers of stages, or one time in five of their slices."""

    def rows(draw: Draw) -> object:
        if draw.random.random() < 0.8:
            return _ticks(low, high)(draw)
        slices = draw.pipeline.num_slices
        return tuple(
            zeros_or(draw.random, low, high, slices, draw.least)
            for _ in range(draw.pipeline.num_stages)
        )

    return rows


def _released(draw: Draw) -> object:
    activation = draw.pipeline.per_stage.activation.tolist()
    return tuple(draw.random.randint(min(0, -held // 2), held) for held in activation)


def _link(draw: Draw) -> object:
    last = draw.pipeline.num_ranks - 1
    duplex, bandwidth = draw.random.choice(["full", None]), draw.random.choice([2, None])
    return (
        () if not last else (Link(ranks=(0, last), latency=1, bandwidth=bandwidth, duplex=duplex),)
    )


def _capacity(draw: Draw) -> object:
    """From less than a microbatch needs to more than all of them do."""
    held = draw.pipeline.per_stage
    all_of_them = int(held.static.sum() + held.activation.sum() * draw.pipeline.num_slices)
    each = tuple(
        None if draw.random.random() < 0.2 else draw.random.randint(0, 2 * all_of_them)
        for _ in range(draw.pipeline.num_ranks)
    )
    return draw.random.choice([None, each, max(map(int, filter(None, each)), default=None)])


def _placement(draw: Draw) -> object:
    found = draw.pipeline
    if found.is_bidirectional:
        return "bidirectional"
    ranks = [*range(found.num_ranks)] * found.num_chunks
    draw.random.shuffle(ranks)
    return draw.random.choice(["loop", "wave", tuple(ranks)])


def _split(draw: Draw) -> object:
    rows = tuple(
        tuple(draw.random.random() < 0.5 for _ in range(draw.pipeline.num_microbatches))
        for _ in range(draw.pipeline.num_stages)
    )
    each = tuple((row[0],) * len(row) for row in rows)
    return draw.random.choice([False, True, rows, each])


def _parts(draw: Draw) -> object:
    """Each W whole, or cut in two."""
    if draw.random.random() < 0.6:
        return ()
    least, rows = draw.least, []
    for ticks in draw.pipeline.ticks.weight_backward[:, 0].tolist():
        cut = draw.random.randint(least, max(least, ticks - least))
        rows.append((cut, ticks - cut) if ticks >= 2 * least else ())
    return tuple(rows)


def _overlaps(draw: Draw) -> tuple[Overlap, ...]:
    """At most one pair: a later microbatch's F beside an earlier one's B of the same stage."""
    last, ranks = draw.pipeline.num_microbatches - 1, draw.pipeline.rank_grid
    is_there = last > 0 and ranks[0, last] == ranks[0, 0] and draw.random.random() < 0.5
    return (((0, last), (0, 0)),) if is_there else ()


def _recompute(draw: Draw) -> Recompute | None:
    samples = draw.some()
    if not samples or draw.random.random() < 0.3:
        return None
    held = draw.pipeline.per_stage.activation.tolist()
    stages: tuple[int, ...] = ()
    if draw.random.random() < 0.3:
        stages, samples = (samples[0][0],), [one for one in samples if one[0] != samples[0][0]]
    named = [*stages, *(stage for stage, _ in samples)]
    kept = draw.random.randint(0, min(1, *(held[stage] for stage in [*named, named[0]])))
    ticks = draw.random.choice([None, draw.ticks(1, 2)])
    return Recompute(stages=stages, samples=tuple(samples), kept=kept, duration=ticks)


def _evictions(draw: Draw) -> tuple[Eviction, ...]:
    p, ranks = draw.pipeline.num_ranks, draw.pipeline.rank_grid
    return tuple(
        Eviction(
            stage=g,
            microbatch=j,
            slice=k,
            source=int(ranks[g, j]),
            target=(int(ranks[g, j]) + 1) % p,
            duration=draw.ticks(1, 2),
        )
        for (g, j), k in product(draw.some() if p > 1 else (), range(draw.pipeline.num_slices))
    )


def _waits(draw: Draw) -> tuple[ActionPair, ...]:
    """At most two precedences that make no circle: from one task to a later one of an order."""
    if draw.random.random() < 0.6:
        return ()
    problem = draw.pipeline.with_changes(waits=()).problem()
    order = in_order(problem.num_tasks, problem.edges.before, problem.edges.after)
    named = [t for t in order or () if problem.actions.kind[t] in (Kind.F, Kind.B, Kind.I, Kind.W)]
    if len(named) < 2:
        return ()
    pairs = [sorted(draw.random.sample(range(len(named)), 2)) for _ in range(2)]
    return tuple((problem.actions[named[a]], problem.actions[named[b]]) for a, b in pairs)


def _offloads(draw: Draw) -> tuple[ActivationOffload, ...]:
    return tuple(
        ActivationOffload(
            stage=g, microbatch=j, slice=k, offload=draw.ticks(1, 1), reload=draw.ticks(2, 2)
        )
        for (g, j), k in product(draw.some(), range(draw.pipeline.num_slices))
    )


def _state(draw: Draw) -> StateOffload | None:
    lying = {one.stage for one in draw.pipeline.choices.offloads}
    hosted = [g for g in range(draw.pipeline.num_stages) if draw.random.random() < 0.5]
    hosted = [g for g in hosted if g not in lying]
    if not hosted or draw.random.random() < 0.5:
        return None
    return StateOffload(
        stages=tuple(hosted),
        offload=draw.ticks(1, 1),
        step=draw.ticks(1, 1),
        reload=draw.ticks(1, 1),
        weight=zero_or(draw.random, 1, 1),
        gradient=zero_or(draw.random, 1, 1),
        state=zero_or(draw.random, 2, 2),
    )


def _sharding(draw: Draw) -> Sharding | None:
    if draw.random.random() < 0.4:
        return None
    return sharded(draw.pipeline.num_microbatches, draw.random, draw.least)


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


def _frozen(draw: Draw) -> tuple[int, ...]:
    if draw.random.random() < 0.5:
        return ()
    return tuple(g for g in range(draw.pipeline.num_stages) if draw.random.random() < 0.5)


def _one_of(*values: object) -> Callable[[Draw], object]:
    return lambda draw: draw.random.choice(values)


DRAWERS: Mapping[str, Callable[[Draw], Any]] = {
    "forward": _rows(1, 3),
    "backward": _rows(1, 3),
    "input_backward": _rows(1, 2),
    "weight_backward": _ticks(1, 2),
    "activation": lambda draw: tuple(
        draw.random.choice([0, 1, 2, 2, 2]) for _ in range(draw.pipeline.num_stages)
    ),
    "released_at_input": _released,
    "weight_workspace": _one_of(0, 0, 1),
    "static": lambda draw: zeros_or(draw.random, 1, 2, draw.pipeline.num_stages),
    "capacity": _capacity,
    "message": lambda draw: zeros_or(draw.random, 1, 3, draw.pipeline.num_stages),
    "latency": _one_of(0, 1, 2),
    "bandwidth": _one_of(None, None, 1, 2, Fraction(2, 3)),
    "duplex": _one_of("half", "full"),
    "links": _link,
    "unit": _one_of("tick", "us"),
    "memory_unit": _one_of("activation", "MiB"),
    "placement": _placement,
    "split_backward": _split,
    "weight_parts": _parts,
    "overlaps": _overlaps,
    "recompute": _recompute,
    "evictions": _evictions,
    "waits": _waits,
    "offloads": _offloads,
    "host_capacity": lambda draw: zero_or(draw.random, 1, 9) or None,
    "state_offload": _state,
    "sharding": _sharding,
    "frozen_stages": _frozen,
}
