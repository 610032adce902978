"""Help, errors, pages and guides say what the field says: a list of our own words kept out."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bubbleproof as bp
from website.command_pages import command_pages

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("bubbleproof", "theory", "verify", "solvers", "reference_exec", "papers")
OURS = {  # what nobody else says: what to say
    "word of an engine": "an uncertified bound, with the solver's name",
    "engine's word": "an uncertified bound, with the solver's name",
    "by the word of": "by an uncertified bound of",
    "stays its word": "counts as proved only with a certificate",
    "engine that is lost": "solver crashes and time-outs",
    "no order at all below": "lower bound, and for which set",
    "which costs": "cost of this restriction",
    "to be the plan": "would win if",
    "in life": "timing noise",
    "where durations spread": "with timing noise",
    "LOSES.md": "UNSUPPORTED.md",
    "nothing waits for itself": "no deadlock",
    "stands still": "hangs, stops",
    "under your hands": "editor",
    "at the door": "in Python",
    "a promise": "what was predicted",
    "every promise": "all as predicted",
    "the promises": "what was predicted",
    "messages match in order": "sends and receives match",
    "not beaten in both": "Pareto front",
    "the file's own shape": "the file's own configuration",
    "as the schedule has it": "as scheduled",
}
GUIDES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
    *(
        page
        for folder in (
            *("guide", "tutorials", "own", "rules", "formats", "reference", "decisions", "paper"),
        )
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
)
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)  # commands write their outputs


def ours(text: str) -> list[str]:
    """Which of the words stand in a text, line breaks within them or not."""
    flat = " ".join(text.split()).lower()
    return [word for word in OURS if re.search(rf"\b{re.escape(word.lower())}\b", flat)]


def strings(source: str) -> Iterator[str]:
    """The strings of a module, its docstrings apart: outputs and errors are among them."""
    tree = ast.parse(source)
    said = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def docstrings() -> Iterator[tuple[str, str]]:
    """Those of the names of the package, and of the public names of its classes."""
    for name in bp.__all__:
        value = getattr(bp, name)
        yield name, inspect.getdoc(value) or ""
        if inspect.isclass(value):
            for own, member in inspect.getmembers(value):
                if not own.startswith("_"):
                    yield f"{name}.{own}", inspect.getdoc(member) or ""


def test_no_docstring_of_a_public_name_has_one() -> None:
    assert [(name, found) for name, text in docstrings() if (found := ours(text))] == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_has_none_of_our_words(page: Path) -> None:
    assert ours(_FENCED.sub("", page.read_text("utf-8"))) == []


def test_no_page_has_the_marks_of_a_merge() -> None:
    marked = re.compile(r"^(<{7} |>{7} |={7}$)", re.MULTILINE)
    pages = (*GUIDES, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "CHANGELOG.md")
    assert [page.name for page in pages if marked.search(page.read_text("utf-8"))] == []
    assert marked.search("a\n<<<<<<< HEAD\nb")


def test_no_help_of_a_command_has_one() -> None:
    assert {name: found for name, text in command_pages().items() if (found := ours(text))} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_output_or_error_has_one(package: str) -> None:
    found = [
        (path.relative_to(ROOT).as_posix(), word)
        for path in sorted((ROOT / package).rglob("*.py"))
        for text in strings(path.read_text("utf-8"))
        for word in ours(text)
    ]
    assert found == []


def test_a_word_is_found_across_lines_and_in_no_longer_word() -> None:
    assert ours("a word\n  of an Engine") == ["word of an engine"]
    assert ours("sandwich costs") == []
    assert [*strings('"""stands still"""\nx = "stands still"\n')] == ["stands still"]
