"""The orders that a search begins from: the published ones, and shorter ones made of some of them.

A family gives the order that its source gives (``theory.families``). Where that leaves gaps while
it fills and drains, ``slides`` looks for a shorter order within the same memory. Its name is the
family's with ``, improved`` behind it, and no family has it. Where a whole order is to be made
anew, as for Hanayo's rounds, two runs of the search's own list scheduling (``solvers.lists``) are
there at once, called ``, listed``, for those who look no further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.lists.greedy import greedy_programs
from bubbleproof.solvers.shortening.slides import slid_order
from bubbleproof.theory.families import family, published_in_turn
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import with_messages_in_order

NamedOrder = tuple[str, Program]

# What slides shorten: V-Min by more than windows and an engine do in a minute.
IMPROVED = ("chimera", "zb-h2", "v-half", "v-min")
MOST_TASKS = 20_000  # about a second of slides
LISTED, MOST_LISTED = ("hanayo", "zb-v"), 4_000  # up to so many tasks, a quarter of a second each
RUNS = 2  # of list scheduling: with long backwards the second is shorter, else the first


def improved(name: str, pipeline: Pipeline) -> Program | None:
    """The family's order shortened; None where nothing shorter within its memory is found.

    Parameters
    ----------
    name
        A family's.
    pipeline
        One that the family takes.
    """
    if name not in IMPROVED:
        return None
    shape = Pipeline(
        num_ranks=pipeline.num_ranks,
        num_microbatches=pipeline.num_microbatches,
        num_chunks=pipeline.num_chunks,
        placement=pipeline.placement,
        split_backward=pipeline.split_backward is True,
    )
    return _slid(name, shape)


@lru_cache(maxsize=256)  # one shape is often wanted with several durations and sizes
def _slid(name: str, shape: Pipeline) -> Program | None:
    tasks = shape.num_stages * shape.num_microbatches * (3 if shape.split_backward else 2)
    return slid_order(shape, family(name).program(shape)) if tasks <= MOST_TASKS else None


def known_in_turn(pipeline: Pipeline, only: Sequence[str] = ()) -> Iterator[NamedOrder]:
    """The published orders that take the pipeline, then ours, each when it is asked for.

    Parameters
    ----------
    only
        Names of families: their published orders alone. All, and ours, where it is empty.

    Returns
    -------
    Iterator[NamedOrder]
        The order's name and its program of the pipeline, messages in order too.
    """
    names = []
    for name, program in published_and_improved(pipeline, only):
        names.append(name)
        yield name, program
    problem = pipeline.problem()
    for name in () if only else LISTED:
        if name in names and problem.num_tasks <= MOST_LISTED:
            yield from ((f"{name}, listed", order) for order in _listed(problem))


def published_and_improved(pipeline: Pipeline, only: Sequence[str] = ()) -> Iterator[NamedOrder]:
    """``known_in_turn`` less what the search's own list scheduling finds.

    Parameters
    ----------
    only
        Names of families: their published orders alone.
    """
    names = []
    for name, program in published_in_turn(pipeline, only):
        names.append(name)
        yield name, program
    problem = pipeline.problem()
    for name in () if only else names:
        if (shorter := improved(name, pipeline)) is not None:
            yield f"{name}, improved", with_messages_in_order(problem, shorter)


def _listed(problem: Problem) -> Iterator[Program]:
    bounds, left = lower_bounds(problem), iter(range(RUNS))
    if not bounds.is_cyclic:
        yield from greedy_programs(problem, bounds, lambda: next(left, None) is None)


def known_orders(pipeline: Pipeline) -> list[NamedOrder]:
    """All of these, for a search that has list scheduling of its own."""
    return list(published_and_improved(pipeline))
