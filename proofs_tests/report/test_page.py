"""The page: nothing in it is markup that was given as text, nothing is fetched, all is shown."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import plotly.graph_objects
import pytest

from bubbleproof.report.interactive import figure, levels
from bubbleproof.report.page import (
    ComparisonRow,
    ReportPage,
    ScheduleSection,
    render,
    write_page,
)
from bubbleproof.report.table_rows import ReplayRow, VerdictRow
from bubbleproof.report.timeline import timeline
from bubbleproof.theory.families import member
from bubbleproof.theory.model.problem import Resource
from proofs_tests.report.small import BARS, LOADS, sliced_bytes, small

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
    # the figure's data, plotly's script and the page's own
    assert [tag for tag, _ in reader.elements].count("script") == 3
    # title 2, summary 2, comparison 2 + 2, section 1, verdict 3, violation 1, replay 4, versions 2
    assert reader.text.count(EVIL) == 19
    json.loads(reader.data["figure-0"])


def test_the_page_fetches_nothing() -> None:
    reader = Reader(render(evil_report()))
    for tag, attributes in reader.elements:
        for name in ("src", "href", "srcset", "action", "data"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith(("#", "data:")), (tag, value)
    assert "link" not in [tag for tag, _ in reader.elements]


def test_a_figure_holds_bars_loads_and_hover_text() -> None:
    spec = figure(timeline(small().problem.with_capacity(1), small().schedule))
    drawn = plotly.graph_objects.Figure(json.loads(json.dumps(spec)))  # plotly checks every field
    kinds = {"F forward": "F", "B full backward": "B"}
    bars = {t.name: t for t in drawn.data if t.type == "bar"}
    for name, kind in kinds.items():
        trace = bars[name]
        ends = [base + length for base, length in zip(trace.base, trace.x, strict=True)]
        assert set(zip(trace.y, trace.base, ends, strict=True)) == BARS[kind]
    hover = "<b>0B1</b> on rank 0<br>stage 0, microbatch 1<br>start 7, end 9, duration 2 ticks"
    assert hover in bars["B full backward"].hovertext
    curves = [t for t in drawn.data if t.type == "scatter"]
    for curve, loads in zip(curves, LOADS, strict=True):
        steps = dict(zip(curve.x, curve.y, strict=True))
        assert [steps[t] for t in range(9) if t in steps] == [
            loads[t] for t in range(9) if t in steps
        ]
    assert [(line.y0, line.yref) for line in drawn.layout.shapes] == [(1, "y2"), (1, "y3")]
    assert list(drawn.layout.yaxis.range) == [1.5, -0.5]  # rank 0 on top


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


def test_a_figure_shows_bytes_in_gib() -> None:
    spec = figure(timeline(*sliced_bytes()))
    (curve,) = (t for t in plotly.graph_objects.Figure(spec).data if t.type == "scatter")
    assert (list(curve.x), list(curve.y)) == ([0, 1, 4, 6], [1.5, 3.0, 1.5, 0.0])


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
    assert page.count("plotly.js v") == 1


def test_a_large_schedule_becomes_a_still_picture_with_its_note(tmp_path: Path) -> None:
    large = member("1f1b", p=4, m=3000)
    part = ScheduleSection(name="large", problem=large.problem, schedule=large.schedule)
    write_page(tmp_path / "a.html", ReportPage(title="T", sections=(part,)))
    reader = Reader((tmp_path / "a.html").read_text())
    (image,) = (attributes for tag, attributes in reader.elements if tag == "img")
    assert (image["src"] or "").startswith("data:image/svg+xml;base64,")
    assert "24,000 actions are too many to draw" in (image["alt"] or "")
    assert "script" not in [tag for tag, _ in reader.elements]
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]


def test_a_chart_of_many_short_bars_opens_whole_in_cells_and_says_so() -> None:
    many = member("1f1b", p=2, m=1000)  # makespan 1001 x 3 = 3,003 ticks
    view = timeline(many.problem, many.schedule)
    # half of the bars take 1 tick, half 2: the median is 1.5, so the finest cells take 2; of the
    # whole 240 pixels show 3,003 ticks, so the coarsest take 2 x 3,003 / 240 = 25.03 or more
    assert levels(view) == [0, 2, 4, 8, 16, 32]
    drawn = figure(view)
    assert drawn["layout"]["xaxis"]["range"] == [0, 3003]  # type: ignore[index, call-overload]  # JSON's
    part = ScheduleSection(name="many", problem=many.problem, schedule=many.schedule)
    text = Reader(render(ReportPage(title="T", sections=(part,)))).text
    assert "Where actions are narrower than two pixels, cells stand for them" in text
    assert levels(timeline(small().problem, small().schedule)) == [0]


def test_a_page_draws_its_window_alone() -> None:
    part = ScheduleSection(
        name="a", problem=small().problem, schedule=small().schedule, window=(4, 6)
    )
    page = Reader(render(ReportPage(title="T", sections=(part,))))
    assert "Window 4 to 6 of 0 to 9 ticks: 3 of 8 bars lie in it." in page.text


def test_a_missing_plotly_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ValueError, match=r'this picture needs plotly.*"bubbleproof\[report\]"'):
        write_page(tmp_path / "a.html", ReportPage(title="T", sections=(section(),)))
    assert list(tmp_path.iterdir()) == []
