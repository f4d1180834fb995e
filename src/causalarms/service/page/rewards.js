// Results so far: the curve, what its lines mean, alarms, and the same as a table.

import { html, nothing } from "./vendor/lit-html.js";
import * as act from "./actions.js";
import { count, interval, known, shown } from "./numbers.js";
import { outside, rewardChart } from "./reward_chart.js";
import { state } from "./store.js";
import { updating } from "./freshness.js";
import { mayWrite } from "./rights.js";

const ROWS = 20; // of the table

export function rewards() {
  const { rewards: view, study } = state;
  return html`<section id="rewards" class="card" aria-labelledby="rewards-title">
    <h2 id="rewards-title">Results so far ${updating(view)}</h2>
    ${view === null || !view.buckets.length
      ? html`<p>No result yet. Here will be the ${study.reward} of every result.</p>`
      : curve(view)}
    ${alarms()}
  </section>`;
}

function curve(view) {
  const beyond = outside(view);
  const several = view.buckets.some((b) => b.results > 1);
  const some = view.buckets.some((b) => known(b.predicted));
  return html`<div class="picture">${rewardChart(view, Math.max(state.width, 280))}</div>
    <ul class="legend">
      <li>
        <i class="key-dot"></i>${view.reward},
        ${several ? `averages of ${view.buckets[0].results} results` : "every result"}
      </li>
      ${view.buckets.length > 6
        ? html`<li><i class="key-measured"></i>running average</li>`
        : nothing}
      ${several
        ? html`<li><i class="key-band"></i>from the smallest to the largest of them</li>`
        : nothing}
      ${some
        ? html`<li><i class="key-predicted"></i>what was expected when the trial was chosen</li>`
        : nothing}
      ${known(view.best_mean)
        ? html`<li>
            <i class="key-best"></i>what the best setting is expected to give
            ${known(view.best_low) ? html`(95 % interval)` : nothing}
          </li>`
        : nothing}
      ${view.alarms.length ? html`<li><i class="key-alarm"></i>alarm</li>` : nothing}
    </ul>
    ${beyond
      ? html`<p class="hint">
          ${count(beyond, "result")} so far outside the rest that
          ${beyond === 1 ? "it is" : "they are"} drawn at the border.
        </p>`
      : nothing}
    <details>
      <summary>The same as a table</summary>
      ${table(view)}
    </details>`;
}

function table({ buckets, reward }) {
  const groups = merged(buckets);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table of results">
    <table>
      <thead>
        <tr>
          <th scope="col">Results</th>
          <th scope="col">Trials</th>
          <th scope="col" class="number">Average ${reward}</th>
          <th scope="col" class="number">Smallest to largest</th>
          <th scope="col" class="number">Expected</th>
        </tr>
      </thead>
      <tbody>
        ${groups.map(
          (g) => html`<tr>
            <th scope="row">${range(g.first_round, g.last_round)}</th>
            <td>${range(g.first_trial, g.last_trial)}</td>
            <td class="number">${shown(g.mean)}</td>
            <td class="number">${interval(g.low, g.high)}</td>
            <td class="number">${shown(g.predicted)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

const range = (first, last) => (first === last ? `${first}` : `${first} to ${last}`);

// Neighbouring buckets together, so that the table stays short.
function merged(buckets) {
  const size = Math.ceil(buckets.length / ROWS);
  const groups = [];
  for (let i = 0; i < buckets.length; i += size) {
    const some = buckets.slice(i, i + size);
    const last = some.at(-1);
    groups.push({
      first_round: some[0].first_round,
      last_round: last.last_round,
      first_trial: Math.min(...some.map((b) => b.first_trial)),
      last_trial: Math.max(...some.map((b) => b.last_trial)),
      mean: average(some, "mean"),
      predicted: average(some, "predicted"),
      low: extreme(some, "low", Math.min),
      high: extreme(some, "high", Math.max),
    });
  }
  return groups;
}

function average(buckets, name) {
  const some = buckets.filter((b) => known(b[name]));
  const weight = some.reduce((sum, b) => sum + b.results, 0);
  return weight ? some.reduce((sum, b) => sum + b.results * b[name], 0) / weight : null;
}

function extreme(buckets, name, choose) {
  const some = buckets.map((b) => b[name]).filter(known);
  return some.length ? choose(...some) : null;
}

function alarms() {
  const { alarms: view } = state;
  if (view === null) return nothing;
  if (!view.watches) {
    return html`<p class="hint">This study does not look for changes of the system over time.</p>`;
  }
  if (!view.alarms.length) {
    return html`<p class="hint">
      No alarm: nothing speaks for a change of the system since the study began.
    </p>`;
  }
  return html`<h3>Alarms</h3>
    <p class="hint">
      An alarm says that a quantity no longer answers its causes as before. What was learned of it
      before the change is set aside, and learned anew.
    </p>
    <ul class="alarms">
      ${view.alarms.map(
        (alarm) => html`<li class=${alarm.acknowledged ? "is-seen" : ""}>
          <span>
            <b>${alarm.node}</b> (${alarm.regime}) seems to have changed${alarm.changed_after === null
              ? ""
              : ` after trial ${alarm.changed_after}`};
            noticed at trial ${alarm.trial}.
            ${alarm.acknowledged ? html`<em>Seen${alarm.note ? `: ${alarm.note}` : ""}.</em>` : ""}
          </span>
          ${alarm.acknowledged || !mayWrite("operator")
            ? nothing
            : html`<button @click=${() => act.openDialog("acknowledge", { alarm })}>
                I have seen it
              </button>`}
        </li>`,
      )}
    </ul>`;
}
