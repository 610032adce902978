// The line of buttons above a chart, the legend, and the words below it.

const KEYS = [
  ["drag", "move"], ["shift and drag, double click", "zoom in"], ["Ctrl and wheel", "zoom"],
  ["\u2190 \u2192", "move"], ["\u2191 \u2193, + -", "zoom"], ["0", "show all"], ["Home End", "the beginning, the end"],
  ["/", "find an action"], ["n N", "the next, the one before"], ["m", "messages"], ["c", "causes of idle time"],
  ["p", "critical path"], [", .", "the rank's action before, after"], ["Esc", "choose nothing"], ["?", "this table"],
];

function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) { made.addEventListener(key.slice(2), value); } else { made.setAttribute(key, value); }
  }
  made.append(...inside);
  return made;
}

class Controls {
  constructor(viewer) {
    this.viewer = viewer;
    this.bar = element("div", { class: "viewer-bar", role: "toolbar", "aria-label": "chart" });
    this.search = element("input", { type: "search", placeholder: "find 0F3, B7 ...",
      "aria-label": "find an action", oninput: () => viewer.find(this.search.value),
      onkeydown: (event) => { if (event.key === "Enter") { viewer.next(event.shiftKey ? -1 : 1); } } });
    this.count = element("span", { class: "viewer-count", "aria-live": "polite" });
    this.fill();
  }

  button(words, title, action) {
    return element("button", { type: "button", title, "aria-label": title, onclick: action }, words);
  }

  toggle(name, title) {
    const { look } = this.viewer, made = this.button(name, title, () => this.viewer.toggle(name));
    made.setAttribute("aria-pressed", String(look[name]));
    this.toggles[name] = made;
    return made;
  }

  fill() {
    const { viewer } = this, { view } = viewer, middle = () => view.left + view.plot / 2;
    const palette = element("select", { "aria-label": "colours", title: "colours",
      onchange: () => viewer.choosePalette(palette.value) },
      ...Object.keys(PALETTES).map((name) => element("option", {}, name)));
    [this.palette, this.toggles] = [palette, {}];
    this.bar.replaceChildren(
      this.button("all", "show all (0)", () => viewer.whole()),
      this.button("\u2212", "zoom out (-)", () => viewer.zoom(1.5, middle())),
      this.button("+", "zoom in (+)", () => viewer.zoom(1 / 1.5, middle())),
      this.toggle("messages", "messages between ranks as arrows (m)"));
    if (view.schedules.some((data) => data.sentences.length)) {
      this.bar.append(this.toggle("causes", "colour idle time by its cause (c)"),
        this.toggle("path", "the critical path: what makes it as long as it is (p)"));
    }
    if (view.schedules.some((data) => data.stores.length)) {
      this.bar.append(this.toggle("memory", "what ranks hold"));
    }
    this.bar.append(palette, this.search, this.button("?", "keys (?)", () => viewer.showKeys()), this.count);
    if (view.schedules.length > 1) { this.bar.append(this.choices()); }
  }

  choices() {
    const { viewer } = this, { view } = viewer, made = element("span", { class: "viewer-shown" });
    view.schedules.forEach((data) => {
      const box = element("input", { type: "checkbox", onchange: () => {
        viewer.choose(data, box.checked);
        box.checked = view.shown.includes(data);
      } });
      box.checked = view.shown.includes(data);
      made.append(element("label", {}, box, data.name));
    });
    return made;
  }

  pressed() {
    this.palette.value = this.viewer.look.palette;
    for (const [name, made] of Object.entries(this.toggles)) {
      made.setAttribute("aria-pressed", String(this.viewer.look[name]));
    }
  }

  // The kinds and causes of what is shown, with their colours.
  legend() {
    const { view, look } = this.viewer, entries = new Map();
    for (const data of view.shown) {
      const colours = look.colours.get(data);
      data.sorts.forEach((sort, number) => {
        if (sort.kind === "idle") {
          const [low, high] = this.extent(data, number);
          if (look.causes && high > low) { entries.set("idle: " + sort.words, [colours[number].fill, sort.meaning]); }
        } else if (!entries.has(sort.words)) { entries.set(sort.words, [colours[number].fill, ""]); }
      });
      if (!look.causes) { entries.set("idle", [colours[data.numSorts].fill, ""]); }
    }
    const made = element("div", { class: "viewer-legend" });
    for (const [words, [colour, title]] of entries) {
      const swatch = element("i");
      swatch.style.background = colour;
      made.append(element("span", { title }, swatch, words));
    }
    const [{ chunks }] = view.shown;
    if (chunks > 1) { made.append(element("span", {}, "dark to light: chunk 0 to " + (chunks - 1))); }
    return made;
  }

  // How many rows of a sort there are on all lanes, as a stretch.
  extent(data, sort) {
    let count = 0;
    for (let lane = 0; lane < data.lanes.length; lane++) {
      const [low, high] = data.bucket(lane, sort);
      count += high - low;
    }
    return [0, count];
  }
}
