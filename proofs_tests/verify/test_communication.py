"""Rule 6 by hand: what it says of programs with one mistake each, and of every lowered one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bubbleproof.formats import infer_pipeline, read_table
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action, ActionTable
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower, lower_with_moments
from bubbleproof.theory.pipelines.programs.messages import as_kind, messages
from bubbleproof.theory.pipelines.programs.pytorch_runtime import WAIT_OF
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify import USUAL, Semantics, check, check_communication, compute_part
from bubbleproof.verify.communication import deadlock
from proofs_tests.cases import Case, all_family_cases, overlapped, wave_overlapped
from proofs_tests.sized import sized
from proofs_tests.verify.program_mutations import Orders


def test_an_overlapped_pair_sends_each_tensor_once() -> None:
    case = wave_overlapped()
    sends = [str(message.send) for message in messages(case.problem)]
    # Stages 0,3 on rank 0 and 1,2 on rank 1: F crosses 0->1 and 2->3, B crosses 3->2 and 1->0, for
    # two microbatches.
    expected = [
        f"{g}SEND_{d}{j}" for g, d in ((0, "F"), (2, "F"), (3, "B"), (1, "B")) for j in (0, 1)
    ]
    assert sorted(sends) == sorted(expected)


def with_links_of(case: Case, computations: Program) -> Program:
    """The computations with the schedule's rows on links and engines, which are not lowered."""
    program = case.schedule.program
    others = program.resource >= case.problem.num_ranks
    return Program(
        actions=ActionTable.concatenate([computations.actions, program.actions.take(others)]),
        resource=np.concatenate([computations.resource, program.resource[others]]),
    )


def test_every_lowered_program_holds_its_schedule_and_runs_under_all_semantics() -> None:
    published = all_family_cases((2, 3, 4), (2, 3, 4), 2).values()
    for case in [*(case for made in published for case in made), overlapped(), wave_overlapped()]:
        program = lower(case.problem, case.schedule)
        verdict = check_communication(case.problem, program)
        assert verdict.ok, f"{case.name}\n{verdict}"
        assert [f.detail for f in verdict.decisions] == list(USUAL)
        whole = with_links_of(case, compute_part(program))
        size = len(case.problem.resources)
        assert whole.orders(size) == case.schedule.program.orders(size)
        assert check(case.problem, left_shift(case.problem, whole)).ok


def lowered(p: int, m: int) -> tuple[Problem, Orders]:
    made = member("1f1b", p=p, m=m)
    return made.problem, lower(made.problem, made.schedule).orders(p)


def messages_of(problem: Problem, orders: Orders, *semantics: Semantics) -> list[str]:
    program = Program.from_orders(orders)
    verdict = check_communication(problem, program, semantics or USUAL)
    return [violation.message for violation in verdict.violations]


def texts(*orders: str) -> Orders:
    return [[Action.parse(text) for text in order.split()] for order in orders]


def test_a_dropped_and_a_doubled_receive_are_counted() -> None:
    problem, orders = lowered(2, 1)
    # 1F1B with one microbatch: rank 0 F, send, receive, B; rank 1 receive, F, B, send.
    assert orders == texts("0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0")
    fewer = texts("0F0 0SEND_F0 0RECV_B0 0B0", "1F0 1B0 1SEND_B0")
    more = texts("0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1RECV_F0 1F0 1B0 1SEND_B0")
    assert messages_of(problem, fewer) == ["1RECV_F0 stands 0 times on rank 1, must stand once"]
    assert messages_of(problem, more) == ["1RECV_F0 stands 2 times on rank 1, must stand once"]


def test_a_foreign_send_is_named() -> None:
    problem, _ = lowered(2, 1)
    orders = texts("0F0 0SEND_F0 0SEND_F7 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0")
    sentences = messages_of(problem, orders)
    assert sentences == ["0SEND_F7 on rank 0 belongs to no message of the problem"]


def test_send_before_production_and_receive_after_use_are_named() -> None:
    problem, _ = lowered(2, 1)
    orders = texts("0SEND_F0 0F0 0RECV_B0 0B0", "1F0 1RECV_F0 1B0 1SEND_B0")
    assert messages_of(problem, orders) == [
        "0SEND_F0 is sent before 0F0 has made it",
        "1F0 runs before 1RECV_F0 has received its input",
    ]


