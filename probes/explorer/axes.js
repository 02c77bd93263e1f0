// The frame of a plot: where data lie on a canvas, ticks with numbers, and names of the axes.

const MARGIN = { left: 46, right: 10, top: 8, bottom: 36 };
const INK = "#333333";
const GRID = "#ebebeb";

/** Round numbers within an interval, about `wanted` of them. */
function ticksOf(low, high, wanted = 5) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) ticks.push(k * step);
  return ticks;
}

/** A tick's text, without the dust of floating point. */
function tickText(value) {
  return String(parseFloat(value.toPrecision(6))).replace("-", "−");
}

class Frame {
  constructor(canvas, overlay) {
    this.canvas = canvas;
    this.overlay = overlay;
  }

  /** Fit both canvases to their box on the screen; the plot's inner size in CSS pixels. */
  fit() {
    const box = this.canvas.parentElement.getBoundingClientRect();
    this.scale = window.devicePixelRatio || 1;
    this.width = Math.max(120, Math.floor(box.width));
    this.height = Math.max(120, Math.floor(box.height));
    for (const canvas of [this.canvas, this.overlay]) {
      canvas.width = this.width * this.scale;
      canvas.height = this.height * this.scale;
      canvas.getContext("2d").setTransform(this.scale, 0, 0, this.scale, 0, 0);
    }
    this.inner = { width: this.width - MARGIN.left - MARGIN.right, height: this.height - MARGIN.top - MARGIN.bottom };
  }

  /** The interval of each axis; data keep `pad` pixels from the frame. */
  range(x, y, pad = 8) {
    this.x = { low: x[0], high: x[1] > x[0] ? x[1] : x[0] + 1 };
    this.y = { low: y[0], high: y[1] > y[0] ? y[1] : y[0] + 1 };
    this.pad = pad;
  }

  left(value) {
    const share = (value - this.x.low) / (this.x.high - this.x.low);
    return MARGIN.left + this.pad + share * (this.inner.width - 2 * this.pad);
  }

  top(value) {
    const share = (value - this.y.low) / (this.y.high - this.y.low);
    return MARGIN.top + this.inner.height - this.pad - share * (this.inner.height - 2 * this.pad);
  }

  clear() {
    const context = this.canvas.getContext("2d");
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, this.width, this.height);
    return context;
  }

  /** Grid lines, numbers and names; ticks are [value, text]. */
  draw(context, names, xTicks = null, yTicks = null) {
    const { width, height } = this.inner;
    const across = xTicks || ticksOf(this.x.low, this.x.high).map((value) => [value, tickText(value)]);
    const upward = yTicks || ticksOf(this.y.low, this.y.high).map((value) => [value, tickText(value)]);
    context.font = "11px system-ui, sans-serif";
    context.lineWidth = 1;
    context.strokeStyle = GRID;
    context.fillStyle = "#555555";
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const [value, text] of across) {
      const x = Math.round(this.left(value)) + 0.5;
      this.line(context, x, MARGIN.top, x, MARGIN.top + height);
      context.fillText(text, x, MARGIN.top + height + 4);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const [value, text] of upward) {
      const y = Math.round(this.top(value)) + 0.5;
      this.line(context, MARGIN.left, y, MARGIN.left + width, y);
      context.fillText(text, MARGIN.left - 5, y);
    }
    context.strokeStyle = "#999999";
    this.line(context, MARGIN.left + 0.5, MARGIN.top, MARGIN.left + 0.5, MARGIN.top + height);
    this.line(context, MARGIN.left, MARGIN.top + height + 0.5, MARGIN.left + width, MARGIN.top + height + 0.5);
    this.name(context, names);
  }

  name(context, [xName, yName]) {
    context.fillStyle = INK;
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    context.fillText(xName, MARGIN.left + this.inner.width / 2, this.height - 5);
    context.save();
    context.translate(11, MARGIN.top + this.inner.height / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(yName, 0, 0);
    context.restore();
  }

  line(context, x0, y0, x1, y1) {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }
}
