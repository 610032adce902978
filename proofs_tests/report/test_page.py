"""The page: nothing in it is markup that was given as text, nothing is fetched, all is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bubbleproof.report.document import ReplayRow, VerdictRow
from bubbleproof.report.page import (
    ComparisonRow,
    ReportPage,
    ScheduleSection,
    render,
    write_page,
)
from bubbleproof.theory.families import member
from bubbleproof.theory.model.problem import Resource
from proofs_tests.report.small import sliced_bytes, small

EVIL = "</script><img src=x onerror=alert(1)>&\"'<!--"


class Reader(HTMLParser):
    """Elements with their attributes, the text outside scripts, and the embedded data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.script: str | None = None  # the id of the script being read, "" for one without
        self.data: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.script = dict(attrs).get("id") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self.script = None

    def handle_data(self, data: str) -> None:
        if self.script is None:
            self.words.append(data)
        else:
            self.data[self.script] = data

    @property
    def text(self) -> str:
        return " ".join(self.words)


def section(name: str = "1F1B") -> ScheduleSection:
    return ScheduleSection(name=name, problem=small().problem, schedule=small().schedule)


def evil_report() -> ReportPage:
    problem = small().problem
    named = replace(problem, resources=(Resource(name=EVIL, rank=0), *problem.resources[1:]))
    return ReportPage(
        title=EVIL,
        summary=((EVIL, EVIL),),
        comparison=(
            ComparisonRow.of(EVIL, named, small().schedule, proof=EVIL),
            ComparisonRow.refused(EVIL, EVIL),
        ),
        sections=(
            ScheduleSection(
                name=EVIL,
                problem=named,
                schedule=small().schedule,
                verdicts=(VerdictRow(rule=EVIL, verdict=EVIL, detail=EVIL),),
                violations=(EVIL,),
                replay=(ReplayRow(quantity=EVIL, predicted=EVIL, measured=EVIL, verdict=EVIL),),
            ),
        ),
        versions=((EVIL, EVIL),),
    )


def test_all_text_is_escaped() -> None:
    page = render(evil_report())
    reader = Reader(page)
    assert "<img src=x" not in page
    assert [tag for tag, _ in reader.elements if tag == "img"] == []
    # the schedule's data and the viewer's script
    assert [tag for tag, _ in reader.elements].count("script") == 2
    # title 2, the viewer's words 1, summary 2, comparison 2 + 2, section 1, verdict 3, violation 1,
    # replay 4, versions 2
    assert reader.text.count(EVIL) == 20
    assert json.loads(reader.data["schedule-0"])["lanes"][0] == EVIL


def test_the_page_fetches_nothing() -> None:
    reader = Reader(render(evil_report()))
    for tag, attributes in reader.elements:
        for name in ("src", "href", "srcset", "action", "data"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith(("#", "data:")), (tag, value)
    assert "link" not in [tag for tag, _ in reader.elements]


def test_a_comparison_states_measures_and_the_store_that_overflows() -> None:
    row = ComparisonRow.of("1F1B", small().problem.with_capacity(1), small().schedule)
    assert row.fits == "no: memory of rank 0 holds 2 activations, cap 1"
    # idle 6 of 18; 6/12 of the work; rank 0 spans 0-9 with 6 ticks of work
    assert (row.makespan, row.idle_ratio, row.idle_over_work, row.span_idle, row.peaks) == (
        "9 ticks",
        "1/3 (33.3 %)",
        "1/2 (50.0 %)",
        "3 ticks",
        "2, 1 activations",
    )
    assert ComparisonRow.of("1F1B", small().problem, small().schedule).fits == "yes"
    assert ComparisonRow.of("full", *sliced_bytes()).fits == "yes"  # a load equal to the capacity


def test_a_page_shows_every_table_and_opens_the_first_schedule() -> None:
    known = replace(
        section("solved"),
        verdicts=(VerdictRow(rule="memory", verdict="violated", detail="rank 0 at tick 1"),),
        violations=("rank 0  F0 >F1<\nrank 1  .  F0",),
        replay=(ReplayRow(quantity="peak", predicted="2", measured="2", verdict="equal"),),
    )
    page = render(
        ReportPage(title="T", sections=(known, section("1F1B")), versions=(("numpy", "2.0"),))
    )
    reader = Reader(page)
    for words in ("Verdict", "rank 0 at tick 1", "Replay", "numpy", "rank 0  F0 >F1<\nrank 1"):
        assert words in reader.text
    details = [attributes for tag, attributes in reader.elements if tag == "details"]
    assert ["open" in attributes for attributes in details] == [True, False]
    assert [a.get("class") for t, a in reader.elements if t == "td" and a.get("class")] == [
        "bad",
        "good",
    ]
    viewers = [
        attributes for _, attributes in reader.elements if attributes.get("class") == "viewer"
    ]
    assert [v["data-schedules"] for v in viewers] == ["schedule-0 schedule-1"]


def test_a_page_opens_with_its_window() -> None:
    part = ScheduleSection(
        name="a", problem=small().problem, schedule=small().schedule, window=(4, 6)
    )
    page = Reader(render(ReportPage(title="T", sections=(part,))))
    (box,) = (found for _, found in page.elements if found.get("class") == "viewer")
    assert box["data-window"] == "4:6"


def test_a_page_without_schedules_has_no_script() -> None:
    reader = Reader(render(ReportPage(title="T", headline="so it is")))
    assert "script" not in [tag for tag, _ in reader.elements]
    assert "so it is" in reader.text


@pytest.mark.parametrize(("shape", "most"), [({"p": 4, "m": 8}, 400), ({"p": 64, "m": 512}, 400)])
def test_a_page_is_small(shape: dict[str, int], most: int, tmp_path: Path) -> None:
    drawn = member("1f1b", **shape)
    part = ScheduleSection(name="a", problem=drawn.problem, schedule=drawn.schedule)
    write_page(tmp_path / "a.html", ReportPage(title="T", sections=(part,)))
    assert (tmp_path / "a.html").stat().st_size <= most * 1000
