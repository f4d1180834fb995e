// Everything that writes. An answer of the server is shown where the person looks; what was typed
// stays until the server has it.

import { contextToday, refresh } from "./refresh.js";
import { change, get, randomHex, remember, say, state, write } from "./store.js";
import { AMBIGUOUS, entryOf, typed } from "./words.js";

const EMPTY = { values: {}, executed: null, reason: "", problem: "", wrong: [], asks: false };

export const UNSENT = "The server does not answer. What you typed is kept: try again.";

export const draftOf = (trial) => state.drafts[trial] ?? EMPTY;

export const isDirty = (draft) =>
  draft.executed !== null || draft.reason !== "" || Object.values(draft.values).some((t) => t !== "");

export function edit(trial, patch) {
  const drafts = { ...state.drafts, [trial]: { ...draftOf(trial), ...patch } };
  change({ drafts });
  remember("drafts", drafts);
}

export function discard(trial) {
  const drafts = { ...state.drafts };
  delete drafts[trial];
  change({ drafts });
  remember("drafts", drafts);
}

export function showTrial(row) {
  change({ card: row });
  remember("card", row);
}

export function choose(patch) {
  const choice = { ...state.choice, ...patch };
  change({ choice });
  remember("choice", choice);
}

let timer = null;

// What is best, and what is expected, may depend on the context.
export function setContext(node, text) {
  choose({ context: { ...state.choice.context, [node]: text } });
  clearTimeout(timer);
  timer = setTimeout(refresh, 250);
}

// Nodes of the context at which something stands that is no number.
export const wrongContext = () =>
  state.study.context.filter((node) =>
    Number.isNaN(typed(entryOf(state.choice.context, node) ?? "")),
  );

function notNumber(text, nodes) {
  const [whole, comma] = [text.trim().replace(",", ""), text.trim().replace(",", ".")];
  const why = AMBIGUOUS.test(text.trim())
    ? `may be two numbers: write ${whole} or ${Number(comma)}`
    : "is not a number";
  return `“${text}” ${why}: ${nodes.join(", ")}.`;
}

// The values of a draft as the API wants them, or what is wrong with them.
export function readValues(texts, nodes) {
  const values = Object.fromEntries(nodes.map((node) => [node, typed(entryOf(texts, node) ?? "")]));
  const wrong = nodes.filter((node) => Number.isNaN(values[node]));
  if (wrong.length) {
    return { wrong, problem: notNumber(texts[wrong[0]], wrong) };
  }
  if (nodes.every((node) => values[node] === null)) {
    return { wrong: [], problem: "Type at least one value. No result at all? Say so below." };
  }
  return { values, wrong: [], problem: "" };
}

export async function ask() {
  if (state.asking) return;
  const [wrong] = wrongContext();
  if (wrong !== undefined) {
    change({ askProblem: notNumber(state.choice.context[wrong], [wrong]) });
    return;
  }
  change({ asking: true, askProblem: "" });
  try {
    const body = { worker: myName(), n: 1, context: contextToday() };
    const { trials } = await write("POST", "trials", body);
    showTrial({ state: "asked", ...trials[0] });
    await refresh();
    say(`Trial ${trials[0].trial} is next.`);
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    change({ askProblem: problem.message });
  } finally {
    change({ asking: false });
  }
}

// `sure`: the person was asked about a result without the reward, and means it.
export async function tell(trial, sure = false) {
  const draft = draftOf(trial);
  const read = readValues(draft.values, state.study.nodes);
  if (read.problem) {
    edit(trial, { problem: read.problem, wrong: read.wrong, asks: false });
    return false;
  }
  if (read.values[state.study.reward] === null && !sure) {
    edit(trial, { problem: "", wrong: [], asks: true });
    return false;
  }
  const result = { state: "told", values: read.values };
  if (draft.executed !== null) result.executed = draft.executed;
  return end(trial, result);
}

// Told, failed or abandoned: whether it is in the log now.
export async function end(trial, result) {
  try {
    const done = await write("PUT", `trials/${trial}/result`, result);
    discard(trial);
    if (state.card?.trial === trial) showTrial(null);
    notice(done);
    say(`Trial ${trial} is ${result.state}.`);
    await refresh();
    return true;
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    edit(trial, { problem: inWords(problem, trial), wrong: [], asks: false });
    if (problem.status === 409) await refresh();
    return false;
  }
}

function inWords(problem, trial) {
  if (problem.unreachable) return UNSENT;
  if (problem.status !== 409) return problem.message;
  return (
    `Somebody else was first: ${problem.message}. ` +
    `What you typed was not stored. To replace the stored result, correct trial ${trial} below.`
  );
}

function notice({ trial, warnings }) {
  if (!warnings.length) return;
  const news = { trial, warnings, id: randomHex(4) };
  change({ notices: [news, ...state.notices.filter((n) => n.trial !== trial)].slice(0, 3) });
  // On a phone the form is far below it.
  requestAnimationFrame(() => document.querySelector(".notice")?.scrollIntoView({ block: "center" }));
}

export function dismiss(id) {
  change({ notices: state.notices.filter((n) => n.id !== id) });
}

// Ends what the open dialog waits for: the server does not begin what nobody waits for.
let leaving = new AbortController();

function leave() {
  leaving.abort();
  leaving = new AbortController();
}

// A dialog carries its own idempotency key: sending it twice, after a lost answer, writes once.
export function openDialog(kind, fields) {
  leave();
  change({ dialog: { kind, key: randomHex(16), problem: "", wrong: [], reason: "", ...fields } });
}

export async function openDetails(trial) {
  openDialog("details", { trial, found: null, why: null });
  const { key } = state.dialog;
  const { signal } = leaving;
  const put = (patch) => state.dialog?.key === key && editDialog(patch);
  if (state.frozen) {
    put({ found: ofTable(trial) });
    return;
  }
  try {
    const { data } = await get(`trials/${trial}`, signal);
    put({ found: data });
    if (data.asked_at) put({ why: (await get(`trials/${trial}/explanation`, signal)).data });
  } catch (problem) {
    if (signal.aborted) return;
    if (problem.status === undefined) throw problem;
    put({ problem: problem.message });
  }
}

// What a report holds of a trial.
function ofTable(trial) {
  const row = state.trials.rows.find((r) => r.trial === trial);
  const notes = state.notes.filter((note) => note.trial === trial);
  return { ...row, notes, corrections: [], why: "" };
}

export function editDialog(patch) {
  if (state.dialog !== null) change({ dialog: { ...state.dialog, ...patch } });
}

export function closeDialog() {
  leave();
  change({ dialog: null });
}

export async function sendDialog(method, path, body, done) {
  const { key } = state.dialog;
  editDialog({ problem: "", wrong: [] });
  try {
    const answer = await write(method, path, body, method === "POST" ? key : null);
    closeDialog();
    notice(answer);
    say(done);
    await refresh();
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    editDialog({ problem: problem.unreachable ? UNSENT : problem.message });
  }
}

// -- who may do what: read looks, a worker asks and tells, an operator does all -------------------

export function mayWrite(role = "worker") {
  if (state.frozen) return false;
  const { role: mine } = state.study.caller;
  return mine === "operator" || mine === role;
}

// The pending trials whose results this person may tell.
export function mine() {
  const { caller } = state.study;
  return caller.role === "worker"
    ? state.pending.filter((row) => row.worker === caller.name)
    : state.pending;
}

// The name under which this person asks: that of the token, where a token is bound to one.
export function myName() {
  const { role, name } = state.study.caller;
  return role === "worker" ? name : state.worker;
}
