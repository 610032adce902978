"""Rule 6 against SPIN, where it is installed: some tables and mutants here, all in ``spin.md``.

``BUBBLEPROOF_SWEEP=full`` searches 2000 mutants. ``proofs_tests.spin_page`` writes the counts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify import Semantics
from proofs_tests.sized import sized
from proofs_tests.verify import spin_agreement
from proofs_tests.verify.promela_model import numbers_of
from proofs_tests.verify.spin_search import Searched, built, missing, searched
from proofs_tests.verify.token_simulator import Wiring

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "searched")


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("spin"))


def found(search: Path, semantics: str, *orders: str) -> Searched:
    problem = member("1f1b", p=2, m=2).problem
    rows = [[Action.parse(text) for text in order.split()] for order in orders]
    return searched(search, Wiring.of(problem), rows, semantics)


UP = "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1"


def test_a_lowered_program_ends_in_every_interleaving(search: Path) -> None:
    made = member("1f1b", p=2, m=2)
    orders = lower(made.problem, made.schedule).orders(2)
    for semantics in Semantics:
        if semantics is Semantics.WHOLE_BATCHES:
            continue
        whole = searched(search, Wiring.of(made.problem), orders, semantics)
        assert (whole.is_stuck, whole.is_crossed, whole.is_whole) == (False, False, True)


def test_two_sends_that_meet_are_found(search: Path) -> None:
    # Rank 0 sends F1, rank 1 sends B0, and each receives only behind that.
    down = "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"
    assert found(search, "rendezvous", UP, down).is_stuck
    assert found(search, "pair-stream", UP, down).is_stuck
    assert not found(search, "directed-edge", UP, down).is_stuck
    assert not found(search, "buffered", UP, down).is_stuck


def test_crossed_messages_are_found(search: Path) -> None:
    down = "1RECV_F1 1F1 1RECV_F0 1F0 1B0 1SEND_B0 1B1 1SEND_B1"
    assert found(search, "buffered", UP, down).is_crossed


def test_the_numbers_name_what_a_send_waits_for() -> None:
    # Rank 0's second SEND (operation 3) stands behind the first (1) in the stream of the pair.
    problem = member("1f1b", p=2, m=2).problem
    down = "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"
    rows = [[Action.parse(text) for text in order.split()] for order in (UP, down)]
    lines = numbers_of(Wiring.of(problem), rows, "pair-stream").splitlines()
    # SEND; channel 0, number 1; message 1; one operation that has ended, 1; nothing reached; no
    # communicator made; the second that its rank launches.
    assert lines[1 + 3] == "0 0 1 1 1 1 0 -1 1"


@pytest.mark.sweep
def test_rule_6_and_spin_agree_on_mutants(search: Path) -> None:
    tally = spin_agreement.mutants_compared(search, sized(30, full=2000))
    assert tally.disagreements == []
    assert tally.verdicts["pair-stream", "stuck"] > 0
    assert tally.verdicts["pair-stream", "free"] > 0


def test_a_rule_that_is_wrong_is_found_out(search: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Negative control: what lets everything through disagrees within some mutants.
    monkeypatch.setattr("bubbleproof.verify.communication.deadlock.deadlock", lambda *_: [])
    assert spin_agreement.mutants_compared(search, 5).disagreements != []