def test_crossed_messages_of_one_channel_are_named() -> None:
    problem, _ = lowered(2, 2)
    orders = texts(
        "0F0 0F1 0SEND_F1 0SEND_F0 0RECV_B0 0B0 0RECV_B1 0B1",
        "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1",
    )
    assert messages_of(problem, orders) == [
        "message 0 from rank 0 to rank 1 is sent as 0SEND_F1 but received as 1RECV_F0"
    ]


def test_two_ranks_that_both_send_first_block_each_other_only_without_buffers() -> None:
    # Rank 0 sends F1 while rank 1 sends B0, and each receives only afterwards: fine with buffers,
    # a deadlock where SEND blocks and where both directions share a stream.
    problem, _ = lowered(2, 2)
    orders = texts(
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
        "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1",
    )
    assert messages_of(problem, orders, Semantics.BUFFERED) == []
    for semantics in (Semantics.RENDEZVOUS, Semantics.PAIR_STREAM, Semantics.RANK_STREAM):
        (sentence,) = messages_of(problem, orders, semantics)
        assert sentence.startswith(f"deadlock under {semantics.value}: ")
        assert "0SEND_F1 on rank 0 (with 1RECV_F1 on rank 1)" in sentence


def test_the_pair_stream_deadlocks_where_rendezvous_per_direction_would_not() -> None:
    # The known trap of un-batched isend/irecv: receives right before use deadlock plain 1F1B.
    problem, orders = lowered(4, 6)
    for order in orders:
        for recv in [a for a in order if a.kind.name.startswith("RECV")]:
            order.remove(recv)
            fed = next(
                i
                for i, a in enumerate(order)
                if (a.stage, a.microbatch) == (recv.stage, recv.microbatch)
                and a.kind.name == recv.kind.name[-1]
            )
            order.insert(fed, recv)
    assert messages_of(problem, orders, Semantics.BUFFERED) == []
    (sentence,) = messages_of(problem, orders, Semantics.PAIR_STREAM)
    assert sentence.startswith("deadlock under pair-stream: ")


# Waits for SENDs, as PyTorch 2.15 has them.

WAITING = (
    "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0WAIT_SEND_F0 0RECV_B1 0B1 0WAIT_SEND_F1",
    "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1WAIT_SEND_B0 1WAIT_SEND_B1",
)


def test_waits_behind_what_shows_that_the_message_came_hold_under_all_semantics() -> None:
    problem, _ = lowered(2, 2)
    assert messages_of(problem, texts(*WAITING)) == []


def test_a_wait_that_stands_too_early_is_a_deadlock_where_sends_last() -> None:
    # Rank 0 waits until F1 has been received before it takes B0 in; rank 1 until B0 has been
    # received before it takes F1 in. Each receives only after its wait.
    problem, _ = lowered(2, 2)
    first = WAITING[0].replace(" 0WAIT_SEND_F1", "").replace("0SEND_F1", "0SEND_F1 0WAIT_SEND_F1")
    second = "1RECV_F0 1F0 1B0 1SEND_B0 1WAIT_SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1WAIT_SEND_B1"
    orders = texts(first, second)
    assert messages_of(problem, orders, Semantics.BUFFERED) == []
    for semantics in set(USUAL) - {Semantics.BUFFERED}:
        (sentence,) = messages_of(problem, orders, semantics)
        assert sentence.startswith(f"deadlock under {semantics.value}: ")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (" 0WAIT_SEND_F1", "", "0SEND_F1 on rank 0 is never waited for, where other SENDs are"),
        (
            "0WAIT_SEND_F1",
            "0WAIT_SEND_F1 0WAIT_SEND_F1",
            "0WAIT_SEND_F1 stands 2 times on rank 0, must stand once",
        ),
        (
            "0WAIT_SEND_F1",
            "0WAIT_SEND_F7",
            "0WAIT_SEND_F7 on rank 0 waits for 0SEND_F7, which is not sent there",
        ),
        (
            "0F1 0SEND_F1 0RECV_B0 0B0 0WAIT_SEND_F0 0RECV_B1 0B1 0WAIT_SEND_F1",
            "0WAIT_SEND_F1 0F1 0SEND_F1 0RECV_B0 0B0 0WAIT_SEND_F0 0RECV_B1 0B1",
            "0WAIT_SEND_F1 on rank 0 waits for 0SEND_F1 before it is posted",
        ),
    ],
)
def test_waits_with_a_mistake_are_named(old: str, new: str, sentence: str) -> None:
    problem, _ = lowered(2, 2)
    found, *_ = messages_of(problem, texts(WAITING[0].replace(old, new), WAITING[1]))
    assert found == sentence


