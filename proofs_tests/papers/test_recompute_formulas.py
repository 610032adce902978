"""T-Recomp's peaks and makespan: the paper's formulas against our schedules."""

from __future__ import annotations

from bubbleproof.papers.tpipe.tpipe_formulas import (
    ceil_div,
    deep_blocks,
    forward_rounds,
    least_delay,
    printed_trecomp_makespan,
    recomputing_1f1b_makespan,
    trecomp_peak,
)
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward
from bubbleproof.theory.families.trecomp import TRecomp
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute, with_recompute
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.theory import two_chunk_starts
from proofs_tests.theory.members import measured
from proofs_tests.theory.test_tpipe_recompute import SMALL, with_recomputations


def test_the_peak_is_half_of_the_ranks_and_one() -> None:
    # Appendix C: floor(p/2) + 1 blocks, from p forwards on (fewer microbatches hold fewer).
    for p in range(1, 17):
        for m in (p, 2 * p + 1):
            assert max(measured(TRecomp(), p=p, m=m).peak_activations) == trecomp_peak(p)


def test_the_paper_simplifies_its_count_of_deep_blocks_wrongly() -> None:
    # ceil((3p + ceil((p-1)/2) - 2)/7) is 3.5p-2 over 7 for even p and 3.5p-2.5 for odd: ceil(p/2),
    # where the paper writes floor(p/2); p = 1 is the smallest counterexample. The sum with the
    # recomputed block is right all the same: for odd p the two never lie in memory together.
    assert all(deep_blocks(p) == ceil_div(p, 2) for p in range(1, 200))
    assert [p for p in range(1, 8) if deep_blocks(p) != p // 2] == [1, 3, 5, 7]


def test_the_makespan_of_appendix_c_is_only_an_upper_bound() -> None:
    # p = 1: the work alone is 7m, printed is 7m - 1. From p = 2 on the left-shifted order is never
    # slower than printed, and first faster at p = 3, m = 2 (one R runs in a bubble).
    late = {
        (p, m): measured(TRecomp(), p=p, m=m).makespan - printed_trecomp_makespan(p, m)
        for p, m in SMALL
    }
    assert all(late[1, m] == 1 for m in range(1, 4))
    assert all(value <= 0 for (p, _), value in late.items() if p > 1)
    assert next(case for case, value in late.items() if value < 0) == (3, 2)


def test_delay_rounds_are_not_one_from_8_to_40_ranks() -> None:
    # Appendix B's own problem (3), solved: k = 1 is claimed for 8 <= p <= 40.
    rounds = {p: least_delay(p) for p in range(3, 42)}
    assert all(rounds[p] == 0 for p in range(3, 8))
    assert [p for p in range(8, 41) if rounds[p] == 0] == [10, 11, 12, 16, 17]
    assert [p for p in range(8, 41) if rounds[p] == 2] == [27, 32, 33, 36, 37, 38, 39]
    assert {rounds[p] for p in range(8, 41)} == {0, 1, 2}


def test_our_delay_rounds_are_the_least_that_the_constraint_of_appendix_b_allows() -> None:
    for p in range(3, 200):
        assert two_chunk_starts.forward_rounds(p) - forward_rounds(p) == least_delay(p)


def test_1f1b_with_half_recomputed_takes_what_appendix_c_says_only_if_gradients_wait_for_it() -> (
    None
):
    # One chunk per rank twice as long: tF = 2, tB = 4, and half a forward (1) run again. As part
    # of the backward it makes 1F1B with tB = 5: 7(m+p-1), as printed. As a task of its own the last
    # microbatch's runs while its gradient comes, on all ranks but the last: p - 1 ticks less.
    for p, m in SMALL:
        plain = Pipeline(num_ranks=p, num_microbatches=m, forward=2, backward=4)
        fused = plain.with_changes(backward=5)
        program = OneForwardOneBackward().program(fused)
        joint = measure(fused.problem(), left_shift(fused.problem(), program))
        assert joint.makespan == recomputing_1f1b_makespan(p, m)
        choice = Recompute(stages=tuple(range(p)), duration=1)
        problem = with_recompute(plain.problem(), choice)
        apart = measure(problem, left_shift(problem, with_recomputations(plain)))
        assert apart.makespan == recomputing_1f1b_makespan(p, m) - (p - 1)
