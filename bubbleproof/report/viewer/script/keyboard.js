// Keys of a chart that is chosen (focused).

class Keyboard {
  constructor(viewer) {
    this.viewer = viewer;
    viewer.canvas.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) { return; }
    const { viewer } = this, { view } = viewer, step = view.plot / 5, middle = view.left + view.plot / 2;
    const actions = {
      ArrowLeft: () => view.pan(-step),
      ArrowRight: () => view.pan(step),
      ArrowUp: () => view.zoom(1 / 1.5, middle),
      ArrowDown: () => view.zoom(1.5, middle),
      "+": () => view.zoom(1 / 1.5, middle),
      "=": () => view.zoom(1 / 1.5, middle),
      "-": () => view.zoom(1.5, middle),
      0: () => view.whole(),
      Home: () => view.show(view.limits()[0], view.limits()[0] + view.to - view.from),
      End: () => view.show(view.limits()[1] - view.to + view.from, view.limits()[1]),
      "/": () => viewer.controls.search.focus(),
      n: () => viewer.next(1),
      N: () => viewer.next(-1),
      m: () => viewer.toggle("messages"),
      c: () => viewer.toggle("causes"),
      p: () => viewer.toggle("path"),
      "?": () => viewer.showKeys(),
      ",": () => this.neighbour(-1),
      ".": () => this.neighbour(1),
      Escape: () => viewer.pick(viewer.chosen.data, null),
    };
    if (!actions[event.key]) { return; }
    event.preventDefault();
    actions[event.key]();
    viewer.ask();
  }

  // Choose what the rank does before or after what is chosen; at first what is in the middle.
  neighbour(by) {
    const { viewer } = this, { data, row } = viewer.chosen;
    const rows = this.rowsOf(data, row === null ? 0 : data.placeOf(row)[0]);
    const at = row === null ? (by > 0 ? -1 : rows.length) : rows.indexOf(row);
    const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (next === undefined) { return; }
    viewer.pick(data, next);
    viewer.bring(data, next);
  }

  rowsOf(data, lane) {
    const [low] = data.bucket(lane, 0), [, high] = data.bucket(lane, data.numSorts - 1);
    const rows = Array.from({ length: high - low }, (_, i) => low + i);
    return rows.sort((a, b) => data.start[a] - data.start[b]);
  }
}
