// Memory below the lanes: the load of each store as a staircase, its capacity as a line, its peak in
// words. Where steps are narrower than a pixel the highest load within each pixel is drawn. Of
// several schedules the others are lines over the first.

class MemoryDrawing {
  constructor(context, view, look, ratio) {
    Object.assign(this, { context, view, look, ratio });
    this.ground = GROUNDS[look.isDark ? "dark" : "light"];
    this.data = view.memoryOf;
    const isOther = (data) => data !== this.data && data.stores.length && this.sameUnit(data);
    this.others = view.shown.filter(isOther);
  }

  sameUnit(data) {
    return data.memory.name === this.data.memory.name && data.memory.divisor === this.data.memory.divisor;
  }

  // The load at which panels end above: the same for all.
  get top() {
    const caps = this.data.stores.map(([, base, cap]) => Math.max(base, cap || 0));
    const peaks = [this.data, ...this.others].flatMap((data) => loadsOf(data).peak);
    return Math.max(...caps, ...peaks, 1);
  }

  draw() {
    const { view, context, ratio, ground } = this;
    if (!view.panels.length) { return; }
    const left = view.left * ratio, [{ y }] = view.panels;
    context.fillStyle = ground.ink;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.font = "600 " + 12 * ratio + "px " + FONT;
    const each = view.step > 1 ? ", 1 of " + view.step + " ranks" : "";
    write(this, "Memory (" + this.data.memory.name + ")" + each, left, (y - HEAD / 2) * ratio);
    const top = this.top;
    view.panels.forEach((panel) => this.panel(panel, top));
  }

  panel({ store, y }, top) {
    const { view, context, ratio, ground, data } = this, [name, , cap] = data.stores[store];
    const gap = view.panel < 24 ? 1 : 4; // below a panel
    const low = Math.round((y + view.panel - gap) * ratio), high = (view.panel - 1.5 * gap) * ratio;
    const levels = this.levels(data, store), left = Math.round(view.left * ratio);
    context.fillStyle = ground.area;
    context.beginPath();
    this.staircase(levels, left, low, high / top);
    context.lineTo(left + levels.length, low);
    context.lineTo(left, low);
    context.fill();
    this.stroke(levels, [left, low, high / top], ground.load, 1.2);
    this.others.forEach((other) => {
      if (store < other.stores.length) {
        this.stroke(this.levels(other, store), [left, low, high / top], ground.message, 1.2);
      }
    });
    if (cap !== null) { this.capacity(low - (cap / top) * high, left, levels.length); }
    this.words(name, data, store, y);
  }

  stroke(levels, [left, low, scale], colour, width) {
    const { context, ratio } = this;
    context.strokeStyle = colour;
    context.lineWidth = width * ratio;
    context.beginPath();
    this.staircase(levels, left, low, scale);
    context.stroke();
  }

  staircase(levels, left, low, scale) {
    this.context.moveTo(left, low - levels[0] * scale);
    for (let x = 1; x < levels.length; x++) {
      if (levels[x] === levels[x - 1]) { continue; }
      this.context.lineTo(left + x, low - levels[x - 1] * scale);
      this.context.lineTo(left + x, low - levels[x] * scale);
    }
    this.context.lineTo(left + levels.length, low - levels[levels.length - 1] * scale);
  }

  // The highest load within each pixel.
  levels(data, store) {
    const { view, ratio } = this, loads = loadsOf(data), width = Math.round(view.plot * ratio);
    const from = view.ofAxis(data, view.from), to = view.ofAxis(data, view.to);
    const found = new Float64Array(width), { when, firstEvent } = data, last = firstEvent[store + 1];
    let event = loads.eventAt(store, from);
    for (let x = 0; x < width; x++) {
      const until = from + ((x + 1) * (to - from)) / width, begun = event;
      while (event + 1 < last && when[event + 1] < until) { event++; }
      const held = begun < firstEvent[store] ? data.stores[store][1] : loads.load[begun];
      found[x] = event > begun ? Math.max(held, loads.highest(begun + 1, event)) : held;
    }
    return found;
  }

  capacity(y, left, width) {
    const { context, ratio, ground } = this;
    context.strokeStyle = ground.cap;
    context.lineWidth = 1.2 * ratio;
    context.setLineDash([6 * ratio, 3 * ratio]);
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(left + width, y);
    context.stroke();
    context.setLineDash([]);
  }

  words(name, data, store, y) {
    const { view, context, ratio, ground } = this, [, , cap] = data.stores[store];
    const peak = loadsOf(data).peak[store], isOver = cap !== null && peak > cap;
    const size = Math.min(11, view.panel - 2), lines = view.panel >= 28 ? 2 : 1;
    const room = "peak " + amount(data, peak), limit = cap === null ? "" : "cap " + amount(data, cap);
    context.font = size * ratio + "px " + FONT;
    context.textBaseline = "middle";
    context.fillStyle = isOver ? ground.cap : ground.ink;
    const middle = (y + view.panel / 2) * ratio, short = name.replace("memory of ", "");
    context.textAlign = "right";
    write(this, fitted(context, short, (view.left - 8) * ratio), (view.left - 7) * ratio, middle);
    context.textAlign = "left";
    if (view.right < 60) { return this.inside(room, y); }
    const x = (view.left + view.plot + 8) * ratio;
    if (lines === 1) { return write(this, [room, limit].filter(Boolean).join(", "), x, middle); }
    const half = limit ? size * 0.62 * ratio : 0;
    write(this, room, x, middle - half);
    context.fillStyle = ground.cap;
    return write(this, limit, x, middle + half);
  }

  // On a phone there is no room beside a panel.
  inside(text, y) {
    const { view, context, ratio } = this;
    if (view.panel < 24) { return; }
    context.font = 10 * ratio + "px " + FONT;
    context.textBaseline = "top";
    const x = (view.left + 4) * ratio, top = (y + 2) * ratio, colour = context.fillStyle;
    context.fillStyle = this.ground.ground; // no line crosses the words
    context.fillRect(x - 2 * ratio, top - ratio, context.measureText(text).width + 4 * ratio, 12 * ratio);
    context.fillStyle = colour;
    write(this, text, x, top);
  }
}
