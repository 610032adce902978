// What stores hold: loads after each event, the highest within a stretch of time, and what is live.

const BLOCK = 64; // events of which the highest load is kept

class StoreLoads {
  constructor(data) {
    this.data = data;
    const { when, delta, firstEvent } = data;
    this.load = new Float64Array(when.length);
    this.peak = data.stores.map(([, base]) => base);
    this.peakTime = data.stores.map(() => null);
    for (let store = 0; store < data.stores.length; store++) {
      let load = data.stores[store][1];
      for (let i = firstEvent[store]; i < firstEvent[store + 1]; i++) {
        this.load[i] = load += delta[i];
        if (load > this.peak[store]) { [this.peak[store], this.peakTime[store]] = [load, when[i]]; }
      }
    }
    this.blocks = new Float64Array(Math.ceil(when.length / BLOCK)).fill(-Infinity);
    for (let i = 0; i < when.length; i++) {
      const block = Math.floor(i / BLOCK);
      if (this.load[i] > this.blocks[block]) { this.blocks[block] = this.load[i]; }
    }
  }

  // The last event of a store at `time` or before; firstEvent - 1 where there is none.
  eventAt(store, time) {
    const { when, firstEvent } = this.data;
    return lastAtMost(when, time, firstEvent[store], firstEvent[store + 1]);
  }

  loadAt(store, event) {
    return event < this.data.firstEvent[store] ? this.data.stores[store][1] : this.load[event];
  }

  // The highest load after the events from `low` to `high`, both included.
  highest(low, high) {
    let most = -Infinity, i = low;
    while (i <= high) {
      if (i % BLOCK === 0 && i + BLOCK - 1 <= high) {
        most = Math.max(most, this.blocks[i / BLOCK]);
        i += BLOCK;
      } else {
        most = Math.max(most, this.load[i++]);
      }
    }
    return most;
  }

  // What a store holds at a time: amounts by stage and microbatch, the earliest first.
  live(store, time) {
    const { delta, who, firstEvent } = this.data, held = new Map(), last = this.eventAt(store, time);
    for (let i = firstEvent[store]; i <= last; i++) {
      const key = who[i] < 0 ? "other" : this.owner(who[i]);
      const amount = (held.get(key) || 0) + delta[i];
      if (amount === 0) { held.delete(key); } else { held.set(key, amount); }
    }
    return [...held];
  }

  owner(row) {
    const { stage, microbatch, slice, sliced } = this.data;
    const part = sliced && slice[row] >= 0 ? "." + slice[row] : "";
    return "stage " + stage[row] + ", microbatch " + microbatch[row] + part;
  }
}

function loadsOf(data) {
  if (!data.loads) { data.loads = new StoreLoads(data); }
  return data.loads;
}

function amount(data, load) {
  const value = load / data.memory.divisor;
  const text = Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(3).replace(/\.?0+$/, "");
  return text + " " + (value === 1 ? data.memory.name.replace(/([a-z])s$/, "$1") : data.memory.name);
}
