"""Rule 9 for a plan whose layers may be cut in any way: the bound of all the other cuts.

A space then has candidates for some cuts of each shape, which its bundle bounds. All others are
counted here, as far as no rank shows by itself that they take longer (``shapes.cut_bounds``):
the bound of a shape's others is the greatest that all of them show. It stays true whatever a
candidate leaves open: a choice adds work, and takes away none. What it saves of memory is not
known, so that memory forbids a cut only where nothing is open.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from itertools import accumulate

from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER, CutBounds
from bubbleproof.theory.pipelines.shapes.plan_space import SPLIT, WHOLE, Candidate, PlanSpace
from bubbleproof.verify.candidates.bundle import BundleVerdict


def least_of_others(space: PlanSpace) -> int:
    """Ticks that every cut takes of which the space has no candidate: ``NEVER`` where it has all,
    or others are not meant; 0 where nothing is known of them."""
    if space.layers is None or not space.layers.rule.is_any:
        return NEVER
    shapes = {replace(one, layers=None) for one in space.candidates() if not one.beside}
    return min(_least(space, shape) for shape in shapes)


def _least(space: PlanSpace, shape: Candidate) -> int:
    given, layers = space.pipeline, space.layers
    is_known = isinstance(shape.placement, str) and shape.backward in (WHOLE, SPLIT)
    if layers is None or not is_known or shape.placement == BIDIRECTIONAL or given.choices.added:
        return 0
    bounds = CutBounds(
        layers=layers,
        stage_ranks=space.ranks_of(shape.chunks, shape.placement),
        microbatches=given.num_microbatches,
        slices=shape.slices,
        is_split=shape.backward == SPLIT,
        capacity=() if space.allowed else given.capacities,
    )
    cuts = space.cuts_of(shape.chunks, shape.placement)
    listed = [[*accumulate(cut, initial=0)] for cut in cuts if cut]

    def is_above(bound: int) -> bool:
        ends, ways = bounds.ways(1 + bound)
        stages = [zip(ends, marks, marks[1:], strict=False) for marks in listed]
        below = [all(end in rows[first] for rows, first, end in each) for each in stages]
        return ways[0][0] > sum(below)

    return bisect_left(range(NEVER), True, key=is_above) if bounds.is_counted else bounds.mean()


def with_others(space: PlanSpace, proved: BundleVerdict) -> BundleVerdict:
    """What a bundle shows of all the space, the cuts included that are in no candidate."""
    bound = proved.bound
    return proved if bound is None else replace(proved, bound=min(bound, least_of_others(space)))
