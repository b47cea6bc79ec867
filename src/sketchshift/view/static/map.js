// Where the clusters lie, over two columns: the density of the rows as the cells of the sketch
// count them, each in the colour of its cluster, and a ring around half of each cluster. Nothing is
// drawn beyond the range of the columns. An axis is a vector: a column, or a mix of columns.

const RASTER = 150, HALF = Math.sqrt(2 * Math.log(2)); // deviations that hold half of a Gaussian in a plane
const WIDER = 3.5; // times the variance of a cell, which leaves no hill between two of them
const REACH = 2.5; // deviations of clusters that are shown, where the columns reach so far

function axisOf(state, choice) {
  const { columns, view } = state, d = columns.length;
  if (choice >= d) return { ...view.main[choice - d], low: -Infinity, high: Infinity, ticks: null };
  const vector = columns.map((_, c) => Number(c === choice));
  return { name: columns[choice], column: choice, vector, low: view.lower?.[choice] ?? -Infinity, high: view.upper?.[choice] ?? Infinity, ticks: view.ticks?.[choice] };
}

const along = (axis, point, start = 0) => (axis.column !== undefined ? point[start + axis.column] : axis.vector.reduce((sum, f, c) => sum + f * point[start + c], 0));

// Covariance of a cluster between two axes: its own, or where that is not known what the variances of the
// columns within clusters are on average; null where neither is known.
function covariance(state, i, u, v) {
  const { covariances: packed, d } = state, { within } = state.view;
  if (!packed && !within) return null;
  const at = (a, b) => {
    if (!packed) return a === b ? within[a] : 0;
    return packed[i * (d * (d + 1)) / 2 + (Math.min(a, b) * (2 * d - Math.min(a, b) - 1)) / 2 + Math.max(a, b)];
  };
  if (u.column !== undefined && v.column !== undefined) return at(u.column, v.column);
  let sum = 0;
  u.vector.forEach((f, a) => { if (f) v.vector.forEach((g, b) => { if (g) sum += f * g * at(a, b); }); });
  return sum;
}

const isKnown = ({ covariances, view }) => Boolean(covariances || view.within);

function correlation(state, i, u, v) {
  const [uu, uv, vv] = [[u, u], [u, v], [v, v]].map(([a, b]) => covariance(state, i, a, b));
  return uu > 0 && vv > 0 ? Math.max(-0.98, Math.min(0.98, uv / Math.sqrt(uu * vv))) : 0;
}

// From where to where an axis goes: as far as the clusters do, within the range of the column.
function range(state, axis) {
  const { clusters, mean, std } = state.view.profile;
  const centers = clusters.map((c) => along(axis, c.means));
  const reaches = clusters.map((_, i) => {
    const variance = covariance(state, i, axis, axis);
    return REACH * Math.sqrt(Math.max(variance ?? 0, 0));
  });
  if (!isKnown(state) && axis.column !== undefined) {
    centers.push(mean[axis.column]);
    reaches.push(REACH * (std[axis.column] ?? 0));
  }
  const low = Math.max(axis.low, Math.min(...centers.map((c, i) => c - reaches[i])));
  const high = Math.min(axis.high, Math.max(...centers.map((c, i) => c + reaches[i])));
  const inside = [Math.min(low, ...centers), Math.max(high, ...centers)];
  const margin = 0.03 * (inside[1] - inside[0]) || Math.abs(inside[0]) * 0.1 || 1;
  return [inside[0] - margin, inside[1] + margin];
}

// Gaussians that stand for the rows: those of the cells, or where there are none of the clusters.
function gaussians(state, u, v) {
  const { cells, d } = state, { clusters } = state.view.profile;
  if (!cells) {
    return clusters.map((c, i) => ({ cluster: i, weight: c.share, at: [along(u, c.means), along(v, c.means)],
      shape: [covariance(state, i, u, u) ?? 0, covariance(state, i, u, v) ?? 0, covariance(state, i, v, v) ?? 0] }));
  }
  const [uu, vv] = [u, v].map((axis) => ({ ...axis, vector: axis.vector.map((f) => f * f) }));
  const found = cells.weights.map((weight, j) => ({ cluster: cells.clusters[j], weight, at: [along(u, cells.means, j * d), along(v, cells.means, j * d)],
    shape: [along(uu, cells.variances, j * d), 0, along(vv, cells.variances, j * d)] }));
  for (let i = 0; i < clusters.length; i += 1) {
    const own = found.filter((g) => g.cluster === i), r = correlation(state, i, u, v);
    [0, 1].forEach((a) => smooth(own, a));
    for (const { shape: s } of own) s[1] = r * Math.sqrt(s[0] * s[2]); // cells know variances alone
  }
  return found;
}

