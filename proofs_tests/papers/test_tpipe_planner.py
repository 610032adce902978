"""T-Pipe's planner: what it chooses as printed, held against schedules that are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bubbleproof.papers.planning.joint_plan import with_paper
from bubbleproof.papers.planning.paper_choice import PaperChoice, PaperInput, known_of
from bubbleproof.papers.planning.planner_list import paper_choice, planners, require_paper
from bubbleproof.papers.planning.shorter_orders import with_shorter_order
from bubbleproof.planners import PlanOptions, plan
from bubbleproof.planners.known_schedules import is_schedule_of
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.step_time import step_ticks
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import shaped
from bubbleproof.verify import check_whole
from proofs_tests.patience import PATIENCE
from proofs_tests.planners.first_looks import FIRST_LOOKS
from proofs_tests.planners.found_plans import found_plan
from proofs_tests.sized import sized

HOST = {"state": 2, "offload": 2, "step": 2, "upload": 2}


def space(p: int, m: int, capacity: int | None, *, kept: int = 0) -> PlanSpace:
    """A rank takes 4 and 8 ticks and two activations of 1 a chunk, beside 4 units."""
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        forward=4,
        backward=8,
        activation=2,
        static=4,
        capacity=capacity,
    )
    again = AllowedRecompute(stages=tuple(range(p)), kept=2 * kept)
    return PlanSpace(pipeline=pipeline, allowed=AllowedChoices(recompute=again), chunks=(1, 2))


def chosen(p: int, m: int, capacity: int | None, table: Mapping[str, object] = HOST) -> PaperChoice:
    return paper_choice("tpipe", PaperInput(space=space(p, m, capacity), table=table))


def told(found: PaperChoice) -> tuple[bool, bool]:
    return bool(found.choice["recompute"]), bool(found.choice["offload"])


def test_less_memory_recomputes_or_offloads_more() -> None:
    # p = 4: x = ceil(1/6) = 1, y = ceil(5/6) = 1, so the chunks hold at most
    # ceil(2/3 + 1 + 1 + 2) = 5 and ceil(10/6) = 2 activations, with T-Recomp 4/2 + 1 = 3. Static
    # memory is 4 units, 3 with half of the state on the host. Eq. 6: 2 + 2 <= (4-1-1) 8, and 8:
    # 2 <= (4-1-1) 4.
    ways = {12: (False, False), 11: (False, False), 10: (False, True), 9: (True, False)}
    ways |= {7: (True, False), 6: (True, True)}
    for capacity, way in ways.items():
        found = chosen(4, 8, capacity)
        assert (told(found), found.executable) == (way, True), capacity
        # 6 (8+3) units of 2 ticks; 6*4 + 7*7 units, of which the schedule may save some.
        assert found.choice["ticks"] == (132 if not way[0] else 146)
        assert found.value is not None
        assert found.value <= int(str(found.choice["ticks"]))
        assert found.run is not None
        assert max(found.run.measured.peak_memory) <= capacity
        assert check_whole(found.run.pipeline.problem(), found.run.schedule).ok


def test_nothing_is_chosen_where_nothing_fits() -> None:
    found = chosen(4, 8, 5)
    assert (found.value, found.run, found.executable) == (None, None, False)
    assert "no way of running fits" in found.note


def test_offloading_needs_both_conditions_of_appendix_d() -> None:
    # The window of the step is 2 * 8 ticks, that of the upload 2 * 4, for the whole of a rank.
    for table, is_open in (
        ({"state": 2, "offload": 8, "step": 8, "upload": 8}, True),
        ({"state": 2, "offload": 8, "step": 9, "upload": 8}, False),
        ({"state": 2, "offload": 8, "step": 8, "upload": 9}, False),
        ({}, False),
    ):
        found = chosen(4, 8, 10, table)
        assert told(found) == ((False, True) if is_open else (True, False)), table
    assert "Appendix D" in chosen(4, 8, 10, {**HOST, "step": 99}).note


def test_offloading_within_the_windows_costs_no_ticks() -> None:
    """Equations 6 and 8 at their limits, measured; a step that is far too long is not hidden."""
    for p in sized((3, 4, 6, 8), full=range(2, 17)):
        windows = {"offload": 0, "step": 8 * (p - 1 - -(-(2 * p - 3) // 6))}
        windows["upload"] = 4 * (p - 1 - -(-(p - 3) // 6))
        if min(windows.values()) < 0:
            continue
        base = chosen(p, 2 * p, None, {})
        least = int(str(base.choice["memory"])) - 1  # one unit below what T-Pipe counts
        found = chosen(p, 2 * p, least, {"state": 4, **windows})
        assert found.choice["offload"], p
        assert found.value == base.value == 12 * (3 * p - 1)


def test_the_paper_counts_are_held_against_built_schedules() -> None:
    """Where its count of memory fits, the way runs; for odd p it counts one activation more."""
    for p in sized((2, 3, 5, 8), full=range(2, 17)):
        for capacity in range(5, 4 + 2 * p + 3):
            found = chosen(p, 2 * p, capacity, {})
            if found.choice["ticks"] is None:
                # Refused by its own count; the built T-Pipe may need one less where p is odd.
                assert found.run is None or p % 2 == 1
                continue
            assert found.executable, (p, capacity, found.note)
            assert found.run is not None
            assert found.run.measured.makespan <= int(str(found.choice["ticks"]))


def test_what_recomputation_keeps_is_missing_in_the_paper_and_found_when_built() -> None:
    given = PaperInput(space=space(4, 8, 7, kept=1), table={})
    found = paper_choice("tpipe", given)
    assert found.choice["recompute"] == [0, 1, 2, 3]
    assert not found.executable
    assert "not when it is built" in found.note


def test_the_choice_enters_the_search_and_the_joint_plan_is_never_worse() -> None:
    for capacity in (None, 11, 8, 7):
        found = chosen(4, 8, capacity, {})
        start = known_of(found)
        assert start is not None
        given = space(4, 8, capacity)
        planned = found_plan(plan(given, FIRST_LOOKS, known=(start,)))
        assert found.value is not None
        assert planned.value <= found.value
        assert found_plan(with_paper(planned, found)).value == planned.value


def test_what_is_none_of_the_candidates_is_shortened_by_the_solver() -> None:
    """T-Pipe's order leaves gaps in every round where tB is not 2 tF (families.tpipe)."""
    pipeline = Pipeline(
        num_ranks=2, num_microbatches=6, forward=4, backward=2, static=2, activation=2
    )
    space = PlanSpace(pipeline=pipeline, chunks=(1, 2))
    # One unit below what T-Pipe alone counts, and for even p holds: state goes to the host.
    plain = paper_choice("tpipe", PaperInput(space=space, table={"state": 2}))
    least = int(str(plain.choice["memory"])) - 1
    tight = replace(space, pipeline=pipeline.with_changes(capacity=least))
    found = paper_choice("tpipe", PaperInput(space=tight, table={"state": 2}))
    assert found.choice["offload"]
    assert known_of(found) is None
    shorter = with_shorter_order(found, PlanOptions(time_limit=PATIENCE, threads=1))
    assert shorter.value == found.value
    best = shorter.improved
    assert best is not None
    problem = best.pipeline.problem()
    assert found.value is not None
    # Rank 1 waits for the first forward of 2 ticks, works 6 * (4 + 2) = 36, and 1 of rank 0 ends.
    assert 39 <= step_ticks(problem, best.schedule) < found.value
    assert check_whole(problem, best.schedule).ok


