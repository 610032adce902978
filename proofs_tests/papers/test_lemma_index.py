"""The table of lemmas is what the page's lemmas say, and names nothing that is not there."""

from __future__ import annotations

import pytest

from proofs_tests.papers.lemma_index import BEGIN, END, INDEX, PAGE, lemmas, missing, with_table

RIGHT = """\
**Lemma 1 (one).** It holds.
*Shown by:* coq `packing` (a bound);
test `proofs_tests/papers/test_lemma_index.py::test_the_table_is_up_to_date`.
"""


def test_the_table_is_up_to_date() -> None:
    index = INDEX.read_text("utf-8")
    assert with_table(index, PAGE.read_text("utf-8")) == index


def test_every_lemma_has_a_test_or_a_proof_and_a_judge() -> None:
    found = lemmas(PAGE.read_text("utf-8"))
    assert len(found) >= 20
    for lemma in found:
        assert lemma.shown_by.keys() & {"coq", "z3", "test"}, lemma.name


def test_the_table_says_of_what_a_theorem_is_a_proof() -> None:
    index = with_table(f"{BEGIN}{END}", RIGHT)
    assert "| 1, one | coq `packing` (a bound) |" in index


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("coq `no_such_theorem` (all)", "coq no_such_theorem"),
        ("coq `life_ordered` (a lemma that is not asked)", "coq life_ordered"),
        ("z3 `no-theorem` (all)", "z3 no-theorem"),
        ("test `proofs_tests/papers/test_lemma_index.py::test_nothing`", "test_nothing"),
        ("test `proofs_tests/test_nowhere.py::test_nothing`", "test_nowhere"),
        ("code `verify/nothing.py`", "verify/nothing.py"),
    ],
)
def test_what_is_not_there_is_refused(wrong: str, why: str) -> None:
    page = f"**Lemma 1 (one).** It holds.\n*Shown by:* {wrong}.\n"
    assert [why in text for text in missing(lemmas(page)[0])] == [True]
    with pytest.raises(ValueError, match=why.replace(".", r"\.")):
        with_table(f"{BEGIN}{END}", page)


def test_what_is_there_is_accepted() -> None:
    (lemma,) = lemmas(RIGHT)
    assert (lemma.number, lemma.name, missing(lemma)) == (1, "one", [])


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (RIGHT.replace("Lemma 1", "Lemma 2"), "lemma 2 .one. stands where lemma 1 should"),
        (RIGHT.replace("*Shown by:*", "By"), "has no line"),
        (RIGHT.replace("coq", "faith"), "'faith' must be one of"),
        (
            RIGHT.replace(" (a bound)", ""),
            "coq `packing` must say .of what.",
        ),
        (RIGHT + RIGHT, "stands where lemma 2 should"),
    ],
)
def test_a_page_with_a_mistake_is_refused(page: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        lemmas(page)
    with pytest.raises(ValueError, match="must have the marks"):
        with_table("no marks", RIGHT)
