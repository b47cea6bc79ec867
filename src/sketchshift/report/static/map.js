// The correlation function of the sketch over two columns, with the centroids on it.
//
// f(c) = 1/m Re sum_j conj(zeta_j) exp(2 pi i <t_j, c>). On a plane the phases along both axes are
// factors of their own, so that a picture is a product of two matrices of waves. With more than
// two columns the plane is moved through the heaviest centroids, and the largest value is shown.

const POINTS = 240, MOST_PLANES = 12, MOST_WAVES = 1024;
const FINE = 1e8, COARSE = 1.5e7, PIXELS = [24, 128]; // products that a picture may cost, its side
const TURN = 2 * Math.PI;

function drawMap(state, work = FINE) {
  byId("map-section").hidden = !state.frequencies.m; // cells alone tell no density
  if (!state.frequencies.m) return;
  if (state.columns.length === 1) drawProfile(state);
  else drawPlane(state, Number(byId("across").value), Number(byId("upwards").value), work);
}

function drawPlane(state, a, b, work) {
  const place = byId("map"), width = Math.min(place.clientWidth, 640);
  const left = 58, bottom = 46, side = width - left - 10;
  const box = [a, b].map((c) => range(state.view, c));
  const x = linear(...box[0], left, left + side), y = linear(...box[1], 10 + side, 10);
  const { image, n, least, largest } = planeImage(state, a, b, box, work);
  const shapes = [shape("image", { href: painted(image, n, least, largest), x: left, y: 10, width: side, height: side, preserveAspectRatio: "none" })];
  shapes.push(...frame(state, a, b, box, x, y, side));
  shapes.push(...marks(state, (c) => [x(c[a]), y(c[b])]));
  const names = `${state.columns[a]} and ${state.columns[b]}`;
  picture(place, 10 + side + bottom, `Where the rows lie in ${names}, with ${counted(state.view.shares.length, "centroid")}`, ...shapes);
  const planes = state.columns.length > 2 ? " A pixel is the largest value on the planes through the centroids." : "";
  byId("map-note").textContent = `The correlation function of the sketch, from ${short(least)} to ${short(largest)}: the stronger the colour, the denser the rows.${weighed(state)}${planes}`;
}

// A plan's sketch is not of the rows alone, but of their tilt, too.
const weighed = ({ frequencies: { cap } }) => (cap ? ` Rows count more the farther they are from the mean, up to ${short(cap)} times as much.` : "");

// Three standard deviations around the mean, and all centroids with a margin.
function range(view, c) {
  const reach = 3 * view.deviation[c] || Math.abs(view.mean[c]) * 0.1 || 1;
  const values = view.centroids.map((row) => row[c]);
  const low = Math.min(view.mean[c] - reach, ...values), high = Math.max(view.mean[c] + reach, ...values);
  return [low - 0.04 * (high - low), high + 0.04 * (high - low)];
}

function planeImage(state, a, b, box, work) {
  const { centroids, mean } = state.view, { turns, m, center } = state.frequencies;
  const through = state.columns.length > 2 && centroids.length ? centroids.slice(0, MOST_PLANES) : [mean];
  const used = Math.min(m, MOST_WAVES), affordable = Math.floor(Math.sqrt(work / (2 * used * through.length)));
  const n = Math.max(PIXELS[0], Math.min(PIXELS[1], affordable));
  const right = waves(turns.subarray(a * m, a * m + used), box[0], center[a], n);
  const up = waves(turns.subarray(b * m, b * m + used), box[1], center[b], n);
  const image = new Float64Array(n * n).fill(-Infinity);
  for (const point of through) addPlane(image, n, right, up, factors(state, point, [a, b], used));
  const largest = image.reduce((top, value) => Math.max(top, value), 1e-9);
  return { image, n, largest, least: Math.max(0, image.reduce((low, value) => Math.min(low, value), largest)) };
}

// Cosines and sines, one after the other, for each step along an axis: (steps, 2, used).
function waves(turns, [low, high], center, steps) {
  const used = turns.length, found = new Float64Array(steps * 2 * used);
  for (let p = 0; p < steps; p += 1) {
    const at = TURN * (low + ((p + 0.5) / steps) * (high - low) - center);
    for (let j = 0; j < used; j += 1) {
      found[2 * used * p + j] = Math.cos(at * turns[j]);
      found[2 * used * p + used + j] = Math.sin(at * turns[j]);
    }
  }
  return found;
}

// conj(zeta_j) exp(2 pi i <t_j, c>) / used, with the columns of the picture left out of c.
function factors(state, point, free, used) {
  const { turns, m, center } = state.frequencies, zeta = state.zeta;
  const found = new Float64Array(2 * used);
  for (let j = 0; j < used; j += 1) {
    let phase = 0;
    for (let c = 0; c < point.length; c += 1) if (!free.includes(c)) phase += turns[c * m + j] * (point[c] - center[c]);
    const cosine = Math.cos(TURN * phase), sine = Math.sin(TURN * phase);
    found[j] = (zeta[j] * cosine + zeta[m + j] * sine) / used;
    found[used + j] = (zeta[j] * sine - zeta[m + j] * cosine) / used;
  }
  return found;
}

function addPlane(image, n, right, up, factor) {
  const used = factor.length / 2, line = new Float64Array(2 * used);
  for (let v = 0; v < n; v += 1) {
    const at = 2 * used * v;
    for (let j = 0; j < used; j += 1) {
      line[j] = factor[j] * up[at + j] - factor[used + j] * up[at + used + j];
      line[used + j] = -(factor[j] * up[at + used + j] + factor[used + j] * up[at + j]);
    }
    for (let u = 0; u < n; u += 1) {
      const value = product(line, right, 2 * used * u), pixel = n * v + u;
      if (value > image[pixel]) image[pixel] = value;
    }
  }
}

