"""What all pages share: the document around them, a schedule's chart, and verdicts in colour."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files

from bubbleproof.report.extras import need
from bubbleproof.report.gantt import picture
from bubbleproof.report.html import BAD, GOOD, PLAIN, embedded_json, escape, paragraph, table
from bubbleproof.report.interactive import figure, levels
from bubbleproof.report.table_rows import ReplayRow
from bubbleproof.report.timeline import Timeline

_GOOD_WORDS = frozenset({"holds", "yes", "ok", "proved", "equal", "passed", "pass", "optimal"})
_BAD_WORDS = frozenset({"violated", "no", "refuted", "differs", "failed", "fail", "infeasible"})


def document(title: str, body: str, *, has_charts: bool) -> str:
    """The whole page around a body of HTML, with plotly's script where it has charts."""
    scripts = ""
    if has_charts:
        library = need("plotly.offline").get_plotlyjs()
        scripts = f"<script>{library}</script><script>{_beside('page.js')}</script>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_beside('page.css')}</style></head>\n"
        f"<body>{body}{scripts}</body></html>\n"
    )


def _beside(name: str) -> str:
    """The text of a file of this room."""
    return files("bubbleproof.report").joinpath(name).read_text("utf-8")


def chart(name: str, title: str, view: Timeline) -> str:
    """The figure's data and notes, or a still picture (which holds its notes) of a thinned one."""
    if not view.is_thinned:
        notes = "".join(paragraph(n, css="note") for n in (*_cells_note(view), *view.notes))
        return plot(name, figure(view)) + notes
    image = b64encode(picture(view, title=title)).decode()
    words = " ".join([f"Gantt chart and memory of {title}.", *view.notes])
    return f'<img alt="{escape(words)}" src="data:image/svg+xml;base64,{image}">'


def plot(name: str, content: object) -> str:
    """A chart of plotly's from its figure as plain data."""
    data = embedded_json(content, name=name)
    return f'<div class="chart" data-figure="{escape(name)}"></div>{data}'


def mood(verdict: str) -> str:
    """The class of a cell that holds a verdict."""
    word = verdict.strip().lower()
    return GOOD if word in _GOOD_WORDS else BAD if word in _BAD_WORDS else PLAIN


def replay_table(rows: Sequence[ReplayRow]) -> str:
    """The evidence of a replay."""
    moods = [mood(row.verdict) for row in rows]
    return table(ReplayRow._fields, rows, moods=moods, mood_column=3)


def _cells_note(view: Timeline) -> list[str]:
    if levels(view) == [0]:
        return []
    return [
        "Where actions are narrower than two pixels, cells stand for them, coloured so that the "
        "area of a colour is its share of time; zoom in to see the actions."
    ]