// Cells of a cluster lie side by side: as Gaussians they would make hills of their own. They are made
// wider, and move together by as much, so that the cluster keeps its mean and its variance.
function smooth(cells, a) {
  const sum = (value) => cells.reduce((total, g) => total + g.weight * value(g), 0), all = sum(() => 1) || 1;
  const mean = sum((g) => g.at[a]) / all, within = sum((g) => g.shape[2 * a]) / all, between = sum((g) => (g.at[a] - mean) ** 2) / all;
  if (!(within > 0 && between > 0)) return;
  const wider = Math.min(WIDER, 1 + 0.75 * between / within), nearer = Math.sqrt(1 - (wider - 1) * within / between);
  for (const g of cells) {
    g.at[a] = mean + nearer * (g.at[a] - mean);
    g.shape[2 * a] *= wider;
  }
}

function drawMap(state) {
  if (!state.view.profile.clusters.length) { byId("map").replaceChildren(); return; }
  if (state.d === 1) { drawLine(state); return; }
  const place = byId("map"), width = place.clientWidth, left = 62, top = 10, bottom = 44;
  const u = axisOf(state, Number(byId("across").value)), v = axisOf(state, Number(byId("upwards").value));
  const across = width - left - 12, upwards = Math.max(240, Math.min(0.72 * across, 400));
  const box = [range(state, u), range(state, v)];
  const x = linear(...box[0], left, left + across), y = linear(...box[1], top + upwards, top);
  const frame = { x: left, y: top, width: across, height: upwards };
  const [west, east] = [Math.max(u.low, box[0][0]), Math.min(u.high, box[0][1])].map(x), [north, south] = [Math.min(v.high, box[1][1]), Math.max(v.low, box[1][0])].map(y);
  const shapes = [
    shape("clipPath", { id: "inside" }, shape("rect", { x: west, y: north, width: east - west, height: south - north })),
    shape("g", { "clip-path": "url(#inside)" },
      shape("image", { ...frame, href: density(state, u, v, box), preserveAspectRatio: "none" }), ...rings(state, u, v, x, y)),
    shape("rect", { class: "frame", ...frame }),
    ...axisTicks(u, box[0], across / 90).map(([at, text]) => label(x(at), top + upwards + 16, text, { class: "quiet", "text-anchor": "middle" })),
    ...axisTicks(v, box[1], upwards / 60).map(([at, text]) => label(left - 6, y(at) + 4, text, { class: "quiet", "text-anchor": "end" })),
    fitted(left + across / 2, top + upwards + 36, u.name, across, { "text-anchor": "middle" }),
    fitted(0, 0, v.name, upwards, { "text-anchor": "middle", transform: `translate(12 ${top + upwards / 2}) rotate(-90)` }),
    ...marks(state, (point) => [x(along(u, point)), y(along(v, point))], frame),
  ];
  picture(place, top + upwards + bottom, `Map of ${counted(state.view.profile.clusters.length, "cluster")} over ${u.name} and ${v.name}`, ...shapes);
  byId("map-note").textContent = mapNote(state);
}

