// One chart of a page: what is shown, how it looks, and what a reader chose. It draws when something
// has changed, once a frame.

class Viewer {
  constructor(box, schedules) {
    this.box = box;
    this.view = new ShownView(schedules);
    const first = Number(box.dataset.shown || 1);
    this.view.shown = schedules.slice(0, first);
    this.look = { isDark: false, palette: "standard", causes: "causes" in box.dataset, messages: false, memory: true, path: false,
      colours: new Map(), labels: null, strip: document.createElement("canvas") };
    this.chosen = { data: schedules[0], row: null, time: null, store: null };
    this.found = [];
    this.foundAt = -1;
    this.marked = []; // rows that are framed, whatever is searched
    this.highlighted = [];
    this.onpick = this.onpalette = () => {};
    this.controls = new Controls(this);
    this.canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": box.dataset.words || "" });
    this.said = element("div", { class: "viewer-said", "aria-live": "polite" });
    this.tip = element("div", { class: "viewer-tip", hidden: "" });
    this.legend = element("div");
    this.keys = element("table", { class: "viewer-keys", hidden: "" }, ...KEYS.map(([key, does]) =>
      element("tr", {}, element("th", { scope: "row" }, key), element("td", {}, does))));
    box.replaceChildren(this.controls.bar, this.keys, this.legend, this.canvas, this.tip, this.said);
    this.repaint();
    this.highlight((box.dataset.marked || "").split(" ").filter(Boolean));
    this.showFirst();
    new Pointer(this);
    new Keyboard(this);
    this.size = new ResizeObserver(() => this.ask());
    this.size.observe(box);
  }

  showKeys() { this.keys.hidden = !this.keys.hidden; }

  end() { this.size.disconnect(); }

  // All of it, or the window that was asked for.
  showFirst() {
    this.view.whole();
    const [from, to] = (this.box.dataset.window || "").split(":").map(Number);
    if (to > from) { this.view.show(from, to); }
    this.draw();
  }

  // Colours anew, after the palette, the ground or what is shown has changed.
  repaint() {
    for (const data of this.view.schedules) { this.look.colours.set(data, sortColours(data, this.look)); }
    this.view.hasMemory = this.look.memory;
    this.legend.replaceChildren(this.controls.legend());
    this.controls.pressed();
  }

  ask() {
    if (this.asked) { return; }
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  draw() {
    const { view, look, canvas } = this, ratio = this.ratio || window.devicePixelRatio || 1;
    view.layOut(this.width || this.box.clientWidth);
    const [width, height] = [view.width, view.height].map((side) => Math.round(side * ratio));
    if (canvas.width !== width || canvas.height !== height) { [canvas.width, canvas.height] = [width, height]; }
    [canvas.style.width, canvas.style.height] = [view.width + "px", view.height + "px"];
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, width, height);
    const lanes = new LaneDrawing(context, view, look, ratio);
    lanes.paint();
    lanes.numbers();
    lanes.names();
    lanes.faults();
    lanes.axis();
    if (view.memoryOf) { new MemoryDrawing(context, view, look, ratio).draw(); }
    this.marks(new MarkDrawing(context, view, look, ratio));
  }

  // The words that are drawn, each with its box and its letters' size in pixels of the page.
  labelBoxes() {
    this.look.labels = [];
    this.draw();
    const { labels } = this.look, ratio = this.canvas.width / this.view.width;
    this.look.labels = null;
    return labels.map(({ words, ...box }) => {
      const inPage = Object.entries(box).map(([side, value]) => [side, value / ratio]);
      return { words, ...Object.fromEntries(inPage) };
    });
  }

  marks(marks) {
    const { look, chosen, view } = this;
    if (look.messages && marks.messages() > MOST_ARROWS) {
      this.controls.count.textContent = "more than " + MOST_ARROWS + " messages: zoom in to see them";
    }
    if (look.path) { view.shown.forEach((data) => marks.path(data)); }
    [...this.marked, ...this.found].slice(0, 4000).forEach(
      ({ data, row }) => marks.frame(data, row, marks.ground.mark, 2));
    if (!view.shown.includes(chosen.data)) { return; }
    marks.chosen(chosen);
    if (chosen.time !== null) { marks.instant(view.x(view.onAxis(chosen.data, chosen.time))); }
  }

  whole() { this.view.whole(); this.ask(); }

  zoom(factor, x) { this.view.zoom(factor, x); this.ask(); }

