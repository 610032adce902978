"""T-Recomp's peaks and makespan: the paper's formulas against our schedules."""

from __future__ import annotations

from bubbleproof.papers.tpipe.tpipe_formulas import (
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
from proofs_tests.theory.members import measured
from proofs_tests.theory.test_tpipe_recompute import SMALL, with_recomputations


def test_the_peak_is_half_of_the_ranks_and_one() -> None:
    # Appendix C: floor(p/2) + 1 blocks, from p forwards on (fewer microbatches hold fewer).
    for p in range(1, 17):
        for m in (p, 2 * p + 1):
            assert max(measured(TRecomp(), p=p, m=m).peak_activations) == trecomp_peak(p)


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
