// One latent as a cloud of episodes on a chosen pair of axes.

const FADED = rgbOf("#c4c4c4");
const RADII = [
  [1500, 3.6],
  [8000, 2.8],
  [Infinity, 2.1],
]; // pixels, by how many episodes there are
const radiusOf = (count) => RADII.find(([most]) => count <= most)[1];
const RADIUS = radiusOf(EPISODES);

class Scatter {
  constructor(view, host) {
    this.view = view;
    this.codes = arrayOf(view.values);
    this.axes = [0, Math.min(1, view.axes.length - 1)];
    this.xs = new Float32Array(EPISODES);
    this.ys = new Float32Array(EPISODES);
    this.build(host);
    this.latent = latentOf(view, this.codes);
    this.whole = scatterOf(this.latent, null);
    listenToPointer(this);
  }

  build(host) {
    this.said = element("p", { class: "spread" });
    const canvas = element("canvas", { role: "img" });
    canvas.getContext("2d", { willReadFrequently: true }); // points are blended into what was drawn
    const overlay = element("canvas", { class: "overlay", "aria-hidden": "true" });
    this.frame = new Frame(canvas, overlay);
    const choices = ["across", "up"].map((way, i) => this.axisChoice(way, i));
    const head = element("div", { class: "head" }, element("h2", {}, this.view.title), ...choices);
    const plot = element("div", { class: "plot" }, canvas, overlay);
    host.append(element("section", { class: "card view", "data-view": this.view.name }, head, plot, this.said));
  }

  axisChoice(way, i) {
    const options = this.view.axes.map((axis, k) => element("option", { value: k }, axis.name));
    const change = (event) => {
      this.axes[i] = Number(event.target.value);
      this.place();
      this.draw();
      this.drawOverlay();
    };
    const select = element("select", { "aria-label": `${this.view.title}: axis ${way}`, onchange: change }, ...options);
    select.value = this.axes[i];
    return select;
  }

  /** The value of an axis of this view in an episode; NaN where the agent was never there. */
  value(row, axis) {
    const { low, high } = this.view.axes[axis];
    return numberOf(this.codes[row * this.view.axes.length + axis], low, high);
  }

  /** Where every episode lies, in CSS pixels; far outside where it has no place. */
  place() {
    const [across, up] = this.axes.map((k) => this.view.axes[k]);
    this.frame.range([across.low, across.high], [up.low, up.high]);
    for (let row = 0; row < EPISODES; row++) {
      const x = this.value(row, this.axes[0]);
      this.xs[row] = Number.isNaN(x) ? -1e6 : this.frame.left(x);
      this.ys[row] = Number.isNaN(x) ? -1e6 : this.frame.top(this.value(row, this.axes[1]));
    }
  }

  fit() {
    this.frame.fit();
    this.place();
  }

  draw() {
    const { frame } = this;
    const context = frame.clear();
    frame.draw(
      context,
      this.axes.map((k) => this.view.axes[k].name + this.view.axes[k].share),
    );
    const canvas = frame.canvas;
    const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
    if (selection.count) this.stampRows(pixels, false);
    this.stampRows(pixels, true);
    context.putImageData(pixels, 0, 0);
    this.describe();
  }

  /** Selected episodes in their colours, the others pale and small beneath them. */
  stampRows(pixels, chosen) {
    const { scale } = this.frame;
    const radius = (chosen ? radiusOf(selection.count || EPISODES) : RADIUS * 0.75) * scale;
    const looks = colouring.styles.map(({ colour, shape }) => [stampOf(shape, radius), rgbOf(colour)]);
    const pale = stampOf("circle", radius);
    const alpha = chosen ? (selection.count ? 0.9 : 0.65) : 0.35;
    for (const row of DRAW_ORDER) {
      const here = !selection.count || selection.mask[row] === 1;
      if (here !== chosen || this.xs[row] < -1e5) continue;
      const [mark, rgb] = looks[colouring.style[row]];
      const x = Math.round(this.xs[row] * scale);
      const y = Math.round(this.ys[row] * scale);
      stamp(pixels, x, y, chosen ? mark : pale, chosen ? rgb : FADED, alpha);
    }
  }

