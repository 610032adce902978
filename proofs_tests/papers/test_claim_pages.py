"""Claims and theorems as pages: all of them, as recorded, with counterexamples that are some."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from bubbleproof.papers.registry import claims
from bubbleproof.papers.theorems.theorem_library import theorems
from bubbleproof.theory.model.measures import measure
from website.claim_pages import claim_pages
from website.decided_claims import (
    RECORD,
    DecidedReading,
    StaleRecordError,
    confirmed,
    decided_claims,
)
from website.drawn_cases import built_in, drawn_case
from website.theorem_pages import theorem_page

FEW = ("field.1f1b.peak", "field.interleaved.bubble", "mepipe.table3.vpp.memory-many")


def readings() -> list[DecidedReading]:
    """Rejected readings of a few claims whose case is measured."""
    found = [each for paper in decided_claims().values() for each in paper]
    chosen = (read for each in found if each.claim.id in FEW for read in each.readings)
    return [read for read in chosen if read.case is not None]


def test_every_claim_is_in_the_record_with_all_its_readings() -> None:
    decided = decided_claims()
    assert {each.claim.id for paper in decided.values() for each in paper} == {*claims()}
    assert {each.state for paper in decided.values() for each in paper} >= {"holds", "refuted"}


def test_a_record_that_lacks_a_claim_or_a_reading_is_refused() -> None:
    text = RECORD.read_text("utf-8")
    with pytest.raises(StaleRecordError, match=r"bpipe.mu has no row"):
        decided_claims(text.replace("| bpipe.mu |", "| bpipe.no |"))
    with pytest.raises(StaleRecordError, match="readings, recorded"):
        decided_claims(text.replace("<br>", " "))


def test_a_counterexample_is_evaluated_anew() -> None:
    for read in readings():
        case = confirmed(read)
        assert case is not None
        assert read.case is not None
        wrong = replace(read, case=replace(read.case, measured=read.case.measured + Fraction(1)))
        with pytest.raises(StaleRecordError, match=" now; "):
            confirmed(wrong)


def test_the_schedule_that_is_drawn_is_the_one_that_was_measured() -> None:
    (read,) = [each for each in readings() if each.reading.name == "just p, of fewer too"]
    assert read.case is not None
    found = built_in(read.reading, read.case.params)
    assert found is not None
    assert max(measure(*found).peak_activations) == read.case.measured
    svg = drawn_case(read.reading, read.case.params)
    assert svg is not None
    assert "bars-F-0" in svg
    assert "p=2 m=1 tF=1 tB=1" in svg


def test_a_page_tells_each_claim_with_its_verdict_and_pictures() -> None:
    made = claim_pages(["bpipe"], drawer=lambda *_: "<svg/>")
    text = made["claims/bpipe.md"]
    for name, claim in claims("bpipe").items():
        assert f"\n## {name}\n\n> {claim.statement}\n" in text
    pictures = [place for place in made if place.endswith(".svg")]
    assert "claims/pictures/bpipe.sec3.3.evictions-1.svg" in pictures
    assert all(place.removeprefix("claims/") in text for place in pictures)


def test_the_page_of_theorems_has_each_with_what_proves_it() -> None:
    (text,) = theorem_page().values()
    sections = dict(each.split("\n", 1) for each in text.split("\n## ")[1:])
    assert list(sections) == list(theorems())
    for name, section in sections.items():
        assert "\nProved by\n: Z3, " in section, name
    assert "Coq" in sections["1f1b"]
