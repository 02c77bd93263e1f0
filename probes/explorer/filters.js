// Conditions that select: each on a variable or on an axis of a view, all of which must hold.

const MOST_CHIPS = 24; // classes that are shown as buttons; more are typed

/** Every axis of every view as a variable, so that the keyboard can do what a rectangle does. */
function axisVariables() {
  return scatters.flatMap((scatter) =>
    scatter.view.axes.map((axis, k) => ({
      name: `${scatter.view.title}: ${axis.name}`,
      kind: "axis",
      group: "axes of the views",
      low: axis.low,
      high: axis.high,
      read: (row) => scatter.value(row, k),
    })),
  );
}

/** The parts of a text such as "3, 10-20". */
function partsOf(text) {
  return text.split(/[\s,;]+/).filter(Boolean);
}

/** Numbers and ranges as in "3, 10-20" as a test; names stand for themselves. */
function listTest(text) {
  const names = new Set();
  const ranges = [];
  for (const part of partsOf(text)) {
    const range = part.match(/^(\d+)[-–](\d+)$/);
    if (range) ranges.push([Number(range[1]), Number(range[2])]);
    else names.add(part);
  }
  const inRange = (value) => ranges.some(([low, high]) => value >= low && value <= high);
  return (name) => names.has(String(name)) || (ranges.length > 0 && inRange(Number(name)));
}

class Condition {
  constructor(list, variables, name) {
    this.list = list;
    this.variables = variables;
    const change = () => this.use(this.select.value);
    this.select = element("select", { "aria-label": "variable of this condition", onchange: change });
    this.select.append(...groupedOptions(variables));
    this.host = element("div", { class: "values" });
    const remove = () => list.remove(this);
    const button = element("button", { type: "button", "aria-label": "remove this condition", onclick: remove }, "×");
    this.node = element("div", { class: "condition" }, this.select, button, this.host);
    this.select.value = name;
    this.use(name);
  }

  use(name) {
    this.variable = this.variables.find((one) => one.name === name);
    const { kind, classes } = this.variable;
    if (kind !== "class") this.showRange();
    else if (classes.length <= MOST_CHIPS) this.showChips();
    else this.showList();
    this.list.count();
  }

  showRange() {
    const { kind, name, low, high, values } = this.variable;
    const ends = ["from", "to"].map((word, i) => {
      const label = `${name} ${word}`;
      const hint = said(kind === "axis" ? [low, high][i] : endsOf(arrayOf(values))[i]);
      const count = () => this.list.count();
      return element("input", { type: "number", step: "any", "aria-label": label, placeholder: hint, oninput: count });
    });
    this.host.replaceChildren(ends[0], "to", ends[1]);
    const read = kind === "axis" ? this.variable.read : (row) => arrayOf(values)[row];
    this.test = () => {
      const [from, to] = ends.map((input) => (input.value === "" ? null : Number(input.value)));
      if (from === null && to === null) return null;
      return (row) => read(row) >= (from ?? -Infinity) && read(row) <= (to ?? Infinity); // false of NaN
    };
  }

  showChips() {
    const wanted = new Set();
    const chips = this.variable.classes.map((one, code) => {
      const flip = (event) => {
        wanted.has(code) ? wanted.delete(code) : wanted.add(code);
        event.currentTarget.setAttribute("aria-pressed", wanted.has(code));
        this.list.count();
      };
      return element("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: flip }, one.name);
    });
    this.host.replaceChildren(...chips);
    const codes = arrayOf(this.variable.values);
    this.test = () => (wanted.size ? (row) => wanted.has(codes[row]) : null);
  }

  showList() {
    const label = `${this.variable.name}: numbers`;
    const count = () => this.list.count();
    const hint = "3, 10-20";
    const input = element("input", { type: "text", "aria-label": label, placeholder: hint, oninput: count });
    this.host.replaceChildren(input);
    const codes = arrayOf(this.variable.values);
    this.test = () => {
      if (!input.value.trim()) return null;
      const isNamed = listTest(input.value);
      const wanted = this.variable.classes.map((one) => isNamed(one.name));
      return (row) => wanted[codes[row]] === true;
    };
  }
}

function endsOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** The list of conditions with its buttons, and the box for the numbers of episodes. */
class Filters {
  constructor() {
    this.variables = [...ABOUT.variables, ...axisVariables()];
    this.host = document.getElementById("conditions");
    this.matching = document.getElementById("matching");
    this.conditions = [];
    for (const name of ["split", "checkpoint"]) this.add(name);
    document.getElementById("add").addEventListener("click", () => this.add("return"));
    document.getElementById("filters").addEventListener("submit", (event) => {
      event.preventDefault();
      this.choose();
    });
    document.getElementById("ids").addEventListener("submit", (event) => {
      event.preventDefault();
      this.name(event.target.elements.ids.value);
    });
  }

  /** Select the episodes of the numbers and ranges of a text, and say which of them there are none of. */
  name(text) {
    const parts = partsOf(text);
    const lost = parts.filter((part) => !IDS.some(listTest(part)));
    if (lost.length < parts.length) {
      const isNamed = listTest(text);
      selection.choose((row) => isNamed(IDS[row]), "episode numbers");
    }
    const words = lost.length ? `no episode has the number ${lost.join(", ")}` : "";
    document.getElementById("named").textContent = parts.length ? words : "no number given; type some, as in 3, 10-20";
  }

  add(name) {
    const made = new Condition(this, this.variables, name);
    this.conditions.push(made);
    this.host.append(made.node);
    this.count();
  }

  remove(condition) {
    this.conditions = this.conditions.filter((one) => one !== condition);
    condition.node.remove();
    this.count();
    document.getElementById("add").focus();
  }

  /** The test of all conditions that say something; null where none does. */
  test() {
    const tests = this.conditions.map((one) => one.test && one.test()).filter(Boolean);
    return tests.length ? (row) => tests.every((test) => test(row)) : null;
  }

  count() {
    const test = this.test();
    let found = 0;
    if (test) for (let row = 0; row < EPISODES; row++) found += test(row) ? 1 : 0;
    this.matching.textContent = test ? `${found} episodes match` : "no condition set";
  }

  choose() {
    const test = this.test();
    if (test) selection.choose(test, "filters");
  }
}
