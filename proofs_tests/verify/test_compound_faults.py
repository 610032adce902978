"""Several mistakes in one schedule, and schedules at random: both checkers must agree in full."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bubbleproof.theory.model.actions import ActionTable
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify import check, check_program
from proofs_tests.cases import Case, all_family_cases, hand_built, overlapped
from proofs_tests.drawn_programs import ordered_pipelines, shuffled_programs
from proofs_tests.sized import sized
from proofs_tests.verify.mutation_report import judged
from proofs_tests.verify.mutations import OPERATORS
from proofs_tests.verify.plain import broken_rules, plain_measures
from proofs_tests.verify.tables import Specimen

PER_CASE = sized(6, full=60)


def compounded(case: Case, random: Random) -> tuple[list[str], Specimen]:
    """Two to four mutations one upon another, as far as they can be applied."""
    specimen, names = Specimen.of(case.problem, case.schedule), []
    for operator in random.sample(OPERATORS, random.randint(2, 4)):
        try:
            mutated = operator.apply(random, specimen)
        except (ValueError, IndexError, KeyError):  # an earlier mutation removed what it looks for
            continue
        if mutated is not None:
            specimen = mutated
            names.append(operator.name)
    return names, specimen


def test_several_mistakes_at_once_break_the_same_rules_for_both_checkers() -> None:
    families = all_family_cases((2, 3), (2, 4), 1)
    cases = [case for found in families.values() for case in found] + [hand_built(), overlapped()]
    rules: set[frozenset[str]] = set()
    compound = 0
    for case in cases:
        for number in range(PER_CASE):
            names, specimen = compounded(case, Random(f"{case.name} {number}"))
            schedule = specimen.schedule()
            expected = broken_rules(specimen.problem, schedule)
            assert judged(specimen.problem, schedule) == expected, (case.name, names)
            rules.add(frozenset(expected))
            compound += len(names) > 1
    assert compound > PER_CASE * len(cases) // 2
    assert len(rules) > 20  # of the 64 combinations of six rules


def random_schedule(problem: Problem, random: Random) -> Schedule:
    """Rows of the problem, drawn with repetition, on resources and at times drawn at random."""
    rows = [random.randrange(problem.num_tasks) for _ in range(random.randint(0, 12))]
    resource = sorted(random.randint(0, len(problem.resources)) for _ in rows)
    return Schedule(
        program=Program(
            actions=ActionTable.from_actions(problem.actions[row] for row in rows),
            resource=np.array(resource, dtype=np.int64),
        ),
        start=np.array([random.randint(-2, 15) for _ in rows], dtype=np.int64),
    )


@given(ordered_pipelines(), st.integers(0, 2**32), st.integers(0, 6))
def test_schedules_at_random_break_the_same_rules_and_measure_alike(
    made: tuple[Pipeline, Problem, Program], seed: int, capacity: int
) -> None:
    problem = made[1].with_capacity(capacity)
    schedule = random_schedule(problem, Random(seed))
    verdict = check(problem, schedule)
    assert {rule.name for rule in verdict.broken} == broken_rules(problem, schedule)
    assert str(verdict)
    measured = measure(problem, schedule)
    for name, value in plain_measures(problem, schedule).items():
        assert getattr(measured, name) == value, name


@settings(max_examples=sized(50, full=150))
@given(shuffled_programs())
def test_a_program_is_judged_by_its_left_shifted_schedule_or_has_none(
    made: tuple[Problem, Program],
) -> None:
    problem, program = made
    verdict, schedule = check_program(problem, program)
    try:
        expected = left_shift(problem, program)
    except UntimedProgram:
        assert schedule is None
        assert not verdict.ok
        assert str(verdict)
    else:
        assert schedule is not None
        assert (schedule.start == expected.start).all()
        assert {r.name for r in verdict.broken} == broken_rules(problem, expected) == set()
