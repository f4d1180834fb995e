// The best setting so far: what it gives, how sure that is, what stopping now would cost.

import { html, nothing, svg } from "./vendor/lit-html.js";
import { contextFields } from "./forms.js";
import { contextToday, knowsToday, updating } from "./refresh.js";
import { state } from "./store.js";
import {
  capital,
  interval,
  known,
  name,
  part,
  percent,
  roughly,
  sentence,
  shown,
  signed,
} from "./words.js";

export function best() {
  const { best: view, study } = state;
  return html`<section id="best" class="card" aria-labelledby="best-title">
    <h2 id="best-title">Best so far ${updating(view)}</h2>
    ${view === null || view.found === null ? tooEarly(view) : found(view, study)}
  </section>`;
}

function tooEarly(view) {
  return html`<p class="lead">Not known yet.</p>
    <p>${view?.why ? `${capital(view.why)}.` : "The server is computing it."}</p>
    <h3>How this works</h3>
    <ol class="steps">
      <li>The study proposes what to set in the next trial.</li>
      <li>You carry it out and type in what you measured.</li>
      <li>
        From all results it learns what causes what, and says here which setting is best, how sure
        that is, and what stopping now would cost.
      </li>
    </ol>`;
}

function found(view, study) {
  const width = known(view.low) && known(view.high) ? view.high - view.low : null;
  return html`${today(study)}
    <p class="lead">${sentence(view.found.levels, study.factors)}</p>
    <dl class="figures">
      <div>
        <dt>Expected ${study.reward}</dt>
        <dd>${shown(view.reward, width)}</dd>
        <dd class="hint">
          ${known(view.low) && known(view.high)
            ? html`The average to expect if this setting is kept. With 95 % probability it lies
                between ${interval(view.low, view.high).replace(" to ", " and ")}.`
            : "The average to expect if this setting is kept. How sure that is, cannot be said yet."}
          ${view.cost ? html`Its cost, ${shown(view.cost)}, is not taken off here.` : nothing}
        </dd>
      </div>
      <div>
        <dt>Sure that it is the best</dt>
        <dd>${percent(view.probability)}</dd>
        <dd class="hint">
          ${known(view.probability)
            ? "The probability that no allowed setting is better."
            : "This method does not say how probable it is that no other setting is better."}
        </dd>
      </div>
      <div>
        <dt>Loss if you stop now</dt>
        <dd>${roughly(view.expected_loss)}</dd>
        <dd class="hint">
          ${known(view.expected_loss)
            ? html`${study.reward} given up per round, on average, by keeping this setting instead
              of the truly best one. Stop when that is too little to matter.`
            : "What stopping now would cost is not known."}
        </dd>
      </div>
    </dl>
    ${fails(view.failing)}
    ${view.remarks.map(({ text }) => html`<p class="remark"><bdi>${text}</bdi></p>`)}
    ${gains(view, study)}
    <p class="hint">From ${view.basis}.</p>
    ${study.context.length && !state.frozen
      ? html`<details class="quiet">
          <summary>What is best may depend on the context</summary>
          ${contextFields("best-context")}
        </details>`
      : nothing}`;
}

export function fails(probability) {
  if (!known(probability)) return nothing;
  return html`<p class="hint">
    A trial of this setting fails with probability <b>${percent(probability)}</b>, by the trials
    that failed so far.
  </p>`;
}

function today({ context }) {
  if (state.frozen || !knowsToday()) return nothing;
  const values = contextToday();
  const words = context
    .filter((node) => Object.hasOwn(values, node))
    .map((node, i) => html`${i ? ", " : ""}<b>${name(node)}</b> at ${shown(values[node])}`);
  return html`<p class="eyebrow">Today, with ${words}</p>`;
}

function gains(view, study) {
  if (!known(view.natural) || !view.gains.length) return nothing;
  const levels = [view.natural, ...view.gains.map((g) => g.reward)].filter(known);
  const low = Math.min(...levels);
  const high = Math.max(...levels);
  const place = (x) => (high > low ? 4 + (92 * (x - low)) / (high - low) : 50);
  const span = Math.max(high - low, 0) / 8 || null;
  const steps = view.gains.map((gain, i) => ({
    ...gain,
    before: i ? view.gains[i - 1].reward : view.natural,
    factor: study.factors.find((f) => f.name === gain.factor),
  }));
  return html`<h3>Where the gain comes from</h3>
    <div class="scroll" tabindex="0" role="region" aria-label="Gains, switch by switch">
      <table class="gains">
        <caption class="hint">
          ${study.reward} with everything left as it is, then with one switch after the other.
        </caption>
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col" class="number">Gain</th>
            <th scope="col" class="number">${study.reward}</th>
            <td class="bar-cell"></td>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">nothing switched</th>
            <td></td>
            <td class="number">${shown(view.natural, span)}</td>
            <td class="bar-cell">${bar(place(view.natural), place(view.natural))}</td>
          </tr>
          ${steps.map(
            (step) => html`<tr>
              <th scope="row">and ${part(step.factor, step.level)}</th>
              <td class="number">${signed(step.gain, span)}</td>
              <td class="number">${shown(step.reward, span)}</td>
              <td class="bar-cell">
                ${known(step.reward) && known(step.before)
                  ? bar(place(step.before), place(step.reward))
                  : nothing}
              </td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

function bar(from, to) {
  return html`<svg class="bar" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
    ${svg`<rect x=${Math.min(from, to)} width=${Math.max(Math.abs(to - from), 0.8)} y="2" height="8" />`}
  </svg>`;
}
