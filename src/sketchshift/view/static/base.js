// Small helpers: text that stays text, scales, labels that keep clear of each other, how clusters
// look, and pictures as files. COLOURS, MARKS, SHADES and THIN come from the palette of the project.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

// Whatever comes from the data enters the page here, as text, never as markup.
function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

function counted(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

function percent(share) {
  return share === null ? "–" : `${(100 * share).toFixed(1)} %`;
}

function short(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return minus(value.toExponential(1));
  return minus(Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 }));
}

const minus = (text) => text.replaceAll("-", "−");

// Little-endian float32 in base64.
function floats(packed) {
  const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

function options(select, labels, chosen = 0) {
  select.replaceChildren(...labels.map((label, i) => element("option", { value: i }, label)));
  select.value = String(chosen);
}

// A long name that may be broken after signs such as "_".
function breakable(name) {
  return name.split(/(?<=[_./-])/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));
}

// How a cluster looks, everywhere: a colour, and where colours come back another mark.

const colourOf = (i) => COLOURS[i % COLOURS.length];

const OUTLINES = {
  circle: (r) => `M${-r},0 a${r},${r} 0 1,0 ${2 * r},0 a${r},${r} 0 1,0 ${-2 * r},0`,
  square: (r) => `M${-0.9 * r},${-0.9 * r} h${1.8 * r} v${1.8 * r} h${-1.8 * r} Z`,
  triangle: (r) => `M0,${-1.2 * r} L${1.1 * r},${0.8 * r} L${-1.1 * r},${0.8 * r} Z`,
  diamond: (r) => `M0,${-1.3 * r} L${1.1 * r},0 L0,${1.3 * r} L${-1.1 * r},0 Z`,
};

function mark(i, r, attributes = {}) {
  const outline = OUTLINES[MARKS[Math.floor(i / COLOURS.length) % MARKS.length]];
  return shape("path", { d: outline(r), fill: colourOf(i), class: "mark", "data-cluster": i, ...attributes });
}

function swatch(i) {
  return shape("svg", { class: "swatch", viewBox: "-8 -8 16 16", width: 16, height: 16, "aria-hidden": "true" }, mark(i, 5.5));
}

// Background of a number so many deviations from the mean of all rows.
function shadeOf(deviation) {
  const size = Math.min(Math.abs(deviation ?? 0) / SHADES.full, 1);
  return (deviation < 0 ? SHADES.low : SHADES.high) + Math.round(255 * SHADES.opacity * size).toString(16).padStart(2, "0");
}

// Scales and labels.

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

function label(x, y, text, attributes = {}) {
  return shape("text", { x, y, ...attributes }, text);
}

// A label of one line; what has no room ends in an ellipsis.
function fitted(x, y, text, width, attributes = {}) {
  const most = Math.max(4, Math.floor(width / 7));
  const shown = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  return shape("text", { x, y, ...attributes }, shape("title", {}, text), shown);
}

// A picture as wide as its place, named for those who do not see it.
function picture(place, height, name, ...shapes) {
  const width = Math.floor(place.clientWidth);
  place.replaceChildren(shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": name }, ...shapes));
}

// Files.

function download(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = element("a", { download: name, href: URL.createObjectURL(blob) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "paint-order"];

// The picture of a place as it looks now, on its own: an SVG needs no style sheet then.
function standalone(svg) {
  const copy = svg.cloneNode(true), [own, copied] = [svg, copy].map((root) => [...root.querySelectorAll("*")]);
  own.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of STYLES) copied[i].setAttribute(name, style.getPropertyValue(name));
  });
  const page = getComputedStyle(document.documentElement).getPropertyValue("--card").trim();
  copy.prepend(shape("rect", { width: "100%", height: "100%", fill: page }));
  copy.setAttribute("xmlns", SVG);
  return new XMLSerializer().serializeToString(copy);
}

function savePicture(id, kind) {
  const svg = byId(id).querySelector("svg"), text = standalone(svg);
  if (kind === "svg") { download(`${id}.svg`, text, "image/svg+xml"); return; }
  const image = new Image(), sharp = 2;
  image.onload = () => {
    const canvas = element("canvas", { width: sharp * svg.clientWidth, height: sharp * svg.clientHeight });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(`${id}.png`, blob), "image/png");
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}
