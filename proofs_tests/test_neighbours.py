"""Each cell of ours in the table of neighbours names tests that are there and run."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guide" / "neighbours.md"
NAME = re.compile(r"`(proofs_tests/[\w/]+\.py)::(\w+)`")
NEVER = {"skip", "xfail"}


def table(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


ROWS = table(PAGE.read_text("utf-8"))


def fault(file: str, test: str) -> str:
    """Why pytest would not run a test of that name, or nothing."""
    path = ROOT / file
    if not path.is_file() or not path.name.startswith("test_"):
        return f"{file} holds no tests"
    found = _functions_of(path).get(test)
    if found is None or not test.startswith("test_"):
        return f"{file} has no {test}"
    marks = {
        each.attr
        for decorator in found.decorator_list
        for each in ast.walk(decorator)
        if isinstance(each, ast.Attribute)
    }
    return f"{test} is left out: {marks & NEVER}" if marks & NEVER else ""


@cache
def _functions_of(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text("utf-8"))
    return {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_each_of_our_cells_is_shown_by_a_test(row: list[str]) -> None:
    names = NAME.findall(row[3])
    assert row[2]
    assert names
    assert [why for file, test in names if (why := fault(file, test))] == []


def test_each_neighbours_cell_names_a_source() -> None:
    text = PAGE.read_text("utf-8")
    listed = set(re.findall(r"^(\d+)\. ", text, re.MULTILINE))
    cited = {number for row in ROWS for each in re.findall(r"\[([\d, ]+)\]", row[1])
             for number in each.split(", ")}  # fmt: skip
    assert cited == listed


def test_what_is_not_there_is_told() -> None:
    here = "proofs_tests/test_neighbours.py"
    assert fault(here, "test_what_is_not_there_is_told") == ""
    assert fault(here, "test_nothing") == f"{here} has no test_nothing"
    assert fault(here, "_functions_of") == f"{here} has no _functions_of"
    assert fault("proofs_tests/sized.py", "sized") == "proofs_tests/sized.py holds no tests"
