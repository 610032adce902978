"""The page's style sheet and its script: light, dark and print, without any address in them."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #56616d; --line: #d5dae0;
  --ground: #ffffff; --raised: #f5f6f8; --good: #11734a; --bad: #b3261e; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #a3adb8;
  --line: #3a434d; --ground: #15191e; --raised: #1f252c; --good: #5fd39c; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 28px 24px 60px; background: var(--ground);
  color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans",
  "DejaVu Sans", sans-serif; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 6px; }
h2 { font-size: 19px; margin: 34px 0 8px; padding-top: 14px; border-top: 1px solid var(--line); }
h3 { font-size: 15px; margin: 18px 0 6px; }
p { margin: 4px 0 10px; } .note, .soft { color: var(--soft); } .note { font-style: italic; }
nav a { margin-right: 16px; color: inherit; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 18px; margin: 6px 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 4px 18px 4px 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td.good { color: var(--good); font-weight: 600; } td.bad { color: var(--bad); font-weight: 600; }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: 4px;
  padding: 10px 12px; overflow-x: auto; font: 12.5px/1.4 ui-monospace, "Liberation Mono",
  "DejaVu Sans Mono", monospace; }
details { margin: 10px 0; border-top: 1px solid var(--line); }
summary { cursor: pointer; padding: 10px 0; font-size: 17px; font-weight: 600; }
summary span { font-weight: 400; font-size: 14px; color: var(--soft); margin-left: 10px; }
img { max-width: 100%; height: auto; background: #ffffff; border-radius: 4px; }
.chart { width: 100%; }
@media print { body { max-width: none; padding: 0; font-size: 11px; } table { font-size: 10px; }
  nav { display: none; } section, details { break-inside: avoid-page; }
  pre, .wide { overflow: visible; } pre { font-size: 8px; } .modebar { display: none; } }
"""

SCRIPT = """
(function () {
  var dark = matchMedia("(prefers-color-scheme: dark)");
  function colours(isDark) {
    var ink = isDark ? "#e6e9ec" : "#1d2329", line = isDark ? "#3a434d" : "#d5dae0";
    return { ink: ink, line: line };
  }
  function paint(layout, isDark) {
    var c = colours(isDark);
    layout.font = { size: 12, color: c.ink };
    Object.keys(layout).forEach(function (key) {
      if (/^[xy]axis/.test(key)) { layout[key].gridcolor = c.line; layout[key].linecolor = c.line; }
    });
    return layout;
  }
  function show(box, isDark, width) {
    var figure = JSON.parse(document.getElementById(box.dataset.figure).textContent);
    figure.layout = paint(figure.layout, isDark);
    if (width) { figure.layout.width = width; }
    Plotly.react(box, figure.data, figure.layout, { responsive: true, displaylogo: false,
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d",
        "resetScale2d"]] });
  }
  function visible() {
    return Array.prototype.filter.call(document.querySelectorAll(".chart"), function (box) {
      var holder = box.closest("details");
      return !holder || holder.open;
    });
  }
  function all(isDark, width) {
    visible().forEach(function (box) { show(box, isDark, width); });
  }
  document.querySelectorAll("details").forEach(function (holder) {
    holder.addEventListener("toggle", function () {
      if (holder.open) {
        holder.querySelectorAll(".chart").forEach(function (b) { show(b, dark.matches); });
      }
    });
  });
  document.querySelectorAll("nav a").forEach(function (link) {
    link.addEventListener("click", function () {
      var target = document.getElementById(link.hash.slice(1));
      if (target && target.tagName === "DETAILS") { target.open = true; }
    });
  });
  dark.addEventListener("change", function () { all(dark.matches); });
  addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (d) { d.open = true; });
    all(false, 700);  // an upright sheet of paper, in pixels
  });
  addEventListener("afterprint", function () { all(dark.matches); });
  all(dark.matches);
})();
"""
