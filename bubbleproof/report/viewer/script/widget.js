// The viewer in a notebook, as anywidget asks for it: the model's traits are drawn, and what a reader
// chooses goes back into it. The names of the traits are those of schedule_widget.py.

// Whether the notebook around is dark: Jupyter's, VS Code's and marimo's mark, else the reader's wish.
function isDarkAround() {
  const { dataset, classList } = document.body;
  if (dataset.jpThemeLight) { return dataset.jpThemeLight === "false"; }
  if (dataset.vscodeThemeKind) { return /dark|high-contrast$/.test(dataset.vscodeThemeKind); }
  if (classList.contains("dark") || classList.contains("light")) { return classList.contains("dark"); }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

class WidgetView {
  constructor(model, el, schedules) {
    Object.assign(this, { model, el });
    el.classList.add("bubbleproof", "widget");
    const box = element("div", { class: "viewer", "data-lm-suppress-shortcuts": "true" });
    box.dataset.shown = String(model.get("num_shown"));
    box.dataset.window = model.get("window").join(":");
    el.append(box);
    this.viewer = new Viewer(box, schedules);
    this.viewer.onpick = (choice) => {
      model.set("selected", choice);
      model.save_changes();
    };
    box.addEventListener("keydown", (event) => event.stopPropagation());
    this.heard = {
      schedules: () => this.exchange(),
      palette: () => this.viewer.choosePalette(model.get("palette")),
      ground: () => this.darken(),
      highlighted: () => this.viewer.highlight(model.get("highlighted")),
    };
    for (const [name, action] of Object.entries(this.heard)) { model.on("change:" + name, action); }
    this.viewer.onpalette = (name) => {
      model.set("palette", name);
      model.save_changes();
    };
    this.watcher = new MutationObserver(() => this.darken());
    this.watcher.observe(document.body, { attributes: true });
    this.darken();
    this.heard.palette();
    this.heard.highlighted();
  }

  darken() {
    const asked = this.model.get("ground"), isDark = asked === "auto" ? isDarkAround() : asked === "dark";
    this.el.style.colorScheme = isDark ? "dark" : "light";
    this.viewer.darken(isDark);
  }

  async exchange() { this.viewer.exchange(await schedulesOf(this.model)); }

  end() {
    for (const [name, action] of Object.entries(this.heard)) { this.model.off("change:" + name, action); }
    this.watcher.disconnect();
    this.viewer.end();
  }
}

function schedulesOf(model) { return Promise.all(model.get("schedules").map((one) => ScheduleData.of(one))); }

async function render({ model, el }) {
  const view = new WidgetView(model, el, await schedulesOf(model));
  return () => view.end();
}

export default { render };
