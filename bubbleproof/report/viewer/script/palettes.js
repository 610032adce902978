// Colours: those of the page's data, two more palettes, and the ground in light, dark and print.

const GROUNDS = {
  light: { ground: "#ffffff", ink: "#1d2329", soft: "#56616d", line: "#d5dae0", idle: "#f1f1ee",
    area: "#c9d3de", load: "#33475b", cap: "#c0392b", mark: "#d0021b", message: "#7a3db8", path: "#e0218a" },
  dark: { ground: "#15191e", ink: "#e6e9ec", soft: "#a3adb8", line: "#3a434d", idle: "#2b323a",
    area: "#33424f", load: "#a8bccf", cap: "#ff8a80", mark: "#ff5a52", message: "#d5b3ff", path: "#ff6ec7" },
};

// By kind: hues of Okabe and Ito, which every common colour vision tells apart, and greys.
const PALETTES = {
  standard: null,
  "Okabe-Ito": { F: "#0072b2", B: "#009e73", I: "#e69f00", W: "#cc79a7", R: "#d55e00",
    OVERLAP_F_B: "#f0e442" },
  greys: { F: "#4d4d4d", B: "#9a9a9a", I: "#b8b8b8", W: "#6e6e6e", R: "#2b2b2b" },
};
const DARK_CAUSES = { "warm-up": "#4b4467", drain: "#35515b", finished: "#3d434a", order: "#7a3b4a",
  memory: "#77582a", link: "#45603a", input: "#574b3d" };

function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

function hex(values) {
  return "#" + values.map((value) => Math.round(value).toString(16).padStart(2, "0")).join("");
}

function mixed(colour, other, share) {
  const target = channels(other);
  return hex(channels(colour).map((value, i) => value + (target[i] - value) * share));
}

function inkOn(colour) {
  const [r, g, b] = channels(colour).map((value) => {
    const c = value / 255;
    return c <= 0.04045 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4);
  });
  return Math.pow(0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05, 2) > 0.0525 ? "#000000" : "#ffffff";
}

// A colour as one pixel of an image, opaque.
function pixelOf(colour) {
  const [r, g, b] = channels(colour);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

// Fill, seam and ink of each sort of a schedule, and of idle time after the last.
function sortColours(data, { palette, causes, isDark }) {
  const own = PALETTES[palette], ground = GROUNDS[isDark ? "dark" : "light"];
  const found = data.sorts.map((sort) => {
    if (sort.kind === "idle") {
      const tint = isDark ? DARK_CAUSES[sort.words] : sort.fill;
      const fill = causes ? tint : ground.idle;
      return { fill, seam: fill, ink: ground.ink };
    }
    if (!own) { return sort; }
    const share = data.chunks > 1 ? (0.5 * sort.chunk) / (data.chunks - 1) : 0;
    const fill = mixed(own[sort.kind] || sort.fill, "#ffffff", own[sort.kind] ? share : 0);
    return { fill, seam: mixed(fill, "#000000", 0.38), ink: inkOn(fill) };
  });
  found.push({ fill: ground.idle, seam: ground.idle, ink: ground.ink });
  return found;
}
