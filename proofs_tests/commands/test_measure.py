"""``measure``: the keys that other programs rely on, and numbers derived by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import bubbleproof as bp
from proofs_tests.commands.conftest import Run

KEYS = [
    "family",
    "params",
    "makespan",
    "work",
    "idle_ratio",
    "idle_over_work",
    "idle_ticks",
    "rank_spans",
    "span_idle",
    "peak_activations",
    "peak_fraction",
]


@pytest.mark.parametrize("family", ["gpipe", "1f1b", "interleaved", "bfs", "zb-h1"])
def test_json_has_exactly_the_agreed_keys(command: Run, family: str) -> None:
    answer = command("measure", family, "p=4", "m=8", "--json")
    assert (answer.status, answer.err) == (0, "")
    assert list(json.loads(answer.out)) == KEYS


def test_1f1b_by_hand(command: Run) -> None:
    found = json.loads(command("measure", "1f1b", "p=4", "m=8", "tF=3", "tB=5", "--json").out)
    # (m + p - 1)(tF + tB) = 11 * 8; work = p m (tF + tB) = 256; idle = 4 * 88 - 256 = 96.
    assert found == {
        "family": "1f1b",
        "params": {"p": 4, "m": 8, "v": 1, "s": 1, "tF": 3, "tB": 5},
        "makespan": 88,
        "work": 256,
        "idle_ratio": "3/11",
        "idle_over_work": "3/8",
        "idle_ticks": [24, 24, 24, 24],
        # rank r runs from r tF to 88 - r tB
        "rank_spans": [88, 80, 72, 64],
        "span_idle": 24,
        "peak_activations": [4, 3, 2, 1],
        "peak_fraction": ["1/1", "3/4", "1/2", "1/4"],
    }


def test_a_split_family_names_its_own_ticks(command: Run) -> None:
    found = json.loads(command("measure", "zb-h1", "p=4", "m=8", "--json").out)
    assert found["params"] == {"p": 4, "m": 8, "v": 1, "s": 1, "tF": 1, "tI": 1, "tW": 1}
    # The zero-bubble paper: (p - 1)(tF + tI - tW) = 3 idle ticks in the longest span.
    assert (found["makespan"], found["span_idle"]) == (27, 3)


def test_people_read_the_same(command: Run) -> None:
    for words in ((), ("-v",)):
        answer = command("measure", "interleaved", "p=4", "m=8", "v=2", *words)
        assert answer.status == 0
        # (m v + p - 1)(tF + tB) = 19 * 3; peak of rank r: (v-1)p + 2(p-r-1) + 1. Work is
        # p m v (tF + tB) = 192 of 4 * 57 = 228 ticks, of which 36 are idle, 9 on each rank.
        first, *more = answer.out.splitlines()
        assert first.endswith(
            "57 ticks \N{MIDDLE DOT} idle 15.8 % \N{MIDDLE DOT} peak 11 activations on rank 0"
        )
        assert "11 | 9 | 7 | 5 activations" in answer.out
        assert len(more) == 3 or "3/19 (15.8 %)" in answer.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["1f1b", "p=0", "m=4"], "p must be 1 or more, got 0"),
        (["1f1b", "p=4"], "parameter m is missing; for example p=4 m=8"),
        (["1f1b", "p=4", "m=x"], "m must be a whole number, got 'x'"),
        (["1f1b", "p=4", "m=2.5"], "m must be a whole number, got '2.5'"),
        (["1f1b", "p=4", "m=4", "tF=-1"], "tF must be 0 or more, got -1"),
        (["gpipe", "p=4", "m=4", "v=2"], "gpipe takes no parameter v, got v=2"),
        (["1f1b", "p=4", "m=4", "p=4"], "parameter p is given twice"),
    ],
)
def test_unusable_parameters_give_one_line(command: Run, words: list[str], sentence: str) -> None:
    answer = command("measure", *words, "--json")
    assert (answer.status, answer.out, answer.err) == (2, "", f"bubbleproof: {sentence}\n")


def test_an_unknown_family_is_told_the_known_ones(command: Run) -> None:
    answer = command("measure", "nosuch", "p=4", "m=8")
    assert answer.status == 2
    assert answer.err.startswith("bubbleproof: no family 'nosuch'; the families are gpipe 1f1b")
    assert answer.err.count("\n") == 1


def test_more_microbatches_never_shorten(command: Run) -> None:
    spans = [
        json.loads(command("measure", "zb-h1", "p=3", f"m={m}", "--json").out)["makespan"]
        for m in range(1, 7)
    ]
    assert all(a < b for a, b in pairwise(spans))


def test_why_tells_a_cause_for_every_idle_tick(command: Run) -> None:
    found = json.loads(command("measure", "1f1b", "p=2", "m=3", "--why", "--json").out)
    assert list(found) == [*KEYS, "why"]
    why = found["why"]
    sums = [sum(row.values()) for row in why["ticks_by_cause"]]
    assert sums == found["idle_ticks"] == [3, 3]
    # Rank 0 could run 0F2 in the first of the two ticks in which 1B0 runs (see test_idle.py).
    assert why["idle"][0] == {
        "rank": 0,
        "from_tick": 2,
        "to_tick": 3,
        "cause": "order",
        "action": "0F2",
        "of_action": "0B0",
        "of_rank": 0,
        "link": None,
        "sentence": "the order's own choice: 0F2 could have run",
    }
    assert [why["critical_path"][i]["action"] for i in (0, -1)] == ["0F0", "0B2"]
    # Rank 1 works 9 ticks, after 1F0's input and before 0B2.
    assert why["bound"].startswith("6 tasks on rank 1 take 9 ticks, none starts before 1, and 2 ")


def test_why_for_people_says_it_in_sentences(command: Run) -> None:
    told = command("measure", "1f1b", "p=4", "m=8", "--why").out
    assert "0F4 could have run" in told
    assert "1B0 waits for 2B0 of rank 2 over link 2>1" in told
    assert "more rows" not in told
    many = command("measure", "1f1b", "p=8", "m=32", "tF=3", "tB=4", "--why").out
    assert "more rows: --json has all of them." in many


def test_why_of_what_does_two_things_at_once_is_refused(command: Run, tmp_path: Path) -> None:
    member = bp.family("1f1b")(p=1, m=2)
    early = replace(member.schedule, start=member.schedule.start // 2)
    bp.write(tmp_path / "s.json", member.problem, early)
    answer = command("measure", str(tmp_path / "s.json"), "--why")
    assert answer.status == 2
    assert "got rank 0 at 0F0 and 0B0" in answer.err
