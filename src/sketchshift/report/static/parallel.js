// Parallel coordinates: one line a centroid across the axes of the columns, which lie below each
// other. An axis is centered at the mean of its column and counts in standard deviations.

const MOST_AXES = 20;

function drawParallel(state) {
  const place = byId("parallel"), { centroids, shares, mean, deviation } = state.view;
  const axes = separating(state, MOST_AXES);
  const width = place.clientWidth, gutter = Math.min(180, Math.max(92, 0.24 * width));
  const row = 44, top = 34, height = top + row * axes.length;
  const placed = centroids.map((c) => axes.map((a) => (deviation[a] > 0 ? (c[a] - mean[a]) / deviation[a] : 0)));
  const reach = Math.max(1, ...placed.flat().map(Math.abs));
  const x = linear(-reach, reach, gutter + 14, width - 14);
  const y = (i) => top + row * i + 16;
  const shapes = axes.map((a, i) => axis(state.columns[a], y(i), x, reach, gutter));
  const order = shares.map((_, i) => i).sort((a, b) => (a === state.marked) - (b === state.marked) || b - a);
  shapes.push(...order.map((i) => centroidLine(i, placed[i], shares[i], x, y, state)));
  shapes.push(...axes.flatMap((a, i) => axisEnds(mean[a], deviation[a], y(i), x, reach)));
  shapes.push(...numbers(placed, shares, x, y(0), width, gutter, state));
  const name = `${counted(centroids.length, "centroid")} across ${counted(axes.length, "column")}; the table has the numbers`;
  picture(place, height, name, ...shapes);
  const more = state.shown.length - axes.length;
  const rest = more > 0 ? ` Of ${state.shown.length} columns, the ${axes.length} that tell the clusters apart best.` : "";
  const whose = state.promise ? "of the clusters, as a private sketch tells no other" : "of all rows";
  byId("parallel-note").textContent = `Axes go from ${short(-reach)} to ${short(reach)} standard deviations around the mean ${whose}; lines are as wide as their share.${rest}`;
}

// The columns with the largest share of their variance between the clusters, in their order.
function separating(state, most) {
  const { centroids, shares, mean, deviation } = state.view;
  if (state.shown.length <= most) return state.shown;
  const between = (a) => (deviation[a] > 0 ? shares.reduce((sum, w, i) => sum + w * (centroids[i][a] - mean[a]) ** 2, 0) / deviation[a] ** 2 : 0);
  const size = new Map(state.shown.map((a) => [a, between(a)]));
  const best = new Set([...state.shown].sort((a, b) => size.get(b) - size.get(a)).slice(0, most));
  return state.shown.filter((a) => best.has(a));
}

function axis(name, y, x, reach, gutter) {
  return shape("g", {},
    shape("line", { class: "axis", x1: x(-reach), x2: x(reach), y1: y, y2: y }),
    wrappedLabel(gutter, y + 4, name, gutter, 3, { "text-anchor": "end" }));
}

function axisEnds(mean, deviation, y, x, reach) {
  return [[-reach, "start"], [reach, "end"]].map(([r, anchor]) =>
    label(x(r), y + 18, short(mean + r * deviation), { class: "quiet halo", "text-anchor": anchor }));
}

function centroidLine(i, places, share, x, y, state) {
  const { colour, dash } = look(i), faint = state.marked !== null && state.marked !== i;
  const points = places.map((place, j) => `${x(place).toFixed(1)},${y(j)}`).join(" ");
  const width = i < MOST_LINES ? 1.25 + 6 * Math.min(share, 0.5) : 0.75;
  const drawn = shape("polyline", { points, class: `line-${colour}`, fill: "none", "stroke-width": width, "stroke-dasharray": dash });
  const dots = places.map((place, j) => shape("circle", { cx: x(place), cy: y(j), r: 1.5 + width / 2, class: `fill-${colour}` }));
  return shape("g", { class: faint ? "faint" : null }, shape("title", {}, `cluster ${i}: ${percent(share)}`), drawn, ...dots);
}

function numbers(placed, shares, x, y, width, gutter, state) {
  const named = placed.map((_, i) => i).slice(0, MOST_LINES);
  const from = named.map((i) => x(placed[i][0] ?? 0));
  const to = spread(from, 19, gutter + 10, width - 10);
  return named.map((i) => shape("g", { class: state.marked !== null && state.marked !== i ? "faint" : null },
    shape("path", { class: "leader", d: `M${from[i]},${y - 5} L${to[i]},${y - 22}` }),
    label(to[i], y - 26, i, { class: "number halo", "text-anchor": "middle" })));
}