function mapNote(state) {
  const { pair, has_categories: hasCategories, main, profile } = state.view, isOfMain = pair[0] >= state.d;
  const isBest = ["across", "upwards"].every((id, i) => Number(byId(id).value) === pair[i]) && profile.clusters.length > 1;
  const others = " Clusters that differ by categories lie on each other here: the main axes tell them apart.";
  const which = isOfMain ? "Along these two mixes of columns the clusters lie farthest apart. " : `These two columns${hasCategories ? " with numbers" : ""} tell the clusters apart best. `;
  const best = isBest && state.d > 2 ? which : "";
  const average = state.view.within ? " Rings are as wide as the clusters are on average." : "";
  const ring = state.covariances ? " A ring holds about half of its cluster’s rows." : average;
  return `${best}The stronger the colour, the denser the rows.${ring}${isBest && !isOfMain && hasCategories && main.length ? others : ""}`;
}

// Numbers beside an axis: round ones, in the units of the table.
function axisTicks(axis, [low, high], n) {
  if (!axis.ticks) {
    const found = ticks(low, high, Math.max(2, Math.round(n)));
    const write = low >= 1000 && high < 3000 && found.every(Number.isInteger) ? String : short; // years have no comma
    return found.map((value) => [value, write(value)]);
  }
  const inside = axis.ticks.filter(([at]) => at >= low && at <= high);
  const every = Math.ceil(inside.length / Math.max(2, n));
  return inside.filter((_, i) => i % every === 0);
}

