// Shares of the clusters in the slices of a table, as stacked bars in the order of the table.

const AREAS = 12; // clusters with an area of their own; the lighter ones share the last

function drawTrends(state) {
  byId("trends-section").hidden = !state.trends.length;
  if (!state.trends.length) return;
  const trend = state.trends[Number(byId("trend").value)];
  const place = byId("trends"), width = place.clientWidth, left = 44, right = width - 40, top = 8, bottom = 248;
  const areas = stacked(trend.shares), n = trend.names.length, step = (right - left) / n;
  const x = (i) => left + step * i, y = linear(0, 1, bottom, top);
  const gap = step > 8 ? 2 : 0;
  const shapes = [hatches()];
  [0, 0.25, 0.5, 0.75, 1].forEach((share) => shapes.push(label(left - 6, y(share) + 4, `${100 * share} %`, { class: "quiet", "text-anchor": "end" })));
  areas.forEach(({ name, values }, a) => {
    const faint = state.marked !== null && state.marked !== a ? "faint" : null;
    const group = shape("g", { class: faint });
    values.forEach(([from, to], i) => {
      if (to === null) return;
      const rect = { x: x(i) + gap / 2, width: Math.max(0.5, step - gap), y: y(to), height: Math.max(0, y(from) - y(to)) };
      const text = `${trend.names[i]}, cluster ${name}: ${percent(to - from)} of ${counted(trend.counts[i], "row")}`;
      group.append(shape("rect", { ...rect, class: `fill-${a % COLOURS}` }, shape("title", {}, text)));
      if (a >= COLOURS) group.append(shape("rect", { ...rect, fill: "url(#hatch)", "pointer-events": "none" }));
    });
    shapes.push(group);
  });
  shapes.push(...areaNames(areas, right, y, top, bottom), ...sliceNames(trend.names, x, step, bottom, width));
  picture(place, bottom + 30, `Shares of the clusters in ${counted(n, "slice")} by ${trend.column}`, ...shapes);
  const more = trend.left_out ? ` ${counted(trend.left_out, "more slice")} left out.` : "";
  byId("trends-note").textContent = `Shares of the rows of each slice, of the clusters above, which stay where they are.${more}`;
}

// For each area its name and, for each slice, where it begins and ends.
function stacked(shares) {
  const k = shares[0].length, own = k <= AREAS ? k : AREAS - 1;
  const areas = Array.from({ length: own }, (_, i) => ({ name: String(i), members: [i] }));
  if (own < k) areas.push({ name: `${own}–${k - 1}`, members: Array.from({ length: k - own }, (_, i) => own + i) });
  const ends = shares.map(() => 0);
  return areas.map(({ name, members }) => ({
    name,
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
