// The charts of a page begin: as it opens, as the screen turns dark or light, and for print.

const viewers = [];

async function begin(box) {
  try {
    const names = box.dataset.schedules.split(" ");
    const read = (name) => JSON.parse(document.getElementById(name).textContent);
    viewers.push(new Viewer(box, await Promise.all(names.map((name) => ScheduleData.of(read(name))))));
  } catch (error) {
    box.textContent = "This chart cannot be drawn here: " + error.message;
    throw error;
  }
}

const darkness = matchMedia("(prefers-color-scheme: dark)");

function everyViewer(isDark, width, ratio) {
  for (const viewer of viewers) {
    [viewer.width, viewer.ratio] = [width, ratio];
    viewer.darken(isDark);
  }
}

addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((details) => { details.open = true; });
  everyViewer(false, 700, 3); // an upright sheet of paper in pixels, each of nine
});
addEventListener("afterprint", () => everyViewer(darkness.matches));
darkness.addEventListener("change", () => everyViewer(darkness.matches));

const began = Promise.all([...document.querySelectorAll(".viewer[data-schedules]")].map(begin)).then(() => {
  everyViewer(darkness.matches);
});
window.bubbleproof = { viewers, began };
