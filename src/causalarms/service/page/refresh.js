// Keep what is shown up to date. One refresh at a time; news meanwhile starts another one.

import { html, nothing } from "./vendor/lit-html.js";
import { address, change, choicesOf, get, isFrozen, recall, state, write } from "./store.js";
import { capital, entryOf, known, typed } from "./words.js";

export const PAGE = 25; // trials per page of the table
const VIEWS = ["best", "graph", "effects", "alarms", "rewards", "checks"];
const PATHS = {
  best: () => (knowsToday() ? `best?context=${inAddress(contextToday())}` : "best"),
  graph: () => "graph?above=0.05", // the slider goes no lower
};
const MAX_PANELS = 4; // beyond, the best setting is shown unless a person chooses otherwise
const RETRY_MILLISECONDS = [400, 800, 1500, 3000, 5000]; // while the server still learns

let running = null;
let again = false;
let tries = 0;
let timer = null;

export function refresh() {
  if (running !== null) {
    again = true;
    return running;
  }
  running = load().finally(() => {
    running = null;
    if (again) {
      again = false;
      refresh();
    }
  });
  return running;
}

// Whether the server answered.
async function load() {
  try {
    const { data: study, date } = await get("study");
    if (state.study !== null && state.study.first_hash !== study.first_hash) location.reload();
    if (state.study === null) recallChoices(study);
    const offset = date === null ? Date.parse(study.now) : Date.parse(date);
    const clockOffset = offset - Date.now();
    change({ study, status: "ready", problem: null, trouble: "", clockOffset });
    await Promise.all([...VIEWS.map(loadView), loadPending(), loadTrials(), loadNotes()]);
    await Promise.all([predict(), loadSettingGraph()]);
    waitForViews();
    return true;
  } catch (problem) {
    if (problem.status === undefined) throw problem; // a mistake in the page itself
    if (problem.status === 401) change({ status: "login", problem: null });
    else if (state.status !== "ready") refused(problem);
    else if (!problem.unreachable) change({ trouble: problem.message });
    return !problem.unreachable;
  }
}

function refused(problem) {
  change({ status: "refused", problem });
  if (problem.unreachable || problem.status >= 500) setTimeout(refresh, RETRY_MILLISECONDS.at(-1));
}

async function loadView(name) {
  const { data } = await get(isFrozen || !PATHS[name] ? name : PATHS[name]());
  change({ [name]: data });
  if (name === "graph") keepPlaces(data);
}

const inAddress = (value) => encodeURIComponent(JSON.stringify(value));

// Today's values of the context as far as a person typed them, as numbers.
export function contextToday() {
  const found = state.study.context.map((node) => [
    node,
    typed(entryOf(state.choice.context, node) ?? ""),
  ]);
  return Object.fromEntries(found.filter(([, value]) => known(value)));
}

export const knowsToday = () => Object.keys(contextToday()).length > 0;

// What the graph shows: "all" regimes, the number of one, the "best" setting or that of "what-if".
export function graphChoice() {
  const { choice, graph } = state;
  const most = (graph?.regimes.length ?? 0) > MAX_PANELS ? "best" : "all";
  const wish = choice.regime ?? most;
  return (wish === "best" || wish === "what-if") && !canPredict() ? "all" : wish;
}

// The graph of the chosen setting; a report holds that of the best one.
export async function loadSettingGraph() {
  const pathNow = () => {
    const wish = graphChoice();
    if (wish !== "best" && wish !== "what-if") return null;
    const levels = wish === "best" ? state.best.found.levels : chosenLevels();
    return isFrozen ? "graph_of_best" : `${PATHS.graph()}&levels=${inAddress(levels)}`;
  };
  const path = pathNow();
  const data = path === null ? null : (await get(path)).data;
  if (path === pathNow()) change({ settingGraph: data }); // else another choice was made meanwhile
}

async function loadPending() {
  const { data } = await get(isFrozen ? "pending" : "trials?state=asked&limit=100");
  change({ pending: data.trials });
}

export async function loadTrials() {
  const newest = state.trials.newest ?? state.study.trials - 1;
  const after = Math.max(newest - PAGE, -1);
  const { data } = await get(isFrozen ? "trials" : `trials?after=${after}&limit=${PAGE}`);
  const rows = data.trials.filter(({ trial }) => trial > after && trial <= newest);
  const oldest = isFrozen ? (data.trials[0]?.trial ?? 0) : 0; // a report holds the last ones
  change({ trials: { ...state.trials, rows, oldest } });
}

