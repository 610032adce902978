// Other schedules in the place of those that are shown: what can stay of the view, stays.

// What of a view is kept: time and lanes (all, or a stretch), which schedules are shown, and what was
// chosen, in words.
function keptOf({ view, chosen, found, foundAt }) {
  const [first, last] = view.limits(), lanes = view.lanes().length, { data, row, time, store } = chosen;
  return {
    isWhole: view.from <= first && view.to >= last, from: view.from, to: view.to,
    lanes, low: view.low, high: view.high,
    shown: view.schedules.map((one) => view.shown.includes(one)),
    number: view.schedules.indexOf(data), time, store,
    lane: row === null ? "" : data.lanes[data.placeOf(row)[0]],
    label: row === null || data.isIdle(row) ? "" : data.label(row),
    foundAt: found.length ? foundAt : -1,
  };
}

function restoreView(view, kept) {
  view.shown = view.schedules.filter((_, number) => kept.shown[number] ?? true); // one more is shown
  if (!view.shown.length) { view.shown = view.schedules.slice(0, 1); }
  view.whole();
  if (!kept.isWhole) { view.show(kept.from, kept.to); }
  if (view.lanes().length === kept.lanes) { [view.low, view.high] = [kept.low, kept.high]; }
}

// The row of the same action on the same lane; null where there is none.
function rowAgain(data, { lane, label }) {
  const same = foundRows([data], label).find(({ row }) =>
    data.label(row) === label && data.lanes[data.placeOf(row)[0]] === lane);
  return same ? same.row : null;
}

// What is chosen, in plain data for whoever asked; null for nothing.
function plainChoice({ data, row, time }) {
  if (row === null && time === null) { return null; }
  const told = { schedule: data.name, at: time };
  if (row === null) { return told; }
  const place = { resource: data.lanes[data.placeOf(row)[0]], start: data.start[row], end: data.end(row) };
  const what = data.isIdle(row) ? { idle: data.sentences[data.stage[row]] } : { action: data.label(row) };
  return { ...told, ...place, ...what };
}
