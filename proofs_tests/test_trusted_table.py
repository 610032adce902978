"""The page of what is trusted has the rows that there are, and figures that are not out of date."""

from __future__ import annotations

import re

from proofs_tests.trusted_table import BEGIN, END, PAGE, rows

MOST_APART = 0.05  # of a figure on the page from the one now; the command writes it anew


def test_the_page_has_each_sentence_with_a_figure_that_is_near() -> None:
    text = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    shown = re.findall(r"^\| (.+?) \| (.+?) \| (\d+) \| ([\d,]+) \|$", text, re.MULTILINE)
    now = rows()
    assert [(told, what) for told, what, *_ in shown] == [(told, what) for told, what, *_ in now]
    for (*_, page), (told, _, _, lines) in zip(shown, now, strict=True):
        assert abs(int(page.replace(",", "")) - lines) <= MOST_APART * lines, told
