// One panel of the graph: a box per node, an arrow per edge. Wider is more probable, dashed is a
// negative weight.

import { html, nothing, svg } from "./vendor/lit-html.js";
import { percent, signed } from "./numbers.js";
import { aims, route } from "./routes.js";

// `look` says how a node is drawn: "", "is-unknown" (no data) or "is-absent" (no such regime).
export function graphPicture({ boxes, height, width, edges, reward, look, label }) {
  const ends = aims(edges, boxes);
  return html`<svg
    class="graph"
    viewBox="0 0 ${width} ${height}"
    width=${width}
    height=${height}
    role="img"
    aria-label=${label}
  >
    ${edges.map((edge, i) => arrow(edge, boxes, ends[i], width, height))}
    ${Object.entries(boxes).map(([name, box]) => node(name, box, name === reward, look(name)))}
  </svg>`;
}

const TITLES = {
  "is-unknown": ": too few results to say what causes it",
  "is-absent": ": nothing to be set here",
  "": "",
};

function node(name, { x, y, halfWidth, halfHeight, text }, isReward, looks) {
  return svg`<g class="node ${isReward ? "is-reward" : ""} ${looks}">
    <rect x=${x - halfWidth} y=${y - halfHeight} width=${2 * halfWidth} height=${2 * halfHeight}
      rx=${halfHeight} />
    <text x=${x} y=${y} dy="0.34em" text-anchor="middle">${text}</text>
    <title>${name}${TITLES[looks]}</title>
  </g>`;
}

function arrow(edge, boxes, [from, to], width, height) {
  const others = Object.entries(boxes)
    .filter(([name]) => name !== edge.parent && name !== edge.child)
    .map(([, box]) => box);
  const { a, control, b } = route(from, to, others, width, height);
  const sure = edge.probability ?? 1;
  const thick = 0.8 + 2.4 * sure;
  const [dx, dy] = [b.x - control.x, b.y - control.y];
  const size = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / size, dy / size];
  const head = 5 + 1.7 * thick;
  const neck = { x: b.x - 0.8 * head * ux, y: b.y - 0.8 * head * uy };
  const wing = 0.3 * head + thick / 3;
  const back = { x: b.x - head * ux, y: b.y - head * uy };
  const tip =
    `M ${b.x} ${b.y} L ${back.x - wing * uy} ${back.y + wing * ux} ` +
    `L ${back.x + wing * uy} ${back.y - wing * ux} Z`;
  const dash = edge.weight < 0 ? `${2 * thick + 2} ${1.4 * thick + 2}` : nothing;
  return svg`<g class="edge" opacity=${0.4 + 0.6 * sure}>
    <path class="line" stroke-width=${thick} stroke-dasharray=${dash}
      d="M ${a.x} ${a.y} Q ${control.x} ${control.y} ${neck.x} ${neck.y}" />
    <path class="tip" d=${tip} />
    <title>${edge.parent} → ${edge.child}: probability ${percent(edge.probability)}, weight ${signed(
      edge.weight,
    )}</title>
  </g>`;
}
