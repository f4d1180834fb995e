// Results so far: the curve, what its lines mean, alarms, and the same as a table.

import { html, nothing, svg } from "./vendor/lit-html.js";
import { mayWrite } from "./actions.js";
import * as act from "./actions.js";
import { updating } from "./refresh.js";
import { state } from "./store.js";
import { count, interval, known, shown, ticks } from "./words.js";

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
    return html`<p class="hint">This study does not watch for changes of the system over time.</p>`;
  }
  if (!view.alarms.length) {
    return html`<p class="hint">No change noticed since the study began.</p>`;
  }
  return html`<h3>Alarms</h3>
    <p class="hint">
      An alarm says that a quantity no longer answers its causes as before. What was learned of it
      before the change is set aside, and it is learned again.
    </p>
    <ul class="alarms">
      ${view.alarms.map(
        (alarm) => html`<li class=${alarm.acknowledged ? "is-seen" : ""}>
          <span>
            <bdi>${alarm.text}.</bdi>
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

// -- the chart, in pixels of the page -------------------------------------------------------------
//
// A dot per bucket, the band from its smallest to its largest result, the running average, what was
// predicted when these trials were asked, what the best setting is expected to give, and alarms.

const HEIGHT = 280;
const LEFT = 58;
const RIGHT = 14;
const TOP = 20;
const BOTTOM = 36;
const MAX_RANGES = 3; // a result further away than 3 ranges of most others is drawn at the border
const STRONG_DOTS = 30; // fewer results get larger dots
const AVERAGES = 12; // the running average is over 1/12 of all buckets, at least 5

function rewardChart(view, width) {
  const measured = view.buckets.filter((b) => known(b.mean));
  const scale = scales(view, measured, width);
  const results = view.buckets.reduce((sum, b) => sum + b.results, 0);
  const last = measured.length ? `, ${shown(measured.at(-1).mean)} at the end` : "";
  const label = `${view.reward} of ${count(results, "result")}${last}; the same in the table below`;
  return html`<svg
    class="chart"
    viewBox="0 0 ${width} ${HEIGHT}"
    width=${width}
    height=${HEIGHT}
    role="img"
    aria-label=${label}
  >
    ${axes(scale, width)} ${bestBand(view, scale, width)} ${band(measured, scale)}
    ${predicted(view.buckets, scale)} ${averages(measured, scale)}
    ${view.alarms.map((alarm) => mark(alarm, scale))}
  </svg>`;
}

const middle = (bucket) => (bucket.first_round + bucket.last_round) / 2;

function scales({ buckets, best_mean: best }, measured, width) {
  const values = measured
    .flatMap((b) => [b.low, b.high, b.mean])
    .concat(buckets.map((b) => b.predicted), [best])
    .filter(known);
  let [low, high] = rangeOf(values);
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  low -= room;
  high += room;
  const first = buckets.length ? buckets[0].first_round : 1;
  const last = Math.max(buckets.length ? buckets.at(-1).last_round : 2, first + 1);
  return {
    low, high, first, last,
    x: (round) => LEFT + 6 + ((width - LEFT - RIGHT - 6) * (round - first)) / (last - first),
    y: (value) =>
      TOP + ((HEIGHT - TOP - BOTTOM) * (high - Math.min(Math.max(value, low), high))) / (high - low),
  };
}

// All values, unless a few lie so far away that nothing could be seen of the others.
function rangeOf(values) {
  if (!values.length) return [0, 1];
  const sorted = [...values].sort((a, b) => a - b);
  const at = (fraction) => sorted[Math.round(fraction * (sorted.length - 1))];
  const [q, p] = [at(0.1), at(0.9)];
  const reach = MAX_RANGES * (p - q);
  if (sorted.length < 10 || !(reach > 0)) return [sorted[0], sorted.at(-1)];
  const inside = sorted.filter((value) => value >= q - reach && value <= p + reach);
  return [inside[0], inside.at(-1)];
}

