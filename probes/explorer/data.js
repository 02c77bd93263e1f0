// The page's data: what it is about as JSON, and typed arrays that are decoded when first asked for.

const ABOUT = JSON.parse(document.getElementById("about").textContent);
const ARRAY_TYPES = { u2: Uint16Array, i4: Int32Array, f4: Float32Array };
const ABSENT = 65535; // code of what has no value
const TOP = 65534; // code of the highest value
const decoded = new Map();

/** The bytes that a script element holds in base64. */
function bytesOf(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** The typed array that a reference {id, type} stands for. */
function arrayOf(ref) {
  if (!decoded.has(ref.id)) decoded.set(ref.id, new ARRAY_TYPES[ref.type](bytesOf(ref.id).buffer));
  return decoded.get(ref.id);
}

/** The number that a code stands for; NaN where there is none. */
function numberOf(code, low, high) {
  return code === ABSENT ? NaN : low + (code / TOP) * (high - low);
}

const EPISODES = ABOUT.episodes;
const RETURNS = arrayOf(ABOUT.returns);
const IDS = arrayOf(ABOUT.episode);
const STARTS = arrayOf(ABOUT.t0);
const SEVERAL_STARTS = STARTS.some((start) => start !== STARTS[0]);

/** A variable's value in one episode: a class's name, a number, or null where there is none. */
function valueOf(variable, row) {
  const found = arrayOf(variable.values)[row];
  if (variable.kind === "class") return found === ABSENT ? null : variable.classes[found].name;
  return Number.isFinite(found) ? found : null;
}

/** A variable by its name. */
function variableOf(name) {
  return ABOUT.variables.find((variable) => variable.name === name);
}

/** An episode's number, and its first step where the data set has windows of episodes. */
function titleOf(row) {
  return SEVERAL_STARTS ? `${IDS[row]} from step ${STARTS[row]}` : `${IDS[row]}`;
}

/** A number as it is read: four figures, no more. */
function said(number) {
  if (number === null || !Number.isFinite(number)) return "–";
  if (Number.isInteger(number) && Math.abs(number) < 1e6) return String(number);
  const size = Math.abs(number);
  const text = size >= 1e6 || size < 1e-3 ? number.toExponential(2) : String(parseFloat(number.toPrecision(4)));
  return text.replace("-", "−");
}

/** Variables as options of a drop-down, in their groups. */
function groupedOptions(variables) {
  const groups = new Map();
  for (const { group, name } of variables) {
    if (!groups.has(group)) groups.set(group, element("optgroup", { label: group }));
    groups.get(group).append(element("option", { value: name }, name));
  }
  return [...groups.values()];
}

/** Build the contents of a part of the page anew, and give the focus back to the place that had it. */
function rebuild(host, contents) {
  const reachable = () => [...host.querySelectorAll("button, input, [tabindex]")];
  const held = reachable().indexOf(document.activeElement);
  host.replaceChildren(...contents);
  if (held >= 0) reachable()[Math.min(held, reachable().length - 1)]?.focus();
}

/** An HTML element with attributes, listeners (`onclick`) and children. Text is set as text, never as HTML. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
