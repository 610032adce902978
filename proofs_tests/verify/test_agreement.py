"""Rule 6 against the token simulator, on every family's programs and their mutants.

``BUBBLEPROOF_SWEEP=full`` judges more than 5000 mutants, otherwise one by each operator on one
schedule of each family (of small programs each fourth mutant).
``proofs_tests.agreement_page`` writes the counts of such a sweep.
"""

from __future__ import annotations

import importlib

import pytest

from bubbleproof.theory.families import families
from bubbleproof.verify.communication import evict_load
from proofs_tests.cases import Case, all_family_cases
from proofs_tests.sized import sized
from proofs_tests.verify.agreement import (
    RUNS,
    STRICTER,
    TRANSFERS,
    Tally,
    cases,
    evicting,
    orders_of,
    tally_of,
)
from proofs_tests.verify.program_mutations import PROGRAM_OPERATORS, TRANSFER_OPERATORS
from proofs_tests.verify.program_mutations.operators import RECVS, SENDS
from proofs_tests.verify.token_simulator import SEMANTICS, Wiring

TWO_NEIGHBOURS = ("tpipe", "trecomp-interleaved")  # ranks that talk to two others in each step
PER_FAMILY, TOTAL = sized((1, 1), full=(3, 6000))
AGAIN = sized(1, full=RUNS)


@pytest.fixture(scope="module")
def tally() -> Tally:
    one, larger, over_several_links = evicting()
    few = {TRANSFERS: [one, over_several_links]}
    chosen = cases(PER_FAMILY) | sized(few, full={})
    found = tally_of(chosen, TOTAL, runs=AGAIN, every=sized(4, full=1))
    # Only with more microbatches can posts and waits be moved far enough.
    each = sized(4, full=12) * len(TRANSFER_OPERATORS)
    operators = TRANSFER_OPERATORS
    return tally_of({TRANSFERS: [larger]}, each, operators=operators, runs=AGAIN, onto=found)


@pytest.mark.sweep
def test_static_verdict_and_simulation_agree_on_every_program(tally: Tally) -> None:
    assert tally.disagreements == []
    assert tally.programs >= sized(300, full=5000)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_each_semantics_sees_both_verdicts(tally: Tally, semantics: str) -> None:
    # Matched programs that get stuck are true deadlocks, not mere mistakes in the messages.
    assert tally.verdicts[semantics, "matched", "ok"] > 0
    assert tally.verdicts[semantics, "matched", "not ok"] > 0
    assert tally.verdicts[semantics, "unmatched", "not ok"] > 0
    assert tally.verdicts[semantics, "unmatched", "ok"] == 0


def test_each_stricter_semantics_refuses_more(tally: Tally) -> None:
    # That none lets through what a weaker one refuses is among the disagreements.
    across = [each for each in PROGRAM_OPERATORS if each.name == "transfers_across_pairs"]
    made = all_family_cases((3,), (4,), 1)
    chosen = {name: found for name, found in made.items() if name in TWO_NEIGHBOURS}
    moved = tally_of(chosen, sized(40, full=6000), operators=across, runs=AGAIN)
    assert moved.disagreements == []
    ok = [tally.verdicts[name, "matched", "ok"] for name in STRICTER]
    ok = [
        count + moved.verdicts[name, "matched", "ok"]
        for count, name in zip(ok, STRICTER, strict=True)
    ]
    assert ok == sorted(ok, reverse=True)
    assert len({*ok}) == len(STRICTER)


def test_program_operators_are_as_harmful_as_they_say(tally: Tally) -> None:
    for operator in PROGRAM_OPERATORS + TRANSFER_OPERATORS:
        seen = {outcome for outcome in ("ok", "not ok") if tally.operators[operator.name, outcome]}
        expected = {"wrong": {"not ok"}, "harmless": {"ok"}, "either": {"ok", "not ok"}}
        assert seen == expected[operator.nature], operator.name


def turns_around(case: Case) -> bool:
    """Whether a rank both sends and receives, else a task stands between any two transfers.

    Two ranks on which no backward runs send one way alone: F, send, F, send; receive, F, receive.
    """
    orders = orders_of(case, Wiring.of(case.problem))
    kinds = [{action.kind for action in order} for order in orders]
    return any(found & {*SENDS} and found & {*RECVS} for found in kinds)


def test_every_program_operator_mutates_every_family(tally: Tally) -> None:
    assert families().keys() <= cases(PER_FAMILY).keys()
    wanted = [
        (op.name, family)
        for op in PROGRAM_OPERATORS
        for family, members in cases(PER_FAMILY).items()
        if op.name != "swapped_neighbouring_transfers" or any(map(turns_around, members))
    ]
    wanted += [(operator.name, TRANSFERS) for operator in TRANSFER_OPERATORS]
    assert [pair for pair in wanted if not tally.families[pair]] == []


# Each part of the static check taken away must be noticed. ``_inputs``' local ones alone are not: a
# rank whose own order is wrong also lacks the message that the wrong order keeps from being sent.
@pytest.mark.parametrize(
    ("owner", "part"),
    [
        ("steps.Steps", "_crossed_channels"),
        ("steps.Steps", "_misplaced"),
        ("deadlock._Waits", "_program_order"),
        ("deadlock._Waits", "_inputs"),
        ("deadlock._Waits", "_stream_order"),
        ("deadlock._Waits", "_starts"),
        ("deadlock._Waits", "fault"),
    ],
)
def test_a_check_without_one_part_is_found_out(
    owner: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _, owned = owner.partition(".")
    module = importlib.import_module(f"bubbleproof.verify.communication.{name}")
    monkeypatch.setattr(getattr(module, owned), part, lambda *_, **__: [])
    crippled = tally_of(all_family_cases((3,), (3,), 1), 300, to_the_first=True, runs=1)
    assert crippled.disagreements != []


# What is taken away shows in programs whose transfers were moved, if in few of them.
@pytest.mark.parametrize(
    ("part", "nothing"),
    [
        ("_placed", ()),
        ("_in_order", ()),
        ("edges", []),
        ("ends", ()),
        ("merged", {}),
        ("posts", set()),
    ],
)
def test_a_check_without_one_part_on_transfers_is_found_out(
    part: str, nothing: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evict_load.PeerTransfers, part, lambda *_, **__: nothing)
    moved = [each for each in TRANSFER_OPERATORS if each.name == "transfers_moved"]
    small = {TRANSFERS: evicting()[:1]}
    crippled = tally_of(small, 900, operators=moved, to_the_first=True, runs=1)
    assert crippled.disagreements != []
