"""The bound of all cuts that a plan does not look at: held against every one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import pytest

from bubbleproof.planners.looks import quick_claim
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import stage_ranks
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER, CutBounds
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts, cuts_below
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut, LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped
from bubbleproof.verify.candidates.bundle import BundleVerdict
from bubbleproof.verify.candidates.other_cuts import least_of_others, with_others
from proofs_tests.planners.unlike_layers import drawn, every_cut

PROVED = BundleVerdict(refusals=(), bound=NEVER, believed=(), num_proved=1, num_not_legal=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCuts(NamedCuts):
    """A rule that looks at these cuts, and claims to mean all others too."""

    listed: tuple[Cut, ...] = ()

    def cuts(self, *_: object) -> tuple[Cut, ...]:
        return self.listed


def shown(space: PlanSpace, cut: Cut, backward: str) -> int:
    """What the claims about one rank show of a cut, by its pipeline's tasks and memory events."""
    one = Candidate(
        chunks=space.chunks[0], placement="loop", backward=backward, slices=1, layers=cut
    )
    try:
        claim = quick_claim(shaped(space, one))
    except NotLegalError:
        return NEVER
    return 0 if claim is None else claim.bound


def number_below(bounds: CutBounds, bound: int) -> int:
    """How many cuts do not show the bound."""
    return bounds.ways(bound)[1][0][0]


def listing(space: PlanSpace, *cuts: Cut) -> PlanSpace:
    """The space whose rule looks at these cuts alone."""
    assert space.layers is not None
    return replace(
        space, layers=replace(space.layers, rule=ListedCuts(kinds=("any",), listed=cuts))
    )


@pytest.mark.parametrize("backward", ["whole", "split"])
@pytest.mark.parametrize("seed", range(40))
def test_the_others_take_what_one_rank_of_each_shows(seed: int, backward: str) -> None:
    """The bound is a rank's work, or no room, of every cut that is left: no more, and no less
    where each rank has one stage and no memory is short."""
    space = replace(drawn(seed), backward=(backward,))
    layers, ranks = space.layers, space.pipeline.num_ranks
    assert layers is not None
    cuts = list(every_cut(layers, ranks * space.chunks[0]))
    of = {cut: shown(space, cut, backward) for cut in cuts}
    best = min(cuts, key=lambda cut: of[cut])
    for listed in ((best,), (max(cuts, key=lambda cut: of[cut]),)):
        left = min((of[cut] for cut in cuts if cut not in listed), default=NEVER)
        found = least_of_others(listing(space, *listed))
        assert found <= left
        if space.chunks == (1,) and space.pipeline.capacity is None:
            assert found == left


@pytest.mark.parametrize("seed", range(20))
def test_cuts_below_a_bound_are_those_of_which_no_rank_shows_it(seed: int) -> None:
    space = replace(drawn(seed), chunks=(1,))
    layers, pipeline = space.layers, space.pipeline.with_changes(capacity=None)
    assert layers is not None
    space = replace(space, pipeline=pipeline)
    of = {cut: shown(space, cut, "whole") for cut in every_cut(layers, pipeline.num_ranks)}
    bounds = CutBounds(
        layers=layers,
        stage_ranks=stage_ranks("loop", num_ranks=pipeline.num_ranks, num_chunks=1),
        microbatches=pipeline.num_microbatches,
    )
    for bound in sorted(set(of.values())):
        expected = sorted(cut for cut in of if of[cut] < bound)
        assert sorted(cuts_below(bounds, bound)) == expected
        assert number_below(bounds, bound) == len(expected)


def test_cuts_of_126_layers_on_16_ranks_are_counted_not_made() -> None:
    """Two kinds of layers, and cuts beyond any list: that the listed ones show least is known."""
    light, heavy = LayerPart(forward=10, backward=20), LayerPart(forward=13, backward=26)
    layers = Layers(
        runs=((light, 3), (heavy, 123)),
        rule=NamedCuts(kinds=("any",)),
        embedding=LayerPart(static=1),
        head=LayerPart(forward=15, backward=30),
    )
    space = PlanSpace(pipeline=Pipeline(num_ranks=16, num_microbatches=32), layers=layers)
    bounds = CutBounds(layers=layers, stage_ranks=range(16), microbatches=32)
    # Stage 0 and stage 15 may be empty: 126 - 14 spare layers on 16 stages, C(112 + 15, 15) cuts.
    assert number_below(bounds, NEVER) == comb(127, 15)
    others, listed = least_of_others(space), space.cuts_of(1, "loop")
    assert all(cut in listed for cut in cuts_below(bounds, others))
    assert number_below(bounds, others) <= len(listed) < number_below(bounds, others + 1)


def test_a_rule_that_leaves_out_the_best_cut_bounds_nothing_beyond_it() -> None:
    """A damaged list: what it does not look at is bounded all the same, and lowers the bound."""
    space = replace(drawn(3), chunks=(1,))
    layers = space.layers
    assert layers is not None
    cuts = list(every_cut(layers, space.pipeline.num_ranks))
    best = min(cuts, key=lambda cut: shown(space, cut, "whole"))
    whole, lacking = listing(space, *cuts), listing(space, *(cut for cut in cuts if cut != best))
    assert least_of_others(whole) == NEVER
    assert with_others(whole, PROVED) == PROVED
    assert with_others(lacking, PROVED).bound == shown(space, best, "whole") < NEVER
    refused = replace(PROVED, refusals=("no",), bound=None)
    assert with_others(lacking, refused) == refused


def test_of_others_nothing_is_known_where_a_choice_changes_the_work() -> None:
    space = listing(replace(drawn(3), chunks=(1,)))
    assert least_of_others(space) > 0
    frozen = space.pipeline.with_changes(frozen_stages=(0,))
    unknown = [
        replace(space, pipeline=frozen),
        replace(space, placements=("bidirectional",)),
        replace(space, backward=((True,) + (False,) * (space.pipeline.num_ranks - 1),)),
    ]
    assert [least_of_others(each) for each in unknown] == [0, 0, 0]


def test_memory_forbids_nothing_where_a_choice_may_save_it() -> None:
    """Of a rank that holds one unit no cut has room; with recomputation to choose it may."""
    space = replace(drawn(3), chunks=(1,))
    tight = listing(replace(space, pipeline=space.pipeline.with_changes(capacity=0)))
    again = AllowedRecompute(stages=tuple(range(space.pipeline.num_ranks)), kept=0)
    free = replace(tight, allowed=AllowedChoices(recompute=again))
    assert least_of_others(tight) == NEVER
    assert least_of_others(free) == least_of_others(listing(space)) < NEVER
