// Shares of the clusters: over the slices of a table, between two slices; and other numbers of clusters.

const AREAS = 12; // clusters with an area of their own: as many as there are colours

function drawTrends(state) {
  byId("trends-section").hidden = !state.trends.length;
  if (!state.trends.length || !state.trends[0].shares.length) return;
  const trend = state.trends[Number(byId("trend").value)];
  const place = byId("trends"), width = place.clientWidth, left = 46, right = width - 40, top = 66, bottom = 306;
  const areas = stacked(trend.shares), n = trend.names.length, step = (right - left) / n;
  const x = (i) => left + step * i, y = linear(0, 1, bottom, top), gap = step > 8 ? 2 : 0;
  const shapes = [hatches(), ...counts(trend, x, step, gap, right)];
  [0, 0.25, 0.5, 0.75, 1].forEach((share) => shapes.push(label(left - 6, y(share) + 4, `${100 * share} %`, { class: "quiet", "text-anchor": "end" })));
  areas.forEach(({ name, values, colour }, a) => {
    const group = shape("g", { class: state.marked !== null && state.marked !== a ? "faint" : null });
    values.forEach(([from, to], i) => {
      if (to === null) return;
      const rect = { x: x(i) + gap / 2, width: Math.max(0.5, step - gap), y: y(to), height: Math.max(0, y(from) - y(to)) };
      const text = `${trend.names[i]}, cluster ${name}: ${percent(to - from)} of ${counted(trend.counts[i], "row")}`;
      group.append(shape("rect", { ...rect, fill: colour, "data-area": name, class: trend.counts[i] < THIN ? "thin" : null }, shape("title", {}, text)));
    });
    shapes.push(group);
  });
  trend.counts.forEach((count, i) => {
    if (count >= THIN) return;
    const rect = { x: x(i) + gap / 2, width: Math.max(1, step - gap), y: top, height: bottom - top };
    shapes.push(shape("rect", { ...rect, class: "frame empty", fill: count ? "url(#hatch)" : "none" }, shape("title", {}, `${trend.names[i]}: ${counted(count, "row")}`)));
  });
  shapes.push(...areaNames(areas, right, y, top, bottom), ...sliceNames(trend.names, x, step, bottom, width));
  picture(place, bottom + 30, `Shares of the clusters in ${counted(n, "slice")} by ${trend.column}`, ...shapes);
  byId("trends-note").textContent = trendNote(trend);
}

function trendNote(trend) {
  const thin = trend.counts.flatMap((count, i) => (count < THIN ? [`${trend.names[i]} (${counted(count, "row")})`] : []));
  const named = thin.slice(0, 5).join(", ") + (thin.length > 5 ? ` and ${thin.length - 5} more` : "");
  const few = thin.length ? ` Hatched: fewer than ${THIN} rows, so that shares are rough: ${named}.` : "";
  const more = trend.left_out ? ` ${counted(trend.left_out, "more slice")} left out.` : "";
  return `Each bar is a slice, cut by the share of its rows in each cluster; above it its number of rows.${few}${more}`;
}

// How many rows each slice has: small bars, with the largest as a number, and those of thin slices.
function counts(trend, x, step, gap, right) {
  const most = Math.max(...trend.counts, 1), largest = trend.counts.indexOf(most), y = linear(0, most, 56, 22);
  const bars = trend.counts.map((count, i) => shape("rect", { class: "count", x: x(i) + gap / 2, width: Math.max(0.5, step - gap), y: y(count), height: 56 - y(count) }, shape("title", {}, `${trend.names[i]}: ${counted(count, "row")}`)));
  let free = -Infinity;
  const named = trend.counts.flatMap((count, i) => {
    const text = counted(count, "row"), half = 3.4 * text.length, at = Math.min(Math.max(x(i) + step / 2, half), right - half);
    const isWide = step > 2 * half + 4;
    if (!(isWide || count < THIN || i === largest) || at - half < free) return [];
    free = at + half + 6;
    return [label(at, y(count) - 4, text, { class: "quiet halo", "text-anchor": "middle" })];
  });
  return [...bars, ...named];
}

