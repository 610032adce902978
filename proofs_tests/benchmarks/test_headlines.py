"""A headline beside ours: errors are percent of what is printed, and an empty way stays empty."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.headlines import Headline, headline_table
from benchmarks.headlines_bpipe import RUNS
from benchmarks.headlines_mepipe import PRINTED


def test_errors_are_in_percent_of_the_printed_figure() -> None:
    one = Headline(name="a", printed="1.25x", model=1.5, paper=Fraction(5, 4), why="w")
    assert one.off(Fraction(3, 2)) == 20
    (row,) = [line for line in headline_table([one]).splitlines() if line.startswith("| a ")]
    assert row == "| a | 1.25x | 1.50x (+20.0 %) |  | 1.25x (0 %) | w |"


def test_the_printed_gains_of_bpipe_are_quotients_of_its_printed_mfus() -> None:
    """50.64 / 40.51 = 1.250 and 52.06 / 41.40 = 1.257; 52.06 / 24.01 = 2.168."""
    gains = [Fraction(ours[4]) / Fraction(other[4]) for _, _, ours, *rest in RUNS for other in rest]
    assert [round(float(gain), 3) for gain in gains] == [1.25, 2.083, 1.257, 2.168]


def test_the_batches_of_mepipe_are_those_of_section_7_2() -> None:
    assert PRINTED == {128: "1.36x", 64: "1.49x", 32: "1.86x"}