def test_a_candidate_is_left_to_the_search() -> None:
    found = chosen(4, 8, None, {})
    assert with_shorter_order(found, PlanOptions(time_limit=PATIENCE)) is found


def test_a_start_of_other_numbers_is_not_taken() -> None:
    """Nor one that recomputes where that is not open; the one it belongs to takes it."""
    start = known_of(chosen(4, 8, 8, {}))
    assert start is not None
    own = space(4, 8, 8)
    assert is_schedule_of(shaped(own, start.candidate), start.found)
    for other in (
        replace(own, pipeline=own.pipeline.with_changes(forward=8)),
        replace(own, allowed=None),
    ):
        assert not is_schedule_of(shaped(other, start.candidate), start.found)


def test_papers_are_known_by_name() -> None:
    assert "tpipe" in planners()
    with pytest.raises(ValueError, match=r"paper must be one of .*tpipe.*did you mean 'tpipe'"):
        require_paper("tpip")


def test_a_rank_that_has_no_halves_is_refused() -> None:
    odd = Pipeline(num_ranks=2, num_microbatches=2, forward=(3, 5), backward=6, activation=7)
    again = AllowedChoices(recompute=AllowedRecompute(stages=(0, 1), kept=1, duration=3))
    told = (
        "forward 3 is not divisible by 2; use forward = 4 and forward = 6 and activation = 8 and "
        "choices.recompute.kept = 2 and choices.recompute.duration = 4"
    )
    with pytest.raises(ValueError, match=told):
        paper_choice("tpipe", PaperInput(space=PlanSpace(pipeline=odd, allowed=again), table={}))
    # What is named works.
    even = odd.with_changes(forward=(4, 6), activation=8)
    again = AllowedChoices(recompute=AllowedRecompute(stages=(0, 1), kept=2, duration=4))
    assert paper_choice(
        "tpipe", PaperInput(space=PlanSpace(pipeline=even, allowed=again), table={})
    ).run


def test_a_state_beyond_the_static_memory_is_told_by_its_key() -> None:
    """A rank's static memory lies with its first chunk: no more than that can be state."""
    small = Pipeline(
        num_ranks=2, num_microbatches=2, forward=2, backward=4, activation=2, static=(10, 9)
    )
    given = PaperInput(space=PlanSpace(pipeline=small), table={"state": 10})
    with pytest.raises(ValueError, match=r"paper\.tpipe\.state must be part of .* use 9 or less"):
        paper_choice("tpipe", given)
    assert paper_choice("tpipe", PaperInput(space=given.space, table={"state": 9})).run is not None
