"""MEPipe's planner: the variant that it chooses as printed, held against every variant built."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from bubbleproof.papers.planning.joint_plan import with_paper
from bubbleproof.papers.planning.paper_choice import PaperChoice, PaperInput, known_of
from bubbleproof.papers.planning.planner_list import paper_choice
from bubbleproof.planners import plan
from bubbleproof.theory.families import make_parameters
from bubbleproof.theory.families.printed import PrintedSVPP
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify import check_whole
from proofs_tests.planners.first_looks import FIRST_LOOKS
from proofs_tests.planners.found_plans import found_plan
from proofs_tests.sized import sized

CHUNKS, SLICES = (1, 2), (1, 2, 4)


def space(
    capacity: int | None,
    *,
    chunks: tuple[int, ...] = CHUNKS,
    slices: tuple[int, ...] = SLICES,
    backward: tuple[str, ...] = ("whole",),
    first: int = 100,
) -> PlanSpace:
    """Four ranks, 8 samples of 240 + 240 ticks and 960 units on each rank."""
    pipeline = Pipeline(
        num_ranks=4,
        num_microbatches=8,
        forward=240,
        backward=240,
        input_backward=120,
        weight_backward=120,
        activation=960,
        static=(first, 100, 100, 100),
        capacity=capacity,
    )
    return PlanSpace(pipeline=pipeline, chunks=chunks, slices=slices, backward=backward)


def chosen(given: PlanSpace, **table: int) -> PaperChoice:
    return paper_choice("mepipe", PaperInput(space=given, table=table))


def told(found: PaperChoice) -> tuple[object, object, object]:
    return found.choice["chunks"], found.choice["slices"], found.choice["f"]


def test_the_memory_of_section_4_5_bounds_f() -> None:
    # v = 1, s = 2: an action keeps 480. Table 3's f is max(4,2) + min(4,2) - 1 = 5, the least is 2.
    for capacity, forwards in ((2500, 5), (2499, 4), (2020, 4), (1540, 3), (1060, 2)):
        found = chosen(space(capacity, chunks=(1,), slices=(2,)))
        assert told(found) == (1, 2, forwards), capacity
        assert found.executable
        assert found.run is not None
        assert max(found.run.measured.peak_memory) <= capacity
        assert check_whole(found.run.pipeline.problem(), found.run.schedule).ok
    nothing = chosen(space(1059, chunks=(1,), slices=(2,)))
    assert (told(nothing), nothing.run) == ((None, None, None), None)
    assert "needs room for 2 forwards" in nothing.note
    # 480 units of temporary memory take the room of one forward.
    assert told(chosen(space(2500, chunks=(1,), slices=(2,)), temporary=480)) == (1, 2, 4)


def idle_of_generator(v: int, s: int, f: int) -> Fraction:
    """The generator's idle ratio at equal ticks, from its family by parameters."""
    at = {"p": 4, "m": 8, "v": v, "s": s, "f": f, "tF": 1, "tB": 1}
    member = PrintedSVPP().member(make_parameters(at))
    return measure(member.problem, member.schedule).idle_ratio


def counted_by_table_3(v: int, s: int) -> Fraction:
    """(p-1)/(nsv+p-1) for n = 8 >= p = 4."""
    return Fraction(3, 8 * s * v + 3)


def test_of_all_variants_that_fit_the_least_bubble_is_chosen() -> None:
    for capacity in sized((1060, 1300, 1540, 2020, 3000), full=range(580, 4000, 60)):
        found = chosen(space(capacity))
        bubbles = {}
        for v, s in product(CHUNKS, SLICES):
            most = v * max(4, s) + min(4, s) - 1
            room = (capacity - 100) * v * s // 960
            for f in range(v * s, min(most, room) + 1):
                is_counted = f == most
                ratio = counted_by_table_3(v, s) if is_counted else idle_of_generator(v, s, f)
                bubbles[v, s, f] = ratio
        if not bubbles:
            assert told(found) == (None, None, None)
            continue
        assert Fraction(str(found.choice["bubble"])) == min(bubbles.values()), capacity
        assert bubbles[told(found)] == min(bubbles.values())  # type: ignore[index]  # numbers


