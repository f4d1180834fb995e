// One state, changed in one way; whoever listens draws it once per frame.

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
  choice: { threshold: 0.5, regime: "all", levels: null, thenNext: true },
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
  // frames stop in a hidden tab
  if (document.hidden) setTimeout(now);
  else requestAnimationFrame(now);
}

// For screen readers, and for eyes at the bottom of the page.
export function say(text) {
  change({ said: text });
}
