// The colours of a lane, pixel by pixel: the area of a colour equals its share of time.
//
// From left to right each sort (a kind of action on a chunk, a cause of idle time, idle time itself)
// is owed what it ran within each pixel; of those that ran there the one that is owed most is shown
// and a pixel is taken off its debt. So a colour's area on a lane differs from its time by a pixel
// or two at every zoom, however many bars a pixel holds (Bresenham's line, for many colours). Where
// one thing alone fills a pixel, that is what is seen.

class LanePainter {
  // `seam`: whether a bar begins with a darker pixel. `colours[s]`: [fill, seam] of sort s, and of
  // idle time after the last, as whole pixels.
  constructor(data, colours, { from, to, width, seam }) {
    Object.assign(this, { data, colours, from, seam, width, ticks: (to - from) / width });
    const room = data.numSorts + 1;
    this.at = new Int32Array(room); // the last row begun, by sort
    this.before = new Float64Array(room); // ticks run until the pixel's left edge
    this.debt = new Float64Array(room);
    this.share = new Float64Array(room);
  }

  // Paint one half of a lane (0: all of it) into `line[offset]` and on; pixels outside the
  // schedule's time stay empty.
  paint(lane, half, line, offset) {
    const { data, ticks, from } = this, idle = data.numSorts, [first, last] = data.window;
    const active = this.begin(lane, half);
    let shown = -1;
    for (let pixel = 0; pixel < this.width; pixel++) {
      const left = from + pixel * ticks, right = left + ticks;
      const width = Math.min(right, last) - Math.max(left, first);
      if (width <= 0) { continue; }
      let total = 0;
      for (const sort of active) { total += this.advance(lane, sort, right); }
      this.share[idle] = Math.max(width - total, 0);
      this.debt[idle] += this.share[idle];
      const sort = this.owedMost(active, idle, ticks * 1e-7);
      this.debt[sort] -= total + this.share[idle];
      const row = sort === idle ? -1 : this.at[sort];
      const begins = this.seam && row !== shown && sort !== idle;
      line[offset + pixel] = this.colours[sort][begins ? 1 : 0];
      shown = row;
    }
  }

  // The sorts that run on the lane between the edges; their pointers stand at the left edge.
  begin(lane, half) {
    const { data, from } = this, active = [], to = from + this.ticks * this.width;
    this.debt.fill(0);
    for (let sort = 0; sort < data.numSorts; sort++) {
      const own = data.sorts[sort].half;
      if (half && own && own !== half) { continue; }
      const [low, high] = data.bucket(lane, sort);
      if (low === high || data.start[low] >= to || data.end(high - 1) <= from) { continue; }
      this.at[sort] = lastAtMost(data.start, from, low, high);
      this.before[sort] = this.ranUntil(low, this.at[sort], from);
      active.push(sort);
    }
    return active;
  }

  ranUntil(low, row, time) {
    const { ran, start, length } = this.data;
    return row < low ? 0 : ran[row] - ran[low] + Math.min(time - start[row], length[row]);
  }

  // What a sort ran until `time` since the edge before, which is added to its debt.
  advance(lane, sort, time) {
    const { first, numSorts, start } = this.data, at = lane * numSorts + sort;
    const low = first[at], high = first[at + 1];
    let row = this.at[sort], steps = 0;
    while (row + 1 < high && start[row + 1] < time) {
      row++;
      if (++steps === 16) { row = Math.max(row, lastBelow(start, time, row, high)); }
    }
    this.at[sort] = row;
    const now = this.ranUntil(low, row, time), share = now - this.before[sort];
    this.before[sort] = now;
    this.share[sort] = share;
    this.debt[sort] += share;
    return share;
  }

  owedMost(active, idle, least) {
    const { debt, share } = this;
    let best = idle, owed = share[idle] > least ? debt[idle] : -Infinity;
    for (const sort of active) {
      if (share[sort] > least && debt[sort] > owed) { [best, owed] = [sort, debt[sort]]; }
    }
    return best;
  }
}

// The last index in [low, high) whose value is below `limit`; low - 1 where there is none.
function lastBelow(values, limit, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) { low = middle + 1; } else { high = middle; }
  }
  return low - 1;
}
