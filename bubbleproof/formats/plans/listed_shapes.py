"""A plan's table as a space of shapes, and the numbers of stages that have layers alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from bubbleproof.formats.errors import UnusableInput, quoted, values_at
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.pipeline_statement import TICKS
from bubbleproof.theory.pipelines.shapes.few_candidates import few
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import Backward, PlanSpace

if TYPE_CHECKING:  # what has been read is all that is asked for here
    from bubbleproof.formats.layouts.plan_layout import PlanLayout

ListedItem = TypeVar("ListedItem")


def stage_values(layers: Layers, num_stages: int) -> dict[str, tuple[int, ...]]:
    """The fields of a ``Pipeline`` whose stages have nearly as many layers each."""
    cut = nearest_cut(layers=layers.number, stages=num_stages)
    parts = layers.stages(cut)
    found = {name: tuple(getattr(part, name) for part in parts) for name in TICKS}
    return {
        **found,
        "activation": tuple(part.activation for part in parts),
        "released_at_input": tuple(part.released for part in parts),
        "static": tuple(part.static for part in parts),
    }


def nearest_cut(*, layers: int, stages: int) -> Cut:
    """The even cut, or where there is none, one whose stages differ by one layer.

    >>> nearest_cut(layers=10, stages=4)
    (2, 3, 2, 3)
    """
    marks = [layers * stage // stages for stage in range(stages + 1)]
    return tuple(after - before for before, after in pairwise(marks))


def listed_space(
    given: PlanLayout,
    plain: Pipeline,
    own: Sequence[Backward],
    allowed: AllowedChoices | None,
    layers: Layers | None,
) -> PlanSpace:
    """The space of the shapes that a table lists; ``own`` where it lists no backwards.

    Raises ``UnusableInput`` for lists that are empty or too long.
    """
    backward = own if given.backward is None else [listed(value) for value in given.backward]
    with values_at("plan"):
        space = PlanSpace(
            pipeline=plain,
            allowed=allowed,
            chunks=tuple(given.chunks),
            placements=tuple(listed(value) for value in given.placements),
            backward=tuple(backward),
            slices=tuple(given.slices),
            layers=layers,
        )
        return few(space)


def refuse_strangers(given: PlanLayout, num_ranks: int) -> None:
    """Raise ``UnusableInput`` where durations spread on ranks that the pipeline does not have."""
    jitter = given.jitter
    named = {"straggler": (jitter.straggler or ())[:1], "slow_link": (jitter.slow_link or ())[:2]}
    for name, ranks in named.items():
        for rank in ranks:
            if rank >= num_ranks:
                expected = f"a rank of 0 to {num_ranks - 1}"
                raise UnusableInput(f"plan.jitter.{name}", expected, quoted(rank))


def listed(value: str | list[ListedItem]) -> str | tuple[ListedItem, ...]:
    """A name as it is, a list as a tuple."""
    return value if isinstance(value, str) else tuple(value)
