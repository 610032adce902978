"""The papers' tables beside ours: the pages are what their command makes, and what they compare."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.headlines_page import SECTIONS, section
from benchmarks.paper_numbers import Number, number_table, percent, shown, summary
from benchmarks.paper_tables import PAGES, main, page_of
from benchmarks.tpipe_page import depth_numbers, memory_numbers
from proofs_tests.sized import sized

DOCS = Path(__file__).resolve().parents[3] / "docs" / "measured" / "papers"


@pytest.mark.sweep
@pytest.mark.parametrize(
    "name", sized([n for n in PAGES if n not in ("headlines", "pipemesh")], full=[*PAGES])
)
def test_a_page_is_what_its_command_makes(name: str) -> None:
    assert (DOCS / f"{name}.md").read_text(encoding="utf-8") == page_of(name)


@pytest.mark.sweep
@pytest.mark.parametrize("title", sized([t for t in SECTIONS if t != "PipeMesh"], full=[*SECTIONS]))
def test_the_headlines_of_a_paper_stand_on_their_page(title: str) -> None:
    assert section(title) in (DOCS / "headlines.md").read_text(encoding="utf-8")


def test_a_number_is_shown_with_its_deviation_or_why_there_is_none() -> None:
    had = Number(name="a", printed="50.0 %", ours=Fraction(51), why="w")
    assert had.deviation == 2
    lost = Number(name="b", printed="1,000", ours=None, why="it is not printed")
    assert lost.deviation is None
    table = number_table([had, lost])
    assert "| a | 50.0 % | 51.0 % | +2.0 % | w |" in table
    assert "| b | 1,000 | cannot be had |  | it is not printed |" in table
    assert summary([had, lost]).startswith(
        "Of 2 printed numbers 1 stand beside ours: 0 within 1 %, 1"
    )
    assert (shown(1234, like="1"), shown(Fraction(5, 2), like="2.4x")) == ("1,234", "2.5x")
    assert [percent(Fraction(x, 100)) for x in (0, 3, -6)] == ["0 %", "0.0 %", "-0.1 %"]


def test_figure_8_comes_out_of_shapes_and_schedules() -> None:
    """All but the throughput, to the last printed digit or one beside it."""
    for one in (*memory_numbers(), *depth_numbers()):
        assert one.deviation is not None
        assert abs(one.deviation) < Fraction(1, 5) or "throughput" in one.name, one.name


def test_a_page_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipmesh"])
    assert ended.value.code == 2
    assert "NAME must be one of" in capsys.readouterr().err
