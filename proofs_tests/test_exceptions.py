"""Every exception to the linter and to the type checker says what it excepts, and why."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofs_tests.structure import BESIDE

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("bubbleproof", *BESIDE, "proofs_tests", "benchmarks", "examples")
EXCEPTION = re.compile(r"#\s*(?:ruff:\s*)?(?:noqa|type:\s*ignore|mypy:|pragma:)", re.IGNORECASE)
REASONED = re.compile(
    r"# type: ignore\[[a-z-]+(, [a-z-]+)*\]  # \S.*"
    r"|# (ruff: )?noqa: [A-Z]+\d+(, [A-Z]+\d+)* - \S.*"
)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """(line, comment) of a file, strings left out."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def unreasoned(source: str) -> list[str]:
    """The exceptions of a file that name no rule or give no reason."""
    if not EXCEPTION.search(source):  # as in most files: to read its tokens takes a while
        return []
    return [
        f"line {line}: {comment}"
        for line, comment in comments(source)
        if EXCEPTION.match(comment) and not REASONED.fullmatch(comment)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_exception_has_its_reason(folder: str) -> None:
    found = {
        str(path.relative_to(ROOT)): wrong
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (wrong := unreasoned(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: N803",
        "#noqa:N803 - close up",
        "# type: ignore",
        "# type: ignore  # whatever it is",
        "# type: ignore[misc]",
        "# type:ignore[misc]  # close up",
        "# ruff: noqa",
        "# mypy: ignore-errors",
    ],
)
def test_an_exception_without_a_reason_is_found(comment: str) -> None:
    assert unreasoned(f"x = 1  {comment}\n") == [f"line 1: {comment}"]


def test_reasons_and_strings_pass() -> None:
    fine = (
        "# noqa: N803 - as the command has them",
        "# ruff: noqa: ARG001, N806 - one signature",
        "# type: ignore[arg-type, misc]  # fields by name",
        "# a noqa further on",
    )
    assert unreasoned("".join(f"x = 1  {comment}\n" for comment in fine)) == []
    assert unreasoned('x = "# type: ignore"\n') == []
