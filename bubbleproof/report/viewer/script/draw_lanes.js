// Lanes on the canvas: colours pixel by pixel, numbers inside bars, names, what is wrong, the axis.

const THICKNESS = 0.84; // of a lane's height, where lanes are high enough for a gap

class LaneDrawing {
  constructor(context, view, look, ratio) {
    Object.assign(this, { context, view, look, ratio });
    this.ground = GROUNDS[look.isDark ? "dark" : "light"];
  }

  // The upper edge and the height of a lane's bars, in whole pixels of the canvas.
  band(place) {
    const { row, stride } = this.view, high = row * stride;
    const gap = high >= 6 ? (high * (1 - THICKNESS)) / 2 : 0;
    const top = Math.round((place.y + gap) * this.ratio);
    return [top, Math.max(Math.round((place.y + high - gap) * this.ratio) - top, 1)];
  }

  paint() {
    const { view, ratio, context } = this, left = Math.round(view.left * ratio);
    const width = Math.round(view.plot * ratio), lines = [];
    const all = view.places.length * 2;
    const image = new ImageData(width, Math.max(all, 1)), pixels = new Uint32Array(image.data.buffer);
    const painters = new Map(view.shown.map((data) => [data, this.painter(data, width)]));
    for (const place of view.places) {
      for (const half of place.data.hasHalves ? [1, 2] : [0]) {
        painters.get(place.data).paint(place.lane, half, pixels, lines.length * width);
        lines.push([place, half]);
      }
    }
    const strip = this.strip(image);
    context.imageSmoothingEnabled = false;
    lines.forEach(([place, half], number) => {
      let [top, height] = this.band(place);
      const middle = Math.round(height / 2);
      if (half === 1) { height = middle; }
      if (half === 2) { [top, height] = [top + middle, height - middle]; }
      context.drawImage(strip, 0, number, width, 1, left, top, width, height);
    });
  }

  painter(data, width) {
    const { view } = this, colours = this.look.colours.get(data);
    const pixels = colours.map(({ fill, seam }) => [pixelOf(fill), pixelOf(seam)]);
    const from = view.ofAxis(data, view.from), to = view.ofAxis(data, view.to);
    const seam = (data.typical * width) / (to - from) > 5 * this.ratio;
    return new LanePainter(data, pixels, { from, to, width, seam });
  }

  strip(image) {
    const strip = this.look.strip;
    [strip.width, strip.height] = [image.width, image.height];
    strip.getContext("2d").putImageData(image, 0, 0);
    return strip;
  }

