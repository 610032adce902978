"""T-Offload's windows and makespan: the paper's formulas against our schedules."""

from __future__ import annotations

from bubbleproof.papers.tpipe.tpipe_formulas import (
    backward_rounds,
    forward_rounds,
    offload_window,
    reload_window,
    tpipe_makespan,
)
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.toffload import TOffload
from bubbleproof.theory.families.tpipe import TPipe
from bubbleproof.theory.model.measures import measure
from bubbleproof.verify import check
from proofs_tests.theory.test_tpipe_offload import SMALL, gaps_between, idle_between, starts


def test_the_windows_are_those_of_appendix_d_once_rounds_follow_each_other() -> None:
    # Equations (5) and (7) in units of tF: on *every* rank, where microbatches outlast the rounds
    # between the chunks; with fewer microbatches less work lies in between and more is idle.
    for p in range(1, 9):
        for m in range(1, 2 * p + 2):
            member = TPipe().member(make_parameters({"p": p, "m": m}))
            for rank in range(p):
                deep = p + rank
                down = idle_between(member, rank, f"{deep}B{m - 1}", f"{rank}B{m - 1}")
                up = idle_between(member, rank, f"{rank}F0", f"{deep}F0")
                if m > backward_rounds(p):
                    assert down == offload_window(p)
                if m > forward_rounds(p):
                    assert up == reload_window(p)
                assert down >= offload_window(p)
                assert up >= reload_window(p)


def test_the_window_of_the_cool_down_is_cut_in_pieces_of_at_most_four_units() -> None:
    # A backward of chunk 1 (2 units) returns every round of 6 units, so no idle stretch exceeds 4:
    # from p = 6 on a transfer that must not meet computation has to be cut as well. (6) sums the
    # pieces. In the warm-up no forward of chunk 1 comes in between: one piece.
    for p in range(3, 12):
        m = 2 * p + 1
        member = TPipe().member(make_parameters({"p": p, "m": m}))
        for rank in (0, p - 1):
            down = gaps_between(member, rank, f"{p + rank}B{m - 1}", f"{rank}B{m - 1}")
            assert sum(down) == offload_window(p)
            assert max(down) == min(4, offload_window(p))
            assert (len(down) == 1) == (p < 6)
            assert len(gaps_between(member, rank, f"{rank}F0", f"{p + rank}F0")) == 1


def test_below_three_ranks_there_is_no_window_and_equation_6_divides_by_zero() -> None:
    assert [offload_window(p) for p in (1, 2, 3)] == [0, 0, 2]


def test_off_load_within_the_windows_costs_no_time() -> None:
    # OFFLOAD + STEP = 2 tF fit from p = 3 on; the last STEP then ends with the step. Rank 0 has the
    # least: its deep chunk ends last, 2p - 2 idle units and more before the end.
    for p, m in SMALL:
        member = TOffload().member(make_parameters({"p": p, "m": m}))
        assert measure(member.problem, member.schedule).makespan == tpipe_makespan(p, m)
        ends = starts(member.problem, member.schedule) + member.problem.duration
        if p >= 3:
            assert int(ends.max()) == tpipe_makespan(p, m)


def test_a_slow_reload_delays_the_deep_chunk() -> None:
    family = TOffload()
    member = TPipe().member(make_parameters({"p": 4, "m": 4}))
    slow = family.offloading(member.pipeline, reload=30)
    schedule = family.schedule(slow)
    assert check(slow.problem(), schedule).ok
    assert measure(slow.problem(), schedule).makespan > tpipe_makespan(4, 4)
