"""The papers' headlines beside ours stand on their page, errors in percent of what is printed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.headlines import Headline, headline_table, percent, shown
from benchmarks.headlines_bpipe import RUNS
from benchmarks.headlines_mepipe import PRINTED
from benchmarks.headlines_mepipe import headlines as mepipe_headlines
from benchmarks.headlines_page import SECTIONS, section
from benchmarks.headlines_tpipe import headlines as tpipe_headlines
from benchmarks.headlines_tpipe import v_min_over_trecomp
from proofs_tests.sized import sized

PAGE = Path(__file__).resolve().parents[3] / "docs" / "measured" / "papers" / "headlines.md"


@pytest.mark.sweep
@pytest.mark.parametrize("title", sized([t for t in SECTIONS if t != "PipeMesh"], full=[*SECTIONS]))
def test_the_headlines_of_a_paper_stand_on_their_page(title: str) -> None:
    assert section(title) in PAGE.read_text(encoding="utf-8")


def test_errors_are_in_percent_of_the_printed_figure() -> None:
    one = Headline(name="a", printed="1.25x", model=1.5, paper=Fraction(5, 4), why="w")
    assert one.off(Fraction(3, 2)) == 20
    (row,) = [line for line in headline_table([one]).splitlines() if line.startswith("| a ")]
    assert row == "| a | 1.25x | 1.50x (+20.0 %) |  | 1.25x (0 %) | w |"


def test_a_figure_is_shown_as_the_printed_one() -> None:
    assert (shown(1234, like="1"), shown(Fraction(5, 2), like="2.4x")) == ("1,234", "2.5x")
    assert [percent(Fraction(x, 100)) for x in (0, 3, -6)] == ["0 %", "0.0 %", "-0.1 %"]


def test_figure_8_comes_out_of_shapes_and_schedules() -> None:
    """T-Pipe's memory and depths, to the last printed digit or one beside it."""
    memory = [one for one in tpipe_headlines() if "throughput" not in one.name and not one.model]
    assert len(memory) == 11
    for one in memory:
        assert one.schedules is not None
        assert abs(one.off(one.schedules)) < Fraction(1, 5), one.name


def test_the_printed_gains_of_bpipe_are_quotients_of_its_printed_mfus() -> None:
    """50.64 / 40.51 = 1.250 and 52.06 / 41.40 = 1.257; 52.06 / 24.01 = 2.168."""
    gains = [Fraction(ours[4]) / Fraction(other[4]) for _, _, ours, *rest in RUNS for other in rest]
    assert [round(float(gain), 3) for gain in gains] == [1.25, 2.083, 1.257, 2.168]


def test_the_batches_of_mepipe_are_those_of_section_7_2() -> None:
    assert PRINTED == {128: "1.36x", 64: "1.49x", 32: "1.86x"}


def test_v_min_takes_longer_than_trecomp_on_long_sequences() -> None:
    """Figure 11's ratio, 39.83 over 46.13 % printed."""
    ours, shortened = v_min_over_trecomp(), v_min_over_trecomp(is_improved=True)
    assert abs(ours / Fraction(3983, 4613) - 1) < Fraction(13, 100)
    assert abs(shortened / Fraction(3983, 4613) - 1) < Fraction(6, 100)


def test_weight_gradients_are_held_at_the_batch_of_section_7_5() -> None:
    # 64 GPUs are 8 stages of 8 replicas: 8 samples of 4 slices, so Table 3's 39 slots (32 + 7), of
    # 3 ticks each where F = I = W; with W apart 106 ticks: 117 / 106.
    (told,) = (one for one in mepipe_headlines() if "section 7.5" in one.name)
    assert told.schedules == 100 * (Fraction(39 * 3, 106) - 1)
