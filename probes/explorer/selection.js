// Which episodes are selected. Every view, the table and the filters read and write this one object.

const KEPT_STEPS = 30; // of undo

class Selection {
  constructor(count) {
    this.mask = new Uint8Array(count);
    this.count = 0;
    this.origin = ""; // the view or control that selected last
    this.past = [];
    this.listeners = [];
  }

  /** Call a function after every change. */
  listen(listener) {
    this.listeners.push(listener);
  }

  /** Combine what was chosen, a function of the row, with what is selected. With none selected, all stand for it. */
  choose(isChosen, origin, mode = chosenMode()) {
    const old = this.mask;
    const all = this.count === 0 && mode !== "add";
    const next = new Uint8Array(old.length);
    for (let row = 0; row < next.length; row++) {
      const here = isChosen(row) ? 1 : 0;
      const before = all ? 1 : old[row];
      if (mode === "replace") next[row] = here;
      else if (mode === "add") next[row] = before | here;
      else if (mode === "intersect") next[row] = before & here;
      else next[row] = before & (1 - here);
    }
    this.set(next, origin);
  }

  set(mask, origin) {
    this.past.push([this.mask, this.origin]);
    if (this.past.length > KEPT_STEPS) this.past.shift();
    this.show(mask, origin);
  }

  undo() {
    if (this.past.length) this.show(...this.past.pop());
  }

  show(mask, origin) {
    this.mask = mask;
    this.count = mask.reduce((sum, bit) => sum + bit, 0);
    this.origin = origin;
    for (const listener of this.listeners) listener(this);
  }

  /** Rows that are selected, or all where none is. */
  rows() {
    const found = [];
    for (let row = 0; row < this.mask.length; row++) if (!this.count || this.mask[row]) found.push(row);
    return found;
  }
}

const selection = new Selection(EPISODES);

/** How a new choice is combined with the selection: the radio button that is on. */
function chosenMode() {
  return document.querySelector('input[name="mode"]:checked').value;
}

/** Mean return of the episodes for which the mask is set, or of all. */
function meanReturn(mask) {
  let sum = 0;
  let count = 0;
  for (let row = 0; row < EPISODES; row++) {
    if ((mask && !mask[row]) || !Number.isFinite(RETURNS[row])) continue;
    sum += RETURNS[row];
    count++;
  }
  return count ? sum / count : NaN;
}
const MEAN_OF_ALL = meanReturn(null);
