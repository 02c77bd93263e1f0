// Actions over time, one strip an agent, and the frames of a film.

const FRAME_GAP = 4;
const CHANNEL_DASHES = [[], [5, 3], [2, 2], [8, 2, 2, 2]];

/** Every agent's channels against the step, with a line at the step that is shown. */
function drawActions(context, track, step, box) {
  const [left, right, bottom] = [52, 10, 30];
  const tall = (box.height - bottom) / track.agents;
  const x = (t) => left + (t / Math.max(1, track.steps - 1)) * (box.width - left - right);
  const [low, high] = [Math.min(...TRACKS.low), Math.max(...TRACKS.high)];
  for (let agent = 0; agent < track.agents; agent++) {
    const top = box.top + agent * tall + 6;
    const y = (value) => top + (tall - 12) * (1 - (value - low) / (high - low || 1));
    context.strokeStyle = "#e2e2e2";
    context.strokeRect(left + 0.5, Math.round(top) + 0.5, box.width - left - right, Math.round(tall - 12));
    drawScale(context, agent, [low, high], y, left);
    context.strokeStyle = agentColour(agent);
    for (let channel = 0; channel < track.channels; channel++) {
      context.setLineDash(CHANNEL_DASHES[channel % CHANNEL_DASHES.length]);
      drawChannel(context, (t) => track.at(t, agent, channel), track.last, x, y);
    }
    context.setLineDash([]);
  }
  drawNow(context, track, step, x, box);
}

function drawScale(context, agent, ends, y, left) {
  context.textAlign = "right";
  context.fillStyle = "#777777";
  for (const end of ends) context.fillText(said(end), left - 5, y(end) + (end === ends[0] ? 0 : 8));
  context.fillStyle = agentColour(agent);
  context.fillText(`agent ${agent}`, left - 5, (y(ends[0]) + y(ends[1])) / 2 + 4);
}

/** A line that breaks where there is no value; discrete actions are steps. */
function drawChannel(context, at, last, x, y) {
  context.beginPath();
  let down = false;
  for (let t = 0; t <= last; t++) {
    const value = at(t);
    if (Number.isNaN(value)) {
      down = false;
      continue;
    }
    if (down && TRACKS.discrete) context.lineTo(x(t), y(at(t - 1)));
    if (down) context.lineTo(x(t), y(value));
    else context.moveTo(x(t), y(value));
    down = true;
  }
  context.stroke();
}

function drawNow(context, track, step, x, box) {
  context.strokeStyle = "#222222";
  context.beginPath();
  context.moveTo(x(step), box.top + 4);
  context.lineTo(x(step), box.top + box.height - 28);
  context.stroke();
  context.fillStyle = "#444444";
  context.textAlign = "center";
  const what = TRACKS.discrete ? "action number" : `actions ${TRACKS.channels.join(", ")} (solid, dashed, dotted)`;
  context.fillText(`step · ${what}`, box.width / 2, box.top + box.height - 6);
  context.textAlign = "left";
  context.fillText("0", x(0), box.top + box.height - 18);
  context.textAlign = "right";
  context.fillText(String(track.steps - 1), x(track.steps - 1), box.top + box.height - 18);
}

/** The frames in rows, each with its time and way forward beneath, within a width and a height; how tall that was. */
function drawFilm(context, film, width, height) {
  const { frames, columns, side } = FILMS;
  const lines = Math.ceil(frames / columns);
  const size = Math.min((width - FRAME_GAP) / columns - FRAME_GAP, (height - FRAME_GAP) / lines - 18);
  const left = (width - columns * (size + FRAME_GAP)) / 2;
  const [seconds, metres] = [FILMS.seconds[film.place], FILMS.metres[film.place]];
  context.textAlign = "center";
  context.fillStyle = "#444444";
  for (let frame = 0; frame < frames; frame++) {
    const [column, line] = [frame % columns, Math.floor(frame / columns)];
    const [x, y] = [left + column * (size + FRAME_GAP), FRAME_GAP + line * (size + 18)];
    context.drawImage(film.image, column * side, line * side, side, side, x, y, size, size);
    context.fillText(`${seconds[frame].toFixed(2)} s · ${said(metres[frame])} m`, x + size / 2, y + size + 12);
  }
  return lines * (size + 18) + FRAME_GAP;
}
