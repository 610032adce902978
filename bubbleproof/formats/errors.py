"""The one error of this room: input that cannot be used, told in one clear line.

The line names the file, the place in it, what was expected and what was found. Whoever finds the
fault knows the place; whoever was given the file names it, once, with ``about``:

>>> with about("a.csv"):
...     raise UnusableInput("row 1, column 3", "an action", quoted("0F0x"))
Traceback (most recent call last):
bubbleproof.formats.errors.UnusableInput: a.csv: row 1, column 3: expected an action, found '0F0x'
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Self

from bubbleproof.error_base import Error

LONGEST_QUOTE = 60


class UnusableInput(Error, ValueError):  # noqa: N818 - the name says what is wrong
    """Content that a reader cannot take, or that a writer cannot say in its format.

    ``where`` is the row, column or key, empty for the whole. ``expected`` and ``found`` are
    phrases; quote a found value with ``quoted``. ``subject`` is the file (or what stands in for
    one), empty until ``about`` names it. Values that each are well, but do not fit together, have a
    sentence of their own (``of_values``).
    """

    def __init__(
        self, where: str, expected: str, found: str, subject: str = "", sentence: str = ""
    ) -> None:
        super().__init__(where, expected, found, subject, sentence)
        self.where, self.expected, self.found = where, expected, found
        self.subject, self.sentence = subject, sentence

    @classmethod
    def of_values(cls, where: str, sentence: str) -> Self:
        """What is wrong with the values at a place, in one sentence."""
        return cls(where, "", "", sentence=one_line(sentence, 300))

    def at(self, where: str) -> UnusableInput:
        """The same, found at another place."""
        return UnusableInput(where, self.expected, self.found, self.subject, self.sentence)

    def __str__(self) -> str:
        finding = self.sentence or f"expected {self.expected}, found {self.found}"
        parts = one_line(self.subject, 200), self.where, finding
        return one_line(": ".join(filter(None, parts)), 1_000)


@contextmanager
def about(subject: str | os.PathLike[str]) -> Iterator[None]:
    """Names the file in every ``UnusableInput`` raised within that names none yet."""
    try:
        yield
    except UnusableInput as error:
        error.subject = error.subject or os.fspath(subject)
        raise


@contextmanager
def inside(place: str) -> Iterator[None]:
    """Puts the place of a part of the file before that of every ``UnusableInput`` raised within."""
    try:
        yield
    except UnusableInput as error:
        joint = "" if error.where.startswith("[") else "."
        error.where = joint.join(filter(None, [place, error.where]))
        raise


@contextmanager
def values_at(where: str) -> Iterator[None]:
    """Turns a ``ValueError`` raised within into an ``UnusableInput`` at ``where``."""
    try:
        yield
    except UnusableInput:
        raise
    except ValueError as error:
        raise UnusableInput.of_values(where, str(error)) from None


def quoted(value: object) -> str:
    """A value as it may stand in a message: on one line and at most ``LONGEST_QUOTE`` characters.

    >>> quoted("x" * 1000)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' (1000 characters)"
    """
    if isinstance(value, str):
        cut = f"{value[:LONGEST_QUOTE] + '...'!r} ({len(value)} characters)"
        return repr(value) if len(value) <= LONGEST_QUOTE else cut
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"a table of {len(value)} key" + ("" if len(value) == 1 else "s")
    if isinstance(value, int) and abs(value) >= 10**LONGEST_QUOTE:
        return f"a number of more than {LONGEST_QUOTE} digits"
    told = str(value) if isinstance(value, int | float | date) else f"a {type(value).__name__}"
    told = told.lower() if isinstance(value, bool) else told
    return "nothing" if value is None else told


def one_line(text: str, limit: int) -> str:
    """The text on one line without control characters, cut after ``limit`` characters."""
    printable = "".join(c if c.isprintable() else "?" for c in text[:limit])
    return printable + ("..." if len(text) > limit else "")
