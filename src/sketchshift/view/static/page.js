// Puts a document on the page, draws again what has to change, and keeps what was chosen in the
// address. The explorer's page also asks its server for other clusters: the latest wish counts.

const LEAST_WIDTH = 120; // a page that is not laid out yet has none
const state = JSON.parse(byId("document").textContent);
state.marked = state.chosen = state.axes = state.comparison = null;
state.d = state.columns.length;

function take(view) {
  state.view = view;
  state.covariances = view.covariances && floats(view.covariances);
  state.cells = view.cells && { ...view.cells, means: floats(view.cells.means), variances: floats(view.cells.variances) };
  if (state.marked !== null && state.marked >= view.profile.clusters.length) state.marked = null;
  fillAxes();
  fillColumns(state);
}

function draw() {
  if (!drawClusters()) return;
  drawTrends(state);
  drawCurve(state);
  drawComparison(state);
}

function drawClusters() {
  if (!state.view || byId("map").clientWidth < LEAST_WIDTH) return false;
  const { view } = state;
  byId("found").textContent = view.lead;
  byId("trust").hidden = view.is_good;
  byId("trust").textContent = view.sentence;
  byId("proof").textContent = `${view.sentence} The clusters leave ${short(view.residual)} of the sketch unexplained.`;
  drawProfiles(state);
  drawTable(state);
  drawMap(state);
  return true;
}

function toggleMarked(i) {
  state.marked = state.marked === i ? null : i;
  draw();
  remember();
}

function takeTrends(trends) {
  const columns = trends.map((trend) => trend.column);
  state.trends = trends;
  options(byId("trend"), columns, Math.max(0, columns.indexOf(state.by)));
  byId("trend").parentElement.hidden = trends.length < 2;
}

