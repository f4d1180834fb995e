// The table of trials, newest first; a wrong result is one click from being corrected.

import { html, nothing } from "./vendor/lit-html.js";
import { mayWrite, mine } from "./actions.js";
import * as act from "./actions.js";
import { loadTrials, PAGE } from "./refresh.js";
import { change, state } from "./store.js";
import {
  ageOf,
  capital,
  count,
  entryOf,
  interval,
  known,
  moment,
  name,
  percent,
  roughly,
  setting,
  settingOf,
  shown,
} from "./words.js";

const STATES = { asked: "pending" };

export function trials() {
  const { study, trials: page } = state;
  return html`<section id="trials" class="card" aria-labelledby="trials-title">
    <h2 id="trials-title">Trials</h2>
    ${study.trials ? table(page) : html`<p>There is none yet.</p>`} ${notes()}
  </section>`;
}

function table({ rows, newest }) {
  const { study } = state;
  const top = newest ?? study.trials - 1;
  const shownRows = [...rows].reverse();
  return html`<table class="trials" role="table">
      <thead role="rowgroup">
        <tr role="row">
          <th scope="col" role="columnheader" class="number">Trial</th>
          <th scope="col" role="columnheader">State</th>
          <th scope="col" role="columnheader">What was set</th>
          <th scope="col" role="columnheader" class="number">${name(study.reward)}</th>
          <th scope="col" role="columnheader">By</th>
          <th scope="col" role="columnheader">When</th>
          <td role="cell"></td>
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${shownRows.map(row)}
      </tbody>
    </table>
    ${study.trials > PAGE ? pages(top) : nothing}`;
}

function row(r) {
  const { study } = state;
  const reward = entryOf(r.values, study.reward);
  return html`<tr role="row" class="is-${r.state}">
    <th scope="row" role="rowheader" class="number at-trial">${r.trial}</th>
    <td role="cell" class="at-state">
      ${STATES[r.state] ?? r.state}${r.corrected ? html`<small> corrected</small>` : nothing}
      ${r.far.length ? html`<small class="warn">far: ${listed(r.far)}</small>` : nothing}
    </td>
    <td role="cell" class="at-setting">
      ${settingOf(r, study.factors)}
      ${r.asked_levels
        ? html`<small>asked: ${setting(r.asked_levels, study.factors)}</small>`
        : nothing}
      ${r.remark ? html`<small><bdi>${r.remark}</bdi></small>` : nothing}
    </td>
    <td role="cell" class="number at-reward">${r.values === null ? "" : shown(reward)}</td>
    <td role="cell" class="at-worker"><bdi>${r.worker}</bdi></td>
    <td role="cell" class="at-time">
      ${r.state === "asked" ? `asked ${ageOf(r)}` : moment(r.done_at)}
    </td>
    <td role="cell" class="actions">${buttons(r)}</td>
  </tr>`;
}

const listed = (names) => names.map((each, i) => [i ? ", " : "", name(each)]);

function buttons(r) {
  const open = r.state === "asked" && mayWrite() && mine().some((m) => m.trial === r.trial);
  const label = (word) => `${word} trial ${r.trial}`;
  return html`
    ${r.values !== null && mayWrite("operator")
      ? html`<button aria-label=${label("Correct")} @click=${() => correct(r)}>Correct</button>`
      : nothing}
    ${open
      ? html`<button aria-label=${label("Tell")} @click=${() => toCard(r)}>Tell</button>
          <button aria-label=${label("Abandon")} @click=${() => abandon(r)}>Abandon</button>`
      : nothing}
    <button
      class="link"
      aria-label=${label("Details of")}
      @click=${() => act.openDetails(r.trial)}
    >
      Details${r.notes ? ` (${count(r.notes, "note")})` : ""}
    </button>`;
}

export function correct(r) {
  const values = Object.fromEntries(
    Object.entries(r.values).map(([node, x]) => [node, x === null ? "" : String(x)]),
  );
  act.openDialog("correct", { row: r, values, executed: null });
}

function abandon(r) {
  act.openDialog("end", { row: r });
}

function toCard(r) {
  act.showTrial(r);
  requestAnimationFrame(() => {
    document.getElementById("next").scrollIntoView();
    document.querySelector("#tell input")?.focus();
  });
}