// Four sums at once: a single one would wait for itself at every step.
function product(line, waves, start) {
  const n = line.length - (line.length % 4);
  let [a, b, c, d] = [0, 0, 0, 0];
  for (let j = 0; j < n; j += 4) {
    a += line[j] * waves[start + j];
    b += line[j + 1] * waves[start + j + 1];
    c += line[j + 2] * waves[start + j + 2];
    d += line[j + 3] * waves[start + j + 3];
  }
  for (let j = n; j < line.length; j += 1) a += line[j] * waves[start + j];
  return a + b + c + d;
}

function painted(image, n, least, largest) {
  const canvas = element("canvas", { width: n, height: n }), context = canvas.getContext("2d");
  const pixels = context.createImageData(n, n), ramp = ["low", "middle", "high"].map(colour);
  for (let v = 0; v < n; v += 1) {
    for (let u = 0; u < n; u += 1) {
      const at = 2 * Math.max(0, (image[n * (n - 1 - v) + u] - least) / (largest - least || 1)), i = Math.min(1, Math.floor(at));
      for (let c = 0; c < 3; c += 1) pixels.data[4 * (n * v + u) + c] = ramp[i][c] + (at - i) * (ramp[i + 1][c] - ramp[i][c]);
      pixels.data[4 * (n * v + u) + 3] = 255;
    }
  }
  context.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

function colour(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(`--map-${name}`).trim();
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}

function frame(state, a, b, box, x, y, side) {
  const bottom = 10 + side, left = x(box[0][0]);
  const across = ticks(...box[0], side > 400 ? 6 : 4), upwards = ticks(...box[1], side > 400 ? 6 : 4);
  return [
    shape("rect", { class: "frame", x: left, y: 10, width: side, height: side }),
    ...across.map((v) => label(x(v), bottom + 16, short(v), { class: "quiet", "text-anchor": "middle" })),
    ...upwards.map((v) => label(left - 6, y(v) + 4, short(v), { class: "quiet", "text-anchor": "end" })),
    wrappedLabel(left + side / 2, bottom + 36, state.columns[a], side, 1, { "text-anchor": "middle" }),
    wrappedLabel(0, 0, state.columns[b], side, 1, { "text-anchor": "middle", transform: `translate(12 ${10 + side / 2}) rotate(-90)` }),
  ];
}

function marks(state, at) {
  const { centroids, shares } = state.view, places = centroids.map(at);
  const radii = shares.map((share) => 3 + 8 * Math.sqrt(Math.min(1, share)));
  const names = beside(places, radii), order = shares.map((_, i) => i).reverse();
  const dots = order.map((i) => shape("circle", { class: `mark${state.marked === i ? " marked" : ""}`, cx: places[i][0], cy: places[i][1], r: radii[i] },
    shape("title", {}, `cluster ${i}: ${percent(shares[i])}`)));
  const leaders = order.map((i) => shape("path", { class: "leader", d: `M${places[i]} L${names[i]}` }));
  const numbers = order.map((i) => label(names[i][0], names[i][1] + 4, i, { class: "number halo", "text-anchor": "middle" }));
  return [...leaders, ...dots, ...numbers];
}

// Places for numbers near their marks, clear of all marks and of each other where there is room.
function beside(places, radii) {
  const found = [];
  const clear = ([x, y]) => found.every(([u, v]) => Math.abs(u - x) > 17 || Math.abs(v - y) > 14)
    && places.every(([u, v], i) => Math.hypot(u - x, v - y) > radii[i] + 8);
  places.forEach(([x, y], i) => {
    const rings = [10, 16, 24, 34, 46].flatMap((far) => Array.from({ length: 12 }, (_, n) => {
      const angle = -Math.PI / 4 + (n * Math.PI) / 6;
      return [x + (radii[i] + far) * Math.cos(angle), y + (radii[i] + far) * Math.sin(angle)];
    }));
    found.push(rings.find(clear) ?? rings[0]);
  });
  return found;
}

function drawProfile(state) {
  const place = byId("map"), width = place.clientWidth, { turns, m, center } = state.frequencies;
  const box = range(state.view, 0), along = waves(turns, box, center[0], POINTS), factor = factors(state, [0], [0], m);
  const value = (p) => factor.reduce((sum, f, j) => sum + (j < m ? f : -f) * along[2 * m * p + j], 0);
  const values = Array.from({ length: POINTS }, (_, p) => value(p)), largest = Math.max(...values, 1e-9);
  const x = linear(...box, 20, width - 20), y = linear(0, largest, 240, 40);
  const step = (box[1] - box[0]) / POINTS;
  const points = values.map((v, p) => `${x(box[0] + (p + 0.5) * step).toFixed(1)},${y(v).toFixed(1)}`).join(" ");
  const height = (c) => y(values[Math.max(0, Math.min(POINTS - 1, Math.floor((c - box[0]) / step)))]);
  picture(place, 300, `Where the rows lie in ${state.columns[0]}, with ${counted(state.view.shares.length, "centroid")}`,
    shape("line", { class: "frame", x1: 20, x2: width - 20, y1: 240, y2: 240 }),
    shape("polyline", { class: "line-2", points, fill: "none", "stroke-width": 2 }),
    ...ticks(...box, 5).map((v) => label(x(v), 258, short(v), { class: "quiet", "text-anchor": "middle" })),
    wrappedLabel(width / 2, 282, state.columns[0], width, 1, { "text-anchor": "middle" }),
    ...marks(state, (c) => [x(c[0]), height(c[0])]));
  byId("map-note").textContent = `The correlation function of the sketch, from 0 to ${short(largest)}: high where the rows are dense.${weighed(state)}`;
}
