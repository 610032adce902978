// A schedule as it stands in the page: typed columns, read once, and what follows from them.
// The names of columns are those of schedule_data.py.

const TYPES = { u1: Uint8Array, i2: Int16Array, i4: Int32Array, f8: Float64Array };

async function inflated(text) {
  const packed = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// The column at a place [type, first byte, length, whether differences are kept].
function column(buffer, [type, first, length, steps]) {
  const kept = new TYPES[type](buffer, first, length);
  if (!steps) { return kept; }
  const whole = new Float64Array(length);
  for (let i = 0, sum = 0; i < length; i++) { whole[i] = sum += kept[i]; }
  return whole;
}

// The last index in [low, high) whose value is at most `limit`; low - 1 where there is none.
function lastAtMost(values, limit, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) { low = middle + 1; } else { high = middle; }
  }
  return low - 1;
}

class ScheduleData {
  constructor(content, buffer, sentences) {
    Object.assign(this, content);
    this.blob = "";
    this.sentences = sentences ? sentences.split("\n") : [];
    for (const [name, place] of Object.entries(content.places)) {
      this[name] = column(buffer, place);
    }
    this.numSorts = this.sorts.length;
    this.numRows = this.start.length;
    this.ran = new Float64Array(this.numRows + 1); // ticks of all rows before each
    for (let row = 0; row < this.numRows; row++) {
      this.ran[row + 1] = this.ran[row] + this.length[row];
    }
    this.hasHalves = this.sorts.some((sort) => sort.half > 0);
    this.loads = null;
  }

  // Of the content that schedule_data.py writes.
  static async of(content) {
    const sentences = new TextDecoder().decode(await inflated(content.sentences));
    return new ScheduleData(content, await inflated(content.blob), sentences);
  }

  // The rows of one sort on one lane: [first, the one after the last].
  bucket(lane, sort) {
    const at = lane * this.numSorts + sort;
    return [this.first[at], this.first[at + 1]];
  }

  // Lane and sort of a row.
  placeOf(row) {
    const at = lastAtMost(this.first, row, 0, this.first.length);
    return [Math.floor(at / this.numSorts), at % this.numSorts];
  }

  end(row) { return this.start[row] + this.length[row]; }

  isIdle(row) { return this.sorts[this.placeOf(row)[1]].kind === "idle"; }

  // What stands inside a bar: its microbatch, slice and part.
  number(row) {
    if (this.microbatch[row] < 0) { return ""; }
    const slice = this.sliced && this.slice[row] >= 0 ? "." + this.slice[row] : "";
    return this.microbatch[row] + slice + (this.part[row] >= 0 ? "#" + this.part[row] : "");
  }

  // An action as it is written: stage, kind, microbatch.
  label(row) {
    const kind = this.sorts[this.placeOf(row)[1]].kind;
    return (this.stage[row] >= 0 ? this.stage[row] : "") + kind + this.number(row);
  }

  inputsOf(row) {
    const found = [];
    for (let i = this.firstInput[row]; i < this.firstInput[row + 1]; i++) {
      found.push([row + this.inputs[i], this.lag[i]]);
    }
    return found;
  }

  // The rows that wait for a row, found by a table that is made when it is first asked for.
  outputsOf(row) {
    if (!this.outputs) { this.turnInputs(); }
    return this.outputs.subarray(this.firstOutput[row], this.firstOutput[row + 1]);
  }

  turnInputs() {
    const first = new Int32Array(this.numRows + 2), total = this.inputs.length;
    const owner = new Int32Array(total);
    for (let row = 0; row < this.numRows; row++) {
      for (let i = this.firstInput[row]; i < this.firstInput[row + 1]; i++) {
        owner[i] = row;
        first[row + this.inputs[i] + 2]++;
      }
    }
    for (let row = 1; row < first.length; row++) { first[row] += first[row - 1]; }
    this.outputs = new Int32Array(total);
    for (let i = 0; i < total; i++) { this.outputs[first[owner[i] + this.inputs[i] + 1]++] = owner[i]; }
    this.firstOutput = first;
  }
}