function pages(top) {
  const { study, trials: { oldest } } = state;
  const last = study.trials - 1;
  const bottom = Math.max(top - PAGE + 1, oldest);
  return html`<nav class="row pages" aria-label="Pages of trials">
    <button aria-disabled=${top >= last} @click=${() => turn(last)}>Newest</button>
    <button aria-disabled=${top >= last} @click=${() => turn(top + PAGE)}>Newer</button>
    <span>${bottom} to ${top} of ${count(study.trials, "trial")}</span>
    <button aria-disabled=${bottom <= oldest} @click=${() => turn(top - PAGE)}>Older</button>
    <button aria-disabled=${bottom <= oldest} @click=${() => turn(oldest + PAGE - 1)}>
      First
    </button>
  </nav>`;
}

async function turn(newest) {
  const last = state.study.trials - 1;
  if (newest < state.trials.oldest) return;
  change({ trials: { ...state.trials, newest: newest >= last ? null : newest } });
  await loadTrials();
}

function notes() {
  const general = state.notes.filter((note) => note.trial === null);
  const add = mayWrite()
    ? html`<button @click=${() => act.openDialog("note", { trial: null })}>Add a note</button>`
    : nothing;
  if (!general.length) return html`<div class="row">${add}</div>`;
  return html`<h3>Notes</h3>
    <ul class="notes">
      ${general.map(
        (note) => html`<li><span class="hint">${moment(note.at)}</span> <bdi>${note.text}</bdi></li>`,
      )}
    </ul>
    <div class="row">${add}</div>`;
}

// -- details of one trial: what was set and measured, why it was chosen, corrections, notes -------

export function about(t, why) {
  const { study } = state;
  return html`<p class="lead small">${settingOf(t, study.factors)}</p>
    ${t.asked_levels
      ? html`<p>Asked was: ${setting(t.asked_levels, study.factors)}</p>`
      : nothing}
    <p class="hint">
      ${[
        t.state === "asked" ? "Waiting for a result" : capital(t.state),
        t.worker,
        t.asked_at && `asked ${moment(t.asked_at)}`,
        t.done_at && `ended ${moment(t.done_at)}`,
      ]
        .filter(Boolean)
        .join(", ")}
    </p>
    ${t.remark ? html`<p>Remark: <bdi>${t.remark}</bdi></p>` : nothing}
    ${t.values === null ? nothing : values(t)}
    ${why || t.why
      ? html`<h3>Why this one</h3>
          ${t.why ? html`<p>${capital(t.why)}.</p>` : html`<p>${why.text}</p>`}
          ${why && t.why ? explained(why) : nothing}`
      : nothing}
    ${t.corrections.length
      ? html`<h3>Corrections</h3>
          <ul>
            ${t.corrections.map(
              (c) => html`<li>
                <span class="hint">${moment(c.at)}</span> ${study.reward} was
                ${shown(entryOf(c.values, study.reward))}, ${setting(c.levels, study.factors)}
                <bdi>${c.reason}</bdi>
              </li>`,
            )}
          </ul>`
      : nothing}
    ${t.notes.length
      ? html`<h3>Notes</h3>
          <ul class="notes">
            ${t.notes.map(
              (n) => html`<li><span class="hint">${moment(n.at)}</span> <bdi>${n.text}</bdi></li>`,
            )}
          </ul>`
      : nothing}`;
}

function values(t) {
  return html`<dl class="values">
    ${Object.entries(t.values).map(
      ([node, x]) => html`<div>
        <dt>${name(node)}</dt>
        <dd>${x === null ? "not measured" : shown(x)}</dd>
      </div>`,
    )}
  </dl>`;
}

function explained(why) {
  const { factors, reward } = state.study;
  const { expected, uncertainty, runner_up: rival, mechanisms } = why;
  const width = known(expected?.low) && known(expected?.high) ? expected.high - expected.low : null;
  return html`${known(expected?.mean)
      ? html`<p>
          When it was chosen, it was expected to give a ${name(reward)} of
          <b>${shown(expected.mean, width)}</b> (95 % interval
          ${interval(expected.low, expected.high)}).
          ${known(uncertainty?.before) &&
          roughly(uncertainty.before) !== roughly(uncertainty.after)
            ? html`Another round of it would reduce the standard error of that from
              ${roughly(uncertainty.before)} to ${roughly(uncertainty.after)}.`
            : nothing}
        </p>`
      : html`<p>There was no model yet when it was chosen.</p>`}
    ${rival && known(rival.mean)
      ? html`<p>
          The best of all other settings was expected to give ${shown(rival.mean, width)}:
          ${setting(rival.levels, factors)}
        </p>`
      : nothing}
    ${mechanisms?.length
      ? html`<p>Where the uncertainty comes from:</p>
          <ul>
            ${mechanisms.slice(0, 3).map(
              (m) => html`<li>
                <b>${name(m.node)}</b> (${m.regime}): ${percent(m.share_of_uncertainty)}
              </li>`,
            )}
          </ul>`
      : nothing}`;
}