async function loadNotes() {
  const { data } = await get(isFrozen ? "notes" : "notes?limit=1000");
  change({ notes: data.notes });
}

export const canPredict = () => state.best?.found != null && state.graph?.why === "";

// The best setting so far, until a person chooses another one.
export const chosenLevels = () => state.choice.levels ?? state.best.found.levels;

// Ask what is expected of the chosen levels, and of everything as it is.
export async function predict() {
  const { best } = state;
  if (isFrozen || !canPredict()) return;
  const levels = chosenLevels();
  const body = { interventions: [{}, levels] };
  if (knowsToday()) body.context = contextToday();
  const key = JSON.stringify([best.as_of, body]);
  if (state.prediction?.key === key) return;
  try {
    const found = await write("POST", "predictions", body);
    if (chosenLevels() !== levels) return; // another choice was made meanwhile
    const [natural, chosen] = found.predictions;
    change({ prediction: { key, natural, chosen, problem: "" } });
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    change({ prediction: { key: "", natural: null, chosen: null, problem: problem.message } });
  }
}

// A picture that jumps cannot be read: nodes stay where they are until somebody asks.
function keepPlaces(graph) {
  const { places } = state;
  const fits = places !== null && graph.nodes.every((node) => Object.hasOwn(places.at, node.name));
  if (!fits || places.layout === graph.layout || !places.hadEdges) rearrange(graph);
}

export function rearrange(graph) {
  change({
    places: {
      layout: graph.layout,
      hadEdges: graph.edges.length > 0,
      at: Object.fromEntries(graph.nodes.map(({ name, x, y }) => [name, { x, y }])),
    },
  });
}

function recallChoices(study) {
  choicesOf(study.first_hash);
  const choice = { ...state.choice, ...recall("choice", {}) };
  change({ choice, drafts: recall("drafts", {}), card: recall("card", null) });
}

// Views are computed after the events came in. The stream says when they are ready; if that message
// is lost, this asks again.
function waitForViews() {
  clearTimeout(timer);
  const behind = VIEWS.some((name) => state[name] && state[name].as_of < state.study.learned_head);
  if (!behind || isFrozen || document.hidden) {
    tries = 0;
    return;
  }
  timer = setTimeout(refresh, RETRY_MILLISECONDS[Math.min(tries, RETRY_MILLISECONDS.length - 1)]);
  tries += 1;
}

// -- the event stream -----------------------------------------------------------------------------
//
// The server says "head is now 812"; the page then asks for what changed. Closed while the tab is
// hidden: a browser allows few connections to one server, and a hidden tab needs none.

const FIRST_WAIT_MILLISECONDS = 1000;
const LONGEST_WAIT_MILLISECONDS = 15000;

export function listen({ onNews, onConnection }) {
  let source = null;
  let timer = null;
  let wait = FIRST_WAIT_MILLISECONDS;

  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const retry = () => {
    close();
    timer = setTimeout(open, wait);
    wait = Math.min(2 * wait, LONGEST_WAIT_MILLISECONDS);
  };
  const hear = (event) => {
    wait = FIRST_WAIT_MILLISECONDS;
    onConnection("live");
    let news = {};
    try {
      news = JSON.parse(event.data);
    } catch {
      // news without a number is still news
    }
    onNews({ ...news, reset: event.type === "reset" });
  };
  function open() {
    close();
    if (document.hidden) return;
    source = new EventSource(address("events"));
    source.onmessage = hear;
    for (const kind of ["hello", "head", "reset"]) source.addEventListener(kind, hear);
    source.onerror = () => {
      onConnection("gone");
      retry();
    };
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && open());
  open();
}

// -- whether what is shown is there yet, and up to date -------------------------------------------

// A mark for what was computed before the newest results came in.
export function updating(view) {
  const behind = !state.frozen && view !== null && view.as_of < state.study.learned_head;
  return behind ? html`<small class="chip">updating</small>` : nothing;
}

// What will be shown here. Why it is not there yet is said once, next to the best setting.
export function notYet(view, promise) {
  const why = view?.why && view.why !== state.best?.why ? `${capital(view.why)}. ` : "";
  return html`<p>${why}${promise}</p>`;
}
