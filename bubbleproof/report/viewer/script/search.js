// Finding actions by what is written: "3F7" is stage 3, F, microbatch 7; a part of it finds all
// that have it ("F7": microbatch 7 on every stage; "F": every forward; "7": microbatch 7).

const PATTERN = /^\s*(\d+(?=[a-z]))?\s*([a-z_]+)?\s*(\d+)?(?:\.(\d+))?(?:#(\d+))?\s*$/i;

// A test of rows (data, sort, row) for what is written; null where it is no action.
function wanted(text) {
  const found = PATTERN.exec(text);
  if (!found || !text.trim()) { return null; }
  const [stage, microbatch, slice, part] = [1, 3, 4, 5].map((i) => found[i] && Number(found[i]));
  const kind = found[2] && found[2].toUpperCase();
  return {
    isSort: (sort) => sort.kind !== "idle" && (!kind || sort.kind === kind),
    isRow: (data, row) =>
      (stage === undefined || data.stage[row] === stage) &&
      (microbatch === undefined || data.microbatch[row] === microbatch) &&
      (slice === undefined || data.slice[row] === slice) &&
      (part === undefined || data.part[row] === part),
  };
}

// All rows of the schedules that fit, by their start: {data, row}.
function foundRows(schedules, text) {
  const test = wanted(text), found = [];
  if (!test) { return found; }
  for (const data of schedules) {
    for (let lane = 0; lane < data.lanes.length; lane++) {
      data.sorts.forEach((sort, number) => {
        if (!test.isSort(sort)) { return; }
        const [low, high] = data.bucket(lane, number);
        for (let row = low; row < high; row++) {
          if (test.isRow(data, row)) { found.push({ data, row }); }
        }
      });
    }
  }
  return found.sort((a, b) => a.data.start[a.row] - b.data.start[b.row]);
}
