// What lies over the lanes: messages as arrows, what was found or chosen, and the chosen instant.

const MOST_ARROWS = 1500; // more hide what they cross

class MarkDrawing {
  constructor(context, view, look, ratio) {
    Object.assign(this, { context, view, look, ratio });
    this.lanes = new LaneDrawing(context, view, look, ratio);
    this.ground = this.lanes.ground;
  }

  placeOf(data, row) {
    const [lane] = data.placeOf(row);
    return this.view.places.find((place) => place.data === data && place.lane === lane) || null;
  }

  frame(data, row, colour, width) {
    const place = this.placeOf(data, row);
    if (!place) { return; }
    const [left, right] = this.lanes.within(data, data.start[row], data.end(row));
    const [top, height] = this.lanes.band(place);
    this.context.strokeStyle = colour;
    this.context.lineWidth = width * this.ratio;
    if (data.start[row] < this.view.ofAxis(data, this.view.to) && right >= this.view.left * this.ratio) {
      this.context.strokeRect(left, top, Math.max(right - left, 1), height);
    }
  }

  // A message from the end of one row to the start of another.
  arrow(data, from, to, isStrong, colour = this.ground.message) {
    const source = this.placeOf(data, from), target = this.placeOf(data, to);
    if (!source || !target) { return; }
    const { context, ratio, view } = this;
    const at = (time) => view.x(view.onAxis(data, time)) * ratio;
    const x0 = at(data.end(from)), x1 = at(data.start[to]);
    const middle = (place) => {
      const [top, height] = this.lanes.band(place);
      return top + height / 2;
    };
    context.save();
    context.beginPath();
    context.rect(view.left * ratio, 0, view.plot * ratio, view.bottom * ratio);
    context.clip();
    const y0 = middle(source), y1 = middle(target), bend = Math.max((x1 - x0) / 2, 6 * ratio);
    context.strokeStyle = context.fillStyle = colour;
    context.globalAlpha = isStrong ? 1 : 0.55;
    context.lineWidth = (isStrong ? 1.8 : 1) * ratio;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    context.stroke();
    const tip = Math.min((isStrong ? 6 : 4) * ratio, view.row * ratio * 0.4);
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - tip, y1 - tip * 0.6);
    context.lineTo(x1 - tip, y1 + tip * 0.6);
    context.fill();
    context.restore();
  }

  // Every message that ends in what is seen, unless there are too many.
  messages() {
    const found = [];
    for (const { data, lane } of this.view.places) {
      for (let sort = 0; sort < data.numSorts; sort++) {
        const [low, high] = data.bucket(lane, sort);
        const from = this.view.ofAxis(data, this.view.from), to = this.view.ofAxis(data, this.view.to);
        let row = Math.max(lastAtMost(data.start, from, low, high), low);
        for (; row < high && data.start[row] <= to; row++) {
          for (const [input] of data.inputsOf(row)) {
            if (data.placeOf(input)[0] !== lane) { found.push([data, input, row]); }
          }
          if (found.length > MOST_ARROWS) { return found.length; }
        }
      }
    }
    found.forEach(([data, from, to]) => this.arrow(data, from, to, false));
    return found.length;
  }

  // Messages of a row: from what it waits for on other lanes, and to what waits for it.
  chosen({ data, row }) {
    if (row === null) { return; }
    this.frame(data, row, this.ground.ink, 2);
    if (data.isIdle(row)) { return; }
    const [lane] = data.placeOf(row), isElsewhere = (other) => data.placeOf(other)[0] !== lane;
    const inputs = data.inputsOf(row).map(([input]) => input);
    inputs.filter(isElsewhere).forEach((input) => this.arrow(data, input, row, true));
    data.outputsOf(row).filter(isElsewhere).forEach((output) => this.arrow(data, row, output, true));
  }

  // The chain of rows that makes a schedule as long as it is, framed and joined.
  path(data) {
    const { ground } = this;
    data.path.forEach((row, step) => {
      this.frame(data, row, ground.path, 2.5);
      const before = step ? data.path[step - 1] : null;
      const isElsewhere = step > 0 && data.placeOf(before)[0] !== data.placeOf(row)[0];
      if (isElsewhere) { this.arrow(data, before, row, true, ground.path); }
    });
  }

  instant(x) {
    const { context, ratio, view, ground } = this;
    if (x < view.left || x > view.left + view.plot) { return; }
    context.strokeStyle = ground.ink;
    context.lineWidth = ratio;
    context.setLineDash([2 * ratio, 3 * ratio]);
    context.beginPath();
    context.moveTo(Math.round(x * ratio) + 0.5, TOP * ratio);
    context.lineTo(Math.round(x * ratio) + 0.5, view.height * ratio);
    context.stroke();
    context.setLineDash([]);
  }
}
