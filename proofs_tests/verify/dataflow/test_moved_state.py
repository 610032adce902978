"""Trainings whose model state moves, by hand: gathered and freed copies, stages on the host."""

from __future__ import annotations

import pytest

from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.verify.dataflow.passes import check_training
from proofs_tests.verify.dataflow.samples import of_family
from proofs_tests.verify.dataflow.test_passes import judged, said, without

GATHERED = Pipeline(
    num_ranks=1,
    num_microbatches=1,
    sharding=Sharding(zero=3, gather=1, reduce=1, parameter=1, gradient=1),
).problem()
HOSTED = Pipeline(
    num_ranks=1,
    num_microbatches=1,
    state_offload=StateOffload(
        stages=(0,), offload=1, step=1, reload=1, weight=1, gradient=1, state=1
    ),
).problem()
# What runs beside computation stands twice: where it begins and where it ends.
_FORWARD = ["0UNSHARD", "0UNSHARD", "0F0", "0RESHARD"]
_BACKWARD = ["0UNSHARD.1", "0UNSHARD.1", "0B0", "0RESHARD.1"]
ONE = [*_FORWARD, *_BACKWARD, "0REDUCE_GRAD.1", "0REDUCE_GRAD.1", "0STEP"]
HOST = ["0RELOAD0", "0RELOAD0", "0F0", "0B0", "0OFFLOAD0", "0OFFLOAD0", "0STEP", "0STEP"]


def test_the_tasks_are_those_of_the_problems() -> None:
    assert {str(action) for action in GATHERED.actions} == {*ONE} - {"0STEP"}
    assert {str(action) for action in HOSTED.actions} == {*HOST}


@pytest.mark.parametrize("has_barrier", [False, True])
def test_right_trainings_hold(has_barrier: bool) -> None:
    assert judged(GATHERED, [[ONE]] * 3, has_barrier=has_barrier).ok
    assert judged(HOSTED, [[HOST]] * 3, has_barrier=has_barrier).ok


def test_a_copy_that_is_freed_must_be_gathered_again() -> None:
    needed = "0B0 on rank 0 in pass {} needs version {} of the parameters of stage 0: {}"
    once = without(ONE, "0UNSHARD.1")
    assert said(judged(GATHERED, [[once]])) == needed.format(0, 0, "none is there")
    # Not freed, the first copy serves; in the next pass it is old, and the newer one is used.
    kept = without(once, "0RESHARD", "0RESHARD.1")
    assert judged(GATHERED, [[kept]] * 3).ok
    begun = without(ONE, "0UNSHARD.1")
    begun.insert(4, "0UNSHARD.1")  # begun, and ended after the backward
    begun.insert(6, "0UNSHARD.1")
    assert said(judged(GATHERED, [[begun]])) == needed.format(0, 0, "none is there")


def test_a_copy_is_of_the_version_at_which_its_gathering_began() -> None:
    early = [*ONE[:-1], "0UNSHARD", "0STEP"]  # begun before the STEP, ended in the next pass
    message = said(judged(GATHERED, [[early], [ONE[1:]]]))
    assert message == (
        "0F0 on rank 0 in pass 1 needs version 1 of the parameters of stage 0: it finds version 0"
    )
    after = [*ONE, "0UNSHARD"]
    assert judged(GATHERED, [[after], [ONE[1:]]]).ok


def test_a_step_takes_what_has_been_reduced() -> None:
    lacking = (
        "0STEP on rank 0 in pass 0 needs each contribution of pass 0 to stage 0 once: "
        "it lacks what 0B0 of pass 0 adds"
    )
    assert said(judged(GATHERED, [[without(ONE, "0REDUCE_GRAD.1")]])) == lacking
    unended = [*ONE[:-2], "0STEP", "0REDUCE_GRAD.1"]
    assert said(judged(GATHERED, [[unended]])) == lacking
    # The exchange takes what is summed when it begins.
    early = [text for text in ONE if text != "0B0"]
    early.insert(early.index("0REDUCE_GRAD.1") + 1, "0B0")
    early.remove("0RESHARD.1")
    assert said(judged(GATHERED, [[early]])) == lacking


def test_the_host_steps_with_what_it_was_given() -> None:
    lacking = (
        "0STEP on rank 0 in pass 0 needs each contribution of pass 0 to stage 0 once: "
        "it lacks what 0B0 of pass 0 adds"
    )
    assert said(judged(HOSTED, [[without(HOST, "0OFFLOAD0")]])) == lacking
    unended = [*HOST[:5], "0STEP", "0STEP", "0OFFLOAD0"]
    assert said(judged(HOSTED, [[unended]])) == lacking


def test_what_the_host_has_must_come_back() -> None:
    needed = "0F0 on rank 0 in pass {} needs version {} of the parameters of stage 0: {}"
    never = without(HOST, "0RELOAD0")
    assert said(judged(HOSTED, [[never]])) == needed.format(0, 0, "none is there")
    assert said(judged(HOSTED, [[HOST], [never]])) == needed.format(1, 1, "none is there")
    early = [*HOST[:-2], "0RELOAD0", *HOST[-2:]]  # begun before the STEP
    assert said(judged(HOSTED, [[early], [HOST[1:]]])) == needed.format(1, 1, "it finds version 0")
    assert judged(HOSTED, [[[*HOST, "0RELOAD0"]], [HOST[1:]]]).ok
    again = [*HOST[:2], *HOST[2:4], "0OFFLOAD0", "0OFFLOAD0", "0F0", *HOST[6:]]
    assert said(judged(HOSTED, [[again]])) == needed.format(0, 0, "none is there")


def test_a_stage_of_a_state_that_stays_steps_once() -> None:
    problem = of_family("gpipe", p=1, m=1).problem
    program = Program.from_orders([["0F0", "0B0", "0STEP", "0STEP"]])
    assert not check_training(problem, [program]).ok
    assert check_training(problem, [Program.from_orders([["0F0", "0B0", "0STEP"]])]).ok
