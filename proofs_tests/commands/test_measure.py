"""``measure``: the keys that other programs rely on, and numbers derived by hand."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

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


def test_the_table_says_the_same(command: Run) -> None:
    answer = command("measure", "interleaved", "p=4", "m=8", "v=2")
    assert answer.status == 0
    # (m v + p - 1)(tF + tB) = 19 * 3; peak of rank r: (v-1)p + 2(p-r-1) + 1.
    assert "57" in answer.out
    assert "11 9 7 5" in answer.out


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
