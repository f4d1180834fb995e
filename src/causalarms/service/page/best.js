// The best setting so far: what it gives, how sure that is, what stopping now would cost.

import { html, nothing } from "./vendor/lit-html.js";
import { contextFields } from "./forms.js";
import { contextToday, knowsToday, updating } from "./refresh.js";
import { state } from "./store.js";
import {
  capital,
  count,
  interval,
  known,
  name,
  percent,
  roughly,
  setting,
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
    <p class="lead">${setting(view.found.levels, study.factors)}</p>
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
            ? html`${study.reward} ${study.direction === "maximize" ? "given up" : "too much"} per
              round, on average, by keeping this setting instead of the truly best one. Stop when
              that is too little to matter.`
            : "What stopping now would cost is not known."}
        </dd>
      </div>
    </dl>
    ${fails(view.failing)}
    ${view.remarks.map(({ text }) => html`<p class="remark"><bdi>${withoutCommand(text)}</bdi></p>`)}
    ${takenBack(view, study)} ${rivals(view, study)}
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

// What each factor is worth in this setting: all others stay as they are.
function takenBack({ taken_back: found }, study) {
  if (!found.length) return nothing;
  return html`<h3>What each factor is worth</h3>
    <div class="scroll" tabindex="0" role="region" aria-label="What is lost if a factor is taken back">
      <table class="worth">
        <caption class="hint">
          ${study.reward} ${study.direction === "maximize" ? "lost" : "too much"} per round if this
          one factor is taken back to its first level and all others stay; costs are counted. With
          its 95 % interval.
        </caption>
        <thead>
          <tr>
            <th scope="col">Taken back</th>
            <th scope="col" class="number">Lost per round</th>
            <th scope="col" class="number">95 % interval</th>
          </tr>
        </thead>
        <tbody>
          ${found.map(
            (back) => html`<tr>
              <th scope="row">
                ${name(back.factor)} ${name(back.level)} → ${name(back.first)}
                ${back.allowed ? nothing : html`<small>not allowed here</small>`}
              </th>
              <td class="number">${signed(back.lost, back.high - back.low)}</td>
              <td class="number">${interval(back.low, back.high)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

// What is said in a shell helps nobody who reads the page.
const withoutCommand = (text) => text.replace(/ \(causalarms [^)]*\)$/, " Then tell the person who keeps the study.");

function rivals({ found: { levels }, rivals: list, tried, tried_equal, stayed, low, high }, study) {
  if (!list.length) return nothing;
  const span = known(low) && known(high) ? high - low : null;
  const differs = (rival) => study.factors.filter((f) => rival.levels[f.name] !== levels[f.name]);
  return html`<h3>Its leading rivals</h3>
    ${stayed ? html`<p class="remark">${capital(stayed)}.</p>` : nothing}
    <div class="scroll" tabindex="0" role="region" aria-label="Its leading rivals">
      <table class="rivals">
        <caption class="hint">
          This setting was tried ${count(tried, "time")}${tried_equal
            ? `, others as good ${count(tried_equal, "time")}`
            : ""}. Other settings, by what differs from it. Costs count in the probability only.
          ${list.some((rival) => rival.equal)
            ? "Of settings that are as good, the one with the fewest changes is recommended."
            : nothing}
        </caption>
        <thead>
          <tr>
            <th scope="col">Instead</th>
            <th scope="col" class="number">${study.reward}</th>
            <th scope="col" class="number">Better with probability</th>
            <th scope="col" class="number">Tried</th>
          </tr>
        </thead>
        <tbody>
          ${list.map(
            (rival) => html`<tr>
              <th scope="row">
                ${differs(rival).map(
                  (f, i) => html`${i ? ", " : ""}${name(f.name)} ${name(levels[f.name])} →
                  ${name(rival.levels[f.name])}`,
                )}
                ${rival.equal ? html`<small>as good, as far as the results tell</small>` : nothing}
              </th>
              <td class="number">${shown(rival.reward, span)}</td>
              <td class="number">${percent(rival.better)}</td>
              <td class="number">${count(rival.tried, "time")}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}
