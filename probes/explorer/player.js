// The episode that is looked at, and the controls that play it. What is drawn lies in stage.js.

const STEPS_A_SECOND = 8;

/** Which episode plays and which one the pointer is on; views ring both. */
const focus = {
  playing: -1,
  pointed: -1,
  listeners: [],
  play(row) {
    this.playing = row;
    for (const listener of this.listeners) listener("playing");
  },
  point(row) {
    if (row === this.pointed) return;
    this.pointed = row;
    for (const listener of this.listeners) listener("pointed");
  },
};

class Player {
  constructor() {
    this.step = 0;
    this.running = false;
    this.stage = new Stage(document.getElementById("stage"));
    this.slider = document.getElementById("step");
    this.button = document.getElementById("play");
    this.words = document.getElementById("episode");
    this.clock = document.getElementById("clock");
    this.speed = document.getElementById("speed");
    this.button.addEventListener("click", () => (this.running ? this.pause() : this.start()));
    this.slider.addEventListener("input", () => this.show(Number(this.slider.value)));
    document.getElementById("previous").addEventListener("click", () => this.neighbour(-1));
    document.getElementById("next").addEventListener("click", () => this.neighbour(1));
    this.stage.canvas.addEventListener("keydown", (event) => this.key(event));
    focus.listeners.push((what) => what === "playing" && this.open());
  }

  /** Open the episode that is to be played, and play it unless less motion is asked for. */
  open() {
    const row = focus.playing;
    this.last = this.stage.open(row);
    this.slider.max = this.last;
    const names = [ABOUT.group, "checkpoint", "split"];
    const [group, checkpoint, split] = names.map((name) => valueOf(variableOf(name), row));
    const from = `${ABOUT.group} ${group}, checkpoint ${checkpoint}, ${split}`;
    this.words.textContent = `${titleOf(row)} · return ${said(RETURNS[row])} · ${from}`;
    this.pause();
    this.show(0);
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (const part of [this.button, this.slider]) part.disabled = this.last < 1;
    if (!still && this.last > 0) this.start();
  }

  show(step) {
    this.step = step;
    this.slider.value = step;
    this.clock.textContent = this.last > 0 ? `step ${step} of ${this.last}` : "";
    this.stage.draw(step);
  }

  start() {
    if (focus.playing < 0 || !(this.last > 0)) return;
    if (this.step >= this.last) this.show(0);
    this.running = true;
    this.button.textContent = "Pause";
    let due = performance.now();
    const tick = (now) => {
      if (!this.running) return;
      const wait = 1000 / (STEPS_A_SECOND * Number(this.speed.value));
      if (now - due >= wait) {
        const ahead = Math.floor((now - due) / wait);
        due += ahead * wait;
        this.show(Math.min(this.last, this.step + ahead));
        if (this.step >= this.last) return this.pause();
      }
      this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
  }

  pause() {
    this.running = false;
    cancelAnimationFrame(this.frame);
    this.button.textContent = "Play";
  }

  key(event) {
    if (event.key === " ") this.running ? this.pause() : this.start();
    else if (event.key === "ArrowRight" && this.last) this.show(Math.min(this.last, this.step + 1));
    else if (event.key === "ArrowLeft" && this.last) this.show(Math.max(0, this.step - 1));
    else return;
    event.preventDefault();
  }

  /** Go to the next or the previous episode in the table's order. */
  neighbour(by) {
    const rows = table.rows;
    const here = rows.indexOf(focus.playing);
    const next = here < 0 ? (by > 0 ? 0 : rows.length - 1) : (here + by + rows.length) % rows.length;
    if (rows.length) focus.play(rows[next]);
  }
}
