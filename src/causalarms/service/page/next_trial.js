// The next trial: what to set, and a form for what came out. An update of the page never touches
// what is being typed, and a trial that somebody else ended meanwhile stays until it is let go.

import { html, nothing } from "./vendor/lit-html.js";
import { mine, myName } from "./actions.js";
import * as act from "./actions.js";
import { contextFields, factorFields, valueFields } from "./forms.js";
import { knowsToday } from "./refresh.js";
import { change, state } from "./store.js";
import { ageOf, brief, known, sentence, shown } from "./words.js";

const MAX_LISTED = 20; // waiting trials

export function nextTrial() {
  const now = current();
  return html`<section id="next" class="card main-card" aria-labelledby="next-title">
    <h2 id="next-title">Next trial</h2>
    ${now === null ? nobodyWaits() : trialCard(now)} ${others(now)}
  </section>`;
}

function current() {
  const { card } = state;
  const open = mine();
  if (card !== null) {
    const still = open.find((row) => row.trial === card.trial);
    if (still) return { row: still, closed: false };
    if (act.isDirty(act.draftOf(card.trial))) return { row: card, closed: true };
  }
  const row = open.find((r) => r.worker === myName()) ?? open[0];
  return row ? { row, closed: false } : null;
}

function nobodyWaits() {
  const { asking, askProblem, study } = state;
  return html`<p class="lead">
      ${study.trials ? "No trial is waiting for a result." : "Nothing has been tried yet."}
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
    <p class="lead">${sentence(row.levels, study.factors)}</p>
    ${why(row)} ${closed ? closedElsewhere(row) : nothing}
    <form id="tell" novalidate @submit=${(event) => submit(event, row)}>
      <fieldset>
        <legend>What was measured</legend>
        <p class="hint">Leave empty what was not measured. Enter sends.</p>
        <div class="fields">
          ${valueFields("tell", draft, (values) => type(row, { values, problem: "", wrong: [] }))}
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
      <div class="row">
        <button class="primary" type="submit">Tell the result</button>
        <label class="check">
          <input
            type="checkbox"
            .checked=${state.choice.thenNext}
            @change=${(event) => act.choose({ thenNext: event.target.checked })}
          />
          then ask for the next
        </label>
      </div>
      ${state.study.context.length && state.choice.thenNext
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

function why(row) {
  const says = row.reason === "explore" ? "to learn more" : "for its reward and what it teaches";
  const expects = known(row.predicted)
    ? html` Expected ${state.study.reward}: <b>${shown(row.predicted)}</b>.`
    : nothing;
  return html`<p class="hint">
    Chosen ${says}.${expects}
    <button
      type="button"
      class="link"
      @click=${() => act.openDetails(row.trial)}
    >
      Why this one?
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
  return html`${rest.length
    ? html`<h3>Also waiting for a result</h3>
        <ul class="waiting">
          ${rest.slice(0, MAX_LISTED).map(
            (row) => html`<li>
              <button class="link" @click=${() => act.showTrial(row)}>Trial ${row.trial}</button>
              <span>${brief(row.levels, state.study.factors)}</span>
              <span class="hint">${row.worker}, ${ageOf(row)}</span>
            </li>`,
          )}
        </ul>
        ${rest.length > MAX_LISTED ? html`<p class="hint">and ${rest.length - MAX_LISTED} more</p>` : nothing}`
    : nothing}
  ${now === null || now.row.worker === myName() ? nothing : another()}`;
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

async function submit(event, row) {
  event.preventDefault();
  const form = event.target;
  if (await act.tell(row.trial)) await afterwards();
  else requestAnimationFrame(() => form.querySelector("[aria-invalid=true]")?.focus());
}

async function finish(row, outcome) {
  const { reason } = act.draftOf(row.trial);
  if (await act.end(row.trial, { state: outcome, reason })) await afterwards();
}

async function afterwards() {
  if (state.choice.thenNext && !mine().some((row) => row.worker === myName())) await act.ask();
  focusNext();
}

async function askAndFocus() {
  await act.ask();
  focusNext();
}

// The form may be drawn later than its trial is known, or again: the cursor stays wanted there until
// a key or a pointer goes elsewhere.
let wanted = false;
for (const kind of ["keydown", "pointerdown"]) {
  document.addEventListener(kind, () => (wanted = false), { capture: true });
}

function focusNext() {
  wanted = true;
  requestAnimationFrame(() => requestAnimationFrame(settleFocus));
}

export function settleFocus() {
  if (!wanted) return;
  const ask = document.getElementById("ask");
  const active = document.activeElement;
  if (active !== null && active !== document.body && active !== ask) return;
  (document.querySelector("#tell input") ?? ask)?.focus();
}
