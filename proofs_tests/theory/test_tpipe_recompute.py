"""Recomputation: what an R adds to a problem, and T-Recomp against Appendices B and C."""

from __future__ import annotations

import numpy as np
import pytest

from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward
from bubbleproof.theory.families.rounds import round_starts
from bubbleproof.theory.families.trecomp import TRecompInterleaved
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.extension import backwards_of, with_changes
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute, with_recompute
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import Rule, check
from proofs_tests.judged import accepted
from proofs_tests.theory.members import measured

SMALL = [(p, m) for p in range(1, 9) for m in range(1, 2 * p + 2)]


def one_rank(choice: Recompute, **changes: object) -> Problem:
    """One rank, one microbatch, stages 0 and 1 with tF = 2, tB = 3 and 5 units each."""
    pipeline = Pipeline(
        num_ranks=1, num_microbatches=1, num_chunks=2, forward=2, backward=3, activation=5
    )
    return with_recompute(pipeline.with_changes(**changes).problem(), choice)


def test_a_recomputed_activation_costs_its_input_between_forward_and_recomputation() -> None:
    # 0F0 0..2, 1F0 2..4, 1B0 4..7, 0R0 7..9, 0B0 9..12. Loads: 5 while 0F0 runs; then 2 kept and
    # 5 of stage 1 until 7; then 5 again (2 kept + 3 regained) until 12: the peak is 7.
    problem = one_rank(Recompute(stages=(0,), kept=2))
    schedule = left_shift(problem, Program.from_orders([["0F0", "1F0", "1B0", "0R0", "0B0"]]))
    assert schedule.start.tolist() == [0, 2, 4, 7, 9]
    measured = accepted(problem, schedule)
    assert measured.peak_memory == (7,)
    assert measured.work == 12


def test_a_recomputation_may_take_its_own_ticks_and_precedes_a_split_backward() -> None:
    problem = one_rank(Recompute(stages=(0,), duration=1), split_backward=True)
    assert problem.duration[problem.task("0R0")] == 1
    after = problem.edges.after[problem.edges.before == problem.task("0R0")]
    assert [problem.label(task) for task in after.tolist()] == ["0I0"]


def test_a_backward_before_its_recomputation_violates_a_dependency() -> None:
    problem = one_rank(Recompute(stages=(0,)))
    orders = [["0F0", "1F0", "1B0", "0R0", "0B0"]]
    schedule = left_shift(problem, Program.from_orders(orders))
    early = np.where(schedule.start == 9, 6, schedule.start)
    broken = type(schedule)(program=schedule.program, start=early)
    assert Rule.DEPENDENCIES in check(problem, broken).broken


def test_a_missing_recomputation_is_incomplete() -> None:
    problem = one_rank(Recompute(stages=(0,)))
    plain = one_rank(Recompute(stages=()))
    schedule = left_shift(plain, Program.from_orders([["0F0", "1F0", "1B0", "0B0"]]))
    # Without the R its backward gives back what nothing had regained: the load falls below 0.
    assert check(problem, schedule).broken == (Rule.COMPLETE, Rule.MEMORY)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"stages": (0, 0)}, "each recomputed stage is named once, got (0, 0)"),
        ({"stages": (0,), "kept": -1}, "kept of a recomputation must be 0 or more, got -1"),
        ({"stages": (0,), "duration": -1}, "duration of a recomputation must be 0 or more, got -1"),
        ({"stages": (0,), "kept": 6}, "kept (6) exceeds what 0F0 acquires (5)"),
        ({"stages": (2,)}, "stage 2 has no F of its own in the problem"),
    ],
)
def test_what_is_no_recomputation(choice: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        one_rank(Recompute(**choice))  # type: ignore[arg-type]  # wrong on purpose
    assert str(caught.value) == message


def test_an_overlapped_backward_has_nothing_to_recompute_for() -> None:
    pipeline = Pipeline(num_ranks=1, num_microbatches=2, overlaps=(((0, 1), (0, 0)),))
    with pytest.raises(ValueError, match="0F0 has no backward of its own"):
        with_recompute(pipeline.problem(), Recompute(stages=(0,)))


def test_what_a_forward_gives_back_when_it_ends_was_acquired_all_the_same() -> None:
    plain = Pipeline(num_ranks=1, num_microbatches=1, activation=5).problem()
    forward, store = np.array([plain.task("0F0")]), np.array([0])
    problem = with_changes(plain, [(forward, True, store, -2)])
    with pytest.raises(ValueError, match=r"^kept \(6\) exceeds what 0F0 acquires \(5\)"):
        with_recompute(problem, Recompute(stages=(0,), kept=6))


def test_the_forward_that_is_named_is_the_one_without_a_backward() -> None:
    pipeline = Pipeline(num_ranks=1, num_microbatches=3, overlaps=(((0, 2), (0, 1)),))
    problem = pipeline.problem()
    forwards = np.array([problem.task("0F0"), problem.task("0F1")])
    with pytest.raises(ValueError, match=r"^0F1 has no backward of its own"):
        backwards_of(problem, forwards)


def test_every_rank_repeats_a_round_of_seven_without_overlap() -> None:
    for p in range(1, 60):
        for rank in range(p):
            starts = round_starts(p, rank, chunks=2, recomputed=1)
            ticks = {Kind.F: 1, Kind.R: 1, Kind.B: 2}
            busy = sorted((s + k) % 7 for key, s in starts.items() for k in range(ticks[key[0]]))
            assert busy == list(range(7)), (p, rank)


def with_recomputations(pipeline: Pipeline) -> Program:
    """1F1B with an R right before every B."""
    orders = []
    for order in OneForwardOneBackward().program(pipeline).orders(pipeline.num_ranks):
        texts = []
        for action in order:
            if action.kind is Kind.B:
                texts.append(f"{action.stage}R{action.microbatch}")
            texts.append(str(action))
        orders.append(texts)
    return Program.from_orders(orders)


def test_interleaved_with_recomputation_keeps_half_and_idles_less_than_half_up_to_six_ranks() -> (
    None
):
    # Section 4.2: about half of A (p of 2p units, and the recomputed one), and half the bubble of
    # 1F1B with half recomputed, 7(p-1). Up to p = 6 it is 3(p-1); later rounds lose more.
    for p in range(1, 9):
        for m in (p, 2 * p, 3 * p):
            got = measured(TRecompInterleaved(), p=p, m=m)
            assert max(got.peak_activations) <= p + 1
            if p <= 6:
                assert got.makespan - 7 * m == 3 * (p - 1)


def test_interleaved_with_recomputation_loses_time_every_group_from_seven_ranks_on() -> None:
    bubble = [measured(TRecompInterleaved(), p=7, m=7 * n).makespan - 49 * n for n in range(1, 7)]
    assert bubble == sorted(bubble)
    assert bubble[0] == bubble[1] == 3 * 6 < bubble[-1]
    # More than half of 1F1B's 7(p-1) = 49 at p = 8, first at m = 32 (in steps of p).
    wide = {m: measured(TRecompInterleaved(), p=8, m=m).makespan - 7 * m for m in (16, 24, 32)}
    assert [2 * idle > 49 for idle in wide.values()] == [False, False, True]


def test_a_pipeline_without_a_choice_recomputes_nothing() -> None:
    plain = Pipeline(num_ranks=1, num_microbatches=1)
    assert Pipeline(num_ranks=1, num_microbatches=1).problem().num_tasks == (
        plain.problem().num_tasks
    )
