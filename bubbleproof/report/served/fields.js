// The controls of numbers: a slider and a number for each, text for a sequence.
const find = id => document.getElementById(id);
const settings = JSON.parse(find("settings").textContent);
const RANGES = {p: [1, 16], m: [1, 64], v: [1, 8], s: [1, 8], f: [1, 32], R: [0, 100],
  tF: [0, 12], tB: [0, 12], tI: [0, 12], tW: [0, 12], ranks: [1, 16], microbatches: [1, 64],
  chunks: [1, 8], forward: [0, 12], backward: [0, 12], input: [0, 12], weight: [0, 12], latency: [0, 12]};
const MEANINGS = {p: "ranks", m: "microbatches", v: "chunks of a rank", s: "slices",
  f: "forwards before the first backward", R: "per cent recomputed", e: "enqueue", d: "dequeue",
  ranks: "ranks", microbatches: "microbatches", chunks: "chunks of a rank", forward: "ticks of F",
  backward: "ticks of B", input: "ticks of I", weight: "ticks of W",
  latency: "ticks of every message between ranks", tF: "ticks of F", tB: "ticks of B", tI: "ticks of I", tW: "ticks of W"};

function element(name, given, ...children) {
  const made = Object.assign(document.createElement(name), given);
  made.append(...children);
  return made;
}

// A slider and a box that tell one number; the box alone takes what lies beyond the slider.
function paired(slider, box, changed) {
  slider.oninput = () => { box.value = slider.value; changed(); };
  box.oninput = () => { follow(slider, box); changed(); };
}

function follow(slider, box) {
  if (box.value === "" || !box.checkValidity()) return;
  if (+box.value > +slider.max) slider.max = box.value;
  slider.value = box.value;
}

function fieldOf(name, value, changed) {
  const label = element("label", {title: MEANINGS[name]}, `${name} `);
  const range = RANGES[name];
  if (!range || value.includes(",")) { // a sequence, or one for each stage
    const box = element("input", {type: "text", value, size: 8, placeholder: "own"});
    box.oninput = () => changed(name, box.value.trim());
    label.append(box);
    return label;
  }
  const most = Math.max(range[1], 2 * value);
  const slider = element("input", {type: "range", min: range[0], max: most, value: range[0]});
  slider.setAttribute("aria-label", `${MEANINGS[name]}, slider`);
  const box = element("input", {type: "number", min: range[0], value, placeholder: "own"});
  follow(slider, box);
  paired(slider, box, () => changed(name, box.value));
  label.append(slider, box);
  return label;
}
