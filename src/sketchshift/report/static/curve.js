// Misfit and score of each number of clusters, on a logarithmic axis.

const DEEPEST = 1e-6; // a logarithmic axis has no zero

function drawCurve(state) {
  byId("curve-section").hidden = !state.curve && !state.live;
  if (!state.curve) return;
  const { n_clusters: numbers, misfit, score, chosen } = state.curve;
  const place = byId("curve"), width = place.clientWidth, left = 58, top = 12, bottom = 220;
  const most = Math.max(...misfit, ...score) || 1;
  const lift = (values) => values.map((value) => Math.max(value, DEEPEST * most));
  const [shownMisfit, shownScore] = [lift(misfit), lift(score)];
  const low = Math.min(...shownMisfit, ...shownScore) / 1.1, high = most * 1.1;
  const x = linear(numbers[0] - 0.3, numbers.at(-1) + 0.3, left, width - 12);
  const y = (value) => linear(Math.log(low), Math.log(high), bottom, top)(Math.log(value));
  const found = state.view.shares.length;
  const shapes = [
    ...decades(low, high).flatMap((value) => [
      shape("line", { class: "axis", x1: left, x2: width - 12, y1: y(value), y2: y(value) }),
      label(left - 6, y(value) + 4, short(value), { class: "quiet", "text-anchor": "end" }),
    ]),
    ...ticks(numbers[0], numbers.at(-1), Math.min(numbers.length, width / 55)).filter(Number.isInteger)
      .map((k) => label(x(k), bottom + 18, k, { class: "quiet", "text-anchor": "middle" })),
    label((left + width) / 2, bottom + 38, "number of clusters", { "text-anchor": "middle" }),
    shape("line", { class: "leader", x1: x(found), x2: x(found), y1: top, y2: bottom, "stroke-dasharray": "3 3" }),
    ...curveLine(numbers, shownMisfit, x, y, 1, "6 3"),
    ...curveLine(numbers, shownScore, x, y, 2, null),
    shape("circle", { class: "line-2", fill: "none", "stroke-width": 2, cx: x(chosen), cy: y(shownScore[chosen - 1]), r: 9 }),
    ...legend(left + 8, bottom + 60, [["misfit", 1, "6 3"], ["score", 2, null]], width),
  ];
  picture(place, bottom + (width < 420 ? 86 : 66), `Misfit against the number of clusters; ${chosen} is suggested`, ...shapes);
  byId("curve-note").textContent = `The misfit is what k Gaussians leave of the sketch, as a share of it. The score, which also counts clusters, suggests ${counted(chosen, "cluster")} (ring): the smallest number within 2.5 % of the best score. The dotted line is at ${found}.`;
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
  const isNarrow = width < 420;
  return entries.flatMap(([text, colour, dash], i) => {
    const x = left + (isNarrow ? 0 : 180 * i), y = top + (isNarrow ? 20 * i : 0);
    return [
      shape("line", { class: `line-${colour}`, "stroke-width": 2, "stroke-dasharray": dash, x1: x, x2: x + 28, y1: y - 4, y2: y - 4 }),
      label(x + 36, y, text),
    ];
  });
}
