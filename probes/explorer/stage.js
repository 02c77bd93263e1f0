// What an episode looks like: agents in their plane, frames of a film, or actions over time.

const TRACKS = ABOUT.tracks;
const FILMS = ABOUT.films;
const FILM_SHARE = 0.62; // of the height, above the actions
const TAIL = 8; // steps that are drawn dark behind an agent
const placeOf = (list) => new Map(Array.from(list, (row, place) => [row, place]));
const TRACK_OF = TRACKS ? placeOf(arrayOf(TRACKS.rows)) : new Map();
const FILM_OF = FILMS ? placeOf(arrayOf(FILMS.rows)) : new Map();
const agentColour = (agent) => ABOUT.palette[agent % ABOUT.palette.length];

class Stage {
  constructor(canvas) {
    this.canvas = canvas;
    this.row = -1;
    this.film = null;
  }

  /** Get an episode ready; the number of its last step, 0 where nothing moves. */
  open(row) {
    this.row = row;
    this.track = TRACK_OF.has(row) ? trackOf(TRACK_OF.get(row)) : null;
    this.film = null;
    if (FILM_OF.has(row)) this.loadFilm(FILM_OF.get(row));
    return this.track ? this.track.last : 0;
  }

  loadFilm(place) {
    const image = new Image();
    const row = this.row;
    image.onload = () => {
      if (this.row !== row) return;
      this.film = { image, place };
      this.draw(this.step);
    };
    image.src = `data:image/jpeg;base64,${document.getElementById(`film-${place}`).textContent}`;
  }

  fit() {
    const box = this.canvas.parentElement.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    this.width = Math.max(160, Math.floor(box.width));
    this.height = Math.max(160, Math.floor(box.height));
    this.canvas.width = this.width * scale;
    this.canvas.height = this.height * scale;
    this.canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
  }

  draw(step) {
    this.step = step;
    const context = this.canvas.getContext("2d");
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, this.width, this.height);
    context.font = "11px system-ui, sans-serif";
    if (this.row < 0) return this.write(context, "Pick an episode: click a point, or Enter on a row of the table.");
    const filmed = this.film ? drawFilm(context, this.film, this.width, this.height * FILM_SHARE) : 0;
    if (!this.track) return filmed || this.write(context, missingWords());
    if (TRACKS.kind === "plane") drawPlane(context, this.track, step, this.width, this.height);
    else drawActions(context, this.track, step, { top: filmed, width: this.width, height: this.height - filmed });
  }

  write(context, words) {
    context.fillStyle = "#666666";
    context.textAlign = "center";
    context.fillText(words, this.width / 2, this.height / 2);
  }
}

function missingWords() {
  if (FILMS && FILMS.absent) return FILMS.absent;
  return "This episode's trajectory is not in the file, which would be too large.";
}

/** One episode's channels: `at(step, agent, channel)` is NaN where the agent is not there. */
function trackOf(place) {
  const [, steps, agents, channels] = TRACKS.shape;
  const codes = arrayOf(TRACKS.values);
  const start = place * steps * agents * channels;
  const at = (step, agent, channel) => {
    const code = codes[start + (step * agents + agent) * channels + channel];
    return numberOf(code, TRACKS.low[channel], TRACKS.high[channel]);
  };
  let last = 0;
  for (let i = 0; i < steps * agents * channels; i++) {
    if (codes[start + i] !== ABSENT) last = Math.floor(i / (agents * channels));
  }
  return { at, steps, agents, channels, last };
}

/** The plane with equal scales on both axes, its landmarks, and each agent with its way so far. */
function drawPlane(context, track, step, width, height) {
  const { marks, low, high } = TRACKS;
  const xs = [low[0], high[0], ...marks.flatMap(({ x, radius }) => [x - radius, x + radius])];
  const ys = [low[1], high[1], ...marks.flatMap(({ y, radius }) => [y - radius, y + radius])];
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = Math.min((width - 24) / (x1 - x0 || 1), (height - 24) / (y1 - y0 || 1));
  const left = (x) => width / 2 + scale * (x - (x0 + x1) / 2);
  const top = (y) => height / 2 - scale * (y - (y0 + y1) / 2);
  const tallest = Math.max(...marks.map((mark) => Math.abs(mark.height ?? 1)), 1e-9);
  for (const mark of marks) drawMark(context, mark, left, top, scale, Math.abs(mark.height ?? 1) / tallest);
  for (let agent = 0; agent < track.agents; agent++) drawWay(context, track, agent, step, left, top);
  drawAgents(context, track.agents);
}

function drawMark(context, mark, left, top, scale, strength) {
  for (const share of [1, 0.66, 0.33]) {
    context.beginPath();
    context.arc(left(mark.x), top(mark.y), mark.radius * scale * share, 0, 2 * Math.PI);
    context.fillStyle = `rgba(115, 115, 115, ${0.12 * strength})`;
    context.fill();
    context.strokeStyle = "#cccccc";
    context.stroke();
  }
  context.fillStyle = "#777777";
  context.textAlign = "center";
  const several = new Set(TRACKS.marks.map((one) => one.height)).size > 1;
  const words = several ? `${mark.name}: ${said(mark.height)}` : mark.name;
  context.fillText(words, left(mark.x), top(mark.y + mark.radius) + 12);
}

/** An agent's way: the whole pale, what lies behind it dark; it breaks where the agent is not there. */
function drawWay(context, track, agent, step, left, top) {
  const present = (t) => !Number.isNaN(track.at(t, agent, 0));
  const place = (t) => [left(track.at(t, agent, 0)), top(track.at(t, agent, 1))];
  context.strokeStyle = context.fillStyle = agentColour(agent);
  for (let t = 1; t <= track.last; t++) {
    if (!present(t) || !present(t - 1)) continue;
    const behind = t <= step;
    context.globalAlpha = !behind ? 0.13 : t > step - TAIL ? 1 : 0.5;
    context.lineWidth = behind ? 2 : 1;
    context.beginPath();
    context.moveTo(...place(t - 1));
    context.lineTo(...place(t));
    context.stroke();
  }
  context.globalAlpha = 1;
  context.lineWidth = 1;
  if (!present(step)) return;
  context.beginPath();
  context.arc(...place(step), 6, 0, 2 * Math.PI);
  context.fill();
  context.strokeStyle = "#ffffff";
  context.stroke();
  context.fillStyle = "#ffffff";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(agent, ...place(step));
  context.textBaseline = "alphabetic";
}

function drawAgents(context, agents) {
  context.textAlign = "left";
  for (let agent = 0; agent < agents; agent++) {
    context.fillStyle = agentColour(agent);
    context.fillRect(8, 9 + 16 * agent, 10, 10);
    context.fillStyle = "#444444";
    context.fillText(`agent ${agent}`, 23, 18 + 16 * agent);
  }
}
