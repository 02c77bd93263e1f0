// The selected episodes as a table, a page at a time, and as a CSV file.

const PAGE_ROWS = 15;

class Table {
  constructor() {
    this.page = 0;
    this.sort = { variable: null, down: false };
    this.rows = [];
    this.head = document.querySelector("#episodes thead tr");
    this.body = document.querySelector("#episodes tbody");
    this.say = document.getElementById("page");
    this.everything = document.querySelector('input[name="listed"][value="all"]');
    const turn = (by) => () => this.turn(by);
    document.getElementById("earlier").addEventListener("click", turn(-1));
    document.getElementById("later").addEventListener("click", turn(1));
    document.getElementById("export").addEventListener("click", () => save(csvOf(selection.rows())));
    for (const radio of document.querySelectorAll('input[name="listed"]')) {
      radio.addEventListener("change", () => this.list());
    }
    this.drawHead();
  }

  drawHead() {
    const heads = [null, ...ABOUT.variables].map((variable) => {
      const name = variable ? variable.name : "episode";
      const sorted = this.sort.variable === variable && this.sorted;
      const arrow = sorted ? (this.sort.down ? " ▼" : " ▲") : "";
      const button = element("button", { type: "button", onclick: () => this.sortBy(variable) }, name + arrow);
      const way = this.sort.down ? "descending" : "ascending";
      return element("th", { scope: "col", "aria-sort": sorted ? way : "none" }, button);
    });
    rebuild(this.head, [element("th", { scope: "col" }, "selected"), ...heads]);
  }

  sortBy(variable) {
    this.sort = { variable, down: this.sorted && this.sort.variable === variable ? !this.sort.down : false };
    this.sorted = true;
    this.drawHead();
    this.list();
  }

  /** Find the rows anew: the selected ones, or all where none is or all are asked for. */
  list() {
    const all = this.everything.checked;
    this.rows = all ? Array.from({ length: EPISODES }, (_, row) => row) : selection.rows();
    if (this.sorted) {
      const values = this.sort.variable ? arrayOf(this.sort.variable.values) : IDS;
      const key = (row) => (Number.isFinite(values[row]) ? values[row] : Infinity);
      const sign = this.sort.down ? -1 : 1;
      this.rows.sort((a, b) => sign * (key(a) - key(b)) || a - b);
    }
    this.page = 0;
    this.draw();
  }

  turn(by) {
    this.page = Math.max(0, Math.min(this.pages - 1, this.page + by));
    this.draw();
  }

  get pages() {
    return Math.max(1, Math.ceil(this.rows.length / PAGE_ROWS));
  }

  draw() {
    const first = this.page * PAGE_ROWS;
    const shown = this.rows.slice(first, first + PAGE_ROWS);
    rebuild(
      this.body,
      shown.map((row) => this.line(row)),
    );
    const which = this.everything.checked || !selection.count ? "all episodes" : "the selection";
    this.say.textContent = `${shown.length ? first + 1 : 0}–${first + shown.length} of ${this.rows.length}, ${which}`;
    document.getElementById("earlier").disabled = this.page === 0;
    document.getElementById("later").disabled = this.page >= this.pages - 1;
  }

  line(row) {
    const box = { type: "checkbox", "aria-label": `episode ${titleOf(row)} selected`, onchange: () => this.flip(row) };
    const input = element("input", box);
    input.checked = selection.mask[row] === 1;
    input.addEventListener("click", (event) => event.stopPropagation());
    const cells = ABOUT.variables.map((variable) => {
      const value = valueOf(variable, row);
      const text = typeof value === "string" ? value : said(value);
      return element("td", { class: variable.kind }, text);
    });
    const play = (event) => {
      if (event.type === "click" || (event.key === "Enter" && event.target === event.currentTarget)) focus.play(row);
    };
    const playing = focus.playing === row;
    const name = { tabindex: 0, "aria-label": `play episode ${titleOf(row)}`, "aria-current": String(playing) };
    const line = element("tr", { ...name, "data-row": row, onclick: play, onkeydown: play });
    line.append(element("td", {}, input), element("td", { class: "number" }, titleOf(row)), ...cells);
    return line;
  }

  /** Add an episode to the selection or take it out; with none selected all are listed, and stay so. */
  flip(row) {
    if (!selection.count) this.everything.checked = true;
    const page = this.page;
    const mask = selection.mask.slice();
    mask[row] = 1 - mask[row];
    selection.set(mask, "table");
    this.page = Math.min(page, this.pages - 1);
    this.draw();
    const box = this.body.querySelector(`tr[data-row="${row}"] input`) || this.body.querySelector("input");
    if (box) box.focus();
  }
}

/** The shortest text of a 32-bit number that gives it back; a name as it is, nothing for no value. */
function fullText(value) {
  if (value === null) return "";
  if (typeof value === "string") return value;
  const digits = [6, 7, 8].find((count) => Math.fround(Number(value.toPrecision(count))) === value);
  return String(Number(value.toPrecision(digits || 9)));
}

/** The rows as CSV: numbers in full, nothing where there is no value, quotes where a text needs them. */
function csvOf(rows) {
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const starts = SEVERAL_STARTS ? ["t0"] : [];
  const named = { [ABOUT.group]: "group" };
  const heads = ["episode", ...starts, ...ABOUT.variables.map((variable) => named[variable.name] || variable.name)];
  const lines = rows.map((row) => {
    const values = ABOUT.variables.map((variable) => fullText(valueOf(variable, row)));
    return [IDS[row], ...(SEVERAL_STARTS ? [STARTS[row]] : []), ...values].map((value) => quoted(String(value))).join();
  });
  return [heads.map(quoted).join(","), ...lines, ""].join("\n");
}

function save(text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = element("a", { href: url, download: `${ABOUT.file}-episodes.csv` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