  toggle(name) {
    this.look[name] = !this.look[name];
    this.controls.count.textContent = "";
    this.repaint();
    this.ask();
  }

  choosePalette(name) {
    if (name === this.look.palette) { return; }
    this.look.palette = name;
    this.repaint();
    this.ask();
    this.onpalette(name);
  }

  // Frame every row that one of these texts finds, as the search writes them.
  highlight(texts) {
    this.highlighted = texts;
    this.marked = texts.flatMap((text) => foundRows(this.view.schedules, text));
    this.ask();
  }

  // Draw other schedules in the place of these.
  exchange(schedules) {
    const { view, look, controls } = this, kept = keptOf(this), text = controls.search.value;
    view.schedules = schedules;
    look.colours.clear();
    restoreView(view, kept);
    controls.fill();
    this.found = text ? foundRows(view.shown, text) : [];
    this.foundAt = Math.min(kept.foundAt, this.found.length - 1);
    this.highlight(this.highlighted);
    const data = schedules[Math.max(kept.number, 0)] || schedules[0];
    const store = kept.store !== null && kept.store < data.stores.length ? kept.store : null;
    this.repaint();
    this.pick(data, kept.label ? rowAgain(data, kept) : null, kept.time, store);
  }

  // Show one more schedule, or one less; one stays.
  choose(data, isShown) {
    const { view } = this, shown = view.schedules.filter((one) => one === data ? isShown : view.shown.includes(one));
    if (!shown.length) { return; }
    view.shown = shown;
    this.repaint();
    this.whole();
  }

  darken(isDark) { this.look.isDark = isDark; this.repaint(); this.draw(); }

  find(text) {
    this.found = foundRows(this.view.shown, text);
    this.foundAt = -1;
    const none = text.trim() ? "not found" : "";
    this.controls.count.textContent = this.found.length ? this.found.length.toLocaleString("en") + " found" : none;
    if (this.found.length) { this.next(1); }
    this.ask();
  }

  next(by) {
    const all = this.found.length;
    if (!all) { return; }
    this.foundAt = this.foundAt < 0 ? 0 : (this.foundAt + by + all) % all;
    this.controls.count.textContent = this.foundAt + 1 + " of " + all.toLocaleString("en");
    const { data, row } = this.found[this.foundAt];
    this.pick(data, row);
    this.bring(data, row);
  }

  // Move, and zoom where it must be, so that a row is seen.
  bring(data, row) {
    const { view } = this, start = view.onAxis(data, data.start[row]), end = view.onAxis(data, data.end(row));
    const most = (Math.max(end - start, 1e-9) * view.plot) / 16; // ticks of which the row is 16 pixels
    const span = Math.min(view.to - view.from, most);
    const isSeen = start >= view.from && end <= view.to && span === view.to - view.from;
    if (!isSeen) { view.show((start + end - span) / 2, (start + end + span) / 2); }
    const lane = view.lanes().findIndex(([one, at]) => one === data && at === data.placeOf(row)[0]);
    if (lane < view.low || lane >= view.high) { [view.low, view.high] = [0, view.lanes().length]; }
    this.ask();
  }

  // Choose a row, or nothing (null): its words and what it waits for stay.
  pick(data, row, time = null, store = null) {
    this.chosen = { data, row, time, store };
    const lines = row === null ? [] : tellRow(data, row);
    const held = store === null ? [] : tellLive(data, store, time);
    this.said.replaceChildren(...[lines, held].filter((one) => one.length).map(told));
    this.ask();
    this.onpick(plainChoice(this.chosen));
  }

  // The row under a point of the page; a bar before idle time.
  rowAt(x, y) {
    const place = this.view.laneAt(y);
    if (!place) { return null; }
    const { data, lane } = place, time = this.view.ofAxis(data, this.view.time(x));
    const low = y > place.y + (this.view.row * this.view.stride) / 2 ? 2 : 1;
    let found = null;
    for (let sort = 0; sort < data.numSorts; sort++) {
      const [first, after] = data.bucket(lane, sort), half = data.sorts[sort].half;
      const row = lastAtMost(data.start, time, first, after);
      if (row < first || time >= data.end(row) || (half && half !== low)) { continue; }
      if (found === null || data.sorts[sort].kind !== "idle") { found = row; }
    }
    return { data, lane, row: found, time };
  }
}

function told([first, ...rest]) {
  return element("div", {}, element("b", {}, first), ...rest.map((line) => element("div", {}, line)));
}
