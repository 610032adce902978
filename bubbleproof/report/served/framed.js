// The viewer in the frame of serve: it draws the schedules that the page around it sends, one message
// after another, and keeps zoom, scroll and what was chosen.
let turn = Promise.resolve();

async function draw({ number, schedules }) {
  const read = await Promise.all(schedules.map((one) => ScheduleData.of(one)));
  if (viewers.length) {
    viewers[0].exchange(read);
  } else {
    const box = document.getElementById("framed");
    box.dataset.shown = String(read.length);
    viewers.push(new Viewer(box, read));
    everyViewer(darkness.matches);
  }
  parent.postMessage({ drawn: number }, "*");
}

addEventListener("message", (event) => {
  if (event.source === parent && event.data.schedules) { turn = turn.then(() => draw(event.data)); }
});
new ResizeObserver(() => parent.postMessage({ high: document.body.offsetHeight }, "*")).observe(document.body);
parent.postMessage({ ready: true }, "*");
