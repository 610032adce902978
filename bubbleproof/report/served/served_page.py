"""The page of ``bubbleproof serve``: controls on top, the judged schedule in a frame below.

Its script (beside this file) asks the server for a verdict after every change; the frame shows the
page of ``show -o page.html``. ``settings`` (JSON) is what it may ask for: ``families`` (a name's
``fields`` and first ``values``), ``family`` (the first, or null), ``given`` (the names of schedules
from a file), ``trace`` (the address of a schedule's trace) and ``perfetto`` (Perfetto's with this
trace, or null); a view's number goes behind both.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from bubbleproof.report.document import page_style
from bubbleproof.report.html import embedded_json
from bubbleproof.report.palette import fill, text_on
from bubbleproof.theory.model.actions import Kind

SCRIPTS = ("fields", "order_rows", "served")
_BODY = """<main><h1>A schedule under your hands</h1>
<p class="headline" id="headline" role="status" aria-live="polite">…</p>
<form id="controls"><label>schedule <select id="origin"></select></label>
<span id="fields"></span>
<label>capacity <input type="range" id="capacity-slider" min="1" max="64" value="8"
 aria-label="capacity, slider"><input type="number" id="capacity" min="0" value="8"></label>
<label><input type="checkbox" id="unlimited" checked> no limit</label>
<button type="button" id="undo">Undo</button>
<button type="button" id="reset">Order as given</button>
</form>
<div id="verdict"></div>
<section id="orders" aria-label="Orders: drag an action, or move it with Shift and the arrow keys">
</section>
<p class="soft" id="downloads"></p>
<iframe id="view" title="The schedule, drawn and measured" sandbox="allow-scripts"></iframe>
</main>"""


def served_page(settings: Mapping[str, object]) -> str:
    """The page as text; it loads nothing but the frame."""
    room = files("bubbleproof.report")
    style = page_style() + room.joinpath("served", "served.css").read_text("utf-8")
    parts = (room.joinpath("served", f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    colours = {kind.name: [fill(kind), text_on(fill(kind))] for kind in Kind}
    data = embedded_json({**settings, "colours": colours}, name="settings")
    return (
        '<!doctype html>\n<html lang="en" class="bubbleproof"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>bubbleproof serve</title><style>{style}</style></head>\n<body>{_BODY}"
        f'{data}<script>(function () {{\n"use strict";\n{"".join(parts)}}})();</script>'
        "</body></html>\n"
    )
