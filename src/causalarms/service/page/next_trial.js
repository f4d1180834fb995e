// The next trial: what to set, and a form for what came out. An update of the page never touches
// what is being typed, and a trial that somebody else ended meanwhile stays until it is let go.

import { html, nothing } from "./vendor/lit-html.js";
import { mine, myName } from "./actions.js";
import * as act from "./actions.js";
import { asksForReward, contextFields, factorFields, onEnter, valueFields } from "./forms.js";
import { knowsToday } from "./refresh.js";
import { change, state } from "./store.js";
import { ageOf, capital, known, name, settingOf, shown } from "./words.js";

const MAX_LISTED = 20; // waiting trials

export function nextTrial() {
  const now = current();
  return html`<section id="next" class="card main-card" aria-labelledby="next-title">
    <h2 id="next-title">Next trial</h2>
    ${now === null ? nobodyWaits() : trialCard(now)} ${others(now)}
  </section>`;
}

// A trial of this person, or one of somebody else that this person chose from a list.
function current() {
  const { card } = state;
  const open = mine();
  if (card !== null) {
    const still = open.find((row) => row.trial === card.trial);
    if (still) return { row: still, closed: false };
    if (act.isDirty(act.draftOf(card.trial))) return { row: card, closed: true };
  }
  const row = open.find(isMine);
  return row ? { row, closed: false } : null;
}

const isMine = (row) => row.worker === myName();

function nobodyWaits() {
  const { asking, askProblem, study } = state;
  return html`<p class="lead">
      ${study.trials ? "No trial of yours is waiting for a result." : "Nothing has been tried yet."}
    </p>
    <p>
      Ask, and the study chooses the setting to try next: one that promises a good
      <b>${study.reward}</b> or teaches most about what causes it. Carry it out, measure, and type
      in here what came out.
    </p>
    ${contextFields("ask-context")}
    ${askProblem ? html`<p class="problem" role="alert">${askProblem}</p>` : nothing}
    <div class="row">
      <button class="primary" id="ask" @click=${askAndFocus} aria-disabled=${asking}>
        ${asking ? "Choosing…" : "Ask for the next trial"}
      </button>
      ${workerField()}
    </div>`;
}

function trialCard({ row, closed }) {
  const draft = act.draftOf(row.trial);
  const { study } = state;
  return html`<p class="eyebrow">
      Trial ${row.trial} · ${row.worker || "nobody"} · asked ${ageOf(row)}
    </p>
    ${isMine(row) ? nothing : notMine(row)}
    <p class="lead">${settingOf(row, study.factors)}</p>
    ${why(row)} ${closed ? closedElsewhere(row) : nothing}
    <form
      id="tell"
      novalidate
      @submit=${(event) => submit(event, row)}
      @keydown=${onEnter}
    >
      <fieldset>
        <legend>What was measured</legend>
        <p class="hint">Leave empty what was not measured. Enter goes to the next field.</p>
        <div class="fields result">
          ${valueFields("tell", draft, (values) =>
            type(row, { values, problem: "", wrong: [], asks: false }),
          )}
        </div>
      </fieldset>
      <details ?open=${draft.executed !== null}>
        <summary>Something else was set than asked</summary>
        <p class="hint">Say what was really set: that is what is learned from.</p>
        <div class="fields">
          ${factorFields("executed", draft.executed ?? row.levels, (levels) =>
            type(row, { executed: { ...row.levels, ...levels } }),
          )}
        </div>
        ${draft.executed === null
          ? nothing
          : html`<button type="button" @click=${() => act.edit(row.trial, { executed: null })}>
              It was set as asked
            </button>`}
      </details>
      ${draft.problem
        ? html`<p class="problem" id="tell-problem" role="alert">${problemOf(draft)}</p>`
        : nothing}
      ${asksForReward(draft.asks, (event) => submit(event, row, true))}
      <div class="row">
        <button class="primary" type="submit">Tell the result</button>
        ${isMine(row)
          ? html`<label class="check">
              <input
                type="checkbox"
                .checked=${state.choice.thenNext}
                @change=${(event) => act.choose({ thenNext: event.target.checked })}
              />
              then ask for the next
            </label>`
          : nothing}
      </div>
      ${state.study.context.length && state.choice.thenNext && isMine(row)
        ? html`<details class="quiet" ?open=${knowsToday()}>
            <summary>Context of the next trial</summary>
            ${contextFields("next-context")}
          </details>`
        : nothing}
      <details class="quiet">
        <summary>There is no result</summary>
        <label class="field wide">
          <span>Reason (may be empty)</span>
          <input
            .value=${draft.reason}
            maxlength="10000"
            @input=${(event) => type(row, { reason: event.target.value })}
          />
        </label>
        <div class="row">
          <button type="button" @click=${() => finish(row, "failed")}>It failed</button>
          <button type="button" @click=${() => finish(row, "abandoned")}>Abandon it</button>
        </div>
        <p class="hint">
          Failed: it was carried out and gave nothing. Abandoned: it will not be carried out.
        </p>
      </details>
    </form>`;
}

function problemOf({ problem }) {
  const back = problem === act.UNSENT && state.connection === "live";
  return back ? "The server is back: tell the result again." : problem;
}

