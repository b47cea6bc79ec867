// The table of clusters: sorted by any column; the same rows as a file.

const sorting = { column: -1, descending: true }; // -1: by share

function drawTable(state) {
  const { centroids, shares } = state.view;
  const columns = state.shown;
  const cells = columns.map((c) => alike(centroids.map((row) => row[c])));
  const order = shares.map((_, i) => i).sort(byColumn(centroids, shares));
  const heads = [head("cluster", -2, state), head("share", -1, state), ...columns.map((c) => head(state.columns[c], c, state))];
  const rows = order.map((i) => {
    const share = element("td", { class: "share" }, percent(shares[i]));
    share.style.backgroundSize = `${100 * (shares[i] / Math.max(...shares))}% 100%`;
    const chip = element("td", {}, clusterButton(i, state));
    const marked = state.marked === i ? "marked" : null;
    return element("tr", { class: marked }, chip, share, ...cells.map((column) => element("td", {}, column[i])));
  });
  byId("table").replaceChildren(
    element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows)),
  );
}

function byColumn(centroids, shares) {
  const value = (i) => {
    if (sorting.column === -2) return i;
    return sorting.column === -1 ? shares[i] : centroids[i][sorting.column];
  };
  const sign = sorting.descending ? -1 : 1;
  return (a, b) => sign * (value(a) - value(b)) || a - b;
}

function head(name, column, state) {
  const button = element("button", { type: "button" }, ...breakable(name));
  button.addEventListener("click", () => {
    const again = sorting.column === column;
    sorting.descending = again ? !sorting.descending : column === -1;
    sorting.column = column;
    drawTable(state);
    byId("table").querySelectorAll("th button")[[-2, -1, ...state.shown].indexOf(column)].focus();
  });
  const direction = sorting.descending ? "descending" : "ascending";
  return element("th", { scope: "col", "aria-sort": sorting.column === column ? direction : "none" }, button);
}

function clusterButton(i, state) {
  const pressed = String(state.marked === i);
  const name = `Mark cluster ${i}`;
  const button = element("button", { type: "button", class: `chip edge-${i % COLOURS}`, "aria-pressed": pressed, "aria-label": name }, i);
  button.addEventListener("click", () => {
    state.marked = state.marked === i ? null : i;
    draw();
    byId("table").querySelector(`[aria-label="${name}"]`).focus();
  });
  return button;
}

function csv(state) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = state.view.centroids.map((row, i) => [i, state.view.shares[i], ...row, ...state.scale]);
  return [state.header, ...rows].map((row) => row.map((cell) => quoted(String(cell))).join(",")).join("\n") + "\n";
}