// For each area its name and, for each slice, where it begins and ends. Beyond the colours, clusters share one.
function stacked(shares) {
  const k = shares[0].length, own = k <= AREAS ? k : AREAS;
  const areas = Array.from({ length: own }, (_, i) => ({ name: String(i), members: [i], colour: colourOf(i) }));
  if (own < k) areas.push({ name: own === k - 1 ? String(own) : `${own}–${k - 1}`, members: Array.from({ length: k - own }, (_, i) => own + i), colour: "var(--line)" });
  const ends = shares.map(() => 0);
  return areas.map(({ name, members, colour }) => ({
    name,
    colour,
    values: shares.map((row, i) => {
      if (row[0] === null) return [null, null];
      const from = ends[i];
      ends[i] += members.reduce((sum, c) => sum + row[c], 0);
      return [from, ends[i]];
    }),
  }));
}

function hatches() {
  const size = { width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  return shape("defs", {}, shape("pattern", { id: "hatch", ...size }, shape("line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 6 })));
}

function areaNames(areas, right, y, top, bottom) {
  const last = areas.map(({ values }) => values.findLast(([, to]) => to !== null) ?? [0, 0]);
  const middles = last.map(([from, to]) => y((from + to) / 2));
  const places = spread(middles, 15, top + 4, bottom - 4);
  return areas.flatMap(({ name }, a) => [
    shape("path", { class: "leader", d: `M${right},${middles[a]} L${right + 10},${places[a]}` }),
    label(right + 13, places[a] + 4, name, { class: "number" }),
  ]);
}

// As many names as there is room for, from the first one on.
function sliceNames(names, x, step, bottom, width) {
  let free = 0;
  return names.flatMap((name, i) => {
    const shown = name.length > 14 ? `${name.slice(0, 13)}…` : name;
    const half = 3.3 * shown.length, at = x(i) + step / 2, place = Math.min(Math.max(at, half), width - half);
    if (place - half < free || Math.abs(place - at) > half) return [];
    free = place + half + 14;
    return [shape("line", { class: "frame", x1: at, x2: at, y1: bottom, y2: bottom + 5 }),
      shape("text", { class: "quiet", x: place, y: bottom + 20, "text-anchor": "middle" }, shape("title", {}, name), shown)];
  });
}

// Two slices: from a hollow mark to a full one, for each cluster.

function drawComparison(state) {
  const { comparison } = state;
  byId("comparison").hidden = byId("comparison-tools").hidden = !comparison?.clusters.length;
  if (!comparison?.clusters.length) return;
  const { clusters, before, after } = comparison, place = byId("comparison"), width = place.clientWidth;
  const left = Math.min(250, 0.42 * width), right = width - 20, row = 26, top = 30, bottom = top + row * clusters.length;
  const most = Math.max(...clusters.flatMap((c) => [c.before, c.after])) * 1.08, x = linear(0, most, left, right);
  const shapes = ticks(0, most, width / 110).flatMap((share) => [
    shape("line", { class: "axis", x1: x(share), x2: x(share), y1: top - 8, y2: bottom }),
    label(x(share), bottom + 16, `${short(100 * share)} %`, { class: "quiet", "text-anchor": "middle" }),
  ]);
  shapes.push(label(left, 12, `hollow: ${before}; full: ${after}`, { class: "quiet", "text-anchor": left + 7 * (before.length + after.length + 16) > width ? "middle" : "start", ...(left + 7 * (before.length + after.length + 16) > width ? { x: width / 2 } : {}) }));
  clusters.forEach((c, i) => {
    const y = top + row * i + 10, name = `${i} ${state.view.profile.clusters[i].name}`;
    const title = `Cluster ${i}: ${percent(c.before)} to ${percent(c.after)}, ${c.verdict}`;
    shapes.push(shape("g", { class: fade(state, i) }, shape("title", {}, title),
      fitted(left - 14, y + 4, name, left - 14, { "text-anchor": "end", class: c.verdict === "same" ? "quiet" : null }),
      shape("line", { stroke: colourOf(i), "stroke-width": 3, x1: x(c.before), x2: x(c.after), y1: y, y2: y }),
      mark(i, 5.5, { transform: `translate(${x(c.before)},${y})`, class: "hollow", stroke: colourOf(i) }),
      mark(i, 5.5, { transform: `translate(${x(c.after)},${y})` })));
  });
  picture(place, bottom + 24, `Shares of the clusters: ${before} and ${after}`, ...shapes);
}

function tellComparison({ sentence, words }) {
  const none = "No single cluster changed its share or its values more than chance allows.";
  const list = words.length ? element("ul", {}, ...words.map((text) => element("li", {}, text))) : element("p", {}, none);
  byId("changes").replaceChildren(element("p", {}, sentence), list);
}

function comparisonCsv({ clusters, before, after }) {
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const rows = clusters.map((c, i) => [i, quoted(state.view.profile.clusters[i].name), c.before, c.after, quoted(c.verdict)]);
  return [["cluster", "name", quoted(before), quoted(after), "change"], ...rows].map((row) => row.join(",")).join("\n") + "\n";
}

// Misfit and score of each number of clusters, on a logarithmic axis.

const DEEPEST = 1e-6; // a logarithmic axis has no zero

function drawCurve(state) {
  byId("curve-section").hidden = !state.curve;
  if (!state.curve) return;
  const { n_clusters: numbers, misfit, score, chosen } = state.curve;
  const place = byId("curve"), width = place.clientWidth, left = 58, top = 12, bottom = 200;
  const most = Math.max(...misfit, ...score) || 1;
  const lift = (values) => values.map((value) => Math.max(value, DEEPEST * most));
  const [shownMisfit, shownScore] = [lift(misfit), lift(score)];
  const low = Math.min(...shownMisfit, ...shownScore) / 1.1, high = most * 1.1;
  const x = linear(numbers[0] - 0.3, numbers.at(-1) + 0.3, left, width - 12);
  const y = (value) => linear(Math.log(low), Math.log(high), bottom, top)(Math.log(value));
  const found = state.view.profile.clusters.length;
  const shapes = [
    ...decades(low, high).flatMap((value) => [
      shape("line", { class: "axis", x1: left, x2: width - 12, y1: y(value), y2: y(value) }),
      label(left - 6, y(value) + 4, short(value), { class: "quiet", "text-anchor": "end" }),
    ]),
    ...ticks(numbers[0], numbers.at(-1), Math.min(numbers.length, width / 55)).filter(Number.isInteger)
      .map((k) => label(x(k), bottom + 18, k, { class: "quiet", "text-anchor": "middle" })),
    label((left + width) / 2, bottom + 38, "number of clusters", { "text-anchor": "middle" }),
    shape("line", { class: "leader", x1: x(found), x2: x(found), y1: top, y2: bottom, "stroke-dasharray": "3 3" }),
    ...curveLine(numbers, shownMisfit, x, y, "quiet", "6 3"),
    ...curveLine(numbers, shownScore, x, y, "accent", null),
    shape("circle", { class: "line-accent", fill: "none", "stroke-width": 2, cx: x(chosen), cy: y(shownScore[chosen - 1]), r: 9 }),
    ...legend(left + 8, bottom + 60, [["what is left unexplained", "quiet", "6 3"], ["the same, with a price for each cluster", "accent", null]], width),
  ];
  picture(place, bottom + (width < 560 ? 86 : 66), `How well each number of clusters fits; ${chosen} is suggested`, ...shapes);
  byId("curve-note").textContent = `Lower is better. ${suggestion(state.curve)} The dotted line is at the ${found} shown here.`;
}

function suggestion({ chosen, is_natural: isNatural, alternatives }) {
  if (isNatural || !alternatives.length) return `The ring is at the suggestion: ${counted(chosen, "cluster")}.`;
  return `No number stands out: more clusters go on explaining more. Look at ${alternatives.join(", ")} clusters, coarse to fine; the ring is at ${chosen}.`;
}

function decades(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    for (const factor of [1, 2, 5]) found.push(factor * 10 ** power);
  }
  const inside = found.filter((value) => value >= low && value <= high);
  if (inside.length < 3) return ticks(low, high, 4);
  return inside.length > 8 ? inside.filter((value) => Number.isInteger(Math.log10(value))) : inside;
}

function curveLine(numbers, values, x, y, colour, dash) {
  const points = numbers.map((k, i) => `${x(k).toFixed(1)},${y(values[i]).toFixed(1)}`).join(" ");
  const radius = numbers.length > 40 ? 1.5 : 3;
  return [
    shape("polyline", { points, class: `line-${colour}`, fill: "none", "stroke-width": 2, "stroke-dasharray": dash }),
    ...numbers.map((k, i) => shape("circle", { class: `fill-${colour}`, cx: x(k), cy: y(values[i]), r: radius },
      shape("title", {}, `${counted(k, "cluster")}: ${short(values[i])}`))),
  ];
}

function legend(left, top, entries, width) {
  const isNarrow = width < 560;
  return entries.flatMap(([text, colour, dash], i) => {
    const x = left + (isNarrow ? 0 : 230 * i), y = top + (isNarrow ? 20 * i : 0);
    return [
      shape("line", { class: `line-${colour}`, "stroke-width": 2, "stroke-dasharray": dash, x1: x, x2: x + 28, y1: y - 4, y2: y - 4 }),
      label(x + 36, y, text),
    ];
  });
}
