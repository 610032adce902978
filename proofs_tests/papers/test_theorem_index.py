"""The index of proofs is what the theorems say; no row can be left out."""

from __future__ import annotations

import re

import pytest

from bubbleproof.papers.theorems.theorem_library import theorems
from proofs_tests.coq import FILES, THEOREM, text_of
from proofs_tests.papers import theorems as folder
from proofs_tests.papers.theorem_index import (
    BEGIN,
    COQ,
    END,
    PAGE,
    PARTS,
    compared,
    index,
    with_index,
)

TEXT = PAGE.read_text("utf-8").split(BEGIN)[1].split(END)[0].strip()


def rows(text: str) -> list[str]:
    return re.findall(r"^\| `.*\|$", text, re.MULTILINE)


def test_every_theorem_has_its_row_in_order() -> None:
    assert [row.split("`")[1] for row in rows(TEXT)] == list(theorems())


def test_the_rows_are_what_the_theorems_say() -> None:
    assert index().strip() == TEXT


def test_what_it_names_is_there() -> None:
    proved = {name for file in FILES for name in THEOREM.findall(text_of(file))}
    assert {name for names in COQ.values() for name in names} <= proved
    assert COQ.keys() == PARTS.keys() <= theorems().keys()
    assert compared().keys() <= theorems().keys()
    tests = {path.name for path in PAGE.parents[2].joinpath(*folder.__name__.split(".")).iterdir()}
    assert {test for test, _ in compared().values()} < tests
    assert len(set(re.findall(r"`(test_\w+\.py)`", TEXT)) - tests) == 0


def test_what_arguments_name_in_coq_is_there() -> None:
    named = [
        found
        for theorem in theorems().values()
        for found in re.findall(r"Coq, (\w+) of proofs/(\w+\.v)", theorem.argument)
    ]
    assert {name for name, _ in named} == {"frontier", "stages_bound", "bpipe_is_best"}
    for name, file in named:
        assert name in THEOREM.findall(text_of(file))


def test_a_page_without_marks_is_refused() -> None:
    assert with_index(f"a\n{BEGIN}old\n{END}b\n", "new\n\n") == f"a\n{BEGIN}\nnew\n\n{END}b\n"
    with pytest.raises(ValueError, match="must have the marks <!-- theorem index -->"):
        with_index("no marks\n", "new")
