// Pointers: hovering tells, a click chooses, dragging moves, shift and dragging or two fingers zoom.

class Pointer {
  constructor(viewer) {
    Object.assign(this, { viewer, down: new Map(), moved: 0 });
    const { canvas } = viewer, on = (name, action, options) =>
      canvas.addEventListener(name, (event) => action.call(this, event), options);
    on("pointerdown", this.press);
    on("pointermove", this.move);
    on("pointerup", this.release);
    on("pointercancel", this.release);
    on("pointerleave", () => { viewer.tip.hidden = true; });
    on("dblclick", (event) => viewer.zoom(event.shiftKey ? 2.5 : 0.4, this.place(event)[0]));
    on("wheel", this.turn, { passive: false });
  }

  place(event) {
    const box = this.viewer.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  press(event) {
    if (event.button) { return; }
    this.viewer.canvas.setPointerCapture(event.pointerId);
    this.down.set(event.pointerId, this.place(event));
    [this.moved, this.first] = [0, this.place(event)];
  }

  move(event) {
    const at = this.place(event), before = this.down.get(event.pointerId), { viewer } = this;
    if (!before) { return this.hover(at); }
    viewer.tip.hidden = true;
    if (this.down.size === 2) {
      this.pinch(event.pointerId, at);
    } else if (!event.shiftKey) {
      viewer.view.pan(before[0] - at[0]);
      viewer.ask();
    }
    this.moved += Math.abs(at[0] - before[0]) + Math.abs(at[1] - before[1]);
    return this.down.set(event.pointerId, at);
  }

  pinch(moving, at) {
    const [[other]] = [[...this.down].filter(([id]) => id !== moving).map(([, place]) => place)];
    const before = Math.abs(this.down.get(moving)[0] - other[0]), now = Math.abs(at[0] - other[0]);
    if (before > 4 && now > 4) { this.viewer.zoom(before / now, (at[0] + other[0]) / 2); }
  }

  release(event) {
    const at = this.place(event), wasDown = this.down.delete(event.pointerId);
    if (!wasDown || event.type === "pointercancel") { return; }
    if (this.moved < 5) { this.choose(at); } else if (event.shiftKey) { this.stretch(at); }
  }

  // What a drag with shift has marked becomes all that is seen.
  stretch(at) {
    const { view } = this.viewer, ends = [view.time(this.first[0]), view.time(at[0])].sort((a, b) => a - b);
    if (ends[1] > ends[0]) { view.show(...ends); }
    this.viewer.ask();
  }

  choose([x, y]) {
    const { viewer } = this, { view } = viewer, panel = view.panelAt(y);
    if (x < view.left || x > view.left + view.plot) { return; }
    const found = viewer.rowAt(x, y), [data] = view.shown;
    if (found) {
      const store = found.lane < found.data.stores.length && found.lane < found.data.ranks ? found.lane : null;
      viewer.pick(found.data, found.row, found.time, store);
    } else if (panel) {
      viewer.pick(view.memoryOf, null, view.ofAxis(view.memoryOf, view.time(x)), panel.store);
    } else {
      viewer.pick(data, null);
    }
  }

  hover([x, y]) {
    const { viewer } = this, { view, tip } = viewer, panel = view.panelAt(y);
    const isInside = x >= view.left && x <= view.left + view.plot;
    const found = isInside ? viewer.rowAt(x, y) : null;
    let lines = found && found.row !== null ? tellRow(found.data, found.row) : null;
    if (isInside && panel && !found) {
      const holder = view.memoryOf, time = view.ofAxis(holder, view.time(x));
      lines = tellLive(holder, panel.store, time).slice(0, 1);
    }
    tip.hidden = !lines;
    if (!lines) { return; }
    tip.replaceChildren(told(lines));
    const { canvas } = viewer, right = x > view.width * 0.6;
    tip.style.left = right ? "" : canvas.offsetLeft + x + 14 + "px";
    tip.style.right = right ? canvas.offsetLeft + view.width - x + 14 + "px" : "";
    tip.style.top = canvas.offsetTop + y + 14 + "px";
  }

  // The wheel scrolls the page; with Ctrl (or two fingers on a pad) it zooms, with Alt the ranks.
  turn(event) {
    const { viewer } = this, [x, y] = this.place(event);
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      viewer.view.pan(event.deltaX);
    } else if (event.altKey) {
      viewer.view.zoomLanes(Math.pow(1.0025, event.deltaY), y);
    } else if (event.ctrlKey || event.metaKey) {
      viewer.view.zoom(Math.pow(1.0025, event.deltaY), x);
    } else {
      return;
    }
    event.preventDefault();
    viewer.ask();
  }
}
