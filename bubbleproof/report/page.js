// Draws the charts of a page: as it opens, in the colours of the screen, and for print.
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
  // Of bars that are actions and of cells that stand for them, those to be shown: the finest whose
  // typical bar has two pixels on the time axis as it is now.
  function level(cells, typical, ticksPerPixel) {
    var least = 2 * ticksPerPixel;
    var fit = cells.filter(function (c) { return (c || typical) >= least; });
    return fit.length ? Math.min.apply(null, fit) : Math.max.apply(null, cells);
  }
  function refine(box) {
    var axis = box._fullLayout && box._fullLayout.xaxis;
    if (!box.layout.meta || !axis) { return; }
    var bars = box.data.map(function (t) { return t.meta ? t.meta.cell : null; });
    var cells = bars.filter(function (c) { return c !== null; });
    if (!cells.length) { return; }
    var span = Math.abs(axis.range[1] - axis.range[0]);
    var shown = level(cells, box.layout.meta.typical, span / axis._length);
    if (shown === box.shownLevel) { return; }
    box.shownLevel = shown;
    Plotly.restyle(box, { visible: bars.map(function (c) { return c === null || c === shown; }) });
  }
  function show(box, isDark, width) {
    var figure = JSON.parse(document.getElementById(box.dataset.figure).textContent);
    figure.layout = paint(figure.layout, isDark);
    if (width) { figure.layout.width = width; }
    Plotly.react(box, figure.data, figure.layout, { responsive: true, displaylogo: false,
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d",
        "resetScale2d"]] }).then(function () {
      box.shownLevel = null;
      if (!box.watched) { box.on("plotly_relayout", function () { refine(box); }); }
      box.watched = true;
      refine(box);
    });
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
