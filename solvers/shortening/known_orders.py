"""The orders that a search begins from: the published ones, and shorter ones made of some of them.

A family gives the order that its source gives (``theory.families``). Where that leaves gaps at a
shape (a last group that is not full, too few microbatches, backwards longer than the forwards that
it was made for) ``few_microbatches`` looks for a shorter order within the same memory. Its name is
the family's with ``, improved`` behind it, and no family has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bubbleproof.solvers.shortening.few_microbatches import improved_order
from bubbleproof.theory.families import family, published_in_turn
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import with_messages_in_order

NamedOrder = tuple[str, Program]


class Improvement(NamedTuple):
    """How a family's order is shortened."""

    repeats_by_ranks: bool = False  # every p microbatches, not with every one
    is_listed: bool = True  # by list schedules as well as by slides
    is_few: bool = False  # below 2p-1 microbatches alone: from there on it leaves no gap


IMPROVED: dict[str, Improvement] = {
    "hanayo": Improvement(repeats_by_ranks=True),
    "chimera": Improvement(repeats_by_ranks=True),
    "zb-h2": Improvement(is_listed=False, is_few=True),
    "zb-v": Improvement(is_few=True),
    "v-half": Improvement(is_listed=False),
    "v-min": Improvement(is_listed=False),
}


def improved(name: str, pipeline: Pipeline) -> Program | None:
    """The family's order shortened; None where nothing shorter within its memory is found.

    Parameters
    ----------
    name
        A family's.
    pipeline
        One that the family takes.
    """
    p, m = pipeline.num_ranks, pipeline.num_microbatches
    known = IMPROVED.get(name)
    if known is None or (known.is_few and m >= 2 * p - 1):
        return None
    published = family(name).program
    period = p if known.repeats_by_ranks else 1
    found = improved_order(pipeline, published, period, is_listed=known.is_listed)
    return None if list(found.actions) == list(published(pipeline).actions) else found


def known_in_turn(pipeline: Pipeline, only: Sequence[str] = ()) -> Iterator[NamedOrder]:
    """The published orders that take the pipeline, then the improved ones, each when asked for.

    Parameters
    ----------
    only
        Names of families: their published orders alone. All, and improved ones, where it is empty.

    Returns
    -------
    Iterator[NamedOrder]
        The order's name and its program of the pipeline, messages in order too.
    """
    names = []
    for name, program in published_in_turn(pipeline, only):
        names.append(name)
        yield name, program
    problem = pipeline.problem()
    for name in () if only else names:
        if (shorter := improved(name, pipeline)) is not None:
            yield f"{name}, improved", with_messages_in_order(problem, shorter)


def known_orders(pipeline: Pipeline) -> list[NamedOrder]:
    """The same, all of them."""
    return list(known_in_turn(pipeline))
