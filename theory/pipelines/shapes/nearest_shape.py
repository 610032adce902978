"""What to change of a plan of which no candidate is legal: the nearest lists that leave one.

One list is changed where that does, chunks first, then slices, then placements; else all three.
Where the layers divide by nothing, the nearest number of them that does, or the balanced cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bubbleproof.theory.pipelines.shapes.cut_lists import BALANCED, NamedCuts
from bubbleproof.theory.pipelines.shapes.layer_cuts import Layers
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped

MOST = 64  # chunks or slices that are tried
ShapeChange = tuple[str, dict[str, Any]]


def nearest_change(space: PlanSpace) -> str | None:
    """The change as a file tells it, such as ``chunks = [2]``; None where nothing was found."""
    found = next((told for told, fields in _of_lists(space) if _leaves_one(space, fields)), None)
    if found is not None or space.layers is None:
        return found
    return (
        " or ".join(t for t, f in _of_layers(space, space.layers) if _leaves_one(space, f)) or None
    )


def _of_lists(space: PlanSpace) -> Iterator[ShapeChange]:
    loop = {"placements": ("loop",)}
    for name in ("chunks", "slices"):
        for number in _around(min(getattr(space, name))):
            yield f"{name} = [{number}]", {name: (number,)}
    yield 'placements = ["loop"]', loop
    for number in _around(min(space.chunks)):
        told = f'chunks = [{number}], slices = [1] and placements = ["loop"]'
        yield told, {"chunks": (number,), "slices": (1,), **loop}


def _around(wanted: int) -> list[int]:
    return sorted(range(1, MOST + 1), key=lambda each: abs(each - wanted))


def _of_layers(space: PlanSpace, given: Layers) -> Iterator[ShapeChange]:
    stages = space.pipeline.num_ranks * min(space.chunks)
    number = max(1, round(given.number / stages)) * stages
    if len(given.runs) == 1:
        alike = ((given.runs[0][0], number),)
        yield f"layers.number = {number}", {"layers": replace(given, runs=alike)}
    yield (
        f'layers.cuts = ["{BALANCED}"]',
        {"layers": replace(given, rule=NamedCuts(kinds=(BALANCED,)))},
    )


def _leaves_one(space: PlanSpace, fields: dict[str, Any]) -> bool:
    try:
        changed = replace(space, **fields)
    except ValueError:  # more candidates than are gone through
        return False
    return any(_is_legal(changed, each) for each in changed.candidates() if not each.beside)


def _is_legal(space: PlanSpace, candidate: Candidate) -> bool:
    try:
        shaped(space, candidate)
    except NotLegalError:
        return False
    return True
