"""The page of a replay: self-contained, with measured beside predicted, and what is left open."""

from __future__ import annotations

import json
import re
from pathlib import Path

import plotly.graph_objects
import pytest

from bubbleproof.reference_exec.evidence.measured import measured_schedule
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.report.replay_page import (
    MAX_PANELS,
    ReplayPage,
    live_bytes_figure,
    render,
    write_replay_page,
)
from bubbleproof.report.table_rows import ReplayRow
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action

EVIL = "</script><img src=x onerror=alert(1)>&\"'<!--"
TRACE = RankTrace(
    name="rank 0",
    actions=(Action.parse("0F0"), Action.parse("0SEND_F0"), Action.parse("0B0")),
    begin=(0, 8_000, 10_000),
    waited=(0, 0, 5_000),
    end=(8_000, 9_000, 40_000),
    live_bytes=((2048, 1024), (), (0,)),
    predicted=((2048, 1536), (), (0,)),
)


def page(**changes: object) -> ReplayPage:
    found = member("1f1b", p=1, m=1)
    timed = found.problem, found.schedule
    fields = {
        "title": "tiny",
        "summary": (("ran on", "gloo"),),
        "evidence": (ReplayRow(quantity="q", predicted="1", measured="2", verdict="violated"),),
        "failures": (EVIL,),
        "predicted": timed,
        "measured": measured_schedule(*timed, (TRACE,)),
        "clock": "one clock",
        "traces": (TRACE,),
        "not_checked": (EVIL, "GPUs"),
        "versions": (("python", "3.11"),),
    }
    return ReplayPage(**{**fields, **changes})  # type: ignore[arg-type]  # fields of the page


def figures(text: str) -> dict[str, dict[str, object]]:
    found = re.findall(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', text)
    return {name: json.loads(content) for name, content in found}


def test_measured_and_predicted_stand_beside_each_other() -> None:
    found = figures(render(page()))
    assert set(found) == {"measured", "predicted", "live-bytes"}
    for figure in found.values():
        plotly.graph_objects.Figure(figure)  # plotly knows every key
    spans = {
        name: sorted(
            (b, x)
            for bar in found[name]["data"]  # type: ignore[attr-defined]  # JSON
            if bar["type"] == "bar"
            for b, x in zip(bar["base"], bar["x"], strict=True)
        )
        for name in ("measured", "predicted")
    }
    assert spans["measured"] == [(0, 8), (15, 25)]  # in microseconds, see TRACE
    assert spans["predicted"] == [(0, 1), (1, 2)]  # in ticks: tF = 1, tB = 2


def test_the_page_is_whole_and_escapes_what_it_is_given() -> None:
    text = render(page())
    assert EVIL not in text
    assert text.count("&lt;img src=x") == 2  # a failure, and what was not checked
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!#|data:)', outside)
    assert '<td class="bad">violated</td>' in text


def test_a_run_that_stopped_has_no_measured_chart() -> None:
    assert set(figures(render(page(measured=None, traces=())))) == {"predicted"}


def test_the_stairs_show_every_sample() -> None:
    lines = json.loads(json.dumps(live_bytes_figure((TRACE,))))["data"]
    shown = {line["name"]: [1024 * y for y in line["y"]] for line in lines}  # drawn in KiB
    assert shown == {"model": [2048, 1536, 0], "measured": [2048, 1024, 0]}


@pytest.mark.parametrize("ranks", [1, MAX_PANELS, MAX_PANELS + 3])
def test_no_more_ranks_than_fit_are_drawn(ranks: int, tmp_path: Path) -> None:
    found = page(traces=(TRACE,) * ranks)
    write_replay_page(tmp_path / "x.html", found)
    text = (tmp_path / "x.html").read_text()
    axes = figures(text)["live-bytes"]["layout"]
    shown = sum(key.startswith("yaxis") for key in axes)  # type: ignore[attr-defined]  # JSON
    assert shown == min(ranks, MAX_PANELS)
    assert (f"The first {MAX_PANELS} of {ranks} ranks." in text) == (ranks > MAX_PANELS)
