"""What a claim takes for the optimum: proved by hand here, refused where there is no proof."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module

import pytest

from bubbleproof.papers.claims.any_order import makespan_of_any_order
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Result
from bubbleproof.theory.families import member
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_room_for_one_microbatch_makes_them_follow_each_other(m: int) -> None:
    # Two ranks, tF = tB = 1, room for one activation on rank 0: it holds microbatch j from 0Fj to
    # 0Bj, between which lie 1Fj and 1Bj. So each microbatch takes 4 ticks, one after the other.
    problem = member("1f1b", p=2, m=m, tF=1, tB=1).problem
    assert makespan_of_any_order(problem.with_capacity(1)) == 4 * m
    assert makespan_of_any_order(problem) == 2 * (m + 1)  # 1F1B's, the work and the way to rank 1


def test_an_answer_without_a_certificate_is_no_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = member("1f1b", p=2, m=2, tF=1, tB=1).problem
    module = import_module("bubbleproof.solvers.solving")
    honest = module.solve

    def boasting(
        asked: Problem, options: SolveOptions, starts: Iterable[tuple[str, Program]]
    ) -> Result:
        # The certificate proves a tick less than the schedule takes: the rest is an engine's word.
        found: Result = honest(asked, options, starts)
        return replace(found, lower_bound=found.lower_bound - 1, engine_bound=found.makespan)

    monkeypatch.setattr(module, "solve", boasting)
    with pytest.raises(RuntimeError, match="no certified optimum: optimal"):
        makespan_of_any_order(problem)