function facts(id, pairs) {
  byId(id).replaceChildren(...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

// The axes of the map: the pair that separates best until a reader takes another. They differ:
// taking the other one's column swaps them.
function fillAxes() {
  const names = [...state.columns, ...state.view.main.map((axis) => axis.name)];
  const chosen = (state.axes ?? []).map((name) => names.indexOf(name));
  const axes = chosen.length && Math.min(...chosen) >= 0 ? chosen : state.view.pair;
  ["across", "upwards"].forEach((id, i) => options(byId(id), names, axes[i]));
}

const chosenName = (select) => select.selectedOptions[0].textContent;

function listenToAxes() {
  byId("map-axes").hidden = state.d < 3;
  const selects = [byId("across"), byId("upwards")];
  selects.forEach((select, i) => {
    let before;
    select.addEventListener("focus", () => { before = select.value; });
    select.addEventListener("change", () => {
      const other = selects[1 - i];
      if (select.value === other.value) other.value = before;
      before = select.value;
      state.axes = selects.map(chosenName);
      drawMap(state);
      remember();
    });
  });
}

function listenToColumns() {
  byId("column-list").addEventListener("change", () => {
    chooseColumns([...byId("column-list").querySelectorAll("input:checked")].map((box) => Number(box.value)));
  });
  byId("all-columns").addEventListener("click", () => chooseColumns(state.columns.map((_, i) => i)));
}

const FILES = {
  "clusters.csv": () => download("centroids.csv", csv(state), "text/csv"),
  "clusters.json": () => download("clusters.json", json(state), "application/json"),
  "comparison.csv": () => download("comparison.csv", comparisonCsv(state.comparison), "text/csv"),
};

// What was chosen, in the address: a link shows it, and going back brings it back.

function chosenState() {
  const found = new URLSearchParams(), { live } = state;
  if (live) {
    found.set("k", byId("k").value);
    if (byId("slice").value !== "0") found.set("slice", live.choices[byId("slice").value]);
    if (state.compared) {
      for (const id of ["before", "after"]) found.set(id, chosenName(byId(id)));
    }
  }
  if (state.marked !== null) found.set("cluster", state.marked);
  if (state.axes) ["across", "upwards"].forEach((id, i) => found.set(id, state.axes[i]));
  if (state.by) found.set("by", state.by);
  for (const c of state.chosen ?? []) found.append("column", state.columns[c]);
  return found.toString();
}

function remember() {
  if (state.view && chosenState() !== location.hash.slice(1)) history.pushState(null, "", `#${chosenState()}`);
}

function restore() {
  const address = new URLSearchParams(location.hash.slice(1));
  const chosen = address.getAll("column").map((name) => state.columns.indexOf(name)).filter((c) => c >= 0);
  state.chosen = chosen.length ? new Set(chosen) : null;
  state.marked = /^\d+$/.test(address.get("cluster")) ? Number(address.get("cluster")) : null;
  const axes = ["across", "upwards"].map((id) => address.get(id));
  state.axes = axes.includes(null) || axes[0] === axes[1] ? null : axes;
  state.by = address.get("by");
  takeTrends(state.trends);
  if (state.live) restoreLive(address);
  if (state.view) take(state.view);
  draw();
}

function start() {
  byId("name").textContent = state.name;
  if (state.promise) {
    byId("promise").hidden = false;
    byId("promise").textContent = `A private sketch: ${state.promise}. All on this page is made of that release, at no further cost.`;
  }
  facts("summary", state.summary);
  facts("plan", state.plan);
  byId("commands").textContent = state.reproduce.commands.join("\n");
  facts("versions", [["fingerprint of the plan", state.reproduce.fingerprint], ...state.reproduce.versions]);
  listenToAxes();
  listenToColumns();
  byId("trend").addEventListener("change", () => { state.by = chosenName(byId("trend")); drawTrends(state); remember(); });
  for (const button of document.querySelectorAll("[data-picture]")) button.addEventListener("click", () => savePicture(button.dataset.picture, button.dataset.kind));
  for (const button of document.querySelectorAll("[data-file]")) button.addEventListener("click", FILES[button.dataset.file]);
  let width = 0;
  new ResizeObserver(() => {
    if (width !== document.body.clientWidth) { width = document.body.clientWidth; draw(); }
  }).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("popstate", restore);
  if (state.live) startLive();
  restore();
}

// The explorer. A page sends one request at a time: first for what is wished for, and whatever
// else once that is shown.

const PAUSE = 120; // milliseconds without a new wish before the server is asked
const PAGE = Math.floor(1e9 * Math.random()); // tells the server which requests are of one window
let wish = new AbortController(), spare = new AbortController();
let showing; // a promise of what is wished for

const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

async function ask(path, parameters, signal) {
  const response = await fetch(`${path}?${new URLSearchParams({ ...parameters, page: PAGE })}`, { signal });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

const wanted = () => ({ k: byId("k").value, choice: byId("slice").value });

function show() {
  wish.abort();
  wish = new AbortController();
  showing = decodeAgain(wish.signal).catch(tell);
  if (state.compared) state.isDue = true; // the same two slices, by other clusters
  goOn();
}

// Once that is shown: the comparison that is due. Each wish begins it anew.
async function goOn() {
  spare.abort();
  spare = new AbortController();
  const { signal } = spare;
  await showing;
  try {
    if (state.isDue) await compareSlices(signal);
  } catch (error) {
    tell(error);
  }
}

function tell(error) {
  if (error.name === "AbortError") return;
  byId("status").classList.add("alarm");
  byId("status").textContent = error.message;
}

async function decodeAgain(signal) {
  await pause(PAUSE);
  signal.throwIfAborted();
  const started = performance.now(), parameters = wanted();
  byId("save-report").href = `report.html?${new URLSearchParams(parameters)}`;
  outdate(true);
  take(await ask("decode", parameters, signal));
  drawClusters();
  const shown = performance.now() - started;
  byId("status").classList.remove("alarm");
  byId("status").textContent = `Decoded and drawn in ${Math.round(shown)} ms.`;
  const { curve, trends } = await ask("details", parameters, signal);
  state.curve = curve;
  takeTrends(trends);
  drawTrends(state);
  drawCurve(state);
  outdate(false);
}

// Pictures that still show the clusters before.
function outdate(is) {
  for (const id of ["curve", "trends", "comparison"]) byId(id).classList.toggle("faint", is);
}

function compareSoon() {
  state.compared = state.isDue = true;
  byId("changes").textContent = "Comparing …";
  goOn();
}

async function compareSlices(signal) {
  const places = { before: Number(byId("before").value) + 1, after: Number(byId("after").value) + 1 };
  try {
    state.comparison = await ask("compare", { ...places, ...wanted() }, signal);
    tellComparison(state.comparison);
  } catch (error) {
    if (error.name === "AbortError") throw error; // a newer wish came first: it is still due
    state.comparison = null;
    byId("changes").textContent = error.message;
  }
  state.isDue = false;
  drawComparison(state);
}

// What the address says, or what is shown first; asks for it if it is not there.
function restoreLive(address) {
  const { choices, max_clusters: most, n_clusters: first } = state.live, before = `${byId("k").value} ${byId("slice").value}`;
  const named = (name, labels) => labels.indexOf(address.get(name));
  const k = Number(address.get("k") ?? first), slice = Math.max(0, named("slice", choices));
  byId("k").value = Number.isInteger(k) && k >= 1 && k <= most ? k : first;
  byId("k-shown").textContent = byId("k").value;
  byId("slice").value = slice;
  const sides = [named("before", choices.slice(1)), named("after", [...choices.slice(1), REST])];
  const isCompared = Math.min(...sides) >= 0;
  if (isCompared) ["before", "after"].forEach((id, i) => { byId(id).value = sides[i]; });
  if (state.compared && !isCompared) byId("changes").textContent = "";
  state.compared = state.isDue = isCompared;
  if (!isCompared) state.comparison = null;
  if (!state.view || before !== `${byId("k").value} ${slice}`) show();
  else goOn();
}

const REST = "all other rows";

function startLive() {
  const { choices, max_clusters: most } = state.live;
  byId("controls").hidden = false;
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  options(byId("slice"), choices);
  byId("slice").parentElement.hidden = choices.length < 2;
  byId("k").max = most;
  byId("k").addEventListener("input", () => {
    byId("k-shown").textContent = byId("k").value;
    show();
  });
  byId("k").addEventListener("change", remember);
  byId("slice").addEventListener("change", () => { show(); remember(); });
  byId("compare-section").hidden = choices.length < 3;
  options(byId("before"), choices.slice(1), 0);
  options(byId("after"), [...choices.slice(1), REST], 1);
  byId("compare").addEventListener("click", () => { compareSoon(); remember(); });
}

start();
