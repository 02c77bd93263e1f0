// Builds the page and says what changes when: one change of the selection or the colours redraws all that shows it.

const scatters = ABOUT.views.map((view) => new Scatter(view, document.getElementById("latents")));
const curve = new Curve(document.getElementById("below"));
const views = [...scatters, curve];
document.getElementById("below").append(document.getElementById("player"));
document.getElementById("below").classList.toggle("filmed", FILMS !== null && !FILMS.absent);
const table = new Table();
const filters = new Filters();
const player = new Player();

/** How many are selected and how they did, for all to read and for screen readers to say. */
function sayStatus() {
  const chosen = document.getElementById("chosen");
  const { count } = selection;
  const share = ((100 * count) / EPISODES).toFixed(count && count < EPISODES / 100 ? 2 : 0);
  const mean = `mean return ${said(meanReturn(selection.mask))}`;
  const all = `of all ${said(MEAN_OF_ALL)}`;
  chosen.textContent = count
    ? `${count} of ${EPISODES} episodes selected (${share} %) by ${selection.origin} · ${mean}, ${all}`
    : `${EPISODES} episodes, none selected · mean return ${said(MEAN_OF_ALL)}`;
}

function drawAll() {
  for (const view of views) {
    view.draw();
    view.drawOverlay();
  }
}

function fitAll() {
  for (const view of views) view.fit();
  player.stage.fit();
  drawAll();
  player.stage.draw(player.step);
}

selection.listen(() => {
  drawAll();
  drawLegend();
  sayStatus();
  table.list();
});

colouring.listen(() => {
  drawAll();
  drawLegend();
});

focus.listeners.push((what) => {
  for (const view of views) view.drawOverlay();
  if (what === "playing") table.draw();
});

function listenToToolbar() {
  const choice = document.getElementById("colour");
  choice.append(...groupedOptions(ABOUT.variables));
  choice.value = colouring.variable.name;
  choice.addEventListener("change", () => colouring.use(variableOf(choice.value)));
  const everyone = (bit) => () => selection.set(new Uint8Array(EPISODES).fill(bit), "toolbar");
  document.getElementById("all").addEventListener("click", everyone(1));
  document.getElementById("none").addEventListener("click", everyone(0));
  document.getElementById("invert").addEventListener("click", () => {
    selection.set(
      selection.mask.map((bit) => 1 - bit),
      "invert",
    );
  });
  document.getElementById("undo").addEventListener("click", () => selection.undo());
}

listenToToolbar();
fitAll();
drawLegend();
sayStatus();
table.list();
requestAnimationFrame(() => setTimeout(() => performance.mark("drawn"))); // for benchmarks/explorer.py

let fitted = document.body.clientWidth;
window.addEventListener("resize", () => {
  if (document.body.clientWidth === fitted) return; // a table that grows taller changes no plot
  fitted = document.body.clientWidth;
  requestAnimationFrame(fitAll);
});
