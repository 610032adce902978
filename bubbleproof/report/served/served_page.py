"""The page of ``bubbleproof serve``: controls on top, the judged schedule in a frame below.

Its script (beside this file) asks the server for a verdict after every change and hands the judged
schedule as a message to the frame, whose viewer keeps zoom, scroll and what was chosen.
``settings`` (JSON) is what it may ask for: ``families`` (a name's ``fields`` and first ``values``),
``family`` (the first, or null), ``given`` (schedules of a file, each a ``name`` and the ``numbers``
that may be changed), ``trace`` (the address of a schedule's trace) and ``perfetto`` (Perfetto's
with this trace, or null); a view's number goes behind both.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from bubbleproof.report.document import html_page
from bubbleproof.report.html import embedded_json
from bubbleproof.report.palette import fill, text_on
from bubbleproof.report.viewer.viewer_parts import viewer_script
from bubbleproof.theory.model.actions import Kind

SCRIPTS = ("fields", "order_rows", "told", "solver", "served")
_BODY = """<main><h1>Schedule editor</h1>
<p class="headline" id="headline" role="status" aria-live="polite">…</p>
<form id="controls"><label>schedule <select id="origin"></select></label>
<span id="fields"></span>
<label>capacity <input type="range" id="capacity-slider" min="1" max="64" value="8"
 aria-label="capacity, slider"><input type="number" id="capacity" min="0" value="8"></label>
<label><input type="checkbox" id="unlimited" checked> no limit</label>
<label title="what each rank holds, as 4,4,3,3; - for no limit">of each rank
 <input type="text" id="capacities" size="10" placeholder="as above"></label>
</form>
<p id="actions"><button type="button" id="undo">Undo</button>
<button type="button" id="reset">Order as given</button>
<label><input type="checkbox" id="beside"> beside the order as given</label>
<label class="button" tabindex="0">Open a file<input type="file" id="open" hidden
 accept=".json,.csv,.toml"></label>
<button type="button" id="solve">Solve from here</button>
<label>for <input type="number" id="seconds" min="1" max="600" value="10"> s</label>
<span id="solver" role="status" aria-live="polite"></span></p>
<div id="verdict"></div>
<p class="soft" id="measures"></p>
<section id="orders" aria-label="Orders: drag an action, or move it with Shift and the arrow keys">
</section>
<p class="soft" id="downloads"></p>
<iframe id="view" title="The schedule, drawn" sandbox="allow-scripts"></iframe>
</main>"""


def framed_page() -> str:
    """The page in the frame: a viewer that draws what the page around it sends."""
    script = files("bubbleproof.report").joinpath("served", "framed.js").read_text("utf-8")
    content = f'<div class="viewer" id="framed"></div>{viewer_script(script)}'
    return html_page("the schedule", content, css="framed")


def served_page(settings: Mapping[str, object]) -> str:
    """The page as text; it loads nothing but the frame."""
    room = files("bubbleproof.report")
    parts = (room.joinpath("served", f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    colours = {kind.name: [fill(kind), text_on(fill(kind))] for kind in Kind}
    data = embedded_json({**settings, "colours": colours}, name="settings")
    script = f'<script>(function () {{\n"use strict";\n{"".join(parts)}}})();</script>'
    style = room.joinpath("served", "served.css").read_text("utf-8")
    return html_page("bubbleproof serve", f"\n{_BODY}{data}{script}", style=style)
