// Reward against the number of results: a dot per bucket, the band from its smallest to its largest
// result, the running average, what was predicted when these trials were asked, what the best setting is
// expected to give, and alarms. Our own SVG, in pixels of the page.

import { html, nothing, svg } from "./vendor/lit-html.js";
import { count, known, shown, ticks } from "./numbers.js";

const HEIGHT = 280;
const LEFT = 58;
const RIGHT = 14;
const TOP = 20;
const BOTTOM = 36;
const FAR = 3; // ranges of most results beyond which a result is not in the picture
const FEW = 30; // results of which every single one counts
const NEIGHBOURS = 12; // the running average is over this share of all buckets, at least 5

export function rewardChart(view, width) {
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
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const [q, p] = [at(0.1), at(0.9)];
  const reach = FAR * (p - q);
  if (sorted.length < 10 || !(reach > 0)) return [sorted[0], sorted.at(-1)];
  const inside = sorted.filter((value) => value >= q - reach && value <= p + reach);
  return [inside[0], inside.at(-1)];
}

// How many buckets reach beyond the picture.
export function outside(view) {
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
  const [look, radius] = buckets.length < FEW ? ["dot is-strong", 3.6] : ["dot", 2.4];
  return svg`
    ${buckets.map(
      (b) => svg`<circle class=${look} cx=${x(middle(b))} cy=${y(b.mean)} r=${radius} />`,
    )}
    ${points.length > 1 ? svg`<polyline class="measured" points=${points.join(" ")} />` : nothing}`;
}

const windowOf = (buckets) => Math.max(5, Math.round(buckets.length / NEIGHBOURS));

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