# EVICT and LOAD in the programs of their ranks. 1F1B on two ranks, 0F0's activations on rank 1.

HOME = "0F0 0SEND_F0 0EVICT0 0EVICT0 0LOAD0 0RECV_B0 0LOAD0 0B0"
GUEST = "1RECV_F0 0EVICT0 1F0 0EVICT0 0LOAD0 1B0 1SEND_B0 0LOAD0"


def evicting(home: str, guest: str, *semantics: Semantics) -> list[str]:
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=1,
        evictions=(Eviction(stage=0, microbatch=0, source=0, target=1, duration=1),),
    )
    return messages_of(pipeline.problem(), texts(home, guest), *semantics)


def test_transfers_in_the_programs_of_ranks_hold() -> None:
    assert evicting(HOME, GUEST) == []
    computed = "0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0"
    assert evicting(*computed) == []  # where they are left to their link


@pytest.mark.parametrize(
    ("home", "guest", "sentence"),
    [
        (HOME.replace("0EVICT0 0EVICT0", "0EVICT0"), GUEST, "0EVICT0 stands 1 times on rank 0, mu"),
        (HOME, GUEST.replace(" 0LOAD0", ""), "0LOAD0 stands on rank 0, must stand on 0 and one mo"),
        (
            HOME.replace("0LOAD0 ", ""),
            GUEST.replace(" 0LOAD0", ""),
            "0LOAD0 stands on no rank, must stand twice on two",
        ),
        (f"0EVICT0 {HOME.replace('0EVICT0 ', '', 1)}", GUEST, "0EVICT0 is sent before 0F0 has run"),
        (
            HOME.replace("0LOAD0 0B0", "0B0 0LOAD0"),
            GUEST,
            "0B0 runs before 0LOAD0 has brought its activations back",
        ),
        (
            HOME,
            "1RECV_F0 0EVICT0 0LOAD0 0EVICT0 1F0 1B0 1SEND_B0 0LOAD0",
            "0LOAD0 is sent before 0EVICT0 has arrived on rank 1",
        ),
        (f"{HOME} 0EVICT1 0EVICT1", GUEST, "0EVICT1 belongs to no transfer of the problem"),
        (
            f"{HOME} 1EVICT0 1EVICT0",
            f"{GUEST} 1EVICT0 1EVICT0",
            "1EVICT0 belongs to no transfer of the problem",
        ),
    ],
)
def test_transfers_with_a_mistake_are_named(home: str, guest: str, sentence: str) -> None:
    (found, *_) = evicting(home, guest)
    assert found.startswith(sentence)


def test_a_transfer_and_a_message_that_wait_for_each_other() -> None:
    # Rank 0 waits until 0EVICT0 has left before it sends 0F0's output, which rank 1 waits for
    # before it takes 0EVICT0 in: a deadlock whatever SEND and RECV wait for.
    home = "0F0 0EVICT0 0EVICT0 0SEND_F0 0LOAD0 0RECV_B0 0LOAD0 0B0"
    guest = "1RECV_F0 1F0 0EVICT0 0EVICT0 1B0 1SEND_B0 0LOAD0 0LOAD0"
    for semantics in USUAL:
        (sentence,) = evicting(home, guest, semantics)
        assert sentence.startswith(f"deadlock under {semantics.value}: ")
        assert "0EVICT0 on rank 0 (with 0EVICT0 on rank 1)" in sentence
        assert "0SEND_F0 on rank 0" in sentence
    assert evicting(home, guest.replace("1F0 0EVICT0", "0EVICT0 1F0"), Semantics.BUFFERED) == []