  // The microbatch in each bar that holds it.
  numbers() {
    const { view, context, ratio } = this, high = view.row * view.stride;
    if (high < 11) { return; }
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const place of view.places) {
      const { data } = place, from = view.ofAxis(data, view.from), to = view.ofAxis(data, view.to);
      const perTick = (view.plot * ratio) / (to - from), [top, height] = this.band(place);
      if (data.typical * perTick < 8 * ratio) { continue; }
      for (let sort = 0; sort < data.numSorts; sort++) {
        if (data.sorts[sort].kind === "idle") { continue; }
        const half = data.sorts[sort].half, share = half ? 0.5 : 1;
        const middle = top + height * (half === 1 ? 0.25 : half === 2 ? 0.75 : 0.5);
        context.fillStyle = this.look.colours.get(data)[sort].ink;
        this.numbersOf(data, place.lane, sort, { from, to, perTick, middle, high: height * share });
      }
    }
  }

  numbersOf(data, lane, sort, { from, to, perTick, middle, high }) {
    const { view, context, ratio } = this, [low, end] = data.bucket(lane, sort);
    const most = Math.min(13 * ratio, high * 0.66), left = view.left * ratio;
    let size = 0;
    for (let row = Math.max(lastAtMost(data.start, from, low, end), low); row < end; row++) {
      if (data.start[row] >= to) { break; }
      const begin = Math.max((data.start[row] - from) * perTick, 0);
      const room = Math.min((data.end(row) - from) * perTick, view.plot * ratio) - begin;
      if (room < 7 * ratio) { continue; }
      const text = data.number(row), fits = Math.min(most, (room * 0.9) / (text.length * 0.58));
      if (fits < LEAST * ratio) { continue; }
      if (Math.abs(fits - size) > 0.5) { context.font = (size = fits) + "px " + FONT; }
      write(this, text, left + begin + room / 2, middle);
    }
  }

  // Names of lanes, or of every n-th where they are too low for words; a line above each schedule.
  names() {
    const { view, context, ratio, ground } = this;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = ground.ink;
    const size = Math.min(12, Math.max(view.row * view.stride, 9));
    context.font = size * ratio + "px " + FONT;
    let free = -Infinity;
    for (const { data, lane, y } of view.places) {
      const middle = y + (view.row * view.stride) / 2;
      if (middle - free < size) { continue; }
      free = middle;
      const name = view.left < 60 ? data.lanes[lane].replace(/^rank /, "r ") : data.lanes[lane];
      write(this, fitted(context, name, (view.left - 8) * ratio), (view.left - 7) * ratio, middle * ratio);
    }
    context.textAlign = "left";
    for (const { data, y } of view.heads) {
      context.font = "600 " + 12 * ratio + "px " + FONT;
      const scaled = data.unit === view.shown[0].unit ? "" : ", stretched to end together";
      const words = fitted(context, data.name + ": " + data.facts + scaled, view.plot * ratio);
      write(this, words, view.left * ratio, (y + HEAD / 2) * ratio);
    }
  }

  // Frames around two actions at once, and around what never starts.
  faults() {
    const { view, context, ratio, ground } = this;
    context.strokeStyle = ground.mark;
    context.lineWidth = 2 * ratio;
    for (const { data, lane, y } of view.places) {
      for (const name of ["clash", "wait"]) {
        const rows = data[name + ".row"];
        for (let i = 0; i < rows.length; i++) {
          if (rows[i] !== lane) { continue; }
          const [left, right] = this.within(data, data[name + ".start"][i], data[name + ".end"][i]);
          const high = view.row * view.stride * ratio;
          if (right > left) { context.strokeRect(left, y * ratio + 1, right - left, high - 2); }
        }
      }
    }
  }

  // Both ends of a stretch on the canvas, cut to the plot.
  within(data, start, end) {
    const { view, ratio } = this, low = view.left, high = view.left + view.plot;
    const at = (time) => Math.min(Math.max(view.x(view.onAxis(data, time)), low), high) * ratio;
    return [at(start), at(end)];
  }

  axis() {
    const { view, context, ratio, ground } = this, y = Math.round((view.bottom + 4) * ratio) + 0.5;
    context.strokeStyle = ground.line;
    context.fillStyle = ground.soft;
    context.lineWidth = ratio;
    context.font = 11 * ratio + "px " + FONT;
    context.textAlign = "center";
    context.textBaseline = "top";
    context.beginPath();
    context.moveTo(view.left * ratio, y);
    context.lineTo((view.left + view.plot) * ratio, y);
    const { name, perTick } = view.shown[0].axis, low = view.from * perTick, high = view.to * perTick;
    const step = niceStep((high - low) / Math.max(view.plot / 90, 2), perTick), first = Math.ceil(low / step);
    for (let mark = first; mark * step <= high; mark++) {
      const x = Math.round(view.x((mark * step) / perTick) * ratio) + 0.5;
      context.moveTo(x, y);
      context.lineTo(x, y + 4 * ratio);
      const words = (mark * step).toLocaleString("en", { maximumFractionDigits: 9 });
      const half = context.measureText(words).width / 2, least = (view.left - 8) * ratio + half;
      write(this, words, Math.min(Math.max(x, least), (view.width - 1) * ratio - half), y + 6 * ratio);
    }
    context.stroke();
    context.textAlign = "right";
    write(this, name, (view.left - 14) * ratio, y + 6 * ratio);
  }
}

const LEAST = 9; // pixels of the page that a letter has, if it is drawn at all
const FONT = 'system-ui, -apple-system, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif';

function clipped(text, room) {
  return text.length <= room ? text : text.slice(0, Math.max(room - 1, 1)) + "\u2026";
}

function fitted(context, text, room) {
  let length = text.length;
  while (length > 1 && context.measureText(clipped(text, length)).width > room) { length--; }
  return clipped(text, length);
}

// Draw words, and note where, if somebody asked (`Viewer.labelBoxes`).
function write({ context, look }, words, x, y) {
  context.fillText(words, x, y);
  if (!look.labels) { return; }
  const box = context.measureText(words), size = parseFloat(/([\d.]+)px/.exec(context.font)[1]);
  look.labels.push({ words, size, left: x - box.actualBoundingBoxLeft, right: x + box.actualBoundingBoxRight,
    top: y - box.actualBoundingBoxAscent, bottom: y + box.actualBoundingBoxDescent });
}

// 1, 2 or 5 times a power of ten, at least `least`, and a tick at least.
function niceStep(least, tick) {
  const power = Math.pow(10, Math.floor(Math.log10(Math.max(least, tick))));
  return Math.max(tick, [1, 2, 5, 10].find((step) => step * power >= least) * power);
}
