// The solver, begun from the orders there: how far it is, and its orders at the end, which Undo takes
// back like any change.
class Solver {
  constructor(solved) {
    Object.assign(this, {solved, isRunning: false});
    find("solve").onclick = () => this.isRunning ? posted("stop", {}) : this.begin();
  }

  async begin() {
    const box = find("seconds");
    if (!box.checkValidity() || box.value === "") return this.say("1 to 600 seconds");
    this.turn(true);
    const told = await posted("solve", {view: question(), seconds: +box.value});
    if (!told.refused) return this.follow();
    this.turn(false);
    return this.say(told.refused);
  }

  turn(isRunning) {
    this.isRunning = isRunning;
    find("solve").textContent = isRunning ? "Stop" : "Solve from here";
  }

  async follow() {
    let told = {running: true};
    while (told.running) {
      await new Promise(done => setTimeout(done, 250));
      told = await posted("progress", {});
      if (told.refused) break;
      const best = told.best === null ? "nothing yet" : `makespan ${told.best}`;
      this.say(`${best}, no schedule is below ${told.bound} (${told.seconds} s)`);
    }
    this.turn(false);
    if (told.said || told.refused) this.say(`${find("solver").textContent} ${told.said ?? told.refused}`);
    if (told.orders) this.solved(told.orders);
  }

  say(words) { find("solver").textContent = words; }
}
