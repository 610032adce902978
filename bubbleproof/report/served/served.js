// The page: what is asked for (state), the question to the server, and what it says.
const find = id => document.getElementById(id);
const settings = JSON.parse(find("settings").textContent);
const past = [];
let state = first(), asked = 0, answered = 0, isBusy = false, lastChange = ["", 0];

function first() {
  const values = Object.fromEntries(
    Object.entries(settings.families).map(([name, family]) => [name, {...family.values}]));
  return {family: settings.family, given: 0, values, capacity: null, orders: null};
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
  const {family, given, values, capacity, orders} = state;
  const parameters = family === null ? {} : Object.fromEntries(
    Object.entries(values[family]).filter(([, value]) => value !== ""));
  return {family, given, parameters, capacity, orders};
}

// One question at a time; of what changes meanwhile the last is asked next.
async function ask() {
  asked += 1;
  if (isBusy) return;
  isBusy = true;
  document.body.classList.add("asks");
  while (answered < asked) {
    const number = asked;
    show(await told());
    answered = number;
  }
  isBusy = false;
  document.body.classList.remove("asks");
}

async function told() {
  try {
    const headers = {"Content-Type": "application/json"};
    const answer = await fetch("judge", {method: "POST", headers, body: JSON.stringify(question())});
    return await answer.json();
  } catch {
    return {refused: "the server does not answer; has serve ended?"};
  }
}

function show(told) {
  find("undo").disabled = !past.length;
  find("reset").disabled = state.orders === null;
  if (told.refused) {
    find("headline").textContent = told.refused;
    find("verdict").replaceChildren();
    document.body.classList.add("refused");
    return;
  }
  document.body.classList.remove("refused");
  find("headline").textContent = [told.standstill, told.headline].filter(Boolean).join(". ");
  showVerdict(told);
  showCapacity(told);
  rows.show(told);
  showFiles(told);
  find("view").contentWindow.location.replace(
    new URL(`view?n=${told.number}`, location.href).href);
}

function showVerdict(told) {
  const marks = told.rules.map(([rule, verdict, words]) => {
    const [sign, className] = verdict === "holds" ? ["✓", "good"]
      : verdict.startsWith("violated") ? ["✗", "bad"] : ["–", "soft"];
    return element("span", {className, title: words, textContent: `${sign} ${rule} ${verdict}`});
  });
  const why = told.violations.map(each => element("pre", {textContent: each}));
  find("verdict").replaceChildren(element("p", {className: "rules"}, ...marks), ...why);
}

function showCapacity(told) {
  const box = find("capacity"), slider = find("capacity-slider");
  for (const each of [box, slider, find("unlimited")]) each.disabled = !told.has_pipeline;
  find("unlimited").checked = told.capacity === null;
  if (told.capacity !== null && document.activeElement !== box) box.value = told.capacity;
  follow(slider, box);
}

function showFiles(told) {
  const query = `?n=${told.number}`;
  const links = told.files.map(name => element("a", {textContent: name, download: name,
    href: name.includes("perfetto") ? settings.trace + query : name + query}));
  if (settings.perfetto && told.files.some(name => name.includes("perfetto")))
    links.push(element("a", {textContent: "open in Perfetto", target: "_blank",
      rel: "noopener noreferrer", href: settings.perfetto + encodeURIComponent(query)}));
  find("downloads").replaceChildren("Take it along: ", ...links);
}

function showControls() {
  const options = settings.given.map((name, n) => element("option", {value: `given ${n}`,
    textContent: name}));
  options.push(...Object.keys(settings.families).map(name => element("option", {value: name,
    textContent: name})));
  find("origin").replaceChildren(...options);
  find("origin").value = state.family ?? `given ${state.given}`;
  showFields();
}

function showFields() {
  const {family} = state;
  const made = family === null ? [] : settings.families[family].fields.map(name =>
    fieldOf(name, state.values[family][name] ?? "", (field, value) => {
      const values = {...state.values, [family]: {...state.values[family], [field]: value}};
      change(field, {values, orders: null});
    }));
  find("fields").replaceChildren(...made);
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
    values: isGiven ? state.values : carried(word), capacity: null, orders: null});
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
showControls();
window.served = {began: ask(), isIdle: () => !isBusy, move: (...move) => rows.move(...move)};
