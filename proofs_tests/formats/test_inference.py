"""The pipeline behind a bare program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.formats import UnusableInput, infer_pipeline, read_table
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from proofs_tests.formats.strategies import pipelines
from proofs_tests.formats.test_pytorch_csv import CASES


@given(pipeline=pipelines())
def test_shape_of_a_complete_program(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    program = Program.grouped(actions=problem.actions, resource=problem.rank_of_task)
    found = infer_pipeline(program)
    assert found.num_ranks == pipeline.num_ranks
    assert found.num_microbatches == pipeline.num_microbatches
    assert (found.num_chunks, found.num_slices) == (pipeline.num_chunks, pipeline.num_slices)
    assert found.stage_ranks == pipeline.stage_ranks
    assert found.overlaps == pipeline.overlaps
    assert (found.problem().locate(problem.actions) != NONE).all()
    assert found.problem().num_tasks == problem.num_tasks


def test_lowered_program_has_the_same_shape() -> None:
    small = member("zb-h1", p=3, m=4)
    found = infer_pipeline(lower(small.problem, small.schedule))
    assert found == small.pipeline.with_changes(placement=(0, 1, 2))


def test_split_per_stage_and_microbatch() -> None:
    program = Program.from_orders([["0F0", "0I0", "0W0", "0F1", "0B1"], ["1F0", "1F1", "1W1"]])
    assert infer_pipeline(program).split_backward == ((True, False), (False, True))


def test_both_full_and_split_is_full() -> None:
    program = Program.from_orders([["0F0", "0B0", "0I0", "0W0"]])
    pipeline = infer_pipeline(program)
    assert pipeline.split_backward is False
    located = pipeline.problem().locate(program.actions).tolist()
    assert located == [0, 1, NONE, NONE]  # I and W are no tasks of the problem


def test_overlap_counts_as_both_actions() -> None:
    text = "(0F1;0B0)OVERLAP_F_B"
    pipeline = infer_pipeline(Program.from_orders([["0F0", text, "0B1", text]]))
    assert pipeline.overlaps == (((0, 1), (0, 0)),)
    # F0, the pair and B1: a forward of 1 tick and a full backward of 2 make 3 for the pair.
    assert sorted(pipeline.problem().duration.tolist()) == [1, 2, 3]


def test_overlaps_that_share_an_action_keep_the_first() -> None:
    pairs = ["(0F1;0B0)OVERLAP_F_B", "(0F1;0B1)OVERLAP_F_B", "(0F0;0B0)OVERLAP_F_B"]
    pipeline = infer_pipeline(Program.from_orders([pairs]))
    assert pipeline.overlaps == (((0, 1), (0, 0)),)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the program: expected actions, found none"),
        ([["0STEP"]], "the program: expected actions of microbatches, found collectives alone"),
        (
            [["0F0"], ["0B0"]],
            "the program: expected as many stages on average on each of 2 ranks, found 1 stages",
        ),
        ([["0F0", "1F0"], ["1B0"]], "the program: expected stage 1 on one rank, found it on two"),
        ([["0F0", "2F0"]], "the program: expected stages 0 to 2, found no action of stage 1"),
        (
            [["0F0"], [], ["1F0", "2F0"]],
            "the program: expected actions on ranks 0 to 2, found none on rank 1",
        ),
        ([["0F9999999"]], "the program: expected at most 4000000 actions, found 20000000"),
    ],
)
def test_refusals(rows: list[list[str]], message: str) -> None:
    with pytest.raises(UnusableInput, match=f"^{re.escape(message)}$"):
        infer_pipeline(Program.from_orders(rows))


@pytest.mark.skipif(not CASES.exists(), reason="tables of other projects are not at hand")
@pytest.mark.parametrize("name", ["torchtitan_custom_schedule", "torch_zb1p_2rank_2stagep_compute"])
def test_tables_of_others(name: str) -> None:
    pipeline = infer_pipeline(read_table(Path(CASES / f"{name}.csv")).program)
    assert (pipeline.num_ranks, pipeline.num_chunks, pipeline.num_microbatches) == (2, 2, 8)
    assert pipeline.placement == (0, 1, 0, 1)
    assert pipeline.split_backward is True


@given(st.integers(1, 4), st.integers(1, 5))
def test_flag_is_plain_where_all_backwards_are_alike(ranks: int, microbatches: int) -> None:
    for name, split in (("1f1b", False), ("zb-h1", True)):
        program = member(name, p=ranks, m=microbatches).schedule.program
        assert infer_pipeline(program).split_backward is split