  /** What the view shows, in words: for those who see it, and for those who do not. */
  describe() {
    const brushed = selection.origin === this.view.title ? " · brushed" : "";
    const spread = selection.count ? scatterOf(this.latent, selection.mask) / this.whole : NaN; // docs/coupling.md
    const words = `image spread ${Number.isFinite(spread) ? spread.toFixed(2) : "–"} of all${brushed}`;
    this.said.textContent = selection.count ? words : "nothing selected";
    const label = `${this.view.title}: ${EPISODES} episodes, ${selection.count} selected. ${this.said.textContent}.`;
    this.frame.canvas.setAttribute("aria-label", label);
  }

  drawOverlay() {
    const context = this.frame.overlay.getContext("2d");
    context.clearRect(0, 0, this.frame.width, this.frame.height);
    for (const [row, colour, width] of [
      [focus.playing, "#000000", 2.2],
      [focus.pointed, "#d55e00", 1.6],
    ]) {
      if (row < 0 || this.xs[row] < -1e5) continue;
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.arc(this.xs[row], this.ys[row], RADIUS + 4, 0, 2 * Math.PI);
      context.stroke();
    }
    context.lineWidth = 1;
  }

  onBrush(test) {
    selection.choose((row) => test(this.xs[row], this.ys[row]), this.view.title);
  }

  onPick(x, y) {
    const row = nearestTo(this.xs, this.ys, x, y);
    if (row >= 0) focus.play(row);
  }

  onPoint(x, y) {
    const row = nearestTo(this.xs, this.ys, x, y);
    focus.point(row);
    const words = row < 0 ? "" : `episode ${titleOf(row)} · return ${said(RETURNS[row])}\n${colouredBy(row)}`;
    showTip(this.frame.overlay, x, y, words);
  }
}

/** What colours an episode, as text. */
function colouredBy(row) {
  const value = valueOf(colouring.variable, row);
  return `${colouring.variable.name}: ${typeof value === "string" ? value : said(value)}`;
}

/** An order of drawing that puts no class on top of another: a full cycle of steps coprime to the number. */
function shuffled(count) {
  const gcd = (a, b) => (b ? gcd(b, a % b) : a);
  let step = Math.max(1, Math.floor(count * 0.618034));
  while (gcd(step, count) !== 1) step++;
  return Uint32Array.from({ length: count }, (_, i) => (i * step) % count);
}
const DRAW_ORDER = shuffled(EPISODES);

/** The latent's own dimensions of every episode, row after row; NaN where the agent was never there. */
function latentOf(view, codes) {
  const own = view.axes.slice(view.latent);
  const values = new Float32Array(EPISODES * own.length);
  for (let i = 0; i < values.length; i++) {
    const k = i % own.length;
    const code = codes[((i - k) / own.length) * view.axes.length + view.latent + k];
    values[i] = numberOf(code, own[k].low, own[k].high);
  }
  return { values, width: own.length };
}

/** Trace of the covariance of the whole latent, not its picture, over the rows of a mask or all; with n - 1. */
function scatterOf({ values, width }, mask) {
  const centre = new Float64Array(width);
  let count = 0;
  const isIn = (row) => (!mask || mask[row] === 1) && !Number.isNaN(values[row * width]);
  for (let row = 0; row < EPISODES; row++) {
    if (!isIn(row)) continue;
    count++;
    for (let k = 0; k < width; k++) centre[k] += values[row * width + k];
  }
  let sum = 0;
  for (let row = 0; row < EPISODES; row++) {
    if (!isIn(row)) continue;
    for (let k = 0; k < width; k++) sum += (values[row * width + k] - centre[k] / count) ** 2;
  }
  return count > 1 ? sum / (count - 1) : NaN; // one episode is not tight, it is one
}
