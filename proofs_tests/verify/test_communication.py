"""Rule 6 against the token simulator, on every family's lowered programs and their mutants."""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

from bubbleproof.theory.actions import Action, ActionTable
from bubbleproof.theory.families import families, member
from bubbleproof.theory.lowering import lower
from bubbleproof.theory.messages import messages
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program
from bubbleproof.theory.timing import left_shift
from bubbleproof.verify import Semantics, check, check_communication, compute_part
from proofs_tests.cases import Case, all_family_cases, overlapped
from proofs_tests.verify.program_mutations import PROGRAM_OPERATORS, Orders, mutate
from proofs_tests.verify.token_simulator import SEMANTICS, Wiring, simulate

RUNS = 2
TOTAL = 2400


@dataclass(slots=True, kw_only=True)
class Tally:
    """Programs judged, outcomes by semantics and by operator, and disagreements."""

    programs: int = 0
    verdicts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    operators: Counter[tuple[str, str]] = field(default_factory=Counter)
    families: Counter[tuple[str, str]] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)


def wave_overlapped() -> Case:
    """Two ranks in a V of four stages; an F and a B cross from rank 0 to rank 1 as one pair."""
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=2,
        num_chunks=2,
        placement="wave",
        overlaps=(((0, 1), (3, 0)), ((1, 1), (2, 0))),
    )
    orders = [
        ["0F0", "3F0", "(0F1;3B0)OVERLAP_F_B", "0B0", "3F1", "3B1", "0B1"],
        ["1F0", "2F0", "(1F1;2B0)OVERLAP_F_B", "1B0", "2F1", "2B1", "1B1"],
    ]
    problem = pipeline.problem()
    schedule = left_shift(problem, Program.from_orders(orders))
    return Case(name="wave overlapped", problem=problem, schedule=schedule)


def cases() -> dict[str, list[Case]]:
    per_family = max(2, 15 // len(families()))
    extra = {"overlapped": [overlapped()], "wave overlapped": [wave_overlapped()]}
    return {**all_family_cases((2, 3, 4), (2, 3, 4), per_family), **extra}


def static_verdict(problem: Problem, orders: Orders) -> tuple[dict[str, bool], bool]:
    """Whether each semantics is free of faults, and whether all messages match."""
    verdict = check_communication(problem, Program.from_orders(orders))
    by_name = {finding.detail: finding.ok for finding in verdict.findings}
    sentences = [violation.message for violation in verdict.violations]
    return by_name, all(sentence.startswith("deadlock under") for sentence in sentences)


def compare(tally: Tally, case: Case, wiring: Wiring, orders: Orders, name: str) -> None:
    """Judge one program both ways; seeds differ so that interleavings do."""
    is_sound, is_matched = static_verdict(case.problem, orders)
    tally.programs += 1
    for semantics in SEMANTICS:
        seen = {simulate(wiring, orders, semantics, seed) for seed in range(RUNS)}
        outcomes = {verdict == "ok" for verdict in seen}
        allowed = {"ok", "stuck"} if is_matched else seen - {"ok"}
        if outcomes != {is_sound[semantics]} or not seen <= allowed:
            tally.disagreements.append(f"{name} on {case.name}, {semantics}: {seen}, {is_sound}")
        kind = "matched" if is_matched else "unmatched"
        tally.verdicts[semantics, kind, "ok" if outcomes == {True} else "not ok"] += 1
        tally.operators[name, "ok" if outcomes == {True} else "not ok"] += 1


def tally_of(chosen: dict[str, list[Case]], total: int) -> Tally:
    """Judge at least ``total`` mutants, equally many by each operator on each case."""
    result = Tally()
    members = [(family, case) for family, found in chosen.items() for case in found]
    each = -(-total // (len(members) * len(PROGRAM_OPERATORS)))
    for family, case in members:
        wiring = Wiring.of(case.problem)
        orders = lower(case.problem, case.schedule).orders(case.problem.num_ranks)
        for operator in PROGRAM_OPERATORS:
            for number in range(each):
                seed = f"{case.name} {operator.name} {number}"
                mutant = mutate(operator, seed, wiring, orders)
                if mutant is not None:
                    compare(result, case, wiring, mutant, operator.name)
                    result.families[operator.name, family] += 1
    return result


@pytest.fixture(scope="module")
def tally() -> Tally:
    return tally_of(cases(), TOTAL)


def test_static_verdict_and_simulation_agree_on_every_program(tally: Tally) -> None:
    assert tally.disagreements == []
    assert tally.programs >= 2000


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_each_semantics_sees_both_verdicts(tally: Tally, semantics: str) -> None:
    # Matched programs that get stuck are true deadlocks, not mere mistakes in the messages.
    assert tally.verdicts[semantics, "matched", "ok"] > 0
    assert tally.verdicts[semantics, "matched", "not ok"] > 0
    assert tally.verdicts[semantics, "unmatched", "not ok"] > 0
    assert tally.verdicts[semantics, "unmatched", "ok"] == 0


def test_program_operators_are_as_harmful_as_they_say(tally: Tally) -> None:
    for operator in PROGRAM_OPERATORS:
        seen = {outcome for outcome in ("ok", "not ok") if tally.operators[operator.name, outcome]}
        expected = {"wrong": {"not ok"}, "harmless": {"ok"}, "either": {"ok", "not ok"}}
        assert seen == expected[operator.nature], operator.name


def test_every_program_operator_mutates_every_family(tally: Tally) -> None:
    barren = [
        (operator.name, family)
        for operator in PROGRAM_OPERATORS
        for family in cases()
        if not tally.families[operator.name, family]
    ]
    assert barren == []


# Each part of the static check taken away must be noticed. ``_local_inputs`` alone is not: a rank
# whose own order is wrong also lacks the message that the wrong order keeps from being sent.
@pytest.mark.parametrize(
    "part", ["_crossed_channels", "_ends", "_program_order", "_stream_order", "deadlock"]
)
def test_a_check_without_one_part_is_found_out(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("bubbleproof.verify.communication")
    monkeypatch.setattr(module._Steps, part, lambda *_, **__: [])
    crippled = tally_of(all_family_cases((3,), (3,), 1), 300)
    assert crippled.disagreements != []


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
    for case in [case for members in cases().values() for case in members]:
        program = lower(case.problem, case.schedule)
        verdict = check_communication(case.problem, program)
        assert verdict.ok, f"{case.name}\n{verdict}"
        assert [f.detail for f in verdict.findings] == list(SEMANTICS)
        whole = with_links_of(case, compute_part(program))
        size = len(case.problem.resources)
        assert whole.orders(size) == case.schedule.program.orders(size)
        assert check(case.problem, left_shift(case.problem, whole)).ok


def lowered(p: int, m: int) -> tuple[Problem, Orders]:
    made = member("1f1b", p=p, m=m)
    return made.problem, lower(made.problem, made.schedule).orders(p)


def messages_of(problem: Problem, orders: Orders, *semantics: Semantics) -> list[str]:
    program = Program.from_orders(orders)
    verdict = check_communication(problem, program, semantics or tuple(Semantics))
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
