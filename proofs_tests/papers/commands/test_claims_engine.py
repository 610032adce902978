"""``claims --engine``: one table, one object, and a status that says whether a formula differs."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from bubbleproof.papers import registry
from bubbleproof.papers.claims.claim import stated
from bubbleproof.papers.claims.domain import domain
from bubbleproof.papers.claims.measured_pipelines import makespan, peak
from bubbleproof.papers.commands import claims as claims_command
from proofs_tests.commands.conftest import Run

CASES = domain("p in 2 3, m = p", p=(2, 3), m="(p,)", tF_tB=((1, 1),))


@pytest.mark.parametrize("engine", ["z3", "pulp"])
def test_mu_opt_and_a_bubble_are_found_by_either_engine(command: Run, engine: str) -> None:
    # mu_opt = ceil((p+2)/2) of p = 4 is 3; (p-1)/(m+p-1) of p = m = 2 is 1/3.
    words = ("bpipe.sec3.3.optimal", "mepipe.table3.dapple.bubble-many", "--limit", 3)
    answer = command("claims", *words, "--engine", engine, "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert found["engine"] == engine
    values = {(row["id"], row["params"]["p"]): row["found"] for row in found["cases"]}
    assert values["bpipe.sec3.3.optimal", 4] == "3/1"
    assert values["mepipe.table3.dapple.bubble-many", 2] == "1/3"
    assert {row["outcome"] for row in found["cases"]} == {"equal"}
    assert all(Fraction(row["found"]) == Fraction(row["formula"]) for row in found["cases"])


def test_the_table_names_the_proof(command: Run) -> None:
    answer = command("claims", "field.few.least", "--engine", "z3", "--limit", 1)
    assert answer.status == 0
    assert "found by z3 alone" in answer.out
    # p = 3, m = 2, v = 2: (6 + 2-1) * 2 = 14 ticks
    assert "│ 14      │ 14     │ equal" in answer.out
    assert "search" in answer.out
    assert "1 of 1 cases compared: 1 equal" in answer.err


@pytest.mark.parametrize("engine", ["z3", "pulp"])
def test_a_wrong_formula_ends_in_1(
    command: Run, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    wrong = stated("a.b", "x", "So.", "makespan", makespan("1f1b"), "==", "(m+p)*(tF+tB)", CASES)
    right = stated("a.c", "x", "So.", "peak", peak("1f1b"), "==", "p", CASES)
    monkeypatch.setattr(claims_command, "claims", lambda _: {"a.b": wrong, "a.c": right})
    answer = command("claims", "--engine", engine)
    assert answer.status == 1
    assert "2 differs" in answer.err
    assert "2 equal" in answer.err


def test_what_is_not_decided_ends_in_3(command: Run) -> None:
    words = ("claims", "field.few.least", "--engine", "pulp", "--time-limit", "0.000001", "--json")
    answer = command(*words)
    assert answer.status == 3
    rows = json.loads(answer.out)["cases"]
    assert {row["outcome"] for row in rows} == {"not decided in the time"}
    assert {row["found"] for row in rows} == {None}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--engine", "z4"), "engine must be one of"),
        (("--engine", "z3", "--audit"), "--engine goes without --audit and --set"),
        (("--engine", "z3", "--quick"), "--quick goes with --audit"),
        (("--engine", "z3", "--time-limit", "0"), "--time-limit must be above 0 seconds, got 0"),
        (("--time-limit", "3"), "--time-limit goes with --engine"),
        (
            ("bpipe.eq1", "--engine", "z3"),
            "none of these claims says what a family's least is",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(
    command: Run, words: tuple[str, ...], told: str
) -> None:
    answer = command("claims", *words)
    assert (answer.status, answer.out) == (2, "")
    assert told in answer.err


def test_every_claimed_optimum_of_bpipe_is_in_the_table(command: Run) -> None:
    answer = command("claims", "--paper", "bpipe", "--engine", "z3", "--limit", 1, "--json")
    ids = {row["id"] for row in json.loads(answer.out)["cases"]}
    assert ids
    assert ids <= set(registry.claims("bpipe"))
