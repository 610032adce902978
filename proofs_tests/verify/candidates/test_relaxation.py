"""What holds whatever is chosen: stated a second time, at or below every choice, and no less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable
from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
import pytest

from bubbleproof.solvers.choices.pipeline_variants import PipelineVariants
from bubbleproof.theory.model.problem import Problem, Store
from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.relaxation import relaxation
from proofs_tests.planners.every_choice import every_choice
from proofs_tests.sized import sized
from proofs_tests.solvers.derived_floor import derived_floor
from proofs_tests.solvers.plain_model import optimum
from proofs_tests.verify.candidates.random_open import random_open

MOST_CHOICES = 16  # of one pipeline, each solved


def memory(problem: Problem) -> Counter[Hashable]:
    """The stores that change or are full, each with its base, capacity and events by name."""
    events, found = problem.events, Counter[Hashable]()
    for number, store in enumerate(problem.stores):
        rows = np.flatnonzero(events.store == number).tolist()
        changes = sorted(
            (problem.label(int(events.task[row])), bool(events.at_end[row]), int(events.delta[row]))
            for row in rows
        )
        if changes or (store.capacity is not None and store.base > store.capacity):
            found[store.base, store.capacity, tuple(changes)] += 1
    return found


def moving(pipeline: Pipeline, allowed: AllowedChoices) -> AllowedChoices:
    """What of it moves anything: choices of activations that are larger than what stays of them."""
    held, ranks = pipeline.per_stage.activation.tolist(), pipeline.stage_ranks
    again, evict, offload = allowed.recompute, allowed.evict, allowed.offload
    full = {rank for rank, units in zip(ranks, held, strict=True) if units}
    return AllowedChoices(
        recompute=again
        and replace(again, stages=tuple(g for g in again.stages if held[g] > again.kept)),
        evict=evict and replace(evict, pairs=tuple(p for p in evict.pairs if p[0] in full)),
        offload=offload and replace(offload, stages=tuple(g for g in offload.stages if held[g])),
    )


def test_it_is_what_the_rows_of_all_options_say() -> None:
    """Solvers have the relaxation; derived from the rows of the options, it is the same memory."""
    weaker = 0
    for number in range(sized(60, full=2000)):
        pipeline, allowed = random_open(Random(number))
        variants = PipelineVariants(pipeline, allowed).variants
        ours, floor = relaxation(pipeline, allowed), derived_floor(variants)
        assert memory(variants.floor) == memory(ours), number
        assert memory(relaxation(pipeline, moving(pipeline, allowed))) == memory(floor), number
        weaker += memory(ours) != memory(floor)
        assert [*map(str, ours.actions)] == [*map(str, floor.actions)], number
        assert len(ours.edges) == len(floor.edges), number
    assert weaker > sized(3, full=10)


def test_no_choice_is_below_it() -> None:
    compared = 0
    for number in range(sized(40, full=300)):
        pipeline, allowed = random_open(Random(number), most_ranks=2, most_stages=2)
        choices = [*islice(every_choice(pipeline, allowed), MOST_CHOICES + 1)]
        if len(choices) > sized(8, full=MOST_CHOICES):
            continue
        least = optimum(relaxation(pipeline, allowed), "makespan")
        for chosen in choices:
            compared += 1
            # None: no schedule of the choice, or none below the relaxation's optimum.
            assert optimum(chosen.problem(), "makespan", below=least) is None, (number, chosen)
    assert compared >= sized(50, full=1000)


def test_without_anything_open_it_is_the_problem() -> None:
    pipeline, _ = random_open(Random(1))
    for allowed in (None, AllowedChoices()):
        assert memory(relaxation(pipeline, allowed)) == memory(pipeline.problem())


# Controls: what a careless relaxation would keep is beaten by the schedule of some choice.


def joined(problem: Problem, ranks: Collection[int], capacity: int) -> Problem:
    """The problem in which these ranks have one store of that capacity."""
    first = min(ranks)
    stores = [
        replace(store, capacity=None) if number in ranks else store
        for number, store in enumerate(problem.stores)
    ]
    stores[first] = Store(
        name="joint", base=sum(problem.stores[r].base for r in ranks), capacity=capacity
    )
    into = np.array([first if r in ranks else r for r in range(len(stores))])
    events = replace(problem.events, store=into[problem.events.store])
    return replace(problem, stores=tuple(stores), events=events)


TWO = Pipeline(num_ranks=2, num_microbatches=2, activation=2, capacity=(2, 9))
THREE = Pipeline(num_ranks=3, num_microbatches=2, activation=2, capacity=(2, 4, 9))
AGAIN = AllowedChoices(recompute=AllowedRecompute(stages=(0,), duration=0))
EVICT = AllowedChoices(evict=AllowedEvictions(pairs=((0, 1),), duration=0))
CHAIN = AllowedChoices(evict=AllowedEvictions(pairs=((0, 1), (1, 2)), duration=0))
HOST = AllowedChoices(offload=AllowedOffloads(stages=(0,), offload=0, reload=0, host_capacity=6))
FREE = AllowedChoices(offload=AllowedOffloads(stages=(0,), offload=0, reload=0))
BOTH = AllowedChoices(recompute=AGAIN.recompute, evict=EVICT.evict)
OPEN_END = TWO.with_changes(capacity=(2, None))
CONTROLS = {
    "a recomputing rank keeps its capacity": (TWO, AGAIN, TWO.problem()),
    "half of a pair: the source alone": (TWO, EVICT, TWO.problem()),
    "an unlimited partner is ignored": (OPEN_END, EVICT, joined(OPEN_END.problem(), (0, 1), 2)),
    "half of a chain: the first two": (THREE, CHAIN, joined(THREE.problem(), (0, 1), 6)),
    "a rank without its host": (TWO, HOST, TWO.problem()),
    "an unlimited host is ignored": (TWO, FREE, TWO.problem()),
    "a pool in which one recomputes": (
        TWO.with_changes(capacity=(2, 2)),
        BOTH,
        joined(TWO.problem(), (0, 1), 4),
    ),
}


@pytest.mark.parametrize(("pipeline", "allowed", "careless"), CONTROLS.values(), ids=CONTROLS)
def test_a_careless_relaxation_is_beaten(
    pipeline: Pipeline, allowed: AllowedChoices, careless: Problem
) -> None:
    values = [optimum(chosen.problem(), "makespan") for chosen in every_choice(pipeline, allowed)]
    best = min(value for value in values if value is not None)
    claimed = optimum(careless, "makespan")
    assert claimed is None or claimed > best
    honest = optimum(relaxation(pipeline, allowed), "makespan")
    assert honest is not None
    assert honest <= best


def test_a_pair_bounds_what_both_hold() -> None:
    # A microbatch holds 2 on either rank, and together there is room for 5: so for one at a time,
    # 1 + 1 + 2 + 2 ticks each. With room for two they overlap: 2 * 3 on a rank, and 1 + 2 beside.
    found = relaxation(TWO.with_changes(capacity=(2, 3)), EVICT)
    assert [store.capacity for store in found.stores] == [5, None]
    assert optimum(found, "makespan") == 2 * 6
    assert optimum(joined(found, (0,), 8), "makespan") == 2 * 3 + 3
