// Points as pixels. A stamp is how much of each pixel a mark covers; thousands of them are blended in milliseconds.

const INSIDE = {
  circle: (x, y) => x * x + y * y <= 1,
  square: (x, y) => Math.abs(x) <= 0.85 && Math.abs(y) <= 0.85,
  diamond: (x, y) => Math.abs(x) + Math.abs(y) <= 1.15,
  triangle: (x, y) => y <= 0.85 && y >= 2 * Math.abs(x) - 1.05,
  wedge: (x, y) => -y <= 0.85 && -y >= 2 * Math.abs(x) - 1.05,
  plus: (x, y) => (Math.abs(x) <= 0.38 && Math.abs(y) <= 1.1) || (Math.abs(y) <= 0.38 && Math.abs(x) <= 1.1),
  cross: (x, y) => INSIDE.plus((x + y) * Math.SQRT1_2, (x - y) * Math.SQRT1_2),
};
const FINE = 4; // samples along a pixel's side
const stamps = new Map();

/** The cover of each pixel of a mark of this shape and radius in pixels. */
function stampOf(shape, radius) {
  const key = `${shape} ${radius}`;
  if (stamps.has(key)) return stamps.get(key);
  const reach = Math.ceil(radius * 1.2);
  const side = 2 * reach + 1;
  const cover = new Float32Array(side * side);
  for (let i = 0; i < cover.length; i++) {
    let hits = 0;
    for (let k = 0; k < FINE * FINE; k++) {
      const x = (i % side) - reach + ((k % FINE) + 0.5) / FINE - 0.5;
      const y = Math.floor(i / side) - reach + (Math.floor(k / FINE) + 0.5) / FINE - 0.5;
      hits += INSIDE[shape](x / radius, y / radius) ? 1 : 0;
    }
    cover[i] = hits / (FINE * FINE);
  }
  const made = { cover, reach, side };
  stamps.set(key, made);
  return made;
}

/** Red, green and blue of "#rrggbb". */
function rgbOf(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

/** Blend a mark into pixels at a whole place. */
function stamp(pixels, x, y, mark, [red, green, blue], alpha) {
  const { cover, reach, side } = mark;
  const { data, width, height } = pixels;
  for (let j = 0; j < side; j++) {
    const py = y + j - reach;
    if (py < 0 || py >= height) continue;
    for (let i = 0; i < side; i++) {
      const px = x + i - reach;
      const share = cover[j * side + i] * alpha;
      if (share === 0 || px < 0 || px >= width) continue;
      const at = 4 * (py * width + px);
      data[at] += (red - data[at]) * share;
      data[at + 1] += (green - data[at + 1]) * share;
      data[at + 2] += (blue - data[at + 2]) * share;
      data[at + 3] += (255 - data[at + 3]) * share;
    }
  }
}
