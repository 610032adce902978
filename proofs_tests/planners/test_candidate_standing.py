"""What is kept of the looks at a candidate: bounds that are equal, and the step's end."""

from __future__ import annotations

from bubbleproof.planners.candidate_standing import (
    CandidateStanding,
    legal_candidates,
    legal_pipelines,
)
from bubbleproof.planners.looks import FirstSearch, SearchOutcome, first_look
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify.candidates.rank_claims import RankWork

SPACE = PlanSpace(
    pipeline=Pipeline(
        num_ranks=2, num_microbatches=4, forward=2, backward=4, activation=2, capacity=8
    ),
    chunks=(1, 2, 5),
    placements=("loop", "wave"),
)


def _standing(step_end: int = 0) -> CandidateStanding:
    (first, *_), _ = legal_candidates(SPACE, step_end)
    return first


def test_of_equal_bounds_the_one_that_is_shown_counts_then_the_first() -> None:
    one = _standing()
    quick = one.bound
    assert isinstance(quick.certificate, RankWork)
    one.take(SearchOutcome(bound=quick.bound, certificate=RankWork(rank=0, bound=quick.bound)))
    assert one.bound is quick
    said = SearchOutcome(bound=quick.bound + 1, word="cpsat")
    one.take(said)
    assert one.bound is said
    shown = SearchOutcome(bound=said.bound, certificate=RankWork(rank=0, bound=said.bound))
    one.take(shown)
    one.take(said)
    one.take(SearchOutcome(bound=said.bound - 1, certificate=shown.certificate))
    assert one.bound is shown


def test_a_search_of_one_pipeline_has_the_proofs_of_its_first_looks() -> None:
    """It begins without the quick bounds, which the looks' own would not replace if equal."""
    pipelines, reasons = legal_pipelines(SPACE)
    quick, same = legal_candidates(SPACE)
    # 2 and 4 ticks are not divisible by 5 chunks; a wave of one chunk is a loop.
    assert [len(one.candidates) for one in pipelines] == [2, 1, 1]
    assert len(quick) == 4
    assert [*reasons] == [*same] == [c for c in SPACE.candidates() if c.chunks == 5]
    for one in pipelines:
        seen = first_look(FirstSearch(shaped=one.shaped))
        one.take(seen)
        assert one.bound is seen


def test_a_step_ends_after_its_pipeline() -> None:
    alone, one = _standing(), _standing(step_end=7)
    for each in (alone, one):
        each.take(first_look(FirstSearch(shaped=each.shaped)))
    assert alone.value is not None
    assert (one.value, one.least) == (alone.value + 7, alone.least + 7)
    assert one.proofs[0].bound == alone.least  # of the pipeline, which is what a proof is about
    one.take(SearchOutcome(bound=NEVER))
    assert one.least == NEVER
