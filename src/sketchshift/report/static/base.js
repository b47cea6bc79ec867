// Small helpers. Whatever comes from the data enters the page as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

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
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return minus(value.toExponential(2));
  return minus(String(Number(value.toPrecision(4))));
}

function minus(text) {
  return text.replaceAll("-", "−");
}

// Numbers of one column with as many decimals as leave the largest five digits.
function alike(values) {
  const largest = Math.max(...values.map(Math.abs), 0);
  if (largest >= 1e6 || (largest > 0 && largest < 1e-3)) return values.map(short);
  const decimals = largest === 0 ? 0 : Math.max(0, 4 - Math.floor(Math.log10(largest)));
  return values.map((value) => minus(value.toFixed(decimals)));
}

// Little-endian float32 in base64.
function floats(packed) {
  const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

function download(name, text, type) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function options(select, labels, chosen = 0) {
  select.replaceChildren(...labels.map((label, i) => element("option", { value: i }, label)));
  select.value = String(chosen);
}

// A long name that may be broken after signs such as "_".
function breakable(name) {
  return name.split(/(?<=[_./-])/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));
}
