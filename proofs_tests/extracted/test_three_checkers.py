"""The extracted checker beside the two in Python, in a small form; its page; and what it refuses.

``BUBBLEPROOF_SWEEP=full`` compares families on up to 16 ranks.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proofs_tests.extracted.damaged_certificates import (
    ALL_KINDS,
    DamagedAgreement,
    compare_damaged,
)
from proofs_tests.extracted.damaged_certificates import page as damaged_page
from proofs_tests.extracted.judge import answers, built, missing, needs_judge
from proofs_tests.extracted.three_checkers import (
    Agreement,
    compare,
    family_specimens,
    random_specimens,
    with_mutants,
)
from proofs_tests.extracted.three_checkers_page import main, page
from proofs_tests.extracted.two_certificates import CertificateAgreement, compare_certificates
from proofs_tests.sized import sized

PAGE = Path(__file__).resolve().parents[2] / "records" / "three-checkers.md"
# two tasks on resource 0, of 2 and 3 ticks, the second after the first; a store of at most 1, which
# the first fills at its start and the second empties at its end
PROBLEM = "P 9 2  2 1 0  3 1 0  1 1 2 0  1 0 1 1 2 1 0 1 2 1 -1"
TAKERS = "P 9 2  2 1 0  2 1 0  0  1  0 1 1  6  1 0 2 1 0 -1 1 1 -1  2 0 2 2 0 -1 2 1 -1"
# twice F and B of 2 ticks on one rank, B 4 ticks after F, which holds 1 unit until B ends
QUEUE = "P 9 4  2 1 0  2 1 0  2 1 0  2 1 0  2 1 3 4 2 4 4  1 0 1 {} 4 1 0 1 2 0 1 3 1 -1 4 1 -1"
IN_ORDER = (  # of the queue: groups, what each microbatch does to the store, edges
    "F 1 2 2 1 2 2 3 4  1 0 2 1 2 1 0 2 3 4 0 -1  4 1 2 0 1 3 4 2 4 4 3 4 0"
)
BY_HAND = {
    "S 2  0 1 0  0 2 2": "11111",
    "S 2  0 1 0  0 2 1": "11001",  # too early for its input, and on top of it
    "S 2  0 2 2  0 1 0": "11101",  # right times in a wrong order
    "S 2  0 1 -1  0 2 1": "11011",  # before time 0
    "S 1  0 1 0": "01111",
    "S 2  0 1 0  1 2 2": "00111",
    "S 3  0 1 0  0 2 2  0 3 9": "00111",  # task 3 is none
    "S 2  0 1 9223372036854775808  0 2 9223372036854775810": "11111",  # 2**63 and 2 more
    "S 2  0 1 9223372036854775808  0 2 9223372036854775809": "11001",
    "P 9 1  2 1 0  0  1 0 1 1 1 1 0 2 S 1  0 1 0": "11110",  # two units where one fits
    "P 9 1  2 1 0  0  1 0 0 1 1 0 -1 S 1  0 1 0": "11110",  # below 0
    "P 9 1  2 1 0  0  1 5 1 4 0 S 1  0 1 0": "11110",  # the base load alone
    f"{PROBLEM} C 0 2 1 2 0 0 5": "1",
    "C 0 2 1 2 0 0 6": "0",
    "C 0 1 2 2 0 5": "1",  # task 2 alone, which 2 ticks lead to
    "C 0 1 2 3 0 6": "0",  # a head of 3
    "C 0 2 1 1 0 0 4": "0",  # twice
    "C 1 2 1 2 0 0 5": "0",  # another resource
    "C 0 0 0 0 0": "0",  # no task
    # two tasks that are two microbatches, in order for being alike; of 2 ticks and 3 they are not
    "P 9 2  2 1 0  2 1 0  0  0  F 1 1 2 1 2  0  1 1 2 0  C 0 1 2 2 0 4": "1",
    "P 9 2  2 1 0  3 1 0  0  0  F 1 1 2 1 2  0  1 1 2 0  C 0 1 2 2 0 4": "0",
    "P 9 2  2 1 0  2 1 0  0  0  F 0  0  1 1 2 0  C 0 1 2 2 0 4": "0",  # no group is named
    # each takes 2 units and gives one back at its start, and the other at its end: it holds 1
    f"{TAKERS} F 1 1 2 1 2  1 0 2 1 2 1 0 2 1 2 0 -1  1 1 2 0  C 0 1 2 2 0 4": "1",
    f"{TAKERS} F 1 1 2 1 2  1 0 2 1 2 2 0 2 1 2 0 -2  1 1 2 0  C 0 1 2 2 0 4": "0",  # not 2
    # with room for 1: in the first 6 ticks one F, in the last 6 one B, so 2 + 2 of 8 ticks of work
    f"{QUEUE.format(1)} O 0 0 6 6 16": "1",
    "O 0 0 6 6 17": "0",
    "O 0 0 6 0 12": "1",
    "I O 0 0 6 6 8": "1",  # of the rank's span of 16 ticks less its work of 8
    "I O 0 0 6 6 9": "0",
    "I C 0 4 1 2 3 4 0 0 0": "1",
    "I C 0 4 1 2 3 4 0 0 1": "0",
    "I C 1 4 1 2 3 4 0 0 0": "0",  # nothing runs there
    "P 0 1  2 1 0  0  0  I C 0 1 1 0 0 0": "0",  # no resource is a rank
    "P 1 1  2 1 0  0  0  I C 0 1 1 0 0 0": "1",
    f"{QUEUE.format(1)} O 0 0 7 6 17": "0",  # B may run for a tick before
    "O 0 0 20 6 20": "0",  # where all may be done
    "O 1 0 6 6 16": "0",  # another resource
    "O 0 1 6 6 16": "0",  # another store
    "O 0 -1 6 6 16": "0",
    f"{QUEUE.format(2)} O 0 0 6 6 16": "0",  # room for both
    f"{QUEUE.format(0)} O 0 0 6 6 20": "1",  # for none
    # two uses of 8 ticks, and 2 + 2 ticks at the ends with room for one more: (16 + 4) / 2
    f"{QUEUE.format(2)} {IN_ORDER} V 0 1 0 10": "1",
    "V 0 1 0 11": "0",
    "V 0 0 10": "0",  # no way
    "V 1 1 0 10": "0",  # another store
    "V -1 1 0 10": "0",
    f"{QUEUE.format(1)} {IN_ORDER} V 0 1 0 16": "1",
    "V 0 1 0 17": "0",
    f"{QUEUE.format(2)} V 0 1 0 10": "0",  # nobody says what the store is used for
    # a price of 1 a tick: two tasks of 2 ticks pay 4, of 3 ticks for sale, and of 4
    "P 9 2  2 1 0  2 1 0  0  0  M 1 0 1 0 1  0  2 1 0 0 2 0 0  4": "1",
    "M 1 0 1 0 1  0  2 1 0 0 2 0 0  5": "0",
    "M 1 0 1 0 1  0  2 1 0 0 1 0 0  4": "0",  # one task pays twice
    "M 1 0 1 0 -1  0  2 1 0 0 2 0 0  4": "0",  # a price below 0
    # task 2, of 3 ticks, may start 2 before task 1, and has no place within 2 ticks; 3 are enough
    "P 9 2  1 1 0  3 1 1  1 1 2 -3  0  M 0 0  1 1 2 0 0 0  3": "1",
    "M 0 0  1 1 2 0 0 0  4": "0",
}


@pytest.fixture(scope="module")
def program(coq_library: tuple[Path, dict[str, str]]) -> Path:
    return built(coq_library[0])


@needs_judge
def test_it_judges_what_is_judged_by_hand(program: Path) -> None:
    assert answers(program, [PROBLEM, *BY_HAND]) == list(BY_HAND.values())


@needs_judge
def test_the_three_checkers_agree(program: Path) -> None:
    schedules, certificates = Agreement(), CertificateAgreement()
    known = list(family_specimens(sized(2, full=16)))
    compare(schedules, program, with_mutants(known, 1))
    compare(schedules, program, with_mutants(random_specimens(20), 5))
    compare_certificates(certificates, program, known[:: sized(4, full=1)], each=2)
    assert schedules.wrong == certificates.wrong == []
    assert schedules.schedules.total() >= 2 * len(known)
    assert min(schedules.broken.values()) >= 10
    assert len(schedules.broken) == 5  # every rule
    assert certificates.true < certificates.accepted < certificates.true + certificates.damaged


@needs_judge
def test_damaged_certificates_are_judged_alike(program: Path) -> None:
    agreement = DamagedAgreement()
    compare_damaged(agreement, program, sized(300, full=100_000), each=sized(6, full=200))
    assert agreement.wrong == []
    assert set(agreement.looked_at) == set(ALL_KINDS)
    assert 0 < agreement.accepted.total() < agreement.looked_at.total()
    assert "no disagreement" in damaged_page("here", agreement)


@needs_judge
def test_what_is_found_out_once_a_problem_changes_no_verdict(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, anew = DamagedAgreement(), DamagedAgreement()
    compare_damaged(once, program, sized(150, full=5_000), each=4)
    monkeypatch.setattr("proofs_tests.extracted.damaged_certificates.ONCE_A_PROBLEM", [])
    compare_damaged(anew, program, sized(150, full=5_000), each=4)
    assert (once.accepted, once.looked_at) == (anew.accepted, anew.looked_at)
    assert once.wrong == anew.wrong == []


@needs_judge
def test_a_checker_that_differs_is_found_out(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proofs_tests.extracted.three_checkers.own_edges", lambda _: [])
    schedules, certificates = Agreement(), CertificateAgreement()
    compare(schedules, program, with_mutants(random_specimens(5), 9))
    assert any("extracted" in line for line in schedules.wrong)
    place = "proofs_tests.extracted.judge.certificate_edges"
    monkeypatch.setattr(place, lambda _: [])
    compare_certificates(certificates, program, list(family_specimens(2))[:2], each=0)
    assert certificates.wrong
    text = page("here", schedules, certificates)
    assert f"{len(schedules.wrong) + len(certificates.wrong)} disagreements, listed below" in text
    assert "no disagreement" not in text


def test_without_coq_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert missing() == (
        "coqc and ocamlopt and make not installed, so Coq's checker is not extracted"
    )
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2


def test_the_page_adds_up() -> None:
    text = PAGE.read_text("utf-8")
    judged, damaged = map(int, re.findall(r"^(\d+) schedules, \d+ .* (\d+) damaged", text, re.M)[0])
    rows = re.findall(r"^\| `[\w -]+` \| (\d+) \| (\d+) \|$", text, re.M)
    assert sum(int(whole) for whole, _ in rows) == judged - damaged
    assert sum(int(broken) for _, broken in rows) == damaged >= 5_000
    assert "no disagreement." in text
    assert "--" not in text.split("`")[1].replace("--write", "")  # the whole of it
