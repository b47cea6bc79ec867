// What the clusters are: in words, and as a table that is shaded by how far they are from all rows.

const FIRST_COLUMNS = 12; // of a wide table; the others on demand
const sorting = { column: -1, descending: true }; // -1: by share, -2: by number

function drawProfiles(state) {
  const { clusters } = state.view.profile, most = Math.max(...clusters.map((c) => c.share), 1e-9);
  byId("profiles").replaceChildren(...clusters.map((cluster, i) => {
    const bar = element("span", { class: "bar" });
    bar.style.width = `${100 * cluster.share / most}%`;
    bar.style.backgroundColor = colourOf(i);
    const rows = cluster.rows === null ? "" : counted(cluster.rows, "row");
    const traits = cluster.traits.map(traitInWords).join("; ");
    return element("li", { class: fade(state, i) },
      clusterButton(i, "profiles"),
      element("span", { class: "name" }, ...breakable(cluster.name)),
      element("span", { class: "share", title: rows }, percent(cluster.share)),
      element("span", { class: "track" }, bar),
      element("span", { class: "traits" }, traits || (clusters.length > 1 ? "No column is far from the mean of all rows." : "There is no other cluster to tell it from.")));
  }));
}

// The name says high or low; this by how much.
function traitInWords({ column, value, shown, text, deviation }) {
  if (typeof value !== "number") return text;
  return `${column} ${minus(`${shown} (${deviation > 0 ? "+" : ""}${deviation.toFixed(1)}`)}\u00a0sd)`; // a hyphen in a name stays one
}

// The columns that are shown: those chosen, or those that separate the clusters best.
function shownColumns(state) {
  const { order } = state.view;
  if (!state.chosen) return order.slice(0, FIRST_COLUMNS);
  return order.filter((c) => state.chosen.has(c));
}

function drawTable(state) {
  const { clusters } = state.view.profile, columns = shownColumns(state);
  const order = clusters.map((_, i) => i).sort(byColumn(clusters));
  const heads = [head("cluster", -2), head("share", -1), ...columns.map((c) => head(state.columns[c], c))];
  const rows = order.map((i) => element("tr", { class: state.marked === i ? "marked" : null },
    element("th", { scope: "row", title: clusters[i].name }, clusterButton(i, "table")), element("td", {}, percent(clusters[i].share)),
    ...columns.map((c) => {
      const away = clusters[i].deviations[c];
      const title = away === null ? null : `${minus(away.toFixed(1))} standard deviations from the mean of all rows`;
      const cell = element("td", { title }, state.view.shown[i][c]);
      cell.style.backgroundColor = shadeOf(away);
      return cell;
    })));
  const caption = element("caption", { class: "unseen" }, "Mean of each column in each cluster");
  byId("table").replaceChildren(element("table", {}, caption, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows)));
  titleColumns(columns.length);
}

function byColumn(clusters) {
  const value = (i) => {
    if (sorting.column === -2) return i;
    return sorting.column === -1 ? clusters[i].share : clusters[i].means[sorting.column];
  };
  const sign = sorting.descending ? -1 : 1;
  return (a, b) => sign * (value(a) - value(b)) || a - b;
}

function head(name, column) {
  const button = element("button", { type: "button" }, ...breakable(name));
  button.addEventListener("click", () => {
    const again = sorting.column === column;
    sorting.descending = again ? !sorting.descending : column === -1;
    sorting.column = column;
    drawTable(state);
    byId("table").querySelectorAll("th button[data-column]").forEach((other) => { if (Number(other.dataset.column) === column) other.focus(); });
  });
  button.dataset.column = column;
  const direction = sorting.descending ? "descending" : "ascending";
  return element("th", { scope: "col", "aria-sort": sorting.column === column ? direction : "none" }, button);
}

function clusterButton(i, place) {
  const name = `Mark cluster ${i}`;
  const button = element("button", { type: "button", class: "chip", "aria-pressed": String(state.marked === i), "aria-label": name }, swatch(i), i);
  button.addEventListener("click", () => {
    toggleMarked(i);
    byId(place).querySelector(`[aria-label="${name}"]`).focus();
  });
  return button;
}

function fillColumns(state) {
  const boxes = state.view.order.map((c) => element("label", {}, element("input", { type: "checkbox", value: c }), element("span", {}, ...breakable(state.columns[c]))));
  byId("column-list").replaceChildren(...boxes);
  const shown = new Set(shownColumns(state));
  for (const box of byId("column-list").querySelectorAll("input")) box.checked = shown.has(Number(box.value));
}

function chooseColumns(columns) {
  state.chosen = columns.length ? new Set(columns) : null; // none: the best ones again
  drawTable(state);
  fillColumns(state);
  remember();
}

function titleColumns(n) {
  const all = state.columns.length, best = state.chosen || n === all ? "" : ", those that tell the clusters apart best";
  byId("columns-title").textContent = `Columns: ${n} of ${all}${best}`;
  byId("all-columns").hidden = n === all;
}

// The same clusters as files.

function csv(state) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = state.view.profile.clusters.map((c, i) => [i, c.share, ...c.means, ...state.scale]);
  return [state.header, ...rows].map((row) => row.map((cell) => quoted(String(cell))).join(",")).join("\n") + "\n";
}

function json(state) {
  const { label: rows, profile } = state.view;
  return JSON.stringify({ file: state.name, selection: rows, ...profile, slices: state.trends }, null, 1) + "\n";
}
