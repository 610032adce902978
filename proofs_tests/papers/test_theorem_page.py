"""The site's page of theorems has each with what proves it."""

from __future__ import annotations

from bubbleproof.papers.theorems.theorem_library import theorems
from website.theorem_pages import theorem_page


def test_the_page_of_theorems_has_each_with_what_proves_it() -> None:
    (text,) = theorem_page().values()
    sections = dict(each.split("\n", 1) for each in text.split("\n## ")[1:])
    assert list(sections) == list(theorems())
    for name, section in sections.items():
        assert "\nProved by\n: Z3, " in section, name
    assert "Coq" in sections["1f1b"]
