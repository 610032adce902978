"""BPipe's planner: what it chooses as printed, held against schedules that are built."""

from __future__ import annotations

import pytest

from bubbleproof.papers.bpipe.balanced_runs import balanced_run
from bubbleproof.papers.planning.joint_plan import with_paper
from bubbleproof.papers.planning.paper_choice import (
    AcceptedSchedule,
    PaperChoice,
    PaperInput,
    known_of,
)
from bubbleproof.papers.planning.planner_list import paper_choice
from bubbleproof.planners import Plan, plan
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify import check_whole
from proofs_tests.planners.first_looks import FIRST_LOOKS
from proofs_tests.planners.found_plans import found_plan
from proofs_tests.sized import sized

STATIC = 100
RANKS = range(8)


def space(capacity: int | None, *, transfer: int = 2, first: int = STATIC) -> PlanSpace:
    """Eight ranks, 16 microbatches of 2 + 4 ticks and 10 units, of which 1 stays recomputed."""
    pipeline = Pipeline(
        num_ranks=8,
        num_microbatches=16,
        forward=2,
        backward=4,
        activation=10,
        capacity=capacity,
        static=(first, *[STATIC] * 7),
    )
    allowed = AllowedChoices(
        evict=AllowedEvictions(pairs=tuple((r, 7 - r) for r in RANKS), duration=transfer),
        recompute=AllowedRecompute(stages=tuple(RANKS), kept=1),
    )
    return PlanSpace(pipeline=pipeline, allowed=allowed)


def chosen(given: PlanSpace, **table: int) -> PaperChoice:
    return paper_choice("bpipe", PaperInput(space=given, table=table))


def told(found: PaperChoice) -> tuple[object, object, object]:
    return found.choice["schedule"], found.choice["recompute"], found.choice["memory"]


def test_less_memory_moves_activations_and_then_recomputes() -> None:
    # W_0 = 100. 1F1B saves 8 of 10 units; mu_opt = ceil(10/2) = 5 of 10; recomputed 8 of 1. A step:
    # (16 + 8 - 1) (2 + 4) = 138 ticks, and 2 more each recomputed: 184.
    for capacity, wanted, ticks in (
        (180, ("1f1b", False, 180), 138),
        (179, ("bpipe", False, 150), 138),
        (150, ("bpipe", False, 150), 138),
        (149, ("1f1b", True, 108), 184),
        (118, ("1f1b", True, 108), 184),
    ):
        found = chosen(space(capacity))
        assert told(found) == wanted, capacity
        assert found.choice["predicted"] == ticks
        assert found.executable
        assert found.run is not None
        assert found.value == found.run.measured.makespan
        assert max(found.run.measured.peak_memory) <= capacity
        assert check_whole(found.run.pipeline.problem(), found.run.schedule).ok
        # Recomputation begins while the gradient is on its way, so less than counted is possible.
        assert found.value == ticks if wanted[0] == "bpipe" else found.value <= ticks
    assert told(chosen(space(107)))[0] is None


def test_a_transfer_must_hide_behind_computation() -> None:
    # Two transfers within 2 + 4 ticks: 3 each. With 4 BPipe is out, and 1F1B recomputes.
    assert told(chosen(space(150, transfer=3)))[0] == "bpipe"
    found = chosen(space(150, transfer=4))
    assert told(found)[:2] == ("1f1b", True)
    assert "a transfer takes 4 ticks, and only 3 hide behind computation" in found.note


def test_what_the_first_rank_holds_beside_its_layers_is_missing_on_paper() -> None:
    found = chosen(space(150, first=105))
    assert told(found) == ("bpipe", False, 150)
    assert not found.executable
    assert (
        "bpipe as printed does not run: memory of rank 0 holds 155 activations of 150" in found.note
    )
    assert "shortest of these that runs: 1f1b, recomputed" in found.note
    assert found.value is not None
    assert found.value > 138


def test_pairs_on_two_nodes_transfer_at_their_own_pace() -> None:
    # t = 8 of 8 GPUs: every pair is on two nodes.
    assert told(chosen(space(150), tensor=8))[:2] == ("1f1b", True)
    assert "whose link the table does not tell" in chosen(space(150), tensor=8).note
    slow = chosen(space(150), tensor=8, transfer_between_nodes=4)
    assert "a transfer takes 4 ticks" in slow.note
    fast = chosen(space(150), tensor=8, transfer_between_nodes=3)
    assert told(fast)[0] == "bpipe"
    assert fast.choice["nodes"] == [0, 2, 4, 6, 7, 5, 3, 1]
    assert fast.run is not None
    # Its transfers take other ticks than the file's, so it is a schedule of no candidate.
    assert {moved.duration for moved in fast.run.pipeline.choices.evictions} == {3}
    assert (fast.run.candidate, known_of(fast)) == (None, None)
    # Four GPUs of 8: two stages share a node, and stages 0 and 7 are on the first.
    assert chosen(space(150), tensor=4).choice["nodes"] == [0, 1, 2, 3, 3, 2, 1, 0]


def test_some_pairs_alone_may_move() -> None:
    for some in ((0,), (0, 1), (1, 2), (0, 1, 2)):
        pipeline = space(None).pipeline
        run = balanced_run(pipeline, dict.fromkeys(some, 2), None)
        assert isinstance(run, AcceptedSchedule)
        assert {moved.source for moved in run.pipeline.choices.evictions} == {*some}
        # A rank that moves holds mu_opt = 5, another one p - s.
        held = [5 if s in some else 8 - s for s in range(4)]
        peaks = [peak // 10 for peak in run.measured.peak_activations[:4]]
        assert peaks == held
        assert run.measured.makespan == 138


def test_the_choice_enters_the_search_and_the_joint_plan_is_never_worse() -> None:
    for capacity in sized((180, 150, 140, 118), full=range(110, 181)):
        given = space(capacity)
        found = chosen(given)
        start = known_of(found)
        planned = plan(
            given,
            FIRST_LOOKS,
            known=() if start is None else (start,),
        )
        best = with_paper(planned, found)
        if found.value is not None:
            assert isinstance(planned, Plan)
            assert found_plan(best).value <= found.value
        # A candidate that the search began with needs no place beside the shapes.
        assert start is None or best.space.others == ()


def test_ranks_that_evict_elsewhere_are_refused() -> None:
    given = space(150)
    allowed = AllowedChoices(evict=AllowedEvictions(pairs=((0, 1), (1, 2), (2, 3)), duration=2))
    other = PlanSpace(pipeline=given.pipeline, allowed=allowed)
    with pytest.raises(ValueError, match="moves activations of rank 0 to rank 7, the file's to 1"):
        chosen(other)