function notMine(row) {
  return html`<p class="problem">
    This is a trial of <b>${name(row.worker)}</b>, not of yours.
    <button type="button" @click=${() => act.showTrial(null)}>Back to my own</button>
  </p>`;
}

function why(row) {
  const general = row.reason === "explore" ? "to learn more" : "for its reward and what it teaches";
  const says = row.why ? `${capital(row.why)}.` : `Chosen ${general}.`;
  const expects = known(row.predicted)
    ? html` Expected ${state.study.reward}: <b>${shown(row.predicted)}</b>.`
    : nothing;
  return html`<p class="hint">
    <bdi>${says}</bdi>${expects}
    <button
      type="button"
      class="link"
      @click=${() => act.openDetails(row.trial)}
    >
      More
    </button>
  </p>`;
}

function closedElsewhere(row) {
  return html`<p class="problem" role="alert">
    Trial ${row.trial} has been ended by somebody else meanwhile. What you typed is still here and
    was not stored.
    <button type="button" @click=${() => letGo(row)}>Discard what I typed</button>
  </p>`;
}

function others(now) {
  const rest = mine().filter((row) => row.trial !== now?.row.trial);
  const label = (row) => (isMine(row) ? `Trial ${row.trial}` : `Trial ${row.trial} of ${row.worker}`);
  return html`${rest.length
    ? html`<h3>Also waiting for a result</h3>
        <ul class="waiting">
          ${rest.slice(0, MAX_LISTED).map(
            (row) => html`<li>
              <button class="link" @click=${() => act.showTrial(row)}>
                Tell <bdi>${label(row)}</bdi>
              </button>
              <span>${settingOf(row, state.study.factors)}</span>
              <span class="hint">asked ${ageOf(row)}</span>
            </li>`,
          )}
        </ul>
        ${rest.length > MAX_LISTED ? html`<p class="hint">and ${rest.length - MAX_LISTED} more</p>` : nothing}`
    : nothing}
  ${now === null || isMine(now.row) ? nothing : another()}`;
}

// The trial in the card is somebody else's.
function another() {
  const { asking, askProblem } = state;
  return html`<details class="quiet">
    <summary>Ask for a trial of my own</summary>
    ${contextFields("own-context")}
    ${askProblem ? html`<p class="problem" role="alert">${askProblem}</p>` : nothing}
    <div class="row">
      ${workerField()}
      <button id="ask" @click=${askAndFocus} aria-disabled=${asking}>
        ${asking ? "Choosing…" : "Ask for a trial"}
      </button>
    </div>
  </details>`;
}

function workerField() {
  if (state.study.caller.role === "worker") return nothing;
  return html`<label class="inline">
    My name
    <input
      .value=${state.worker}
      maxlength="200"
      size="12"
      autocomplete="off"
      @change=${(event) => rename(event.target)}
    />
  </label>`;
}

function rename(input) {
  const name = input.value.trim();
  if (name === "") input.value = state.worker;
  else {
    change({ worker: name });
    if (!act.isDirty(act.draftOf(state.card?.trial))) act.showTrial(null);
    try {
      localStorage.setItem("causalarms:worker", name);
    } catch {
      // the name holds until the tab is closed
    }
  }
}

function type(row, patch) {
  if (state.card?.trial !== row.trial) act.showTrial(row);
  act.edit(row.trial, patch);
}

function letGo(row) {
  act.discard(row.trial);
  act.showTrial(null);
}

async function submit(event, row, sure = false) {
  event.preventDefault();
  const form = document.getElementById("tell");
  if (await act.tell(row.trial, sure)) await afterwards(row);
  else {
    const missing = act.draftOf(row.trial).asks ? ".is-reward input" : "[aria-invalid=true]";
    requestAnimationFrame(() => form.querySelector(missing)?.focus());
  }
}

async function finish(row, outcome) {
  const { reason } = act.draftOf(row.trial);
  if (await act.end(row.trial, { state: outcome, reason })) await afterwards(row);
}

// A trial of my own is not asked for by telling the result of somebody else's.
async function afterwards(row) {
  if (state.choice.thenNext && isMine(row) && !mine().some(isMine)) await act.ask();
  // A remark on this result stays in view, wherever the cursor goes.
  focusNext(state.notices.some((notice) => notice.trial === row.trial));
}

async function askAndFocus() {
  await act.ask();
  focusNext();
}

// The form may be drawn later than its trial is known, or again: the cursor stays wanted there until
// a key or a pointer goes elsewhere.
let wanted = false;
let preventScroll = false;
for (const kind of ["keydown", "pointerdown"]) {
  document.addEventListener(kind, () => (wanted = false), { capture: true });
}

function focusNext(stays = false) {
  wanted = true;
  preventScroll = stays;
  requestAnimationFrame(() => requestAnimationFrame(settleFocus));
}

export function settleFocus() {
  if (!wanted) return;
  const ask = document.getElementById("ask");
  const active = document.activeElement;
  if (active !== null && active !== document.body && active !== ask) return;
  (document.querySelector("#tell input") ?? ask)?.focus({ preventScroll });
}
