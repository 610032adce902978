"""Rule 7 judges any program without stumbling: random actions, kinds and places."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from bubbleproof.theory.model.actions import STAGE_KINDS, Action, Kind
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow, check_dataflow_of_program
from proofs_tests.cases import Case
from proofs_tests.sized import sized
from proofs_tests.verify.dataflow.samples import all_samples

KINDS: tuple[Kind, ...] = tuple(kind for kind in Kind if kind is not Kind.OVERLAP_F_B)


def any_action(random: Random) -> Action:
    kind = random.choice(KINDS)
    stage, slice_ = random.randrange(7), random.choice([0, 0, 0, 1, 2])
    microbatch = -1 if kind in STAGE_KINDS else random.randrange(9)
    if random.random() < 0.1:
        backward = Action(stage=stage, kind=Kind.B, microbatch=random.randrange(9), slice=slice_)
        kind, microbatch = Kind.OVERLAP_F_B, random.randrange(9)
        return Action(stage=stage, kind=kind, microbatch=microbatch, slice=slice_, partner=backward)
    return Action(stage=stage, kind=kind, microbatch=microbatch, slice=slice_)


@pytest.mark.parametrize("case", all_samples(), ids=lambda case: case.name)
def test_random_programs_are_judged_and_none_is_right(case: Case) -> None:
    for seed in range(sized(6, full=20)):
        random = Random(f"{case.name} {seed}")
        width = len(case.problem.resources) + 1
        orders = [[any_action(random) for _ in range(random.randrange(30))] for _ in range(width)]
        program = Program.from_orders(orders)
        start = np.array([random.randrange(40) for _ in range(len(program))], dtype=np.int64)
        for finding in (
            check_dataflow(case.problem, Schedule(program=program, start=start)),
            check_dataflow_of_program(case.problem, program),
        ):
            assert finding.count
            assert finding.violations
            assert all(str(violation) for violation in finding.violations)
