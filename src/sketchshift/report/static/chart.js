// What the pictures share: how clusters look, scales, and labels that keep clear of each other.

const COLOURS = 7, DASHES = [null, "7 3", "2 2.5", "9 3 2 3", "4 2"];
const MOST_LINES = 20; // clusters with a look of their own

// Colours, dashes and marks have cycles without a common divisor: few clusters look alike.
function look(i) {
  return i < MOST_LINES ? { colour: String(i % COLOURS), dash: DASHES[i % DASHES.length] } : { colour: "rest", dash: null };
}

function linear(from, to, low, high) {
  const span = to - from || 1;
  return (value) => low + ((value - from) / span) * (high - low);
}

// About n round numbers from low to high.
function ticks(low, high, n) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / n, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high + 1e-9 * span; i += 1) found.push(i * step);
  return found;
}

// Moves numbers apart to a least distance, inside [low, high], in their order.
function spread(places, gap, low, high) {
  const order = places.map((_, i) => i).sort((a, b) => places[a] - places[b] || a - b);
  const room = Math.min(gap, (high - low) / Math.max(1, places.length - 1));
  const moved = [...places];
  order.forEach((i, n) => { moved[i] = Math.max(moved[i], low + n * room, n ? moved[order[n - 1]] + room : low); });
  order.reverse().forEach((i, n) => { moved[i] = Math.min(moved[i], high - n * room, n ? moved[order[n - 1]] - room : high); });
  return moved;
}

// Words on lines of so many signs; what is left over ends in an ellipsis.
function wrapped(text, width, most) {
  const lines = [""];
  for (const part of text.match(/[^ _./-]+[ _./-]*|[ _./-]+/g) ?? []) {
    for (let rest = part; rest; rest = rest.slice(width)) {
      const piece = rest.slice(0, width);
      if (lines.at(-1).length + piece.trimEnd().length > width && lines.at(-1)) lines.push("");
      lines[lines.length - 1] += piece;
    }
  }
  if (lines.length <= most) return lines;
  return [...lines.slice(0, most - 1), `${lines[most - 1].slice(0, width - 1)}…`];
}

function label(x, y, text, attributes = {}) {
  return shape("text", { x, y, ...attributes }, text);
}

function wrappedLabel(x, y, text, width, most, attributes = {}) {
  const lines = wrapped(text, Math.max(4, Math.floor(width / 7)), most);
  const rows = lines.map((line, i) => shape("tspan", { x, dy: i ? 14 : -7 * (lines.length - 1) }, line.trimEnd()));
  return shape("text", { x, y, ...attributes }, shape("title", {}, text), ...rows);
}

// A picture as wide as its place, named for those who do not see it.
function picture(place, height, name, ...shapes) {
  const width = Math.floor(place.clientWidth);
  const viewBox = `0 0 ${width} ${height}`;
  place.replaceChildren(shape("svg", { viewBox, height, role: "img", "aria-label": name }, ...shapes));
}
