"""The assertions pass what is valid and print the counterexample of what is not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given

import bubbleproof as bp
from bubbleproof.formats import write_table
from bubbleproof.testing.assertions import InvalidSchedule, assert_valid, assert_valid_file
from bubbleproof.theory.families import member
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify import USUAL, Rule, Semantics
from proofs_tests.cases import without
from proofs_tests.drawn_programs import ordered_pipelines

SMALL = member("1f1b", p=2, m=3)


def failure(problem: Problem | Pipeline, orders: list[list[str]]) -> InvalidSchedule:
    with pytest.raises(InvalidSchedule) as caught:
        assert_valid(problem, Program.from_orders(orders))
    return caught.value


def test_a_valid_schedule_passes_and_is_measured() -> None:
    verdict = assert_valid(SMALL.problem, SMALL.schedule)
    assert verdict.measured is not None
    assert verdict.measured.makespan == 12  # (m + p - 1)(tF + tB) = 4 * 3
    assert {f.detail for f in verdict.decisions if f.rule is Rule.COMMUNICATION} == set(USUAL)
    assert assert_valid(SMALL.pipeline, SMALL.schedule.program).ok


@given(ordered_pipelines())
def test_executable_orders_pass_in_their_own_sends_order(
    made: tuple[Pipeline, Problem, Program],
) -> None:
    pipeline, problem, program = made
    assert assert_valid(pipeline, program, semantics=[Semantics.BUFFERED]).ok
    assert assert_valid(problem, program, semantics=[]).ok


def test_a_deadlock_is_told_in_the_first_line() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=1)
    text = str(failure(pipeline, [["0F0", "0B0"], ["1B0", "1F0"]]))
    assert text.splitlines()[0] == (
        "invalid schedule, dependencies: deadlock: 1B0 waits for 1F0 waits for 1B0"
    )
    assert "[1B0]" in text  # the grid with the cell marked


def test_memory_above_its_capacity_shows_the_grid() -> None:
    pipeline = Pipeline(num_ranks=1, num_microbatches=2, capacity=1)
    error = failure(pipeline, [["0F0", "0F1", "0B0", "0B1"]])
    assert error.verdict.broken == (Rule.MEMORY,)
    assert re.search(r"rank 0 +\|0F0--\[0F1\]", str(error))


def test_a_missing_task_leaves_the_rest_undecided() -> None:
    text = str(failure(Pipeline(num_ranks=1, num_microbatches=1), [["0F0"]]))
    assert text.startswith("invalid schedule, complete: ")
    assert "communication                undecided" in text


def test_sends_and_receives_of_the_program_itself_are_judged() -> None:
    lowered = lower(SMALL.problem, SMALL.schedule)
    assert assert_valid(SMALL.problem, lowered).ok
    row = next(i for i, a in enumerate(lowered.actions) if a.kind.name == "SEND_F")
    with pytest.raises(InvalidSchedule) as caught:
        assert_valid(SMALL.problem, without(lowered, row))
    assert caught.value.verdict.broken == (Rule.COMMUNICATION, Rule.DATAFLOW)


def test_a_false_claim_fails() -> None:
    bragging = replace(SMALL.schedule, claims={"makespan": 11})
    with pytest.raises(InvalidSchedule, match="invalid schedule, claims: ") as caught:
        assert_valid(SMALL.problem, bragging)
    assert caught.value.verdict.broken == (Rule.CLAIMS,)


def test_files(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    write_table(good, SMALL.schedule.program)
    assert assert_valid_file(good).ok
    bad.write_text(good.read_text().replace("0F0,0F1", "0F1,0B0"))
    with pytest.raises(InvalidSchedule, match="invalid schedule, complete: "):
        assert_valid_file(str(bad))
    with pytest.raises(ValueError, match="expected a schedule"):
        assert_valid_file(tmp_path / "none.txt")


def test_a_file_is_judged_by_the_problem_that_is_named(tmp_path: Path) -> None:
    table, tight = tmp_path / "table.csv", tmp_path / "tight.toml"
    write_table(table, SMALL.schedule.program)
    shape = "ranks = 2\nmicrobatches = 3\n[durations]\nforward = 1\nbackward = 2\n"
    tight.write_text(shape + "[memory]\ncapacity = 1\n")
    with pytest.raises(InvalidSchedule) as caught:
        assert_valid_file(table, problem=tight)  # rank 0 of 1F1B holds 2
    assert caught.value.verdict.broken == (Rule.MEMORY,)


def test_lists_paths_and_torch_objects_are_taken_as_they_are(tmp_path: Path) -> None:
    rows = [["0F0", "0B0"], ["1F0", "1B0"]]
    assert bp.testing.assert_valid(rows).ok
    bp.write(tmp_path / "s.csv", rows)
    assert bp.testing.assert_valid(tmp_path / "s.csv").ok
    made = SimpleNamespace(pipeline_order={0: rows[0], 1: rows[1]})
    assert bp.testing.assert_valid(made).ok
    with pytest.raises(bp.testing.InvalidSchedule, match=r"dependencies|deadlock"):
        bp.testing.assert_valid([["0B0", "0F0"], ["1F0", "1B0"]])
    tight = bp.Pipeline(num_ranks=2, num_microbatches=1, activation=2, capacity=1)
    with pytest.raises(bp.testing.InvalidSchedule, match="memory"):
        bp.testing.assert_valid(tight, made)
    with pytest.raises(AttributeError, match=r"has no 'assert_vali'; it has .*assert_valid"):
        getattr(bp.testing, "assert_vali")  # noqa: B009 - mypy knows that there is none
