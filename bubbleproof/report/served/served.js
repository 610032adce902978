// The page: what is asked for (state), the question to the server, and what changes it.
const past = [];
const KEEPS_ORDERS = ["tF", "tB", "tI", "tW", "forward", "backward", "input", "weight", "latency"];
let state = first(), asked = 0, answered = 0, isBusy = false, lastChange = ["", 0];

function first() {
  const values = Object.fromEntries(
    Object.entries(settings.families).map(([name, family]) => [name, {...family.values}]));
  return {family: settings.family, given: 0, values, changes: {}, capacity: null, orders: null,
    beside: false};
}

// Change the state; what is changed again at once (a slider) is one step for Undo.
function change(what, changes) {
  const now = performance.now();
  if (what !== lastChange[0] || now - lastChange[1] > 800) past.push(JSON.stringify(state));
  lastChange = [what, now];
  Object.assign(state, changes);
  ask();
}

function question() {
  const {family, given, values, capacity, orders, beside} = state;
  const parameters = family === null ? {} : Object.fromEntries(
    Object.entries(values[family]).filter(([, value]) => value !== ""));
  const changes = Object.fromEntries(
    Object.entries(state.changes).map(([name, text]) => [name, numbersOf(text)]));
  return {family, given, parameters, changes, capacity, orders, beside};
}

// "10" as a number, "10,12" as one for each stage, "-" as none; what is neither, for the server to refuse.
function numbersOf(text) {
  const one = word => /^\d+$/.test(word) ? +word : word === "-" ? null : word;
  const words = text.split(",").map(word => word.trim());
  return words.length === 1 ? (words[0] === "" ? null : one(words[0])) : words.map(one);
}

async function posted(name, content) {
  try {
    const headers = {"Content-Type": "application/json"};
    const answer = await fetch(name, {method: "POST", headers, body: JSON.stringify(content)});
    return await answer.json();
  } catch {
    return {refused: "the server does not answer; has serve ended?"};
  }
}

// One question at a time; of what changes meanwhile the last is asked next.
async function ask() {
  asked += 1;
  if (isBusy) return;
  isBusy = true;
  document.body.classList.add("asks");
  while (answered < asked) {
    const number = asked;
    show(await posted("judge", question()));
    answered = number;
  }
  isBusy = false;
  document.body.classList.remove("asks");
}

function show(told) {
  find("undo").disabled = !past.length;
  find("reset").disabled = state.orders === null;
  if (told.refused) {
    find("headline").textContent = told.refused;
    find("verdict").replaceChildren();
    find("measures").textContent = "";
    document.body.classList.add("refused");
    return;
  }
  document.body.classList.remove("refused");
  find("headline").textContent = [told.standstill, told.headline].filter(Boolean).join(". ");
  showVerdict(told);
  showCapacity(told);
  rows.show(told);
  showFiles(told);
  send(told);
}

function showControls() {
  const options = [];
  settings.given.forEach(({name}, n) => options.push(element("option", {value: `given ${n}`,
    textContent: name})));
  options.push(...Object.keys(settings.families).map(name => element("option", {value: name,
    textContent: name})));
  find("origin").replaceChildren(...options);
  find("origin").value = state.family ?? `given ${state.given}`;
  showFields();
}

// The fields of a family's parameters, or of the numbers of a schedule that is given; of both the links'.
function showFields() {
  const {family, given, values, changes} = state, own = settings.given[given];
  const parameters = family === null ? [] : settings.families[family].fields.map(name =>
    fieldOf(name, values[family][name] ?? "", (field, value) => change(field, {
      values: {...state.values, [family]: {...state.values[family], [field]: value}},
      orders: KEEPS_ORDERS.includes(field) ? state.orders : null})));
  const numbers = family === null ? own.numbers : {latency: "0"};
  const others = Object.entries(numbers).map(([name, value]) =>
    fieldOf(name, changes[name] ?? value, (field, text) => change(field, {
      changes: {...state.changes, [field]: text},
      orders: KEEPS_ORDERS.includes(field) ? state.orders : null})));
  find("fields").replaceChildren(...parameters, ...others);
  find("beside").checked = state.beside;
}

// What two families share (p, m, ticks) goes along from one to the other.
function carried(to) {
  const from = state.family === null ? {} : state.values[state.family];
  const values = {...state.values[to]};
  for (const name of Object.keys(values)) if (from[name]) values[name] = from[name];
  return {...state.values, [to]: values};
}

find("origin").onchange = event => {
  const [word, number] = event.target.value.split(" ");
  const isGiven = number !== undefined;
  change("origin", {family: isGiven ? null : word, given: isGiven ? +number : state.given,
    values: isGiven ? state.values : carried(word), changes: {}, capacity: null, orders: null});
  showFields();
};
function limit() {
  const units = find("unlimited").checked ? null : +find("capacity").value;
  if (find("capacity").checkValidity()) change("capacity", {capacity: {units}});
}
paired(find("capacity-slider"), find("capacity"), () => {
  find("unlimited").checked = false;
  limit();
});
find("unlimited").onchange = limit;
find("capacities").onchange = event => {
  const units = numbersOf(event.target.value);
  change("capacities", {capacity: event.target.value.trim() === "" ? null : {units}});
};
find("beside").onchange = event => change("beside", {beside: event.target.checked});
find("open").onchange = async event => {
  const [file] = event.target.files;
  if (file) open(file.name, await file.text());
  event.target.value = "";
};
find("open").parentElement.onkeydown = event => { if (event.key === "Enter") find("open").click(); };

// Offer what a file holds, and show the first of it.
async function open(name, text) {
  const told = await posted("open", {name, text});
  if (told.refused) {
    find("solver").textContent = told.refused;
    return;
  }
  told.offers.forEach((offer, n) => { settings.given[told.first + n] = offer; });
  change("origin", {family: null, given: told.first, changes: {}, capacity: null, orders: null});
  showControls();
}
find("reset").onclick = () => change("reset", {orders: null});
find("undo").onclick = () => {
  if (!past.length) return;
  state = JSON.parse(past.pop());
  lastChange = ["", 0];
  showControls();
  ask();
};
find("controls").onsubmit = event => event.preventDefault();
const rows = new OrderRows(find("orders"), settings.colours, orders => change("orders " +
  past.length, {orders}));
const solver = new Solver(orders => change("solved " + past.length, {orders}));
showControls();
window.served = {began: ask(), isIdle: () => !isBusy && !solver.isRunning, open, drawn,
  move: (...move) => rows.move(...move)};
