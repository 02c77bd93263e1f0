// The learning curve: each group's mean return at each checkpoint, a group being a training seed where a learner here
// made the episodes. A cell is one group at one checkpoint.

const SIDEWAYS = 0.5; // groups lie side by side over this part of the way between two checkpoints
const CELL = { radius: 3.4, line: "#9db8c9", full: "#0072b2" };

class Curve {
  constructor(host) {
    this.cells = cellsOf();
    this.said = element("p", { class: "spread" });
    const overlay = element("canvas", { class: "overlay", "aria-hidden": "true" });
    this.frame = new Frame(element("canvas", { role: "img" }), overlay);
    const title = `Learning curve of ${this.cells.seeds.length} ${ABOUT.group}s (filled: the selected share)`;
    const plot = element("div", { class: "plot" }, this.frame.canvas, overlay);
    const head = element("div", { class: "head" }, element("h2", {}, title));
    host.append(element("section", { class: "card view", "data-view": "curve" }, head, plot, this.said));
    listenToPointer(this);
  }

  fit() {
    this.frame.fit();
    const { list, steps } = this.cells;
    const known = list.map((cell) => cell.mean).filter(Number.isFinite);
    this.frame.range([-0.3, steps.length - 0.7], [Math.min(...known), Math.max(...known)]);
    this.xs = Float32Array.from(list, (cell) => this.frame.left(cell.step + cell.beside));
    this.ys = Float32Array.from(list, (cell) => (Number.isFinite(cell.mean) ? this.frame.top(cell.mean) : -1e6));
  }

  draw() {
    const context = this.frame.clear();
    const { steps, list } = this.cells;
    const every = Math.ceil(steps.length / 12);
    const ticks = steps.map((name, step) => [step, name]).filter((_, step) => step % every === 0);
    this.frame.draw(context, [ABOUT.updates ? "checkpoint (learner updates)" : "checkpoint", "mean return"], ticks);
    this.drawLines(context);
    const chosen = new Float64Array(list.length);
    for (let row = 0; row < EPISODES; row++) chosen[this.cells.of[row]] += selection.mask[row];
    list.forEach((cell, i) => this.drawCell(context, i, chosen[i] / cell.count));
    const touched = chosen.reduce((sum, count) => sum + (count > 0 ? 1 : 0), 0);
    const all = `mean return of all ${said(MEAN_OF_ALL)}`;
    const words = `${all}, selected ${said(meanReturn(selection.mask))}; in ${touched} of ${list.length} cells`;
    this.said.textContent = selection.count ? words : all;
    this.frame.canvas.setAttribute("aria-label", `Learning curve. ${this.said.textContent}.`);
  }

  drawLines(context) {
    context.strokeStyle = CELL.line;
    context.globalAlpha = 0.55;
    for (const mine of this.cells.ofSeed) {
      context.beginPath();
      mine.forEach((i, k) => (k ? context.lineTo(this.xs[i], this.ys[i]) : context.moveTo(this.xs[i], this.ys[i])));
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** A ring, filled from the bottom by the share of its episodes that is selected. */
  drawCell(context, i, share) {
    context.beginPath();
    context.arc(this.xs[i], this.ys[i], CELL.radius, 0, 2 * Math.PI);
    context.fillStyle = "#ffffff";
    context.fill();
    if (share > 0) {
      context.fillStyle = CELL.full;
      const reach = Math.PI * share;
      context.beginPath();
      context.arc(this.xs[i], this.ys[i], CELL.radius, Math.PI / 2 - reach, Math.PI / 2 + reach);
      context.fill();
      context.beginPath();
      context.arc(this.xs[i], this.ys[i], CELL.radius, 0, 2 * Math.PI);
    }
    context.strokeStyle = share > 0 || !selection.count ? CELL.full : CELL.line;
    context.stroke();
  }

  drawOverlay() {
    const context = this.frame.overlay.getContext("2d");
    context.clearRect(0, 0, this.frame.width, this.frame.height);
    for (const [row, colour] of [
      [focus.playing, "#000000"],
      [focus.pointed, "#d55e00"],
    ]) {
      if (row < 0) continue;
      const i = this.cells.of[row];
      context.strokeStyle = colour;
      context.beginPath();
      context.arc(this.xs[i], this.ys[i], CELL.radius + 4, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  onBrush(test) {
    const inside = this.cells.list.map((_, i) => test(this.xs[i], this.ys[i]));
    selection.choose((row) => inside[this.cells.of[row]], "learning curve");
  }

  onPick(x, y) {
    const found = nearestTo(this.xs, this.ys, x, y);
    if (found >= 0) selection.choose((row) => this.cells.of[row] === found, "learning curve");
  }

  onPoint(x, y) {
    const cell = this.cells.list[nearestTo(this.xs, this.ys, x, y)];
    const where = cell && `${ABOUT.group} ${cell.seed}, checkpoint ${cell.checkpoint}`;
    const words = cell ? `${where}\nmean return ${said(cell.mean)} of ${cell.count} episodes` : "";
    showTip(this.frame.overlay, x, y, words);
  }
}

/** Cells with their mean return, the cell of every row, every seed's cells in order, and the checkpoints' names. */
function cellsOf() {
  const [seed, checkpoint] = [variableOf(ABOUT.group), variableOf("checkpoint")];
  const [seeds, steps] = [seed.classes, checkpoint.classes].map((classes) => classes.map((one) => one.name));
  const [seedOf, stepOf] = [arrayOf(seed.values), arrayOf(checkpoint.values)];
  const numbers = new Map();
  const list = [];
  const of = new Uint32Array(EPISODES);
  for (let row = 0; row < EPISODES; row++) {
    const key = seedOf[row] * steps.length + stepOf[row];
    if (!numbers.has(key)) {
      numbers.set(key, list.length);
      const beside = seeds.length > 1 ? (seedOf[row] / (seeds.length - 1) - 0.5) * SIDEWAYS : 0;
      const place = { seed: seeds[seedOf[row]], checkpoint: steps[stepOf[row]], step: stepOf[row], beside };
      list.push({ ...place, count: 0, known: 0, mean: 0 });
    }
    of[row] = numbers.get(key);
    const cell = list[of[row]];
    cell.count++;
    if (Number.isFinite(RETURNS[row])) cell.mean += (RETURNS[row] - cell.mean) / ++cell.known;
  }
  for (const cell of list) if (!cell.known) cell.mean = NaN;
  const ofSeed = seeds.map((name) => {
    const mine = list.map((_, i) => i).filter((i) => list[i].seed === name && list[i].known);
    return mine.sort((a, b) => list[a].step - list[b].step);
  });
  const named = ABOUT.updates ? steps.map((name) => `${name} (${ABOUT.updates[name]})`) : steps;
  return { list, of, ofSeed, seeds, steps: named };
}
