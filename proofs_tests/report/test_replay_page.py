"""The page of a replay: self-contained, with measured beside predicted, and what is left open."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.report.page import render
from bubbleproof.report.replay_json import ReplayAccount
from bubbleproof.report.replay_page import (
    MAX_PANELS,
    live_bytes_panels,
    replay_page,
    write_replay_page,
)
from bubbleproof.report.viewer.schedule_data import ColumnPlace
from bubbleproof.theory.model.actions import Action
from proofs_tests.report.small import unpacked
from proofs_tests.report.test_replay_json import REPORT as SMALL
from proofs_tests.report.test_replay_json import account

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


REPORT = replace(
    SMALL,
    passes=((TRACE,),),
    gradients_equal=False,
    gradient_difference=EVIL,
    alike=(EVIL,),
)


def page(**changes: object) -> ReplayAccount:
    """The account of the report with these fields."""
    return account(replace(REPORT, **changes))  # type: ignore[arg-type]  # fields of a report


def names(text: str) -> list[str]:
    """The schedules of the page's viewer."""
    found = re.findall(r'<script type="application/json" id="[\w-]+">(.*?)</script>', text)
    return [json.loads(content)["name"] for content in found]


def test_measured_and_predicted_stand_beside_each_other() -> None:
    text = render(replay_page(page()))
    found = re.findall(r'<script type="application/json" id="[\w-]+">(.*?)</script>', text)
    measured, predicted = map(json.loads, found)
    assert (measured["name"], predicted["name"]) == ("as it ran", "as scheduled")
    assert 'data-shown="2"' in text
    assert (measured["unit"], predicted["unit"]) == ("us", "tick")
    for content, starts, lengths in ((measured, [0, 15], [8, 25]), (predicted, [0, 1], [1, 2])):
        column = {
            name: unpacked(content["blob"], ColumnPlace(*content["places"][name])).tolist()
            for name in ("start", "length", "stage", "microbatch")
        }
        bars = [row for row, j in enumerate(column["microbatch"]) if j >= 0]
        # in microseconds see TRACE; in ticks tF = 1, tB = 2
        assert [column["start"][row] for row in bars] == starts
        assert [column["length"][row] for row in bars] == lengths


def test_the_page_is_whole_and_escapes_what_it_is_given() -> None:
    text = render(replay_page(page()))
    assert EVIL not in text
    assert text.count("&lt;img src=x") == 2  # a failure, and what was not checked
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!#|data:)', outside)
    assert '<td class="bad" data-of="verdict">violated</td>' in text


def test_a_run_that_stopped_has_no_measured_chart() -> None:
    assert names(render(replay_page(page(stopped="late", passes=())))) == ["as scheduled"]


def test_the_stairs_show_every_sample() -> None:
    """2,048, 1,536 and 0 bytes by the model, 2,048, 1,024 and 0 measured: at three places each."""
    _, panel = live_bytes_panels((TRACE,))
    model, measured = re.findall(r'<path d="M([^"]*)" fill="none" stroke="#', panel)
    heights = [[float(y) for y in re.findall(r"[ V]([\d.]+)", path)] for path in (model, measured)]
    shares = [[(own[2] - y) / (own[2] - own[0]) for y in own] for own in heights]
    assert shares == [pytest.approx([1, 0.75, 0], abs=0.01), pytest.approx([1, 0.5, 0], abs=0.01)]


@pytest.mark.parametrize("ranks", [1, MAX_PANELS, MAX_PANELS + 3])
def test_no_more_ranks_than_fit_are_drawn(ranks: int, tmp_path: Path) -> None:
    write_replay_page(tmp_path / "x.html", page(passes=((TRACE,) * ranks,)))
    text = (tmp_path / "x.html").read_text()
    assert text.count('<svg class="plot"') == min(ranks, MAX_PANELS)
    assert (f"The first {MAX_PANELS} of {ranks} ranks." in text) == (ranks > MAX_PANELS)
