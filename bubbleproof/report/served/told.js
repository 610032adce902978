// What the server told of a schedule, on the page: verdict, measures, caps, files, and its picture,
// which goes to the frame.
const frame = find("view");
let isReady = false, waiting = null;
const drawn = {number: 0};
const WORDS = 60; // pixels that a tip may need below the picture

addEventListener("message", event => {
  if (event.source !== frame.contentWindow) return;
  if (event.data.ready) isReady = true;
  if (event.data.drawn) drawn.number = event.data.drawn;
  if (event.data.high) frame.style.height = event.data.high + WORDS + "px";
  send(waiting);
});

frame.src = "frame";

// The frame has no origin of its own, so that none can be named for it.
function send(told) {
  waiting = told;
  if (!told || !isReady) return;
  frame.contentWindow.postMessage({number: told.number, schedules: told.schedules}, "*");
  waiting = null;
}

function showVerdict(told) {
  const all = told.rules.every(([, verdict]) => verdict === "holds");
  const rules = all ? [["all rules", "hold", told.rules.map(([rule]) => rule).join(", ")]] : told.rules;
  const marks = rules.map(([rule, verdict, words]) => {
    const [sign, className] = all || verdict === "holds" ? ["✓", "good"]
      : verdict.startsWith("violated") ? ["✗", "bad"] : ["–", "soft"];
    return element("span", {className, title: words, textContent: `${sign} ${rule} ${verdict}`});
  });
  const why = told.violations.map(each => element("pre", {textContent: each}));
  find("verdict").replaceChildren(element("p", {className: "rules"}, ...marks), ...why);
  find("measures").textContent = told.measures.map(([name, value]) => `${name} ${value}`).join(" · ");
}

// One number for all ranks in the box and on the slider; where they differ, the greatest, and a list.
function showCapacity(told) {
  const box = find("capacity"), slider = find("capacity-slider"), list = find("capacities");
  for (const each of [box, slider, list, find("unlimited")]) each.disabled = !told.has_pipeline;
  const each = Array.isArray(told.capacity);
  find("unlimited").checked = told.capacity === null;
  if (told.capacity !== null && document.activeElement !== box)
    box.value = each ? Math.max(...told.capacity) : told.capacity;
  if (document.activeElement !== list)
    list.value = each ? told.capacity.map(units => units ?? "-").join(",") : "";
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
