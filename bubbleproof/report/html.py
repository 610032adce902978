"""Pieces of an HTML page; every piece escapes the text it is given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape as _escaped

from bubbleproof.formats.printable import harmless

GOOD, BAD, PLAIN = "good", "bad", ""


def escape(text: str) -> str:
    """The text for a page: no markup of its own, and nothing that hides."""
    return _escaped(harmless(text))


def section(title: str, *parts: str) -> str:
    """A part of the page under its heading; ``parts`` are HTML."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def paragraph(text: str, *, css: str = "") -> str:
    """One paragraph of plain text."""
    return f'<p class="{escape(css)}">{escape(text)}</p>'


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    moods: Sequence[str] = (),
    mood_column: int = 0,
) -> str:
    """A table of text; ``moods`` gives one column's cell in each row a class (or none).

    On a narrow screen each row is a list, in which a cell has its column's name before it.
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    begun = [f'<td data-of="{escape(name)}"' for name in columns]
    body = []
    for number, row in enumerate(rows):
        mood = moods[number] if number < len(moods) else PLAIN
        cells = [f"{start}>{_cell(cell)}</td>" for start, cell in zip(begun, row, strict=True)]
        if mood:
            cells[mood_column] = cells[mood_column].replace("<td", f'<td class="{mood}"', 1)
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    """The text, with a percent sign kept on its number's line."""
    return escape(text).replace(" %", "\u00a0%")


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    """A list of names and what they stand for."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return f"<dl>{items}</dl>"


def preformatted(text: str) -> str:
    """A block that keeps its line breaks and columns."""
    return f"<pre>{escape(text)}</pre>"


def embedded_json(value: object, *, name: str) -> str:
    """Data for the page's script; no text in it can end the element or begin a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json" id="{escape(name)}">{text}</script>'
