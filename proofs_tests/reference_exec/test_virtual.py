"""The virtual driver stalls exactly where ``verify`` sees a deadlock, and checks every tag."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.reference_exec.broken import BrokenProgram, MessageMismatch
from bubbleproof.reference_exec.drivers.virtual import ReplayStalled, run_virtual
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.theory.model.actions import Bools, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.pytorch_runtime import NEWEST, completed
from bubbleproof.verify.communication.matching import check_communication
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from proofs_tests.reference_exec.cases import (
    RECEIVER,
    SENDER,
    SWAPPED_RECEIVES,
    SWAPPED_SENDS,
    TINY,
    Case,
    edited,
    family_case,
    lazy,
    random_case,
    shuffled,
)
from proofs_tests.sized import sized

ALL = USUAL
TABLE = Path(__file__).parents[2] / "examples" / "ci" / "launch-order.csv"
WAVE = Pipeline(num_ranks=2, num_microbatches=3, num_chunks=2, placement="wave")


def test_recv_right_before_use_stalls_1f1b_under_pair_stream_and_says_how() -> None:
    # A known trap of un-batched NCCL: rank 0 queues its SEND of F1 before the RECV of B0 and
    # rank 1 its SEND of B0 before the RECV of F1; one stream per pair lets neither pass.
    case = family_case("1f1b", p=2, m=3)
    plan = case.plan(program=lazy(case))
    run_virtual(plan, semantics=Semantics.BUFFERED)
    with pytest.raises(ReplayStalled) as caught:
        run_virtual(plan, semantics=Semantics.PAIR_STREAM)
    assert "stalled under pair-stream, seed 0" in str(caught.value)
    assert "rank 0: 0B0 waits for 0RECV_B0 with rank 1" in str(caught.value)
    assert "rank 1: 1F1 waits for 1RECV_F1 with rank 0" in str(caught.value)


def test_one_launch_queue_stops_what_a_stream_for_each_pair_lets_run() -> None:
    # PyTorch's LoopedBFS with deferred receives at p=3 v=2 m=6.
    given = read_schedule_input([str(TABLE)])
    assert given.pipeline is not None
    case = Case(
        pipeline=given.pipeline,
        problem=given.problem,
        schedule=given.timed(),
        lowered=given.program,
    )
    plan = case.plan(program=given.program)
    run_virtual(plan, semantics=Semantics.PAIR_STREAM)
    with pytest.raises(ReplayStalled, match="stalled under launch-order"):
        run_virtual(plan, semantics=Semantics.LAUNCH_ORDER)


def test_a_rank_waits_for_what_it_sent() -> None:
    case = family_case("1f1b", p=2, m=2)
    waiting = case.plan(program=completed(case.lowered, NEWEST).take(_without_reductions(case)))
    for semantics in ALL:
        run_virtual(waiting, semantics=semantics)
    early = case.plan(program=edited(case, 0, {"0F0": ["0WAIT_SEND_F0", "0F0"]}))
    with pytest.raises(BrokenProgram, match="0WAIT_SEND_F0 waits for 0SEND_F0, which is not post"):
        run_virtual(early)


def _without_reductions(case: Case) -> Bools:
    whole = completed(case.lowered, NEWEST).actions
    return ~whole.is_kind(Kind.REDUCE_GRAD, Kind.WAIT_REDUCE_GRAD)


def test_swapped_sends_meet_the_wrong_receive() -> None:
    case = family_case("gpipe", p=2, m=2)
    run_virtual(case.plan(program=Program.from_orders([SENDER, RECEIVER])))
    with pytest.raises(MessageMismatch, match="sent 1RECV_F1 where rank 1 expected 1RECV_F0"):
        run_virtual(case.plan(program=Program.from_orders([SWAPPED_SENDS, RECEIVER])))


def test_a_receive_of_the_wrong_microbatch_is_a_mismatch() -> None:
    case = family_case("gpipe", p=2, m=2)
    with pytest.raises(MessageMismatch, match="sent 1RECV_F0 where rank 1 expected 1RECV_F1"):
        run_virtual(case.plan(program=Program.from_orders([SENDER, SWAPPED_RECEIVES])))


@pytest.mark.parametrize("semantics", ALL)
def test_a_dropped_send_stalls_the_receiver(semantics: Semantics) -> None:
    case = family_case("1f1b", p=2, m=2)
    plan = case.plan(program=edited(case, 0, {"0SEND_F1": []}))
    with pytest.raises((ReplayStalled, MessageMismatch, BrokenProgram)):
        run_virtual(plan, semantics=semantics)


@pytest.mark.parametrize("semantics", ALL)
def test_a_message_that_nobody_receives_does_not_end_well(semantics: Semantics) -> None:
    program = Program.from_orders([["0F0", "0SEND_F0"], []])
    plan = family_case("1f1b", p=2, m=1).plan(program=program)
    if semantics is Semantics.BUFFERED:  # the send itself is done; its forward is not
        with pytest.raises(BrokenProgram, match="left over: 0F0 without backward"):
            run_virtual(plan, semantics=semantics)
    else:
        with pytest.raises(ReplayStalled, match="rank 0: 0SEND_F0 waits for 1RECV_F0 with rank 1"):
            run_virtual(plan, semantics=semantics)


def uncounted(plan: ReplayPlan) -> ReplayPlan:
    return replace(plan, counts_bytes=False, counts_work=False)


def runs(plan: ReplayPlan, semantics: Semantics, seed: int) -> bool:
    try:
        run_virtual(plan, seed=seed, semantics=semantics)
    except (ReplayStalled, MessageMismatch, BrokenProgram):
        return False
    return True


def test_running_and_verifying_agree_on_moved_messages() -> None:
    choice = random.Random(7)
    cases = [
        family_case("1f1b", p=3, m=3),
        family_case("zb-h1", p=2, m=3),
        family_case("interleaved", p=2, m=2, v=2),
        random_case(WAVE, 1),
    ]
    outcomes = dict.fromkeys([(s, ok) for s in ALL for ok in (True, False)], 0)
    told_apart = 0
    for case in cases:
        problem = case.problem
        for seed in range(sized(8, full=15)):
            program = shuffled(case, choice)
            plan, seen = uncounted(case.plan(program=program)), set()
            for semantics in ALL:
                verdict = check_communication(problem, program, (semantics,))
                assert runs(plan, semantics, seed) == verdict.ok, f"{semantics.value}: {verdict}"
                outcomes[semantics, verdict.ok] += 1
                seen.add(verdict.ok)
            told_apart += len(seen) - 1
    # each semantics let some of the programs pass and some not, or the test shows nothing
    assert min(outcomes.values()) >= sized(3, full=5), outcomes
    assert told_apart >= 5  # and some programs tell the semantics apart


def test_the_seed_picks_the_interleaving_and_nothing_else() -> None:
    case = family_case("zb-h1", p=3, m=4)
    ends: set[tuple[str, ...]] = set()
    curves = set()
    for seed in range(6):
        said: list[str] = []
        results = run_virtual(case.plan(), seed=seed, progress=said.append)
        ends.add(tuple(said))
        curves.add(tuple(result.live_bytes for result in results))
    assert len(ends) > 1
    assert len(curves) == 1


def test_one_seed_gives_one_run() -> None:
    plan = family_case("1f1b", p=3, m=3).plan(replace(TINY, seed=5))
    said: list[list[str]] = [[], []]
    for log in said:
        run_virtual(plan, seed=11, progress=log.append)
    assert said[0] == said[1]