// The density as a picture. Colours mix where clusters do.
function density(state, u, v, box) {
  const n = RASTER, sums = new Float64Array(4 * n * n), rgb = COLOURS.map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  const pixel = box.map(([low, high]) => (high - low) / n);
  for (const g of gaussians(state, u, v)) {
    if (state.marked !== null && state.marked !== g.cluster) continue;
    addGaussian(sums, n, box, pixel, g, rgb[g.cluster % rgb.length]);
  }
  let largest = 1e-300;
  for (let p = 3; p < sums.length; p += 4) largest = Math.max(largest, sums[p]);
  const canvas = element("canvas", { width: n, height: n }), context = canvas.getContext("2d"), image = context.createImageData(n, n);
  for (let p = 0; p < sums.length; p += 4) {
    if (!(sums[p + 3] > 0)) continue;
    for (let c = 0; c < 3; c += 1) image.data[p + c] = sums[p + c] / sums[p + 3];
    image.data[p + 3] = 200 * (sums[p + 3] / largest) ** 0.5; // faint clusters are seen, too
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

function addGaussian(sums, n, box, pixel, { weight, at, shape: [uu, uv, vv] }, colour) {
  const a = uu + pixel[0] ** 2, c = vv + pixel[1] ** 2; // no narrower than a pixel
  const determinant = Math.max(a * c - uv * uv, 1e-9 * a * c), scale = weight / Math.sqrt(determinant);
  const reach = [5 * Math.sqrt(a), 5 * Math.sqrt(c)];
  const first = (i) => Math.max(0, Math.floor((at[i] - reach[i] - box[i][0]) / pixel[i]));
  const last = (i) => Math.min(n - 1, Math.ceil((at[i] + reach[i] - box[i][0]) / pixel[i]));
  for (let q = first(1); q <= last(1); q += 1) {
    const dv = box[1][0] + (q + 0.5) * pixel[1] - at[1];
    for (let p = first(0); p <= last(0); p += 1) {
      const du = box[0][0] + (p + 0.5) * pixel[0] - at[0];
      const value = scale * Math.exp(-0.5 * (c * du * du - 2 * uv * du * dv + a * dv * dv) / determinant);
      const to = 4 * (n * (n - 1 - q) + p);
      for (let i = 0; i < 3; i += 1) sums[to + i] += value * colour[i];
      sums[to + 3] += value;
    }
  }
}

const fade = (state, i) => (state.marked !== null && state.marked !== i ? "faint" : null);

function rings(state, u, v, x, y) {
  if (!isKnown(state)) return [];
  return state.view.profile.clusters.map(({ means }, i) => {
    const [uu, uv, vv] = [covariance(state, i, u, u), covariance(state, i, u, v), covariance(state, i, v, v)];
    const a = Math.sqrt(Math.max(uu, 0)), b = a ? uv / a : 0, c = Math.sqrt(Math.max(vv - b * b, 0)); // Cholesky
    const at = [along(u, means), along(v, means)];
    const points = Array.from({ length: 64 }, (_, n) => {
      const [cos, sin] = [Math.cos(n * Math.PI / 32), Math.sin(n * Math.PI / 32)];
      return `${x(at[0] + HALF * a * cos).toFixed(1)},${y(at[1] + HALF * (b * cos + c * sin)).toFixed(1)}`;
    });
    return shape("polygon", { class: fade(state, i), points: points.join(" "), stroke: colourOf(i), "stroke-width": 1.75, fill: "none" });
  });
}

// Marks with their numbers; a press on one marks the cluster everywhere.
function marks(state, at, frame) {
  const { clusters } = state.view.profile, places = clusters.map((c) => at(c.means));
  const names = beside(places, frame), order = clusters.map((_, i) => i).reverse();
  return order.map((i) => {
    const group = shape("g", { class: `pick ${fade(state, i) ?? ""}` }, shape("title", {}, `Cluster ${i}: ${clusters[i].name}, ${percent(clusters[i].share)}`),
      shape("path", { class: "leader", d: `M${places[i]} L${names[i]}` }),
      mark(i, 6, { transform: `translate(${places[i]})` }),
      label(names[i][0], names[i][1] + 4, i, { class: "number halo", "text-anchor": "middle" }));
    group.addEventListener("click", () => toggleMarked(i));
    return group;
  });
}

// Places for numbers near their marks, clear of all marks and of each other where there is room.
function beside(places, frame) {
  const found = [];
  const inside = ([x, y]) => x > frame.x + 8 && x < frame.x + frame.width - 8 && y > frame.y + 8 && y < frame.y + frame.height - 8;
  const clear = (at) => inside(at) && found.every(([u, v]) => Math.abs(u - at[0]) > 17 || Math.abs(v - at[1]) > 15)
    && places.every(([u, v]) => Math.hypot(u - at[0], v - at[1]) > 14);
  for (const [x, y] of places) {
    const around = [16, 22, 30, 40, 52, 66].flatMap((far) => Array.from({ length: 12 }, (_, n) => {
      const angle = -Math.PI / 4 + (n * Math.PI) / 6;
      return [x + far * Math.cos(angle), y + far * Math.sin(angle)];
    }));
    found.push(around.find(clear) ?? around.find(inside) ?? around[0]);
  }
  return found;
}

// One column: the density of each cluster, on top of each other.
function drawLine(state) {
  const place = byId("map"), width = place.clientWidth, left = 20, top = 40, bottom = 280, n = 240;
  const axis = axisOf(state, 0), box = range(state, axis), x = linear(...box, left, width - left), step = (box[1] - box[0]) / n;
  const heights = state.view.profile.clusters.map(() => new Float64Array(n));
  for (const { cluster, weight, at, shape: [variance] } of gaussians(state, axis, axis)) {
    const sd = Math.sqrt(variance + step ** 2);
    for (let p = 0; p < n; p += 1) heights[cluster][p] += weight / sd * Math.exp(-0.5 * ((box[0] + (p + 0.5) * step - at[0]) / sd) ** 2);
  }
  const largest = Math.max(...heights.flatMap((h) => [...h]), 1e-300), y = linear(0, largest, bottom, top);
  const areas = heights.map((h, i) => {
    const line = [...h].map((value, p) => `${x(box[0] + (p + 0.5) * step).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    return shape("polygon", { class: fade(state, i), points: `${left},${bottom} ${line} ${width - left},${bottom}`, fill: colourOf(i), "fill-opacity": 0.35, stroke: colourOf(i) });
  });
  picture(place, bottom + 50, `Map of ${counted(heights.length, "cluster")} over ${axis.name}`, ...areas,
    shape("line", { class: "frame", x1: left, x2: width - left, y1: bottom, y2: bottom }),
    ...axisTicks(axis, box, width / 90).map(([at, text]) => label(x(at), bottom + 18, text, { class: "quiet", "text-anchor": "middle" })),
    fitted(width / 2, bottom + 42, axis.name, width, { "text-anchor": "middle" }),
    ...marks(state, (point) => [x(point[0]), bottom], { x: 0, y: 0, width, height: bottom - 6 }));
  byId("map-note").textContent = "The higher, the denser the rows.";
}
