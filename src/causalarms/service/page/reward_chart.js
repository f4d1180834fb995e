// Reward against trial number: an average per bucket, the band of what was measured, what the
// posterior expected of the same trials, and alarms. Our own SVG; sizes are in user units.

import { html, nothing, svg } from "./vendor/lit-html.js";
import { count, known, shown, ticks } from "./numbers.js";

const WIDTH = 720;
const HEIGHT = 260;
const LEFT = 58;
const RIGHT = 12;
const TOP = 22;
const BOTTOM = 34;
const FEW = 80; // results that can be seen one by one

export function rewardChart({ buckets, alarms, reward }) {
  const usable = buckets.filter((b) => known(b.mean));
  const scale = scales(usable, buckets);
  const label =
    `${reward} of ${count(total(buckets), "result")}` +
    (usable.length ? `, last average ${shown(usable.at(-1).mean)}` : "");
  return html`<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${label}>
    ${axes(scale)} ${band(usable, scale)} ${expected(buckets, scale)} ${measured(usable, scale)}
    ${alarms.map((alarm) => mark(alarm, scale))}
  </svg>`;
}

const total = (buckets) => buckets.reduce((sum, b) => sum + b.n, 0);
const middle = (bucket) => (bucket.first + bucket.last) / 2;

function scales(usable, buckets) {
  const values = usable
    .flatMap((b) => [b.low, b.high, b.mean])
    .concat(buckets.map((b) => b.predicted))
    .filter(known);
  let low = values.length ? Math.min(...values) : 0;
  let high = values.length ? Math.max(...values) : 1;
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  low -= room;
  high += room;
  const first = buckets.length ? buckets[0].first : 0;
  const last = Math.max(buckets.length ? buckets.at(-1).last : 1, first + 1);
  return {
    low, high, first, last,
    x: (trial) => LEFT + ((WIDTH - LEFT - RIGHT) * (trial - first)) / (last - first),
    y: (value) => TOP + ((HEIGHT - TOP - BOTTOM) * (high - value)) / (high - low),
  };
}

function axes({ low, high, first, last, x, y }) {
  const across = ticks(first, last, 6).filter(Number.isInteger);
  const span = (high - low) / 5;
  return svg`
    ${ticks(low, high).map(
      (value) => svg`
        <line class="grid" x1=${LEFT} x2=${WIDTH - RIGHT} y1=${y(value)} y2=${y(value)} />
        <text class="tick" x=${LEFT - 8} y=${y(value)} dy="0.32em" text-anchor="end">
          ${shown(value, span)}
        </text>`,
    )}
    ${across.map(
      (trial) => svg`<text class="tick" x=${x(trial)} y=${HEIGHT - BOTTOM + 18}
        text-anchor="middle">${trial}</text>`,
    )}
    <text class="tick" x=${WIDTH - RIGHT} y=${HEIGHT - 2} text-anchor="end">trial</text>`;
}

function band(buckets, { x, y }) {
  const wide = buckets.filter((b) => known(b.low) && known(b.high) && b.n > 1);
  if (wide.length < 2) return nothing;
  const top = wide.map((b) => `${x(middle(b))},${y(b.high)}`);
  const bottom = wide.map((b) => `${x(middle(b))},${y(b.low)}`).reverse();
  return svg`<polygon class="band" points=${[...top, ...bottom].join(" ")} />`;
}

function expected(buckets, { x, y }) {
  const some = buckets.filter((b) => known(b.predicted));
  if (!some.length) return nothing;
  const points = some.map((b) => `${x(middle(b))},${y(b.predicted)}`).join(" ");
  return svg`<polyline class="expected" points=${points} />`;
}

function measured(buckets, { x, y }) {
  const points = buckets.map((b) => `${x(middle(b))},${y(b.mean)}`);
  const dots =
    buckets.length <= FEW
      ? buckets.map((b) => svg`<circle class="dot" cx=${x(middle(b))} cy=${y(b.mean)} r="2.6" />`)
      : nothing;
  return svg`<polyline class="measured" points=${points.join(" ")} />${dots}`;
}

function mark(alarm, { x, first, last }) {
  const at = x(Math.min(Math.max(alarm.trial, first), last));
  return svg`<g class="alarm-mark">
    <line x1=${at} x2=${at} y1=${TOP} y2=${HEIGHT - BOTTOM} />
    <path d="M ${at} ${TOP} l -6 -11 h 12 z" />
    <title>Alarm at trial ${alarm.trial}: ${alarm.node} (${alarm.regime})</title>
  </g>`;
}
