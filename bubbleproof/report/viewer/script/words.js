// What the page says in words of a row, an instant and a store.

// A whole number of ticks in the unit of the axis, exactly.
function ofAxis(data, count) {
  return (Math.round(count) * data.axis.perTick).toLocaleString("en", { maximumFractionDigits: 9 });
}

function times(data, row) {
  const [start, end, took] = [data.start[row], data.end(row), data.length[row]].map((each) => ofAxis(data, each));
  const name = took === "1" && data.axis.name === data.units ? data.unit : data.axis.name;
  return start + " to " + end + ", " + took + " " + name;
}

// The lines that tell of a row: [what it is, when, what it waited for or why the rank is idle].
function tellRow(data, row) {
  const [lane, sort] = data.placeOf(row), where = data.lanes[lane];
  if (data.isIdle(row)) {
    return [where + " is idle: " + data.sorts[sort].words, times(data, row), data.sentences[data.stage[row]]];
  }
  const chunk = data.chunks > 1 ? ", chunk " + data.sorts[sort].chunk : "";
  const lines = [data.label(row) + " on " + where + chunk, times(data, row)];
  const inputs = data.inputsOf(row);
  for (const [input, lag] of inputs.slice(0, 6)) {
    const came = data.end(input) + lag, from = data.lanes[data.placeOf(input)[0]];
    const arrived = lag ? ", here at " + ofAxis(data, came) : "";
    lines.push("after " + data.label(input) + " on " + from + ", ended " +
      ofAxis(data, data.end(input)) + arrived);
  }
  if (inputs.length > 6) { lines.push("and " + (inputs.length - 6) + " more"); }
  return lines;
}

// What a rank's memory holds at an instant.
function tellLive(data, store, time) {
  const loads = loadsOf(data), [name, base, cap] = data.stores[store];
  const load = loads.loadAt(store, loads.eventAt(store, time));
  const limit = cap === null ? "" : " of " + amount(data, cap), live = loads.live(store, time);
  const at = ofAxis(data, Math.floor(time));
  const first = name + " at " + at + ": " + amount(data, load) + limit;
  const rest = base ? [amount(data, base) + " all the time"] : [];
  const each = live.slice(0, 40).map(([who, held]) => who + ": " + amount(data, held));
  const more = live.length > 40 ? ["and " + (live.length - 40) + " more"] : [];
  return [first, ...rest, ...each, ...more];
}
