"""What all pages share: the document around them, and verdicts in colour."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from bubbleproof.facts import FactSource, rows
from bubbleproof.report.html import BAD, GOOD, PLAIN, escape, table
from bubbleproof.report.viewer.viewer_parts import viewer_script, viewer_style


class VerdictRow(NamedTuple):
    """One rule and what became of it; ``verdict`` is a word such as ``holds`` or ``violated``."""

    rule: str
    verdict: str
    detail: str = ""


class ReplayRow(NamedTuple):
    """One piece of evidence from running a schedule: predicted, measured, and the verdict on it."""

    quantity: str
    predicted: str
    measured: str
    verdict: str


def replay_rows(result: FactSource) -> tuple[ReplayRow, ...]:
    """The evidence that a result of running a schedule states."""
    return tuple(ReplayRow(*cells) for cells in rows(result.facts()))


_GOOD_WORDS = frozenset({"holds", "yes", "ok", "proved", "equal", "passed", "pass", "optimal"})
_BAD_WORDS = frozenset({"violated", "no", "refuted", "differs", "failed", "fail", "infeasible"})


def document(title: str, body: str, *, has_viewer: bool) -> str:
    """The whole page around a body of HTML, with the viewer's script where it has one."""
    return html_page(title, body + (viewer_script() if has_viewer else ""))


def html_page(title: str, content: str, *, style: str = "", css: str = "") -> str:
    """The same with other scripts in its content, more ``style``, and a class of the body."""
    return (
        '<!doctype html>\n<html lang="en" class="bubbleproof"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{page_style()}{style}</style></head>\n"
        f"<body{css and f' class={css}'}>{content}</body></html>\n"
    )


def page_style() -> str:
    """The style of a page: the viewer's, then what stands beside it."""
    own = files("bubbleproof.report").joinpath("page.css").read_text("utf-8")
    return viewer_style() + own


def mood(verdict: str) -> str:
    """The class of a cell that holds a verdict."""
    word = verdict.strip().lower()
    return GOOD if word in _GOOD_WORDS else BAD if word in _BAD_WORDS else PLAIN


def replay_table(rows: Sequence[ReplayRow]) -> str:
    """The evidence of a replay."""
    moods = [mood(row.verdict) for row in rows]
    return table(ReplayRow._fields, rows, moods=moods, mood_column=3)
