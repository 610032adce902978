"""``claims ID --set``: one claim at one case, by numbers worked out by hand."""

from __future__ import annotations

import json

import pytest

from proofs_tests.commands.conftest import Run


def test_one_case_tells_both_sides(command: Run) -> None:
    answer = command("claims", "bpipe.mu", "--set", "p=8", "m=32", "s=3", "--json")
    found = json.loads(answer.out)
    assert answer.status == 0
    assert (found["id"], found["params"]) == ("bpipe.mu", {"p": 8, "m": 32, "s": 3})
    (reading,) = found["readings"]
    # mu(s) = min(p - s, m) = 5 activations, and so many 1F1B holds on rank 3.
    assert (reading["claimed"], reading["relation"], reading["measured"]) == ("5/1", "==", "5/1")
    assert reading["holds"]
    assert reading["in_domain"]


def test_a_case_outside_the_domain_is_said_to_be(command: Run) -> None:
    told = command("claims", "bpipe.mu", "--set", "p=2", "--set", "m=40", "s=1").out
    # p - s = 1, of more microbatches than 4 p.
    assert [cell.strip() for cell in told.splitlines()[-2].split("│")[1:-1]] == [
        "as stated",
        "1",
        "==",
        "1",
        "yes",
        "no",
    ]


def test_claims_are_named_by_their_ids(command: Run) -> None:
    found = json.loads(command("claims", "bpipe.mu", "bpipe.eq1", "--json").out)["claims"]
    assert [each["id"] for each in found] == ["bpipe.mu", "bpipe.eq1"]
    assert found[0]["verdict"] is None
    decided = json.loads(
        command("claims", "bpipe.mu", "--audit", "--quick", "--workers", "1", "--json").out
    )["claims"]
    assert [each["verdict"] for each in decided] == ["PROVED"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("bpipe.mo",), "no claim 'bpipe.mo' (did you mean 'bpipe.mu'?)"),
        (("bpipe.mu", "--set", "q=3"), "has no parameter 'q'; it has p m s"),
        (("bpipe.mu", "--set", "p=3"), "needs p m s, got no m s; such as --set p="),
        (("bpipe.mu", "--set", "p=x"), "--set takes NAME=NUMBER, got 'p=x'"),
        (("--set", "p=3"), "--set evaluates one claim at one case"),
        (("bpipe.mu", "--audit", "--set", "p=3"), "--set evaluates one claim at one case"),
        (("bpipe.mu", "--paper", "bpipe"), "claims by their ids go without --paper"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    command: Run, words: tuple[str, ...], told: str
) -> None:
    answer = command("claims", *words)
    assert answer.status == 2
    assert told in answer.err
