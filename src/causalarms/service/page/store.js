// The state of the page, the server it comes from, and what this browser keeps of it.
//
// `change` is the only way to change the state; the listener draws it once per frame.

export const state = {
  status: "loading", // loading | login | refused | ready
  problem: null,
  connection: "opening", // opening | live | polling | gone
  trouble: "", // what the server says of itself
  frozen: false,
  clockOffset: 0, // the server's clock minus this one, in milliseconds
  worker: "",
  study: null,
  best: null,
  graph: null,
  settingGraph: null, // of the setting that is shown instead of regimes
  effects: null,
  alarms: null,
  rewards: null,
  checks: null,
  notes: [],
  pending: [],
  trials: { rows: [], newest: null, oldest: 0 }, // newest: null follows the head
  prediction: null,
  places: null, // the positions of nodes that the graph is drawn with
  card: null, // the trial in the card, as it was last seen
  drafts: {}, // what is being typed, by trial
  choice: { threshold: 0.5, regime: null, levels: null, context: {}, thenNext: true },
  dialog: null,
  asking: false,
  askProblem: "",
  notices: [],
  said: "",
  width: 0,
};

let draw = () => {};
let waiting = false;

export function onChange(listener) {
  draw = listener;
}

export function change(patch) {
  Object.assign(state, patch);
  if (waiting) return;
  waiting = true;
  const now = () => {
    waiting = false;
    draw();
  };
  // a hidden tab gets no frames
  if (document.hidden) setTimeout(now);
  else requestAnimationFrame(now);
}

// For screen readers, and for eyes at the bottom of the page.
export function say(text) {
  change({ said: text });
}

// -- the API of the server, or the answers frozen into a report -----------------------------------
//
// Every address is relative, so that the page works wherever a proxy puts it.

const frozen = document.getElementById("frozen");
const answers = frozen === null ? null : JSON.parse(frozen.textContent);
const lastSeen = new Map(); // path -> { etag, data }: an unchanged answer stays the same object

export const isFrozen = answers !== null;

class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.body = body;
  }

  get unreachable() {
    return this.status === 0;
  }
}

export const address = (path) => new URL(`api/v1/${path}`, document.baseURI).href;

export async function get(path, signal) {
  if (isFrozen) {
    if (Object.hasOwn(answers, path)) return { data: answers[path], date: null };
    throw new Problem(404, { title: `The report does not hold ${path}.` });
  }
  // "no-cache" asks with the ETag of the copy the browser has, and hands out that copy on a 304
  const response = await send(path, { cache: "no-cache", signal });
  const etag = response.headers.get("ETag");
  const date = response.headers.get("Date");
  const before = lastSeen.get(path);
  if (etag !== null && before?.etag === etag) return { data: before.data, date };
  const data = await response.json();
  if (etag !== null) lastSeen.set(path, { etag, data });
  return { data, date };
}

export async function write(method, path, body, key = null) {
  const headers = { "Content-Type": "application/json" };
  if (key !== null) headers["Idempotency-Key"] = key;
  const response = await send(path, { method, headers, body: JSON.stringify(body) });
  return response.status === 204 ? null : response.json();
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(address(path), { credentials: "same-origin", ...options });
  } catch {
    throw new Problem(0, { title: "The server does not answer." });
  }
  if (response.ok) return response;
  let body = {};
  try {
    body = await response.json();
  } catch {
    // a proxy's own page, not ours
  }
  throw new Problem(response.status, body);
}

// -- what a person chose or typed: kept for this tab, so that a reload loses nothing --------------

const PREFIX = "causalarms:";
let study = ""; // another study at the same address has its own choices

export function choicesOf(hash) {
  study = hash.slice(0, 16);
}

export function remember(name, value) {
  try {
    sessionStorage.setItem(`${PREFIX}${study}:${name}`, JSON.stringify(value));
  } catch {
    // a browser that stores nothing forgets on reload, and nothing else happens
  }
}

export function recall(name, otherwise) {
  try {
    const text = sessionStorage.getItem(`${PREFIX}${study}:${name}`);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

// The name under which this browser asks. Two browsers must not share one: they would be handed
// the same trial.
export function workerName() {
  const name = `${PREFIX}worker`;
  const fresh = `page-${randomHex(2)}`;
  try {
    const found = localStorage.getItem(name) ?? fresh;
    localStorage.setItem(name, found);
    return found;
  } catch {
    return fresh;
  }
}

export function randomHex(bytes) {
  return [...crypto.getRandomValues(new Uint8Array(bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}