def test_an_order_with_more_bubble_than_counted_gives_way_to_ours() -> None:
    # p = 3, m = 1, v = 2, s = 4: Table 3 counts 8 + 2 slots of 2 ticks, the generator takes 21.
    pipeline = Pipeline(num_ranks=3, num_microbatches=1, forward=8, backward=8, activation=8)
    found = chosen(PlanSpace(pipeline=pipeline, chunks=(2,), slices=(4,)))
    assert not found.executable
    assert "section 4.3's order takes 21 ticks, Table 3 counts 20" in found.note
    assert found.value == 20


def test_each_ranks_own_room_bounds_f() -> None:
    # 100 + 5 * 480 fit in 2500. The first rank has 50 more, and room for (2500 - 150) // 480 = 4.
    found = chosen(space(2500, chunks=(1,), slices=(2,), first=150))
    assert told(found) == (1, 2, 4)
    assert found.executable
    assert found.run is not None
    assert found.run.measured.peak_memory[0] == 150 + 4 * 480
    # The last rank holds two slices in any SVPP: 1540 there leave room for two, and f stays 5.
    last = space(2500, chunks=(1,), slices=(2,))
    pipeline = last.pipeline.with_changes(static=(100, 100, 100, 1540))
    assert told(chosen(replace(last, pipeline=pipeline))) == (1, 2, 5)
    # 1541 leave room for one, and f must be two: nothing runs, and the note says what it lacks.
    tight = replace(last, pipeline=last.pipeline.with_changes(static=(100, 100, 100, 1541)))
    nothing = chosen(tight)
    assert nothing.run is None
    assert "section 4.2" in nothing.note
    assert "memory of rank 3 would hold 2,501 activations of 2,500" in nothing.note


def test_an_f_that_only_building_refuses_gives_way_to_the_next() -> None:
    """With weight gradients apart a later rank holds as many as the first."""
    given = space(4000, chunks=(1,), slices=(2,), backward=("split",))
    # The first rank has room for (4000 - 100) // 480 = 8, the last one for (4000 - 1500) // 480.
    uneven = replace(given, pipeline=given.pipeline.with_changes(static=(100, 100, 100, 1500)))
    found = chosen(uneven)
    assert found.executable
    assert found.run is not None
    assert max(found.run.measured.peak_memory) <= 4000
    forwards = found.choice["f"]
    assert isinstance(forwards, int)
    assert 5 <= forwards <= 8
    if forwards < 8:
        assert f"f={forwards} is the largest that does" in found.note


def test_weight_gradients_run_apart_where_the_file_lists_split_backwards() -> None:
    plain = chosen(space(4000, chunks=(1,), slices=(2,)))
    split = chosen(space(4000, chunks=(1,), slices=(2,), backward=("whole", "split")))
    assert (plain.note, split.note) == ("", "")
    assert (plain.choice["weights_apart"], split.choice["weights_apart"]) == (False, True)
    # Both count (p-1)/(nsv+p-1) = 3/19 idle; what the memory has room for is (4000-100)/480 = 8.
    assert plain.choice["bubble"] == split.choice["bubble"] == "3/19"
    assert (told(plain)[2], told(split)[2]) == (5, 8)
    assert plain.value is not None
    assert split.value is not None
    assert split.value < plain.value == 19 * 240
    # Listed alone they are found as well.
    alone = chosen(space(4000, chunks=(1,), slices=(2,), backward=("split",)))
    assert (told(alone), alone.value) == (told(split), split.value)


def test_the_choice_enters_the_search_and_the_joint_plan_is_never_worse() -> None:
    for capacity in sized((1060,), full=range(580, 4000, 60)):
        given = space(capacity, backward=("whole", "split"))
        found = chosen(given)
        start = known_of(found)
        if start is None:
            continue
        planned = found_plan(plan(given, FIRST_LOOKS, known=(start,)))
        best = found_plan(with_paper(planned, found))
        assert found.value is not None
        assert best.value == planned.value <= found.value


@pytest.mark.parametrize("slices", [(7,), (11,)])
def test_slices_that_do_not_divide_are_no_variants(slices: tuple[int, ...]) -> None:
    found = chosen(space(None, slices=slices))
    assert (told(found), found.value) == ((None, None, None), None)
