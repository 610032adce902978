"""Every rule at once: what is beside a schedule is judged too, and what is not there is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubbleproof.theory.families import family
from bubbleproof.theory.model.actions import ActionTable, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify import Rule, Semantics, check_whole
from bubbleproof.verify.every_rule import GivenSchedule, check_every_rule

MEMBER = family("1f1b")(p=2, m=3)
GIVEN = GivenSchedule(problem=MEMBER.problem, made=MEMBER.schedule)


def test_without_more_it_is_the_whole_check() -> None:
    found = check_every_rule(GIVEN)
    assert found == check_whole(MEMBER.problem, MEMBER.schedule)
    assert found.ok
    one = check_every_rule(GIVEN, (Semantics.BUFFERED,))
    assert [d.detail for d in one.decisions if d.rule is Rule.COMMUNICATION] == ["buffered"]


def test_a_problem_that_its_pipeline_does_not_require_is_refused() -> None:
    assert check_every_rule(replace(GIVEN, pipeline=MEMBER.pipeline)).ok
    assert MEMBER.pipeline is not None
    other = replace(GIVEN, pipeline=MEMBER.pipeline.with_changes(latency=1))
    assert check_every_rule(other).broken == (Rule.REQUIRED,)


def test_the_authors_own_program_is_judged_as_it_is() -> None:
    lowered = lower(MEMBER.problem, MEMBER.schedule)
    assert check_every_rule(replace(GIVEN, lowered=lowered)).ok
    without = lowered.take(~lowered.actions.is_kind(Kind.SEND_F))
    assert Rule.COMMUNICATION in check_every_rule(replace(GIVEN, lowered=without)).broken


def test_cells_that_pytorch_cannot_run_are_refused() -> None:
    """A stage whose gradient is reduced twice, beside another that is never reduced."""
    lowered = lower(MEMBER.problem, MEMBER.schedule)
    rows = ActionTable.of(int(Kind.REDUCE_GRAD), np.array([0, 0]), -1, 0)
    cells = Program(
        actions=ActionTable.concatenate([rows, lowered.actions]),
        resource=np.array([0, 0, *lowered.resource.tolist()]),
    )
    found = check_every_rule(replace(GIVEN, cells=cells))
    assert [d.detail for d in found.decisions if not d.ok] == ["collectives"]
    assert found.broken == (Rule.COMMUNICATION,)
