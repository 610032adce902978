"""Bands of estimates: what nine of ten rows keep that no constant had seen."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from bubbleproof.costs import known_models
from bubbleproof.costs.times import estimate_errors
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.estimate_errors import ALIKE, FILE, LEAST, UNSEEN, error_of
from bubbleproof.costs.times.profiles import software

LLAMA = known_models()["llama-3-70b"].model
OVERLAPPED = software("megatron-core-overlapped")
Row = dict[str, str]


def rows() -> list[Row]:
    """The rows of the file, as they stand there."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def band_of(row: Row, but: str = "") -> float:
    """The band of a row's estimate, by all rows or by those of other sources."""
    runs = software(row["software"]).computing_in(row["products"])
    model = known_models().get(row["model"])
    shape = LLAMA if model is None else model.model
    if model is None:  # a GPT by its width: the parameters give its layers
        width = int(row["model"].removeprefix("gpt-"))
        layers = round(float(row["parameters"]) / (12 * width**2))
        shape = shape.with_changes(layers=layers, hidden=width)
    cards = card("a100-80gb" if row["card"] == "a100" else row["card"])
    return error_of(shape, cards, runs, int(row["cards"]), but=but).band


def test_nine_of_ten_rows_are_within_their_band() -> None:
    told = rows()
    outside = [row for row in told if abs(float(row["error"])) > band_of(row)]
    assert len(outside) <= len(told) / 10


def test_nine_of_ten_are_within_the_band_that_other_sources_give() -> None:
    """A source that nobody has seen: its rows are not asked."""
    told = rows()
    outside = [row for row in told if abs(float(row["error"])) > band_of(row, row["source"])]
    assert len(outside) <= len(told) / 10


def test_rows_alike_do_not_make_a_band_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty exact rows of one source and model beside two others of 10 and 30 %."""
    made = estimate_errors._left_out()[0]
    alike = [replace(made, error=0.0)] * 20
    others = [replace(made, model=str(error), error=error) for error in (0.1, 0.3)]
    monkeypatch.setattr(estimate_errors, "_left_out", lambda: (*alike, *others))
    assert ALIKE == 4
    # Of 0, 0, 0, 0, 10, 30 % nine of ten are all six, which are within 30 %.
    assert error_of(LLAMA, card("h100"), OVERLAPPED, 64).band == 0.3


def test_what_no_row_had_is_said_and_widens_the_band() -> None:
    known = error_of(LLAMA, card("h100"), OVERLAPPED, 64)
    assert not known.beyond
    assert LEAST <= known.band < UNSEEN
    unknown = error_of(LLAMA, card("mi300x"), OVERLAPPED, 64)
    assert unknown.beyond == ("card mi300x",)
    assert unknown.band >= UNSEEN