def test_transfers_of_one_link_are_one_stream() -> None:
    # Rank 0 posts its LOAD before the EVICT, rank 1 after it: each waits for the other's first.
    home = HOME.replace("0EVICT0 0EVICT0 0LOAD0", "0LOAD0 0EVICT0 0EVICT0")
    (sentence,) = evicting(home, GUEST, Semantics.BUFFERED)
    assert sentence.startswith("deadlock under buffered: ")


def test_crossed_transfers_of_one_link_are_named() -> None:
    evictions = tuple(
        Eviction(stage=0, microbatch=j, source=0, target=1, duration=1) for j in (0, 1)
    )
    problem = Pipeline(num_ranks=2, num_microbatches=2, evictions=evictions).problem()
    home = "0F0 0SEND_F0 0EVICT0 0F1 0SEND_F1 0EVICT1 0EVICT0 0EVICT1 0LOAD0 0LOAD0 0LOAD1 0LOAD1"
    guest = "0EVICT0 0EVICT1 0EVICT0 0EVICT1 0LOAD0 0LOAD1 0LOAD0 0LOAD1"
    home += " 0RECV_B0 0B0 0RECV_B1 0B1"
    work = " 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1"
    assert messages_of(problem, texts(home, guest + work), Semantics.BUFFERED) == []
    other = guest.replace("0EVICT0 0EVICT1", "0EVICT1 0EVICT0", 1)
    assert messages_of(problem, texts(home, other + work)) == [
        "transfer 0 from rank 0 to rank 1 is sent as 0EVICT0 but received as 0EVICT1"
    ]


def test_a_wait_right_behind_its_send_stops_a_table_that_runs_without() -> None:
    # PyTorch's LoopedBFS with deferred receives: a stream for each pair lets it run.
    table = read_table(Path(__file__).parents[2] / "examples" / "ci" / "launch-order.csv").program
    problem = infer_pipeline(compute_part(table)).problem()
    orders = table.orders(3)
    assert messages_of(problem, orders, Semantics.PAIR_STREAM) == []
    for order in orders:
        for send in [action for action in order if action.kind in WAIT_OF]:
            order.insert(order.index(send) + 1, as_kind(send, WAIT_OF[send.kind]))
    assert messages_of(problem, orders, Semantics.BUFFERED) == []
    (sentence,) = messages_of(problem, orders, Semantics.PAIR_STREAM)
    assert "WAIT_SEND_F" in sentence


def test_a_hint_of_moments_changes_no_decision() -> None:
    """Right and swapped programs, with moments that are right, drawn, or those of other rows."""
    random, seen = np.random.default_rng(3), set()
    for p, m in ((2, 3), (3, 4), (4, 4)):
        made = member("1f1b", p=p, m=m)
        program, moment = lower_with_moments(made.problem, made.schedule)
        for _ in range(sized(10, full=2_000)):
            order = np.arange(len(program))
            for row in random.integers(0, len(order) - 1, size=random.integers(0, 3)):
                if program.resource[row] == program.resource[row + 1]:
                    order[[row, row + 1]] = order[[row + 1, row]]
            swapped = program.take(order)
            hints = moment, moment[order], random.permutation(moment), np.sort(moment)
            plain = check_communication(made.problem, swapped, tuple(Semantics))
            for hint in hints:
                told = check_communication(made.problem, swapped, tuple(Semantics), moment=hint)
                assert told.decisions == plain.decisions
            seen.add(plain.ok)
    assert seen == {True, False}


def test_a_right_hint_spares_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def searched(*_: object) -> list[int]:
        raise AssertionError("searched")

    made = member("interleaved", p=4, m=8, v=2)
    program, moment = lower_with_moments(made.problem, made.schedule)
    monkeypatch.setattr(deadlock, "find_cycle", searched)
    assert check_communication(made.problem, program, moment=moment).ok
    with pytest.raises(AssertionError, match="searched"):
        check_communication(made.problem, program)
