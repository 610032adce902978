"""Family parameters: the words of the command line, and what is wrong with the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.theory.families import member
from bubbleproof.theory.families.parameters import COUNTS, TICKS, FamilyParameters, parse_parameters


def test_words_become_parameters() -> None:
    words = [
        "p=4",
        "m=8",
        "v=2",
        "s=3",
        "f=5",
        "G=6",
        "R=50",
        "e=8,4",
        "d=6",
        "tF=0",
        "tB=2",
        "tI=1",
    ]
    assert parse_parameters([*words, "tW=1"]) == FamilyParameters(
        p=4, m=8, v=2, s=3, f=5, G=6, R=50, e=(8, 4), d=(6,), tF=0, tB=2, tI=1, tW=1
    )


@given(st.dictionaries(st.sampled_from(COUNTS + TICKS), st.integers(1, 10**9)))
def test_numbers_read_back(values: dict[str, int]) -> None:
    given_ = {"p": 1, "m": 1} | values
    read = parse_parameters(f"{name}={value}" for name, value in given_.items())
    assert {name: getattr(read, name) for name in given_} == given_


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["p=4"], "parameter m is missing; for example p=4 m=8"),
        (["m=4"], "parameter p is missing; for example p=4 m=8"),
        (["p=4", "m=8", "p=4"], "parameter p is given twice"),
        (
            ["p=4", "m=8", "q=1"],
            "no parameter 'q=1'; the parameters are p m v s f G R e d tF tB tI tW",
        ),
        (
            ["p"],
            "no parameter 'p'; write it in one word, such as p=4; "
            "the parameters are p m v s f G R e d tF tB tI tW",
        ),
        (["P=4"], "no parameter 'P=4'; the parameters are p m v s f G R e d tF tB tI tW"),
        (["p=4", "m=" + 32 * "9"], "m is too large: at most 15 digits, got '" + 32 * "9" + "'"),
        (["p=4", "m=-" + 16 * "9"], "m is too large: at most 15 digits, got '-" + 16 * "9" + "'"),
        (["p=4", "m=8", "e=8,9999999999"], "e is too large: at most 9 digits, got '8,9999999999'"),
        (["p=four", "m=8"], "p must be a whole number, got 'four'"),
        (["p=", "m=8"], "p must be a whole number, got ''"),
        (["p=1.5", "m=8"], "p must be a whole number, got '1.5'"),
        (["p=٣", "m=8"], "p must be a whole number, got '٣'"),
        (["p=4", "m=8", "e=8,"], "e must be whole numbers joined by commas, got '8,'"),
        (["p=4", "m=8", "d=-1"], "d must be whole numbers joined by commas, got '-1'"),
        (["p=0", "m=8"], "p must be 1 or more, got 0"),
        (["p=4", "m=-8"], "m must be 1 or more, got -8"),
        (["p=4", "m=8", "v=0"], "v must be 1 or more, got 0"),
        (["p=4", "m=8", "R=-1"], "R must be 0 or more, got -1"),
        (["p=4", "m=8", "R=101"], "R must be at most 100 per cent, got 101"),
        (["p=4", "m=8", "R=66.7"], "R must be a whole number, got '66.7'"),
        (["p=4", "m=8", "tF=-1"], "tF must be 0 or more, got -1"),
        (["p=4", "m=8", "tW=-1"], "tW must be 0 or more, got -1"),
    ],
)
def test_what_cannot_be_read(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_parameters(words)
    assert str(caught.value) == message


def test_default_ticks() -> None:
    plain = FamilyParameters(p=1, m=1)
    assert (plain.tF, plain.full_ticks, plain.split_ticks) == (1, 2, (1, 1))
    # A full backward is the sum of its parts where those are given.
    assert FamilyParameters(p=1, m=1, tI=3).full_ticks == 4
    assert FamilyParameters(p=1, m=1, tI=3, tW=5, tB=8).full_ticks == 8
    assert FamilyParameters(p=1, m=1, tI=0, tW=0).split_ticks == (0, 0)


def test_a_member_tells_all_its_parameters() -> None:
    assert member("1f1b", p=2, m=3).params == {"p": 2, "m": 3, "v": 1, "s": 1, "tF": 1, "tB": 2}
    split = member("zb-h1", p=2, m=3, tI=2).params
    assert split == {"p": 2, "m": 3, "v": 1, "s": 1, "tF": 1, "tI": 2, "tW": 1}
    assert member("interleaved", p=2, m=2).params["v"] == 2
