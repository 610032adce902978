// Which schedules are shown, which part of their time and lanes, and where that lies on the canvas.
//
// All schedules share one time axis, that of the first. One whose unit is another (a prediction in
// ticks beside what ran, in microseconds) is stretched so that both end together.

const ROW = 34, MOST = 720, HEAD = 22, AXIS = 30, TOP = 6; // pixels of the page

class ShownView {
  constructor(schedules) {
    this.schedules = schedules;
    this.shown = [schedules[0]];
    this.hasMemory = true;
    this.whole();
  }

  whole() {
    [this.from, this.to] = this.limits();
    [this.low, this.high] = [0, this.lanes().length];
  }

  // The time of all that is shown, on the axis of the first.
  limits() {
    const ends = this.shown.map((data) => data.window.map((time) => this.onAxis(data, time)));
    return [Math.min(...ends.map((e) => e[0])), Math.max(...ends.map((e) => e[1]))];
  }

  stretch(data) {
    const [base] = this.shown;
    if (data.unit === base.unit) { return 1; }
    return (base.window[1] - base.window[0]) / (data.window[1] - data.window[0]);
  }

  onAxis(data, time) {
    const factor = this.stretch(data);
    return factor === 1 ? time : this.shown[0].window[0] + (time - data.window[0]) * factor;
  }

  ofAxis(data, time) {
    const factor = this.stretch(data);
    return factor === 1 ? time : data.window[0] + (time - this.shown[0].window[0]) / factor;
  }

  // Every lane of what is shown: [schedule, its lane].
  lanes() {
    return this.shown.flatMap((data) => data.lanes.map((_, lane) => [data, lane]));
  }

  // Lay the picture out on so many pixels of the page.
  layOut(width) {
    const isNarrow = width < 640, lanes = this.lanes();
    this.width = width;
    this.left = isNarrow ? 46 : 84;
    const isRoomy = isNarrow || !this.memoryOf;
    this.right = isRoomy ? 8 : 164;
    this.plot = Math.max(width - this.left - this.right, 60);
    const heads = this.shown.length > 1 ? this.shown.length : 0;
    this.chart = Math.min(lanes.length * ROW, MOST);
    this.row = this.chart / Math.max(this.high - this.low, 1);
    this.stride = Math.max(1, Math.ceil(2 / this.row));
    this.places = this.placed(lanes, heads);
    const below = this.places.length ? this.places[this.places.length - 1] : null;
    this.bottom = below ? below.y + this.row * this.stride : TOP;
    this.layOutMemory();
  }

  // The schedule whose memory is drawn: the first that has any; null for none.
  get memoryOf() {
    return (this.hasMemory && this.shown.find((data) => data.stores.length)) || null;
  }

  // The lanes that are seen, from the top down: {data, lane, y}, and a line of words above each
  // schedule where there are several.
  placed(lanes, heads) {
    const found = [];
    this.heads = [];
    let y = TOP, before = null;
    for (let i = Math.floor(this.low); i < Math.min(Math.ceil(this.high), lanes.length); i++) {
      const [data, lane] = lanes[i];
      if (data !== before && heads) {
        this.heads.push({ data, y });
        y += HEAD;
      }
      before = data;
      if ((i - Math.floor(this.low)) % this.stride) { continue; }
      found.push({ data, lane, y });
      y += this.row * this.stride;
    }
    return found;
  }

  layOutMemory() {
    const stores = this.memoryOf ? this.memoryOf.stores.length : 0;
    this.panel = stores ? Math.min(Math.max(MOST / stores, 11), 54) : 0;
    const step = Math.max(1, Math.ceil((stores * this.panel) / MOST));
    this.panels = [];
    for (let store = 0; store < stores; store += step) {
      this.panels.push({ store, y: this.bottom + AXIS + HEAD + this.panels.length * this.panel });
    }
    this.step = step;
    const memory = this.panels.length ? HEAD + this.panels.length * this.panel + 8 : 0;
    this.height = Math.ceil(this.bottom + AXIS + memory);
  }

  x(time) { return this.left + ((time - this.from) / (this.to - this.from)) * this.plot; }

  time(x) { return this.from + ((x - this.left) / this.plot) * (this.to - this.from); }

  laneAt(y) {
    const height = this.row * this.stride;
    return this.places.find((place) => y >= place.y && y < place.y + height) || null;
  }

  panelAt(y) {
    return this.panels.find((panel) => y >= panel.y && y < panel.y + this.panel) || null;
  }

  // Show so much of the time as `factor` says, the time under `x` kept where it is.
  zoom(factor, x) {
    const at = this.time(x), [first, last] = this.limits();
    const least = Math.min(4, last - first), span = (this.to - this.from) * factor;
    const ticks = Math.min(Math.max(span, least), last - first);
    const share = (at - this.from) / (this.to - this.from);
    this.show(at - share * ticks, at + (1 - share) * ticks);
  }

  pan(pixels) {
    const ticks = (pixels / this.plot) * (this.to - this.from);
    this.show(this.from + ticks, this.to + ticks);
  }

  // Show the stretch, moved so that it lies within all.
  show(from, to) {
    const [first, last] = this.limits(), span = Math.min(to - from, last - first);
    this.from = Math.min(Math.max(from, first), last - span);
    this.to = this.from + span;
  }

  zoomLanes(factor, y) {
    const place = this.laneAt(y), all = this.lanes().length;
    const middle = place ? this.low + (y - TOP) / this.row : (this.low + this.high) / 2;
    const span = Math.min(Math.max((this.high - this.low) * factor, 1), all);
    const share = (middle - this.low) / (this.high - this.low);
    this.low = Math.round(Math.min(Math.max(middle - share * span, 0), all - span));
    this.high = Math.min(this.low + Math.max(1, Math.round(span)), all);
  }
}
