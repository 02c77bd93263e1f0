// What an episode's colour and shape say, and the legend that explains them and selects by them.

const SHAPES = ["circle", "square", "triangle", "diamond", "wedge", "plus", "cross"];
const NUMBER_STEPS = ABOUT.viridis.length;

class Colouring {
  constructor() {
    this.listeners = [];
    this.use(ABOUT.variables[ABOUT.coloured]);
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  /** Colour by a variable: `style[row]` is a number in `styles`, each a colour with a shape. */
  use(variable) {
    this.variable = variable;
    const values = arrayOf(variable.values);
    this.style = new Uint16Array(EPISODES);
    if (variable.kind === "class") {
      this.styles = variable.classes.map((one) => ({
        colour: one.colour,
        shape: SHAPES[one.shape],
      }));
      for (let row = 0; row < EPISODES; row++) this.style[row] = Math.min(values[row], this.styles.length);
    } else {
      this.styles = ABOUT.viridis.map((colour) => ({ colour, shape: "circle" }));
      const span = variable.high - variable.low || 1;
      for (let row = 0; row < EPISODES; row++) {
        const share = (values[row] - variable.low) / span;
        const step = Math.max(0, Math.min(NUMBER_STEPS - 1, Math.floor(share * NUMBER_STEPS)));
        this.style[row] = Number.isFinite(share) ? step : NUMBER_STEPS;
      }
    }
    this.styles.push({ colour: ABOUT.other, shape: "circle" }); // of episodes without a value
    for (const listener of this.listeners) listener(this);
  }
}

const colouring = new Colouring();

/** How many episodes have each value code of a class variable, of all and of those selected. */
function countsOf(variable) {
  const codes = arrayOf(variable.values);
  const all = new Array(variable.classes.length + 1).fill(0);
  const chosen = all.slice();
  for (let row = 0; row < EPISODES; row++) {
    const code = Math.min(codes[row], variable.classes.length);
    all[code]++;
    if (selection.mask[row]) chosen[code]++;
  }
  return { all, chosen };
}

/** Lines of the legend: those with a colour of their own, then the folded ones together, then those without a value. */
function legendLines(variable) {
  const { all, chosen } = countsOf(variable);
  const lines = [];
  const folded = { codes: [], all: 0, chosen: 0 };
  variable.classes.forEach((one, code) => {
    const counted = { all: all[code], chosen: chosen[code] };
    if (!one.folded) lines.push({ name: one.name, style: colouring.styles[code], codes: [code], ...counted });
    else if (all[code]) {
      folded.codes.push(code);
      folded.all += all[code];
      folded.chosen += chosen[code];
    }
  });
  const none = variable.classes.length;
  const pale = { colour: ABOUT.other, shape: "circle" };
  if (folded.codes.length) lines.push({ name: `other (${folded.codes.length} classes)`, style: pale, ...folded });
  if (all[none]) lines.push({ name: "no value", style: pale, codes: [none], all: all[none], chosen: chosen[none] });
  return lines;
}

function drawLegend() {
  const host = document.getElementById("legend");
  const variable = colouring.variable;
  rebuild(host, variable.kind === "class" ? classLegend(variable) : numberLegend(variable));
}

function classLegend(variable) {
  const codes = arrayOf(variable.values);
  return legendLines(variable).map((line) => {
    const count = selection.count ? `${line.chosen} of ${line.all}` : `${line.all}`;
    const wanted = new Set(line.codes);
    const none = variable.classes.length;
    const pick = () => selection.choose((row) => wanted.has(Math.min(codes[row], none)), `legend: ${line.name}`);
    const label = `Select ${line.name}: ${count} episodes`;
    const button = element("button", { class: "line", type: "button", "aria-label": label, onclick: pick });
    button.append(markOf(line.style), element("span", {}, line.name), element("span", { class: "number" }, count));
    return button;
  });
}

/** A legend's mark, drawn as the points are. */
function markOf(style) {
  const canvas = element("canvas", { width: 28, height: 28, "aria-hidden": "true" });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, 28, 28);
  const pixels = context.getImageData(0, 0, 28, 28);
  stamp(pixels, 14, 14, stampOf(style.shape, 9), rgbOf(style.colour), 1);
  context.putImageData(pixels, 0, 0);
  return canvas;
}

function numberLegend(variable) {
  const canvas = element("canvas", { width: NUMBER_STEPS, height: 1, class: "bar", role: "img" });
  canvas.setAttribute("aria-label", `colours from ${said(variable.low)} to ${said(variable.high)}`);
  const context = canvas.getContext("2d");
  ABOUT.viridis.forEach((colour, step) => {
    context.fillStyle = colour;
    context.fillRect(step, 0, 1, 1);
  });
  const middle = (variable.low + variable.high) / 2;
  const ends = [`≤ ${said(variable.low)}`, said(middle), `≥ ${said(variable.high)}`];
  const scale = element("div", { class: "scale" }, ...ends.map((text) => element("span", {}, text)));
  const missing = arrayOf(variable.values).reduce((sum, value) => sum + (Number.isFinite(value) ? 0 : 1), 0);
  const note = missing ? [element("p", { class: "note" }, `grey: ${missing} without a value`)] : [];
  return [canvas, scale, ...note];
}