// How many buckets reach beyond the picture.
function outside(view) {
  const measured = view.buckets.filter((b) => known(b.mean));
  const { low, high } = scales(view, measured, 100);
  return measured.filter((b) => b.low < low || b.high > high).length;
}

function axes({ low, high, first, last, x, y }, width) {
  const marks = ticks(low, high);
  const span = marks.length > 1 ? 10 * (marks[1] - marks[0]) : null;
  const across = ticks(first, last, width < 500 ? 4 : 8).filter(Number.isInteger);
  return svg`
    ${marks.map(
      (value) => svg`
        <line class="grid" x1=${LEFT} x2=${width - RIGHT} y1=${y(value)} y2=${y(value)} />
        <text class="tick" x=${LEFT - 8} y=${y(value)} dy="0.32em" text-anchor="end"
          >${shown(value, span)}</text>`,
    )}
    ${across.map(
      (round) => svg`<text class="tick" x=${x(round)} y=${HEIGHT - BOTTOM + 18}
        text-anchor="middle">${round.toLocaleString("en")}</text>`,
    )}
    <text class="tick" x=${width - RIGHT} y=${HEIGHT - 3} text-anchor="end">result number</text>`;
}

function bestBand({ best_mean: mean, best_low: low, best_high: high }, { y }, width) {
  if (!known(mean)) return nothing;
  const zone =
    known(low) && known(high)
      ? svg`<rect class="best-band" x=${LEFT} width=${width - LEFT - RIGHT} y=${y(high)}
          height=${Math.max(y(low) - y(high), 1)} />`
      : nothing;
  return svg`${zone}
    <line class="best-line" x1=${LEFT} x2=${width - RIGHT} y1=${y(mean)} y2=${y(mean)} />`;
}

function band(buckets, { x, y }) {
  const wide = buckets.filter((b) => known(b.low) && known(b.high) && b.results > 1);
  if (wide.length < 2) return nothing;
  const top = wide.map((b) => `${x(middle(b))},${y(b.high)}`);
  const bottom = wide.map((b) => `${x(middle(b))},${y(b.low)}`).reverse();
  return svg`<polygon class="band" points=${[...top, ...bottom].join(" ")} />`;
}

function predicted(buckets, { x, y }) {
  const some = buckets.filter((b) => known(b.predicted));
  if (some.length < 2) return nothing;
  const points = some.map((b) => `${x(middle(b))},${y(b.predicted)}`).join(" ");
  return svg`<polyline class="predicted" points=${points} />`;
}

function averages(buckets, { x, y }) {
  const points = running(buckets).map(({ at, mean }) => `${x(at)},${y(mean)}`);
  const [look, radius] = buckets.length < STRONG_DOTS ? ["dot is-strong", 3.6] : ["dot", 2.4];
  return svg`
    ${buckets.map(
      (b) => svg`<circle class=${look} cx=${x(middle(b))} cy=${y(b.mean)} r=${radius} />`,
    )}
    ${points.length > 1 ? svg`<polyline class="measured" points=${points.join(" ")} />` : nothing}`;
}

const windowOf = (buckets) => Math.max(5, Math.round(buckets.length / AVERAGES));

function running(buckets) {
  const half = Math.floor(windowOf(buckets) / 2);
  if (buckets.length < 2 * half + 2) return [];
  return buckets.map((bucket, i) => {
    const near = buckets.slice(Math.max(i - half, 0), i + half + 1);
    const weight = near.reduce((sum, b) => sum + b.results, 0);
    const mean = near.reduce((sum, b) => sum + b.results * b.mean, 0) / weight;
    return { at: middle(bucket), mean };
  });
}

function mark(alarm, { x, first, last }) {
  const at = x(Math.min(Math.max(alarm.round, first), last));
  return svg`<g class="alarm-mark ${alarm.acknowledged ? "is-seen" : ""}">
    <line x1=${at} x2=${at} y1=${TOP} y2=${HEIGHT - BOTTOM} />
    <path d="M ${at} ${TOP} l -6 -11 h 12 z" />
    <title>Alarm at trial ${alarm.trial}: ${alarm.node} seems to have changed</title>
  </g>`;
}
