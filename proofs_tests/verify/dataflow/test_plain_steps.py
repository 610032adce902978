"""What columns alone call right is right by the symbolic run: every schedule of small steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.dataflow import dataflow_rule
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow
from bubbleproof.verify.dataflow.plain_steps import is_plainly_right
from bubbleproof.verify.dataflow.training_step import NoTrainingStep
from proofs_tests.cases import Case, all_family_cases
from proofs_tests.sized import sized
from proofs_tests.verify.mutations import mutants
from proofs_tests.verify.tables import Specimen

EACH = sized(1, full=4)
STEPS = {
    "two ranks": (Pipeline(num_ranks=2, num_microbatches=1), sized(5, full=8)),
    "split": (Pipeline(num_ranks=1, num_microbatches=1, split_backward=True), sized(6, full=9)),
    "slices": (Pipeline(num_ranks=1, num_microbatches=1, num_slices=2), sized(5, full=8)),
    "chunks": (Pipeline(num_ranks=1, num_chunks=2, num_microbatches=1), sized(5, full=8)),
}


@pytest.fixture(autouse=True)
def _always_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule is decided by its run."""
    monkeypatch.setattr(dataflow_rule, "is_plainly_right", lambda *_: False)


def is_right_by_run(problem: Problem, schedule: Schedule) -> bool:
    try:
        return check_dataflow(problem, schedule).ok
    except NoTrainingStep:
        return False


@pytest.mark.parametrize("name", STEPS)
def test_every_choice_of_starts(name: str) -> None:
    """Of tasks that take some ticks both say the same of all starts in a range."""
    pipeline, span = STEPS[name]
    problem = pipeline.problem()
    made = Schedule(
        program=_in_order(problem),
        start=np.zeros(problem.num_tasks, dtype=np.int64),
    )
    right = 0
    for starts in product(range(span), repeat=problem.num_tasks):
        timed = replace(made, start=np.array(starts))
        found = is_plainly_right(problem, timed)
        assert found == is_right_by_run(problem, timed), starts
        right += found
    assert right > 0


def _in_order(problem: Problem) -> Program:
    order = np.argsort(problem.occupancy.resource, kind="stable")
    return Program(
        actions=problem.actions.take(problem.occupancy.task[order]),
        resource=problem.occupancy.resource[order],
    )


def test_what_columns_call_right_the_run_calls_right() -> None:
    """Families of every kind, and each mutant of them; both answers happen."""
    seen = {True: 0, False: 0}
    for cases in all_family_cases((2, 3), (3, 4), per_family=2).values():
        for case in cases:
            for problem, schedule in _with_mutants(case):
                found = is_plainly_right(problem, schedule)
                assert not found or is_right_by_run(problem, schedule), case.name
                seen[found] += 1
    assert min(seen.values()) > 100


def _with_mutants(case: Case) -> Iterator[tuple[Problem, Schedule]]:
    yield case.problem, case.schedule
    for mutant in mutants(Specimen.of(case.problem, case.schedule), case.name, EACH):
        yield mutant.specimen.problem, mutant.specimen.schedule()
