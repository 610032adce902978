"""Bidirectional pipelines: every stage on two ranks, half of the microbatches from either end."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bubbleproof.theory.families import family
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import num_downward, stage_ranks
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.messages import messages
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import Rule, check, check_communication

PAIR = Pipeline(num_ranks=2, num_microbatches=2, placement="bidirectional")


def ranks(problem: Problem) -> dict[str, int]:
    return {problem.label(t): int(r) for t, r in enumerate(problem.rank_of_task)}


def test_the_first_half_of_the_microbatches_runs_downward() -> None:
    assert [num_downward(m) for m in (1, 2, 3, 4, 5)] == [1, 1, 2, 2, 3]
    assert stage_ranks("bidirectional", num_ranks=3, num_chunks=2) == (0, 1, 2, 0, 1, 2)
    three = Pipeline(num_ranks=3, num_microbatches=3, placement="bidirectional")
    # Stage 0 is on rank 0 for microbatches 0 and 1 and on rank 2 for microbatch 2; stage 1, in the
    # middle of an odd number of ranks, is on rank 1 for all.
    assert three.rank_grid.tolist() == [[0, 0, 2], [1, 1, 1], [2, 2, 0]]
    loop = three.with_changes(placement="loop")
    assert loop.rank_grid.tolist() == [[0] * 3, [1] * 3, [2] * 3]


def test_two_ranks_two_microbatches() -> None:
    made = PAIR.problem()
    assert ranks(made) == {
        "0F0": 0, "1F0": 1, "1B0": 1, "0B0": 0,
        "0F1": 1, "1F1": 0, "1B1": 0, "0B1": 1,
    }  # fmt: skip
    assert made.stage_to_rank == {}  # both stages are on both ranks
    stores = zip(made.events.task.tolist(), made.events.store.tolist(), strict=True)
    assert all(store == made.rank_of_task[task] for task, store in stores)


def test_messages_go_down_for_one_microbatch_and_up_for_the_other() -> None:
    found = Counter(
        (str(m.send), m.source, str(m.recv), m.target) for m in messages(PAIR.problem())
    )
    assert found == Counter(
        [("0SEND_F0", 0, "1RECV_F0", 1), ("1SEND_B0", 1, "0RECV_B0", 0),
         ("0SEND_F1", 1, "1RECV_F1", 0), ("1SEND_B1", 0, "0RECV_B1", 1)]
    )  # fmt: skip


def test_static_memory_is_held_by_both_ranks_of_a_stage() -> None:
    three = Pipeline(
        num_ranks=3, num_microbatches=2, placement="bidirectional", static=(1, 10, 100)
    )
    # Stage 0 and stage 2 are on ranks 0 and 2, 1 + 100 on either; the middle stage is there once.
    assert [store.base for store in three.problem().stores] == [101, 10, 101]
    assert [s.base for s in three.with_changes(placement="loop").problem().stores] == [1, 10, 100]


def test_a_link_delays_the_messages_of_both_directions() -> None:
    far = Pipeline(
        num_ranks=4,
        num_microbatches=2,
        placement="bidirectional",
        links=(Link(ranks=(0, 1), latency=5),),
    ).problem()
    label = far.label
    late = {
        (label(int(a)), label(int(b)))
        for a, b in zip(
            far.edges.before[far.edges.lag == 5], far.edges.after[far.edges.lag == 5], strict=True
        )
    }
    # Ranks 0 and 1 hold stages 0 and 1 of microbatch 0, and stages 3 and 2 of microbatch 1.
    assert late == {("0F0", "1F0"), ("1B0", "0B0"), ("2F1", "3F1"), ("3B1", "2B1")}


def test_a_task_of_the_upward_half_on_its_downward_rank_is_misplaced() -> None:
    made = PAIR.problem()
    good = Program.from_orders([["0F0", "1F1", "1B1", "0B0"], ["0F1", "1F0", "1B0", "0B1"]])
    schedule = left_shift(made, good)
    assert check(made, schedule).ok
    assert check_communication(made, lower(made, schedule)).ok
    # The same rows on the ranks of a loop: each row of microbatch 1 stands on the wrong rank.
    swapped = np.where(good.actions.microbatch == 1, 1 - good.resource, good.resource)
    moved = Schedule.grouped(actions=good.actions, resource=swapped, start=schedule.start)
    verdict = check(made, moved)
    assert Rule.PLACED in verdict.broken
    assert "0F1 stands on rank 0, belongs on rank 1" in str(verdict)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb-h1"])
def test_families_of_one_direction_refuse_a_bidirectional_pipeline(name: str) -> None:
    pipeline = PAIR.with_changes(split_backward=family(name).is_split)
    assert family(name).refusal(pipeline) == f"{name} places stages as loop: (0, 1)"
