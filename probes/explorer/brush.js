// The mouse on a plot: drag a rectangle or a lasso round points, click one, or point at one.

const CLICK_REACH = 4; // pixels that a click may move
const NEAR = 9; // pixels from a point within which it is meant

/** How a drag is read: the radio button that is on. */
function chosenBrush() {
  return document.querySelector('input[name="brush"]:checked').value;
}

/** Whether a place is in a polygon, by the parity of its edges to the right. */
function inPolygon(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

/** The test of a drag's path: in the rectangle of its ends, or in its loop. */
function testOf(path, kind) {
  if (kind === "lasso") return (x, y) => inPolygon(path, x, y);
  const [[x0, y0], [x1, y1]] = [path[0], path[path.length - 1]];
  const [left, right, top, bottom] = [Math.min(x0, x1), Math.max(x0, x1), Math.min(y0, y1), Math.max(y0, y1)];
  return (x, y) => x >= left && x <= right && y >= top && y <= bottom;
}

/** Listen to the pointer on a view's overlay; the view has `onBrush(test)`, `onPick(x, y)` and `onPoint(x, y)`. */
function listenToPointer(view) {
  const overlay = view.frame.overlay;
  let path = null;
  const place = (event) => [event.offsetX, event.offsetY];
  const stop = () => {
    path = null;
    view.drawOverlay();
  };
  overlay.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    overlay.setPointerCapture(event.pointerId);
    path = [place(event)];
  });
  overlay.addEventListener("pointermove", (event) => {
    if (!path) return view.onPoint(...place(event));
    path.push(place(event));
    view.drawOverlay();
    drawPath(overlay.getContext("2d"), path, chosenBrush());
  });
  overlay.addEventListener("pointerup", (event) => {
    if (!path) return;
    path.push(place(event));
    const [[x0, y0], kind] = [path[0], chosenBrush()];
    const moved = path.some(([x, y]) => Math.hypot(x - x0, y - y0) > CLICK_REACH);
    const test = testOf(path, kind);
    stop();
    if (moved) view.onBrush(test);
    else view.onPick(x0, y0);
  });
  overlay.addEventListener("pointercancel", stop);
  overlay.addEventListener("pointerleave", () => path || view.onPoint(-99, -99));
  document.addEventListener("keydown", (event) => event.key === "Escape" && path && stop());
}

function drawPath(context, path, kind) {
  context.beginPath();
  if (kind === "lasso") {
    path.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
  } else {
    const [[x0, y0], [x1, y1]] = [path[0], path[path.length - 1]];
    context.rect(x0, y0, x1 - x0, y1 - y0);
  }
  context.fillStyle = "rgba(0, 0, 0, 0.07)";
  context.strokeStyle = "#222222";
  context.setLineDash([4, 3]);
  context.fill();
  context.stroke();
  context.setLineDash([]);
}

/** The number of the place nearest to (x, y), among those within reach; -1 where there is none. */
function nearestTo(xs, ys, x, y, reach = NEAR) {
  let best = -1;
  let least = reach * reach;
  for (let i = 0; i < xs.length; i++) {
    const distance = (xs[i] - x) ** 2 + (ys[i] - y) ** 2;
    if (distance <= least) [best, least] = [i, distance];
  }
  return best;
}

/** A note beside the pointer; an empty one hides it. */
function showTip(overlay, x, y, words) {
  const tip = document.getElementById("tip");
  tip.hidden = !words;
  if (!words) return;
  tip.textContent = words;
  const box = overlay.getBoundingClientRect();
  const left = Math.min(box.left + x + 14, window.innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${left}px`;
  tip.style.top = `${box.top + y + 14}px`;
}
