// Puts a document on the page, and draws again what has to change.

const LEAST_WIDTH = 120; // a page that is not laid out yet has none
const state = JSON.parse(byId("document").textContent);
state.marked = null;
state.shown = state.columns.map((_, i) => i);
state.frequencies.turns = floats(state.frequencies.turns);

function take(view) {
  state.view = view;
  state.zeta = floats(view.zeta);
  if (state.marked !== null && state.marked >= view.shares.length) state.marked = null;
}

function draw() {
  if (drawClusters()) drawRest();
}

function drawClusters(work = FINE) {
  if (!state.view || byId("parallel").clientWidth < LEAST_WIDTH) return false;
  const { view } = state, k = view.shares.length;
  byId("found").textContent = `${counted(k, "cluster")} in ${view.rows_std ? "about " : ""}${counted(view.rows, "row")} (${view.label}). They leave a residual of ${short(view.residual)} of the sketch’s norm.`;
  byId("trust").textContent = view.sentence;
  byId("trust").className = view.is_good ? "" : "alarm";
  drawTable(state);
  drawParallel(state);
  drawMap(state, work);
  return true;
}

function drawRest() {
  drawCurve(state);
  drawTrends(state);
}

function takeTrends(trends) {
  const chosen = Math.min(Number(byId("trend").value) || 0, Math.max(0, trends.length - 1));
  state.trends = trends;
  options(byId("trend"), trends.map((trend) => trend.column), chosen);
}

function facts(id, pairs) {
  byId(id).replaceChildren(...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function fillColumns() {
  const boxes = state.columns.map((name, i) => {
    const box = element("input", { type: "checkbox", value: i });
    box.checked = true;
    return element("label", {}, box, element("span", {}, name));
  });
  byId("column-list").replaceChildren(...boxes);
  byId("column-list").addEventListener("change", (event) => {
    const chosen = [...byId("column-list").querySelectorAll("input:checked")].map((box) => Number(box.value));
    if (!chosen.length) event.target.checked = true; // one column at least
    else state.shown = chosen;
    titleColumns();
    draw();
  });
  titleColumns();
}

function titleColumns() {
  byId("columns-title").textContent = `Columns shown: ${state.shown.length} of ${state.columns.length}`;
}

// The two axes of the map are different columns: taking the other one's column swaps them.
function fillMap() {
  byId("map-tools").hidden = state.columns.length < 3;
  const [across, upwards] = [byId("across"), byId("upwards")];
  options(across, state.columns, 0);
  options(upwards, state.columns, Math.min(1, state.columns.length - 1));
  let before = [across.value, upwards.value];
  for (const [select, other, i] of [[across, upwards, 0], [upwards, across, 1]]) {
    select.addEventListener("change", () => {
      if (select.value === other.value) other.value = before[i];
      before = [across.value, upwards.value];
      drawMap(state);
    });
  }
}

function start() {
  byId("name").textContent = state.name;
  byId("about").textContent = "Clusters decoded from a sketch: the data itself is not needed, and is not in here.";
  if (state.promise) {
    byId("promise").hidden = false;
    byId("promise").textContent = `A private sketch: ${state.promise}. All on this page is made of that release, at no further cost.`;
  }
  facts("summary", state.summary);
  facts("plan", state.plan);
  byId("commands").textContent = state.reproduce.commands.join("\n");
  facts("versions", [["fingerprint of the plan", state.reproduce.fingerprint], ...state.reproduce.versions]);
  fillColumns();
  fillMap();
  takeTrends(state.trends);
  byId("trend").addEventListener("change", () => drawTrends(state));
  byId("save-csv").addEventListener("click", () => download("centroids.csv", csv(state), "text/csv"));
  let width = 0;
  new ResizeObserver(() => {
    if (width !== document.body.clientWidth) { width = document.body.clientWidth; draw(); }
  }).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  if (state.view) take(state.view);
  draw();
}
