// All about one trial: what was set and measured, why it was chosen, corrections and notes.

import { html, nothing } from "./vendor/lit-html.js";
import { interval, known, percent, roughly, shown } from "./numbers.js";
import { state } from "./store.js";
import { moment } from "./times.js";
import { brief, capital, entryOf, name, sentence } from "./words.js";

export function about(t, why) {
  const { study } = state;
  return html`<p class="lead small">${sentence(t.levels, study.factors)}</p>
    ${t.asked_levels
      ? html`<p>Asked was: ${sentence(t.asked_levels, study.factors)}</p>`
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
                ${shown(entryOf(c.values, study.reward))}, ${brief(c.levels, study.factors)}.
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
          Of all other settings, the best was to switch
          ${rival.switch.length
            ? factors.filter((f) => rival.switch.includes(f.name)).map((f, i) => [
                i ? ", " : "",
                name(f.name),
              ])
            : "nothing"}:
          ${shown(rival.mean, width)}.
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
