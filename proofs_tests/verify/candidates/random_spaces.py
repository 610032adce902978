"""Small random plan spaces, and the least makespan of each candidate over all that is open in it.

Much of a space takes no time or no room: durations, activations, weights, messages, latencies,
transfers and what is kept are often 0. The optimum is that of ``solvers.exhaustive``, which knows
the columns of a problem and nothing else, over every choice that ``planners.every_choice`` lists.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from random import Random

from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, ShapedPipeline, shaped
from bubbleproof.theory.pipelines.sharding import Sharding
from proofs_tests.planners.every_choice import every_choice
from proofs_tests.solvers.exhaustive import Exhaustive, TooMuchWork
from proofs_tests.verify.candidates.random_open import random_allowed
from proofs_tests.zeros import zero_or, zeros_or

MOST_TASKS = 12  # of a candidate without choices
MOST_CHOICES = 16  # of a candidate
MOST_STATES = 1_500  # of a walk
PLACEMENTS = (("loop",), ("loop",), ("wave", "loop"), ("loop", "bidirectional"))
BACKWARDS = (("whole",), ("whole",), ("whole", "split"), ("split",), ("mixed", "whole"))
SHAPES = tuple(  # ranks, microbatches, chunks, slices
    (p, m, chunks, slices)
    for p in (1, 2, 3)
    for m in (1, 2, 3)
    for chunks in ((1,), (2,), (1, 2))
    for slices in ((1,), (1, 2))
    if 2 * p * m * max(chunks) * max(slices) <= MOST_TASKS
)


def random_space(rng: Random) -> PlanSpace:
    """A space of up to a dozen candidates; where it is sliced nothing is open in it."""
    p, m, chunks, slices = rng.choice(SHAPES)
    pieces = max(chunks) * max(slices)  # whatever is divided has to divide

    def row(most: int, times: int = pieces) -> tuple[int, ...]:
        return tuple(times * each for each in zeros_or(rng, 1, most, p))

    halves, activation, static = (row(2), row(2)), row(3), row(2, 1)
    whole = tuple(map(sum, zip(*halves, strict=True)))
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        forward=row(2),
        backward=whole if rng.random() < 0.5 else row(3),
        input_backward=halves[0],
        weight_backward=halves[1],
        activation=activation,
        released_at_input=tuple(rng.choice((0, 0, held)) for held in activation),
        weight_workspace=rng.choice((0, 0, 0, pieces)),
        static=static,
        capacity=tuple(
            None if rng.random() < 0.1 else weights + rng.randint(0, 4 * pieces)
            for weights in static
        ),
        latency=zero_or(rng, 1, 2),
        message=pieces * zero_or(rng, 1, 2),
        bandwidth=rng.choice((None, None, 1, 2)),
        duplex=rng.choice(("half", "full")),
    )
    space = PlanSpace(
        pipeline=pipeline,
        allowed=random_allowed(rng, pipeline, pieces)
        if slices == (1,) and rng.random() < 0.6
        else None,
        chunks=chunks,
        placements=rng.choice(PLACEMENTS) if p > 1 else ("loop",),
        backward=rng.choice(BACKWARDS if p > 1 else BACKWARDS[:-1]),
        slices=slices,
    )
    return with_other(rng, space) if rng.random() < 0.3 else space


def with_other(rng: Random, space: PlanSpace) -> PlanSpace:
    """The space with one choice of a candidate beside its shapes, where one has whole samples."""
    whole = [found for found in legal(space).values() if found.pipeline.num_slices == 1]
    if not whole:
        return space
    found = rng.choice(whole)
    other = rng.choice([*islice(every_choice(found.pipeline, found.allowed), MOST_CHOICES)])
    if not other.is_bidirectional and rng.random() < 0.3:
        gather, reduce = rng.randint(0, 1), rng.randint(0, 1)
        other = other.with_changes(sharding=Sharding(zero=1, gather=gather, reduce=reduce))
    return replace(space, others=(("other", other),))


def legal(space: PlanSpace) -> dict[Candidate, ShapedPipeline]:
    """The candidates that have a meaning, as pipelines."""
    found = {}
    for candidate in space.candidates():
        with suppress(NotLegalError):
            found[candidate] = shaped(space, candidate)
    return found


def optimum(found: ShapedPipeline) -> int | None:
    """The least makespan of any schedule of any choice; None where there is no schedule.

    Raises ``TooMuchWork`` where there is more to walk through than is sensible.
    """
    if found.allowed is None:
        choices = [found.pipeline]
    else:
        choices = [*islice(every_choice(found.pipeline, found.allowed), MOST_CHOICES + 1)]
    if len(choices) > MOST_CHOICES:
        raise TooMuchWork
    each = [Exhaustive(chosen.problem(), MOST_STATES).optimum() for chosen in choices]
    return min((value for value in each if value is not None), default=None)
