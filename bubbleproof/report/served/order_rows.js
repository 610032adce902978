// The orders as rows of chips: one drags an action along its row, or moves it with Shift and arrows.
class OrderRows {
  constructor(room, colours, moved) {
    Object.assign(this, {room, colours, moved, rows: [], focus: null});
  }

  show(told) {
    this.rows = told.orders ? told.orders.map(row => row.slice()) : [];
    if (!told.orders) {
      this.room.replaceChildren(element("p", {className: "soft", textContent:
        `${told.num_actions.toLocaleString("en")} actions are too many to drag one by one.`}));
      return;
    }
    const hint = element("p", {className: "soft", textContent:
      "Drag an action along its row, or move it with Shift and the arrow keys."});
    this.room.replaceChildren(hint, ...this.rows.map((row, r) => this._row(told.resources[r], row, r)));
    if (this.focus) this._chip(...this.focus)?.focus();
  }

  _row(name, actions, r) {
    const list = element("div", {className: "chips"});
    list.setAttribute("role", "toolbar");
    list.setAttribute("aria-label", name);
    actions.forEach((action, at) => list.append(this._made(action, r, at)));
    list.onpointerdown = event => this._grab(event, list, r);
    return element("div", {className: "order"}, element("span", {textContent: name}), list);
  }

  _made(action, r, at) {
    const chip = element("button", {type: "button", textContent: action, tabIndex: at ? -1 : 0});
    const [fill, ink] = this.colours[/[A-Z_]+/.exec(action)] || ["", ""];
    chip.style.background = fill;
    chip.style.color = ink;
    chip.onkeydown = event => this._key(event, r, at);
    chip.onfocus = () => { this.focus = [r, at]; };
    return chip;
  }

  _chip(r, at) { return this.room.querySelectorAll(".chips")[r]?.children[at]; }

  _key(event, r, at) {
    const last = this.rows[r].length - 1;
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last}[event.key];
    if (to === undefined || to < 0 || to > last) return;
    event.preventDefault();
    if (event.shiftKey) this.move(r, at, to);
    else this._chip(r, to).focus();
  }

  move(r, at, to) {
    if (at === to) return;
    this.rows[r].splice(to, 0, ...this.rows[r].splice(at, 1));
    this.focus = [r, to];
    this.moved(this.rows.map(row => row.slice()));
  }

  _grab(event, list, r) {
    const chip = event.target.closest("button");
    if (!chip || event.button !== 0) return;
    const at = [...list.children].indexOf(chip), began = event.clientX;
    let isDragged = false;
    list.setPointerCapture(event.pointerId);
    list.onpointermove = move => {
      isDragged ||= Math.abs(move.clientX - began) > 4;
      if (isDragged) this._drag(move.clientX, list, chip);
    };
    const end = isKept => {
      list.onpointermove = list.onpointerup = list.onpointercancel = null;
      chip.classList.remove("dragged");
      const to = [...list.children].indexOf(chip);
      if (isKept) this.move(r, at, to);
      else list.insertBefore(chip, list.children[at + (to < at)] || null);
      if (!isDragged) chip.focus();
    };
    list.onpointerup = () => end(true);
    list.onpointercancel = () => end(false);
  }

  _drag(x, list, chip) {
    chip.classList.add("dragged");
    const box = list.getBoundingClientRect();
    if (x < box.left + 30) list.scrollLeft -= 14;
    if (x > box.right - 30) list.scrollLeft += 14;
    const others = [...list.children].filter(each => each !== chip);
    const next = others.find(each => {
      const place = each.getBoundingClientRect();
      return place.left + place.width / 2 > x;
    });
    if (chip.nextElementSibling !== (next || null)) list.insertBefore(chip, next || null);
  }
}
