"""Public functions say what they take and give; how many do not yet may only fall."""

from __future__ import annotations

import ast

import pytest

from proofs_tests.docstrings import (
    functions,
    functions_of,
    lacks,
    swallows_its_example,
    told,
    trees,
    without,
    worth_telling,
)

MOST = {"theory": 0, "verify": 0, "solvers": 0, "costs": 0, "planners": 0}

SOURCE = '''
def stays(units: int, problem: Problem) -> int:
    """How long a load is there.

    Parameters
    ----------
    units
        Units of memory.

    Returns
    -------
    int
        Ticks.
    """
'''


def function(source: str) -> ast.FunctionDef:
    """The first function of a source."""
    [(_, found)] = functions(source)
    assert isinstance(found, ast.FunctionDef)
    return found


def test_public_functions_tell_their_parameters() -> None:
    rows = without()
    assert {room: len(found) for room, found in rows.items() if len(found) > MOST[room]} == {}


def test_a_type_of_ours_says_what_it_is_and_a_number_does_not() -> None:
    found = function("def f(a: int, b: Problem, c: Ints | None, d: Sequence[Action]) -> int: ...")
    assert worth_telling(found) == ["a", "c"]


def test_what_a_section_names_is_told() -> None:
    found = function(SOURCE)
    assert told(ast.get_docstring(found) or "") == {"units"}
    assert lacks("stays", found) == ""


@pytest.mark.parametrize(
    ("old", "new", "lacking"),
    [
        ("    units\n", "    unit\n", "Parameters: units"),
        ("Parameters\n", "Arguments\n", "Parameters: units"),
        ("How long a load is there", "Stays", "a word that is not its name"),
        ('"""', "#", "a docstring"),
    ],
)
def test_a_docstring_that_lacks_something_is_found(old: str, new: str, lacking: str) -> None:
    changed = SOURCE.replace(old, new, 1)
    if new == "#":
        changed = "def stays(units: int) -> int:\n    return units\n"
    assert lacks("stays", function(changed)) == lacking


def test_what_nobody_calls_with_arguments_is_passed_over() -> None:
    source = """
class Store:
    @property
    def size(self) -> int: ...
    def _held(self, units: int) -> int: ...
    def __add__(self, units: int) -> int: ...
    def room(self, units: int) -> int: ...
class _Own:
    def room(self, units: int) -> int: ...
"""
    assert [name for name, _ in functions(source)] == ["Store.room"]


def test_examples_have_a_section_of_their_own() -> None:
    public = ((name, *each) for name, tree in trees().items() for each in functions_of(tree))
    docstrings = {(file, name): ast.get_docstring(found) or "" for file, name, found in public}
    assert [place for place, text in docstrings.items() if swallows_its_example(text)] == []


@pytest.mark.parametrize(("heading", "is_swallowed"), [("", True), ("Examples\n--------\n", False)])
def test_an_example_after_the_parameters_is_found(heading: str, is_swallowed: bool) -> None:
    docstring = f"Told.\n\nParameters\n----------\na\n    One.\n\n{heading}>>> f(1)\n2"
    assert swallows_its_example(docstring) is is_swallowed
    assert not swallows_its_example("Told.\n\n>>> f(1)\n2\n\nParameters\n----------\na\n    One.")
