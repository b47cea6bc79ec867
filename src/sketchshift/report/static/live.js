// The explorer: asks its server for other clusters. The latest wish counts; others are dropped.
// A page sends one request at a time: first for what is wished for, and whatever else once that is shown.

const PAUSE = 120; // milliseconds without a new wish before the server is asked
const NEAR = 12; // slices that are fitted before other k, while nobody asks for anything
const PAGE = Math.floor(1e9 * Math.random()); // tells the server which requests are of one window
let wish = new AbortController(), spare = new AbortController();
let showing, comparing = false; // a promise of what is wished for; whether a comparison is due

const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

async function ask(path, parameters, signal) {
  for (;;) {
    const response = await fetch(`${path}?${new URLSearchParams({ ...parameters, page: PAGE })}`, { signal });
    const answer = await response.json();
    if (response.ok) return answer;
    if (response.status !== 409) throw new Error(answer.error);
    await pause(300); // another window's wish goes before what is prepared here
  }
}

const wanted = () => ({ k: byId("k").value, choice: byId("slice").value });

function show() {
  wish.abort();
  wish = new AbortController();
  showing = decodeAgain(wish.signal).catch(tell);
  goOn();
}

// Once that is shown: the comparison that is due, then what nobody asked for yet. Each wish begins it anew.
async function goOn() {
  spare.abort();
  spare = new AbortController();
  const { signal } = spare, room = await showing;
  try {
    if (comparing) await compareSlices(signal);
    if (room) await prepare(room, signal);
  } catch (error) {
    tell(error);
  }
}

function tell(error) {
  if (error.name === "AbortError") return;
  byId("status").classList.add("alarm");
  byId("status").textContent = error.message;
}

// Gives the number of slices that the server has room for.
async function decodeAgain(signal) {
  await pause(PAUSE);
  signal.throwIfAborted();
  const started = performance.now(), parameters = wanted();
  byId("save-report").href = `report.html?${new URLSearchParams(parameters)}`;
  outdate(true);
  take(await ask("decode", parameters, signal));
  drawClusters(COARSE);
  const shown = performance.now() - started;
  byId("status").classList.remove("alarm");
  byId("status").textContent = `Decoded and drawn in ${Math.round(shown)} ms.`;
  byId("status").dataset.milliseconds = shown;
  const { curve, trends, room } = await ask("details", parameters, signal);
  state.curve = curve;
  takeTrends(trends);
  drawRest();
  drawMap(state);
  outdate(false);
  return room;
}

// Pictures that still show the clusters before.
function outdate(is) {
  for (const id of ["curve", "trends"]) byId(id).classList.toggle("faint", is);
}

// What will probably be wished for next, the nearest first: slices, each of which needs a fit of its own,
// then other k, which take a tenth of that, then as many more slices as the server has room for.
async function prepare(room, signal) {
  const k = Number(byId("k").value), choice = Number(byId("slice").value);
  const { max_clusters: most, choices } = state.live;
  const nearest = (length, here) => Array.from({ length }, (_, i) => i).sort((a, b) => Math.abs(a - here) - Math.abs(b - here));
  const slices = nearest(choices.length, choice).slice(1, room).map((other) => ({ k, choice: other }));
  const numbers = nearest(most, k - 1).map((other) => ({ k: other + 1, choice }));
  for (const next of [...slices.slice(0, NEAR), ...numbers, ...slices.slice(NEAR)]) await ask("prepare", next, signal);
}

function compareSoon() {
  comparing = true;
  byId("comparison").textContent = "Comparing …";
  goOn();
}

async function compareSlices(signal) {
  const place = byId("comparison");
  try {
    const { sentence, clusters } = await ask("compare", { before: Number(byId("before").value) + 1, after: Number(byId("after").value) + 1, k: byId("k").value }, signal);
    place.replaceChildren(element("p", {}, sentence), changes(clusters));
  } catch (error) {
    if (error.name === "AbortError") throw error; // a newer wish came first: it is still due
    place.textContent = error.message;
  }
  comparing = false;
}

function changes(clusters) {
  const heads = ["cluster", "before", "after", "change", "verdict", ...state.columns].map((name) => element("th", { scope: "col" }, name));
  const rows = clusters.map((c, i) => element("tr", {}, ...[
    i, percent(c.before), percent(c.after), minus((100 * (c.after - c.before)).toFixed(1)), c.verdict, ...c.centroid.map(short),
  ].map((cell) => element("td", {}, cell))));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Changes of the clusters" }, table);
}

function startLive() {
  const { choices, max_clusters: most, n_clusters: first } = state.live;
  byId("controls").hidden = false;
  byId("status").hidden = false;
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  options(byId("slice"), choices);
  byId("slice").parentElement.hidden = choices.length < 2;
  byId("k").max = most;
  byId("k").value = first;
  byId("k-shown").textContent = byId("k").value;
  byId("k").addEventListener("input", () => {
    byId("k-shown").textContent = byId("k").value;
    show();
  });
  byId("slice").addEventListener("change", show);
  byId("compare-section").hidden = choices.length < 3;
  options(byId("before"), choices.slice(1), 0);
  options(byId("after"), [...choices.slice(1), "all other rows"], 1);
  byId("compare").addEventListener("click", compareSoon);
  show();
}

start();
if (state.live) startLive();
